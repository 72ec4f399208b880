// Undo and redo of live edits made in this window. Plain data: the caller records edits and posts the returned ones.
#pragma once
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/session/snapshot.h"

namespace comera::studio {

// Path of stage switches, "late" or "early". Not part of the config.
inline constexpr const char* kStagePath = "stage";

struct EditChange {
  std::string path, to;         // the edit
  std::string back_path, back;  // the inverse edit; its path is usually the same
};

// The inverse of an edit. `config` and `snapshot`: state before the edit. Setting one of the three size targets unsets the other two, so
// the inverse sets the previously active one. `back_path` is empty if the edit changes nothing or will be refused.
EditChange inverse_of(const RunConfig& config, const Snapshot& snapshot, const std::string& path, const std::string& value);

class EditHistory {
 public:
  // Records an edit. `goes_on`: it continues the previous edit (a moving slider) and replaces its value.
  void made(EditChange change, bool goes_on);
  // Removes an edit that the session refused.
  void refused(const std::string& path, const std::string& value);
  const EditChange* undo() const { return done_.empty() ? nullptr : &done_.back(); }
  const EditChange* redo() const { return undone_.empty() ? nullptr : &undone_.back(); }
  EditChange take_undo();  // only if undo() is not null
  EditChange take_redo();

 private:
  std::vector<EditChange> done_, undone_;
};

// "target 0.8 -> 0.3", for menus.
std::string text_of(const EditChange& change);

}  // namespace comera::studio
