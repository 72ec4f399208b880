// Grass (METHODS.md 8): which rows are selected, what the mean of draws is, and its identities with Adam. There is no published code.
#include <set>

#include "core/optim/projector.h"
#include "tests/optim/harness.h"

namespace comera::test {
namespace {

constexpr double kGrassRate = 0.01;  // of the rig

struct GrassSides : testing::TestWithParam<std::pair<int64_t, int64_t>> {
  int64_t m() const { return GetParam().first; }
  int64_t n() const { return GetParam().second; }
  int64_t shorter() const { return std::min(m(), n()); }
  std::function<void(ParamSet&)> one_weight() const {
    return [m = m(), n = n()](ParamSet& params) { params.add("w", {m, n}, ParamKind::weight, ParamGroup::rest, {}); };
  }
  // Row i of the shorter side: a column of a tall matrix.
  Values line(const Values& x, int64_t i) const {
    Values out;
    for (int64_t j = 0; j < std::max(m(), n()); ++j) out.push_back(x[static_cast<size_t>(m() >= n() ? j * n() + i : i * n() + j)]);
    return out;
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, GrassSides, testing::Values(std::pair(18, 11), std::pair(11, 18), std::pair(12, 12)));

double norm(const Values& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum);
}

// Rows of very different norms.
Values uneven(int64_t m, int64_t n, uint32_t seed) {
  Values x = random_values(m * n, seed);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) x[static_cast<size_t>(i * n + j)] *= std::exp(std::sin(static_cast<double>(m >= n ? j : i) * 2.1));
  return x;
}

AdamConfig exact_sign() {
  AdamConfig adam;
  adam.eps = 0;
  return adam;
}

TEST_P(GrassSides, TheLargestAreSelected) {
  Rig rig;
  Trainee net(rig, GrassConfig{.rank = 4}.make({}), one_weight());
  const Values g = uneven(m(), n(), 5);
  net.set_grad("w", g);
  net.step(1);
  const Values selected = to_host(*rig.device, net.state("w", "selected"));
  const std::set<double> rows(selected.begin(), selected.end());
  ASSERT_EQ(rows.size(), 4u);
  double least = INFINITY, most = 0;
  for (int64_t i = 0; i < shorter(); ++i) {
    const double size = norm(line(g, i));
    if (rows.contains(static_cast<double>(i)))
      least = std::min(least, size);
    else
      most = std::max(most, size);
  }
  EXPECT_GT(least, most);
  EXPECT_EQ(to_host(*rig.device, net.state("w", "weight")), Values(4, 1.0));
}

TEST_P(GrassSides, OfFullRankItIsAdamUntilTheSecondSelection) {
  Rig rig;
  rig.scalars.weight_decay = 0.1;
  constexpr uint64_t kGap = 6;
  Trainee grass(rig, GrassConfig{.rank = 100, .gap = kGap, .scale = 1, .warmup = 3}.make({}), one_weight());
  Trainee adam(rig, AdamConfig{}.make({}), one_weight());
  for (uint64_t t = 1; t <= kGap + 1; ++t) {
    const Values g = random_values(m() * n(), 20 + static_cast<uint32_t>(t));
    for (Trainee* net : {&grass, &adam}) {
      net->set_grad("w", g);
      net->step(t);
    }
    const double apart = largest_difference(grass.value("w"), adam.value("w"));
    if (t <= kGap)
      EXPECT_LT(apart, 1e-14) << t;
    else
      EXPECT_GT(apart, 1e-4) << "moments begin at 0 again";
  }
}

TEST_P(GrassSides, RowsThatWereNeverSelectedNeverChange) {
  for (const char* selection : {"top", "norm", "norm2", "uniform"})
    for (const bool replacement : {true, false}) {
      Rig rig;
      Trainee net(rig, GrassConfig{.rank = 2, .gap = 3, .selection = selection, .replacement = replacement}.make({}), one_weight());
      const Values before = net.value("w");
      std::set<int64_t> selected;
      for (uint64_t t = 1; t <= 7; ++t) {
        net.set_grad("w", random_values(m() * n(), 30 + static_cast<uint32_t>(t)));
        net.step(t);
        for (const double row : to_host(*rig.device, net.state("w", "selected"))) selected.insert(static_cast<int64_t>(row));
      }
      ASSERT_LE(selected.size(), 6u);
      for (int64_t i = 0; i < shorter(); ++i)
        EXPECT_EQ(line(net.value("w"), i) == line(before, i), !selected.contains(i)) << selection << replacement << " row " << i;
    }
}

// Bias corrections start again with the moments: without them, steps behind a refresh would be sqrt(10) times as long.
TEST_P(GrassSides, AfterASelectionStepsAreThoseOfANewRun) {
  for (const int64_t warmup : {0, 4}) {
    Rig rig;
    constexpr uint64_t kGap = 5;
    Trainee net(rig, GrassConfig{.rank = 3, .gap = kGap, .scale = 0.5, .warmup = warmup}.make({.adam = exact_sign()}), one_weight());
    const Values g = uneven(m(), n(), 6);
    for (uint64_t t = 1; t <= 2 * kGap; ++t) {
      const Values before = net.value("w");
      net.set_grad("w", g);  // the same rows in every selection
      net.step(t);
      const Values after = net.value("w");
      const double longest = largest_difference(before, after);
      const double warmth = t > kGap && warmup > 0 ? std::min(1.0, static_cast<double>(t - kGap) / static_cast<double>(warmup)) : 1;
      EXPECT_NEAR(longest, 0.5 * kGrassRate * warmth, 1e-12) << "step " << t;
    }
  }
}

// A projector and its states, without an optimizer.
struct Alone {
  Alone(Rig& rig, const GrassConfig& config, int64_t m, int64_t n)
      : rig(rig), projector(make_grass_projector(config)), projection{{m, n}, config.rank, m >= n, 77} {
    std::vector<StateSpec> specs = projector->declare(projection);
    for (const char* name : {"m", "v"}) specs.push_back({.name = name, .shape = projector->projected(projection)});
    buffer = Buffer(rig.memory, 1 << 16, Purpose::data);
    for (const StateSpec& spec : specs)
      states.push_back({spec, place(spec.shape, spec.format == StateSpec::index ? DType::i32 : rig.dtype)});
    g = place({m, n}, rig.dtype);
    sum = place({m, n}, rig.dtype);
    from_host(*rig.device, sum, Values(static_cast<size_t>(m * n)));
  }
  Tensor place(const Shape& shape, DType dtype) {
    Tensor tensor(static_cast<char*>(buffer.data()) + used, shape, dtype);
    used += Arena::aligned(tensor.bytes());
    return tensor;
  }
  // sum += P P^T G with the selection of step t.
  void add(uint64_t t) {
    rig.begin(t);
    Ctx ctx = rig.ctx();
    rig.run([&] {
      projector->refresh(ctx, projection, States(states), g, 0);
      const Tensor r = ctx.temp(projector->projected(projection), "projected");
      projector->down(ctx, projection, States(states), r, g);
      projector->up(ctx, projection, States(states), sum, r, 1);
    });
  }

  Rig& rig;
  const std::unique_ptr<Projector> projector;
  const Projection projection;
  std::vector<ParamState> states;
  Tensor g, sum;
  Buffer buffer;
  int64_t used = 0;
};

// With replacement row i is there c_i / (r q_i) times, c_i of r draws: mean 1, variance (1 - q_i) / (r q_i). The mean of N selections is
// within five standard deviations of the gradient in every row, and not within a tenth of one in all of them.
TEST_P(GrassSides, TheMeanOfDrawsIsTheGradient) {
  constexpr int64_t kDraws = 4000, kRank = 3;
  for (const auto& [selection, power] : {std::pair("norm", 1), {"norm2", 2}, {"uniform", 0}}) {
    Rig rig;
    rig.scalars.seed = 17;
    Alone alone(rig, GrassConfig{.rank = kRank, .selection = selection}, m(), n());
    const Values g = uneven(m(), n(), 8);
    from_host(*rig.device, alone.g, g);
    for (uint64_t t = 1; t <= kDraws; ++t) alone.add(t);
    const Values sum = to_host(*rig.device, alone.sum);
    double all = 0, worst = 0;
    for (int64_t i = 0; i < shorter(); ++i) all += std::pow(norm(line(g, i)), power);
    for (int64_t i = 0; i < shorter(); ++i) {
      const double q = std::pow(norm(line(g, i)), power) / all, spread = std::sqrt((1 - q) / (q * kRank * kDraws));
      const Values is = line(sum, i), wanted = line(g, i);
      const double share = is[0] / (kDraws * wanted[0]);
      for (size_t j = 0; j < is.size(); ++j) EXPECT_NEAR(is[j], share * kDraws * wanted[j], 1e-6 * kDraws) << "rows stay rows";
      EXPECT_NEAR(share, 1, 5 * spread) << selection << " row " << i << " of probability " << q;
      worst = std::max(worst, std::fabs(share - 1) / spread);
    }
    EXPECT_GT(worst, 0.1) << "draws, not all rows";
  }
}

// METHODS.md 14: 3072 x 768 and rank 192.
TEST(StateBytes, OfGrass) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{3072, 768}, {768, 3072}}) {
    ParamSet params;
    Param& w = params.add("w", {m, n}, ParamKind::weight, ParamGroup::rest, {});
    const auto optimizer = GrassConfig{.rank = 192}.make({});
    optimizer->attach(w);
    optimizer->describe(DType::f32);
    int64_t bytes = 0;
    optimizer->states(w, [&](const std::string&, Tensor& state) { bytes += state.bytes(); });
    EXPECT_EQ(bytes, 4'720'128);
    EXPECT_EQ(optimizer->planned(DType::f32)[Purpose::optimizer], 4'720'128);
  }
}

}  // namespace
}  // namespace comera::test
