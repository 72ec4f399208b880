// Attention where products are rounded: its tiles go to the tensor cores in TF32, and everything else stays exact.
#include "core/ops/small_floats.h"
#include "tests/ops/cases/cases.h"
#include "tests/gpu/emulated_machine.h"

namespace comera::test {
namespace {

TEST(Tf32, HasTenBitsBehindThePoint) {
  EXPECT_EQ(tf32_of(1.0f), 1.0f);
  EXPECT_EQ(tf32_of(1 + 0x1p-10f), 1 + 0x1p-10f);
  EXPECT_EQ(tf32_of(1 + 0x1p-11f), 1 + 0x1p-10f) << "a tie goes away from zero";
  EXPECT_EQ(tf32_of(-1 - 0x1p-11f), -1 - 0x1p-10f);
  EXPECT_EQ(tf32_of(1 + 0x1.8p-12f), 1.0f);
  EXPECT_EQ(tf32_of(INFINITY), INFINITY);
  EXPECT_TRUE(std::isnan(tf32_of(NAN)));
}

struct Sizes {
  int64_t longest, heads, head_width;
  double dropout;
  bool keep;
};

// out, lse, dq, dk, dv
template <class T>
std::vector<Array<T>> attention(Device& device, const Sizes& s) {
  const int64_t tokens = 2 * s.longest;
  const Shape shape{tokens, s.heads * s.head_width};
  Runner r(device);
  const int half = static_cast<int>(s.longest / 2), all = static_cast<int>(s.longest);
  const Sequences sequences{r.in(Array<int>({2}, {0, all})), r.in(Array<int>({2}, {all, half})), s.longest};
  const Tensor q = r.in(uniform<T>(shape, 1, -2, 2)), k = r.in(uniform<T>(shape, 2, -2, 2)), v = r.in(uniform<T>(shape, 3)),
               dout = r.in(uniform<T>(shape, 4)), step = r.scalars(some_scalars());
  const Tensor out = r.out<T>(shape), lse = r.out<T>({s.heads, tokens}), dq = r.out<T>(shape), dk = r.out<T>(shape), dv = r.out<T>(shape);
  const Tensor probs = s.keep ? r.out<T>({2, s.heads, s.longest, s.longest}) : Tensor();
  device.ops().attention_forward(out, lse, probs, q, k, v, sequences, s.heads, {s.dropout, 3}, step);
  device.ops().attention_backward(dq, dk, dv, dout, lse, probs, q, k, v, sequences, s.heads, {s.dropout, 3}, step);
  std::vector<Array<T>> results;
  for (const Tensor& tensor : {out, lse, dq, dk, dv}) {
    results.emplace_back(tensor.shape());
    device.download(results.back().v.data(), tensor.raw(), tensor.bytes());
  }
  return results;
}

template <class T>
double relative_difference(const Array<T>& a, const Array<T>& b) {
  double difference = 0, size = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
    size += std::pow(static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / size);
}

const Sizes kSizes[] = {{40, 2, 64, 0.1, false}, {33, 1, 24, 0, true}, {5, 3, 7, 0.2, true}, {70, 1, 128, 0, false}};

TEST(RoundedAttention, IsNearTheExactOne) {
  const auto cpu = open_cpu_device(1);
  for (const EmulatedShape& shape : {EmulatedShape{.threads = 1}, EmulatedShape{}, EmulatedShape{.threads = 64, .descending = true}})
    for (const Products how : {Products::tf32, Products::bf16, Products::fp8})
      for (const Sizes& sizes : kSizes) {
        EmulatedDevice device(shape);
        device.set_products(how);
        const auto rounded = attention<float>(device, sizes), exact = attention<float>(*cpu, sizes);
        EXPECT_GT(device.machine().strips, 0);
        for (size_t i = 0; i < exact.size(); ++i) {
          EXPECT_LT(relative_difference(rounded[i], exact[i]), 3e-3) << "result " << i << ", longest " << sizes.longest;
          EXPECT_GT(relative_difference(rounded[i], exact[i]), 1e-6) << "nothing was rounded";
        }
      }
}

TEST(RoundedAttention, IsOfFloatsInRunsThatRound) {
  const auto cpu = open_cpu_device(1);
  EmulatedDevice exact, doubles, wide;
  attention<float>(exact, kSizes[0]);
  doubles.set_products(Products::tf32);
  const auto results = attention<double>(doubles, kSizes[0]), expected = attention<double>(*cpu, kSizes[0]);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_LT(relative_difference(results[i], expected[i]), 1e-12);
  wide.set_products(Products::tf32);
  attention<float>(wide, {6, 1, 600, 0, false});  // no tile of sixteen rows of it fits
  for (EmulatedDevice* device : {&exact, &doubles, &wide}) EXPECT_EQ(device->machine().strips, 0);
}

// On a device tensor cores add in another order than the emulation and cut what they align, which turns a rounding of the next
// product now and then, by 2^-10 of an entry.
TEST(CudaAttention, RoundedEqualsTheEmulatedOne) {
  const CudaStatus status = cuda_status();
  if (status.devices.empty()) GTEST_SKIP() << "no CUDA device: " << status.reason;
  const auto device = open_device("cuda:0");
  device->set_products(Products::tf32);
  for (const Sizes& sizes : kSizes) {
    EmulatedDevice emulated({.threads = 1});
    emulated.set_products(Products::tf32);
    const auto results = attention<float>(*device, sizes), expected = attention<float>(emulated, sizes);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_LT(relative_difference(results[i], expected[i]), 3e-4) << i;
  }
}

}  // namespace
}  // namespace comera::test
