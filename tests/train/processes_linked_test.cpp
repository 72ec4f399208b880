// Processes whose devices are linked: they sum gradients on the devices, with the bits of one process, in exactly the planned memory, and
// send exactly what is planned.
#include "core/comm/planned_processes.h"
#include "tests/train/process_runs.h"

namespace comera::test {
namespace {

std::unique_ptr<Device> linked(Communicator* others) {
  if (!others) return std::make_unique<RecordingDevice>();
  return std::make_unique<LinkedDevice>(*others);
}

// Rounds: one; two; a first, one between and a last; also where the last one has fewer parts than there are processes.
TEST(LinkedDevices, HaveTheBitsOfOneProcess) {
  RunConfig config = in_parts(text_config(), 4);
  config.train.clip_norm = 0.5;
  config.model.encoder.attention_dropout = 0.1;
  expect_same_bits(config, {2, 3, 4}, linked);
  expect_same_bits(in_parts(image_config(), 6, 25), {2, 4}, linked);
}

TEST(LinkedDevices, TrainEveryModelInBothPrecisions) {
  for (RunConfig config : small_runs()) {
    SCOPED_TRACE(config.model.kind);
    config.method.stash = "int8";
    for (const char* precision : {"f32", "f64"}) {
      config.train.precision = precision;
      expect_same_bits(in_parts(config, 3, 8), {2, 3}, linked);
    }
  }
}

// Projections go through the hosts.
TEST(LinkedDevices, SumProjectedGradients) {
  for (const char* optimizer : {"galore", "coap"}) {
    RunConfig config = in_parts(text_config(), 3, 20);
    config.method.weights = "dense";
    config.method.optimizer = optimizer;
    shrink(config.method);
    config.method.galore.sums = config.method.coap.sums = "projected";
    expect_same_bits(config, {2, 3}, linked);
  }
}

// Its two gradients are summed part by part. Between runs of gradients that are used once, slices are short, and some are empty.
TEST(LinkedDevices, TrainATableThatIsUsedTwice) {
  for (const int64_t parts : {3, 5}) {
    RunConfig config = in_parts(language_config(), parts, 12);
    config.train.batch = 15;
    config.method.weights = "dense";
    config.model.decoder.tied = true;
    expect_same_bits(config, {2, 3}, linked);
  }
}

TEST(LinkedDevices, SumGradientsThatNeedSeveralMessages) {
  RunConfig config = in_parts(image_config(), 3, 4);
  config.method.weights = "dense";
  config.model.mlp.hidden = {3000, 1100};
  expect_same_bits(config, {2, 3}, linked);
}

// Of a network whose matrices are each enough for messages of their own: those of the last are under way while gradients of the first are
// computed. A process with two parts sums behind its backward passes, which go on alone.
TEST(LinkedDevices, SumWhileTheBackwardPassGoesOn) {
  for (const int64_t parts : {2, 4}) {
    RunConfig config = in_parts(image_config(), parts, 3);
    config.method.weights = "dense";
    config.model.mlp.hidden = {600, 600, 600};
    config.train.cuda_graph = false;
    const auto ends = run_processes(2, [&](Communicator& others) {
      LinkedDevice device(others);
      link_devices(device, others);
      Log log;
      Trainer trainer(config, data_of(config), nullptr, device, log, &others);
      trainer.start();
      trainer.step();
      EXPECT_EQ(device.calls_meanwhile > 10, parts == 2) << device.calls_meanwhile;
    });
    EXPECT_EQ(ends, std::vector<std::string>(2));
  }
}

// Where a process is profiled all compute op by op, also those that are not, and know how long each of them computed.
TEST(LinkedDevices, AreAllTimedWhereOneIsProfiled) {
  const RunConfig config = in_parts(image_config(), 2, 12);
  std::vector<double> losses[2][2];
  for (const bool profiled : {false, true}) {
    const auto ends = run_processes(2, [&](Communicator& others) {
      LinkedDevice device(others);
      link_devices(device, others);
      Log log;
      Trainer trainer(config, data_of(config), nullptr, device, log, &others);
      trainer.start();
      OpProfile profile;
      for (int step = 0; step < 12; ++step) {  // on its way: eager runs, captures, replays
        const bool now = profiled && (step < 4 || step > 7);
        trainer.engine().profile(now && others.process() == 1 ? &profile : nullptr);
        const int64_t before = device.eager_calls;
        trainer.step();
        if (step > 3) {
          EXPECT_EQ(device.eager_calls > before + 5, now);
        }
        if (now && others.process() == 1) {
          EXPECT_GT(trainer.engine().times().others, 0);
        }
      }
      trainer.drain();
      trainer.engine().profile(nullptr);
      losses[profiled][others.process()] = log.losses;
    });
    EXPECT_EQ(ends, std::vector<std::string>(2));
  }
  EXPECT_EQ(losses[0][0].size(), 12u);
  for (const auto& all : losses)
    for (const auto& one : all) EXPECT_EQ(one, losses[0][0]);
}

// Their messages are in captured programs: in the backward pass, or one for each kind of round; in none where nothing is captured.
TEST(LinkedDevices, ReplayTheirMessages) {
  for (const int64_t parts : {2, 4, 6}) {
    RunConfig config = in_parts(image_config(), parts, 8);
    config.method.weights = "dense";
    for (const bool captured : {true, false}) {
      config.train.cuda_graph = captured;
      int64_t captures[2] = {}, calls[2] = {};
      for (const bool links : {false, true}) {
        const auto ends = run_processes(2, [&](Communicator& others) {
          LinkedDevice device(others);
          if (links) link_devices(device, others);
          Log log;
          Trainer trainer(config, data_of(config), nullptr, device, log, &others);
          trainer.start();
          for (int step = 0; step < 8; ++step) trainer.step();
          if (others.process() == 1) return;
          captures[links] = trainer.engine().captures();
          calls[links] = device.eager_calls;
        });
        EXPECT_EQ(ends, std::vector<std::string>(2));
      }
      EXPECT_EQ(captures[true] - captures[false], captured && parts > 2 ? std::min<int64_t>(parts / 2, 3) : 0) << parts;
      EXPECT_GT(calls[true], calls[false]);
    }
  }
}

// A plan knows memory and traffic of linked devices without others.
TEST(LinkedDevices, ArePlannedAlone) {
  const RunConfig config = in_parts(text_config(), 4);
  const auto ends = run_processes(2, [&](Communicator& others) {
    LinkedDevice device(others);
    link_devices(device, others);
    ASSERT_NE(device.link(), nullptr);
    EXPECT_EQ(link_name(device, others), "threads 1.0");
    const Engine shared(config, device, &others);
    if (others.process() == 1) return;
    PlannedProcesses planned(2);
    LinkedDevice own(others);
    const Engine alone(config, own, &planned);
    EXPECT_EQ(alone.planned().total(), shared.planned().total());
    EXPECT_EQ(alone.planned_traffic(), shared.planned_traffic());
    EXPECT_GT(alone.planned_traffic(), 0);
  });
  EXPECT_EQ(ends, std::vector<std::string>(2));
}

// One that cannot, another version, one device for two: then all go through their hosts, with the same bits.
TEST(LinkedDevices, AreAllLinkedOrNone) {
  const RunConfig config = in_parts(image_config(), 3, 12);
  const auto lacks = [&](const std::function<LinkEnd(int)>& end) {
    expect_same_bits(config, {3}, [&](Communicator* others) -> std::unique_ptr<Device> {
      if (!others) return std::make_unique<RecordingDevice>();
      auto device = std::make_unique<LinkedDevice>(*others, end(others->process()));
      link_devices(*device, *others);
      EXPECT_EQ(device->link(), nullptr);
      return device;
    });
  };
  lacks([](int process) { return LinkEnd{process == 2 ? "" : "threads 1.0", std::to_string(process)}; });
  lacks([](int process) { return LinkEnd{process == 1 ? "threads 1.1" : "threads 1.0", std::to_string(process)}; });
  lacks([](int process) { return LinkEnd{"threads 1.0", std::to_string(process % 2)}; });
}

// A link is made once, however many trainers follow one another on a device.
TEST(LinkedDevices, AreLinkedOnce) {
  const auto ends = run_processes(2, [&](Communicator& others) {
    LinkedDevice device(others);
    link_devices(device, others);
    const DeviceLink* const link = device.link();
    link_devices(device, others);
    EXPECT_EQ(device.link(), link);
    EXPECT_EQ(device.delivered_bytes, 4);
  });
  EXPECT_EQ(ends, std::vector<std::string>(2));
}

// The others would wait for ever: they are ended, as mpirun does. At the greeting, in a step op by op, and in the one that is captured.
TEST(LinkedDevices, EndAllProcessesWhenAMessageIsLost) {
  const RunConfig config = in_parts(image_config(), 3, 12);
  for (const int64_t at : {0, 2, 5}) {
    const auto ends = run_processes(3, [&](Communicator& others) {
      LinkedDevice device(others);
      if (others.process() == 1) device.fails_at = at;
      link_devices(device, others);
      Log log;
      Trainer trainer(config, data_of(config), nullptr, device, log, &others);
      trainer.start();
      for (int step = 0; step < 12; ++step) trainer.step();
    });
    EXPECT_TRUE(ends[1].starts_with("a message is lost")) << at << ": " << ends[1];
    for (const size_t other : {0, 2}) EXPECT_EQ(ends[other], "the processes were ended") << at;
  }
}

}  // namespace
}  // namespace comera::test
