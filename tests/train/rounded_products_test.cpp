// Runs with products in bf16 on a CPU, where this machine has oneDNN.
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

RunConfig wide_images(const char* matmul) {
  RunConfig config = image_config();
  config.model.mlp.hidden = {96, 80};
  config.method.weights = "dense";
  config.train.batch = 72;
  config.train.steps = 24;
  config.train.matmul = matmul;
  return config;
}

class RoundedRuns : public testing::Test {
 protected:
  void SetUp() override {
    if (const OnednnStatus status = onednn_status(); !status.here) GTEST_SKIP() << "oneDNN is " << status.reason;
  }
};

TEST_F(RoundedRuns, TrainInPlannedMemory) {
  double losses[2];
  int64_t workspaces[2];
  for (const int rounded : {0, 1}) {
    const RunConfig config = wide_images(rounded ? "bf16" : "fp32");
    const auto device = open_cpu_device(2);
    TrainObserver silent;
    Trainer trainer(config, data_of(config), data_of(config), *device, silent);
    const int64_t planned = trainer.engine().planned().total();
    workspaces[rounded] = device->workspace_bytes();
    trainer.start();
    while (!trainer.finished()) trainer.step();
    EXPECT_EQ(trainer.engine().memory().peak().total(), planned);
    EXPECT_EQ(device->ops().workspace.own_bytes(), 0) << "taken beside the plan";
    losses[rounded] = trainer.evaluate().loss;
  }
  EXPECT_EQ(workspaces[1], 2 * 72 * 96 + 2 * 96 * 80) << "both operands of the second layer's product";
  EXPECT_NE(losses[0], losses[1]);
  EXPECT_NEAR(losses[0], losses[1], 0.02);
}

TEST_F(RoundedRuns, AResumedRunIsTheSame) {
  const auto device = open_cpu_device(2), other = open_cpu_device(3);
  expect_the_same_when_resumed(wide_images("bf16"), "rounded", *device, *other);
}

}  // namespace
}  // namespace comera::test
