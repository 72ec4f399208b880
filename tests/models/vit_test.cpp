// The image transformer at toy size: gradients in every form, what patches see, its parameters and problems. Its numbers against the
// transformers library are in huggingface_test.cpp.
#include "tests/layers/five_points.h"
#include "tests/models/net.h"

namespace comera::model_test {
namespace {

constexpr int64_t kPixels = 6 * 5 * 2;

// Images of 6 x 5 pixels with 2 channels: 3 x 2 patches, and a column that is left over.
ModelConfig toy_vit() {
  ModelConfig config;
  config.kind = "vit";
  config.classes = 3;
  config.vit = {.height = 6, .width = 5, .channels = 2, .patch = 2, .layers = 2, .d_model = 12, .heads = 3, .d_ff = 16};
  config.vit.norm_eps = 1e-5;
  config.vit.embedding_std = 0.5;
  for (TTOptions* options : {&config.tt.attention, &config.tt.ffn_in, &config.tt.ffn_out, &config.tt.convolution}) {
    options->cores = 2;
    options->rank = 3;
  }
  return config;
}

void put_pictures(Net& net) { net.put_images(noise_values(4 * kPixels, 2), {0, 1, 2, 1}); }

TEST(Vit, GradientsAgreeWithFiniteDifferences) {
  const std::pair<const char*, std::function<void(VitConfig&)>> options[] = {
      {"plain", [](VitConfig&) {}},
      {"dropout", [](VitConfig& c) { c.dropout = c.attention_dropout = 0.2; }},
      {"no biases of queries, probabilities again",
       [](VitConfig& c) {
         c.qkv_bias = c.keep_probabilities = false;
         c.activation = "gelu_tanh";
       }},
  };
  for (const auto& [name, change] : options)
    for (const bool tensorise : {false, true}) {
      SCOPED_TRACE(std::string(name) + (tensorise ? ", tensor trains" : ""));
      ModelConfig config = toy_vit();
      change(config.vit);
      Net net(config, tensorise);
      shake(net);
      put_pictures(net);
      check_directions(net.rig, net.probe(), {.step = 3e-4, .tolerance = 1e-8, .directions = 1});
    }
}

// Frozen tables: nothing is written to their gradients, and the others stay as they are.
TEST(Vit, FrozenTablesLeaveOtherGradients) {
  Net all(toy_vit(), false), some(toy_vit(), false, DType::f64, make_exact_stash(), [](ParamSet&params) {
    for (Param& param : params.params()) param.trainable = param.kind != ParamKind::table;
  });
  for (Net* net : {&all, &some}) {
    shake(*net);
    put_pictures(*net);
    net->gradients();
  }
  const std::map<std::string, Values> expected = all.all_gradients(), got = some.all_gradients();
  EXPECT_EQ(got.size() + 2, expected.size());
  for (const auto& [name, values] : got) EXPECT_EQ(values, expected.at(name)) << name;
}

TEST(Vit, EveryPixelOfAPatchIsSeenAndNoneBesides) {
  Net net(toy_vit(), false);
  shake(net);
  const Values images = noise_values(kPixels, 2);
  net.put_images(images, {0});
  const Values before = net.evaluate();
  for (int64_t at = 0; at < kPixels; ++at) {
    Values moved = images;
    moved[static_cast<size_t>(at)] += 0.5;
    net.put_images(moved, {0});
    EXPECT_EQ(net.evaluate() == before, at / 2 % 5 == 4) << "value " << at << ": patches end before the last column";
  }
}

TEST(Vit, AnImageDoesNotSeeTheOthersOfItsBatch) {
  Net net(toy_vit(), false);
  const Values images = noise_values(4 * kPixels, 2);
  net.put_images(images, {0, 1, 2, 1});
  const Values together = net.evaluate();
  net.put_images(Values(images.begin() + kPixels, images.begin() + 2 * kPixels), {1});
  const Values alone = net.evaluate();
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(alone[i], together[3 + i], 1e-13);
}

// Positions make the place of a patch count: with equal rows the logits do not change where patches change places.
TEST(Vit, PlacesOfPatchesCountByTheirPositions) {
  Net net(toy_vit(), false);
  const Values images = noise_values(kPixels, 2);
  Values swapped = images;  // the first two rows of patches
  for (int64_t i = 0; i < 2 * 5 * 2; ++i) std::swap(swapped[static_cast<size_t>(i)], swapped[static_cast<size_t>(i + 2 * 5 * 2)]);
  const auto difference = [&] {
    net.put_images(images, {0});
    const Values a = net.evaluate();
    net.put_images(swapped, {0});
    return relative_difference(net.evaluate(), a);
  };
  EXPECT_GT(difference(), 1e-3);
  net.rig.set(net.rig.params.find("emb.position")->value, Values(7 * 12, 0.1));
  EXPECT_LT(difference(), 1e-12);
}

TEST(Vit, HasTheParametersOfItsForm) {
  Net net(toy_vit(), false), trains(toy_vit(), true);
  const auto shape = [](Net& of, const char* name) {
    const Param* param = of.rig.params.find(name);
    return param ? param->shape : Shape();
  };
  EXPECT_EQ(shape(net, "emb.patch.weight"), (Shape{12, 8}));
  EXPECT_EQ(shape(net, "emb.class"), (Shape{1, 12}));
  EXPECT_EQ(shape(net, "emb.position"), (Shape{7, 12}));
  EXPECT_EQ(shape(net, "head.weight"), (Shape{3, 12}));
  EXPECT_EQ(net.rig.params.find("emb.patch.weight")->kind, ParamKind::weight) << "projections may take it";
  // Patches, class token and positions, blocks of four attention matrices, two feed-forward ones and two norms, norm, head.
  const int64_t d = 12, f = 16, block = 4 * (d * d + d) + 2 * d * f + d + f + 4 * d;
  EXPECT_EQ(net.rig.params.count(), (8 * d + d) + (1 + 7) * d + 2 * block + 2 * d + 3 * d + 3);
  EXPECT_EQ(trains.rig.params.rank_layers().size(), 1u + 2 * 6);
  ModelConfig config = toy_vit();
  config.vit.qkv_bias = false;
  Net without(config, false);
  EXPECT_EQ(without.rig.params.count(), net.rig.params.count() - 2 * 3 * d);
}

TEST(Vit, MatricesOfTheConfigAreThoseOfTheModel) {
  Net net(toy_vit(), false);
  std::set<std::pair<int64_t, int64_t>> named, held;
  for (const ModelMatrix& matrix : matrices_of(toy_vit())) named.insert({matrix.out, matrix.in});
  for (const Param& param : net.rig.params.params())
    if (param.kind == ParamKind::weight) held.insert({param.shape[0], param.shape[1]});
  EXPECT_EQ(named, held);
}

TEST(Vit, ProblemsNameTheSetting) {
  const auto says = [](const std::function<void(VitConfig&)>& change, const std::string& path, const std::string& part) {
    ModelConfig config = toy_vit();
    EXPECT_TRUE(config.problems(true).empty());
    change(config.vit);
    const std::vector<Problem> problems = config.problems(true);
    ASSERT_EQ(problems.size(), 1u) << path;
    EXPECT_EQ(problems[0].path, path);
    EXPECT_NE(problems[0].text.find(part), std::string::npos) << problems[0].text;
  };
  says([](VitConfig& c) { c.heads = 5; }, "vit.heads", "must divide d_model 12, is 5");
  says([](VitConfig& c) { c.patch = 6; }, "vit.patch", "images of 6 x 5, is 6");
  says([](VitConfig& c) { c.layers = 0; }, "vit.layers", "at least 1, is 0");
}

}  // namespace
}  // namespace comera::model_test
