#include <optional>
#include <utility>

#include "core/layers/blocks.h"

namespace comera {

namespace {
std::vector<MatrixSpec> qkv_specs(const std::string& name, const AttentionSpec& spec, int64_t head_width, int64_t key_heads) {
  const auto matrix = [&](const char* what, int64_t heads) {
    return MatrixSpec{
        .name = name + what, .in = spec.features, .out = heads * head_width, .kind = LinearKind::attention, .bias = spec.bias};
  };
  return {matrix(".q", spec.heads), matrix(".k", key_heads), matrix(".v", key_heads)};
}
}  // namespace

SelfAttention::SelfAttention(const std::string& name, const AttentionSpec& spec, LayerFactory& factory)
    : heads_(spec.heads, spec.key_heads, spec.causal), keep_probabilities_(spec.keep_probabilities), rotary_(spec.rotary) {
  const int64_t head_width = spec.head_width > 0 ? spec.head_width : spec.features / spec.heads;
  const int64_t of_queries = heads_.heads * head_width, of_keys = heads_.key_heads * head_width;
  in_and_out_ = factory.attention(
      qkv_specs(name, spec, head_width, heads_.key_heads),
      {.name = name + ".o", .in = of_queries, .out = spec.features, .kind = LinearKind::attention, .bias = spec.output_bias},
      {heads_.heads, heads_.key_heads, head_width, rotary_ != nullptr});
  dropout_ = {spec.dropout, factory.next_site()};
  const auto slot = [&](const char* what, int64_t width, uint32_t site) {
    return factory.stash().slot(factory.params(), (name + what).c_str(), width, site);
  };
  q_slot_ = slot(".queries", of_queries, factory.next_site());
  k_slot_ = slot(".keys", of_keys, factory.next_site());
  v_slot_ = slot(".values", of_keys, factory.next_site());
  // As (S, heads * longest * longest), so a group of columns is a group of heads. The site is taken in any case: what
  // is kept must not change what later layers draw.
  const uint32_t site = factory.next_site();
  if (keep_probabilities_) probs_slot_ = slot(".probabilities", heads_.heads, site);
}

void Rotary::begin(Ctx& ctx, const Tensor& positions) {
  table_ = ctx.temp({positions.size(0), head_width_}, "rotary angles");
  ctx.ops.run(op::RotaryTable{table_, positions, theta_});
}

void Rotary::turn(Ctx& ctx, const Tensor& y, const Tensor& x, bool back) const {
  CHECK(table_, "rotary positions outside of a pass");
  ctx.ops.run(op::Rotate{y, x, table_, back});
}

// Room for what heads make of values (T, heads u), u columns a head of values.
Tensor SelfAttention::means(Ctx& ctx, const Mat& v) const {
  return ctx.temp({v.rows, v.cols / heads_now_.value_heads * heads_now_.heads}, "attention");
}

// What heads make of the values; keeps lse_ for backward.
Tensor SelfAttention::attend(Ctx& ctx, const Tensor& q, const Mat& k, const Mat& v, const Tensor& probs) {
  Dropout dropout = dropout_;
  if (!ctx.training) dropout.probability = 0;
  Tensor lse = ctx.temp({heads_.heads, q.size(0)}, "attention lse"), out = means(ctx, v);
  ctx.ops.attention_forward(out, lse, probs, q, k, v, ctx.sequences, heads_now_, dropout, ctx.step);
  if (ctx.keeps()) lse_ = std::move(lse);
  return out;
}

bool SelfAttention::begin(const Ctx& ctx, int64_t tokens) {
  thin_ = in_and_out_.thin && in_and_out_.thin->begin(ctx, tokens);
  heads_now_ = thin_ ? AttentionHeads(heads_.heads, rotary_ ? heads_.key_heads : 1, heads_.causal, 1) : heads_;
  return thin_;
}

// By rotary positions, where there are any; `back`: gradients.
ThinAttention::Heads SelfAttention::turned(Ctx& ctx, ThinAttention::Heads heads, bool back) const {
  if (rotary_)
    for (const Tensor& x : {heads.queries, heads.keys.tensor}) rotary_->turn(ctx, x, x, back);
  return heads;
}

// Narrow products make probabilities again in the time that reading them takes, so none are kept.
Tensor SelfAttention::mean_of(Ctx& ctx, Tensor x) {
  const ThinAttention::Heads heads = turned(ctx, in_and_out_.thin->enter(ctx, std::move(x)), false);
  return attend(ctx, heads.queries, heads.keys, heads.values, {});
}

Tensor SelfAttention::forward(Ctx& ctx, Tensor x) {
  if (!begin(ctx, x.size(0))) return forward_of_whole_heads(ctx, std::move(x));
  return in_and_out_.thin->leave(ctx, mean_of(ctx, std::move(x)));
}

InParts SelfAttention::forward_in_parts(Ctx& ctx, Tensor x) {
  if (!begin(ctx, x.size(0))) return forward_of_whole_heads(ctx, std::move(x));
  return {{}, in_and_out_.thin->leave_in_parts(ctx, mean_of(ctx, std::move(x)))};
}

Tensor SelfAttention::forward_of_whole_heads(Ctx& ctx, Tensor x) {
  const int64_t longest = ctx.sequences.longest;
  TensorList qkv = in_and_out_.queries_keys_values->forward(ctx, std::move(x));
  Tensor q = std::move(qkv[0]), k = std::move(qkv[1]), v = std::move(qkv[2]);
  if (rotary_)
    for (Tensor* x : {&q, &k}) {  // into other tensors: a layer may have to make its own again
      Tensor turned = ctx.temp(x->shape(), "turned");
      rotary_->turn(ctx, turned, *x, false);
      *x = std::move(turned);
    }
  Tensor probs;
  if (ctx.keeps() && keep_probabilities_)
    probs = ctx.temp({ctx.sequences.starts.size(0), heads_.heads, longest, longest}, "attention probabilities");
  Tensor out = attend(ctx, q, k, v, probs);
  if (ctx.keeps()) {
    // The largest first: under int8 its exact form goes before the others' codes come.
    if (probs) kept_probs_ = ctx.stash.keep(ctx, probs_slot_, probs);
    probs = {};
    kept_q_ = ctx.stash.keep(ctx, q_slot_, q);
    q = {};
    kept_k_ = ctx.stash.keep(ctx, k_slot_, k);
    k = {};
    kept_v_ = ctx.stash.keep(ctx, v_slot_, v);
  }
  q = {};
  k = {};
  v = {};
  return in_and_out_.output->forward(ctx, std::move(out));
}

Tensor SelfAttention::backward(Ctx& ctx, Tensor dy, Tensor into) {
  CHECK(lse_, "backward of attention without its forward");
  if (!thin_) return backward_of_whole_heads(ctx, std::move(dy), std::move(into));
  return in_and_out_.thin->finish(ctx, gradients_of(ctx, std::move(dy)), std::move(into));
}

InParts SelfAttention::backward_in_parts(Ctx& ctx, InParts dy, Tensor into) {
  if (!thin_) return backward(ctx, sum_of_parts(ctx, std::move(dy)), std::move(into));
  CHECK(lse_, "backward of attention without its forward");
  return {std::move(into), in_and_out_.thin->finish_in_parts(ctx, gradients_of(ctx, sum_of_parts(ctx, std::move(dy))))};
}

ThinAttention::Heads SelfAttention::gradients_of(Ctx& ctx, Tensor dy) {
  Tensor dmean = in_and_out_.thin->turn(ctx, std::move(dy));
  std::optional heads = turned(ctx, in_and_out_.thin->again(ctx), false);
  sums_again(ctx, heads->queries, heads->keys, heads->values);
  ThinAttention::Heads gradients = in_and_out_.thin->gradients(ctx);
  ctx.ops.attention_backward(gradients.queries, gradients.keys, gradients.values, dmean, lse_, {}, heads->queries, heads->keys,
                             heads->values, ctx.sequences, heads_now_, dropout_, ctx.step);
  heads.reset();
  dmean = lse_ = {};
  return turned(ctx, std::move(gradients), true);
}

// Rounded queries and keys have sums of their own: with those of the forward pass, rows of probabilities would not sum to 1, and what all
// dP of a row have in common, which is large, would not cancel in dP - delta.
void SelfAttention::sums_again(Ctx& ctx, const Tensor& q, const Mat& k, const Mat& v) {
  if (ctx.stash.exact()) return;
  ctx.ops.attention_forward(means(ctx, v), lse_, {}, q, k, v, ctx.sequences, heads_now_, {}, ctx.step);
}

Tensor SelfAttention::backward_of_whole_heads(Ctx& ctx, Tensor dy, Tensor into) {
  Tensor dout = in_and_out_.output->backward(ctx, std::move(dy));
  const auto load = [&](const StashSlot& slot, Kept& kept) { return ctx.stash.load(ctx, slot, std::exchange(kept, {})); };
  Tensor q = load(q_slot_, kept_q_), k = load(k_slot_, kept_k_), v = load(v_slot_, kept_v_);
  Tensor probs;
  if (kept_probs_) {
    const int64_t longest = ctx.sequences.longest;
    probs = ctx.stash.load(ctx, probs_slot_, kept_probs_).view({ctx.sequences.starts.size(0), heads_.heads, longest, longest});
    kept_probs_ = {};
  }
  if (!probs) sums_again(ctx, q, k, v);
  Tensor dq = ctx.temp(q.shape(), "dqueries"), dk = ctx.temp(k.shape(), "dkeys"), dv = ctx.temp(k.shape(), "dvalues");
  ctx.ops.attention_backward(dq, dk, dv, dout, lse_, probs, q, k, v, ctx.sequences, heads_now_, dropout_, ctx.step);
  lse_ = {};
  probs = {};
  dout = {};
  q = {};
  k = {};
  v = {};
  if (rotary_)
    for (const Tensor& gradient : {dq, dk}) rotary_->turn(ctx, gradient, gradient, true);
  TensorList gradients;
  for (Tensor* gradient : {&dq, &dk, &dv}) gradients.push_back(std::move(*gradient));
  return in_and_out_.queries_keys_values->backward(ctx, std::move(gradients), std::move(into));
}

}  // namespace comera
