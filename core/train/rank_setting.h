// The rank that the method of a config has: one number, whichever setting it is.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace comera {

class ParamSet;

struct RankSetting {
  std::string path;        // "method.galore.rank"; "model.tt": the starting ranks of all tensor trains
  int64_t configured = 0;  // of tensor trains the largest rank of a matrix, or of the table where no matrix is one
  int64_t largest = 0;     // more changes nothing: the narrower side of the widest matrix, or `configured` if that is larger
};

// With weights tt the starting ranks of the tensor trains, with lora or lte that of the factors, else that of the optimizer's projections.
// None for methods without one, and for COAP with rank_ratio, whose ranks follow the matrices.
std::optional<RankSetting> rank_setting(const RunConfig& config);

// The rank that the method has for a matrix inside blocks (rows, columns), which a projection cuts to the shorter side; 0 where it has
// none.
int64_t rank_of_matrix(const RunConfig& config, int64_t rows, int64_t columns);

// `config` with this rank, which must be at least 1. The ranks of tensor trains keep their proportions, rounded down to 1 or more; where
// ranks are given bond by bond (model.tt.*.ranks) those stay the largest.
RunConfig with_rank(const RunConfig& config, int64_t rank);

// A matrix for which the method has a rank that is no bond's: LoRA's factors, or the projection of its gradient. The rank follows from the
// settings in force (rank_of_matrix).
struct RankedMatrix {
  std::string name;  // "enc0.attn.q"
  int64_t rows = 0, columns = 0;
};
std::vector<RankedMatrix> ranked_matrices(ParamSet& params, const MethodConfig& method);

// For each of so many projected matrices the newest step up to `step`, which is 1 or more, at which it is refreshed from its gradient under
// these settings. Empty for methods without such refreshes, and for lazy Q-GaLore, which skips some.
std::vector<int64_t> last_refreshes(const MethodConfig& method, int64_t matrices, int64_t step);

}  // namespace comera
