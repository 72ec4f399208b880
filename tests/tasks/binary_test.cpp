// AUC, log-loss and accuracy of binary classification.
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/json.h"
#include "core/tasks/task.h"
#include "tests/layers/check_layer.h"

namespace comera::layer_test {
namespace {

ModelConfig binary() {
  ModelConfig config;
  config.task = "binary";
  config.classes = 2;
  return config;
}

std::optional<double> auc_of(const Scores& scores) {
  for (const auto& [name, value] : scores.values().more)
    if (name == "auc") return value;
  return {};
}

// Of rows that come in batches of `size`.
std::optional<double> auc_of(const Values& logits, const std::vector<int32_t>& labels, size_t size = 1000) {
  const auto scores = make_task(binary())->scores();
  for (size_t begin = 0; begin < labels.size(); begin += size) {
    const size_t end = std::min(labels.size(), begin + size);
    Batch batch;
    batch.ints["labels"].assign(labels.begin() + static_cast<long>(begin), labels.begin() + static_cast<long>(end));
    scores->add({}, std::span(logits).subspan(begin, end - begin), batch);
  }
  return auc_of(*scores);
}

// Every pair by itself.
double counted(const Values& logits, const std::vector<int32_t>& labels) {
  double right = 0, pairs = 0;
  for (size_t i = 0; i < labels.size(); ++i)
    for (size_t j = 0; j < labels.size(); ++j)
      if (labels[i] == 1 && labels[j] == 0) {
        right += logits[i] > logits[j] ? 1 : logits[i] == logits[j] ? 0.5 : 0;
        ++pairs;
      }
  return right / pairs;
}

TEST(Auc, IsTheShareOfPairsInTheRightOrder) {
  for (const int values : {2, 5, 40, 100000})  // from many ties to none
    for (const uint64_t seed : {1u, 2u, 3u})
      for (const size_t batch : {1u, 7u, 300u}) {
        Values logits = noise_values(300, seed);
        std::vector<int32_t> labels;
        for (double& logit : logits) {
          labels.push_back(logit < -0.9 ? -1 : static_cast<int32_t>(seed * labels.size() * 7 / 3 % 10 < 4));
          logit = std::floor(logit * values / 2);
        }
        EXPECT_EQ(auc_of(logits, labels, batch), counted(logits, labels)) << values << " values, seed " << seed;
      }
}

TEST(Auc, HandMadeCases) {
  EXPECT_EQ(auc_of({0.1, 0.2, 0.8, 0.9}, {0, 0, 1, 1}), 1.0);
  EXPECT_EQ(auc_of({0.1, 0.2, 0.8, 0.9}, {1, 1, 0, 0}), 0.0);
  EXPECT_EQ(auc_of({3, 3, 3, 3, 3}, {0, 1, 0, 1, 1}), 0.5);
  EXPECT_EQ(auc_of({1, 2, 2, 3}, {0, 0, 1, 1}), 0.875);
  EXPECT_EQ(auc_of({5, 2, 2, 3}, {-1, 0, 1, -1}), 0.5) << "rows without a label";
  EXPECT_EQ(auc_of({-INFINITY, INFINITY}, {0, 1}), 1.0);
}

TEST(Auc, IsNotKnownWithoutBothClassesOrNumbers) {
  EXPECT_EQ(auc_of({1, 2}, {1, 1}), std::nullopt);
  EXPECT_EQ(auc_of({1, 2}, {0, -1}), std::nullopt);
  EXPECT_EQ(auc_of(Values{}, {}), std::nullopt);
  EXPECT_EQ(auc_of({1, NAN}, {0, 1}), std::nullopt);
}

TEST(Auc, MonotonicChangesOfTheLogitsChangeNothing) {
  const Values logits = noise_values(200, 5, 3);
  std::vector<int32_t> labels;
  for (size_t i = 0; i < logits.size(); ++i) labels.push_back(static_cast<int32_t>(i * i % 3 == 1));
  Values other;
  for (const double logit : logits) other.push_back(std::exp(2 * logit) - 100);
  EXPECT_EQ(auc_of(logits, labels), auc_of(other, labels));
}

// scikit-learn's roc_auc_score and log_loss (tests/golden/auc_logloss.json): scores are probabilities, log-losses are in double.
TEST(Binary, ScoresAreThoseOfScikitLearn) {
  const Json cases = read_json_file(std::string(COMERA_SOURCE_DIR) + "/tests/golden/auc_logloss.json");
  int compared = 0;
  for (const Json& each : cases) {
    SCOPED_TRACE(each.at("name").get<std::string>());
    Values logits = each.at("scores");
    for (double& p : logits) p = std::log(p / (1 - p));
    const std::vector<int32_t> labels = each.at("labels");
    const std::unique_ptr<Task> task = make_task(binary());
    const std::unique_ptr<Scores> scores = task->scores();
    Rig rig;
    rig.start();
    DeviceBatch on_device;
    Batch batch;
    on_device["labels"] = rig.put_ids(batch.ints["labels"] = labels);
    const Shape shape{static_cast<int64_t>(labels.size()), 1};
    const Tensor out = rig.put(logits, shape);
    rig.run([&](Ctx& ctx) { task->loss(ctx, out, on_device, ctx.temp(shape, "dout")); });
    scores->add(rig.results, logits, batch);
    if (each.at("auc").is_null()) {
      EXPECT_EQ(auc_of(*scores), std::nullopt);
    } else {
      ASSERT_TRUE(auc_of(*scores).has_value());
      EXPECT_NEAR(*auc_of(*scores), each.at("auc").get<double>(), 1e-12);
    }
    EXPECT_NEAR(scores->values().accuracy, each.at("accuracy").get<double>(), 1e-12);
    if (each.at("log_loss_clip").get<double>() > 0) continue;  // probabilities of 0 and 1 have no logit
    EXPECT_NEAR(scores->values().loss, each.at("log_loss").get<double>(), 1e-12);
    ++compared;
  }
  EXPECT_GE(compared, 8);
}

TEST(Binary, FarLogitsHaveFiniteLossAndGradient) {
  Rig rig;
  rig.start();
  DeviceBatch batch;
  batch["labels"] = rig.put_ids({0, 1, 0, 1});
  const Tensor out = rig.put({1e4, -1e4, -1e4, 1e4}, {4, 1});
  Values gradient;
  rig.run([&](Ctx& ctx) {
    const Tensor dout = ctx.temp({4, 1}, "dout");
    make_task(binary())->loss(ctx, out, batch, dout);
    if (!ctx.ops.dry) gradient = rig.get(dout);
  });
  EXPECT_EQ(rig.results.ce, 5e3);
  EXPECT_EQ(gradient, (Values{0.25, -0.25, 0, 0}));
}

TEST(BinaryTask, TwoClassesOnly) {
  ModelConfig config = binary();
  EXPECT_TRUE(config.problems(false).empty());
  EXPECT_EQ(config.outputs(), 1);
  config.classes = 3;
  const std::vector<Problem> problems = config.problems(false);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "classes");
}

}  // namespace
}  // namespace comera::layer_test
