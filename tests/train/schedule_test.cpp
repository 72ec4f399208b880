// The learning rate of every step, to the bit: warm-up, then a constant, linear or cosine course.
#include <cmath>
#include <vector>

#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

class Rates : public TrainObserver {
 public:
  std::vector<StepRecord> records;
  void on_step(const StepRecord& record) override { records.push_back(record); }
};

constexpr double kCore = 8e-3, kRank = 1e-3, kRest = 4e-3;

// Share of the full rate at steps 1, 2, ...; the three groups follow the same course.
std::vector<double> shares(const std::string& schedule, int64_t warmup, int64_t steps, double final_fraction = 0.2) {
  RunConfig config = image_config();
  config.train.steps = steps;
  config.train.warmup = warmup;
  config.train.schedule = schedule;
  config.train.lr_final_fraction = final_fraction;
  config.train.lr_core = kCore;
  config.train.lr_rank = kRank;
  config.train.lr = kRest;
  const auto device = open_device("cpu", 1);
  Rates rates;
  Trainer trainer(config, std::make_shared<Blobs>(), nullptr, *device, rates);
  trainer.start();
  while (!trainer.finished()) trainer.step();
  std::vector<double> out;
  for (const StepRecord& record : rates.records) {
    const double* rate = record.learning_rate;
    out.push_back(rate[static_cast<int>(ParamGroup::rest)] / kRest);
    EXPECT_DOUBLE_EQ(rate[static_cast<int>(ParamGroup::core)] / kCore, out.back()) << "step " << record.step;
    EXPECT_DOUBLE_EQ(rate[static_cast<int>(ParamGroup::rank)] / kRank, out.back()) << "step " << record.step;
  }
  return out;
}

void expect_shares(const std::vector<double>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_DOUBLE_EQ(actual[i], expected[i]) << "step " << i + 1;
}

TEST(Schedule, WarmUpRisesLinearlyToTheFullRate) {
  expect_shares(shares("constant", 4, 7), {0.25, 0.5, 0.75, 1, 1, 1, 1});
  expect_shares(shares("constant", 0, 3), {1, 1, 1});
  expect_shares(shares("constant", 1, 3), {1, 1, 1});
  expect_shares(shares("linear", 6, 3), {1 / 6.0, 2 / 6.0, 3 / 6.0});  // a run that ends in its warm-up
}

// 8 steps after the warm-up: step 5 has the full rate, step 9 half the way behind it, step 12 seven eighths.
TEST(Schedule, LinearFallsInEqualSteps) {
  expect_shares(shares("linear", 4, 12), {0.25, 0.5, 0.75, 1, 1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3});
  expect_shares(shares("linear", 0, 4, 0), {1, 0.75, 0.5, 0.25});
  expect_shares(shares("linear", 1, 3, 1), {1, 1, 1});
}

TEST(Schedule, CosineFallsSlowlyAtBothEnds) {
  const double quarter = std::sqrt(0.5), eighth = std::sqrt(2 + std::sqrt(2.0)) / 2, odd = std::sqrt(2 - std::sqrt(2.0)) / 2;
  std::vector<double> expected{0.25, 0.5, 0.75, 1};
  for (const double cosine : {1.0, eighth, quarter, odd, 0.0, -odd, -quarter, -eighth}) expected.push_back(0.2 + 0.8 * (1 + cosine) / 2);
  const std::vector<double> actual = shares("cosine", 4, 12);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-15) << "step " << i + 1;
  EXPECT_DOUBLE_EQ(actual[8], 0.6) << "half way, as linear";
  EXPECT_GT(actual[6], 0.8) << "above linear in the first half";
  EXPECT_LT(actual[10], 0.4) << "below it in the second";
}

}  // namespace
}  // namespace comera::test
