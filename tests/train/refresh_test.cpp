// Refreshes of projections in whole runs: their temporaries and the working memory of LAPACK are in the plan.
#include "tests/config/choices.h"
#include "tests/train/course.h"

namespace comera::test {
namespace {

RunConfig projected_run(const char* optimizer) {
  RunConfig config = scripted(text_config());
  config.method.weights = "dense";
  config.method.optimizer = optimizer;
  return config;
}

TEST(Refreshes, TakeWhatWasPlanned) {
  for (const char* optimizer : {"galore", "coap"}) {
    SCOPED_TRACE(optimizer);
    RunConfig config = projected_run(optimizer);
    config.method.coap.restore = true;
    const auto device = open_cpu_device(2);
    Log log;
    Trainer trainer(config, data_of(config), nullptr, *device, log);
    const MemoryByPurpose planned = trainer.engine().planned();
    trainer.start();
    EXPECT_GT(device->workspace_bytes(), 0);
    for (int64_t step = 1; step <= 16; ++step) trainer.step();
    EXPECT_EQ(trainer.engine().memory().now().bytes, planned.bytes);
    EXPECT_EQ(trainer.engine().planned().bytes, planned.bytes);
    EXPECT_EQ(device->ops().workspace.own_bytes(), 0) << "beside what the plan lends";
  }
}

// A gradient that needs more memory for its refinement than any step does: a wide layer at a batch of one.
TEST(Refreshes, MayNeedMoreMemoryThanAStep) {
  RunConfig config = scripted(image_config());
  config.method.weights = "dense";
  config.train.batch = 1;
  config.train.eval_every = 0;
  config.model.mlp.hidden = {96, 96};
  const auto planned = [&](const char* optimizer) {
    config.method.optimizer = optimizer;
    const auto device = open_cpu_device(1);
    Log log;
    Trainer trainer(config, data_of(config), nullptr, *device, log);
    trainer.start();
    for (int64_t step = 1; step <= 8; ++step) trainer.step();
    EXPECT_EQ(trainer.engine().memory().now().total(), trainer.engine().planned().total());
    return trainer.engine().planned()[Purpose::workspace] - device->workspace_bytes();
  };
  EXPECT_GT(planned("coap"), planned("adamw") + 2 * 4 * 96 * 96);
}

}  // namespace
}  // namespace comera::test
