// Layers without a matrix of their own, and how layers are put together. Letters: T tokens, D features.
// Backward owns the dy it is given and may write into it; x is never written to, because others may keep it.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layers/fan.h"

namespace comera {

// One layer after another.
class Chain final : public Layer {
 public:
  void add(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

// Keeps its output where that is enough (tanh, relu): the next layer keeps the same tensor, so it costs nothing. GELU's
// slope needs the input.
class ActivationLayer final : public Layer {
 public:
  ActivationLayer(Activation kind, const std::string& name, int64_t features, LayerFactory& factory);
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  Activation kind_;
  StashSlot slot_;
  Kept kept_;
};

// y = x * mask / (1 - p) in training; the mask is drawn again in backward.
class DropoutLayer final : public Layer {
 public:
  DropoutLayer(double probability, LayerFactory& factory) : dropout_{probability, factory.next_site()} {}
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  Dropout dropout_;
};

// gamma, beta (D) of a layer norm, and what its backward keeps.
class Norm {
 public:
  Norm(const std::string& name, int64_t features, double eps, LayerFactory& factory);
  // y = norm(x + dropout(branch)); branch may be empty.
  Tensor forward(Ctx& ctx, Tensor x, Tensor branch, Dropout dropout);
  // (dx, dbranch); dbranch is empty when there was no branch.
  std::pair<Tensor, Tensor> backward(Ctx& ctx, Tensor dy, bool branch, Dropout dropout);

 private:
  Param &gamma_, &beta_;
  double eps_;
  StashSlot slot_;
  Kept sum_;            // (T, D)
  Tensor mean_, rstd_;  // (T)
};

// y = norm(x + dropout(block(x))): the post-norm residual of METHODS.md 1.3.
class ResidualNorm final : public Layer {
 public:
  ResidualNorm(const std::string& name, std::unique_ptr<Layer> block, int64_t features, double eps, double dropout, LayerFactory& factory);
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  std::unique_ptr<Layer> block_;
  Norm norm_;
  Dropout dropout_;
};

// Multi-head self-attention inside each sequence of ctx.sequences: o(attention(q(x), k(x), v(x))). Kept are queries,
// keys, values and, when asked, the probabilities; else backward computes them again from the first two.
class SelfAttention final : public Layer {
 public:
  SelfAttention(const std::string& name, int64_t features, int64_t heads, double dropout, bool keep_probabilities, LayerFactory& factory);
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  Fan qkv_;
  std::unique_ptr<Layer> o_;
  int64_t heads_;
  bool keep_probabilities_;
  Dropout dropout_;
  StashSlot q_slot_, k_slot_, v_slot_, probs_slot_;
  Kept kept_q_, kept_k_, kept_v_, kept_probs_;
  Tensor lse_;  // (heads, T)
};

}  // namespace comera
