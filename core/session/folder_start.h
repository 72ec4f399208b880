// The folder of the transformers library whose weights a new run begins with.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace comera {

struct FolderWeights;

struct FolderStart {
  std::string path;
  // How matrices become tensor trains, as in TrainFit (core/train/model_import.h); most_error below 0: at the config's ranks.
  double most_error = -1;
  int64_t gradient_batches = 0;
  // Read already, with the config of the run; null: the session reads them.
  std::shared_ptr<const FolderWeights> weights = {};
};

}  // namespace comera
