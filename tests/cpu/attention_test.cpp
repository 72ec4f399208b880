#include "tests/ops/host.h"

namespace comera::test {
namespace {

struct Case {
  std::vector<int> starts, lengths;
  int64_t tokens, longest, heads, head_width;
  double dropout;
  bool keep;  // probabilities
  int64_t key_heads = 0;
  bool causal = false;
  int64_t value_heads = 0, value_width = 0;  // 0: as of keys
  AttentionHeads groups() const { return {heads, key_heads, causal, value_heads}; }
  int64_t columns() const { return value_width > 0 ? value_width : head_width; }     // of a head of values
  int64_t seen(int64_t i, int64_t length) const { return causal ? i + 1 : length; }  // keys of token i
};
const Case kCases[] = {
    {{0}, {1}, 1, 1, 1, 1, 0, false},
    {{0}, {5}, 5, 5, 2, 3, 0, true},
    {{0, 4, 9}, {4, 5, 1}, 10, 5, 2, 4, 0.2, true},
    {{0, 8, 16}, {3, 0, 8}, 24, 8, 3, 5, 0.1, false},  // padded, and a sequence without tokens
    {{2, 20}, {17, 33}, 60, 40, 2, 16, 0.3, true},     // gaps before, between and after
    {{40, 0}, {20, 37}, 60, 37, 1, 64, 0, false},      // out of order
    {{0, 128}, {128, 100}, 256, 128, 12, 64, 0.1, false},
    {{0, 4, 9}, {4, 5, 1}, 10, 5, 6, 4, 0.2, true, 2},
    {{0, 8, 16}, {3, 0, 8}, 24, 8, 3, 5, 0.1, false, 1},
    {{0, 4, 9}, {4, 5, 1}, 10, 5, 2, 4, 0.2, true, 0, true},
    {{2, 20}, {17, 33}, 60, 40, 4, 6, 0, false, 2, true},
    {{0, 20}, {17, 33}, 53, 40, 4, 6, 0.3, true, 1, true},
    // By register tiles: heads that share keys, widths that are no whole vectors, rows that are kept with room for vectors and without.
    {{0, 70}, {70, 50}, 130, 70, 6, 32, 0.2, false, 1},
    {{0, 70}, {70, 49}, 130, 80, 4, 40, 0.1, false, 2, true},
    {{0, 70}, {70, 100}, 176, 112, 2, 24, 0.1, true, 0, true},
    {{0, 97}, {97, 48}, 145, 97, 2, 48, 0, true},
    {{0}, {150}, 150, 150, 2, 7, 0, false, 1, true},
    // Values of other heads and widths than the keys.
    {{0, 4, 9}, {4, 5, 1}, 10, 5, 4, 4, 0.2, true, 4, false, 1, 3},
    {{2, 20}, {17, 33}, 60, 40, 4, 6, 0.1, false, 2, true, 1, 9},
    {{0, 70}, {70, 50}, 130, 70, 4, 32, 0.2, false, 4, false, 2, 12},
    {{0, 70}, {70, 49}, 130, 80, 4, 32, 0.1, false, 2, true, 1, 28},
};

template <class T>
struct Attention {
  CpuOps ops;
  StepScalars scalars;
  Case c;
  int64_t width, key_width, value_width, mean_width;
  Array<int> starts, lengths;
  Array<T> q, k, v, out, lse, probs, dout, dq, dk, dv;

  Attention(const Case& c, int threads)
      : ops(threads),
        c(c),
        width(c.heads * c.head_width),
        key_width(c.groups().key_heads * c.head_width),
        value_width(c.groups().value_heads * c.columns()),
        mean_width(c.heads * c.columns()),
        starts({static_cast<int64_t>(c.starts.size())}, c.starts),
        lengths({static_cast<int64_t>(c.lengths.size())}, c.lengths),
        q(uniform<T>({c.tokens, width}, 1, -2, 2)),
        k(uniform<T>({c.tokens, key_width}, 2, -2, 2)),
        v(uniform<T>({c.tokens, value_width}, 3)),
        out({c.tokens, mean_width}, T(7)),
        lse({c.heads, c.tokens}, T(7)),
        probs({starts.count(), c.heads, c.longest, c.longest}, T(7)),
        dout(uniform<T>({c.tokens, mean_width}, 4)),
        dq({c.tokens, width}, T(7)),
        dk({c.tokens, key_width}, T(7)),
        dv({c.tokens, value_width}, T(7)) {
    scalars.seed = 11;
    scalars.step = 6;
  }
  Sequences sequences() const { return {starts, lengths, c.longest}; }
  Tensor kept() const { return c.keep ? Tensor(probs) : Tensor(); }
  void forward() {
    ops.attention_forward(out, lse, kept(), q, Mat(k), Mat(v), sequences(), c.groups(), {c.dropout, 3}, block_tensor(scalars));
  }
  void backward() {
    ops.attention_backward(dq, Mat(dk), Mat(dv), dout, lse, kept(), q, Mat(k), Mat(v), sequences(), c.groups(), {c.dropout, 3},
                           block_tensor(scalars));
  }
  double factor(int64_t s, int64_t h, int64_t i, int64_t j) const {
    return dropout_factor({11, 6, 3}, ((s * c.heads + h) * c.longest + i) * c.longest + j, c.dropout);
  }
};

template <class T>
class AttentionOp : public ::testing::Test {};
TYPED_TEST_SUITE(AttentionOp, FloatTypes);

TYPED_TEST(AttentionOp, ForwardAgainstTheFormula) {
  using T = TypeParam;
  for (const Case& c : kCases) {
    Attention<T> a(c, 2);
    a.forward();
    Array<double> want({c.tokens, a.mean_width});
    std::vector<bool> covered(static_cast<size_t>(c.tokens));
    const double scale = 1 / std::sqrt(static_cast<double>(c.head_width)), near = tolerance<T>(1e-5, 1e-12);
    for (int64_t s = 0; s < a.starts.count(); ++s)
      for (int64_t h = 0; h < c.heads; ++h)
        for (int64_t i = 0; i < a.lengths[s]; ++i) {
          const int64_t row = a.starts[s] + i, first = h * c.head_width, key_first = h * c.groups().key_heads / c.heads * c.head_width,
                        value_first = h * c.groups().value_heads / c.heads * c.columns();
          covered[static_cast<size_t>(row)] = true;
          std::vector<double> p(static_cast<size_t>(a.lengths[s]));
          double sum = 0;
          for (int64_t j = 0; j < c.seen(i, a.lengths[s]); ++j) {
            double score = 0;
            for (int64_t d = 0; d < c.head_width; ++d)
              score += static_cast<double>(a.q[row * a.width + first + d]) *
                       static_cast<double>(a.k[(a.starts[s] + j) * a.key_width + key_first + d]);
            sum += p[static_cast<size_t>(j)] = std::exp(scale * score);
          }
          ASSERT_NEAR(a.lse[h * c.tokens + row], std::log(sum), near);
          for (int64_t j = 0; j < a.lengths[s]; ++j) {
            const double probability = p[static_cast<size_t>(j)] / sum;
            if (c.keep) {
              ASSERT_NEAR(a.probs[((s * c.heads + h) * c.longest + i) * c.longest + j], probability, near);
            }
            for (int64_t d = 0; d < c.columns(); ++d)
              want[row * a.mean_width + h * c.columns() + d] +=
                  probability * a.factor(s, h, i, j) * static_cast<double>(a.v[(a.starts[s] + j) * a.value_width + value_first + d]);
          }
        }
    EXPECT_LT(largest_difference(a.out, want), near);
    for (int64_t t = 0; t < c.tokens; ++t)
      for (int64_t d = 0; d < a.mean_width && !covered[static_cast<size_t>(t)]; ++d) ASSERT_EQ(a.out[t * a.mean_width + d], T(0));
    if (c.keep) {  // nothing undefined in what is kept
      for (T value : a.probs.v) ASSERT_TRUE(value >= 0 && value <= T(1.0001));
    }
  }
}

TEST(AttentionOp, FiniteDifferences) {
  for (const Case& given : kCases) {
    if (given.tokens > 64) continue;
    for (bool keep : {false, true}) {
      Case c = given;
      c.keep = keep;
      Attention<double> a(c, 2);
      const auto f = [&] {
        a.forward();
        return dot(a.out, a.dout);
      };
      const Array<double> dq = numeric_gradient(a.q, f), dk = numeric_gradient(a.k, f), dv = numeric_gradient(a.v, f);
      a.forward();
      a.backward();
      EXPECT_LT(largest_difference(a.dq, dq), 1e-7);
      EXPECT_LT(largest_difference(a.dk, dk), 1e-7);
      EXPECT_LT(largest_difference(a.dv, dv), 1e-7);
    }
  }
}

TEST(AttentionOp, FloatBackwardAgainstDouble) {
  for (const Case& c : kCases) {
    Attention<float> a(c, 2);
    Attention<double> b(c, 2);
    const auto widen = [](Array<double>& to, const Array<float>& from) {
      for (int64_t i = 0; i < to.count(); ++i) to[i] = static_cast<double>(from[i]);
    };
    widen(b.q, a.q), widen(b.k, a.k), widen(b.v, a.v), widen(b.dout, a.dout);
    a.forward(), a.backward(), b.forward(), b.backward();
    EXPECT_LT(largest_difference(a.dq, b.dq), 1e-5);
    EXPECT_LT(largest_difference(a.dk, b.dk), 1e-5);
    EXPECT_LT(largest_difference(a.dv, b.dv), 1e-5);
  }
}

TYPED_TEST(AttentionOp, SameForAnyNumberOfThreads) {
  for (const Case& c : kCases) {
    Attention<TypeParam> a(c, 1), b(c, 2), d(c, 3);
    for (Attention<TypeParam>* x : {&a, &b, &d}) x->forward(), x->backward();
    for (const Attention<TypeParam>* x : {&b, &d}) {
      EXPECT_TRUE(same_bits(a.out, x->out));
      EXPECT_TRUE(same_bits(a.lse, x->lse));
      EXPECT_TRUE(same_bits(a.dq, x->dq));
      EXPECT_TRUE(same_bits(a.dk, x->dk));
      EXPECT_TRUE(same_bits(a.dv, x->dv));
    }
  }
}

TYPED_TEST(AttentionOp, LargeScoresDoNotOverflow) {
  Attention<TypeParam> a({{0}, {20}, 20, 20, 1, 8, 0, false}, 1);
  for (TypeParam& value : a.q.v) value *= 1000;
  a.forward();
  for (TypeParam value : a.out.v) ASSERT_TRUE(std::isfinite(value));
}

TYPED_TEST(AttentionOp, NaNReachesItsSequenceOnly) {
  Attention<TypeParam> a({{0, 10}, {10, 10}, 20, 10, 1, 8, 0.1, false}, 2);
  a.k[3 * 8] = static_cast<TypeParam>(NAN);
  a.forward();
  for (int64_t i = 0; i < a.out.count(); ++i) ASSERT_EQ(std::isnan(a.out[i]), i < 80);
}

// As a stash that rounds q and k does: scores far above the logarithm of the forward pass.
TYPED_TEST(AttentionOp, BackwardOfOtherScoresStaysFinite) {
  Attention<TypeParam> a({{0}, {20}, 20, 20, 1, 8, 0, false}, 1);
  a.forward();
  for (TypeParam& value : a.k.v) value *= 1000;
  a.backward();
  for (const Array<TypeParam>* gradient : {&a.dq, &a.dk, &a.dv})
    for (const TypeParam value : gradient->v) ASSERT_TRUE(std::isfinite(value));
  a.lse[3] = static_cast<TypeParam>(NAN);
  a.backward();
  EXPECT_TRUE(std::isnan(a.dv[0])) << "NaN is not hidden";
}

TYPED_TEST(AttentionOp, RotaryTurnsPairsOfFeatures) {
  using T = TypeParam;
  CpuOps ops(2);
  const int64_t tokens = 5, width = 6, heads = 2;
  Array<int> positions({tokens}, {0, 1, 2, 40000, 7});
  const Array<T> x = uniform<T>({tokens, width * heads}, 1);
  Array<T> table({tokens, width}), y({tokens, width * heads}), back = y;
  ops.run(op::RotaryTable{table, positions, 500});
  ops.run(op::Rotate{y, x, table});
  ops.run(op::Rotate{back, y, table, true});
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t at = 0; at < width * heads; ++at) {
      const int64_t i = at % width % 3;
      const double angle = positions[t] * std::pow(500.0, -2.0 * static_cast<double>(i) / 6), c = std::cos(angle), s = std::sin(angle);
      const int64_t a = t * width * heads + at / width * width + i;
      const double first = static_cast<double>(x[a]), second = static_cast<double>(x[a + 3]);
      const double want = at % width < 3 ? first * c - second * s : second * c + first * s;
      ASSERT_NEAR(y[t * width * heads + at], want, tolerance<T>(1e-6, 1e-11));
    }
  EXPECT_LT(largest_difference(back, x), (tolerance<T>(1e-6, 1e-15)));
}

}  // namespace
}  // namespace comera::test
