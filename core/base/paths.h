// Where the program keeps its files: the XDG base directories. Nothing is written to the working directory, and no
// function here creates a folder but ensure_folder(): asking for a place must not leave traces.
#pragma once
#include <string>
#include <vector>

namespace comera::paths {

// $XDG_DATA_HOME/comera, else ~/.local/share/comera: the store and its checkpoints.
std::string data_folder();
// data_folder()/data: where `comera data get` puts sets, and names of sets are looked for first.
std::string sets_folder();
// $XDG_CONFIG_HOME/comera, else ~/.config/comera: config.json.
std::string config_folder();
// $XDG_STATE_HOME/comera, else ~/.local/state/comera: window layout, log.
std::string state_folder();
// $XDG_CACHE_HOME/comera, else ~/.cache/comera: may be deleted at any time.
std::string cache_folder();

// The database of runs: $COMERA_STORE when set and not empty, else data_folder()/runs.db.
std::string runs_database();
// Checkpoints of a store lie beside it: FOLDER_OF_STORE/checkpoints, one folder a run inside. An absolute path.
std::string checkpoints_folder(const std::string& store);
// The folder of a run's tokenizer, inside that of its checkpoints.
inline constexpr const char* kTokenizer = "tokenizer";
// config_folder()/config.json.
std::string config_file();
// Config files that may exist, the weakest first: comera/config.json in each of $XDG_CONFIG_DIRS (else /etc/xdg),
// config_file(), and comera.json in the working directory.
std::vector<std::string> config_files();

// What the window told: state_folder()/studio.log.
std::string studio_log();

// Creates the folder and its parents (mode 0700, as XDG asks, when new). Throws Error(storage). Returns `folder`.
std::string ensure_folder(const std::string& folder);
// The same for the folder that `file` lies in. Returns `file`.
std::string ensure_folder_of(const std::string& file);

}  // namespace comera::paths
