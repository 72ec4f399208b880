// The recording device finds what it is there to find.
#include "tests/ops/cases/recording_device.h"

#include <gtest/gtest.h>

#include "core/base/error.h"

namespace comera::test {
namespace {

// Four numbers in device memory.
struct Four {
  explicit Four(Device& device, float value) : memory(device), buffer(memory, 16, Purpose::data) {
    tensor = Tensor(buffer.data(), {4}, DType::f32);
    set(device, value);
  }
  void set(Device& device, float value) {
    const float values[4] = {value, value, value, value};
    device.upload(tensor.raw(), values, sizeof(values));
  }
  float get(Device& device) {
    float values[4] = {};
    device.download(values, tensor.raw(), sizeof(values));
    return values[3];
  }
  Memory memory;
  Buffer buffer;
  Tensor tensor;
};

std::string text_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(RecordingDevice, CallsAreKeptAndRunWhenLaunched) {
  RecordingDevice device;
  Four x(device, 1), y(device, 2);
  float factor = 10;
  device.begin_capture();
  device.ops().axpy(y.tensor, factor, x.tensor);
  const auto program = device.end_capture();
  EXPECT_EQ(y.get(device), 2) << "nothing has run";
  program->launch();
  EXPECT_EQ(y.get(device), 12);
  x.set(device, 3);
  factor = 100;
  program->launch();
  EXPECT_EQ(y.get(device), 42) << "3, from memory, is seen; 100, on the host, is not";
  device.ops().axpy(y.tensor, factor, x.tensor);
  EXPECT_EQ(y.get(device), 342) << "outside of a capture calls run at once";
  EXPECT_EQ(device.captured, 1);
  EXPECT_EQ(device.launches, 2);
  EXPECT_EQ(device.eager_calls, 1);
}

TEST(RecordingDevice, WhatACaptureMustNotHoldIsRefusedWithTheOpBeforeIt) {
  RecordingDevice device;
  Four y(device, 2);
  auto there = std::make_unique<Four>(device, 1);
  Four& x = *there;
  device.begin_capture();
  const auto empty = device.end_capture();
  const std::pair<const char*, std::function<void()>> forbidden[] = {
      {"upload", [&] { x.set(device, 5); }},
      {"download", [&] { x.get(device); }},
      {"synchronize", [&] { device.synchronize(); }},
      {"allocate", [&] { device.allocate(64); }},
      {"launch", [&] { empty->launch(); }},
      {"begin_capture", [&] { device.begin_capture(); }},
      {"singular_basis",
       [&] {
         device.ops().singular_basis(x.tensor.view({2, 2}), y.tensor.view({2, 2}), true);
       }},
  };
  for (const auto& [name, call] : forbidden) {
    device.begin_capture();
    device.ops().copy(y.tensor, x.tensor);
    const std::string text = text_of(call);
    EXPECT_NE(text.find(name), std::string::npos) << text;
    EXPECT_NE(text.find("after op 'copy'"), std::string::npos) << text;
    device.abandon_capture();
  }
  EXPECT_EQ(y.get(device), 2) << "what was abandoned has not run";
  device.begin_capture();
  device.ops().copy(y.tensor, x.tensor);
  there.reset();
  const std::string text = text_of([&] { device.end_capture(); });
  EXPECT_NE(text.find("release inside of a capture, after op 'copy'"), std::string::npos) << text;
}

TEST(RecordingDevice, AProgramOnMemoryThatWasGivenBackIsRefused) {
  RecordingDevice device;
  Four y(device, 2);
  auto x = std::make_unique<Four>(device, 1);
  device.begin_capture();
  device.ops().copy(y.tensor, x->tensor);
  const auto program = device.end_capture();
  program->launch();
  x.reset();
  x = std::make_unique<Four>(device, 7);  // most likely where the first was
  EXPECT_NE(text_of([&] { program->launch(); }), "");
  EXPECT_EQ(y.get(device), 1);
}

TEST(RecordingDevice, MemoryOfTheHostIsNotTheDevices) {
  RecordingDevice device;
  Four x(device, 1);
  float host[4] = {};
  const Tensor tensor(host, {4}, DType::f32);
  EXPECT_NE(text_of([&] { device.ops().copy(x.tensor, tensor); }), "");
  EXPECT_NE(text_of([&] { device.ops().copy(x.tensor, Tensor(static_cast<char*>(x.tensor.raw()) + 4, {4}, DType::f32)); }), "")
      << "four bytes too far";
}

TEST(RecordingDeviceDeathTest, ItsMemoryIsNotTheHosts) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";  // BLAS has threads
  EXPECT_DEATH(
      {
        RecordingDevice device;
        Four x(device, 1);
        volatile float value = *static_cast<volatile float*>(x.tensor.raw());
        (void)value;
      },
      "");
}

}  // namespace
}  // namespace comera::test
