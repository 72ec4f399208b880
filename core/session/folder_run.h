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
// them. `tt_error`: as of read_weights(). Throws as load_config(), read_weights() and open_run_data(); Error(usage) for a `tt_error`
// without tensor trains.
FolderRun folder_run(const std::string& folder, const std::vector<std::string>& sets, std::optional<double> tt_error = {});

}  // namespace comera
