// Linear layers that read the same x (T, I), as queries, keys and values do: y_i (T, O_i). Computed one after another, which on a
// CPU was measured to be no slower; a weight form may compute its own together.
#pragma once
#include <memory>
#include <utility>
#include <vector>

#include "core/layers/layer.h"
#include "core/tensor/tensor_list.h"

namespace comera {

class Fan {
 public:
  explicit Fan(std::vector<std::unique_ptr<Layer>> layers) : layers_(std::move(layers)) {}
  virtual ~Fan() = default;
  virtual TensorList forward(Ctx& ctx, Tensor x);                      // y_i
  virtual Tensor backward(Ctx& ctx, TensorList dy, Tensor into = {});  // dy_i -> dx, or added to `into`

 private:
  const std::vector<std::unique_ptr<Layer>> layers_;
};

// Attention o(attention(q(x), k(x), v(x))) of a form whose matrices are products of rank r: in the space of these ranks heads of queries
// have r + 1 columns, and all of them share keys and values of as many (METHODS.md 12.6). Letters: H heads, w columns of a thin head.
class ThinAttention {
 public:
  virtual ~ThinAttention() = default;
  // Whether it is computed so in the pass that begins, of T tokens: it is where that is less work.
  virtual bool begin(int64_t tokens) = 0;
  virtual TensorList enter(Ctx& ctx, Tensor x) = 0;                        // x (T, D) -> queries (T, H w), keys (T, w), values (T, w)
  virtual Tensor leave(Ctx& ctx, Tensor mean) = 0;                         // what attention makes of them (T, H w) -> y (T, D)
  virtual Tensor turn(Ctx& ctx, Tensor dy) = 0;                            // gradient of `mean`
  virtual TensorList again(Ctx& ctx) = 0;                                  // queries, keys, values
  virtual Tensor finish(Ctx& ctx, TensorList gradients, Tensor into) = 0;  // of the three -> dx, or added to `into`
};

}  // namespace comera
