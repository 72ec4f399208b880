// Linear layers that read the same x (T, I), as queries, keys and values do: y_i (T, O_i). Tensor trains that are merged
// together pass x and dx once (TTFan); others are computed one after another, which on a CPU was measured to be no slower.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/layers/factory.h"
#include "core/tensor/tensor_list.h"

namespace comera {

class TTFan;

class Fan {
 public:
  // One layer (in, out) for each name.
  Fan(const std::vector<std::string>& names, int64_t in, int64_t out, LinearKind kind, LayerFactory& factory);
  ~Fan();
  TensorList forward(Ctx& ctx, Tensor x);                      // y_i
  Tensor backward(Ctx& ctx, TensorList dy, Tensor into = {});  // dy_i -> dx, or added to `into`

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
  std::unique_ptr<TTFan> trains_;  // null where not all of them are
};

}  // namespace comera
