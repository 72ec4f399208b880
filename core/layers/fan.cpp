#include "core/layers/fan.h"

#include "core/layers/tt_linear.h"

namespace comera {

Fan::Fan(const std::vector<std::string>& names, int64_t in, int64_t out, LinearKind kind, LayerFactory& factory) {
  const std::vector<TTLinear*>& all = factory.tt_linears();
  const size_t before = all.size();
  for (const std::string& name : names) layers_.push_back(factory.linear(name, in, out, kind));
  const std::vector<TTLinear*> trains(all.begin() + static_cast<std::ptrdiff_t>(before), all.end());
  if (trains.size() < layers_.size()) return;
  trains_ = std::make_unique<TTFan>(trains);
  factory.add_fan(*trains_);
}

Fan::~Fan() = default;

TensorList Fan::forward(Ctx& ctx, Tensor x) {
  if (trains_ && trains_->grouped()) return trains_->forward(ctx, std::move(x));
  if (trains_) trains_->drop();
  TensorList y;
  for (const auto& layer : layers_) y.push_back(layer->forward(ctx, &layer == &layers_.back() ? std::move(x) : x));
  return y;
}

Tensor Fan::backward(Ctx& ctx, TensorList dy, Tensor into) {
  if (trains_ && trains_->waits()) return trains_->backward(ctx, std::move(dy), std::move(into));
  for (size_t i = layers_.size(); i-- > 0;) into = layers_[i]->backward(ctx, std::move(dy[i]), std::move(into));
  return into;
}

}  // namespace comera
