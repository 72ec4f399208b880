// Parameters that are updated while backward runs: the bits of an update behind it, without memory for their gradients.
#include "tests/config/choices.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

struct UpdatedRun {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> values;
  int64_t gradients = 0, rank_gradients = 0;  // bytes
};

UpdatedRun updated_run(const RunConfig& config) {
  const auto device = open_cpu_device(2);
  Log log;
  Trainer trainer(config, data_of(config), nullptr, *device, log);
  trainer.start();
  const MemoryByPurpose planned = trainer.engine().planned();
  EXPECT_EQ(planned.total(), trainer.engine().memory().now().total());
  for (int step = 0; step < 24; ++step) trainer.step();
  UpdatedRun out{log.losses, {}, planned[Purpose::gradient], 0};
  for (Param& param : trainer.engine().params().params()) {
    out.values[param.name] = to_host(*device, param.value);
    if (param.kind == ParamKind::rank_vector) out.rank_gradients += Arena::aligned(param.value.bytes());
  }
  return out;
}

class BackwardUpdate : public testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {};

TEST_P(BackwardUpdate, HasTheBitsOfOneBehindBackward) {
  const auto& [model, weights, optimizer] = GetParam();
  RunConfig config = std::string(model) == "mlp" ? image_config() : text_config();
  config.method.weights = weights;
  config.method.optimizer = optimizer;
  config.method.comera.late_after = 12;
  shrink(config.method);  // projections are refreshed several times
  // What backward computes again is computed from values that are not updated yet.
  for (const auto& [stash, waist, checkpoint] :
       {std::tuple("exact", false, 0), {"int8", false, 0}, {"exact", true, 0}, {"int8", true, 1}}) {
    config.method.stash = stash;
    config.method.waist = waist;
    config.method.checkpoint = checkpoint;
    config.method.update = "backward";
    const UpdatedRun during = updated_run(config);
    config.method.update = "after";
    const UpdatedRun after = updated_run(config);
    EXPECT_EQ(during.losses, after.losses) << stash << waist;
    EXPECT_EQ(during.values, after.values) << stash << waist;
    EXPECT_LE(during.gradients, during.rank_gradients) << "of rank vectors alone";
    EXPECT_GT(after.gradients, during.gradients);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BackwardUpdate,
                         testing::Combine(testing::Values("mlp", "encoder"), testing::ValuesIn(choices_of("method.weights")),
                                          testing::ValuesIn(choices_of("method.optimizer"))),
                         name_of_choices);

// The loss is looked at behind backward: nobody can say which value was bad first.
TEST(BackwardUpdateConfig, ADivergedStepSaysThatItChangedTheWeights) {
  RunConfig config = image_config();
  config.method.weights = "dense";
  config.method.update = "backward";
  config.train.lr = 1e30;
  const auto device = open_cpu_device(1);
  Log log;
  Trainer trainer(config, data_of(config), nullptr, *device, log);
  trainer.start();
  try {
    while (!trainer.finished()) trainer.step();
    ADD_FAILURE() << "it did not diverge";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::diverged);
    EXPECT_EQ(error.why(), "it has already updated the weights");
  }
}

TEST(BackwardUpdateConfig, IsRefusedWhereItMakesNoSense) {
  const auto refused = [](auto change) {
    RunConfig config = image_config();
    config.method.update = "backward";
    change(config);
    const std::vector<Problem> problems = config_problems(config);
    return problems.size() == 1 && problems[0].path == "method.update";
  };
  EXPECT_FALSE(refused([](RunConfig&) {}));
  EXPECT_TRUE(refused([](RunConfig& c) { c.train.micro_batches = 2; }));
  EXPECT_TRUE(refused([](RunConfig& c) { c.train.clip_norm = 1; }));
  EXPECT_TRUE(refused([](RunConfig& c) { c.method.comera.mode = "paper"; }));
}

}  // namespace
}  // namespace comera::test
