// Products in bf16: how they are rounded and split, with a multiplier of this file; and by oneDNN, where this machine has it.
#include "core/cpu/rounded_gemm.h"

#include "core/ops/device.h"
#include "core/ops/small_floats.h"
#include "tests/ops/host.h"

namespace comera::test {
namespace {

struct Shapes {
  int64_t m, n, k;
};
const Shapes kRounded[] = {{65, 65, 65}, {600, 70, 90}, {70, 600, 90}, {256, 300, 129}, {513, 512, 66}};

// Sums in double.
const char* multiply_slowly(const RoundedProduct& p) {
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = p.add ? static_cast<double>(p.c[i * p.ldc + j]) : 0;
      for (int64_t l = 0; l < p.k; ++l)
        sum += static_cast<double>(from_bf16(p.a[p.transpose_a ? l * p.lda + i : i * p.lda + l])) *
               static_cast<double>(from_bf16(p.b[p.transpose_b ? j * p.ldb + l : l * p.ldb + j]));
      p.c[i * p.ldc + j] = static_cast<float>(sum);
    }
  return nullptr;
}
constexpr RoundedProducts kSlow = {"slow", nullptr, multiply_slowly};

// C = op(A) op(B) + beta C of matrices with `extra` columns behind them, which must stay.
struct RoundedProblem {
  RoundedProblem(const Shapes& s, bool ta, bool tb, int64_t extra, double beta)
      : shapes(s),
        a(uniform<float>({ta ? s.k : s.m, (ta ? s.m : s.k) + extra}, 1)),
        b(uniform<float>({tb ? s.n : s.k, (tb ? s.k : s.n) + extra}, 2)),
        c(uniform<float>({s.m, s.n + extra}, 3)),
        before(c),
        args{of(c, extra), of(a, extra), ta, of(b, extra), tb, 1, beta} {
    if (beta == 0)
      for (int64_t i = 0; i < s.m; ++i) std::fill_n(c.v.begin() + i * c.shape[1], s.n, NAN);  // must not be read
  }
  static Mat of(const Array<float>& x, int64_t extra) { return Mat(x).columns(0, x.shape[1] - extra); }

  // The largest error, relative to the sum of the absolute values of its terms.
  double error() const {
    double worst = 0;
    for (int64_t i = 0; i < shapes.m; ++i)
      for (int64_t j = 0; j < c.shape[1]; ++j) {
        const int64_t at = i * c.shape[1] + j;
        if (j >= shapes.n) {
          EXPECT_EQ(c[at], before[at]);
          continue;
        }
        double sum = args.beta * static_cast<double>(before[at]), size = std::fabs(sum);
        for (int64_t l = 0; l < shapes.k; ++l) {
          const double term = rounded(a[args.transpose_a ? l * a.shape[1] + i : i * a.shape[1] + l]) *
                              rounded(b[args.transpose_b ? j * b.shape[1] + l : l * b.shape[1] + j]);
          sum += term;
          size += std::fabs(term);
        }
        const double error = std::fabs(static_cast<double>(c[at]) - sum) / size;
        if (!std::isfinite(error)) return INFINITY;
        worst = error <= worst ? worst : error;
      }
    return worst;
  }
  static double rounded(float x) { return static_cast<double>(from_bf16(bf16_of(x))); }

  Shapes shapes;
  Array<float> a, b, c, before;
  GemmArgs args;
};

void each_problem(const std::function<void(RoundedProblem&)>& body) {
  for (const Shapes& s : kRounded)
    for (const bool ta : {false, true})
      for (const bool tb : {false, true})
        for (const double beta : {0, 1}) {
          RoundedProblem problem(s, ta, tb, ta == tb ? 0 : 3, beta);
          SCOPED_TRACE(std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) + (ta ? " ta" : "") +
                       (tb ? " tb" : ""));
          body(problem);
        }
}

TEST(RoundedGemm, RoundsBothOperandsOfEachPart) {
  ThreadPool pool(3);
  each_problem([&](RoundedProblem& p) {
    Workspace workspace;
    ASSERT_TRUE(rounded_gemm(pool, workspace, false, &kSlow, p.args));
    EXPECT_LT(p.error(), 1e-7);
  });
}

TEST(RoundedGemm, LeavesOtherProductsToF32) {
  ThreadPool pool(1);
  Workspace workspace;
  const auto taken = [&](const GemmArgs& args) { return rounded_gemm(pool, workspace, true, nullptr, args); };
  EXPECT_TRUE(taken(RoundedProblem({65, 65, 65}, false, false, 0, 0).args));
  for (const Shapes& thin : {Shapes{64, 65, 65}, {65, 64, 65}, {65, 65, 64}, {0, 65, 65}})
    EXPECT_FALSE(taken(RoundedProblem(thin, false, false, 0, 0).args));
  RoundedProblem scaled({65, 65, 65}, false, false, 0, 0);
  scaled.args.alpha = 2;
  EXPECT_FALSE(taken(scaled.args));
  EXPECT_FALSE(taken(RoundedProblem({65, 65, 65}, false, false, 0, 0.5).args));
  const Array<double> x({70, 70});
  EXPECT_FALSE(taken({Mat(x), Mat(x), false, Mat(x), false}));
}

TEST(RoundedGemm, TakesThePlannedWorkspace) {
  ThreadPool pool(2);
  Workspace workspace;
  RoundedProblem p({100, 70, 90}, false, true, 0, 0);
  ASSERT_TRUE(rounded_gemm(pool, workspace, true, nullptr, p.args));
  EXPECT_EQ(workspace.planned(), round_up<int64_t>(2 * 100 * 90, 64) + round_up<int64_t>(2 * 90 * 70, 64));
  std::vector<char> lent(static_cast<size_t>(workspace.planned()) + 64);
  workspace.lend(reinterpret_cast<char*>(round_up(reinterpret_cast<uintptr_t>(lent.data()), uintptr_t{64})), workspace.planned());
  ASSERT_TRUE(rounded_gemm(pool, workspace, false, &kSlow, p.args));
  EXPECT_EQ(workspace.own_bytes(), 0);
}

TEST(RoundedGemm, AFailureIsAnError) {
  ThreadPool pool(2);
  Workspace workspace;
  const RoundedProducts broken = {"broken", nullptr, [](const RoundedProduct&) -> const char* { return "out of order"; }};
  try {
    rounded_gemm(pool, workspace, false, &broken, RoundedProblem({600, 70, 70}, false, false, 0, 0).args);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_EQ(error.why(), "broken: out of order");
  }
}

TEST(RoundedGemm, OtherPrecisionsAreRefused) {
  const auto device = open_cpu_device(1);
  for (const Products how : {Products::tf32, Products::fp8}) EXPECT_THROW(device->set_products(how), Error);
  device->set_products(Products::fp32);
}

// By oneDNN.
class Onednn : public testing::Test {
 protected:
  void SetUp() override {
    if (const OnednnStatus status = onednn_status(); !status.here) GTEST_SKIP() << "oneDNN is " << status.reason;
  }
};

TEST_F(Onednn, MultipliesForAnyNumberOfThreads) {
  const std::unique_ptr<Device> devices[] = {open_cpu_device(1), open_cpu_device(2), open_cpu_device(3)};
  for (const auto& device : devices) device->set_products(Products::bf16);
  EXPECT_NE(devices[0]->blas().find("oneDNN"), std::string::npos) << devices[0]->blas();
  each_problem([&](RoundedProblem& p) {
    const Array<float> start = p.c;
    devices[0]->ops().run(op::Gemm{p.args});
    EXPECT_LT(p.error(), 1e-6);
    const Array<float> first = p.c;
    for (const auto& device : devices) {
      std::copy(start.v.begin(), start.v.end(), p.c.v.begin());
      device->ops().run(op::Gemm{p.args});
      EXPECT_TRUE(same_bits(first, p.c));
    }
  });
}

// Long sums, which the library might split among threads.
TEST_F(Onednn, LongSumsDoNotDependOnTheThreads) {
  const std::unique_ptr<Device> devices[] = {open_cpu_device(1), open_cpu_device(2)};
  for (const auto& device : devices) device->set_products(Products::bf16);
  for (const bool ta : {false, true}) {
    RoundedProblem p({96, 80, 6000}, ta, !ta, 0, 0);
    devices[1]->ops().run(op::Gemm{p.args});
    const Array<float> first = p.c;
    EXPECT_LT(p.error(), 1e-5);
    devices[0]->ops().run(op::Gemm{p.args});
    EXPECT_TRUE(same_bits(first, p.c));
  }
}

TEST(OnednnStatus, CanBeLeftOut) {
  ASSERT_EQ(setenv("COMERA_ONEDNN", "off", 1), 0);
  const OnednnStatus status = onednn_status();
  const auto device = open_cpu_device(1);
  try {
    device->set_products(Products::bf16);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::device);
    EXPECT_EQ(error.hint(), "unset COMERA_ONEDNN");
  }
  unsetenv("COMERA_ONEDNN");
  EXPECT_FALSE(status.here);
  EXPECT_EQ(status.reason, "left out: COMERA_ONEDNN=off");
}

TEST_F(Onednn, LinearLayersAreRounded) {
  const auto device = open_cpu_device(2);
  const Array<float> x = uniform<float>({80, 70}, 1), w = uniform<float>({90, 70}, 2), b = uniform<float>({90}, 3),
                     dy = uniform<float>({80, 90}, 4);
  Array<float> exact({80, 90}), rounded({80, 90}), exact_dw({90, 70}), rounded_dw({90, 70}), db({90});
  device->ops().linear(exact, x, w, b);
  device->ops().linear_backward(exact_dw, db, dy, x);
  device->set_products(Products::bf16);
  device->ops().linear(rounded, x, w, b);
  device->ops().linear_backward(rounded_dw, db, dy, x);
  for (const double error : {largest_difference(exact, rounded), largest_difference(exact_dw, rounded_dw)}) {
    EXPECT_GT(error, 1e-5);
    EXPECT_LT(error, 0.1);
  }
}

}  // namespace
}  // namespace comera::test
