#pragma once
#include "core/layers/layer.h"
#include "core/tensor/tensor_list.h"

namespace comera {

// Attention o(attention(q(x), k(x), v(x))) of a form whose matrices are products of rank r: in the space of these ranks heads of queries
// have r + 1 columns, and all of them share keys and values of as many (METHODS.md 12.6). Letters: H heads, w columns of a thin head.
class ThinAttention {
 public:
  virtual ~ThinAttention() = default;
  // Whether the pass that begins, over T tokens, computes it so: it does where that is less work.
  virtual bool begin(int64_t tokens) = 0;
  virtual TensorList enter(Ctx& ctx, Tensor x) = 0;                        // x (T, D) -> queries (T, H w), keys (T, w), values (T, w)
  virtual Tensor leave(Ctx& ctx, Tensor mean) = 0;                         // means of values, weighted by attention (T, H w) -> y (T, D)
  virtual Tensor turn(Ctx& ctx, Tensor dy) = 0;                            // gradient of `mean`
  virtual TensorList again(Ctx& ctx) = 0;                                  // queries, keys, values
  virtual Tensor finish(Ctx& ctx, TensorList gradients, Tensor into) = 0;  // of the three -> dx, or added to `into`
};

}  // namespace comera
