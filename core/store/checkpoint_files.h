// Where checkpoints of runs lie, and whether another store needs them, too.
#pragma once
#include <string>

namespace comera {

// Where a checkpoint is that was written to `path`: at the same place inside the folder `checkpoints` beside the store, if it is there,
// since a store may be moved or copied with it; else at `path`.
std::string place_of_checkpoint(const std::string& path, const std::string& store);
// Where a checkpoint of a run lies when another one has it: in a folder of that run's id beside its own. One that does not
// lie in a folder of its run stays where it is.
std::string moved_checkpoint(const std::string& path, const std::string& from_run, const std::string& to_run);

// Whether another store in the same folder lists checkpoints of this run: one of them is a copy, or the run was imported. Then their files
// are not this store's to change or remove. A store that cannot be read counts as one that does.
bool listed_elsewhere(const std::string& store, const std::string& run);
// For new checkpoints of a run: FOLDER_OF_STORE/checkpoints/RUN, or, where they are listed elsewhere, one of this store's own,
// FOLDER_OF_STORE/checkpoints/STORE/RUN.
std::string checkpoint_folder(const std::string& store, const std::string& run);

}  // namespace comera
