// Sizes of models: exact counts, presets, and what is said about configs that cannot be.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/layers/tt_linear.h"
#include "tests/models/net.h"

namespace comera::model_test {
namespace {

// A described model: parameters have shapes and no memory.
struct Described {
  explicit Described(const ModelConfig& config, bool tensorise, std::unique_ptr<Stash> keep = make_exact_stash()) : stash(std::move(keep)) {
    LayerFactory factory(params, *stash, tensorise ? WeightForms{make_tt_form(config.tt)} : WeightForms());
    model = build_model(config, factory);
    params.describe(DType::f32);
  }
  int64_t count(ParamKind kind) const {
    int64_t sum = 0;
    for (const Param& param : params.params()) sum += param.kind == kind ? param.count() : 0;
    return sum;
  }
  ParamSet params;
  std::unique_ptr<Stash> stash;
  std::unique_ptr<Model> model;
};

ModelConfig published() {
  ModelConfig config;  // six encoders, 768, 12 heads, 3072
  config.tt.embedding.in_modes = {16, 20, 10, 10};
  config.tt.embedding.out_modes = {4, 4, 8, 6};
  config.tt.embedding.rank = 32;
  return config;
}

ModelConfig preset(const std::string& path) {
  ModelConfig config;
  std::vector<Problem> problems;
  fields_from_json(fields_of(config), read_json_file(path).at("model"), problems);
  throw_problems(problems, path);
  return config;
}

const std::string kPresets = std::string(COMERA_SOURCE_DIR) + "/assets/presets/";

// METHODS.md 1.3.
TEST(Counts, SixEncoders) {
  for (const ModelConfig& config : {published(), preset(kPresets + "encoder6-mnli.json")}) {
    const Described tt(config, true);
    EXPECT_EQ(tt.params.count(), 1490157);
    EXPECT_EQ(tt.count(ParamKind::tt_core), 1026528);
    EXPECT_EQ(tt.count(ParamKind::rank_vector), 4362);
    EXPECT_EQ(tt.params.ranks().count(), 4362);
    EXPECT_EQ(tt.params.dense_equivalent(), 66957315);
    int64_t dense_rest = 0, train_biases = 0;
    for (const Param& param : tt.params.params())
      if (param.kind == ParamKind::bias && param.name.rfind("head", 0) != 0)
        train_biases += param.count();
      else if (param.kind != ParamKind::tt_core && param.kind != ParamKind::rank_vector)
        dense_rest += param.count();
    EXPECT_EQ(train_biases, 42240);
    EXPECT_EQ(dense_rest, 417027);
    EXPECT_EQ(tt.params.rank_layers().size(), 38u);
    const Described dense(config, false);
    EXPECT_EQ(dense.params.count(), 66957315);
    EXPECT_EQ(dense.params.dense_equivalent(), 66957315);
  }
}

// METHODS.md 1.4: the classifier's cores and rank vectors learn at the rate of the rest.
TEST(Counts, LearningRateGroups) {
  const Described tt(published(), true);
  for (const Param& param : tt.params.params()) {
    const bool classifier = param.name.rfind("classifier", 0) == 0;
    const ParamGroup expected = classifier                             ? ParamGroup::rest
                                : param.kind == ParamKind::tt_core     ? ParamGroup::core
                                : param.kind == ParamKind::rank_vector ? ParamGroup::rank
                                                                       : ParamGroup::rest;
    EXPECT_EQ(param.group, expected) << param.name;
  }
}

TEST(Presets, AreSoundAndSmall) {
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kPresets)) {
    if (entry.path().extension() != ".json") continue;
    ++found;
    ModelConfig config = preset(entry.path().string());
    for (const bool tensorise : {false, true}) EXPECT_TRUE(config.problems(tensorise).empty()) << entry.path();
    const Described tt(config, true);
    EXPECT_FALSE(tt.params.rank_layers().empty());
    EXPECT_LT(tt.params.count() * 3, tt.params.dense_equivalent()) << entry.path();
    for (const RankLayer& layer : tt.params.rank_layers()) {  // hardly anything is padded: 5,461 of llama-1b is a product of two primes
      int64_t entries = 1;
      for (int64_t size : layer.mode_sizes) entries *= size;
      if (layer.name == "emb.token" || layer.name.starts_with("table")) continue;  // more rows of a table are a few entries of a core
      EXPECT_GE(entries, layer.dense_entries()) << entry.path() << " " << layer.name;
      EXPECT_LT(static_cast<double>(entries), 1.003 * static_cast<double>(layer.dense_entries())) << entry.path() << " " << layer.name;
    }
  }
  EXPECT_GE(found, 10);
}

// ---- problems -----------------------------------------------------------------------------------------------------
bool says(std::vector<Problem> problems, const std::string& path, const std::string& part) {
  for (const Problem& problem : problems)
    if (problem.path == path && problem.text.find(part) != std::string::npos) return true;
  return false;
}

TEST(ModelConfig, SaysAllThatIsWrongAtOnce) {
  ModelConfig config = toy_encoder();
  EXPECT_TRUE(config.problems(true).empty());
  config.encoder.heads = 5;
  config.encoder.positions = 4;
  config.classes = 1;
  config.tt.attention.in_modes = {3, 5};
  config.tt.embedding.out_modes = {4, 4};
  const std::vector<Problem> problems = config.problems(true);
  EXPECT_TRUE(says(problems, "encoder.heads", "divide d_model 12, is 5"));
  EXPECT_TRUE(says(problems, "encoder.positions", "at least model.length 6, is 4"));
  EXPECT_TRUE(says(problems, "classes", "at least 2, is 1"));
  EXPECT_TRUE(says(problems, "tt.attention.in_modes", "15"));
  EXPECT_TRUE(says(problems, "tt.embedding.out_modes", "16"));
  EXPECT_EQ(config.problems(false).size(), 3u) << "modes do not matter to a dense model";
}

TEST(ModelConfig, OnlyTheHeadOfALanguageModelIsATrain) {
  ModelConfig config;
  config.tt.head.tensorise = true;
  EXPECT_TRUE(says(config.problems(true), "tt.head.tensorise", "the task is classification"));
  EXPECT_TRUE(config.problems(false).empty());
  config.task = "masked";
  config.encoder.tied = false;
  config.encoder.vocab = 8192;
  EXPECT_TRUE(config.problems(true).empty());
}

TEST(ModelConfig, StandsSizesOfZero) {
  for (int64_t EncoderConfig::*size :
       {&EncoderConfig::layers, &EncoderConfig::heads, &EncoderConfig::d_model, &EncoderConfig::d_ff, &EncoderConfig::vocab}) {
    ModelConfig config = toy_encoder();
    config.encoder.*size = 0;
    EXPECT_EQ(config.problems(true).size(), 1u);
  }
  ModelConfig mlp;
  mlp.kind = "mlp";
  mlp.mlp.hidden = {8, 0, 4};
  EXPECT_TRUE(says(mlp.problems(true), "mlp.hidden", "at least 1, is 0"));
  mlp.mlp.hidden = {};
  EXPECT_TRUE(mlp.problems(true).empty());
}

TEST(ModelConfig, SaysAProblemOfSeveralLayersOnce) {
  ModelConfig config;
  config.kind = "mlp";
  config.mlp.hidden = {64, 64, 64};
  config.tt.ffn_in.rank = 0;
  EXPECT_EQ(config.problems(true).size(), 1u);
}

TEST(ModelConfig, FieldsHaveRangesAndChoices) {
  ModelConfig config;
  std::vector<Problem> problems;
  fields_from_json(
      fields_of(config),
      parse_json(R"({"kind": "encoder2", "encoder": {"layers": 0, "dropout": 1.0, "headz": 2}, "mlp": {"activation": "sine"}})", "test"),
      problems);
  EXPECT_EQ(problems.size(), 5u);
  EXPECT_TRUE(says(problems, "kind", "encoder2"));
  const Json written = fields_to_json(fields_of(config));
  ModelConfig again;
  again.encoder.layers = 3;
  problems.clear();
  fields_from_json(fields_of(again), written, problems);
  EXPECT_TRUE(problems.empty());
  EXPECT_EQ(fields_to_json(fields_of(again)), written);
}

TEST(Models, AnUnknownKindIsAnError) {
  ModelConfig config;
  config.kind = "transformer";
  ParamSet params;
  const auto stash = make_exact_stash();
  LayerFactory factory(params, *stash);
  EXPECT_THROW(build_model(config, factory), Error);
}

}  // namespace
}  // namespace comera::model_test
