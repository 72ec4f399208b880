// Masked language models compute their head for the tokens that count: the same step as with every token, in less memory.
#include <cmath>

#include "core/train/engine.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

RunConfig masked_config() {
  RunConfig config = task_config("masked");
  config.method.weights = "dense";
  config.train.precision = "f64";
  config.train.batch = 16;
  config.model.encoder.dropout = config.model.encoder.attention_dropout = 0;
  return config;
}

Batch masked_batch(const RunConfig& config) {
  BatchOptions options = batch_options(config);
  options.mask_share = config.mask_share();
  Batch batch;
  make_batch(*data_of(config), options, 0, batch);
  return batch;
}

StepScalars masked_scalars(const RunConfig& config, uint64_t step) {
  StepScalars scalars;
  scalars.step = scalars.optimizer_step = step;
  for (double& rate : scalars.learning_rate) rate = config.train.lr;
  return scalars;
}

double largest_gap(const std::vector<double>& a, const std::vector<double>& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

struct MaskedSteps {
  std::vector<StepResults> results;
  std::map<std::string, std::vector<double>> values;
  int64_t planned = 0;
};

MaskedSteps masked_steps(const RunConfig& config, const Batch& batch, bool every_token) {
  const auto device = open_cpu_device(2);
  Engine engine(config, *device);
  if (every_token) engine.keep_token_outputs();
  engine.allocate();
  MaskedSteps out;
  out.planned = engine.planned().total();
  EXPECT_EQ(engine.memory().now().total(), out.planned);
  for (uint64_t step = 1; step <= 3; ++step) out.results.push_back(engine.step(batch, masked_scalars(config, step)));
  for (Param& param : engine.params().params()) out.values[param.name] = to_host(*device, param.value);
  return out;
}

TEST(CountedTokens, MakeTheStepOfEveryToken) {
  for (const bool tied : {false, true}) {
    RunConfig config = masked_config();
    config.model.encoder.tied = tied;
    const Batch batch = masked_batch(config);
    const MaskedSteps some = masked_steps(config, batch, false), all = masked_steps(config, batch, true);
    EXPECT_LT(some.planned, all.planned);
    for (size_t i = 0; i < some.results.size(); ++i) {
      EXPECT_GT(some.results[i].examples, 0);
      EXPECT_EQ(some.results[i].examples, all.results[i].examples);
      EXPECT_EQ(some.results[i].correct, all.results[i].correct);
      EXPECT_NEAR(some.results[i].ce, all.results[i].ce, 1e-12);
    }
    for (const auto& [name, values] : some.values) EXPECT_LT(largest_gap(values, all.values.at(name)), 1e-12) << name;
  }
}

// The loss of a guess that prefers no token is log V.
TEST(CountedTokens, BeginWithoutAPreference) {
  for (const bool tied : {false, true}) {
    RunConfig config = masked_config();
    config.model.encoder.tied = tied;
    config.model.encoder.d_model = 64;
    const MaskedSteps steps = masked_steps(config, masked_batch(config), false);
    EXPECT_NEAR(steps.results[0].ce, std::log(static_cast<double>(config.model.encoder.vocab)), 1) << tied;
  }
}

TEST(CountedTokens, BeyondTheCapacityDoNotCount) {
  const RunConfig config = masked_config();
  ASSERT_LT(config.counted_capacity(), config.token_capacity());
  Batch batch = masked_batch(config);
  std::fill(batch.ints.at("labels").begin(), batch.ints.at("labels").end(), 7);
  const MaskedSteps some = masked_steps(config, batch, false);
  EXPECT_EQ(some.results[0].examples, static_cast<double>(config.counted_capacity()));
}

TEST(CountedTokens, HaveRoomForSixStandardDeviations) {
  RunConfig config = masked_config();
  config.train.batch = 1000;
  config.model.length = 10;
  config.data.mask_share = 0.1;
  EXPECT_EQ(config.counted_capacity(), 1000 + 6 * 30);  // sqrt(10,000 x 0.1 x 0.9) = 30
  config.data.mask_share = 1;
  EXPECT_EQ(config.counted_capacity(), config.token_capacity());
  config.model.task = "classification";
  EXPECT_EQ(config.counted_capacity(), config.token_capacity());
}

}  // namespace
}  // namespace comera::test
