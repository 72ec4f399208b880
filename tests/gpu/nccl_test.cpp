// Processes whose GPUs NCCL links, threads here: on the GPU in software with a double of NCCL that records its calls (ptx/nccl.h), and on
// as many real GPUs as there are.
#include <cstdlib>

#include "tests/gpu/ptx/nccl.h"
#include "tests/train/process_runs.h"

namespace comera::test {
namespace {

using ptx::NcclDouble;

std::unique_ptr<Device> gpu_of(Communicator* others) { return open_cuda_device(others ? others->process() : 0); }

class CudaNccl : public ::testing::Test {
 protected:
  void SetUp() override {
    gpus_ = static_cast<int>(cuda_status().devices.size());
    if (gpus_ < 1) GTEST_SKIP() << "no CUDA device";
    if (double_) double_->clear();
  }
  void TearDown() override {
    ::unsetenv("COMERA_NCCL");
    if (double_) double_->here = false;
  }

  // Runs of these numbers of processes, each with a GPU of its own, have the bits of one process; what they called is as planned.
  void expect_linked(const RunConfig& config, const std::vector<int>& counts) {
    if (!nccl_status().here) GTEST_SKIP() << nccl_status().reason;
    const Trained alone = trained(config, "alone", nullptr, gpu_of);
    for (const int count : counts) {
      if (count > gpus_) continue;
      SCOPED_TRACE(std::to_string(count) + " processes");
      if (double_) double_->clear();
      std::vector<Trained> shared(static_cast<size_t>(count));
      const auto ends = run_processes(
          count, [&](Communicator& others) { shared[static_cast<size_t>(others.process())] = trained(config, "shared", &others, gpu_of); });
      EXPECT_EQ(ends, std::vector<std::string>(ends.size()));
      for (const Trained& one : shared) {
        EXPECT_TRUE(one.linked);
        expect_equal(alone, one);
        std::filesystem::remove(one.checkpoint);
      }
      if (double_) expect_planned_calls(shared);
    }
    std::filesystem::remove(alone.checkpoint);
  }

  void expect_planned_calls(const std::vector<Trained>& shared) {
    EXPECT_EQ(double_->wrong, std::vector<std::string>());
    const int count = static_cast<int>(shared.size());
    bool any_captured = false;
    for (int p = 0; p < count; ++p) {
      const auto& own = double_->groups[p];
      ASSERT_EQ(own.size(), double_->groups[0].size());
      EXPECT_EQ(double_->sent[p], shared[static_cast<size_t>(p)].sent_bytes + 4 * (count - 1)) << "and its greetings";
      EXPECT_EQ(double_->ended[p], std::vector<std::string>{"destroyed"});
      for (size_t g = 0; g < own.size(); ++g) {
        any_captured |= own[g].captured;
        for (int q = 0; q < count; ++q) {
          std::vector<int64_t> given, taken;
          for (const auto& [to, bytes] : own[g].sent)
            if (to == q) given.push_back(bytes);
          for (const auto& [from, bytes] : double_->groups[q][g].received)
            if (from == p) taken.push_back(bytes);
          EXPECT_EQ(given, taken) << "group " << g << ", from " << p << " to " << q;
        }
      }
    }
    EXPECT_TRUE(any_captured);
  }

  int gpus_ = 0;
  NcclDouble* const double_ = ptx::nccl_double();
};

RunConfig image_run(int64_t parts, int64_t steps = 7) { return in_parts(image_config(), parts, steps); }

TEST_F(CudaNccl, HasTheBitsOfOneProcess) {
  expect_linked(image_run(2), {2});
  expect_linked(image_run(3), {3});
}

// Whose matrices have messages of their own, in the middle of the backward pass.
TEST_F(CudaNccl, HasThemWhereMessagesGoOnMeanwhile) {
  RunConfig config = image_run(2, 4);
  config.method.weights = "dense";
  config.model.mlp.hidden = {520, 520, 520};
  expect_linked(config, {2});
  if (double_) {
    EXPECT_GT(double_->groups[0].size(), 12u) << "a greeting, and three eager or captured passes";
  }
}

TEST_F(CudaNccl, HasThemInSeveralRoundsAndInDouble) {
  RunConfig config = image_run(6, 5);
  config.train.precision = "f64";
  expect_linked(config, {2});
  config.train.precision = "f32";
  config.train.clip_norm = 0.5;
  config.train.micro_batches = 4;
  expect_linked(config, {2, 3});
}

TEST_F(CudaNccl, SumsATableThatIsUsedTwice) {
  RunConfig config = in_parts(language_config(), 3, 4);
  config.method.weights = "dense";
  config.model.decoder.tied = true;
  expect_linked(config, {2, 3});
}

// A profile is taken by process 0 alone, and its steps are computed op by op. Messages must be captured by all processes or by none.
TEST_F(CudaNccl, IsReplayedWhileOneProcessIsProfiled) {
  if (!nccl_status().here || gpus_ < 2) GTEST_SKIP() << "no two GPUs that NCCL links";
  for (const int64_t parts : {2, 4}) {
    const RunConfig config = image_run(parts, 12);
    std::vector<double> losses[2][2];
    for (const bool profiled : {false, true}) {
      const auto ends = run_processes(2, [&](Communicator& others) {
        const std::unique_ptr<Device> device = gpu_of(&others);
        link_devices(*device, others);
        Log log;
        Trainer trainer(config, data_of(config), nullptr, *device, log, &others);
        trainer.start();
        OpProfile profile;
        for (int step = 0; step < 12; ++step) {  // on its way: eager runs, captures, replays
          const bool now = profiled && others.process() == 0 && (step < 4 || step > 7);
          trainer.engine().profile(now ? &profile : nullptr);
          trainer.step();
        }
        trainer.drain();
        trainer.engine().profile(nullptr);
        EXPECT_EQ(profile.ops.empty(), !profiled || others.process() > 0);
        losses[profiled][others.process()] = log.losses;
      });
      EXPECT_EQ(ends, std::vector<std::string>(2));
    }
    EXPECT_EQ(losses[0][0].size(), 12u);
    for (const auto& all : losses)
      for (const auto& one : all) EXPECT_EQ(one, losses[0][0]);
  }
}

// Through the hosts: the same bits.
TEST_F(CudaNccl, IsLeftOutWhereItCannotBeUsed) {
  const RunConfig config = image_run(2, 4);
  const auto not_linked = [&](const Open& open) {
    const Trained alone = trained(config, "alone", nullptr, open);
    std::vector<Trained> shared(2);
    const auto ends = run_processes(
        2, [&](Communicator& others) { shared[static_cast<size_t>(others.process())] = trained(config, "shared", &others, open); });
    EXPECT_EQ(ends, std::vector<std::string>(2));
    for (const Trained& one : shared) {
      EXPECT_FALSE(one.linked);
      expect_equal(alone, one);
    }
    if (double_) {
      EXPECT_TRUE(double_->groups.empty());
    }
  };
  not_linked([](Communicator*) { return open_cuda_device(0); });  // one GPU for two processes
  if (gpus_ < 2) return;
  ::setenv("COMERA_NCCL", "off", 1);
  EXPECT_EQ(nccl_status().reason, "COMERA_NCCL=off");
  not_linked(gpu_of);
  ::unsetenv("COMERA_NCCL");
  if (!double_) return;
  double_->version = 2708;
  EXPECT_FALSE(nccl_status().here);
  EXPECT_EQ(nccl_status().reason, "its version 2.7.8 is not one of 2.9 to 2.99");
  not_linked(gpu_of);
  double_->here = false;
  EXPECT_EQ(nccl_status().reason, "there is no libnccl.so.2");
  not_linked(gpu_of);
}

TEST_F(CudaNccl, SaysWhatFailedAndEndsAllProcesses) {
  if (!double_) GTEST_SKIP() << "NVIDIA's library does not fail when it is asked to";
  for (const int at : {0, 3, 6}) {  // the greeting, a step op by op, the captured one
    double_->clear();
    double_->fails_in = 1;
    double_->fails_at = at;
    const RunConfig config = image_run(2);
    const auto ends = run_processes(2, [&](Communicator& others) { trained(config, "failing", &others, gpu_of); });
    EXPECT_TRUE(ends[1].starts_with("NCCL failed to send")) << at << ": " << ends[1];
    EXPECT_NE(ends[1].find("unhandled system error"), std::string::npos) << ends[1];
    EXPECT_EQ(ends[0], at == 0 ? "messages between devices do not arrive as they were sent" : "the processes were ended") << at;
    EXPECT_EQ(double_->ended[1], std::vector<std::string>{"aborted"});
    EXPECT_EQ(double_->wrong, std::vector<std::string>());
  }
}

}  // namespace
}  // namespace comera::test
