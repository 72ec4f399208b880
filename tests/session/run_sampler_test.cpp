// What is measured about once a second beside the steps: stored as metrics of the step, told live as it is stored.
#include "core/session/run_sampler.h"

#include <cmath>
#include <map>

#include "core/session/replay.h"
#include "core/session/session.h"
#include "core/train/system_memory.h"
#include "tests/store/support.h"
#include "tests/train/lagging_device.h"

namespace comera {
namespace {

using test::Folder;

std::map<std::string, double> named(const NamedValues& values) { return {values.begin(), values.end()}; }

StepRecord timed(int64_t step, double data, double forward, double grad, double refresh, double update) {
  StepRecord record;
  record.step = step;
  record.data_ms = data;
  record.times.forward = forward;
  record.times.grad = grad;
  record.times.refresh = refresh;
  record.times.update = update;
  return record;
}

TEST(RunSampler, PhasesAreMeansOfTheStepsSinceTheLastTime) {
  const test::LaggingDevice device(0);
  RunSampler sampler(0);  // at every step
  auto first = named(sampler.after_step(timed(1, 1, 2, 5, 0.5, 1), device));
  EXPECT_EQ(first.at("data_ms"), 1);
  EXPECT_EQ(first.at("forward_ms"), 2);
  EXPECT_EQ(first.at("backward_ms"), 3);
  EXPECT_EQ(first.at("update_ms"), 1.5) << "a refresh is a part of the update";
  EXPECT_GT(first.at("process_bytes"), 1e6);
  EXPECT_GT(first.at("device_used_bytes"), 0);
  EXPECT_GT(first.at("device_total_bytes"), first.at("device_used_bytes"));
  EXPECT_TRUE(sampler.after_step(timed(1, 1, 2, 5, 0.5, 1), device).empty()) << "the same step is told once";
  for (const auto& [name, value] : first) EXPECT_TRUE(is_measured(name)) << name;
  EXPECT_FALSE(first.contains("others_ms")) << "one process waits for nobody";
  EXPECT_FALSE(is_measured("train_loss"));

  RunSampler seldom(1e9);
  EXPECT_FALSE(seldom.after_step(timed(1, 1, 1, 2, 0, 1), device).empty()) << "short runs have one too";
  for (int64_t step = 2; step < 50; ++step) EXPECT_TRUE(seldom.after_step(timed(step, 1, 1, 2, 0, 1), device).empty());
}

TEST(RunSampler, TimeAndTrafficOfSeveralProcesses) {
  const test::LaggingDevice device(0);
  RunSampler sampler(0);
  StepRecord record = timed(1, 1, 2, 5, 0.5, 1);
  record.times.others = 4;
  record.shared = {{5, 8}, 1000};
  const auto values = named(sampler.after_step(record, device));
  EXPECT_EQ(values.at("others_ms"), 4);
  EXPECT_EQ(values.at("sent_bytes"), 1000);
  for (const auto& [name, value] : values) EXPECT_TRUE(is_measured(name)) << name;
}

TEST(RunSampler, StepsThatNobodyWaitedForHaveNoPhases) {
  const test::LaggingDevice device(2);
  RunSampler sampler(0);
  const auto values = named(sampler.after_step(timed(1, 1, 0, 0, 0, 0), device));
  EXPECT_TRUE(values.contains("process_bytes"));
  EXPECT_FALSE(values.contains("forward_ms")) << "not recorded is not 0";
}

// What a card's driver would say of its own memory.
class OwnMemory final : public Device {
 public:
  std::string name() const override { return "a card"; }
  Ops& ops() override { return inner_->ops(); }
  void* allocate(int64_t bytes) override { return inner_->allocate(bytes); }
  void release(void* data) noexcept override { inner_->release(data); }
  void upload(void* device, const void* host, int64_t bytes) override { inner_->upload(device, host, bytes); }
  void download(void* host, const void* device, int64_t bytes) override { inner_->download(host, device, bytes); }
  void synchronize() override {}
  int64_t free_bytes() const override { return 3000; }
  int64_t total_bytes() const override { return 10000; }

 private:
  std::unique_ptr<Device> inner_ = open_cpu_device(1);
};

TEST(SystemMemory, IsThatOfTheDeviceWhereItHasItsOwn) {
  const MemoryLevel own = memory_of(OwnMemory());
  EXPECT_EQ(own.used, 7000);
  EXPECT_EQ(own.total, 10000);
  EXPECT_EQ(own.available(), 3000);
  const MemoryLevel machine = memory_of(*open_cpu_device(1));
  EXPECT_GT(machine.total, resident_bytes()) << "in bytes, as that of the process";
  EXPECT_GE(machine.used, 0);
  EXPECT_GT(resident_bytes(), 1 << 20);
}

TEST(Session, MemoryAndPhasesAreStoredWithTheRun) {
  Folder folder;
  SessionStart start;
  start.store = folder.store();
  start.config = load_config("demo", {"train.threads=1", "train.steps=40", "train.eval_every=20", "data.train_rows=256",
                                      "data.validation_rows=64", "train.max_steps_per_s=0", "name=measured"});
  Session session(std::move(start));
  ASSERT_TRUE(session.wait(120));
  ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  const Records live = session.drain();
  const auto stored = Replay(folder.store(), "measured").metrics();
  for (const char* name :
       {"process_bytes", "device_used_bytes", "device_total_bytes", "data_ms", "forward_ms", "backward_ms", "update_ms"}) {
    ASSERT_TRUE(live.metrics.contains(name)) << name;
    const Series& told = live.metrics.at(name);
    EXPECT_EQ(told.steps.front(), 1) << name;
    EXPECT_LT(told.steps.size(), 40u) << name << ": not of every step";
    ASSERT_TRUE(stored.contains(name)) << name;
    EXPECT_EQ(stored.at(name).steps.all(), told.steps) << name;
    EXPECT_EQ(*stored.at(name).values, told.values) << name;
  }
  EXPECT_GT(live.metrics.at("process_bytes").values[0], static_cast<double>(session.latest()->memory_now.total()));
  EXPECT_EQ(live.metrics.at("eval_ms").steps, (std::vector<int64_t>{20, 40}));
  EXPECT_GT(live.metrics.at("eval_ms").values[0], 0);
}

}  // namespace
}  // namespace comera
