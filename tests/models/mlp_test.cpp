// The image classifier.
#include "tests/layers/five_points.h"
#include "tests/models/net.h"

namespace comera::model_test {
namespace {

ModelConfig toy_mlp(const std::string& activation, double dropout) {
  ModelConfig config;
  config.kind = "mlp";
  config.classes = 4;
  config.mlp = {.inputs = 12, .hidden = {10, 8}, .activation = activation, .dropout = dropout};
  config.tt.ffn_in.cores = 2;
  config.tt.ffn_in.rank = 3;
  return config;
}

TEST(Mlp, Gradients) {
  for (const bool tensorise : {false, true})
    for (const double dropout : {0.0, 0.3}) {
      Net smooth(toy_mlp("gelu", dropout), tensorise);
      shake(smooth);
      smooth.put_images(noise_values(7 * 12, 2), {0, 1, 2, 3, 0, 1, 2});
      check_directions(smooth.rig, smooth.probe());
      Net corners(toy_mlp("relu", dropout), tensorise);
      shake(corners);
      corners.put_images(noise_values(7 * 12, 2), {0, 1, 2, 3, 0, 1, 2});
      check_directions(corners.rig, corners.probe(), {.step = 1e-6, .tolerance = 1e-6, .directions = 1});  // no corner is that near
    }
}

TEST(Mlp, NamesAndKinds) {
  Net net(toy_mlp("relu", 0), true);
  for (const char* name : {"fc0.core.0", "fc0.rank.2", "fc0.bias", "fc1.core.3", "head.weight", "head.bias"})
    EXPECT_NE(net.rig.params.find(name), nullptr) << name;
  EXPECT_EQ(net.rig.params.rank_layers().size(), 2u);
  EXPECT_EQ(net.rig.params.dense_equivalent(), 12 * 10 + 10 + 10 * 8 + 8 + 8 * 4 + 4);
}

TEST(Mlp, HasAsManyHiddenLayersAsAsked) {
  for (const std::vector<int64_t>& hidden : {std::vector<int64_t>{}, {5}, {5, 6, 7}}) {
    ModelConfig config = toy_mlp("relu", 0);
    config.mlp.hidden = hidden;
    Net net(config, false);
    net.put_images(noise_values(12, 2), {1});
    EXPECT_EQ(net.evaluate().size(), 4u);
    EXPECT_EQ(net.rig.params.params().size(), 2 * hidden.size() + 2);
  }
}

TEST(Mlp, EvaluationIsTrainingWithoutDropout) {
  Net dropping(toy_mlp("relu", 0.4), true), plain(toy_mlp("relu", 0), true);
  dropping.put_images(noise_values(36, 2), {0, 1, 2});
  plain.put_images(noise_values(36, 2), {0, 1, 2});
  EXPECT_EQ(dropping.evaluate(), plain.gradients());
}

TEST(Mlp, Int8CodesMoveOnlyGradients) {
  for (const char* activation : {"relu", "gelu"}) {
    Net exact(toy_mlp(activation, 0), true), coded(toy_mlp(activation, 0), true, DType::f64, make_int8_stash(1, 0.9));
    for (Net* net : {&exact, &coded}) net->put_images(noise_values(7 * 12, 2), {0, 1, 2, 3, 0, 1, 2});
    EXPECT_EQ(exact.gradients(), coded.gradients());
    double largest = 0;
    const auto want = exact.all_gradients(), got = coded.all_gradients();
    for (const auto& [name, values] : want)
      for (double value : values) largest = std::max(largest, std::fabs(value));
    for (const auto& [name, values] : want) EXPECT_LE(relative_difference(got.at(name), values, largest / 20), 0.05) << name;
  }
}

}  // namespace
}  // namespace comera::model_test
