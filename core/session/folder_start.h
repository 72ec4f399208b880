// The folder of the transformers library whose weights a new run begins with.
#pragma once
#include <cstdint>
#include <memory>
#include <string>

namespace comera {

struct FolderWeights;

struct FolderStart {
  std::string path;
  // How matrices become tensor trains, as in TrainFit (core/train/model_import.h); below 0 and 0: neither of the two.
  double most_error = -1, compression = 0;
  int64_t gradient_batches = 0;
  // Read already, with the config of the run; null: the session reads them.
  std::shared_ptr<const FolderWeights> weights = {};
};

}  // namespace comera
