// Where checkpoints of runs lie, and whether another store needs them, too.
#pragma once
#include <string>
#include <vector>

namespace comera {

// For new checkpoints of a run: FOLDER_OF_STORE/checkpoints/RUN, or, where another store lists the older ones, a folder of this store's
// own, FOLDER_OF_STORE/checkpoints/STORE/RUN.
std::string checkpoint_folder(const std::string& store, const std::string& run, bool shared = false);
// Where a checkpoint is that was written to `path`: at the same place inside the folder `checkpoints` beside the store, if it is there,
// since a store may be moved or copied with it; else at `path`.
std::string place_of_checkpoint(const std::string& path, const std::string& store);
// Where a checkpoint of a run lies when another one has it: in a folder of that run's id beside its own. One that does not
// lie in a folder of its run stays where it is.
std::string moved_checkpoint(const std::string& path, const std::string& from_run, const std::string& to_run);

// Another store that lists checkpoints of this run, "" = none: one of the two is a copy, or the run was imported, so their files are not
// this store's alone to change or remove. It is looked for beside this store and where the files in `paths` belong; one that cannot be read
// counts as listing them.
std::string lister_of(const std::string& store, const std::string& run, const std::vector<std::string>& paths);

}  // namespace comera
