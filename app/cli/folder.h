// Model folders on the command line: hf:FOLDER in the place of a config, and the errors of their tensor trains.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "app/cli/cli.h"
#include "core/session/folder_run.h"

namespace comera::cli {

// --data, --task, --tt-error, --tt-compression and --tt-gradients of train and plan; the first two of duel.
struct FolderOptions {
  std::string data, task;
  double tt_error = -1;  // below 0: not given
  double tt_compression = 0;  // 0: not given
  int64_t tt_gradients = 0;

  void add_to(Verb& verb, bool with_error = true);
  // What --data and --task set, behind `sets`.
  void add_to(std::vector<std::string>& sets) const;
};

// The run of hf:FOLDER, with its weights read; nullopt: `config` names another config, for which the options of tensor trains
// are Error(usage).
struct FolderRun {
  RunConfig config;
  FolderStart start;
};
std::optional<FolderRun> folder_run(const std::string& config, const std::vector<std::string>& sets, const FolderOptions& options);

Json tensor_trains_json(const std::vector<Compressed>& compressed);
void note_tensor_trains(const Context& context, const std::vector<Compressed>& compressed);
// {"folder", "new_parameters", "tensor_trains"} of a document, and the same as notes.
Json weights_json(const FolderWeights& weights);
void note_weights(const Context& context, const FolderWeights& weights);

}  // namespace comera::cli
