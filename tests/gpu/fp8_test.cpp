// Products of E4M3: near the product of the plain numbers, exactly the product of the rounded ones, in planned memory.
#include <utility>

#include "core/ops/small_floats.h"
#include "tests/gpu/emulated_machine.h"
#include "tests/ops/cases/cases.h"

namespace comera::test {
namespace {

struct Shapes {
  int64_t m, n, k;
};

// What the product is of: scaled by the largest entry, rounded, scaled back.
Array<float> rounded(const Array<float>& x) {
  float largest = 0;
  for (float value : x.v) largest = std::max(largest, std::abs(value));
  const float scale = e4m3_scale(largest);
  Array<float> out = x;
  for (float& value : out.v) value = from_e4m3(e4m3_of(value * scale)) * (1 / scale);
  return out;
}

double size_of_difference(const Array<float>& a, const Array<float>& b) {
  double difference = 0, size = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

class Fp8Products : public ::testing::TestWithParam<EmulatedShape> {};
INSTANTIATE_TEST_SUITE_P(Shapes, Fp8Products,
                         ::testing::Values(EmulatedShape{.threads = 1}, EmulatedShape{.threads = 64, .descending = true}),
                         [](const auto& shape) { return shape.param.descending ? "Descending" : "OneThread"; });

TEST_P(Fp8Products, AreOfRoundedOperands) {
  CpuOps cpu(1);
  for (const Shapes& s : {Shapes{512, 528, 512}, {600, 523, 517}, {1100, 513, 900}, {512, 1024, 1040}})
    for (const bool ta : {false, true})
      for (const bool tb : {false, true}) {
        SCOPED_TRACE((Shape{s.m, s.n, s.k}.text()) + (ta ? " A^T" : "") + (tb ? " B^T" : ""));
        EmulatedDevice device(GetParam());
        device.set_products(Products::fp8);
        const auto a = uniform<float>(ta ? Shape{s.k, s.m} : Shape{s.m, s.k}, 1, -3, 2),
                   b = uniform<float>(tb ? Shape{s.n, s.k} : Shape{s.k, s.n}, 2, -1e-4, 1e-4),
                   start = uniform<float>({s.m, s.n}, 3, -0.1, 0.1);
        Array<float> c = start, expected = start, plain = start;
        Runner r(device);
        const Tensor out = r.out(start);
        device.ops().gemm(out, r.in(a), ta, r.in(b), tb, 0.7, 0.5);
        device.download(c.v.data(), out.raw(), out.bytes());
        cpu.gemm(Tensor(expected), Tensor(rounded(a)), ta, Tensor(rounded(b)), tb, 0.7, 0.5);
        cpu.gemm(Tensor(plain), Tensor(a), ta, Tensor(b), tb, 0.7, 0.5);
        EXPECT_EQ(device.machine().fp8_products, 1);
        EXPECT_LT(size_of_difference(c, expected), 1e-6);
        EXPECT_LT(size_of_difference(c, plain), 0.05);
        EXPECT_GT(size_of_difference(c, plain), 1e-5) << "nothing was rounded";
      }
}

TEST(Fp8Product, IsOnlyWorthItForLargeOnes) {
  EmulatedDevice device({.threads = 1});
  device.set_products(Products::fp8);
  const auto multiply = [&](int64_t m, int64_t n, int64_t k) {
    Runner r(device);
    device.ops().gemm(r.out<float>({m, n}), r.in(uniform<float>({m, k}, 1)), false, r.in(uniform<float>({k, n}, 2)), false);
    return std::exchange(device.machine().fp8_products, 0);
  };
  for (const Shapes& s : {Shapes{64, 64, 64}, {512, 511, 2048}, {511, 2048, 512}, {2048, 512, 511}}) EXPECT_EQ(multiply(s.m, s.n, s.k), 0);
  EXPECT_EQ(multiply(512, 512, 512), 1);
  Array<double> doubles({512, 512});
  const auto square = uniform<double>({512, 512}, 1);
  device.ops().gemm(Tensor(doubles), Tensor(square), false, Tensor(square), false);
  EXPECT_EQ(device.machine().fp8_products, 0);
  device.set_products(Products::bf16);
  EXPECT_EQ(multiply(512, 512, 512), 0);
}

// The working memory of a dry call is that of the real one, and only what the plan is for counts.
TEST(Fp8Product, WorkingMemoryIsPlanned) {
  for (const Shapes& s : {Shapes{512, 528, 512}, {600, 523, 517}}) {
    EmulatedDevice device({.threads = 1});
    const Tensor a(nullptr, {s.m, s.k}, DType::f32), b(nullptr, {s.k, s.n}, DType::f32), c(nullptr, {s.m, s.n}, DType::f32);
    const auto planned = [&](Products how) {
      device.plan_workspace(how);
      device.ops().dry = true;
      device.ops().gemm(c, a, false, b, false);
      device.ops().dry = false;
      return device.workspace_bytes();
    };
    EXPECT_EQ(planned(Products::fp32), 0);
    const int64_t bytes = planned(Products::fp8);
    EXPECT_GT(bytes, s.m * s.k + s.k * s.n);
    Runner r(device);
    const Tensor x = r.in(uniform<float>({s.m, s.k}, 1)), y = r.in(uniform<float>({s.k, s.n}, 2)), z = r.out<float>({s.m, s.n});
    device.ops().gemm(z, x, false, y, false);
    EXPECT_EQ(device.machine().fp8_products, 0) << "a plan changes nothing";
    device.set_products(Products::fp8);
    device.ops().gemm(z, x, false, y, false);
    EXPECT_EQ(device.machine().fp8_products, 1);
    EXPECT_EQ(device.machine().taken(), bytes);
  }
}

// No vector hangs on a product of E4M3.
TEST(Fp8Product, ABiasIsAPassOfItsOwn) {
  EmulatedDevice device({.threads = 1});
  CpuOps cpu(1);
  device.set_products(Products::fp8);
  Runner r(device);
  const auto x = uniform<float>({640, 512}, 1), w = uniform<float>({512, 512}, 2), b = uniform<float>({512}, 3),
             dy = uniform<float>({640, 512}, 4);
  const Tensor y = r.out<float>({640, 512}), dw = r.out<float>({512, 512}), db = r.out<float>({512});
  device.ops().linear(y, r.in(x), r.in(w), r.in(b));
  device.ops().linear_backward(dw, db, r.in(dy), r.in(x));
  EXPECT_EQ(device.machine().fp8_products, 2);
  EXPECT_EQ(device.machine().fused, 0);
  Array<float> got({640, 512}), expected({640, 512}), sums({512}), expected_sums({512}), unused({512, 512});
  device.download(got.v.data(), y.raw(), y.bytes());
  device.download(sums.v.data(), db.raw(), db.bytes());
  cpu.linear(expected, rounded(x), rounded(w), b);
  cpu.linear_backward(unused, expected_sums, dy, x);
  EXPECT_LT(size_of_difference(got, expected), 1e-6);
  EXPECT_LT(size_of_difference(sums, expected_sums), 1e-6);
}

TEST(Fp8Product, UnsupportedShapesAreMultipliedInTf32) {
  EmulatedDevice device({.threads = 1, .fp8 = false});
  CpuOps cpu(1);
  device.set_products(Products::fp8);
  Runner r(device);
  const auto a = uniform<float>({600, 517}, 1), b = uniform<float>({523, 517}, 2), start = uniform<float>({600, 523}, 3);
  Array<float> c = start, expected = start;
  const Tensor out = r.out(start);
  device.ops().gemm(out, r.in(a), false, r.in(b), true, 0.7, 0.5);
  device.download(c.v.data(), out.raw(), out.bytes());
  cpu.gemm(Tensor(expected), Tensor(a), false, Tensor(b), true, 0.7, 0.5);
  EXPECT_EQ(device.machine().fp8_products, 0);
  EXPECT_LT(size_of_difference(c, expected), 1e-6) << "the emulated machine rounds nothing in tf32";
}

// On a device the sums of an E4M3 product may be of fewer bits than f32.
TEST(CudaFp8, EqualsTheEmulatedProduct) {
  const CudaStatus status = cuda_status();
  if (status.devices.empty()) GTEST_SKIP() << "no CUDA device: " << status.reason;
  const auto device = open_device("cuda:0");
  try {
    device->set_products(Products::fp8);
  } catch (const Error& error) {
    GTEST_SKIP() << error.what() << ": " << error.why();
  }
  CpuOps cpu(1);
  for (const Shapes& s : {Shapes{512, 528, 512}, {600, 523, 517}, {1100, 513, 900}, {1024, 3072, 768}}) {
    SCOPED_TRACE((Shape{s.m, s.n, s.k}.text()));
    const auto a = uniform<float>({s.m, s.k}, 1), b = uniform<float>({s.n, s.k}, 2), start = uniform<float>({s.m, s.n}, 3);
    Array<float> c = start, expected = start;
    Runner r(*device);
    const Tensor out = r.out(start);
    device->ops().gemm(out, r.in(a), false, r.in(b), true, 0.7, 0.5);
    device->download(c.v.data(), out.raw(), out.bytes());
    cpu.gemm(Tensor(expected), Tensor(rounded(a)), false, Tensor(rounded(b)), true, 0.7, 0.5);
    EXPECT_LT(size_of_difference(c, expected), 2e-3);
  }
}

// What bf16 and tf32 cost: operands rounded to 7 and to 10 bits.
TEST(CudaProducts, AreAsFarFromExactAsTheirBits) {
  const CudaStatus status = cuda_status();
  if (status.devices.empty()) GTEST_SKIP() << "no CUDA device: " << status.reason;
  const auto device = open_device("cuda:0");
  CpuOps cpu(1);
  for (const int64_t k : {768, 767}) {
    const auto a = uniform<float>({512, k}, 1), b = uniform<float>({k, 512}, 2);
    Array<float> expected({512, 512});
    cpu.gemm(Tensor(expected), Tensor(a), false, Tensor(b), false);
    const auto far = [&](Products how) {
      device->set_products(how);
      Runner r(*device);
      const Tensor out = r.out<float>({512, 512});
      device->ops().gemm(out, r.in(a), false, r.in(b), false);
      Array<float> c({512, 512});
      device->download(c.v.data(), out.raw(), out.bytes());
      return size_of_difference(c, expected);
    };
    EXPECT_LT(far(Products::fp32), 1e-5);
    const double tf32 = far(Products::tf32), bf16 = far(Products::bf16);
    EXPECT_LT(tf32, 2e-3);
    EXPECT_LT(bf16, 1e-2);
    const bool in_software = status.devices[0] == "GPU in software";
    if (k == 768 || in_software) {
      EXPECT_GT(tf32, 1e-5) << "nothing was rounded";
    }
    if (k == 767 && in_software) {
      EXPECT_EQ(bf16, tf32) << "where there is no kernel for bf16";
    }
  }
}

// A heuristic promises what the product itself may refuse; COMERA_PTX_REFUSE makes the GPU in software do so.
class CudaRefusals : public ::testing::Test {
 protected:
  void SetUp() override {
    const CudaStatus status = cuda_status();
    if (status.devices.empty() || status.devices[0] != "GPU in software") GTEST_SKIP() << "no GPU in software";
    device_ = open_device("cuda:0");
  }
  void TearDown() override { unsetenv("COMERA_PTX_REFUSE"); }
  Array<float> product(Products how) {
    device_->set_products(how);
    Runner r(*device_);
    const auto a = uniform<float>({512, 528}, 1), b = uniform<float>({528, 512}, 2);
    const Tensor out = r.out<float>({512, 512});
    device_->ops().gemm(out, r.in(a), false, r.in(b), false);
    Array<float> c({512, 512});
    device_->download(c.v.data(), out.raw(), out.bytes());
    return c;
  }
  std::unique_ptr<Device> device_;
};

TEST_F(CudaRefusals, TheNextAlgorithmIsTaken) {
  const Array<float> expected = product(Products::tf32);
  device_ = open_device("cuda:0");  // without the plans that are known to work
  setenv("COMERA_PTX_REFUSE", "first", 1);
  EXPECT_EQ(product(Products::tf32).v, expected.v);
  EXPECT_EQ(product(Products::tf32).v, expected.v) << "the plan stays at the algorithm that works";
}

TEST_F(CudaRefusals, AProductWithoutAlgorithmsIsRoundedLess) {
  const Array<float> tf32 = product(Products::tf32), fp32 = product(Products::fp32);
  for (const auto& [refused, how, expected] : {std::tuple{"bf16", Products::bf16, &tf32},
                                               {"bf16 tf32", Products::bf16, &fp32},
                                               {"tf32", Products::tf32, &fp32},
                                               {"fp8", Products::fp8, &tf32},
                                               {"fp8-heuristic", Products::fp8, &tf32}}) {
    SCOPED_TRACE(refused);
    device_ = open_device("cuda:0");
    setenv("COMERA_PTX_REFUSE", refused, 1);
    EXPECT_EQ(product(how).v, expected->v);
  }
}

TEST_F(CudaRefusals, WhereFp32IsRefusedTheRunEndsWithAnError) {
  setenv("COMERA_PTX_REFUSE", "fp32", 1);
  EXPECT_THROW(product(Products::fp32), Error);
}

// The bias and its gradient hang on the products, whose operands are rounded on their way in other types than f32.
TEST(CudaProducts, WithABiasAndItsGradientTheyAreTheSame) {
  const CudaStatus status = cuda_status();
  if (status.devices.empty()) GTEST_SKIP() << "no CUDA device: " << status.reason;
  const auto device = open_device("cuda:0");
  CpuOps cpu(1);
  const auto x = uniform<float>({320, 256}, 1), w = uniform<float>({192, 256}, 2), b = uniform<float>({192}, 3),
             dy = uniform<float>({320, 192}, 4);
  Array<float> expected_y({320, 192}), expected_dw({192, 256}), expected_db({192});
  cpu.linear(expected_y, x, w, b);
  cpu.linear_backward(expected_dw, expected_db, dy, x);
  for (const auto& [how, bound] : {std::pair{Products::fp32, 1e-5}, {Products::tf32, 2e-3}, {Products::bf16, 1e-2}}) {
    SCOPED_TRACE(name_of(how));
    device->set_products(how);
    Runner r(*device);
    const Tensor y = r.out<float>({320, 192}), dw = r.out<float>({192, 256}), db = r.out<float>({192});
    device->ops().linear(y, r.in(x), r.in(w), r.in(b));
    device->ops().linear_backward(dw, db, r.in(dy), r.in(x));
    const auto far = [&](const Tensor& tensor, const Array<float>& expected) {
      Array<float> got = expected;
      device->download(got.v.data(), tensor.raw(), tensor.bytes());
      return size_of_difference(got, expected);
    };
    EXPECT_LT(far(y, expected_y), bound);
    EXPECT_LT(far(dw, expected_dw), bound);
    EXPECT_LT(far(db, expected_db), bound);
  }
}

}  // namespace
}  // namespace comera::test
