// A program from its plan to its replay.
#include "core/train/step_program.h"

#include <gtest/gtest.h>

#include "core/base/error.h"
#include "tests/ops/cases/recording_device.h"

namespace comera::test {
namespace {

constexpr int kEager = StepProgram::kEagerRuns;

// sum += x, by way of a temporary; x and sum in device memory. `fault` makes the calls throw in the middle.
struct Adder {
  explicit Adder(Device& device) : device(device), memory(device), buffer(memory, 128, Purpose::data) {
    x = Tensor(buffer.data(), {4}, DType::f32);
    sum = Tensor(static_cast<char*>(buffer.data()) + 64, {4}, DType::f32);
    set(sum, 0);
    plan();
  }
  void plan() {
    work = program.plan();
    step = Buffer();
    step = Buffer(memory, program.arena().peak_bytes(), Purpose::workspace);
    program.arena().attach(step.data());
  }
  void set(const Tensor& tensor, float value) {
    const float values[4] = {value, value, value, value};
    device.upload(tensor.raw(), values, sizeof(values));
  }
  float total() {
    float values[4] = {};
    device.download(values, sum.raw(), sizeof(values));
    return values[0];
  }

  Device& device;
  Memory memory;
  Buffer buffer, step;
  Tensor x, sum;
  int calls = 0;
  bool fault = false;
  Work work;
  StepProgram program{device, [this](Arena& arena) {
                        ++calls;
                        Lease lease;
                        void* data = arena.take(16, "copy", lease);
                        const Tensor copy(data, {4}, DType::f32, std::move(lease));
                        device.ops().copy(copy, x);
                        if (fault) throw Error(ErrorCode::other, "a fault of the test");
                        device.ops().add(sum, sum, copy);
                      }};
};

TEST(StepProgram, FirstRunsAreEagerThenTheCallsAreMadeOnceMoreAndReplayed) {
  RecordingDevice device;
  Adder adder(device);
  EXPECT_EQ(adder.calls, 1) << "the dry run";
  EXPECT_EQ(adder.work.other_bytes, 2 * 16 + 3 * 16);
  float expected = 0;
  for (int run = 1; run <= 10; ++run) {
    adder.set(adder.x, static_cast<float>(run));
    adder.program.run();
    EXPECT_EQ(adder.total(), expected += static_cast<float>(run)) << "each run counts, eager ones too";
    EXPECT_EQ(adder.calls, 1 + std::min(run, kEager + 1));
    EXPECT_EQ(adder.program.captures(), run > kEager ? 1 : 0);
    EXPECT_EQ(device.eager_calls, 2 * std::min(run, kEager));
  }
}

TEST(StepProgram, ANewPlanBeginsAllOver) {
  RecordingDevice device;
  Adder adder(device);
  adder.set(adder.x, 1);
  for (int run = 0; run < 5; ++run) adder.program.run();
  adder.plan();
  const int64_t eager = device.eager_calls;
  for (int run = 0; run < 5; ++run) adder.program.run();
  EXPECT_EQ(device.eager_calls - eager, 2 * kEager);
  EXPECT_EQ(adder.program.captures(), 2);
  EXPECT_EQ(adder.total(), 10);
}

TEST(StepProgram, OpByOpTheCallsAreMadeAndTheCapturedProgramStays) {
  RecordingDevice device;
  Adder adder(device);
  adder.set(adder.x, 1);
  for (int run = 0; run < 5; ++run) adder.program.run();
  const int64_t eager = device.eager_calls, launches = device.launches;
  adder.program.run(true);
  EXPECT_EQ(device.eager_calls - eager, 2);
  adder.program.run();
  EXPECT_EQ(device.launches - launches, 1);
  EXPECT_EQ(adder.program.captures(), 1);
  EXPECT_EQ(adder.total(), 7);
}

TEST(StepProgram, AFaultInsideOfACaptureEndsIt) {
  RecordingDevice device;
  Adder adder(device);
  adder.set(adder.x, 1);
  for (int run = 0; run < kEager; ++run) adder.program.run();
  adder.fault = true;
  EXPECT_THROW(adder.program.run(), Error);
  adder.fault = false;
  device.synchronize();  // throws inside of a capture
  EXPECT_EQ(adder.program.captures(), 0);
  adder.program.run();
  EXPECT_EQ(adder.program.captures(), 1);
  EXPECT_EQ(adder.total(), static_cast<float>(kEager + 1));
}

TEST(StepProgram, ADeviceThatDoesNotCaptureIsAlwaysEager) {
  const auto device = open_cpu_device(1);
  Adder adder(*device);
  adder.set(adder.x, 1);
  for (int run = 0; run < 8; ++run) adder.program.run();
  EXPECT_EQ(adder.calls, 9);
  EXPECT_EQ(adder.program.captures(), 0);
  EXPECT_EQ(adder.total(), 8);
  EXPECT_THROW(device->begin_capture(), Error);
}

}  // namespace
}  // namespace comera::test
