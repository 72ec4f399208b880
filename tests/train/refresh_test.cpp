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
  for (const char* optimizer : {"galore"}) {
    SCOPED_TRACE(optimizer);
    RunConfig config = projected_run(optimizer);
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

}  // namespace
}  // namespace comera::test
