// A new run that begins with the weights of a folder of the transformers library, named as hf:FOLDER where a config is expected.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/train/model_import.h"

namespace comera {

// FOLDER of "hf:FOLDER"; nullopt: `name` is another config.
std::optional<std::string> folder_named(const std::string& name);

struct FolderRun {
  RunConfig config;
  FolderWeights weights;
};
// The folder gives the model and its tokenizer, with dense matrices and a head for the task of model.task in `sets`; then settings come
// from everywhere else as for a preset (load_config). The classes of a new classifier are those of the data, where `sets` does not give
// them. `fit`: as of read_weights(), its data are those of the run. Throws as load_config(), read_weights() and open_run_data();
// Error(usage) for a `fit` without tensor trains, with both of its choices, or with gradients where the run has no data.
FolderRun folder_run(const std::string& folder, const std::vector<std::string>& sets, TrainFit fit = {});

}  // namespace comera
