#include "core/models/pre_norm.h"

#include <utility>

#include "core/models/model.h"

namespace comera {
namespace {

std::unique_ptr<Layer> feed_forward(const std::string& name, const PreNormSpec& spec, LayerFactory& factory) {
  const int64_t features = spec.attention.features;
  const bool bias = spec.feed_forward_bias;
  if (spec.feed_forward == "swiglu")
    return std::make_unique<GatedFeedForward>(name, features, spec.hidden, Activation::silu, bias, factory);
  return factory.feed_forward({.name = name + ".in", .in = features, .out = spec.hidden, .kind = LinearKind::ffn_in, .bias = bias},
                              activation_of(spec.feed_forward), name + ".activation",
                              {.name = name + ".out", .in = spec.hidden, .out = features, .kind = LinearKind::ffn_out, .bias = bias});
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
