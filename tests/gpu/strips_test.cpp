// Attention and the waist's activation where products are rounded: tiles go to the tensor cores in TF32, and everything else stays exact.
#include "core/ops/small_floats.h"
#include "gpu/column_sums.h"
#include "tests/gpu/emulated_machine.h"
#include "tests/ops/cases/cases.h"

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

template <class T>
std::vector<Array<T>> downloaded(Device& device, const std::vector<Tensor>& tensors) {
  std::vector<Array<T>> results;
  for (const Tensor& tensor : tensors) {
    if (!tensor) continue;
    results.emplace_back(tensor.shape());
    device.download(results.back().v.data(), tensor.raw(), tensor.bytes());
  }
  return results;
}

struct Sizes {
  int64_t longest, heads, head_width;
  double dropout;
  bool keep;
  int64_t value_heads = 0, value_width = 0;  // 0: as of keys
};

// out, lse, dq, dk, dv
template <class T>
std::vector<Array<T>> attention(Device& device, const Sizes& s) {
  const int64_t tokens = 2 * s.longest;
  const int64_t value_width = s.value_width > 0 ? s.value_width : s.head_width;
  const AttentionHeads heads(s.heads, 0, false, s.value_heads);
  const Shape shape{tokens, s.heads * s.head_width}, values{tokens, heads.value_heads * value_width}, means{tokens, s.heads * value_width};
  Runner r(device);
  const int half = static_cast<int>(s.longest / 2), all = static_cast<int>(s.longest);
  const Sequences sequences{r.in(Array<int>({2}, {0, all})), r.in(Array<int>({2}, {all, half})), s.longest};
  const Tensor q = r.in(uniform<T>(shape, 1, -2, 2)), k = r.in(uniform<T>(shape, 2, -2, 2)), v = r.in(uniform<T>(values, 3)),
               dout = r.in(uniform<T>(means, 4)), step = r.scalars(some_scalars());
  const Tensor out = r.out<T>(means), lse = r.out<T>({s.heads, tokens}), dq = r.out<T>(shape), dk = r.out<T>(shape), dv = r.out<T>(values);
  const Tensor probs = s.keep ? r.out<T>({2, s.heads, s.longest, s.longest}) : Tensor();
  device.ops().attention_forward(out, lse, probs, q, k, v, sequences, heads, {s.dropout, 3}, step);
  device.ops().attention_backward(dq, dk, dv, dout, lse, probs, q, k, v, sequences, heads, {s.dropout, 3}, step);
  return downloaded<T>(device, {out, lse, dq, dk, dv});
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

struct Waist {
  int64_t tokens, a, wide, b;
  Activation kind;
  int64_t gate = 0;  // its thin side A'; 0: none
};

// y, dt, dr, dl, and of a gate dt, dr
template <class T>
std::vector<Array<T>> waist(Device& device, const Waist& w) {
  Runner r(device);
  // The slope of relu jumps: of multiples of 1/8 all products are exact, so no rounding turns a sign.
  const auto values = [&](const Shape& shape, uint32_t seed) {
    Array<T> array = uniform<T>(shape, seed);
    for (int64_t i = 0; w.kind == Activation::relu && i < array.count(); ++i) array[i] = std::round(8 * array[i]) / 8;
    return r.in(array);
  };
  const Tensor t = values({w.tokens, w.a}, 1), right = values({w.a, w.wide}, 2), left = values({w.wide, w.b}, 3),
               dy = values({w.tokens, w.b}, 4), bias = values({w.b}, 5);
  const Tensor y = r.out<T>({w.tokens, w.b}), dt = r.out<T>({w.tokens, w.a}), dr = r.out<T>({w.a, w.wide}), dl = r.out<T>({w.wide, w.b});
  op::WaistActivation forward{w.kind, y, t, right, left, bias};
  op::WaistActivationBackward backward{w.kind, dt, dr, dl, dy, t, right, left};
  Tensor gate_dt, gate_dr;
  if (w.gate > 0) {
    const Tensor gate_t = values({w.tokens, w.gate}, 6), gate_r = values({w.gate, w.wide}, 7);
    gate_dt = r.out<T>({w.tokens, w.gate}), gate_dr = r.out<T>({w.gate, w.wide});
    forward.gate = {gate_t, gate_r};
    backward.gate = {gate_dt, gate_dr, gate_t, gate_r};
  }
  device.ops().run(forward);
  device.ops().run(backward);
  return downloaded<T>(device, {y, dt, dr, dl, gate_dt, gate_dr});
}

const Waist kWaists[] = {{70, 31, 200, 30, Activation::gelu},     {200, 32, 90, 4, Activation::gelu},
                         {3, 5, 66, 33, Activation::gelu},        {130, 60, 70, 64, Activation::silu},
                         {65, 8, 64, 8, Activation::tanh},        {65, 8, 64, 8, Activation::gelu_tanh},
                         {65, 8, 130, 8, Activation::relu},       {70, 24, 200, 30, Activation::silu, 31},
                         {130, 33, 70, 20, Activation::gelu, 64}, {3, 8, 66, 5, Activation::relu, 4}};

struct ThinNorm {
  int64_t rows, columns, rank, more, out;  // ranks of the branch, of what is added to dy, of the product of dbranch; 0: no dbranch
  bool rms, sum, before;
  double after;
  bool turned = false;  // r the other way round
};

// Products of multiples of 1/8 are exact: y, rstd, and where wanted sum; dsum, dbranch, dgamma, and last the product of dbranch, which is
// rounded.
template <class T>
std::vector<Array<T>> thin_norm(Device& device, const ThinNorm& n) {
  Runner r(device);
  const auto eighths = [&](const Shape& shape, uint32_t seed) {
    Array<T> array = uniform<T>(shape, seed);
    for (int64_t i = 0; i < array.count(); ++i) array[i] = std::round(8 * array[i]) / 8;
    return r.in(array);
  };
  const auto some = [&](const Shape& shape, uint32_t seed) { return n.rms ? Tensor() : r.in(uniform<T>(shape, seed)); };
  const Shape shape{n.rows, n.columns}, row{n.columns}, column{n.rows};
  const Tensor y = r.out<T>(shape), sum = n.sum ? r.out<T>(shape) : Tensor(), mean = n.rms ? Tensor() : r.out<T>(column),
               rstd = r.out<T>(column), gamma = r.in(uniform<T>(row, 1)), step = r.scalars(some_scalars());
  op::NormForward forward{y, sum, mean, rstd, r.in(uniform<T>(shape, 2)), {}, gamma, some(row, 3), 1e-5, {0.1, 3}, step};
  const auto factor = [&](int64_t rank, uint32_t seed, bool turned) {
    return eighths(turned ? Shape{n.columns, rank} : Shape{rank, n.columns}, seed);
  };
  forward.thin = {eighths({n.rows, n.rank}, 4), factor(n.rank, 5, n.turned), n.turned};
  forward.after = {n.after, 4};
  if (n.before) forward.before = {some(column, 6), r.in(uniform<T>(column, 7, 0.5, 2)), r.in(uniform<T>(row, 8)), some(row, 9)};
  device.ops().run(forward);
  const Tensor dsum = r.out<T>(shape), dbranch = n.out > 0 ? r.out<T>(shape) : Tensor(), dgamma = r.out<T>(row),
               dbeta = n.rms ? Tensor() : r.out<T>(row), u = n.out > 0 ? r.out<T>({n.rows, n.out}) : Tensor();
  op::NormBackward backward{dsum,
                            dbranch,
                            dgamma,
                            dbeta,
                            r.in(uniform<T>(shape, 10)),
                            r.in(uniform<T>(shape, 11)),
                            some(column, 12),
                            r.in(uniform<T>(column, 13, 0.5, 2)),
                            gamma,
                            {0.1, 3},
                            step};
  backward.thin = {eighths({n.rows, n.more}, 14), factor(n.more, 15, !n.turned), !n.turned};
  backward.after = {n.after, 4};
  if (n.out > 0) backward.onward = {u, r.in(uniform<T>({n.out, n.columns}, 16))};
  device.ops().run(backward);
  return downloaded<T>(device, {y, rstd, sum, mean, dsum, dbranch, dgamma, dbeta, u});
}

const ThinNorm kThinNorms[] = {{20, 768, 31, 30, 31, false, true, false, 0},  {33, 256, 12, 96, 32, false, false, true, 0},
                               {16, 1024, 64, 70, 64, true, true, true, 0.2}, {5, 32, 33, 5, 33, false, false, false, 0.3},
                               {40, 608, 9, 33, 6, true, false, false, 0.2},  {50, 768, 31, 30, 0, false, true, false, 0.1}};

const Sizes kSizes[] = {{40, 2, 64, 0.1, false}, {33, 1, 24, 0, true},           {5, 3, 7, 0.2, true},
                        {70, 1, 128, 0, false},  {70, 4, 24, 0.1, false, 2, 12}, {33, 2, 36, 0, true, 1, 100}};

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

TEST(RoundedWaist, IsNearTheExactOne) {
  const auto cpu = open_cpu_device(1);
  for (const EmulatedShape& shape : {EmulatedShape{.threads = 1}, EmulatedShape{}, EmulatedShape{.threads = 64, .descending = true}})
    for (const Waist& sizes : kWaists) {
      EmulatedDevice device(shape);
      device.set_products(Products::tf32);
      const auto rounded = waist<float>(device, sizes), exact = waist<float>(*cpu, sizes);
      EXPECT_GT(device.machine().strips, 0);
      const bool rounds = sizes.kind != Activation::relu || sizes.gate > 0;
      for (size_t i = 0; i < exact.size(); ++i) {
        const double difference = relative_difference(rounded[i], exact[i]);
        EXPECT_LT(difference, rounds ? 3e-3 : 1e-6) << "result " << i << " of " << sizes.tokens << " x " << sizes.wide;
        EXPECT_TRUE(!rounds || difference > 1e-6) << "nothing was rounded";
      }
    }
}

TEST(RoundedNorm, RoundsOperandsOfProductsAlone) {
  const auto cpu = open_cpu_device(1);
  for (const EmulatedShape& shape : {EmulatedShape{}, EmulatedShape{.threads = 64, .descending = true, .most_blocks = 2}})
    for (const ThinNorm& sizes : kThinNorms) {
      EmulatedDevice device(shape);
      device.set_products(Products::tf32);
      const auto rounded = thin_norm<float>(device, sizes), exact = thin_norm<float>(*cpu, sizes);
      EXPECT_GT(device.machine().strips, 0);
      for (size_t i = 0; i < exact.size(); ++i) {
        const double difference = relative_difference(rounded[i], exact[i]);
        const bool is_product = sizes.out > 0 && i + 1 == exact.size();
        EXPECT_LT(difference, is_product ? 3e-3 : 1e-6) << "result " << i << " of " << sizes.rows << " x " << sizes.columns;
        EXPECT_TRUE(!is_product || difference > 1e-6) << "nothing was rounded";
      }
    }
}

TEST(RoundedNorm, IsOfShortRowsOfFloats) {
  EmulatedDevice exact, doubles, wide, odd, turned;
  thin_norm<float>(exact, kThinNorms[0]);
  doubles.set_products(Products::tf32);
  thin_norm<double>(doubles, kThinNorms[0]);
  wide.set_products(Products::tf32);
  thin_norm<float>(wide, {3, 1056, 65, 97, 65, false, true, false, 0});
  odd.set_products(Products::tf32);
  thin_norm<float>(odd, {3, 100, 8, 8, 8, false, true, false, 0});
  turned.set_products(Products::tf32);
  thin_norm<float>(turned, {3, 96, 8, 8, 8, false, true, false, 0, true});
  for (EmulatedDevice* device : {&exact, &doubles, &wide, &odd, &turned}) EXPECT_EQ(device->machine().strips, 0);
}

TEST(RoundedWaist, IsOfThinSidesAndFloats) {
  EmulatedDevice exact, doubles, wide, gate;
  waist<float>(exact, kWaists[0]);
  doubles.set_products(Products::tf32);
  waist<double>(doubles, kWaists[0]);
  wide.set_products(Products::tf32);
  waist<float>(wide, {3, 65, 66, 5, Activation::gelu});
  gate.set_products(Products::tf32);
  waist<float>(gate, {3, 5, 66, 5, Activation::silu, 65});
  for (EmulatedDevice* device : {&exact, &doubles, &wide, &gate}) EXPECT_EQ(device->machine().strips, 0);
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

// More tiles of 16 rows than pieces, so that a piece has several. Without a product of dbranch nothing is rounded.
TEST(CudaStrips, AddTheTilesOfAPiece) {
  const CudaStatus status = cuda_status();
  if (status.devices.empty()) GTEST_SKIP() << "no CUDA device: " << status.reason;
  const auto device = open_device("cuda:0"), cpu = open_cpu_device(1);
  device->set_products(Products::tf32);
  const ThinNorm sizes{16 * gpu::kMostRowPieces + 500, 32, 4, 5, 0, false, false, false, 0.1};
  const auto results = thin_norm<float>(*device, sizes), expected = thin_norm<float>(*cpu, sizes);
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_LT(relative_difference(results[i], expected[i]), 1e-5) << i;
}

// On a device tensor cores add in another order than the emulation and cut what they align, which turns a rounding of the next
// product now and then, by 2^-10 of an entry.
TEST(CudaStrips, EqualTheEmulatedOnes) {
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
  for (const Waist& sizes : kWaists) {
    EmulatedDevice emulated({.threads = 1});
    emulated.set_products(Products::tf32);
    const auto results = waist<float>(*device, sizes), expected = waist<float>(emulated, sizes);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_LT(relative_difference(results[i], expected[i]), 3e-4) << i;
  }
  for (const ThinNorm& sizes : kThinNorms) {
    EmulatedDevice emulated;
    emulated.set_products(Products::tf32);
    const auto results = thin_norm<float>(*device, sizes), expected = thin_norm<float>(emulated, sizes);
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_LT(relative_difference(results[i], expected[i]), 3e-4) << i;
  }
}

}  // namespace
}  // namespace comera::test
