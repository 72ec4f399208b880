// TT linear layers of the published sizes: entries, multiply-adds and kept memory as METHODS.md 1.1 and 14 say.
#include "core/config/tt_shape.h"
#include "core/layers/tt_linear.h"
#include "tests/layers/check_layer.h"

namespace comera::layer_test {
namespace {

struct Published {
  int64_t in, out, entries, ranks, left, right, main;
};
const Published kPublished[] = {
    {768, 768, 20448, 114, 725760, 725760, 188743680},
    {768, 3072, 28960, 118, 725760, 2887680, 471859200},
    {3072, 768, 28960, 118, 2887680, 725760, 471859200},
};

TEST(TTPublished, CountsAndProductsOfThePublishedShapes) {
  for (const Published& expected : kPublished) {
    Rig rig(DType::f32);
    TTKinds kinds;
    LayerFactory factory(rig.params, *rig.stash, {make_tt_form(kinds)});
    const std::unique_ptr<Layer> layer = factory.linear("l", expected.in, expected.out, LinearKind::attention);
    const RankLayer& train = rig.params.rank_layers().front();
    int64_t entries = 0, ranks = 0;
    for (const Param* core : train.cores) entries += core->count();
    for (const Param* rank : train.ranks) ranks += rank->count();
    EXPECT_EQ(entries, expected.entries);
    EXPECT_EQ(ranks, expected.ranks);
    EXPECT_EQ(train.dense_entries(), expected.in * expected.out);
    rig.start();

    const int64_t tokens = 64, r = 30, main = tokens * r * (expected.in + expected.out);
    EXPECT_EQ(main * (4096 / tokens), expected.main);
    double forward = 0;
    const Tensor x = rig.noise({tokens, expected.in});
    const Work training = pass(rig, *layer, x).work;
    rig.run(
        [&](Ctx& ctx) {
          layer->forward(ctx, x);
          forward = ctx.ops.work.gemm_flops;
        },
        false);
    const double bias = static_cast<double>(tokens * expected.out);  // the extra column of T1, and row of T2
    EXPECT_EQ(forward, 2 * (static_cast<double>(expected.left + expected.right + main) + bias));
    // Backward: U1, dX, T2 and V are the main products twice; each sweep costs its merge twice.
    EXPECT_EQ(training.gemm_flops - forward, 2 * (static_cast<double>(2 * (expected.left + expected.right + main)) + bias));
  }
}

TEST(TTPublished, KeepsWhatIsSaidAndNoMore) {
  // 768 -> 3072 at 256 tokens: x is kept by its handle alone; besides T1 only what does not depend on the tokens.
  Rig rig(DType::f32);
  TTKinds kinds;
  LayerFactory factory(rig.params, *rig.stash, {make_tt_form(kinds)});
  const std::unique_ptr<Layer> layer = factory.linear("l", 768, 3072, LinearKind::ffn_in);
  rig.start();
  const int64_t tokens = 256;
  pass(rig, *layer, rig.noise({tokens, 768}));
  const int64_t masked = 28960 - 16 * 16, left = 26064 - 12 * 12, right = 100096 - 16 * 16 + 3072, t1 = tokens * 31;
  const int64_t kept = rig.arena.peak_by_purpose()[Purpose::activation], y = tokens * 3072;
  // The harness holds dy across the turn; alignment may add a little to each of the blocks.
  EXPECT_GE(kept, 4 * (masked + left + right + t1 + y));
  EXPECT_LE(kept, 4 * (masked + left + right + t1 + y) + 16 * 64);
}

TEST(TTPublished, FewTokensGoCoreByCore) {
  TTKinds kinds;
  std::vector<Problem> problems;
  const TTShape shape = linear_shape(768, 768, kinds.classifier, "", problems);
  const auto flops = [&](int64_t tokens) {
    Rig rig(DType::f32);
    LayerFactory factory(rig.params, *rig.stash, {make_tt_form(kinds)});
    const std::unique_ptr<Layer> layer = factory.linear("l", 768, 768, LinearKind::classifier);
    rig.start();
    double count = 0;
    const Tensor x = rig.noise({tokens, 768});
    rig.run(
        [&](Ctx& ctx) {
          layer->forward(ctx, x);
          count = ctx.ops.work.gemm_flops;
        },
        false);
    return count;
  };
  EXPECT_EQ(flops(32), 2 * sequential_cost(shape, 32));
  EXPECT_EQ(flops(44), 2 * sequential_cost(shape, 44));
  EXPECT_EQ(flops(45), 2 * (merged_cost(shape, 45) + 45 * 768));
}

}  // namespace
}  // namespace comera::layer_test
