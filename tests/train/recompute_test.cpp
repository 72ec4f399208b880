// Activations that are computed again instead of kept (method.waist, method.checkpoint): the same training to the last bit, in less memory.
#include <map>
#include <tuple>

#include "core/config/method.h"
#include "tests/config/choices.h"
#include "tests/train/course.h"

namespace comera::test {
namespace {

// The course and the last checkpoint's tensors.
std::vector<std::string> recomputed(const RunConfig& config, const std::string& checkpoint) {
  const auto device = open_cpu_device(2);
  Course course;
  Trainer trainer(config, data_of(config), data_of(config), *device, course);
  trainer.start();
  const MemoryByPurpose planned = trainer.engine().planned(), taken = trainer.engine().memory().now();
  EXPECT_EQ(planned.total(), taken.total());
  while (!trainer.finished()) one_step(trainer);
  trainer.save(checkpoint);
  return course.lines;
}

// Metadata names the settings, which differ.
std::string tensor_difference(const std::string& a, const std::string& b) {
  const std::string found = difference(a, b);
  return found == "metadata" ? "" : found;
}

using RecomputePoint = std::tuple<const char*, const char*, const char*>;

class Recompute : public testing::TestWithParam<RecomputePoint> {};

// Over a coded stash the waist is another course: fewer tensors are rounded.
TEST_P(Recompute, TrainsAsIfAllWereKept) {
  const auto& [model, weights, stash] = GetParam();
  RunConfig plain = scripted(std::string(model) == "mlp" ? image_config() : text_config());
  plain.model.mlp.activation = stash == std::string("exact") ? "gelu" : "relu";
  plain.model.encoder.attention_dropout = 0.1;
  plain.model.encoder.heads = 6;  // of 4 columns, which no rank makes narrower
  plain.method.weights = weights;
  plain.method.stash = stash;
  std::vector<std::pair<bool, int64_t>> ways{{false, 1}, {false, 3}};  // waist, checkpoint
  if (stash == std::string("exact")) ways.insert(ways.end(), {{true, 0}, {true, 2}});
  const std::string a = file("recompute-a"), b = file("recompute-b");
  const std::vector<std::string> expected = recomputed(plain, a);
  for (const auto& [waist, every] : ways) {
    SCOPED_TRACE("waist " + std::to_string(waist) + ", checkpoint " + std::to_string(every));
    RunConfig other = plain;
    other.method.waist = waist;
    other.method.checkpoint = every;
    const std::vector<std::string> found = recomputed(other, b);
    ASSERT_EQ(expected.size(), found.size());
    for (size_t i = 0; i < expected.size(); ++i) ASSERT_EQ(expected[i], found[i]) << "line " << i;
    EXPECT_EQ(tensor_difference(a, b), "");
  }
  std::filesystem::remove(a);
  std::filesystem::remove(b);
}

// Under the waist, with each block's input kept, and with both for every `most` blocks. Returns the lines of the run that keeps all.
std::vector<std::string> expect_the_same_recomputed(const RunConfig& plain, int64_t most) {
  const std::string a = file("kept"), b = file("recomputed");
  std::vector<std::string> expected = recomputed(plain, a);
  for (const auto& [waist, every] : {std::pair<bool, int64_t>{true, 0}, {false, 1}, {true, most}}) {
    SCOPED_TRACE("waist " + std::to_string(waist) + ", checkpoint " + std::to_string(every));
    RunConfig other = plain;
    other.method.waist = waist;
    other.method.checkpoint = every;
    EXPECT_EQ(expected, recomputed(other, b));
    EXPECT_EQ(tensor_difference(a, b), "");
  }
  std::filesystem::remove(a);
  std::filesystem::remove(b);
  return expected;
}

// RMS norms offer themselves as layer norms do.
TEST(RecomputeRmsNorm, TrainsAsIfAllWereKept) {
  RunConfig plain = scripted(text_config());
  plain.model.encoder.norm = "rms";
  plain.model.encoder.heads = 6;
  const std::vector<std::string> expected = expect_the_same_recomputed(plain, 2);
  RunConfig centred = plain;
  centred.model.encoder.norm = "layer";
  const std::string other = file("rms-other");
  EXPECT_NE(expected, recomputed(centred, other));
  std::filesystem::remove(other);
}

TEST(RecomputeRotaryEncoder, TrainsAsIfAllWereKept) {
  RunConfig config = scripted(text_config());
  config.model.encoder.rotary = true;
  config.model.encoder.segments = 0;
  expect_the_same_recomputed(config, 2);
}

TEST(RecomputePatches, TrainAsIfAllWereKept) { expect_the_same_recomputed(scripted(patches_config()), 2); }

// Batch norm counts a batch once, also where its block is computed twice.
TEST(RecomputeConvolutions, TrainAsIfAllWereKept) {
  for (const char* weights : choices_of("method.weights")) {
    SCOPED_TRACE(weights);
    RunConfig plain = scripted(convolution_config());
    plain.method.weights = weights;
    plain.model.cnn.convolutions = 2;
    expect_the_same_recomputed(plain, 3);
  }
}

// In the space of ranks attention and norms sum in another order (METHODS.md 12.4, 12.6): the same training but for rounding, through cuts
// and growth.
TEST(RecomputeAttention, TrainsAsWithWholeHeads) {
  struct Encoder {
    const char* norm;
    bool dense_table, rotary;
  };
  // Rows of a dense table are kept, and their norm has dropout.
  for (const Encoder& c :
       {Encoder{"layer", false, false}, {"layer", true, false}, {"rms", false, false}, {"rms", true, false}, {"layer", false, true}}) {
    SCOPED_TRACE(std::string(c.norm) + (c.dense_table ? ", dense table" : "") + (c.rotary ? ", rotary positions" : ""));
    RunConfig plain = scripted(text_config());
    plain.train.precision = "f64";
    plain.model.encoder.norm = c.norm;
    plain.model.encoder.heads = 2;  // of 12 columns; T1 has 8
    plain.model.encoder.rotary = c.rotary;
    if (c.rotary) plain.model.encoder.segments = 0;
    plain.model.tt.embedding.tensorise = !c.dense_table;
    RunConfig thin = plain;
    thin.method.waist = true;
    Log logs[2];
    std::map<std::string, Shape> shapes[2];
    const auto device = open_cpu_device(2);
    for (const bool waist : {false, true}) {
      const RunConfig& config = waist ? thin : plain;
      Trainer trainer(config, data_of(config), data_of(config), *device, logs[waist]);
      trainer.start();
      while (!trainer.finished()) trainer.step();
      for (const Param& param : trainer.engine().params().params()) shapes[waist][param.name] = param.shape;
    }
    ASSERT_EQ(logs[0].losses.size(), logs[1].losses.size());
    for (size_t i = 0; i < logs[0].losses.size(); ++i) EXPECT_NEAR(logs[0].losses[i], logs[1].losses[i], 1e-9 * logs[0].losses[i]) << i;
    EXPECT_NE(logs[0].losses, logs[1].losses) << "the waist has changed nothing";
    EXPECT_GT(logs[1].count("truncation"), 0);
    EXPECT_EQ(logs[0].events, logs[1].events);
    EXPECT_EQ(shapes[0], shapes[1]);
  }
}

// Rows of a table that are computed again have the positions that were added to them.
TEST(RecomputeDecoder, TrainsAsIfAllWereKept) {
  for (const char* positions : choices_of("model.decoder.positions"))
    for (const double dropout : {0.0, 0.2}) {
      SCOPED_TRACE(std::string(positions) + ", dropout " + std::to_string(dropout));
      RunConfig config = scripted(language_config());
      config.method.weights = "tt";
      config.model.decoder.positions = positions;
      config.model.decoder.dropout = dropout;
      config.train.precision = "f64";
      Log logs[2];
      const auto device = open_cpu_device(2);
      for (const bool waist : {false, true}) {
        config.method.waist = waist;
        Trainer trainer(config, data_of(config), data_of(config), *device, logs[waist]);
        trainer.start();
        while (!trainer.finished()) trainer.step();
      }
      ASSERT_EQ(logs[0].losses.size(), logs[1].losses.size());
      for (size_t i = 0; i < logs[0].losses.size(); ++i) EXPECT_NEAR(logs[0].losses[i], logs[1].losses[i], 1e-9 * logs[0].losses[i]) << i;
    }
}

INSTANTIATE_TEST_SUITE_P(All, Recompute,
                         testing::Combine(testing::Values("mlp", "encoder"), testing::ValuesIn(choices_of("method.weights")),
                                          testing::Values("exact", "bf16", "int8")),
                         name_of_choices);

TEST(RecomputeActivation, ReluIsMadeAgainFromItsInput) {
  RunConfig plain = scripted(image_config());
  RunConfig other = plain;
  other.method.waist = true;
  const std::string a = file("relu-a"), b = file("relu-b");
  EXPECT_EQ(recomputed(plain, a), recomputed(other, b));
  EXPECT_EQ(tensor_difference(a, b), "");
  std::filesystem::remove(a);
  std::filesystem::remove(b);
}

int64_t activations(const RunConfig& config) {
  const auto device = open_cpu_device(1);
  return Engine(config, *device).planned()[Purpose::activation];
}

TEST(RecomputeMemory, EachWayKeepsLess) {
  RunConfig config = text_config();
  config.model.encoder.keep_probabilities = false;
  const int64_t all = activations(config);
  config.method.waist = true;
  const int64_t waist = activations(config);
  EXPECT_LT(2 * waist, all);
  config.method.stash = "int8";
  EXPECT_LT(activations(config), waist);
  config.method.stash = "exact";
  config.method.waist = false;
  config.method.checkpoint = 1;
  const int64_t every_block = activations(config);
  EXPECT_LT(2 * every_block, all);
  config.method.checkpoint = 2;
  EXPECT_LT(activations(config), every_block) << "one input for two blocks";
}

// With the waist the memory of a step follows the ranks of the model while it trains.
TEST(RecomputeMemory, FallsWhenRanksAreCut) {
  RunConfig config = text_config();
  config.method.waist = true;
  config.model.encoder.keep_probabilities = false;
  for (TTOptions* options : {&config.model.tt.attention, &config.model.tt.ffn_in, &config.model.tt.ffn_out}) options->rank = 12;
  const auto device = open_cpu_device(1);
  Engine engine(config, *device);
  engine.allocate();
  const int64_t before = engine.planned()[Purpose::activation];
  BondEntries bonds;
  for (const RankLayer& layer : engine.params().rank_layers()) {
    bonds.emplace_back();
    for (size_t bond = 0; bond < layer.ranks.size(); ++bond) bonds.back().push_back({0, 1});
  }
  resize_bonds(engine, bonds);
  const int64_t after = engine.planned()[Purpose::activation];
  EXPECT_EQ(engine.memory().now().total(), engine.planned().total());
  EXPECT_LT(static_cast<double>(after), 0.8 * static_cast<double>(before));
}

}  // namespace
}  // namespace comera::test
