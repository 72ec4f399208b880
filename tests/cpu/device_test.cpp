#include "core/ops/device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

namespace comera {
namespace {

ErrorCode code_of(const std::string& name, int threads = 1) {
  try {
    open_device(name, threads);
  } catch (const Error& error) {
    EXPECT_FALSE(error.hint().empty());
    return error.code();
  }
  return ErrorCode::other;
}

TEST(CpuDevice, Opens) {
  // Behind it a program for several kinds of processors names the one it takes the kernels of.
  const auto named = [](int threads, const std::string& name) {
    const std::string whole = open_device("cpu", threads)->name();
    return whole == name || whole.starts_with(name + ", x86-64-v");
  };
  EXPECT_TRUE(named(1, "CPU, 1 thread"));
  EXPECT_TRUE(named(3, "CPU, 3 threads"));
  EXPECT_NE(open_device("auto"), nullptr);
  EXPECT_EQ(device_to_begin_on("auto", {}), "auto");
  CudaStatus two;
  two.devices = {"one GPU", "another"};
  EXPECT_EQ(device_to_begin_on("auto", two), "cuda:0");
  EXPECT_EQ(device_to_begin_on("cpu", two), "cpu");
  EXPECT_FALSE(blas_name().empty());
}

TEST(CpuDevice, RefusesWhatItDoesNotKnow) {
  for (const char* name : {"", "gpu", "CPU", "cpu:0", "cuda:", "cuda:x", "cuda:-1", "cuda:0x"}) EXPECT_EQ(code_of(name), ErrorCode::device) << name;
  EXPECT_EQ(code_of("cpu", -1), ErrorCode::device);
  EXPECT_EQ(code_of("cpu", 1000000), ErrorCode::device);
  if (cuda_status().devices.empty()) {
    EXPECT_EQ(code_of("cuda:0"), ErrorCode::device);
  }
}

TEST(CpuDevice, RefusesKernelsItDoesNotHave) {
  setenv("COMERA_CPU_LEVEL", "v9", 1);
  EXPECT_EQ(code_of("cpu"), ErrorCode::device);
  setenv("COMERA_CPU_LEVEL", "", 1);  // as if it were not set
  EXPECT_EQ(code_of("cpu"), ErrorCode::other);
  unsetenv("COMERA_CPU_LEVEL");
}

TEST(CpuDevice, Memory) {
  const auto device = open_device("cpu", 1);
  for (int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{63}, int64_t{4096}, int64_t{5} << 20}) {
    void* data = device->allocate(bytes);
    ASSERT_NE(data, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 64, 0u);
    std::vector<char> in(static_cast<size_t>(bytes), 'x'), out(in.size());
    device->upload(data, in.data(), bytes);
    device->download(out.data(), data, bytes);
    device->synchronize();
    EXPECT_EQ(in, out);
    device->release(data);
  }
  for (int64_t bytes : {int64_t{1} << 60, std::numeric_limits<int64_t>::max()}) {
    try {
      device->allocate(bytes);
      FAIL() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::memory);
    }
  }
}

}  // namespace
}  // namespace comera
