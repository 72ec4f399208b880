// Moments of the gradients of a dense model on the data of a run: they show which errors in its matrices change the loss.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/layers/gradient_moments.h"

namespace comera {

// Moments of the parameters `names`, matrices (m, n), at the weights of a folder of the transformers library, summed over `batches`
// training batches of a dense run with `config` in f32 on the CPU. Takes the memory of a run with plain gradient descent, and moments of at
// most twice the size of the matrices. Throws as Trainer and read_folder(); Error(other)
// where `stopped`, asked before each batch, says so.
std::map<std::string, GradientMoments> matrix_moments(const std::string& folder, const RunConfig& config,
                                                      const std::set<std::string>& names, const std::shared_ptr<const Dataset>& data,
                                                      int64_t batches, const std::function<bool()>& stopped = {});

}  // namespace comera
