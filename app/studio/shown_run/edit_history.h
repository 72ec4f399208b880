// Undo and redo of live edits made in this window. Plain data: the caller records edits and applies the returned ones.
#pragma once
#include <string>
#include <vector>

#include "core/session/snapshot.h"
#include "core/train/config.h"

namespace comera::studio {

// The path of the stage, "late" or "early": a setting of a run, in no config.
inline constexpr const char* kStagePath = "stage";

struct EditChange {
  std::string path, to;         // the edit
  std::string back_path, back;  // the edit that takes it back; mostly the same path
};

// The inverse of an edit, given `config` and the newest snapshot before it. Setting one of the three size targets unsets
// the other two: its inverse sets the previous one. `back_path` is empty for an edit
// that changes nothing or is refused.
EditChange inverse_of(const RunConfig& config, const Snapshot& snapshot, const std::string& path, const std::string& value);

class EditHistory {
 public:
  // `goes_on`: the last change is still being made (a slider moves): it ends elsewhere now.
  void made(EditChange change, bool goes_on);
  // The session refused it.
  void refused(const std::string& path, const std::string& value);
  const EditChange* undo() const { return done_.empty() ? nullptr : &done_.back(); }
  const EditChange* redo() const { return undone_.empty() ? nullptr : &undone_.back(); }
  EditChange take_undo();  // only when there is one
  EditChange take_redo();

 private:
  std::vector<EditChange> done_, undone_;
};

// "target 0.8 -> 0.3", for menus.
std::string text_of(const EditChange& change);

}  // namespace comera::studio
