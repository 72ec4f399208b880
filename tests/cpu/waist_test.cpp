// The waist's activation in tiles, in floats, against whole matrices in double.
#include <gtest/gtest.h>

#include "core/cpu/cpu_ops.h"
#include "tests/ops/host.h"

namespace comera::test {
namespace {

struct WaistSizes {
  int64_t tokens, a, wide, b;
};
// Less and more than a tile and a chunk of tokens; a last panel that is not full; sides of one register and of many.
constexpr WaistSizes kSizes[] = {{1, 1, 256, 1}, {47, 31, 300, 30}, {600, 9, 1000, 17}, {1100, 64, 260, 64}, {130, 33, 3072, 32}};

template <class T>
struct Results {
  Array<T> y, dt, dr, dl;
};

// t and y are columns of wider matrices, and dt leaves the last column of t out.
template <class T>
Results<T> waist(const WaistSizes& s, Activation kind, int threads) {
  CpuOps ops(threads);
  const auto part = [](const Array<T>& x, int64_t columns) { return Mat(x).columns(0, columns); };
  const Array<T> t = uniform<T>({s.tokens, s.a + 3}, 1), r = uniform<T>({s.a, s.wide}, 2), l = uniform<T>({s.wide, s.b}, 3),
                 bias = uniform<T>({s.b}, 4), dy = uniform<T>({s.tokens, s.b + 2}, 5);
  Results<T> out{Array<T>({s.tokens, s.b}, T(9)), Array<T>({s.tokens, std::max<int64_t>(1, s.a - 1)}, T(9)), Array<T>({s.a, s.wide}, T(9)),
                 Array<T>({s.wide, s.b}, T(9))};
  ops.run(op::WaistActivation{kind, Mat(out.y), part(t, s.a), Mat(r), Mat(l), bias});
  ops.run(op::WaistActivationBackward{kind, Mat(out.dt), Mat(out.dr), Mat(out.dl), part(dy, s.b), part(t, s.a), Mat(r), Mat(l)});
  return out;
}

TEST(WaistTiles, EqualWholeMatricesInDouble) {
  for (const WaistSizes& sizes : kSizes)
    for (const Activation kind : {Activation::gelu, Activation::gelu_tanh, Activation::silu, Activation::tanh, Activation::relu}) {
      SCOPED_TRACE(std::to_string(sizes.tokens) + " tokens, activation " + std::to_string(static_cast<int>(kind)));
      // Inputs of both types are equal: uniform() rounds to float.
      const Results<float> found = waist<float>(sizes, kind, 2);
      const Results<double> expected = waist<double>(sizes, kind, 1);
      const auto near = [](const Array<float>& a, const Array<double>& b) {
        double largest = 0, difference = 0;
        for (int64_t i = 0; i < b.count(); ++i) {
          largest = std::max(largest, std::fabs(b[i]));
          difference = std::max(difference, std::fabs(static_cast<double>(a[i]) - b[i]));
        }
        EXPECT_LE(difference, 2e-6 * largest);
      };
      near(found.y, expected.y);
      near(found.dl, expected.dl);
      if (kind == Activation::relu) continue;  // an input that rounds to the other side of 0 has another slope
      near(found.dt, expected.dt);
      near(found.dr, expected.dr);
    }
}

TEST(WaistTiles, ThreadsChangeNoBit) {
  for (const WaistSizes& sizes : kSizes) {
    const Results<float> one = waist<float>(sizes, Activation::gelu, 1), three = waist<float>(sizes, Activation::gelu, 3);
    EXPECT_EQ(one.y.v, three.y.v);
    EXPECT_EQ(one.dt.v, three.dt.v);
    EXPECT_EQ(one.dr.v, three.dr.v);
    EXPECT_EQ(one.dl.v, three.dl.v);
  }
}

}  // namespace
}  // namespace comera::test
