// Models of other programs as checkpoints: safetensors files and folders of the transformers library.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"
#include "core/records/sizes.h"

namespace comera {

class Dataset;
struct TrainOfMatrix;

// A folder of the transformers library (core/models/huggingface.h).
bool is_model_folder(const std::string& path);
// A run of its model with dense matrices and a head for `task` ("": that of the folder), named as the folder, with its tokenizer.
RunConfig config_of_folder(const std::string& path, const std::string& task = "");

// Whether the folder has no head for the config's task (needs_new_head).
bool brings_no_head(const std::string& path, const RunConfig& config);

// A matrix that is a tensor train now.
struct Compressed {
  std::string layer;
  int64_t dense = 0, entries = 0;
  double error = 0;                           // relative, of all entries together
  std::optional<double> weighted_error = {};  // by gradients, where these chose the train (TrainByGradients)
  std::vector<int64_t> ranks;                 // of its bonds
};

// Throws Error(not_found | storage | config) where the folder's tensors are not those of the config's model as dense matrices. Reads names
// and shapes alone. Returns the parameters of a new head, which begin as drawn.
std::vector<std::string> check_folder(const std::string& folder, const RunConfig& config);

// The weights of a folder in the form that a run holds matrices in.
struct FolderWeights {
  std::string path;
  std::vector<Compressed> compressed = {};
  std::vector<std::string> fresh = {};  // parameters of a new head, which begin as drawn
  LiveRanks ranks = {};                 // of every layer of the model that is a tensor train, in its order
  std::shared_ptr<const std::map<std::string, TrainOfMatrix>> trains = {};  // by layer; null: the run has none
};
// How matrices become tensor trains.
struct TrainFit {
  // The ranks of the config, or those of one of these two; then the config's ranks become the largest of each kind of matrix.
  // The smallest ranks for which the relative error of each matrix is at most this.
  std::optional<double> most_error = {};
  // The ranks for which the errors of all matrices together are smallest, where all have at most 1 / compression of the values: 1 or more.
  // Matrices have one core a side; tables of TTM cores keep the config's ranks.
  std::optional<double> compression = {};
  // Above 0: errors are weighted by the gradients of this many batches of `data`; not with `most_error`.
  int64_t gradient_batches = 0;
  std::shared_ptr<const Dataset> data = {};
  std::function<bool()> stopped = {};  // asked before each matrix and batch: true ends it with Error(other); empty: never
};
// Brings the matrices that the run holds as tensor trains into them (tt_svd). Throws Error(config | storage | not_found) for a folder that
// does not fit the config or that cannot be as small as `compression` asks; no more memory is taken then than the folder is large. With
// gradients as matrix_moments().
FolderWeights read_weights(const std::string& folder, RunConfig& config, const TrainFit& fit = {});
// Writes them as a checkpoint of a run with this config, at step 0. Throws Error(storage | memory).
void write_start(const FolderWeights& weights, const RunConfig& config, const std::string& output);

// Reads a safetensors file with official (or own) names into a checkpoint `output` of a run with this config, at step 0. Ranks may be
// smaller than the config's. Throws Error(storage | config) naming the tensor that does not fit.
void import_model(const std::string& file, const RunConfig& config, const std::string& output);

}  // namespace comera
