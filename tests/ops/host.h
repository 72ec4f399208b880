// Arrays on the host as tensors, the two step blocks, and random numbers, for the tests of ops.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/rng.h"
#include "core/cpu/cpu_ops.h"

namespace comera::test {

// An array that converts to a tensor over its memory.
template <class T>
struct Array {
  Shape shape;
  std::vector<T> v;

  Array() = default;
  explicit Array(Shape shape, T value = T(0)) : shape(shape), v(static_cast<size_t>(shape.count()), value) {}
  Array(Shape shape, std::vector<T> values) : shape(shape), v(std::move(values)) {}
  operator Tensor() const { return Tensor(const_cast<T*>(v.data()), shape, dtype_of<T>); }
  T& operator[](int64_t i) { return v[static_cast<size_t>(i)]; }
  const T& operator[](int64_t i) const { return v[static_cast<size_t>(i)]; }
  int64_t count() const { return static_cast<int64_t>(v.size()); }
};

template <class T>
Tensor block_tensor(T& block) {
  return Tensor(&block, Shape{int64_t{sizeof(T)}}, DType::u8);
}

// Factor of element i under dropout with probability p, from its definition (METHODS.md 15.3).
inline double dropout_factor(const Philox& stream, int64_t i, double p) {
  const uint32_t word = stream.word(static_cast<uint64_t>(i / 2)), draw = i % 2 ? word >> 16 : word % 65536;
  const double dropped = std::round(p * 65536) / 65536;
  return draw / 65536.0 < dropped ? 0 : 1 / (1 - dropped);
}

// Uniform in [low, high), a pure function of (site, index).
template <class T>
Array<T> uniform(Shape shape, uint32_t site, double low = -1, double high = 1) {
  Array<T> out(shape);
  const Philox stream{2024, 0, site};
  for (int64_t i = 0; i < out.count(); ++i)
    out[i] = static_cast<T>(low + (high - low) * static_cast<double>(uniform_half(stream.word(static_cast<uint64_t>(i)))));
  return out;
}

inline Array<int> random_ids(int64_t count, int rows, uint32_t site) {
  Array<int> out({count});
  const Philox stream{7, 0, site};
  for (int64_t i = 0; i < count; ++i) out[i] = static_cast<int>(stream.word(static_cast<uint64_t>(i)) % static_cast<uint32_t>(rows));
  return out;
}

template <class A, class B>
double dot(const Array<A>& a, const Array<B>& b) {
  double sum = 0;
  for (int64_t i = 0; i < a.count(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

template <class A, class B>
double largest_difference(const Array<A>& a, const Array<B>& b) {
  EXPECT_EQ(a.count(), b.count());
  double worst = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    worst = difference <= worst ? worst : difference;  // NaN is kept
  }
  return worst;
}

// d f / d x by central differences; f reads x where it lies.
template <class F>
Array<double> numeric_gradient(Array<double>& x, const F& f, double h = 1e-6) {
  Array<double> out(x.shape);
  for (int64_t i = 0; i < x.count(); ++i) {
    const double kept = x[i];
    x[i] = kept + h;
    const double above = f();
    x[i] = kept - h;
    const double below = f();
    x[i] = kept;
    out[i] = (above - below) / (2 * h);
  }
  return out;
}

template <class T>
bool same_bits(const Array<T>& a, const Array<T>& b) {
  return a.count() == b.count() && (a.v.empty() || std::memcmp(a.v.data(), b.v.data(), a.v.size() * sizeof(T)) == 0);
}

template <class T>
constexpr double tolerance(double f32, double f64) {
  return sizeof(T) == 4 ? f32 : f64;
}

using FloatTypes = ::testing::Types<float, double>;

}  // namespace comera::test
