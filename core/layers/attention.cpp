#include "core/layers/blocks.h"

namespace comera {

SelfAttention::SelfAttention(const std::string& name, int64_t features, int64_t heads, double dropout, bool keep_probabilities,
                             LayerFactory& factory)
    : qkv_(factory.fan({{name + ".q", features, features, LinearKind::attention},
                        {name + ".k", features, features, LinearKind::attention},
                        {name + ".v", features, features, LinearKind::attention}})),
      o_(factory.linear(name + ".o", features, features, LinearKind::attention)),
      heads_(heads),
      keep_probabilities_(keep_probabilities),
      dropout_{dropout, factory.next_site()} {
  const auto slot = [&](const char* what, int64_t width, uint32_t site) {
    return factory.stash().slot(factory.params(), (name + what).c_str(), width, site);
  };
  q_slot_ = slot(".queries", features, factory.next_site());
  k_slot_ = slot(".keys", features, factory.next_site());
  v_slot_ = slot(".values", features, factory.next_site());
  // As (S, heads * longest * longest), so a group of columns is a group of heads. The site is taken in any case: what
  // is kept must not change what later layers draw.
  const uint32_t site = factory.next_site();
  if (keep_probabilities_) probs_slot_ = slot(".probabilities", heads, site);
}

Tensor SelfAttention::forward(Ctx& ctx, Tensor x) {
  const int64_t tokens = x.size(0), longest = ctx.sequences.longest;
  TensorList qkv = qkv_->forward(ctx, std::move(x));
  Tensor q = std::move(qkv[0]), k = std::move(qkv[1]), v = std::move(qkv[2]);
  Tensor lse = ctx.temp({heads_, tokens}, "attention lse");
  Tensor probs;
  if (ctx.keeps() && keep_probabilities_)
    probs = ctx.temp({ctx.sequences.starts.size(0), heads_, longest, longest}, "attention probabilities");
  Dropout dropout = dropout_;
  if (!ctx.training) dropout.probability = 0;
  Tensor out = ctx.temp(q.shape(), "attention");
  ctx.ops.attention_forward(out, lse, probs, q, k, v, ctx.sequences, heads_, dropout, ctx.step);
  if (ctx.keeps()) {
    // The largest first: under int8 its exact form goes before the others' codes come.
    if (probs) kept_probs_ = ctx.stash.keep(ctx, probs_slot_, probs);
    probs = {};
    kept_q_ = ctx.stash.keep(ctx, q_slot_, q);
    q = {};
    kept_k_ = ctx.stash.keep(ctx, k_slot_, k);
    k = {};
    kept_v_ = ctx.stash.keep(ctx, v_slot_, v);
    lse_ = std::move(lse);
  }
  q = {};
  k = {};
  v = {};
  lse = {};
  return o_->forward(ctx, std::move(out));
}

Tensor SelfAttention::backward(Ctx& ctx, Tensor dy, Tensor into) {
  CHECK(kept_q_, "backward of attention without its forward");
  Tensor dout = o_->backward(ctx, std::move(dy));
  Tensor q = ctx.stash.load(ctx, q_slot_, kept_q_), k = ctx.stash.load(ctx, k_slot_, kept_k_), v = ctx.stash.load(ctx, v_slot_, kept_v_);
  kept_q_ = kept_k_ = kept_v_ = {};
  Tensor probs;
  if (kept_probs_) {
    const int64_t longest = ctx.sequences.longest;
    probs = ctx.stash.load(ctx, probs_slot_, kept_probs_).view({ctx.sequences.starts.size(0), heads_, longest, longest});
    kept_probs_ = {};
  }
  Tensor dq = ctx.temp(q.shape(), "dqueries"), dk = ctx.temp(q.shape(), "dkeys"), dv = ctx.temp(q.shape(), "dvalues");
  ctx.ops.attention_backward(dq, dk, dv, dout, lse_, probs, q, k, v, ctx.sequences, heads_, dropout_, ctx.step);
  lse_ = {};
  probs = {};
  dout = {};
  q = {};
  k = {};
  v = {};
  TensorList gradients;
  for (Tensor* gradient : {&dq, &dk, &dv}) gradients.push_back(std::move(*gradient));
  return qkv_->backward(ctx, std::move(gradients), std::move(into));
}

}  // namespace comera
