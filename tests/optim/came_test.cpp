// CAME (METHODS.md 10) against the published code, on every file of it, against a plain loop, and its identities.
#include "tests/optim/published_run.h"

namespace comera::test {
namespace {

using layer_test::golden_files;
using layer_test::golden_setting;

std::function<void(ParamSet&)> came_weight(const Shape& shape) {
  return [=](ParamSet& params) { params.add("w", shape, ParamKind::weight, ParamGroup::rest, {}); };
}

void follows_published_came(const std::string& path, DType dtype) {
  const SafetensorsFile file(path);
  const double limit = dtype == DType::f64 ? layer_test::kGoldenDouble : layer_test::kGoldenFloat;
  const auto betas = golden_setting<std::vector<double>>(file, "betas"), eps = golden_setting<std::vector<double>>(file, "eps");
  const CameConfig config{.beta1 = betas.at(0),
                          .beta2 = betas.at(1),
                          .beta3 = betas.at(2),
                          .clip = golden_setting<double>(file, "clip", 1.0),
                          .eps = eps.at(0),
                          .residual_eps = eps.at(1)};
  Rig rig(dtype);
  rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay", 0.0);
  Shape shape;
  for (const int64_t size : file.entry("w0").shape) shape.push_back(size);
  Trainee net(rig, config.make({}), came_weight(shape));
  from_host(*rig.device, net.params.find("w")->value, file.values("w0"));
  const Json rates = golden_setting<Json>(file, "lr");
  double worst = 0;
  const auto expect_close = [&](const Values& ours, const Values& theirs, const std::string& what) {
    const double error = relative(ours, theirs);
    worst = std::max(worst, error);
    EXPECT_LE(error, limit) << path << " " << what;
  };
  const int64_t steps = file.entry("grads").shape[0];
  for (int64_t step = 0; step < steps; ++step) {
    for (double& rate : rig.scalars.learning_rate)
      rate = rates.is_array() ? rates.at(static_cast<size_t>(step)).get<double>() : rates.get<double>();
    net.set_grad("w", part(file, "grads", step));
    net.step(static_cast<uint64_t>(step + 1));
    expect_close(net.value("w"), part(file, "w", step), "w, step " + std::to_string(step + 1));
  }
  for (const auto& [ours, theirs] :
       {std::pair("row", "vr"), {"column", "vc"}, {"residual_row", "rr"}, {"residual_column", "rc"}, {"v", "v"}, {"m", "m"}}) {
    if (!file.has("m")) continue;  // the oldest files have no states
    ASSERT_EQ(static_cast<bool>(net.state("w", ours)), file.has(theirs)) << path << " " << ours;
    if (file.has(theirs)) expect_close(to_host(*rig.device, net.state("w", ours)), file.values(theirs), theirs);
  }
  layer_test::report_golden(path, worst, std::string(" in ") + name_of(dtype));
}

TEST(Golden, Came) {
  for (const std::string& path : golden_files("came"))
    for (const DType dtype : {DType::f64, DType::f32}) follows_published_came(path, dtype);
}

// Means of x^2 + eps over the rows (p, q) and columns of x, decayed; `over`: what a correction divides them by.
struct Factors {
  int64_t p, q;
  double beta, eps;
  Values row = Values(static_cast<size_t>(p)), column = Values(static_cast<size_t>(q));

  void see(const Values& x) {
    for (double& value : row) value *= beta;
    for (double& value : column) value *= beta;
    for (int64_t i = 0; i < p * q; ++i) {
      const double square = x[static_cast<size_t>(i)] * x[static_cast<size_t>(i)] + eps;
      row[static_cast<size_t>(i / q)] += (1 - beta) * square / static_cast<double>(q);
      column[static_cast<size_t>(i % q)] += (1 - beta) * square / static_cast<double>(p);
    }
  }
  Values divide(const Values& x, double over) const {
    double mean = 0;
    for (const double value : row) mean += value / static_cast<double>(p);
    Values out;
    for (int64_t i = 0; i < p * q; ++i)
      out.push_back(x[static_cast<size_t>(i)] /
                    std::sqrt(row[static_cast<size_t>(i / q)] / mean * column[static_cast<size_t>(i % q)] / over));
    return out;
  }
};

double rms(const Values& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return std::sqrt(sum / static_cast<double>(x.size()));
}

// CAME of a matrix in double.
void step_reference(const CameConfig& config, Values& w, Values& m, Factors& squares, Factors& residuals, const Values& g, double rate,
                    double decay, double t) {
  squares.see(g);
  Values u = squares.divide(g, 1), rest;
  const double size = std::max(1.0, rms(u) / config.clip);
  for (size_t i = 0; i < u.size(); ++i) {
    m[i] = config.beta1 * m[i] + (1 - config.beta1) * u[i] / size;
    rest.push_back(u[i] / size - m[i]);
  }
  residuals.see(rest);
  const Values update = residuals.divide(m, config.correct_residual ? 1 - std::pow(config.beta3, t) : 1);
  for (size_t i = 0; i < w.size(); ++i) w[i] = w[i] * (1 - rate * decay) - rate * update[i];
}

// Both settings of the residual; gradients become so small that updates are clipped in the first steps alone.
TEST(Came, FollowsAPlainLoop) {
  for (const bool corrected : {false, true}) {
    const CameConfig config{.beta1 = 0.8, .beta2 = 0.95, .beta3 = 0.97, .clip = 0.7, .correct_residual = corrected};
    const int64_t p = 7, q = 5;
    Rig rig;
    rig.scalars.weight_decay = 0.3;
    Trainee net(rig, config.make({}), came_weight({p, q}));
    Values w = net.value("w"), m(static_cast<size_t>(p * q));
    Factors squares{p, q, config.beta2, config.eps}, residuals{p, q, config.beta3, config.residual_eps};
    for (uint32_t t = 1; t <= 40; ++t) {
      const Values g = random_values(p * q, 100 + t, t < 10 ? 1 : 0.1);
      net.set_grad("w", g);
      net.step(t);
      step_reference(config, w, m, squares, residuals, g, 0.01, 0.3, t);
      ASSERT_LT(largest_difference(net.value("w"), w), 1e-12) << "step " << t << (corrected ? ", corrected" : "");
    }
    EXPECT_LT(rms(squares.divide(random_values(p * q, 140, 0.1), 1)), config.clip) << "so both sides of the clip were taken";
  }
}

// |G| = a b^T: u = 31.6 sign(G) is clipped to the sign, M = 0.1 of it, and the residual 0.9 of it. Uncorrected, its squares count 1e-4.
TEST(Came, OfRankOneTheFirstUpdateIsElevenTimesTheSign) {
  const int64_t p = 9, q = 6;
  const Values a = random_values(p, 1), b = random_values(q, 2), sign = random_values(p * q, 3);
  Values g;
  for (int64_t i = 0; i < p * q; ++i)
    g.push_back(std::copysign(a[static_cast<size_t>(i / q)] * b[static_cast<size_t>(i % q)], sign[static_cast<size_t>(i)]));
  for (const bool corrected : {false, true}) {
    Rig rig;
    for (double& rate : rig.scalars.learning_rate) rate = 1;
    Trainee net(rig, CameConfig{.correct_residual = corrected}.make({}), came_weight({p, q}));
    from_host(*rig.device, net.params.find("w")->value, Values(g.size(), 0.0));
    net.set_grad("w", g);
    net.step(1);
    const Values w = net.value("w");
    const double size = corrected ? 0.1 / 0.9 : 0.1 / (0.9 * std::sqrt(1e-4));
    for (size_t i = 0; i < w.size(); ++i) EXPECT_NEAR(w[i], g[i] > 0 ? -size : size, 1e-9) << i;
  }
}

// Rows and columns without a gradient, as dead entries have, and a parameter without any: nothing is divided by 0 and they stay.
TEST(Came, WithoutAGradientNothingMoves) {
  const int64_t p = 6, q = 8;
  for (const DType dtype : {DType::f32, DType::f64}) {
    Rig rig(dtype);
    Trainee net(rig, CameConfig{}.make({}), [&](ParamSet& params) {
      for (const char* name : {"w", "still"}) params.add(name, {p, q}, ParamKind::weight, ParamGroup::rest, {});
      params.add("bias", {q}, ParamKind::bias, ParamGroup::rest, {});
    });
    const Values before = net.value("w"), still = net.value("still"), bias = net.value("bias");
    const auto dead = [&](size_t i) { return i / q == 2 || i % q == 5; };
    for (uint32_t t = 1; t <= 300; ++t) {
      Values g = random_values(p * q, t);
      for (size_t i = 0; i < g.size(); ++i)
        if (dead(i)) g[i] = 0;
      net.set_grad("w", g);
      net.set_grad("still", Values(g.size(), 0.0));
      net.set_grad("bias", Values(static_cast<size_t>(q), 0.0));
      net.step(t);
    }
    const Values w = net.value("w");
    for (size_t i = 0; i < w.size(); ++i) {
      ASSERT_TRUE(std::isfinite(w[i])) << i;
      EXPECT_EQ(w[i] == before[i], dead(i)) << i;
    }
    EXPECT_EQ(net.value("still"), still);
    EXPECT_EQ(net.value("bias"), bias);
  }
}

// A core (a, l, b) is the matrix (a l, b), a table of four axes likewise; their states come back bit for bit.
TEST(Came, ACoreIsAMatrix) {
  Rig rig(DType::f32);
  Trainee net(rig, CameConfig{}.make({}), [](ParamSet& params) {
    params.add("core", {3, 4, 5}, ParamKind::tt_core, ParamGroup::core, {});
    params.add("table core", {3, 2, 2, 5}, ParamKind::tt_core, ParamGroup::core, {});
    params.add("matrix", {12, 5}, ParamKind::weight, ParamGroup::core, {});
  });
  for (Param& param : net.params.params()) from_host(*rig.device, param.value, random_values(60, 9));
  for (uint32_t t = 1; t <= 3; ++t) {
    for (Param& param : net.params.params()) net.set_grad(param.name, random_values(60, t));
    net.step(t);
  }
  for (const char* name : {"core", "table core"}) {
    EXPECT_EQ(net.value(name), net.value("matrix"));
    for (const char* state : {"row", "column", "residual_row", "residual_column", "m"}) {
      EXPECT_EQ(to_host(*rig.device, net.state(name, state)), to_host(*rig.device, net.state("matrix", state))) << state;
    }
  }
  EXPECT_EQ(net.state("core", "residual_row").shape(), (Shape{3, 4}));
  EXPECT_EQ(net.state("core", "residual_column").shape(), (Shape{5}));
  Param& core = *net.params.find("core");
  Ctx ctx = rig.ctx();
  const auto saved = net.optimizer->capture(*rig.device, ctx, core);
  net.optimizer->states(
      core, [&](const std::string&, Tensor& state) { from_host(*rig.device, state, Values(static_cast<size_t>(state.count()), 0.25)); });
  net.optimizer->restore(*rig.device, ctx, core, saved);
  EXPECT_EQ(by_name(saved), by_name(net.optimizer->capture(*rig.device, ctx, core)));
}

// METHODS.md 14: b (m n + 2 (m + n)); two numbers an element of a vector.
TEST(Came, StateBytes) {
  const auto optimizer = CameConfig{}.make({});
  ParamSet params;
  optimizer->attach(params.add("w", {3072, 768}, ParamKind::weight, ParamGroup::rest, {}));
  EXPECT_EQ(optimizer->planned(DType::f32)[Purpose::optimizer], 9'467'904);
  optimizer->attach(params.add("bias", {768}, ParamKind::bias, ParamGroup::rest, {}));
  EXPECT_EQ(optimizer->planned(DType::f32)[Purpose::optimizer], 9'467'904 + 2 * 4 * 768);
}

}  // namespace
}  // namespace comera::test
