// What the data of a run say of the matrices of a dense model: which errors in them change the loss.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "core/config/config.h"
#include "core/data/dataset.h"
#include "core/layers/gradient_moments.h"

namespace comera {

// Moments of the gradients of these parameters, matrices (m, n), at the weights of a folder of the transformers library, over `batches`
// training batches of the run with `config`, held dense for it, in f32 on the CPU. Takes the memory of a run with plain gradient descent,
// and that of the moments, at most twice that of the matrices. Throws as Trainer and read_folder.
std::map<std::string, GradientMoments> matrix_moments(const std::string& folder, const RunConfig& config,
                                                      const std::set<std::string>& names, const std::shared_ptr<const Dataset>& data,
                                                      int64_t batches);

}  // namespace comera
