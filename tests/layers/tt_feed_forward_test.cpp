// A feed-forward block of tensor trains without its wide tensors is the block of three layers.
#include "core/layers/blocks.h"
#include "core/layers/tt_linear.h"
#include "tests/layers/five_points.h"

namespace comera::layer_test {
namespace {

constexpr int64_t kIn = 12, kWide = 160, kTokens = 300;  // more than one part of tokens

TTKinds kinds_of(int64_t rank) {
  TTKinds kinds;
  for (TTOptions* options : {&kinds.ffn_in, &kinds.ffn_out}) {
    options->tensorise = true;
    options->rank = rank;
  }
  return kinds;
}

struct BuiltBlock {
  BuiltBlock(bool fuses, Activation kind, DType type = DType::f64, int64_t tokens = kTokens, int threads = 1,
             std::unique_ptr<Stash> stash = nullptr)
      : rig(type, std::move(stash), threads), factory(rig.params, *rig.stash, {make_tt_form(kinds_of(3), -1, fuses)}) {
    layer = factory.feed_forward({.name = "in", .in = kIn, .out = kWide, .kind = LinearKind::ffn_in}, kind, "activation",
                                 {.name = "out", .in = kWide, .out = kIn, .kind = LinearKind::ffn_out});
    rig.start();
    for (const RankLayer& train : rig.params.rank_layers())
      for (Param* rank : train.ranks) rig.set(rank->value, noise_values(rank->count(), 3, 1));
    x = rig.noise({tokens, kIn});
  }
  Rig rig;
  LayerFactory factory;
  std::unique_ptr<Layer> layer;
  Tensor x;
};

constexpr Activation kKinds[] = {Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::tanh, Activation::relu};

TEST(TTFeedForward, GradientsAgreeWithFiniteDifferences) {
  BuiltBlock b(true, Activation::gelu, DType::f64, 150);
  ASSERT_TRUE(dynamic_cast<TTFeedForward*>(b.layer.get()));
  check_directions(b.rig, probe_of(*b.layer, b.x));
}

TEST(TTFeedForward, EqualsItsLayersOneByOne) {
  for (const Activation kind : kKinds)
    for (const int64_t tokens : {kTokens, int64_t{1}}) {  // one token: core by core, where nothing is wide
      BuiltBlock fused(true, kind, DType::f64, tokens), apart(false, kind, DType::f64, tokens);
      const Pass a = pass(fused.rig, *fused.layer, fused.x), b = pass(apart.rig, *apart.layer, apart.x);
      EXPECT_LE(relative_difference(a.y, b.y), 1e-14);
      EXPECT_LE(relative_difference(a.dx, b.dx), 1e-13);
      for (const Param& param : apart.rig.params.params())
        EXPECT_LE(relative_difference(a.grads(fused.rig, param.name), b.grads(apart.rig, param.name), 1e-12), 1e-13) << param.name;
    }
}

TEST(TTFeedForward, ThreadsChangeNoBit) {
  BuiltBlock one(true, Activation::gelu, DType::f32, kTokens, 1), three(true, Activation::gelu, DType::f32, kTokens, 3);
  const Pass a = pass(one.rig, *one.layer, one.x), b = pass(three.rig, *three.layer, three.x);
  EXPECT_EQ(a.y, b.y);
  EXPECT_EQ(a.dx, b.dx);
  for (const Param& param : one.rig.params.params()) EXPECT_EQ(a.grads(one.rig, param.name), b.grads(three.rig, param.name)) << param.name;
}

// The largest temporaries of both passes are as wide as x.
TEST(TTFeedForward, NothingWideIsKept) {
  for (const bool fuses : {false, true}) {
    BuiltBlock b(fuses, Activation::gelu);
    pass(b.rig, *b.layer, b.x);
    EXPECT_EQ(b.rig.arena.peak_bytes() >= kTokens * kWide * 8, !fuses) << b.rig.arena.peak_bytes();
  }
}

}  // namespace
}  // namespace comera::layer_test
