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

// Every rule inside GaLore and COAP, in codes where it has some.
std::vector<std::pair<std::string, RunConfig>> refreshed_runs() {
  std::vector<std::pair<std::string, RunConfig>> runs;
  for (const char* optimizer : {"galore", "coap"})
    for (const char* rule : choices_of(std::string(optimizer) == "galore" ? "method.galore.rule" : "method.coap.rule"))
      for (const double beta1 : {0.0, 0.9}) {
        if (beta1 > 0 && std::string(rule).starts_with("adam")) continue;
        RunConfig config = projected_run(optimizer);
        (std::string(optimizer) == "galore" ? config.method.galore.rule : config.method.coap.rule) = rule;
        config.method.adafactor.beta1 = beta1;
        config.method.adam8bit.min_size = 16;
        config.method.coap.restore = true;
        for (const char* update : choices_of("method.update")) {
          config.method.update = update;
          runs.emplace_back(std::string(optimizer) + " around " + rule + (beta1 > 0 ? " with a first moment" : "") + ", " + update, config);
        }
      }
  for (const char* optimizer : {"galore", "q-galore"}) {
    RunConfig config = projected_run(optimizer);
    config.method.galore.decomposition = config.method.q_galore.decomposition = "subspace";
    config.method.galore.rank = config.method.q_galore.rank = 2;
    runs.emplace_back(std::string(optimizer) + " by subspace iteration", config);
  }
  return runs;
}

TEST(Refreshes, TakeWhatWasPlanned) {
  for (const auto& [name, config] : refreshed_runs()) {
    SCOPED_TRACE(name);
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

// Resumed between two refreshes the run ends with the same bytes.
TEST(Refreshes, OfEveryRuleGoOnInTheMiddleOfAnInterval) {
  for (auto [name, config] : refreshed_runs()) {
    SCOPED_TRACE(name);
    config.method.galore.gap = config.method.q_galore.gap = config.method.coap.gap = 6;
    config.method.coap.reset_every = 2;
    config.train.steps = 20;
    const std::string middle = file("middle"), end = file("end"), again = file("again");
    const auto device = open_cpu_device(2);
    TrainObserver silent;
    Trainer whole(config, data_of(config), nullptr, *device, silent);
    whole.start();
    while (!whole.finished()) {
      whole.step();
      if (whole.state().step == 10) whole.save(middle);
    }
    whole.save(end);
    Trainer resumed(checkpoint_config(middle), data_of(config), nullptr, *device, silent);
    resumed.restore(middle);
    while (!resumed.finished()) resumed.step();
    resumed.save(again);
    EXPECT_EQ(difference(end, again), "");
    for (const std::string& path : {middle, end, again}) std::filesystem::remove(path);
  }
}

// A refinement needs more memory than a step, whose temporaries are the projected gradient and its update: a wide layer at a batch of one.
TEST(Refreshes, MayNeedMoreMemoryThanAStep) {
  RunConfig config = scripted(image_config());
  config.method.weights = "dense";
  config.train.batch = 1;
  config.train.eval_every = 0;
  config.model.mlp.hidden = {96, 96};
  config.method.coap.rank = 32;
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
  EXPECT_GT(planned("coap"), planned("adamw") + 3 * 4 * 96 * 32);
}

}  // namespace
}  // namespace comera::test
