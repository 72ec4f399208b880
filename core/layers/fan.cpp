#include "core/layers/fan.h"

namespace comera {

TensorList Fan::forward(Ctx& ctx, Tensor x) {
  TensorList y;
  for (const auto& layer : layers_) y.push_back(layer->forward(ctx, &layer == &layers_.back() ? std::move(x) : x));
  return y;
}

Tensor Fan::backward(Ctx& ctx, TensorList dy, Tensor into) {
  for (size_t i = layers_.size(); i-- > 0;) into = layers_[i]->backward(ctx, std::move(dy[i]), std::move(into));
  return into;
}

}  // namespace comera
