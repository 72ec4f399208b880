// Dense linear layer and dense table, and what the factory makes of the options.
#include "core/layers/dense.h"

#include "core/layers/tt_linear.h"
#include "core/layers/ttm_embedding.h"
#include "tests/layers/check_layer.h"

namespace comera::layer_test {
namespace {

TEST(DenseLinear, GradientsAgreeWithFiniteDifferences) {
  for (const auto& [tokens, in, out] : {std::tuple{5, 3, 4}, {1, 7, 2}, {6, 1, 1}, {9, 4, 8}}) {
    Rig rig;
    LayerFactory factory(rig.params, *rig.stash, nullptr);
    const std::unique_ptr<Layer> layer = factory.linear("l", in, out, LinearKind::attention);
    rig.start();
    check_gradients(rig, *layer, rig.noise({tokens, in}), {.step = 1e-3, .tolerance = 1e-10});
  }
}

TEST(DenseLinear, IsXTimesWTransposedPlusB) {
  Rig rig;
  LayerFactory factory(rig.params, *rig.stash, nullptr);
  const std::unique_ptr<Layer> layer = factory.linear("l", 2, 3, LinearKind::head);
  rig.start();
  rig.set(rig.params.find("l.weight")->value, {1, 2, 3, 4, 5, 6});
  rig.set(rig.params.find("l.bias")->value, {0.5, -0.5, 0});
  EXPECT_EQ(evaluate(rig, *layer, rig.put({1, 10, 0, 1}, {2, 2})), (Values{21.5, 42.5, 65, 2.5, 3.5, 6}));
}

TEST(DenseLinear, StartsAsPublished) {
  Rig rig;
  LayerFactory factory(rig.params, *rig.stash, nullptr);
  const std::unique_ptr<Layer> layer = factory.linear("l", 400, 300, LinearKind::ffn_in);
  rig.start();
  double largest = 0;
  for (double value : rig.get(rig.params.find("l.weight")->value)) largest = std::max(largest, std::fabs(value));
  EXPECT_LE(largest, 0.05);  // 1 / sqrt(400)
  EXPECT_GT(largest, 0.0499);
  for (double value : rig.get(rig.params.find("l.bias")->value)) EXPECT_LE(std::fabs(value), 0.05);
}

TEST(DenseEmbedding, LooksUpAndScatters) {
  Rig rig;
  LayerFactory factory(rig.params, *rig.stash, nullptr);
  const std::unique_ptr<Layer> layer = factory.embedding("e", 6, 3);
  rig.start();
  const Tensor ids = rig.put_ids({5, 0, 2, 2, 5, 5});
  check_gradients(rig, *layer, ids, {.step = 1e-3, .tolerance = 1e-10});
  const Values table = rig.get(rig.params.find("e.weight")->value), y = evaluate(rig, *layer, ids);
  for (size_t j = 0; j < 3; ++j) {
    EXPECT_EQ(y[j], table[15 + j]);
    EXPECT_EQ(y[3 + j], table[j]);
    EXPECT_EQ(y[9 + j], table[6 + j]);
  }
}

TEST(LayerFactory, MakesWhatTheOptionsSay) {
  Rig rig;
  TTKinds kinds;
  kinds.ffn_out.tensorise = false;
  kinds.attention.rank = 3;
  LayerFactory factory(rig.params, *rig.stash, &kinds);
  const std::unique_ptr<Layer> q = factory.linear("q", 12, 12, LinearKind::attention),
                               out = factory.linear("out", 12, 6, LinearKind::ffn_out),
                               head = factory.linear("head", 12, 3, LinearKind::head), token = factory.embedding("token", 50, 12);
  EXPECT_NE(dynamic_cast<TTLinear*>(q.get()), nullptr);
  EXPECT_EQ(dynamic_cast<TTLinear*>(out.get()), nullptr);
  EXPECT_EQ(dynamic_cast<TTLinear*>(head.get()), nullptr);
  EXPECT_NE(dynamic_cast<TTMEmbedding*>(token.get()), nullptr);
  EXPECT_EQ(rig.params.find("out.weight")->kind, ParamKind::weight);
  EXPECT_EQ(rig.params.find("head.weight")->kind, ParamKind::head);
  EXPECT_EQ(rig.params.rank_layers().size(), 2u);
  EXPECT_EQ(rig.params.rank_layers()[0].ranks[0]->count(), 3);

  Rig dense;
  LayerFactory plain(dense.params, *dense.stash, nullptr);
  const std::unique_ptr<Layer> w = plain.linear("w", 12, 12, LinearKind::attention), table = plain.embedding("t", 50, 12),
                               last = plain.linear("c", 12, 12, LinearKind::classifier);
  EXPECT_TRUE(dense.params.rank_layers().empty());
  EXPECT_EQ(dense.params.find("t.weight")->kind, ParamKind::table);
  EXPECT_EQ(dense.params.find("c.weight")->kind, ParamKind::head) << "it stands behind the blocks";
  EXPECT_EQ(dense.params.find("w.weight")->group, ParamGroup::rest);
}

}  // namespace
}  // namespace comera::layer_test
