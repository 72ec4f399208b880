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

}  // namespace comera
