// Processes that share the parts of each batch: bit for bit the parameters, losses and events of one process that computes all parts,
// for every method that parts are allowed for.
#include "tests/train/lagging_device.h"
#include "tests/train/process_runs.h"

namespace comera::test {
namespace {

class ProcessesOfMethods : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(ProcessesOfMethods, HaveTheBitsOfOneProcess) {
  const auto& [weights, optimizer] = GetParam();
  RunConfig config = in_parts(text_config(), 3);
  config.method.weights = weights;
  config.method.optimizer = optimizer;
  config.train.clip_norm = 0.5;
  config.model.encoder.attention_dropout = 0.1;
  expect_same_bits(config, {3});
}

INSTANTIATE_TEST_SUITE_P(All, ProcessesOfMethods,
                         testing::Combine(testing::ValuesIn(choices_of("method.weights")),
                                          testing::ValuesIn(choices_of("method.optimizer"))),
                         name_of_choices);

// Every number of processes up to that of parts, also where they do not divide.
TEST(Processes, ShareAnyNumberOfParts) {
  expect_same_bits(in_parts(text_config(), 4), {2, 3, 4});
  expect_same_bits(in_parts(image_config(), 6, 20), {4});
}

TEST(Processes, TrainEveryModel) {
  for (RunConfig config : small_runs()) {
    SCOPED_TRACE(config.model.kind);
    expect_same_bits(in_parts(config, 2, 30), {2});
  }
}

// Ranges of the int8 stash, running statistics of batch norm: each part follows its batch from those of the step's begin.
TEST(Processes, FollowBatchesWithTheStatesOfTheRun) {
  RunConfig quantised = text_config();
  quantised.method.stash = "int8";
  RunConfig normed = convolution_config();
  normed.model.cnn.norm = "batch";
  for (RunConfig config : {quantised, normed}) {
    SCOPED_TRACE(config.model.kind);
    expect_same_bits(in_parts(config, 4, 30), {2, 3, 4});
    config.train.precision = "f64";
    config.method.checkpoint = 1;
    expect_same_bits(in_parts(config, 3, 8), {2});
  }
}

TEST(Processes, TrainATableThatIsUsedTwice) {
  for (const char* weights : {"dense", "tt"})
    for (const int64_t parts : {2, 3, 4}) {
      SCOPED_TRACE(weights);
      RunConfig config = in_parts(language_config(), parts, 20);
      config.method.weights = weights;
      config.model.decoder.tied = true;
      expect_same_bits(config, {2});
    }
}

TEST(Processes, ShareBatchesThatArePacked) {
  for (const bool masked : {false, true}) {
    RunConfig config = in_parts(masked ? task_config("masked") : text_config(), 3, 30);
    config.data.pack = true;
    config.data.token_dropout = masked ? 0 : 0.1;
    expect_same_bits(config, {2, 3});
  }
}

TEST(Processes, TrainWithEveryOtherChoice) {
  const auto with = [](void (*change)(RunConfig&)) {
    RunConfig config = in_parts(text_config(), 2, 30);
    change(config);
    expect_same_bits(config, {2});
  };
  with([](RunConfig& c) { c.method.stash = "bf16"; });
  with([](RunConfig& c) { c.method.waist = true; });
  with([](RunConfig& c) { c.method.checkpoint = 1; });
  with([](RunConfig& c) { c.method.wta.ratio = 0.5; });
  with([](RunConfig& c) { c.method.weight_format = "bf16"; });
  with([](RunConfig& c) { c.method.comera.mode = "paper"; });
  with([](RunConfig& c) { c.method.comera.mode = "selective"; });
  with([](RunConfig& c) { c.train.precision = "f64"; });
  with([](RunConfig& c) { c.train.eval_every = 3, c.train.patience = 2; });
}

TEST(Processes, TrainOnDevicesThatAreLateOrCapture) {
  expect_same_bits(in_parts(text_config(), 4), {2}, [](Communicator*) { return std::make_unique<LaggingDevice>(2); });
  expect_same_bits(in_parts(text_config(), 4, 30), {2, 3}, [](Communicator*) { return std::make_unique<RecordingDevice>(); });
}

// Processes send projected gradients, and the projections that follow from the first part of a batch.
RunConfig with_projected_sums(RunConfig config, const char* optimizer) {
  config.method.weights = "dense";
  config.method.optimizer = optimizer;
  shrink(config.method);
  config.method.galore.sums = config.method.coap.sums = "projected";
  return config;
}

TEST(ProcessesOfProjectedSums, HaveTheBitsOfOneProcess) {
  for (const char* rule : {"adam", "adam8bit", "adafactor"})
    for (const char* optimizer : {"galore", "coap"}) {
      SCOPED_TRACE(std::string(optimizer) + " " + rule);
      RunConfig config = with_projected_sums(in_parts(text_config(), 4, 25), optimizer);
      config.method.galore.rule = config.method.coap.rule = rule;
      config.train.clip_norm = 0.5;
      expect_same_bits(config, {2, 3});
    }
  RunConfig two_sided = with_projected_sums(in_parts(text_config(), 2, 25), "galore");
  two_sided.method.galore.side = "both";
  two_sided.method.galore.refresh = "together";
  expect_same_bits(two_sided, {2});
  RunConfig bf16 = with_projected_sums(in_parts(text_config(), 3, 25), "coap");
  bf16.method.weight_format = "bf16";
  expect_same_bits(bf16, {2});
  expect_same_bits(with_projected_sums(in_parts(convolution_config(), 3, 25), "coap"), {3});
}

TEST(ProcessesOfProjectedSums, OnDevicesThatAreLateOrCapture) {
  for (const char* optimizer : {"galore", "coap"}) {
    const RunConfig config = with_projected_sums(in_parts(text_config(), 3, 25), optimizer);
    expect_same_bits(config, {2}, [](Communicator*) { return std::make_unique<LaggingDevice>(2); });
    expect_same_bits(config, {3}, [](Communicator*) { return std::make_unique<RecordingDevice>(); });
  }
}

// What a process sends in a step is less than half of what whole gradients are, new projections included.
TEST(ProcessesOfProjectedSums, SendLess) {
  int64_t sent[2];
  for (const bool projected : {false, true}) {
    RunConfig config = with_projected_sums(in_parts(text_config(), 2, 25), "galore");
    config.method.galore.gap = 20;
    if (!projected) config.method.galore.sums = "full";
    const auto ends = run_processes(2, [&](Communicator& others) {
      const auto device = open_cpu_device(1);
      const Engine engine(config, *device, &others);
      if (others.process() == 0) sent[projected] = engine.planned_traffic();
    });
    EXPECT_EQ(ends, std::vector<std::string>(ends.size()));
  }
  EXPECT_LT(sent[1], sent[0] / 2);
}

// A gradient that needs several messages.
TEST(Processes, SumLargeGradients) {
  RunConfig config = in_parts(image_config(), 3, 3);
  config.method.weights = "dense";
  config.model.mlp.hidden = {3000, 100};
  expect_same_bits(config, {2, 3});
}

// Heads of LTE whose factors processes send at merges alone.
RunConfig heads_in_parts(int64_t heads, int64_t parts, int64_t steps = 20) {
  RunConfig config = in_parts(text_config(), parts, steps);
  config.method.weights = "lte";
  config.method.lte.heads = heads;
  config.method.lte.rank = 3;
  config.method.lte.merge_every = 3;
  config.train.batch = 24;
  return config;
}

TEST(ProcessesOfHeads, HaveTheBitsOfOneProcess) {
  for (const bool rest : {false, true})
    for (const auto& [heads, parts, counts] :
         {std::tuple<int, int, std::vector<int>>{4, 4, {2, 3, 4}}, {6, 3, {2, 3}}, {2, 4, {2, 3}}, {4, 3, {2}}}) {
      SCOPED_TRACE(std::to_string(heads) + " heads, " + std::to_string(parts) + " parts" + (rest ? ", and the rest" : ""));
      RunConfig config = heads_in_parts(heads, parts);
      config.method.lte.rest = config.method.lte.reset = rest;
      expect_same_bits(config, counts);
    }
}

TEST(ProcessesOfHeads, OnDevicesThatAreLateOrCapture) {
  expect_same_bits(heads_in_parts(4, 4), {2, 4}, [](Communicator*) { return std::make_unique<LaggingDevice>(2); });
  expect_same_bits(heads_in_parts(4, 4), {2, 4}, [](Communicator*) { return std::make_unique<RecordingDevice>(); });
}

TEST(ProcessesOfHeads, SendFactorsAtMergesAlone) {
  const auto planned = [](const RunConfig& config) {
    return run_processes(2, [&](Communicator& others) {
      const auto device = open_cpu_device(1);
      const Engine engine(config, *device, &others);
      int64_t factors = 0, sum = 0;
      for (const Param& param : engine.params().params())
        if (param.trainable && param.name.find(".lte.") != std::string::npos) factors += param.value.bytes();
      const int64_t usual = engine.planned_traffic(1);
      for (int64_t step = 1; step <= 3; ++step) sum += engine.planned_traffic(step);
      EXPECT_EQ(engine.planned_traffic(2), usual);
      EXPECT_EQ(engine.planned_traffic(), sum / 3);
      EXPECT_EQ(engine.planned_traffic(3) - usual, engine.has_blocks() ? factors / 2 : 0) << "its own half";
      throw std::runtime_error(engine.has_blocks() ? "at merges" : "in every step");
    })[0];
  };
  RunConfig config = heads_in_parts(4, 2);
  EXPECT_EQ(planned(config), "at merges");
  config.method.optimizer = "lomo";
  EXPECT_EQ(planned(config), "at merges");
  config.train.clip_norm = 1;
  EXPECT_EQ(planned(config), "in every step") << "the norm of all gradients";
  config.train.clip_norm = 0;
  config.method.optimizer = "adafactor";
  EXPECT_EQ(planned(config), "in every step") << "states of all heads";
  config.method.optimizer = "adamw";
  config.method.lte.heads = 3;
  EXPECT_EQ(planned(config), "in every step") << "every part is of every head";
}

// From a checkpoint of any number of processes any other number goes on.
void expect_to_go_on(const RunConfig& config) {
  const Trained alone = trained(config, "alone", nullptr);
  const auto half = file("half"), end = file("end");
  const auto one_process = [&](Communicator* others, int64_t from, int64_t until, const std::string& begin, const std::string& to) {
    const auto device = open_cpu_device(1);
    Course course;
    Trainer trainer(from > 0 ? checkpoint_config(begin) : config, data_of(config), data_of(config), *device, course, others);
    if (from > 0)
      trainer.restore(begin);
    else
      trainer.start();
    while (trainer.state().step < until) one_step(trainer);
    !others || others->process() == 0 ? trainer.save(to) : trainer.collect();
  };
  const auto processes = [&](int count, int64_t from, int64_t until, const std::string& begin, const std::string& to) {
    if (count == 1) return one_process(nullptr, from, until, begin, to);
    const auto ends = run_processes(count, [&](Communicator& others) { one_process(&others, from, until, begin, to); });
    EXPECT_EQ(ends, std::vector<std::string>(ends.size()));
  };
  for (const auto& [before, after] : {std::pair(1, 2), std::pair(2, 1), std::pair(2, 3), std::pair(4, 3)}) {
    SCOPED_TRACE(std::to_string(before) + " to " + std::to_string(after));
    processes(before, 0, config.train.steps / 2 - 1, "", half);
    processes(after, config.train.steps / 2 - 1, config.train.steps, half, end);
    EXPECT_EQ(difference(alone.checkpoint, end), "");
  }
  for (const std::string& path : {alone.checkpoint, half, end}) std::filesystem::remove(path);
}

TEST(Processes, ResumeARunOfAnotherNumber) { expect_to_go_on(in_parts(text_config(), 4)); }
TEST(ProcessesOfHeads, ResumeARunOfAnotherNumberBetweenMerges) { expect_to_go_on(heads_in_parts(4, 4, 24)); }

std::vector<std::string> ends_of(int count, const std::function<RunConfig(int)>& config,
                                 const std::function<void(Trainer&, int)>& before_step = {},
                                 const std::shared_ptr<const Dataset>& other = {}) {
  return run_processes(count, [&](Communicator& others) {
    const auto device = open_cpu_device(1);
    Log log;
    const RunConfig own = config(others.process());
    Trainer trainer(own, other && others.process() == 1 ? other : data_of(own), nullptr, *device, log, &others);
    trainer.start();
    for (int step = 0; step < 3; ++step) {
      if (before_step) before_step(trainer, others.process());
      trainer.step();
    }
  });
}

TEST(Processes, AreRefusedWhereTheyCannotHaveTheBitsOfOne) {
  const auto refused = [](int count, const RunConfig& config) {
    const auto ends = ends_of(count, [&](int) { return config; });
    EXPECT_EQ(ends, std::vector<std::string>(ends.size(), ends[0]));
    return ends[0];
  };
  const RunConfig config = in_parts(text_config(), 2);
  EXPECT_EQ(refused(3, config), "3 processes cannot share a batch of 2 parts");
}

class OtherSentences final : public Dataset {
 public:
  OtherSentences() : info_(set_.info()) { info_.fingerprint = "others"; }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t length, Columns& out) const override { set_.read(row, length, out); }

 private:
  Sentences set_;
  DatasetInfo info_;
};

TEST(Processes, AreRefusedWithOtherDataOrSettings) {
  const RunConfig config = in_parts(text_config(), 2);
  EXPECT_EQ(ends_of(
                2, [&](int) { return config; }, {}, std::make_shared<OtherSentences>()),
            std::vector<std::string>(2, "process 1 has other data than process 0"));
  const auto ends = ends_of(2, [&](int process) {
    RunConfig own = config;
    own.train.lr = process == 0 ? 1e-3 : 2e-3;
    return own;
  });
  EXPECT_EQ(ends, std::vector<std::string>(2, "process 1 has other settings than process 0"));
}

// In the middle of a run, between steps or while a batch is read.
TEST(Processes, EndTogetherWhenOneFails) {
  class Damaged final : public Dataset {
   public:
    const DatasetInfo& info() const override { return set_.info(); }
    void read(int64_t row, int64_t length, Columns& out) const override {
      if (++reads_ > 6) throw Error(ErrorCode::config, "row " + std::to_string(row) + " is damaged");
      set_.read(row, length, out);
    }

   private:
    Sentences set_;
    mutable int reads_ = 0;
  };
  const RunConfig config = in_parts(text_config(), 3);
  auto ends = ends_of(
      3, [&](int) { return config; }, {}, std::make_shared<Damaged>());
  EXPECT_TRUE(ends[1].starts_with("row ")) << ends[1];
  for (const size_t other : {0, 2}) EXPECT_EQ(ends[other], "process 1: " + ends[1]);
  for (const int failing : {0, 2}) {
    ends = ends_of(
        3, [&](int) { return config; },
        [&](Trainer& trainer, int process) {
          if (process == failing && trainer.state().step == 2) throw Error(ErrorCode::device, "the device is lost");
        });
    for (int p = 0; p < 3; ++p)
      EXPECT_EQ(ends[static_cast<size_t>(p)],
                (failing == 0 || p == failing ? "" : "process " + std::to_string(failing) + ": ") + std::string("the device is lost"));
  }
}

}  // namespace
}  // namespace comera::test
