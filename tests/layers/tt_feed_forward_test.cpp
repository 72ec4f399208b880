// A feed-forward block of tensor trains without its wide tensors is the block of three layers.
#include "core/layers/blocks.h"
#include "core/layers/tt_linear.h"
#include "tests/layers/five_points.h"

namespace comera::layer_test {
namespace {

constexpr int64_t kIn = 12, kWide = 320, kTokens = 300;  // more than one part of tokens

TTKinds kinds_of(int64_t rank) {
  TTKinds kinds;
  for (TTOptions* options : {&kinds.ffn_in, &kinds.ffn_out}) {
    options->tensorise = true;
    options->rank = rank;
  }
  return kinds;
}

// Three layers around f, or four with a gate, of other ranks than the first.
struct Block {
  Activation kind = Activation::gelu;
  bool gated = false;
};
std::string text_of(const Block& block) {
  return "activation " + std::to_string(static_cast<int>(block.kind)) + (block.gated ? ", gated" : "");
}

struct BuiltBlock {
  BuiltBlock(bool fuses, const Block& block, DType type = DType::f64, int64_t tokens = kTokens, int threads = 1,
             std::unique_ptr<Stash> stash = nullptr)
      : rig(type, std::move(stash), threads), factory(rig.params, *rig.stash, {make_tt_form(kinds_of(3), -1, fuses)}) {
    const auto in = [](const char* name) { return MatrixSpec{.name = name, .in = kIn, .out = kWide, .kind = LinearKind::ffn_in}; };
    const MatrixSpec out{.name = "out", .in = kWide, .out = kIn, .kind = LinearKind::ffn_out};
    layer = block.gated ? factory.gated_feed_forward(in("gate"), in("up"), block.kind, "block", out)
                        : factory.feed_forward(in("in"), block.kind, "activation", out);
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

constexpr Block kBlocks[] = {{Activation::gelu}, {Activation::gelu_tanh},  {Activation::silu},      {Activation::tanh},
                             {Activation::relu}, {Activation::silu, true}, {Activation::gelu, true}};
constexpr Block kBoth[] = {{Activation::gelu}, {Activation::silu, true}};

TEST(TTFeedForward, GradientsAgreeWithFiniteDifferences) {
  for (const Block& block : kBoth) {
    SCOPED_TRACE(text_of(block));
    BuiltBlock b(true, block, DType::f64, 150);
    ASSERT_TRUE(dynamic_cast<TTFeedForward*>(b.layer.get()));
    check_directions(b.rig, probe_of(*b.layer, b.x));
  }
}

TEST(TTFeedForward, EqualsItsLayersOneByOne) {
  for (const Block& block : kBlocks)
    for (const int64_t tokens : {kTokens, int64_t{1}}) {  // one token: core by core, where nothing is wide
      SCOPED_TRACE(text_of(block));
      BuiltBlock fused(true, block, DType::f64, tokens), apart(false, block, DType::f64, tokens);
      const Pass a = pass(fused.rig, *fused.layer, fused.x), b = pass(apart.rig, *apart.layer, apart.x);
      EXPECT_LE(relative_difference(a.y, b.y), 1e-14);
      EXPECT_LE(relative_difference(a.dx, b.dx), 1e-13);
      for (const Param& param : apart.rig.params.params())
        EXPECT_LE(relative_difference(a.grads(fused.rig, param.name), b.grads(apart.rig, param.name), 1e-12), 1e-13) << param.name;
    }
}

// Tiles of floats.
TEST(TTFeedForward, EqualsItsLayersInFloats) {
  for (const Block& block : kBlocks) {
    SCOPED_TRACE(text_of(block));
    BuiltBlock fused(true, block, DType::f32), apart(false, block, DType::f32);
    const Pass a = pass(fused.rig, *fused.layer, fused.x), b = pass(apart.rig, *apart.layer, apart.x);
    EXPECT_LE(relative_difference(a.y, b.y), 1e-6);
    EXPECT_LE(relative_difference(a.dx, b.dx), 1e-5);
    for (const Param& param : apart.rig.params.params())
      EXPECT_LE(relative_difference(a.grads(fused.rig, param.name), b.grads(apart.rig, param.name), 1e-4), 1e-5) << param.name;
  }
}

TEST(TTFeedForward, ThreadsChangeNoBit) {
  for (const Block& block : kBoth) {
    SCOPED_TRACE(text_of(block));
    BuiltBlock one(true, block, DType::f32, kTokens, 1), three(true, block, DType::f32, kTokens, 3);
    const Pass a = pass(one.rig, *one.layer, one.x), b = pass(three.rig, *three.layer, three.x);
    EXPECT_EQ(a.y, b.y);
    EXPECT_EQ(a.dx, b.dx);
    for (const Param& param : one.rig.params.params())
      EXPECT_EQ(a.grads(one.rig, param.name), b.grads(three.rig, param.name)) << param.name;
  }
}

// The largest temporaries of both passes are as wide as x.
TEST(TTFeedForward, NothingWideIsKept) {
  for (const Block& block : kBoth)
    for (const bool fuses : {false, true}) {
      SCOPED_TRACE(text_of(block));
      BuiltBlock b(fuses, block);
      pass(b.rig, *b.layer, b.x);
      EXPECT_EQ(b.rig.arena.peak_bytes() >= kTokens * kWide * 8, !fuses) << b.rig.arena.peak_bytes();
    }
}

}  // namespace
}  // namespace comera::layer_test
