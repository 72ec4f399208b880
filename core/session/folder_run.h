// A new run that begins with the weights of a folder of the transformers library, named as hf:FOLDER where a config is expected.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/session/folder_start.h"
#include "core/train/model_import.h"

namespace comera {

inline constexpr const char* kFolderSource = "hf:";
// FOLDER of "hf:FOLDER"; nullopt: `name` is another config.
std::optional<std::string> folder_named(const std::string& name);

// The folder gives the model and its tokenizer, with dense matrices and a head for the task of model.task in `sets`; then settings come
// from everywhere else as for a preset (load_config). The classes of a new classifier are those of the data, where `sets` does not give
// them. Throws as load_config() and open_run_data(); Error(config | not_found) for a folder that no model here fits.
RunConfig folder_config(const std::string& folder, const std::vector<std::string>& sets);
// The weights of `from.path` as a run with this config holds them: `from.weights` where they were read already. Ranks that come from
// errors become the config's. Throws as read_weights() and open_run_data(); Error(usage) for a choice of ranks without tensor trains, for
// two choices, or for gradients where the run has no data.
// `stopped`: as of TrainFit.
std::shared_ptr<const FolderWeights> weights_of_folder(const FolderStart& from, RunConfig& config, std::function<bool()> stopped = {});

}  // namespace comera
