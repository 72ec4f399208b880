// The GPU's ops against the CPU's: emulated in several shapes, and on a device where there is one.
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>

#include "tests/gpu/emulated_machine.h"
#include "tests/ops/cases/cases.h"

// CUDA's headers are not in this build, and without the backend neither is its runtime.
extern "C" __attribute__((weak)) int cudaGetDevice(int* device);

namespace comera::test {
namespace {

struct Named {
  const char* name;
  EmulatedShape shape;
};
void PrintTo(const Named& named, std::ostream* to) { *to << named.name; }  // lists of tests show it instead of bytes
const Named kShapes[] = {{"OneThread", {.threads = 1}},
                         {"AsLaunched", {}},
                         {"Descending", {.descending = true}},  // barriers that are missing
                         {"FewBlocks", {.threads = 64, .descending = true, .most_blocks = 3, .gemm_and = false}}};  // items in turn

class EmulatedShapes : public ::testing::TestWithParam<Named> {};
INSTANTIATE_TEST_SUITE_P(Ops, EmulatedShapes, ::testing::ValuesIn(kShapes), [](const auto& named) { return named.param.name; });

// COMERA_CUDA_CASES=TEXT|TEXT: only the cases whose name has one of these in it, since sanitizers take their time.
bool chosen(const std::string& name) {
  const char* some = std::getenv("COMERA_CUDA_CASES");
  if (!some) return true;
  std::istringstream texts(some);
  for (std::string text; std::getline(texts, text, '|');)
    if (name.find(text) != std::string::npos) return true;
  return false;
}

TEST_P(EmulatedShapes, EqualTheCpu) {
  EmulatedDevice device(GetParam().shape);
  for (const Case& test : all_cases())
    if (chosen(test.name)) compare_with_cpu(test, device);
}

TEST(CudaOps, EqualTheCpu) {
  const CudaStatus status = cuda_status();
  if (status.devices.empty()) GTEST_SKIP() << "no CUDA device: " << status.reason;
  const auto device = open_device("cuda:0");
  int count = 0;
  for (const Case& test : all_cases()) {
    if (!chosen(test.name)) continue;
    ++count;
    try {
      compare_with_cpu(test, *device, 10);
    } catch (const Error& error) {  // the other cases are tried all the same
      ADD_FAILURE() << test.name << ": " << error.what() << ": " << error.why();
    }
  }
  EXPECT_GT(count, 0) << "no case has such a name";
}

// A thread begins with device 0, and a dry run may be the first call that it makes: CUB asks the current device how much
// working memory a sort takes.
TEST(CudaDevices, ADryRunIsOnItsDevice) {
  if (!cudaGetDevice || cuda_status().devices.size() < 2) GTEST_SKIP() << "this machine has no two CUDA devices";
  const auto device = open_device("cuda:1");
  int current = -1;
  std::thread([&] {
    device->plan_workspace(Products::fp32);
    device->ops().dry = true;
    const auto dry = [](Shape shape, DType type = DType::f32) { return Tensor(nullptr, shape, type); };
    device->ops().scatter_rows(dry({7, 4}), dry({6, 4}), dry({6}, DType::i32));
    cudaGetDevice(&current);
  }).join();
  EXPECT_EQ(current, 1);
}

// Memory that is not there is named as that, and costs no more than what asked for it: memory that a run asks for, and what the
// driver takes by itself, as for the code of an op at its first use.
TEST(CudaMemory, WhereItRunsOutThatIsSaid) {
  const CudaStatus status = cuda_status();
  if (status.devices.empty()) GTEST_SKIP() << "no CUDA device: " << status.reason;
  const auto device = open_device("cuda:0");
  const auto refused = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::memory) << error.what();
      EXPECT_NE(std::string(error.what()).find("GPU memory"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.why()).find(" are free"), std::string::npos) << error.why();
      return true;
    }
    return false;
  };
  EXPECT_TRUE(refused([&] { device->allocate(device->total_bytes() + 1); }));
  const Array<float> host({4}, {1, 2, 3, 4});
  const auto values = [&](const Tensor& y) {
    Array<float> read({4});
    device->download(read.v.data(), y.raw(), y.bytes());
    return read.v;
  };
  const Tensor x(device->allocate(16), {4}, DType::f32), y(device->allocate(16), {4}, DType::f32);
  device->upload(x.raw(), host.v.data(), x.bytes());
  std::vector<void*> taken;
  for (int64_t bytes = device->free_bytes(); bytes > 4096; bytes /= 2)
    while (!refused([&] { taken.push_back(device->allocate(bytes)); })) {
    }
  const bool in_time = refused([&] { device->ops().scale(y, x, 2); });
  if (status.devices[0] == "GPU in software") {
    EXPECT_TRUE(in_time);
  }
  for (void* data : taken) device->release(data);
  device->ops().scale(y, x, 3);
  EXPECT_EQ(values(y), (std::vector<float>{3, 6, 9, 12}));
  device->release(x.raw());
  device->release(y.raw());
}

// Of the size of a layer's gradient, whose singular values lie close together: what counts is how much of the gradient the
// directions hold, and that they are orthonormal.
TEST(EmulatedOps, SingularDirectionsOfALargeGradient) {
  EmulatedDevice emulated({.threads = 1});
  const auto cpu = open_cpu_device(1);
  constexpr int64_t kRank = 16;
  for (const bool left : {true, false}) {
    const auto g = uniform<float>({96, 150}, 1);
    Array<float> basis(left ? Shape{96, kRank} : Shape{kRank, 150}), expected = basis;
    emulated.ops().singular_basis(basis, g, left);
    cpu->ops().singular_basis(expected, g, left);
    const auto held = [&](const Array<float>& b) {  // ||basis^T G||^2, or of G basis^T
      Array<float> product(left ? Shape{kRank, 150} : Shape{96, kRank});
      if (left)
        cpu->ops().gemm(Tensor(product), Tensor(b), true, Tensor(g), false);
      else
        cpu->ops().gemm(Tensor(product), Tensor(g), false, Tensor(b), true);
      return dot(product, product);
    };
    EXPECT_NEAR(held(basis) / held(expected), 1, 1e-5);
    Array<float> square({kRank, kRank});
    cpu->ops().gemm(Tensor(square), Tensor(basis), left, Tensor(basis), !left);
    for (int64_t i = 0; i < kRank; ++i)
      for (int64_t j = 0; j < kRank; ++j) EXPECT_NEAR(square[i * kRank + j], i == j, 1e-4);
  }
}

// One direction that is all but the whole gradient: the others are directions all the same. Square ones take another way for the left
// side than for the right.
TEST(EmulatedOps, SingularDirectionsBesideALargeOne) {
  EmulatedDevice emulated({.threads = 1});
  constexpr int64_t kSide = 48, kRank = 8;
  const auto u = uniform<float>({kSide}, 1), v = uniform<float>({kSide}, 2), noise = uniform<float>({kSide, kSide}, 3);
  Array<float> g({kSide, kSide});
  for (int64_t i = 0; i < kSide; ++i)
    for (int64_t j = 0; j < kSide; ++j) g[i * kSide + j] = u[i] * v[j] + 1e-4f * noise[i * kSide + j];
  for (const bool left : {true, false}) {
    Array<float> basis(left ? Shape{kSide, kRank} : Shape{kRank, kSide});
    emulated.ops().singular_basis(basis, g, left);
    const auto entry = [&](int64_t direction, int64_t at) {
      return static_cast<double>(left ? basis[at * kRank + direction] : basis[direction * kSide + at]);
    };
    for (int64_t i = 0; i < kRank; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (int64_t at = 0; at < kSide; ++at) product += entry(i, at) * entry(j, at);
        EXPECT_NEAR(product, i == j, 1e-5) << i << ", " << j << (left ? " on the left" : " on the right");
      }
  }
}

// A repeated row, and rows of zeros: what is missing is made up, so that no later projection is without directions.
TEST(EmulatedOps, OrthonormalRowsInPlaceOfDependentOnes) {
  EmulatedDevice emulated({.threads = 1});
  for (const bool zeros : {true, false}) {
    Array<double> q = uniform<double>({4, 20}, 1);
    for (int64_t j = zeros ? 0 : 2; j < 4; ++j)
      for (int64_t i = 0; i < 20; ++i) q[j * 20 + i] = zeros ? 0 : 3 * q[(j - 2) * 20 + i];
    emulated.ops().run(op::Orthonormal{q});
    for (int64_t i = 0; i < 4; ++i)
      for (int64_t j = 0; j <= i; ++j) {
        double product = 0;
        for (int64_t k = 0; k < 20; ++k) product += q[i * 20 + k] * q[j * 20 + k];
        EXPECT_NEAR(product, i == j, 1e-13) << i << ", " << j;
      }
  }
}

// Squares of such numbers are no floats.
TEST(EmulatedOps, OrthonormalRowsOfTinyAndHugeOnes) {
  EmulatedDevice emulated({.threads = 1});
  Array<float> expected = uniform<float>({4, 20}, 1);
  emulated.ops().run(op::Orthonormal{expected});
  for (const float scale : {1e-30f, 1e30f}) {
    Array<float> q = uniform<float>({4, 20}, 1);
    for (float& value : q.v) value *= scale;
    emulated.ops().run(op::Orthonormal{q});
    EXPECT_LT(largest_difference(q, expected), 1e-5) << scale;
  }
}

// What the CPU refuses cannot be refused inside a captured step: it must come out as no number.
TEST(EmulatedOps, WhatLiesOutsideGivesNaN) {
  EmulatedDevice device;
  Ops& ops = device.ops();
  const Array<float> table({4, 3}, 1.f), dy({3, 3}, 1.f), p({2, 2, 3}, 1.f), q({2, 3, 2}, 1.f), dz({3, 4}, 1.f);
  for (int bad : {-1, 4, 1 << 30}) {
    const Array<int> ids({3}, {0, bad, 1});
    Array<float> y({3, 3}), dtable({4, 3}), z({3, 4}), dp = p, dq = q;
    ops.gather_rows(y, table, ids, false);
    ops.ttm_lookup(z, p, q, ids);
    ops.scatter_rows(dtable, dy, ids);
    ops.ttm_lookup_backward(dp, dq, dz, p, q, ids);
    for (int64_t c = 0; c < 3; ++c) EXPECT_TRUE(std::isfinite(y[c]) && std::isnan(y[3 + c]) && std::isfinite(y[6 + c])) << bad;
    for (int64_t c = 0; c < 4; ++c) EXPECT_TRUE(std::isfinite(z[c]) && std::isnan(z[4 + c]) && std::isfinite(z[8 + c])) << bad;
    EXPECT_TRUE(std::isnan(dtable[0]) && std::isnan(dp[0]) && std::isnan(dq[0])) << bad;
  }
  StepResults results;
  Array<float> logits({2, 3}, 0.5f), dlogits = logits, rows({2});
  ops.cross_entropy(block_tensor(results), dlogits, rows, logits, Array<int>({2}, {1, 3}));
  EXPECT_TRUE(std::isnan(results.ce) && std::isnan(dlogits[3]) && std::isfinite(dlogits[0]));
  const Array<float> x({5, 2}, 1.f);
  Array<float> out({5, 2}), lse({1, 5}), first({2, 2});
  const Array<int> starts({2}, {0, 3}), lengths({2}, {2, 3});
  ops.attention_forward(out, lse, {}, x, Mat(x), Mat(x), {starts, lengths, 3}, 1, {}, {});
  EXPECT_TRUE(std::isfinite(out[0]) && std::isnan(out[9]));
  ops.first_tokens(first, x, {Array<int>({2}, {0, 5}), Array<int>({2}, {1, 1}), 1});
  EXPECT_TRUE(std::isfinite(first[0]) && std::isnan(first[2]));
  const Array<float> bad({2, 3}, {1, 2, 3, NAN, 5, 6});
  Array<float> basis({2, 1}, 0.5f);
  ops.singular_basis(basis, bad, true);
  EXPECT_EQ(basis.v, std::vector<float>(2, 0.5f)) << "a basis stays as it is";
}

// A linear layer is one product forward, and one for its weight and its bias backward; else passes over y and dy.
TEST(EmulatedOps, ABiasHangsOnTheProduct) {
  for (const bool can : {true, false}) {
    EmulatedDevice device({.threads = 1, .gemm_and = can});
    const Array<float> x = uniform<float>({7, 5}, 1), w = uniform<float>({3, 5}, 2), b = uniform<float>({3}, 3);
    Array<float> y({7, 3}), dw({3, 5}), db({3});
    device.ops().linear(y, x, w, b);
    device.ops().linear_backward(dw, db, y, x);
    EXPECT_EQ(device.machine().fused, can ? 2 : 0);
    EXPECT_EQ(device.machine().launches == 0, can);
  }
}

// A launch takes along so many tensors and no more.
TEST(EmulatedOps, AListThatIsTooLongForALaunchTakesTwo) {
  for (const auto& [tensors, launches] : {std::pair<size_t, int64_t>{512, 1}, {513, 2}, {1100, 3}}) {
    EmulatedDevice device({.threads = 1});
    const auto cpu = open_cpu_device(1);
    const Array<float> g({3}, 0.5f);
    std::vector<Array<float>> w[2], m[2], v[2];
    StepScalars step = some_scalars();
    for (const int here : {0, 1}) {
      std::vector<AdamTensors> all;
      for (size_t i = 0; i < tensors; ++i) {
        w[here].push_back(uniform<float>({3}, static_cast<uint32_t>(i)));
        m[here].push_back(Array<float>({3}));
        v[here].push_back(Array<float>({3}));
      }
      for (size_t i = 0; i < tensors; ++i) all.push_back({w[here][i], g, m[here][i], v[here][i], static_cast<ParamGroup>(i % 3)});
      (here ? static_cast<Device&>(device) : *cpu).ops().adam(all, {}, block_tensor(step));
    }
    EXPECT_EQ(device.machine().launches, launches);
    for (size_t i = 0; i < tensors; ++i)
      for (int64_t j = 0; j < 3; ++j) ASSERT_NEAR(w[0][i][j], w[1][i][j], 1e-6) << i;
  }
}

}  // namespace
}  // namespace comera::test
