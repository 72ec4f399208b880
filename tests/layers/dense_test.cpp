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
    LayerFactory factory(rig.params, *rig.stash);
    const std::unique_ptr<Layer> layer = factory.linear("l", in, out, LinearKind::attention);
    rig.start();
    check_gradients(rig, *layer, rig.noise({tokens, in}), {.step = 1e-3, .tolerance = 1e-10});
  }
}

TEST(DenseLinear, IsXTimesWTransposedPlusB) {
  Rig rig;
  LayerFactory factory(rig.params, *rig.stash);
  const std::unique_ptr<Layer> layer = factory.linear("l", 2, 3, LinearKind::head);
  rig.start();
  rig.set(rig.params.find("l.weight")->value, {1, 2, 3, 4, 5, 6});
  rig.set(rig.params.find("l.bias")->value, {0.5, -0.5, 0});
  EXPECT_EQ(evaluate(rig, *layer, rig.put({1, 10, 0, 1}, {2, 2})), (Values{21.5, 42.5, 65, 2.5, 3.5, 6}));
}

TEST(DenseLinear, StartsAsPublished) {
  Rig rig;
  LayerFactory factory(rig.params, *rig.stash);
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
  LayerFactory factory(rig.params, *rig.stash);
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
  LayerFactory factory(rig.params, *rig.stash, {make_tt_form(kinds)});
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
  LayerFactory plain(dense.params, *dense.stash);
  const std::unique_ptr<Layer> w = plain.linear("w", 12, 12, LinearKind::attention), table = plain.embedding("t", 50, 12),
                               last = plain.linear("c", 12, 12, LinearKind::classifier);
  EXPECT_TRUE(dense.params.rank_layers().empty());
  EXPECT_EQ(dense.params.find("t.weight")->kind, ParamKind::table);
  EXPECT_EQ(dense.params.find("c.weight")->kind, ParamKind::head) << "it stands behind the blocks";
  EXPECT_EQ(dense.params.find("w.weight")->group, ParamGroup::rest);
}

// Holds layers of one kind, and asks the builder for what is inside them.
class Named final : public WeightForm {
 public:
  Named(LinearKind kind, std::vector<std::string>& log, std::string name) : kind_(kind), log_(log), name_(std::move(name)) {}
  std::unique_ptr<Layer> linear(const MatrixSpec& spec, LayerFactory& build) override {
    log_.push_back(name_ + " " + spec.name);
    if (spec.kind != kind_) return nullptr;
    MatrixSpec inside = spec;
    inside.trainable = false;
    return build.linear(inside);
  }
  std::unique_ptr<Fan> fan(std::vector<std::unique_ptr<Layer>>& layers) override {
    log_.push_back(name_ + " fan of " + std::to_string(layers.size()));
    return nullptr;
  }

 private:
  const LinearKind kind_;
  std::vector<std::string>& log_;
  const std::string name_;
};

TEST(LayerFactory, AsksFormsInOrderAndInsideAFormThoseBehindIt) {
  Rig rig;
  std::vector<std::string> log;
  LayerFactory factory(rig.params, *rig.stash,
                       {std::make_shared<Named>(LinearKind::ffn_in, log, "one"), std::make_shared<Named>(LinearKind::ffn_out, log, "two")});
  const auto a = factory.linear("a", 3, 4, LinearKind::ffn_in);
  EXPECT_EQ(log, (std::vector<std::string>{"one a", "two a"}));
  EXPECT_FALSE(rig.params.find("a.weight")->trainable);
  log.clear();
  const auto b = factory.linear("b", 4, 3, LinearKind::ffn_out);
  EXPECT_EQ(log, (std::vector<std::string>{"one b", "two b"}));
  log.clear();
  const auto c = factory.linear("c", 4, 3, LinearKind::head);
  EXPECT_TRUE(rig.params.find("c.weight")->trainable) << "nobody's: dense";
  log.clear();
  const auto same = factory.fan({{"d", 3, 4, LinearKind::ffn_in}, {"e", 3, 4, LinearKind::ffn_in}});
  EXPECT_EQ(log.back(), "one fan of 2");
  log.clear();
  const auto mixed = factory.fan({{"f", 3, 4, LinearKind::ffn_in}, {"g", 3, 4, LinearKind::ffn_out}});
  EXPECT_EQ(log.back(), "two g") << "layers of two forms are nobody's fan";
}

}  // namespace
}  // namespace comera::layer_test
