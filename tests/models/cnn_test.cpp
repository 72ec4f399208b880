// The convolutional image classifier.
#include "tests/layers/five_points.h"
#include "tests/models/net.h"

namespace comera::model_test {
namespace {

// Images of 6 x 5 pixels with 2 channels.
ModelConfig toy_cnn() {
  ModelConfig config;
  config.kind = "cnn";
  config.classes = 3;
  config.cnn = {.height = 6, .width = 5, .channels = 2, .widths = {4, 6}, .strides = {1, 2}, .convolutions = 2, .groups = 2};
  config.cnn.activation = "gelu";
  config.tt.convolution.cores = 2;
  config.tt.convolution.rank = 3;
  return config;
}

void put_some(Net& net) { net.put_images(noise_values(4 * 60, 2), {0, 1, 2, 1}); }

TEST(Cnn, Gradients) {
  const std::pair<const char*, std::function<void(CnnConfig&)>> options[] = {
      {"batch norm", [](CnnConfig&) {}},
      {"group norm, average pooling",
       [](CnnConfig& c) {
         c.norm = "group";
         c.pooling = "average";
       }},
      {"no norm", [](CnnConfig& c) { c.norm = "none"; }},
      {"residual blocks, dropout",
       [](CnnConfig& c) {
         c.residual = true;
         c.dropout = 0.3;
       }},
  };
  for (const auto& [name, change] : options)
    for (const bool tensorise : {false, true}) {
      SCOPED_TRACE(std::string(name) + (tensorise ? ", tensor trains" : ""));
      ModelConfig config = toy_cnn();
      change(config.cnn);
      Net net(config, tensorise);
      shake(net);
      put_some(net);
      check_directions(net.rig, net.probe(), {.step = 2e-4, .tolerance = 2e-8, .directions = 1});
    }
}

TEST(Cnn, ReluAndMaxPooling) {
  ModelConfig config = toy_cnn();
  config.cnn.activation = "relu";
  config.cnn.pooling = "max";
  Net net(config, false);
  shake(net);
  put_some(net);
  check_directions(net.rig, net.probe(), {.step = 1e-6, .tolerance = 1e-6, .directions = 1});  // no corner is that near
}

TEST(Cnn, NamesAndKinds) {
  Net net(toy_cnn(), true);
  for (const char* name :
       {"stage0.conv0.core.0", "stage0.conv1.rank.2", "stage1.conv0.norm.gamma", "stage1.conv1.norm.beta", "head.weight"})
    EXPECT_NE(net.rig.params.find(name), nullptr) << name;
  EXPECT_FALSE(net.rig.params.find("stage0.conv0.bias")->trainable) << "the norm has one";
  EXPECT_EQ(net.rig.params.rank_layers().size(), 4u);
  ModelConfig config = toy_cnn();
  config.cnn.norm = "none";
  Net dense(config, false);
  EXPECT_EQ(dense.rig.params.find("stage0.conv1.weight")->kind, ParamKind::weight) << "projections may take it";
  EXPECT_EQ(dense.rig.params.count(), (18 + 1) * 4 + (36 + 1) * 4 + (36 + 1) * 6 + (54 + 1) * 6 + (6 + 1) * 3);
  config.cnn.residual = true;
  Net residual(config, false);
  EXPECT_EQ(residual.rig.params.find("stage1.block0.shortcut.weight")->shape, (Shape{6, 4}));
  EXPECT_EQ(residual.rig.params.find("stage0.block0.shortcut.weight"), nullptr) << "the image stays as it is";
}

// All sizes of trains are checked before a run: the matrices that the config names are those that the model has.
TEST(Cnn, MatricesOfTheConfigAreThoseOfTheModel) {
  for (const bool residual : {false, true})
    for (const char* pooling : {"stride", "max"}) {
      ModelConfig config = toy_cnn();
      config.cnn.residual = residual;
      config.cnn.pooling = pooling;
      config.cnn.widths = {2, 6};
      Net net(config, false);
      std::set<std::pair<int64_t, int64_t>> named, held;
      for (const ModelMatrix& matrix : matrices_of(config)) named.insert({matrix.out, matrix.in});
      for (const Param& param : net.rig.params.params())
        if (param.kind == ParamKind::weight) held.insert({param.shape[0], param.shape[1]});
      EXPECT_EQ(named, held) << residual << " " << pooling;
    }
}

TEST(Cnn, ProblemsNameTheSetting) {
  const auto says = [](const std::function<void(CnnConfig&)>& change, const std::string& path, const std::string& part) {
    ModelConfig config = toy_cnn();
    EXPECT_TRUE(config.problems(true).empty());
    change(config.cnn);
    const std::vector<Problem> problems = config.problems(true);
    ASSERT_EQ(problems.size(), 1u) << path;
    EXPECT_EQ(problems[0].path, path);
    EXPECT_NE(problems[0].text.find(part), std::string::npos) << problems[0].text;
  };
  says([](CnnConfig& c) { c.strides = {1}; }, "cnn.strides", "each of the 2 widths, has 1");
  says([](CnnConfig& c) { c.widths = c.strides = {}; }, "cnn.widths", "at least one stage");
  says([](CnnConfig& c) { c.widths = {4, 0}; }, "cnn.widths", "at least 1, is 0");
  says([](CnnConfig& c) { c.kernel = 4; }, "cnn.kernel", "odd, is 4");
  says(
      [](CnnConfig& c) {
        c.norm = "group";
        c.groups = 3;
      },
      "cnn.groups", "3 of 4");
  says(
      [](CnnConfig& c) {
        c.residual = true;
        c.convolutions = 3;
      },
      "cnn.convolutions", "even");
  says(
      [](CnnConfig& c) {
        c.pooling = "max";
        c.strides = {2, 3};
      },
      "cnn.strides", "to nothing");
}

// An evaluation depends on its image alone, a training pass with batch norm on the batch.
TEST(Cnn, EvaluationsUseRunningStatistics) {
  Net net(toy_cnn(), false);
  const Values images = noise_values(4 * 60, 2);
  net.put_images(images, {0, 1, 2, 1});
  const Values together = net.evaluate();
  net.put_images(Values(images.begin() + 60, images.begin() + 120), {1});
  const Values alone = net.evaluate();
  for (size_t i = 0; i < alone.size(); ++i) EXPECT_NEAR(alone[i], together[3 + i], 1e-13);
  net.put_images(images, {0, 1, 2, 1});
  EXPECT_NE(net.gradients(), together);
  EXPECT_NE(net.evaluate(), together) << "the running statistics have followed";
}

}  // namespace
}  // namespace comera::model_test
