#pragma once
#include "core/layers/layer.h"

namespace comera {

// Attention o(attention(q(x), k(x), v(x))) of a form whose matrices are products of rank r: in the space of these ranks heads of queries
// have r + 1 columns, and all of them share keys and values of as many (METHODS.md 12.6). Letters: H heads, w columns of a thin head.
// With rotary positions queries and keys have all of their heads, which the caller turns, and their gradients back.
class ThinAttention {
 public:
  // Queries (T, H w), keys (T, w) and values (T, w), or their gradients; with rotary positions queries (T, D) and keys (T, key_heads D / H).
  struct Heads {
    Tensor queries;
    Mat keys, values;
  };
  virtual ~ThinAttention() = default;
  // Whether the pass that begins, over T tokens, computes it so: it does where that is less work.
  virtual bool begin(const Ctx& ctx, int64_t tokens) = 0;
  virtual Heads enter(Ctx& ctx, Tensor x) = 0;                                // of x (T, D)
  virtual Tensor leave(Ctx& ctx, Tensor mean) = 0;                            // means of values, weighted by attention (T, H w) -> y (T, D)
  virtual ThinProduct leave_in_parts(Ctx& ctx, Tensor mean) = 0;              // y as a product
  virtual op::NormBackward::Onward begin_turn(Ctx& ctx, int64_t tokens) = 0;  // as Layer::begin_backward
  virtual Tensor turn(Ctx& ctx, Tensor dy) = 0;                               // gradient of `mean`
  virtual Heads again(Ctx& ctx) = 0;                                          // what enter() gave
  virtual Heads gradients(Ctx& ctx) = 0;                                      // room for those of again()
  virtual Tensor finish(Ctx& ctx, Heads gradients, Tensor into) = 0;          // dx, or added to `into`
  virtual ThinProduct finish_in_parts(Ctx& ctx, Heads gradients) = 0;         // dx as a product
};

}  // namespace comera
