// GaLore's identities (METHODS.md 2): what projection, scale, decay and refresh must do whatever the data.
#include "tests/optim/harness.h"

namespace comera::test {
namespace {

constexpr double kRate = 0.01;

std::function<void(ParamSet&)> galore_weight(int64_t m, int64_t n) {
  return [=](ParamSet& params) { params.add("w", {m, n}, ParamKind::weight, ParamGroup::rest, {}); };
}

// A matrix of the given rank.
Values low_rank(int64_t m, int64_t n, int64_t rank, uint32_t seed) {
  return product(random_values(m * rank, seed), false, random_values(rank * n, seed + 1), false, m, rank, n);
}

// Numerical rank by elimination with full pivoting.
int64_t rank_of(Values a, int64_t m, int64_t n, double tolerance) {
  int64_t rank = 0;
  for (; rank < std::min(m, n); ++rank) {
    int64_t row = rank, column = rank;
    for (int64_t i = rank; i < m; ++i)
      for (int64_t j = rank; j < n; ++j)
        if (std::fabs(a[static_cast<size_t>(i * n + j)]) > std::fabs(a[static_cast<size_t>(row * n + column)])) row = i, column = j;
    const double pivot = a[static_cast<size_t>(row * n + column)];
    if (std::fabs(pivot) <= tolerance) break;
    for (int64_t j = 0; j < n; ++j) std::swap(a[static_cast<size_t>(rank * n + j)], a[static_cast<size_t>(row * n + j)]);
    for (int64_t i = 0; i < m; ++i) std::swap(a[static_cast<size_t>(i * n + rank)], a[static_cast<size_t>(i * n + column)]);
    for (int64_t i = rank + 1; i < m; ++i) {
      const double factor = a[static_cast<size_t>(i * n + rank)] / pivot;
      for (int64_t j = rank; j < n; ++j) a[static_cast<size_t>(i * n + j)] -= factor * a[static_cast<size_t>(rank * n + j)];
    }
  }
  return rank;
}

// U S V^T with orthonormal U and V.
Values with_singular_values(const Values& values, int64_t m, int64_t n) {
  const auto orthonormal = [](int64_t rows, int64_t columns, uint32_t seed) {  // columns of (rows, columns) by Gram-Schmidt, twice
    Values q = random_values(rows * columns, seed);
    const auto at = [&](int64_t i, int64_t j) -> double& { return q[static_cast<size_t>(i * columns + j)]; };
    for (int64_t j = 0; j < columns; ++j) {
      for (int turn = 0; turn < 2; ++turn)
        for (int64_t before = 0; before < j; ++before) {
          double along = 0;
          for (int64_t i = 0; i < rows; ++i) along += at(i, j) * at(i, before);
          for (int64_t i = 0; i < rows; ++i) at(i, j) -= along * at(i, before);
        }
      double square = 0;
      for (int64_t i = 0; i < rows; ++i) square += at(i, j) * at(i, j);
      for (int64_t i = 0; i < rows; ++i) at(i, j) /= std::sqrt(square);
    }
    return q;
  };
  const auto count = static_cast<int64_t>(values.size());
  Values u = orthonormal(m, count, 31);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < count; ++j) u[static_cast<size_t>(i * count + j)] *= values[static_cast<size_t>(j)];
  return product(u, false, orthonormal(n, count, 32), true, m, count, n);
}

GaloreConfig rank_four(int64_t passes) {  // 0: exact
  GaloreConfig options;
  options.rank = 4;
  options.decomposition = passes > 0 ? "subspace" : "exact";
  options.passes = std::max<int64_t>(1, passes);
  return options;
}

struct Sides : testing::TestWithParam<std::pair<int64_t, int64_t>> {
  const int64_t m = GetParam().first, n = GetParam().second;
  const bool right = m >= n;
  Values project(const Values& p, const Values& g, int64_t r) const {
    return right ? product(g, false, p, true, m, n, r) : product(p, true, g, false, r, m, n);
  }
  Values back(const Values& p, const Values& u, int64_t r) const {
    return right ? product(u, false, p, false, m, r, n) : product(p, false, u, false, m, r, n);
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, Sides,
                         testing::Values(std::pair<int64_t, int64_t>{18, 11}, std::pair<int64_t, int64_t>{11, 18},
                                         std::pair<int64_t, int64_t>{12, 12}));

TEST_P(Sides, ProjectionIsOrthonormalAndOnTheRightSide) {
  for (const int64_t passes : {0, 1, 3}) {
    Rig rig;
    Trainee net(rig, rank_four(passes).make({}), galore_weight(m, n));
    for (uint32_t t = 1; t <= 2; ++t) {
      net.set_grad("w", random_values(m * n, 4 + t));
      net.step(t);
      EXPECT_EQ(net.state("w", "projection").shape(), right ? (Shape{4, n}) : (Shape{m, 4}));
      EXPECT_EQ(net.state("w", "m").shape(), right ? (Shape{m, 4}) : (Shape{4, n}));
      const Values p = to_host(*rig.device, net.state("w", "projection"));
      const Values gram = right ? product(p, false, p, true, 4, n, 4) : product(p, true, p, false, 4, m, 4);
      for (size_t i = 0; i < 4; ++i)
        for (size_t j = 0; j < 4; ++j) EXPECT_NEAR(gram[i * 4 + j], i == j, 1e-12) << passes << " passes, step " << t;
    }
  }
}

TEST_P(Sides, AGradientOfLowRankPassesWhole) {
  for (const int64_t passes : {0, 1, 3}) {
    Rig rig;
    Trainee net(rig, rank_four(passes).make({}), galore_weight(m, n));
    const Values g = low_rank(m, n, 4, 21);
    net.set_grad("w", g);
    net.step(1);
    const Values p = to_host(*rig.device, net.state("w", "projection"));
    EXPECT_LT(largest_difference(back(p, project(p, g, 4), 4), g), 1e-11) << passes << " passes";
  }
}

// The error of direction i falls with each pass by (s_5 / s_i)^2, here by 4 at least: after 40 passes nothing is left of it. As
// each refresh starts from the one before, so after 40 refreshes of one pass.
TEST_P(Sides, SubspaceIterationEndsAtTheSingularVectors) {
  const Values g = with_singular_values({16, 8, 4, 2, 1, 0.5}, m, n);
  const auto after = [&](int64_t passes, uint32_t refreshes) {
    Rig rig;
    GaloreConfig options = rank_four(passes);
    options.gap = 1;
    Trainee net(rig, options.make({}), galore_weight(m, n));
    for (uint32_t t = 1; t <= refreshes; ++t) {
      net.set_grad("w", g);
      net.step(t);
    }
    return to_host(*rig.device, net.state("w", "projection"));
  };
  const Values exact = after(0, 1);
  EXPECT_LT(largest_difference(after(40, 1), exact), 1e-12);
  EXPECT_LT(largest_difference(after(1, 40), exact), 1e-12);
  double lost_before = 1e9;
  for (const int64_t passes : {1, 2, 3}) {
    const Values p = after(passes, 1), kept = back(p, project(p, g, 4), 4);
    double lost = 0;
    for (size_t i = 0; i < g.size(); ++i) lost += (g[i] - kept[i]) * (g[i] - kept[i]);
    EXPECT_LT(lost, lost_before) << passes << " passes";
    EXPECT_GT(lost, 1 + 0.25) << "squares of the singular values behind the fourth";
    lost_before = lost;
  }
}

// With a rank over half of the shorter side passes cost more than they save.
TEST_P(Sides, ALargeRankIsDecomposedExactly) {
  for (const int64_t rank : {4, 7}) {
    const auto projection = [&](int64_t passes) {
      Rig rig;
      GaloreConfig options = rank_four(passes);
      options.rank = rank;
      Trainee net(rig, options.make({}), galore_weight(m, n));
      net.set_grad("w", random_values(m * n, 8));
      net.step(1);
      return to_host(*rig.device, net.state("w", "projection"));
    };
    EXPECT_EQ(projection(1) == projection(0), rank == 7) << "rank " << rank;
  }
}

TEST_P(Sides, AGradientThatIsNotFiniteLeavesTheProjection) {
  for (const int64_t passes : {0, 1, 2}) {
    Rig rig;
    GaloreConfig options = rank_four(passes);
    options.gap = 1;
    Trainee net(rig, options.make({}), galore_weight(m, n));
    net.set_grad("w", random_values(m * n, 8));
    net.step(1);
    const Values before = to_host(*rig.device, net.state("w", "projection"));
    Values g = random_values(m * n, 9);
    g[3] = std::numeric_limits<double>::quiet_NaN();
    net.set_grad("w", g);
    rig.begin(2);
    Ctx ctx = rig.ctx();
    rig.run([&] { net.optimizer->refresh(ctx, net.params.params(), 2); });
    EXPECT_EQ(to_host(*rig.device, net.state("w", "projection")), before) << passes << " passes";
  }
}

// Whatever the first gradient was, zeros or not finite: the next refresh finds the directions of its own.
TEST_P(Sides, TheSecondRefreshRecoversFromAFirstGradientWithoutDirections) {
  for (const int64_t passes : {1, 2})
    for (const double first : {0.0, std::numeric_limits<double>::quiet_NaN()}) {
      Rig rig;
      GaloreConfig options = rank_four(passes);
      options.gap = 1;
      Trainee net(rig, options.make({}), galore_weight(m, n));
      const Values g = low_rank(m, n, 4, 21);
      for (uint32_t t = 1; t <= 2; ++t) {
        net.set_grad("w", t == 1 ? Values(static_cast<size_t>(m * n), first) : g);
        rig.begin(t);
        Ctx ctx = rig.ctx();
        rig.run([&] { net.optimizer->refresh(ctx, net.params.params(), t); });
        for (const double value : to_host(*rig.device, net.state("w", "projection"))) EXPECT_TRUE(std::isfinite(value));
      }
      const Values p = to_host(*rig.device, net.state("w", "projection"));
      EXPECT_LT(largest_difference(back(p, project(p, g, 4), 4), g), 1e-11) << passes << " passes after " << first;
    }
}

// On both sides, each by its own iteration.
TEST_P(Sides, BothSidesEndAtTheSingularVectors) {
  const Values g = with_singular_values({16, 8, 4, 2, 1, 0.5}, m, n);
  const auto projections = [&](int64_t passes) {
    Rig rig;
    GaloreConfig options = rank_four(passes);
    options.side = "both";
    Trainee net(rig, options.make({}), galore_weight(m, n));
    net.set_grad("w", g);
    net.step(1);
    return std::pair(to_host(*rig.device, net.state("w", "projection")), to_host(*rig.device, net.state("w", "projection_left")));
  };
  const auto [right_exact, left_exact] = projections(0);
  const auto [right_side, left_side] = projections(40);
  EXPECT_LT(largest_difference(right_side, right_exact), 1e-12);
  EXPECT_LT(largest_difference(left_side, left_exact), 1e-12);
}

// Between two refreshes the weights move in a subspace of r directions; a refresh opens r more.
TEST_P(Sides, WithinAGapTheWeightsMoveInRDirections) {
  Rig rig;
  GaloreConfig options;
  options.rank = 3;
  options.gap = 5;
  Trainee net(rig, options.make({}), galore_weight(m, n));
  const Values start = net.value("w");
  for (uint32_t t = 1; t <= 6; ++t) {
    net.set_grad("w", random_values(m * n, 60 + t));
    net.step(t);
    Values moved = net.value("w");
    for (size_t i = 0; i < moved.size(); ++i) moved[i] -= start[i];
    EXPECT_EQ(rank_of(moved, m, n, 1e-9), t <= 5 ? 3 : 6) << "step " << t;
  }
}

TEST_P(Sides, FollowsTheReferenceAcrossARefresh) {
  Rig rig;
  const AdamConfig adam{0.9, 0.999, 1e-6, 0.1};
  rig.scalars.weight_decay = adam.weight_decay;
  GaloreConfig options;
  options.rank = 4;
  options.gap = 3;
  options.scale = 0.5;
  Trainee net(rig, options.make({.adam = adam}), galore_weight(m, n));
  AdamReference reference{{AdamFlavour::huggingface, adam.beta1, adam.beta2, adam.eps}};
  Values w = net.value("w"), p;
  for (uint32_t t = 1; t <= 8; ++t) {
    const Values g = random_values(m * n, 80 + t);
    net.set_grad("w", g);
    net.step(t);
    const Values now = to_host(*rig.device, net.state("w", "projection"));
    EXPECT_EQ(now != p, t % 3 == 1) << "the projection is refreshed at steps 1, 4, 7";
    p = now;
    const Values step = back(p, reference.update(project(p, g, 4), kRate, t), 4);
    for (size_t i = 0; i < w.size(); ++i) w[i] = (w[i] + 0.5 * step[i]) * (1 - kRate * adam.weight_decay);
    EXPECT_LT(largest_difference(net.value("w"), w), 1e-11) << "step " << t;
  }
}

TEST_P(Sides, WithAGapOfOneEveryStepHasAProjectionOfItsOwn) {
  Rig rig;
  GaloreConfig options;
  options.rank = 4;
  options.gap = 1;
  Trainee net(rig, options.make({}), galore_weight(m, n));
  Values p;
  for (uint32_t t = 1; t <= 4; ++t) {
    ASSERT_TRUE(net.optimizer->refresh_due(t)) << "step " << t;
    const Values g = low_rank(m, n, 4, 90 + 2 * t);
    net.set_grad("w", g);
    net.step(t);
    const Values now = to_host(*rig.device, net.state("w", "projection"));
    EXPECT_NE(now, p) << "step " << t;
    EXPECT_LT(largest_difference(back(now, project(now, g, 4), 4), g), 1e-11) << "of this step's gradient, step " << t;
    p = now;
  }
}

// Without momentum and with a huge eps the inner rule is gradient descent, which does not see a rotation: at full rank
// the projection must then change nothing.
TEST_P(Sides, FullRankGradientDescentIsUntouched) {
  Rig rig;
  const double eps = 1e8;
  GaloreConfig options;
  options.rank = 999;
  options.gap = 2;
  options.scale = 1;
  rig.scalars.learning_rate[2] = 0.01 * eps;
  Trainee net(rig, options.make({.adam = {0, 0, eps, 0}}), galore_weight(m, n));
  Values w = net.value("w");
  for (uint32_t t = 1; t <= 5; ++t) {
    const Values g = random_values(m * n, 30 + t);
    net.set_grad("w", g);
    net.step(t);
    for (size_t i = 0; i < w.size(); ++i) w[i] -= 0.01 * g[i];
    EXPECT_LT(largest_difference(net.value("w"), w), 1e-8) << "step " << t;  // |g| / eps
  }
}

// Rotating the side that is projected away rotates the update (until the first refresh afterwards).
TEST(Galore, OneSidedRotationEquivariance) {
  const int64_t m = 14, n = 9;
  // Q: a product of two reflections.
  Values q(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) q[static_cast<size_t>(i * n + i)] = 1;
  for (uint32_t seed : {1u, 2u}) {
    const Values a = random_values(n, 40 + seed);
    double norm2 = 0;
    for (double value : a) norm2 += value * value;
    Values reflection(static_cast<size_t>(n * n));
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        reflection[static_cast<size_t>(i * n + j)] = (i == j) - 2 * a[static_cast<size_t>(i)] * a[static_cast<size_t>(j)] / norm2;
    q = product(q, false, reflection, false, n, n, n);
  }
  GaloreConfig options;
  options.decomposition = "exact";  // random starts do not rotate with the gradient
  options.rank = 3;
  Rig rig, turned_rig;
  Trainee plain(rig, options.make({}), galore_weight(m, n)), turned(turned_rig, options.make({}), galore_weight(m, n));
  for (Trainee* net : {&plain, &turned}) from_host(*net->rig.device, net->params.find("w")->value, Values(static_cast<size_t>(m * n)));
  for (uint32_t t = 1; t <= 4; ++t) {
    const Values g = random_values(m * n, 70 + t);
    plain.set_grad("w", g);
    turned.set_grad("w", product(g, false, q, false, m, n, n));
    plain.step(t);
    turned.step(t);
    EXPECT_LT(largest_difference(turned.value("w"), product(plain.value("w"), false, q, false, m, n, n)), 1e-10);
  }
}

TEST(Galore, OtherParametersGetAdamOfTheSameFlavour) {
  Rig rig;
  const AdamConfig adam{0.9, 0.999, 1e-6, 0.2};
  rig.scalars.weight_decay = adam.weight_decay;
  GaloreConfig options;
  options.rank = 2;
  Trainee net(rig, options.make({.adam = adam}), [](ParamSet& params) {
    params.add("bias", {12}, ParamKind::bias, ParamGroup::rest, {});
    params.add("head", {3, 12}, ParamKind::head, ParamGroup::rest, {});
    params.add("table", {20, 6}, ParamKind::table, ParamGroup::rest, {});
    params.add("core", {2, 5, 3}, ParamKind::tt_core, ParamGroup::core, {});
    params.add("norm", {12}, ParamKind::norm, ParamGroup::rest, {});
  });
  for (Param& param : net.params.params()) {
    AdamReference reference{{AdamFlavour::huggingface, adam.beta1, adam.beta2, adam.eps}};
    Values w = net.value(param.name);
    for (uint32_t t = 1; t <= 3; ++t) {
      rig.begin(t);
      const Values g = random_values(param.count(), t);
      from_host(*rig.device, param.grad, g);
      Ctx ctx = rig.ctx();
      rig.run([&] { net.optimizer->update(ctx, param); });
      reference.step(w, g, kRate, adam.weight_decay, t);
      EXPECT_LT(largest_difference(net.value(param.name), w), 1e-13) << param.name;
    }
  }
}

// 8-bit inner moments: the first update differs from plain ones by nothing (fresh moments), later ones by map resolution;
// decay acts on the whole weight, once.
TEST(Galore, EightBitMomentsStayCloseAndDecayOnce) {
  const int64_t m = 96, n = 64;
  const AdamConfig adam{0.9, 0.999, 1e-8, 0.5};
  GaloreConfig options;
  options.rank = 48;
  options.rule = "adam8bit";
  Rig rig(DType::f32);
  rig.scalars.weight_decay = adam.weight_decay;
  Trainee net(rig, options.make({.adam = adam}), galore_weight(m, n));
  EXPECT_TRUE(net.state("w", "m8"));
  AdamReference reference{{AdamFlavour::bitsandbytes, adam.beta1, adam.beta2, adam.eps}};
  Values w = net.value("w");
  for (uint32_t t = 1; t <= 4; ++t) {
    const Values g = random_values(m * n, 10 + t);
    net.set_grad("w", g);
    net.step(t);
    const Values p = to_host(*rig.device, net.state("w", "projection"));
    const Values step = product(reference.update(product(g, false, p, true, m, n, 48), kRate, t), false, p, false, m, 48, n);
    for (size_t i = 0; i < w.size(); ++i) w[i] = (w[i] + options.scale * step[i]) * (1 - kRate * adam.weight_decay);
    EXPECT_LT(largest_difference(net.value("w"), w), t == 1 ? 1e-5 : 4e-4 * t) << "step " << t;
  }
  options.rank = 4;  // 96 x 4 is too small to gain from 8 bits
  Trainee small(rig, options.make({.adam = adam}), galore_weight(m, n));
  EXPECT_TRUE(small.state("w", "m"));
  Trainee at(rig, options.make({.adam = adam, .adam8bit = {.min_size = 96 * 4}}), galore_weight(m, n));
  EXPECT_TRUE(at.state("w", "m8")) << "from min_size on";
}

TEST(Galore, WhatIsNotProjectedHasEightBitMomentsToo) {
  Rig rig(DType::f32);
  GaloreConfig options;
  options.rule = "adam8bit";
  Trainee net(rig, options.make({}), [](ParamSet& params) {
    params.add("head", {64, 64}, ParamKind::head, ParamGroup::rest, {});
    params.add("small", {63, 65}, ParamKind::head, ParamGroup::rest, {});
    params.add("table", {64, 64}, ParamKind::table, ParamGroup::rest, {});
  });
  EXPECT_TRUE(net.state("head", "m8"));
  EXPECT_TRUE(net.state("small", "m"));
  EXPECT_TRUE(net.state("table", "m")) << "tables stay plain";
}

// All in the first step, then in turn: of three matrices and a gap of four, at steps 5, 2 and 3.
TEST(Galore, MatricesAreRefreshedInTurn) {
  for (const char* refresh : {"staggered", "together"}) {
    Rig rig;
    GaloreConfig options;
    options.rank = 2;
    options.gap = 4;
    options.refresh = refresh;
    Trainee net(rig, options.make({}), [](ParamSet& params) {
      params.add("a", {6, 5}, ParamKind::weight, ParamGroup::rest, {});
      params.add("bias", {6}, ParamKind::bias, ParamGroup::rest, {});
      params.add("b", {5, 6}, ParamKind::weight, ParamGroup::rest, {});
      params.add("c", {5, 5}, ParamKind::weight, ParamGroup::rest, {});
    });
    std::map<std::string, Values> projections;
    std::string changed;
    for (uint32_t t = 1; t <= 10; ++t) {
      for (Param& param : net.params.params())
        net.set_grad(param.name, random_values(param.count(), 7 * t + static_cast<uint32_t>(param.name[0])));
      net.step(t);
      for (const char* name : {"a", "b", "c"}) {
        const Values now = to_host(*rig.device, net.state(name, "projection"));
        if (now != projections[name]) changed += name;
        projections[name] = now;
      }
      changed += ' ';
    }
    EXPECT_EQ(changed, std::string(refresh) == "together" ? "abc    abc    abc  " : "abc b c  a b c  a b ") << refresh;
  }
}

TEST(Galore, StateComesBackBitForBit) {
  Rig rig;
  GaloreConfig options;
  options.rank = 3;
  Trainee net(rig, options.make({}), galore_weight(10, 8));
  net.set_grad("w", random_values(80, 4));
  net.step(1);
  Ctx ctx = rig.ctx();
  Param& w = *net.params.find("w");
  const auto saved = net.optimizer->capture(*rig.device, ctx, w);
  net.optimizer->release();
  net.optimizer->allocate(*rig.device, rig.memory, rig.dtype);
  net.optimizer->restore(*rig.device, ctx, w, saved);
  EXPECT_EQ(by_name(saved), by_name(net.optimizer->capture(*rig.device, ctx, w)));
}

}  // namespace
}  // namespace comera::test
