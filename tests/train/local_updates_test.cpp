// Processes that make steps of their own and continue with the mean of their weights (train.sync_every).
#include "core/comm/process_threads.h"
#include "tests/ops/cases/recording_device.h"
#include "tests/train/course.h"
#include "tests/train/lagging_device.h"

namespace comera::test {
namespace {

RunConfig local(RunConfig config, int64_t processes, int64_t every, int64_t steps = 20) {
  config.train.steps = steps;
  config.train.batch = 12;
  config.train.micro_batches = processes;
  config.train.sync_every = every;
  config.train.eval_every = 0;
  return config;
}

using Values = std::map<std::string, std::vector<double>>;
Values weights_of(Trainer& trainer) {
  Values all;
  for (const Param& param : trainer.engine().params().params()) all[param.name] = to_host(trainer.engine().device(), param);
  return all;
}

void expect_near(const Values& a, const Values& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (const auto& [name, values] : a)
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], b.at(name)[i], tolerance) << name;
}

// Each process in a thread: `visit` after every step, from a checkpoint or the start.
using Visit = std::function<void(Trainer&, Communicator&)>;
void train_locally(
    const RunConfig& config, const Visit& visit, const std::string& from = "", bool scripted_edits = true,
    const std::function<std::unique_ptr<Device>()>& open = [] { return open_cpu_device(1); }) {
  const auto ends = run_processes(static_cast<int>(config.train.micro_batches), [&](Communicator& others) {
    const auto device = open();
    Log log;
    Trainer trainer(config, data_of(config), data_of(config), *device, log, &others);
    const int64_t planned = trainer.engine().planned().total();
    from.empty() ? trainer.start() : trainer.restore(from);
    if (from.empty()) {
      EXPECT_EQ(trainer.engine().memory().now().total(), planned);
    }
    while (!trainer.finished()) {
      scripted_edits ? one_step(trainer) : trainer.step();
      visit(trainer, others);
    }
  });
  EXPECT_EQ(ends, std::vector<std::string>(ends.size()));
}

std::string end_of(const RunConfig& config, const std::string& name, const std::string& from = "") {
  const std::string path = file(name);
  train_locally(
      config,
      [&](Trainer& trainer, Communicator& others) {
        if (trainer.finished() && others.process() == 0) trainer.save(path);
      },
      from);
  return path;
}

// With plain gradient descent and the mean after every step: scores take one.
TEST(LocalUpdates, WithAMeanInEveryStepAreStepsOfTheWholeBatch) {
  RunConfig config = local(text_config(), 3, 1);
  config.train.precision = "f64";
  config.train.eval_every = 1;
  config.train.lr = config.train.lr_core = 0.05;
  config.method.weights = "dense";
  config.method.optimizer = "lomo";
  config.method.update = "after";
  Values whole, mean;
  train_locally(config, [&](Trainer& trainer, Communicator& others) {
    if (trainer.finished() && others.process() == 0) whole = weights_of(trainer);
  });
  config.train.sync_every = 100;
  train_locally(config, [&](Trainer& trainer, Communicator& others) {
    EXPECT_TRUE(trainer.averaged());
    if (trainer.finished() && others.process() == 0) mean = weights_of(trainer);
  });
  expect_near(whole, mean, 1e-12);
  config.train.eval_every = 0;
  train_locally(config, [&](Trainer& trainer, Communicator& others) {
    if (trainer.finished() && others.process() == 0) mean = weights_of(trainer);
  });
  double most = 0;
  for (const auto& [name, values] : mean)
    for (size_t i = 0; i < values.size(); ++i) most = std::max(most, std::abs(values[i] - whole.at(name)[i]));
  EXPECT_GT(most, 1e-6) << "one mean at the end is another run";
}

TEST(LocalUpdates, GoOnWithTheMean) {
  RunConfig config = local(image_config(), 3, 4, 12);
  config.method.weights = "dense";
  std::vector<Values> all(3);
  std::mutex mutex;
  const auto check = [&](Trainer& trainer, Communicator& others) {
    const bool due = trainer.state().step % 4 == 0;
    EXPECT_EQ(trainer.averaged(), due);
    EXPECT_EQ(trainer.engine().shared_step().sent_bytes, trainer.engine().planned_traffic(trainer.state().step));
    EXPECT_EQ(trainer.engine().shared_step().sent_bytes > 0, due);
    {
      const std::lock_guard lock(mutex);
      all[static_cast<size_t>(others.process())] = weights_of(trainer);
    }
    others.exchange("");
    if (others.process() == 0) {
      EXPECT_EQ(all[0] == all[1] && all[1] == all[2], due) << trainer.state().step;
    }
    others.exchange("");
  };
  train_locally(config, check, "", false);
}

TEST(LocalUpdates, AreTheSameOnDevicesThatAreLateOrCapture) {
  RunConfig config = local(text_config(), 2, 4);
  config.method.weights = "dense";  // whose ranks nothing is decided by, which a late device does later
  const std::string expected = end_of(config, "local-cpu");
  const auto same_on = [&](const std::function<std::unique_ptr<Device>()>& open) {
    const std::string end = file("local-device");
    train_locally(
        config,
        [&](Trainer& trainer, Communicator& others) {
          if (trainer.finished() && others.process() == 0) trainer.save(end);
        },
        "", true, open);
    EXPECT_EQ(difference(expected, end), "");
    std::filesystem::remove(end);
  };
  same_on([] { return std::make_unique<LaggingDevice>(2); });
  same_on([] { return std::make_unique<RecordingDevice>(); });
  std::filesystem::remove(expected);
}

// Cuts, growth, the late stage and every live edit (one_step): what one decides all decide.
TEST(LocalUpdates, DecideAlikeAndResumeBitForBit) {
  RunConfig with_states = convolution_config();
  with_states.model.cnn.norm = "batch";
  with_states.method.stash = "int8";
  for (RunConfig config : {text_config(), image_config(), with_states}) {
    SCOPED_TRACE(config.model.kind);
    config = scripted(local(config, 2, 7, kSteps));
    config.train.sync_every = 7;
    config.train.eval_every = 10;
    const std::string half = file("local-half");
    std::vector<std::string> ends{file("local-0"), file("local-1")};
    train_locally(config, [&](Trainer& trainer, Communicator& others) {
      if (trainer.state().step == 35 && others.process() == 0) trainer.save(half);
      if (trainer.finished()) trainer.save(ends[static_cast<size_t>(others.process())]);
    });
    EXPECT_EQ(difference(ends[0], ends[1]), "");
    ends.push_back(end_of(checkpoint_config(half), "local-again", half));
    EXPECT_EQ(difference(ends[0], ends[2]), "");
    for (const std::string& path : ends) std::filesystem::remove(path);
    std::filesystem::remove(half);
  }
}

class LocalUpdatesOfMethods : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(LocalUpdatesOfMethods, GoOnFromACheckpoint) {
  const auto& [weights, optimizer] = GetParam();
  RunConfig config = local(text_config(), 2, 3, 12);
  config.method.weights = weights;
  config.method.optimizer = optimizer;
  config.train.clip_norm = 0.5;
  if (config.method.weights == "lte") {
    EXPECT_EQ(config_problems(config).at(0).path, "train.sync_every");
    return;
  }
  const std::string half = file("method-half"), end = file("method-end");
  train_locally(config, [&](Trainer& trainer, Communicator& others) {
    if (trainer.state().step == 6 && others.process() == 0) trainer.save(half);
    if (trainer.finished() && others.process() == 0) trainer.save(end);
  });
  const std::string again = end_of(checkpoint_config(half), "method-again", half);
  EXPECT_EQ(difference(end, again), "");
  for (const std::string& path : {half, end, again}) std::filesystem::remove(path);
}

INSTANTIATE_TEST_SUITE_P(All, LocalUpdatesOfMethods,
                         testing::Combine(testing::ValuesIn(choices_of("method.weights")),
                                          testing::ValuesIn(choices_of("method.optimizer"))),
                         name_of_choices);

TEST(LocalUpdates, NeedAProcessForEachPart) {
  const RunConfig config = local(text_config(), 2, 4);
  const auto device = open_cpu_device(1);
  Log log;
  Trainer alone(config, data_of(config), nullptr, *device, log);
  alone.start();
  try {
    alone.step();
    ADD_FAILURE() << "a step of one process";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "one process cannot make the steps of 2");
    EXPECT_NE(error.hint().find("start 2 processes"), std::string::npos);
  }
  RunConfig parts = local(text_config(), 4, 4);
  const auto ends = run_processes(2, [&](Communicator& others) { const Engine engine(parts, *open_cpu_device(1), &others); });
  EXPECT_EQ(ends[0], "2 processes cannot average the weights of 4 parts of a batch");
  RunConfig one = local(text_config(), 1, 4, 3);
  Trainer trainer(one, data_of(one), nullptr, *device, log);
  trainer.start();
  while (!trainer.finished()) trainer.step();
  RunConfig coded = local(text_config(), 2, 4);
  coded.method.weight_format = "bf16";
  EXPECT_EQ(config_problems(coded).at(0).path, "train.sync_every");
}

}  // namespace
}  // namespace comera::test
