// Layers without a matrix of their own, and how layers are put together. Letters: T tokens, D features.
// Backward owns the dy it is given and may write into it; x is never written to, because others may keep it, but where in_place_of() says
// that nobody does.
#pragma once
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/layers/factory.h"

namespace comera {

// One layer after another.
class Chain final : public Layer {
 public:
  void add(std::unique_ptr<Layer> layer) { layers_.push_back(std::move(layer)); }
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override {
    return sum_of_parts(ctx, backward_in_parts(ctx, std::move(dy), std::move(into)));
  }
  InParts backward_in_parts(Ctx& ctx, InParts dy, Tensor into = {}) override;

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

// A block whose activations are not kept: only x is, exactly, and backward computes the block once more (gradient checkpointing).
class Checkpointed final : public Layer {
 public:
  explicit Checkpointed(std::unique_ptr<Layer> block) : block_(std::move(block)) {}
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override {
    return sum_of_parts(ctx, backward_in_parts(ctx, std::move(dy), std::move(into)));
  }
  InParts backward_in_parts(Ctx& ctx, InParts dy, Tensor into = {}) override;

 private:
  const std::unique_ptr<Layer> block_;
  Tensor x_;  // of the step
};

// Appends `blocks` to `chain`, each `every` of them as one checkpointed block; 0: as they are.
void add_blocks(Chain& chain, std::vector<std::unique_ptr<Layer>> blocks, int64_t every);

// Keeps its output where that is enough (tanh, relu): the next layer keeps the same tensor, so it costs nothing. Other
// slopes need the input. Where somebody else can compute the input again, it is kept by all: the output then costs nothing.
class ActivationLayer final : public Layer, public Remake {
 public:
  ActivationLayer(Activation kind, const std::string& name, int64_t features, LayerFactory& factory);
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;
  Tensor remake(Ctx& ctx) override;
  int depth() const override { return 2; }

 private:
  Tensor load_input(Ctx& ctx);

  Activation kind_;
  StashSlot slot_;
  Kept kept_;  // the input, or the output
  bool keeps_input_ = false;
  Tensor held_;  // the input that remake() had to compute, for backward, which comes next
};

// y = x * mask / (1 - p) in training; the mask is drawn again in backward.
class DropoutLayer final : public Layer, public Remake {
 public:
  DropoutLayer(double probability, LayerFactory& factory) : dropout_{probability, factory.next_site()} {}
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;
  Tensor remake(Ctx& ctx) override;
  int depth() const override { return maker_->depth(); }

 private:
  Dropout dropout_;
  Remake* maker_ = nullptr;  // of x
};

// layer: centred and shifted; rms: x / sqrt(mean(x^2) + eps) * gamma, without beta.
enum class NormKind : unsigned char { layer, rms };

// gamma, beta (D) of a norm, and what its backward keeps.
class Norm final : public Remake {
 public:
  Norm(const std::string& name, int64_t features, double eps, LayerFactory& factory, NormKind kind = NormKind::layer);
  // y = norm(x + dropout(branch)); branch is a tensor, a product, or empty.
  Tensor forward(Ctx& ctx, Tensor x, InParts branch, Dropout dropout);
  // (dx, dbranch); dbranch is empty when there was no branch.
  std::pair<Tensor, Tensor> backward(Ctx& ctx, InParts dy, bool branch, Dropout dropout,
                                     const std::optional<op::NormBackward::Onward>& onward = {});
  void add_dropout(Dropout dropout) { after_ = dropout; }  // of y
  Tensor remake(Ctx& ctx) override;
  int depth() const override { return sums_again() ? 3 : 1; }
  std::optional<NormOfKept> norm_of_kept(Ctx& ctx) override;

 private:
  // The sum as backward needs it, and y (T, D) where asked for.
  Tensor load_sum(Ctx& ctx, Tensor* y);
  Tensor make_sum(Ctx& ctx, Tensor* y);
  bool sums_again() const { return branch_ || thin_; }
  // The inputs of op::NormForward.
  struct Parts {
    Tensor x, branch = {};
    std::optional<ThinProduct> thin = {};
    std::optional<op::NormForward::Before> before = {};
  };
  void run(Ctx& ctx, const Tensor& y, const Tensor& sum, const Tensor& mean, const Tensor& rstd, const Parts& parts, Dropout dropout);

  Tensor beta() const { return beta_ ? beta_->value : Tensor(); }

  Param& gamma_;
  Param* const beta_;  // null: RMS norm
  double eps_;
  Dropout after_;
  StashSlot slot_;
  Kept sum_;                         // (T, D), or
  Kept x_, branch_;                  // its two parts, both of which somebody else computes again,
  std::optional<ThinProduct> thin_;  // or of which the branch is this product
  Dropout dropout_;                  // of the branch
  Tensor held_;                      // the sum that remake() had to compute, for the next remake() or backward
  Tensor mean_, rstd_;               // (T); RMS norm has no mean
};

// y = norm(x + dropout(block(x))): the post-norm residual of METHODS.md 1.3.
class ResidualNorm final : public Layer {
 public:
  ResidualNorm(const std::string& name, std::unique_ptr<Layer> block, int64_t features, double eps, double dropout, LayerFactory& factory,
               NormKind kind = NormKind::layer);
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override {
    return sum_of_parts(ctx, backward_in_parts(ctx, std::move(dy), std::move(into)));
  }
  InParts backward_in_parts(Ctx& ctx, InParts dy, Tensor into = {}) override;

 private:
  std::unique_ptr<Layer> block_;
  Norm norm_;
  Dropout dropout_;
};

// y = x + dropout(block(norm(x))): the pre-norm residual of decoders (METHODS.md 19.1).
class PreNormResidual final : public Layer {
 public:
  PreNormResidual(const std::string& name, std::unique_ptr<Layer> block, int64_t features, double eps, double dropout,
                  LayerFactory& factory, NormKind kind);
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;

 private:
  std::unique_ptr<Layer> block_;
  Norm norm_;
  Dropout dropout_;
};

// down(f(gate(x)) * up(x)), with f = silu SwiGLU (METHODS.md 19.3). Kept are gate(x) and up(x), of `hidden` columns.
class GatedFeedForward final : public Layer, public Remake {
 public:
  GatedFeedForward(const std::string& name, std::unique_ptr<Fan> gate_up, Activation kind, std::unique_ptr<Layer> down, int64_t hidden,
                   LayerFactory& factory);
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;
  Tensor remake(Ctx& ctx) override;
  int depth() const override { return 2; }

 private:
  const Activation kind_;
  const std::unique_ptr<Fan> fan_;
  const std::unique_ptr<Layer> down_;
  StashSlot gate_slot_, up_slot_;
  Kept gate_, up_;
};

// The angles of rotary positions (METHODS.md 19.2), for all attention layers of a pass.
class Rotary {
 public:
  Rotary(double theta, int64_t head_width) : theta_(theta), head_width_(head_width) {}
  void begin(Ctx& ctx, const Tensor& positions);
  void end() { table_ = {}; }
  // y (T, D) = x turned, or with `back` turned back; y may be x.
  void turn(Ctx& ctx, const Tensor& y, const Tensor& x, bool back) const;

 private:
  const double theta_;
  const int64_t head_width_;
  Tensor table_;  // (T, head width)
};

struct AttentionSpec {
  int64_t features = 0, heads = 1;
  int64_t key_heads = 0, head_width = 0;  // 0: as many as heads; features / heads
  bool causal = false;
  bool bias = true, output_bias = true;  // of queries, keys and values; of the output
  double dropout = 0;                    // of probabilities
  bool keep_probabilities = true;
  Rotary* rotary = nullptr;  // of queries and keys; null: none
};

// Multi-head self-attention inside each sequence of ctx.sequences: o(attention(q(x), k(x), v(x))). Kept are queries,
// keys, values and, when asked, the probabilities; else backward computes them again from the first two. In the space of ranks, where
// the form of the matrices offers it, none of the four is kept.
class SelfAttention final : public Layer {
 public:
  SelfAttention(const std::string& name, const AttentionSpec& spec, LayerFactory& factory);
  SelfAttention(const std::string& name, int64_t features, int64_t heads, double dropout, bool keep_probabilities, LayerFactory& factory)
      : SelfAttention(name, {.features = features, .heads = heads, .dropout = dropout, .keep_probabilities = keep_probabilities}, factory) {
  }
  Tensor forward(Ctx& ctx, Tensor x) override;
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into = {}) override;
  InParts forward_in_parts(Ctx& ctx, Tensor x) override;
  std::optional<op::NormBackward::Onward> begin_backward(Ctx& ctx, int64_t tokens) override {
    return thin_ ? std::optional(in_and_out_.thin->begin_turn(ctx, tokens)) : std::nullopt;
  }
  InParts backward_in_parts(Ctx& ctx, InParts dy, Tensor into = {}) override;

 private:
  bool begin(const Ctx& ctx, int64_t tokens);  // whether the pass is in the space of ranks
  Tensor mean_of(Ctx& ctx, Tensor x);
  ThinAttention::Heads gradients_of(Ctx& ctx, Tensor dy);
  ThinAttention::Heads turned(Ctx& ctx, ThinAttention::Heads heads, bool back) const;
  Tensor means(Ctx& ctx, const Mat& v) const;
  Tensor attend(Ctx& ctx, const Tensor& q, const Mat& k, const Mat& v, const Tensor& probs);
  void sums_again(Ctx& ctx, const Tensor& q, const Mat& k, const Mat& v);
  Tensor forward_of_whole_heads(Ctx& ctx, Tensor x);
  Tensor backward_of_whole_heads(Ctx& ctx, Tensor dy, Tensor into);

  LayerFactory::Projections in_and_out_;
  const AttentionHeads heads_;
  AttentionHeads heads_now_;  // of the pass: in the space of ranks all share one head of values
  bool thin_ = false;         // in the pass
  bool keep_probabilities_;
  Rotary* const rotary_;
  Dropout dropout_;
  StashSlot q_slot_, k_slot_, v_slot_, probs_slot_;
  Kept kept_q_, kept_k_, kept_v_, kept_probs_;
  Tensor lse_;  // (heads, T)
};

}  // namespace comera
