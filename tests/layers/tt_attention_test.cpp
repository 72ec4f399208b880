// Attention of tensor trains in the space of their ranks is attention with all of its heads.
#include <numeric>

#include "core/layers/blocks.h"
#include "tests/layers/five_points.h"

namespace comera::layer_test {
namespace {

constexpr int64_t kFeatures = 24;

struct TTAttentionCase {
  int64_t heads = 2, key_heads = 2, rank = 5;  // heads of 12, or w = 8
  bool causal = false, bias = true, keep = true;
  double dropout = 0.3;
  bool rotary = false;  // only the values are in the space of ranks
  friend std::ostream& operator<<(std::ostream& out, const TTAttentionCase& c) {
    return out << c.heads << " heads, " << c.key_heads << " of keys, rank " << c.rank << (c.causal ? ", causal" : "")
               << (c.rotary ? ", rotary" : "") << (c.bias ? "" : ", no bias") << (c.keep ? "" : ", not kept") << ", dropout " << c.dropout;
  }
};

constexpr TTAttentionCase kCases[] = {
    {},
    {.keep = false},
    {.causal = true, .dropout = 0},
    {.key_heads = 1, .rank = 6},  // keys and values have at most rank 6 * 2
    {.key_heads = 1, .rank = 6, .causal = true, .bias = false, .keep = false},
    {.rank = 2},
    {.rotary = true},
    {.key_heads = 1, .rank = 6, .causal = true, .bias = false, .keep = false, .rotary = true},
    {.heads = 4, .key_heads = 2, .rank = 2, .dropout = 0, .rotary = true},
};

// Attention with the angles of a pass.
class WithPositions final : public Layer {
 public:
  WithPositions(AttentionSpec spec, LayerFactory& factory, bool rotary) : turns_(rotary), rotary_(50, spec.features / spec.heads) {
    if (turns_) spec.rotary = &rotary_;
    attention_ = std::make_unique<SelfAttention>("a", spec, factory);
  }
  void place(Tensor positions) { positions_ = std::move(positions); }
  Tensor forward(Ctx& ctx, Tensor x) override {
    if (turns_) rotary_.begin(ctx, positions_);
    Tensor y = attention_->forward(ctx, std::move(x));
    if (!ctx.training) rotary_.end();
    return y;
  }
  Tensor backward(Ctx& ctx, Tensor dy, Tensor into) override {
    Tensor dx = attention_->backward(ctx, std::move(dy), std::move(into));
    rotary_.end();
    return dx;
  }

 private:
  const bool turns_;
  Rotary rotary_;
  std::unique_ptr<SelfAttention> attention_;
  Tensor positions_;  // (T)
};

struct BuiltAttention {
  BuiltAttention(const TTAttentionCase& c, bool thin, DType type = DType::f64, int threads = 1)
      : rig(type, nullptr, threads), factory(rig.params, *rig.stash, {form(c, thin)}) {
    layer = std::make_unique<WithPositions>(AttentionSpec{.features = kFeatures,
                                                          .heads = c.heads,
                                                          .key_heads = c.key_heads,
                                                          .causal = c.causal,
                                                          .bias = c.bias,
                                                          .dropout = c.dropout,
                                                          .keep_probabilities = c.keep},
                                            factory, c.rotary);
    rig.start();
    for (const RankLayer& train : rig.params.rank_layers())
      for (Param* rank : train.ranks) rig.set(rank->value, noise_values(rank->count(), 3, 1));
    const std::vector<int32_t> starts = {1, 41, 71}, lengths = {40, 29, 17};
    rig.sequences = {rig.put_ids(starts), rig.put_ids(lengths), 40};  // two tokens are in none
    x = rig.noise({89, kFeatures});
    std::vector<int32_t> positions(89);
    std::iota(positions.begin(), positions.end(), 0);
    layer->place(rig.put_ids(positions));
  }
  static std::shared_ptr<WeightForm> form(const TTAttentionCase& c, bool thin) {
    TTKinds kinds;
    kinds.attention.tensorise = true;
    kinds.attention.rank = c.rank;
    kinds.attention.cores = 2;
    return make_tt_form(kinds, -1, thin);
  }
  Rig rig;
  LayerFactory factory;
  std::unique_ptr<WithPositions> layer;
  Tensor x;
};

class TTAttentionOf : public testing::TestWithParam<TTAttentionCase> {};

TEST_P(TTAttentionOf, EqualsAttentionWithAllOfItsHeads) {
  BuiltAttention thin(GetParam(), true), whole(GetParam(), false);
  const Pass a = pass(thin.rig, *thin.layer, thin.x), b = pass(whole.rig, *whole.layer, whole.x);
  if (!GetParam().rotary) {  // else queries and keys are made once more in backward
    EXPECT_LT(a.work.gemm_flops, b.work.gemm_flops);
  }
  EXPECT_LE(relative_difference(a.y, b.y), 1e-13);
  EXPECT_LE(relative_difference(a.dx, b.dx), 1e-12);
  // Biases of keys shift all scores of a row: their gradient is 0 but for rounding.
  for (const Param& param : whole.rig.params.params()) {
    if (!param.has_grad()) continue;
    EXPECT_LE(relative_difference(a.grads(thin.rig, param.name), b.grads(whole.rig, param.name), 1e-3), 1e-12) << param.name;
  }
  EXPECT_LE(relative_difference(evaluate(thin.rig, *thin.layer, thin.x), evaluate(whole.rig, *whole.layer, whole.x)), 1e-13);
}

TEST_P(TTAttentionOf, GradientsAgreeWithFiniteDifferences) {
  BuiltAttention b(GetParam(), true);
  check_directions(b.rig, probe_of(*b.layer, b.x));
  check_directions(b.rig, probe_of(*b.layer, b.x, b.rig.put(Values(89 * kFeatures, 0.0), {89, kFeatures})));
}

INSTANTIATE_TEST_SUITE_P(All, TTAttentionOf, testing::ValuesIn(kCases));

TEST(TTAttention, ThreadsChangeNoBit) {
  BuiltAttention one({}, true, DType::f32, 1), three({}, true, DType::f32, 3);
  const Pass a = pass(one.rig, *one.layer, one.x), b = pass(three.rig, *three.layer, three.x);
  EXPECT_EQ(a.y, b.y);
  EXPECT_EQ(a.dx, b.dx);
  for (const Param& param : one.rig.params.params()) EXPECT_EQ(a.grads(one.rig, param.name), b.grads(three.rig, param.name)) << param.name;
}

// With ranks that leave no fewer columns than a head has, it is the same computation as before, bit for bit.
TEST(TTAttention, ManyRanksLeaveWholeHeads) {
  const TTAttentionCase many = {.rank = 10};
  BuiltAttention thin(many, true), whole(many, false);
  const Pass a = pass(thin.rig, *thin.layer, thin.x), b = pass(whole.rig, *whole.layer, whole.x);
  EXPECT_EQ(a.y, b.y);
  EXPECT_EQ(a.dx, b.dx);
  EXPECT_EQ(a.work.gemm_flops, b.work.gemm_flops);
}

// Of queries, keys, values and of what attention makes of them nothing is as wide as the model, and none of the three is kept.
TEST(TTAttention, KeepsT1AndTheMeanAlone) {
  for (const bool rotary : {false, true}) {
    int64_t kept[2];
    for (const bool fuses : {false, true}) {
      BuiltAttention b({.rank = 2, .keep = false, .rotary = rotary}, fuses);
      pass(b.rig, *b.layer, b.x);
      kept[fuses] = b.rig.arena.peak_by_purpose()[Purpose::activation];
    }
    EXPECT_LT(kept[1], kept[0] / 2) << kept[1] << " of " << kept[0];
  }
}

}  // namespace
}  // namespace comera::layer_test
