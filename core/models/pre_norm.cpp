#include "core/models/pre_norm.h"

#include <utility>

#include "core/models/model.h"

namespace comera {
namespace {

std::unique_ptr<Layer> feed_forward(const std::string& name, const PreNormSpec& spec, LayerFactory& factory) {
  const int64_t features = spec.attention.features;
  const bool bias = spec.feed_forward_bias;
  const auto in = [&](const char* what) {
    return MatrixSpec{.name = name + what, .in = features, .out = spec.hidden, .kind = LinearKind::ffn_in, .bias = bias};
  };
  const auto out = [&](const char* what) {
    return MatrixSpec{.name = name + what, .in = spec.hidden, .out = features, .kind = LinearKind::ffn_out, .bias = bias};
  };
  if (spec.feed_forward == "swiglu") return factory.gated_feed_forward(in(".gate"), in(".up"), Activation::silu, name, out(".down"));
  return factory.feed_forward(in(".in"), activation_of(spec.feed_forward), name + ".activation", out(".out"));
}

}  // namespace

std::unique_ptr<Layer> pre_norm_block(const std::string& name, const PreNormSpec& spec, LayerFactory& factory) {
  const auto residual = [&](const char* part, std::unique_ptr<Layer> inner) {
    return std::make_unique<PreNormResidual>(name + part, std::move(inner), spec.attention.features, spec.norm_eps, spec.dropout, factory,
                                             spec.norm);
  };
  auto block = std::make_unique<Chain>();
  block->add(residual(".attn", std::make_unique<SelfAttention>(name + ".attn", spec.attention, factory)));
  block->add(residual(".ffn", feed_forward(name + ".ffn", spec, factory)));
  return block;
}

}  // namespace comera
