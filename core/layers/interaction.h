// How the vectors of an example meet in recommendation models (METHODS.md 20.2).
#pragma once
#include <string>

#include "core/layers/factory.h"

namespace comera {

// z (S, F * D), F vectors of D features, to (S, D + pairs): the first vector and the dot products of all pairs (op::DotInteraction).
class InteractionLayer final : public Layer {
 public:
  InteractionLayer(const std::string& name, int64_t vectors, int64_t width, bool itself, LayerFactory& factory);
  Tensor forward(Ctx& ctx, Tensor z) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  const int64_t vectors_, width_;
  const bool itself_;
  StashSlot slot_;
  Kept kept_;
};

}  // namespace comera
