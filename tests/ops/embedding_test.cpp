// Lookups and their transposes against loops in double.
#include "tests/ops/host.h"

namespace comera::test {
namespace {

template <class T>
class Embedding : public ::testing::Test {};
TYPED_TEST_SUITE(Embedding, FloatTypes);

TYPED_TEST(Embedding, GatherAndScatterAreTransposes) {
  using T = TypeParam;
  CpuOps ops(2);
  const auto table = uniform<T>({40, 33}, 1), dy = uniform<T>({500, 33}, 2);
  const auto ids = random_ids(500, 40, 3);
  Array<T> y({500, 33}, T(7)), dtable({40, 33}, T(7));
  ops.gather_rows(y, table, ids, false);
  for (int64_t t = 0; t < 500; ++t)
    for (int64_t c = 0; c < 33; ++c) ASSERT_EQ(y[t * 33 + c], table[ids[t] * 33 + c]);
  ops.scatter_rows(dtable, dy, ids);
  EXPECT_NEAR(dot(y, dy), dot(table, dtable), tolerance<T>(1e-3, 1e-11));  // <A x, y> = <x, A^T y>
  Array<double> reference({40, 33});
  for (int64_t t = 0; t < 500; ++t)
    for (int64_t c = 0; c < 33; ++c) reference[ids[t] * 33 + c] += static_cast<double>(dy[t * 33 + c]);
  EXPECT_LT(largest_difference(dtable, reference), tolerance<T>(1e-5, 1e-13));
}

TYPED_TEST(Embedding, GatherCanAdd) {
  using T = TypeParam;
  CpuOps ops(1);
  const Array<T> table({2, 2}, {1, 2, 3, 4});
  Array<T> y({3, 2}, {10, 20, 30, 40, 50, 60});
  ops.gather_rows(y, table, Array<int>({3}, {1, 0, 1}), true);
  EXPECT_EQ(y.v, (std::vector<T>{13, 24, 31, 42, 53, 64}));
  const Array<int> ids({3}, {1, 0, 1}), good({3}, {2, 0, 1}), bad({3}, {2, 3, 1});
  op::GatherRows both{y, table, ids, true};
  const Array<T> other({3, 2}, {100, 200, 300, 400, 500, 600});
  both.more = {other, good};
  ops.run(both);
  EXPECT_EQ(y.v, (std::vector<T>{516, 628, 132, 244, 356, 468}));
  both.more->ids = bad;
  EXPECT_THROW(ops.run(both), Error);
}

TYPED_TEST(Embedding, ScatterClearsRowsWithoutTokens) {
  using T = TypeParam;
  CpuOps ops(3);
  Array<T> dtable({3, 2}, T(5));
  ops.scatter_rows(dtable, Array<T>({2, 2}, {1, 2, 3, 4}), Array<int>({2}, {2, 2}));
  EXPECT_EQ(dtable.v, (std::vector<T>{0, 0, 0, 0, 4, 6}));
}

TYPED_TEST(Embedding, FirstTokens) {
  using T = TypeParam;
  CpuOps ops(2);
  const auto x = uniform<T>({9, 4}, 4), dy = uniform<T>({3, 4}, 5);
  const Array<int> starts({3}, {0, 99, 5}), lengths({3}, {5, 0, 4});
  const Sequences sequences{starts, lengths, 5};
  Array<T> y({3, 4}, T(1)), dx({9, 4}, T(1));
  ops.first_tokens(y, x, sequences);
  ops.first_tokens_backward(dx, dy, sequences);
  for (int64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(y[c], x[c]);
    EXPECT_EQ(y[4 + c], T(0));
    EXPECT_EQ(y[8 + c], x[5 * 4 + c]);
    EXPECT_EQ(dx[c], dy[c]);
    EXPECT_EQ(dx[5 * 4 + c], dy[8 + c]);
    EXPECT_EQ(dx[4 + c], T(0));
  }
  const Array<int> wrong({3}, {0, 1, 9});
  EXPECT_THROW(ops.first_tokens(y, x, {wrong, lengths, 5}), Error);
}

TEST(Sequences, EqualOnesLieBackToBack) {
  CpuOps ops(2);
  const Array<int> starts({3}, -1), lengths({3}, -1);
  ops.run(op::EqualSequences{starts, lengths, 5});
  EXPECT_EQ(starts.v, (std::vector<int>{0, 5, 10}));
  EXPECT_EQ(lengths.v, (std::vector<int>{5, 5, 5}));
}

struct TtmCase {
  int64_t m1, n1, r, m2, n2, tokens;
};
const TtmCase kTtm[] = {{5, 2, 3, 7, 2, 20}, {6, 16, 32, 10, 48, 200}, {4, 5, 7, 3, 19, 64}, {1, 1, 1, 1, 1, 3}, {3, 4, 5, 2, 21, 0}};

template <class T>
struct Ttm {
  TtmCase c;
  Array<T> p, q, dy, y, dp, dq;
  Array<int> ids;
  explicit Ttm(TtmCase c)
      : c(c),
        p(uniform<T>({c.m1, c.n1, c.r}, 11)),
        q(uniform<T>({c.m2, c.r, c.n2}, 12)),
        dy(uniform<T>({c.tokens, c.n1 * c.n2}, 13)),
        y({c.tokens, c.n1 * c.n2}, T(3)),
        dp(p.shape, T(3)),
        dq(q.shape, T(3)),
        ids(random_ids(c.tokens, static_cast<int>(c.m1 * c.m2), 14)) {}
  void run(CpuOps& ops) {
    ops.ttm_lookup(y, p, q, ids);
    ops.ttm_lookup_backward(dp, dq, dy, p, q, ids);
  }
};

TYPED_TEST(Embedding, TtmLookupEqualsTheDenseTable) {
  using T = TypeParam;
  CpuOps ops(2);
  for (const TtmCase& c : kTtm) {
    Ttm<T> ttm(c);
    ttm.run(ops);
    Array<double> y(ttm.y.shape), dp(ttm.p.shape), dq(ttm.q.shape);
    for (int64_t t = 0; t < c.tokens; ++t)
      for (int64_t a = 0; a < c.n1; ++a)
        for (int64_t b = 0; b < c.n2; ++b)
          for (int64_t k = 0; k < c.r; ++k) {
            const int64_t at = (t * c.n1 + a) * c.n2 + b, left = (ttm.ids[t] / c.m2 * c.n1 + a) * c.r + k;
            const int64_t right = (ttm.ids[t] % c.m2 * c.r + k) * c.n2 + b;
            const double g = static_cast<double>(ttm.dy[at]), pv = static_cast<double>(ttm.p[left]), qv = static_cast<double>(ttm.q[right]);
            y[at] += pv * qv;
            dp[left] += g * qv;
            dq[right] += pv * g;
          }
    EXPECT_LT(largest_difference(ttm.y, y), tolerance<T>(1e-5, 1e-13));
    EXPECT_LT(largest_difference(ttm.dp, dp), tolerance<T>(2e-4, 1e-12));
    EXPECT_LT(largest_difference(ttm.dq, dq), tolerance<T>(2e-4, 1e-12));
  }
}

TEST(EmbeddingGradient, TtmByFiniteDifferences) {
  CpuOps ops(2);
  Ttm<double> ttm({4, 3, 5, 3, 6, 30});
  ttm.run(ops);
  const auto loss = [&] {
    ops.ttm_lookup(ttm.y, ttm.p, ttm.q, ttm.ids);
    return dot(ttm.y, ttm.dy);
  };
  EXPECT_LT(largest_difference(ttm.dp, numeric_gradient(ttm.p, loss)), 1e-8);
  EXPECT_LT(largest_difference(ttm.dq, numeric_gradient(ttm.q, loss)), 1e-8);
}

TEST(EmbeddingGradient, ScatterByFiniteDifferences) {
  CpuOps ops(2);
  auto table = uniform<double>({6, 5}, 21);
  const auto dy = uniform<double>({20, 5}, 22);
  const auto ids = random_ids(20, 6, 23);
  Array<double> y({20, 5}), dtable({6, 5});
  ops.scatter_rows(dtable, dy, ids);
  EXPECT_LT(largest_difference(dtable, numeric_gradient(table,
                                                        [&] {
                                                          ops.gather_rows(y, table, ids, false);
                                                          return dot(y, dy);
                                                        })),
            1e-8);
}

TYPED_TEST(Embedding, SameBitsForAnyThreadCount) {
  using T = TypeParam;
  Ttm<T> first({37, 16, 32, 11, 48, 3000});
  for (int64_t t = 0; t < 3000; t += 2) first.ids[t] = 5;  // one word takes half of the batch
  Ttm<T> again = first;
  Array<T> table({407, 768}), table_again = table;
  CpuOps one(1);
  first.run(one);
  one.scatter_rows(table, first.dy, first.ids);
  for (int threads : {2, 3}) {
    CpuOps ops(threads);
    again.run(ops);
    ops.scatter_rows(table_again, first.dy, first.ids);
    EXPECT_TRUE(same_bits(first.y, again.y) && same_bits(first.dp, again.dp) && same_bits(first.dq, again.dq)) << threads;
    EXPECT_TRUE(same_bits(table, table_again)) << threads;
  }
}

TEST(EmbeddingIds, OutsideTheTableThrowBeforeAnythingIsWritten) {
  CpuOps ops(2);
  const Array<float> table({4, 3}, 1.f), p({2, 2, 3}, 1.f), q({2, 3, 2}, 1.f);
  for (int bad : {-1, 4, 1 << 30}) {
    const Array<int> ids({3}, {0, bad, 1});
    Array<float> y({3, 3}, 9.f), dtable({4, 3}, 9.f), z({3, 4}, 9.f), dp = p, dq = q;
    EXPECT_THROW(ops.gather_rows(y, table, ids, false), Error);
    EXPECT_THROW(ops.scatter_rows(dtable, y, ids), Error);
    EXPECT_THROW(ops.ttm_lookup(z, p, q, ids), Error);
    EXPECT_THROW(ops.ttm_lookup_backward(dp, dq, z, p, q, ids), Error);
    EXPECT_EQ(y.v, std::vector<float>(9, 9.f));
    EXPECT_EQ(dtable.v, std::vector<float>(12, 9.f));
    EXPECT_EQ(z.v, std::vector<float>(12, 9.f));
    EXPECT_EQ(dp.v, p.v);
  }
}

}  // namespace
}  // namespace comera::test
