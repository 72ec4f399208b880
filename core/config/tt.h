// Which matrices are tensor trains, and of which modes and ranks.
#pragma once
#include <cstdint>
#include <vector>

#include "core/base/fields.h"

namespace comera {

// How one kind of matrix is tensorised. Empty modes are chosen (tt_shape.h); explicit modes win.
struct TTOptions {
  bool tensorise = true;
  std::vector<int64_t> in_modes = {}, out_modes = {};  // must multiply to the sizes (or, chosen, to the padded sizes)
  std::vector<int64_t> ranks = {};                     // r_0..r_K with ends 1; empty: min(rank, what the modes allow)
  int64_t rank = 30;
  int64_t cores = 3;  // modes a side when they are chosen

  void fields(FieldVisitor& v);
};

struct TTKinds {
  TTOptions attention, ffn_in, ffn_out, classifier, convolution;
  TTOptions embedding{.rank = 32, .cores = 4};  // as published (METHODS.md 1.2)
  TTOptions head{.tensorise = false};           // logits of all tokens; never of a few classes
  void fields(FieldVisitor& v);
};

}  // namespace comera
