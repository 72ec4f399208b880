// Products against a naive one in double: ragged sizes on every path, row steps, alpha and beta.
// To add a shape, add a line to kShapes.
#include "tests/ops/host.h"

namespace comera::test {
namespace {

struct Size {
  int64_t m, n, k;
};
const Size kShapes[] = {
    {1, 1, 1},     {1, 5, 3},      {3, 1, 7},     {7, 9, 0},       {17, 33, 5},    {64, 64, 64},      {100, 70, 65},   {130, 129, 131},  // plain
    {1024, 30, 96}, {515, 1, 2000}, {333, 31, 400}, {700, 64, 77},   {259, 17, 2500}, {1030, 48, 65},   {513, 63, 1030},  // short n
    {30, 1024, 96}, {1, 515, 2000}, {31, 333, 400}, {64, 700, 77},   {17, 259, 2500}, {48, 1031, 65},   {5, 2000, 333},   // short m
    {1024, 100, 30}, {333, 770, 31}, {100, 1001, 64}, {511, 65, 33}, {67, 2049, 17},  {1000, 1000, 2},  {2000, 37, 63},   // short k
    {1024, 96, 170}, {70, 1000, 240}, {300, 384, 150}, {128, 110, 1150},                                             // longer short sides
    {300, 200, 100}, {97, 310, 128},                                                                                 // the library's
};

template <class T>
struct Problem {
  Array<T> a, b, c;
  Mat ma, mb, mc;

  static Mat mat(const Array<T>& t, int64_t rows, int64_t cols, int64_t offset) {
    Mat out(t);
    out.rows = rows, out.cols = cols, out.offset = offset;
    return out;
  }
  // Each matrix lies in a wider one, beginning at a column.
  Problem(const Size& s, bool ta, bool tb, int64_t extra)
      : a(uniform<T>({ta ? s.k : s.m, (ta ? s.m : s.k) + 2 * extra}, 1)),
        b(uniform<T>({tb ? s.n : s.k, (tb ? s.k : s.n) + extra}, 2)),
        c(uniform<T>({s.m, s.n + extra}, 3)),
        ma(mat(a, ta ? s.k : s.m, ta ? s.m : s.k, extra)),
        mb(mat(b, tb ? s.n : s.k, tb ? s.k : s.n, extra)),
        mc(mat(c, s.m, s.n, 0)) {
    ma.ld = a.shape[1], mb.ld = b.shape[1], mc.ld = c.shape[1];
  }
};

template <class T>
class Gemm : public ::testing::Test {};
TYPED_TEST_SUITE(Gemm, FloatTypes);

template <class T>
void check(CpuOps& ops, const Size& s, bool ta, bool tb, int64_t extra, double alpha, double beta) {
  Problem<T> p(s, ta, tb, extra);
  const Array<T> before = p.c;
  if (beta == 0)
    for (T& value : p.c.v) value = static_cast<T>(NAN);  // must not be read
  const int64_t ld = p.c.shape[1];
  if (beta == 0)
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = s.n; j < ld; ++j) p.c[i * ld + j] = before[i * ld + j];
  ops.gemm(p.mc, p.ma, ta, p.mb, tb, alpha, beta);
  double worst = 0;
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < ld; ++j) {
      double want = static_cast<double>(before[i * ld + j]), size = 1;
      if (j < s.n) {
        double sum = 0;
        size = 0;
        for (int64_t l = 0; l < s.k; ++l) {
          const double a = static_cast<double>(p.a[p.ma.offset + (ta ? l * p.ma.ld + i : i * p.ma.ld + l)]);
          const double b = static_cast<double>(p.b[p.mb.offset + (tb ? j * p.mb.ld + l : l * p.mb.ld + j)]);
          sum += a * b;
          size += std::fabs(a * b);
        }
        want = alpha * sum + (beta == 0 ? 0 : beta * want);
        size = std::fabs(alpha) * size + 1;
      }
      const double error = std::fabs(static_cast<double>(p.c[i * ld + j]) - want) / size;
      worst = error <= worst ? worst : error;
    }
  ASSERT_LT(worst, tolerance<T>(1e-6, 1e-14)) << s.m << "x" << s.n << "x" << s.k << " ta " << ta << " tb " << tb << " extra " << extra << " alpha "
                                              << alpha << " beta " << beta;
}

TYPED_TEST(Gemm, AgainstNaive) {
  CpuOps one(1), three(3);
  for (const Size& s : kShapes)
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        check<TypeParam>(three, s, ta, tb, 0, 1, 0);
        if (s.m * s.n * s.k > 10'000'000) continue;
        check<TypeParam>(one, s, ta, tb, 3, 1, 1);
        check<TypeParam>(three, s, ta, tb, 1, -0.5, 0.25);
        check<TypeParam>(one, s, ta, tb, 5, 2, 0);
      }
}

TYPED_TEST(Gemm, AlphaZeroScales) {
  CpuOps ops(2);
  check<TypeParam>(ops, {300, 30, 300}, false, false, 0, 0, 0);
  check<TypeParam>(ops, {300, 30, 300}, false, false, 0, 0, 2);
}

// The products of a tensor-train layer, with the column of ones that carries the bias.
TYPED_TEST(Gemm, BiasFromAColumnOfOnes) {
  using T = TypeParam;
  CpuOps ops(2);
  const int64_t tokens = 200, rank = 30, outputs = 96;
  Array<T> t1 = uniform<T>({tokens, rank + 2}, 1), r = uniform<T>({rank + 1, outputs}, 2), y({tokens, outputs}), plain = y;
  for (int64_t t = 0; t < tokens; ++t) t1[t * (rank + 2) + rank] = 1;
  ops.gemm(Mat(y), Mat(t1).columns(0, rank + 1), false, Mat(r), false);
  ops.gemm(Mat(plain), Mat(t1).columns(0, rank), false, Mat(r).top(rank), false);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < outputs; ++j) plain[t * outputs + j] += r[rank * outputs + j];
  EXPECT_LT(largest_difference(y, plain), tolerance<T>(1e-5, 1e-13));
}

TYPED_TEST(Gemm, NaNPropagates) {
  using T = TypeParam;
  CpuOps ops(2);
  for (const Size& s : {Size{300, 30, 300}, Size{300, 300, 30}, Size{30, 300, 300}, Size{150, 150, 150}})
    for (bool ta : {false, true}) {
      Problem<T> p(s, ta, false, 0);
      p.b[5 * s.n + 7] = static_cast<T>(NAN);
      ops.gemm(p.mc, p.ma, ta, p.mb, false);
      int64_t bad = 0;
      for (int64_t i = 0; i < s.m; ++i)
        for (int64_t j = 0; j < s.n; ++j) bad += std::isnan(p.c[i * s.n + j]) != (j == 7);
      EXPECT_EQ(bad, 0);
    }
}

// Small ones, which threads share, between larger ones and one without rows.
TYPED_TEST(Gemm, AListIsItsProducts) {
  using T = TypeParam;
  CpuOps one(1), three(3);
  std::vector<Problem<T>> listed, alone;
  std::vector<GemmArgs> list;
  for (const Size& s : {Size{5, 7, 3}, Size{300, 30, 300}, Size{96, 240, 30}, Size{0, 4, 9}, Size{30, 90, 240}, Size{130, 129, 131}, Size{64, 16, 1}})
    for (const bool ta : {false, true}) {
      listed.emplace_back(s, ta, !ta, 1);
      alone.push_back(listed.back());
    }
  for (size_t i = 0; i < listed.size(); ++i) {
    const bool ta = i % 2 == 1;
    const double alpha = i % 3 == 0 ? 1 : -0.5, beta = i % 4 < 2 ? 0 : 1;
    const auto mat = [](const Mat& like, const Array<T>& of) {
      Mat out = Problem<T>::mat(of, like.rows, like.cols, like.offset);
      out.ld = like.ld;
      return out;
    };
    list.push_back({mat(listed[i].mc, listed[i].c), mat(listed[i].ma, listed[i].a), ta, mat(listed[i].mb, listed[i].b), !ta, alpha, beta});
    one.gemm(mat(alone[i].mc, alone[i].c), mat(alone[i].ma, alone[i].a), ta, mat(alone[i].mb, alone[i].b), !ta, alpha, beta);
  }
  three.gemm(list);
  for (size_t i = 0; i < listed.size(); ++i) EXPECT_LT(largest_difference(listed[i].c, alone[i].c), tolerance<T>(1e-4, 1e-12)) << i;
}

TYPED_TEST(Gemm, SameForAnyNumberOfThreads) {
  using T = TypeParam;
  CpuOps one(1), two(2), three(3);
  for (const Size& s : {Size{1024, 30, 768}, Size{1024, 96, 31}, Size{31, 768, 1024}, Size{768, 30, 1024}, Size{1024, 3, 700}, Size{1024, 96, 170},
                        Size{120, 768, 180}})
    for (bool ta : {false, true})
      for (bool tb : {false, true}) {
        if (sizeof(T) == 8) continue;  // the library's splits are its own
        Problem<T> p(s, ta, tb, 0);
        one.gemm(p.mc, p.ma, ta, p.mb, tb);
        const Array<T> first = p.c;
        two.gemm(p.mc, p.ma, ta, p.mb, tb);
        EXPECT_TRUE(same_bits(first, p.c)) << s.m << "x" << s.n << "x" << s.k;
        three.gemm(p.mc, p.ma, ta, p.mb, tb);
        EXPECT_TRUE(same_bits(first, p.c)) << s.m << "x" << s.n << "x" << s.k;
      }
}

}  // namespace
}  // namespace comera::test
