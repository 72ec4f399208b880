// Where rows and checkpoints go that the disk of their store has no room for: the state folder, else the folder of temporary
// files. From there they are merged when the store is opened next (merge_spills). Each folder is made when it is needed.
#pragma once
#include <string>
#include <vector>

#include "core/store/sqlite.h"

namespace comera {

// Best first: $XDG_STATE_HOME/comera/rescued, $TMPDIR/comera-rescued-UID. The second lies where others may write too: only one
// that is a folder of this user alone is named.
std::vector<std::string> rescue_folders();
// Makes one of them. Throws Error(storage).
void ensure_rescue_folder(const std::string& folder);
// Takes away what is empty in them.
void tidy_rescue_folders();

// The folder for checkpoints of a run in a rescue folder.
std::string rescued_checkpoints(const std::string& folder, const std::string& run_id);
// Whether there are checkpoints in rescue folders, of whichever store.
bool has_rescued_checkpoints();
// Moves those of runs of this store, which no living writer has, to the folder of the other checkpoints of their run. Returns a
// line of text for each one that was moved or could not be.
std::vector<std::string> bring_checkpoints_home(Database& db);

}  // namespace comera
