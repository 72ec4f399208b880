// COAP (METHODS.md 3) against the published code, on every file of it, with Adam and with Adafactor inside, both also in 8 bits; and its
// identities.
#include <limits>

#include "core/optim/projector.h"
#include "tests/optim/published_run.h"

namespace comera::test {
namespace {

using layer_test::golden_files;
using layer_test::golden_setting;

std::function<void(ParamSet&)> coap_weight(int64_t m, int64_t n) {
  return [=](ParamSet& params) { params.add("w", {m, n}, ParamKind::weight, ParamGroup::rest, {}); };
}

// One published run of one matrix, and ours beside it.
struct CoapReplay {
  CoapReplay(const std::string& path, DType dtype)
      : file(path),
        rig(dtype),
        coded(file.has("m_code")),
        limit(coded                 ? golden_setting<double>(file, "tolerance")  // computed in float there
              : dtype == DType::f64 ? layer_test::kGoldenDouble
                                    : layer_test::kGoldenFloat) {
    const std::vector<int64_t>& shape = file.entry("w0").shape;
    m = shape[0], n = shape[1], steps = file.entry("grads").shape[0];
    rank = file.entry("projection").shape[right() ? 1 : 2];
    rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay", 0.0);
    config.rank = golden_setting<int64_t>(file, "rank");
    config.gap = golden_setting<int64_t>(file, "update_interval");
    config.reset_every = golden_setting<int64_t>(file, "reproject_factor");
    config.scale = golden_setting<double>(file, "scale");
    config.restore = golden_setting<bool>(file, "restore", false);
    config.refresh = "together";
    net.emplace(rig, optimizer(), coap_weight(m, n));
    from_host(*rig.device, w().value, file.values("w0"));
  }

  AdamConfig adam() const {
    const auto betas = golden_setting<std::vector<double>>(file, "betas", std::vector<double>{0.9, 0.999});
    return {betas.at(0), betas.at(1), golden_setting<double>(file, "eps")};
  }
  AdafactorConfig adafactor() const {
    const auto eps = golden_setting<std::vector<double>>(file, "eps");
    return {.beta1 = golden_setting<double>(file, "beta1"),
            .decay_exponent = golden_setting<double>(file, "decay_exponent"),
            .clip = golden_setting<double>(file, "clip"),
            .eps = eps.at(0),
            .scale_parameter = golden_setting<bool>(file, "scale_parameter"),
            .least_rms = eps.at(1),
            .relative_step = golden_setting<bool>(file, "relative_step"),
            .warmup_init = golden_setting<bool>(file, "warmup_init")};
  }
  // Codes as published: of the signed map, for second moments, too.
  std::unique_ptr<Optimizer> optimizer() {
    const bool by_adam = file.metadata().find("beta1") == file.metadata().end();
    config.rule = by_adam ? "adam" : "adafactor";
    if (!coded) return by_adam ? config.make({.adam = adam()}) : config.make({.adafactor = adafactor()});
    std::unique_ptr<Rule> rule = by_adam ? make_adam_rule(AdamFlavour::huggingface, adam()) : make_adafactor_rule(adafactor());
    return std::make_unique<Optimizer>(
        make_projected_rule(make_coded_rule(std::move(rule), {.which = {.min_size = 1, .floor = false}, .all_signed = true}),
                            make_coap_projector(config), {.rank = config.rank, .gap = config.gap, .scale = config.scale}));
  }

  bool right() const { return m >= n; }
  Param& w() { return *net->params.find("w"); }
  Tensor state(const char* name) { return net->state("w", name); }
  Values values(const char* name) { return to_host(*rig.device, state(name)); }
  // P^T P on the right, P P^T on the left: what does not depend on signs.
  Values onto(const Values& p) const { return right() ? product(p, true, p, false, n, rank, n) : product(p, false, p, true, m, rank, m); }
  void refresh(uint64_t step) {
    rig.begin(step);
    Ctx ctx = rig.ctx();
    rig.run([&] { net->optimizer->refresh(ctx, net->params.params(), step); });
  }

  double worst = 0;
  void expect_close(const Values& ours, const Values& theirs, const std::string& what) {
    const double error = relative(ours, theirs);
    worst = std::max(worst, error);
    EXPECT_LE(error, limit) << file.path() << " in " << name_of(rig.dtype) << ": " << what;
  }
  Values numbers(const char* name) {
    Ctx ctx = rig.ctx();
    return by_name(net->optimizer->capture(*rig.device, ctx, w()))[name];
  }
  // The first moment that `before` becomes in the published projection, in codes: another sign is not the same codes with a sign, as the
  // map has no -1.
  void restore_codes(const Values& before, const Values& p_before, const Values& published) {
    const Values turn =
        right() ? product(p_before, false, published, true, rank, n, rank) : product(published, true, p_before, false, rank, m, rank);
    const Values turned = right() ? product(before, false, turn, false, m, rank, rank) : product(turn, false, before, false, rank, rank, n);
    const Tensor codes = state("m8");
    const Buffer memory(rig.memory, codes.count() * static_cast<int64_t>(size_of(rig.dtype)), Purpose::data);
    const Tensor plain(memory.data(), codes.shape(), rig.dtype);
    from_host(*rig.device, plain, turned);
    rig.device->ops().quantise8bit(codes, state("absmax_m"), plain, true);
    rig.device->synchronize();
  }
  // Their signs for our singular vectors: in the projection, and in the first moment, whose directions they are.
  void take_signs(const Values& published) {
    const bool turned = config.restore && !coded;
    Values p = values("projection"), moment = turned ? values("m") : Values();
    const int64_t other = right() ? m : n, side = right() ? n : m;
    for (int64_t vector = 0; vector < rank; ++vector) {
      const auto of_p = [&](int64_t i) { return static_cast<size_t>(right() ? vector * side + i : i * rank + vector); };
      const auto of_m = [&](int64_t i) { return static_cast<size_t>(right() ? i * rank + vector : vector * other + i); };
      double dot = 0;
      for (int64_t i = 0; i < side; ++i) dot += p[of_p(i)] * published[of_p(i)];
      if (dot > 0) continue;
      for (int64_t i = 0; i < side; ++i) p[of_p(i)] = -p[of_p(i)];
      if (turned)
        for (int64_t i = 0; i < other; ++i) moment[of_m(i)] = -moment[of_m(i)];
    }
    from_host(*rig.device, state("projection"), p);
    if (turned) from_host(*rig.device, state("m"), moment);
  }

  // As the plan of the file says; the oldest files have none, and no reset behind the first.
  int64_t planned(const char* kind) const {
    const auto plan = golden_setting<std::vector<std::string>>(file, "plan", std::vector<std::string>{"reset", "refine"});
    return std::count(plan.begin(), plan.end(), kind);
  }
  void expect_states() {
    for (const auto& [ours, theirs] : {std::pair("m", "m"), {"v", "v"}, {"row", "vr"}, {"column", "vc"}}) {
      ASSERT_EQ(static_cast<bool>(state(ours)), file.has(theirs)) << file.path() << " " << ours;
      if (file.has(theirs)) expect_close(values(ours), file.values(theirs), theirs);
      const std::string codes = std::string(ours) + "8", published = std::string(theirs) + "_code";
      ASSERT_EQ(static_cast<bool>(state(codes.c_str())), file.has(published)) << file.path() << " " << ours;
      if (!file.has(published)) continue;
      EXPECT_EQ(values(codes.c_str()), file.values(published)) << file.path() << " " << published;
      expect_close(values(("absmax_" + std::string(ours)).c_str()), file.values(std::string(theirs) + "_absmax"), theirs);
    }
  }

  void run() {
    const Json rates = golden_setting<Json>(file, "lr");
    int64_t resets = 1, refinements = 0;
    for (int64_t k = 0; k < steps; ++k) {
      const auto step = static_cast<uint64_t>(k + 1);
      const std::string at = ", step " + std::to_string(step);
      const Values published = part(file, "projection", k);
      net->set_grad("w", part(file, "grads", k));
      if (k == 0) {
        if (file.has("omega")) {  // (q, r): the transposed projection on the right
          Values omega = file.values("omega");
          if (right()) {
            const Values drawn = omega;
            for (int64_t i = 0; i < n; ++i)
              for (int64_t j = 0; j < rank; ++j) omega[static_cast<size_t>(j * n + i)] = drawn[static_cast<size_t>(i * rank + j)];
          }
          from_host(*rig.device, state("projection"), omega);
          refresh(static_cast<uint64_t>(1 + config.gap * config.reset_every));  // a reset that starts from it
          expect_close(onto(values("projection")), onto(published), "first projection");
        }
        from_host(*rig.device, state("projection"), published);
      } else {
        const Values before = values("projection"), moment = numbers("m");
        refresh(step);
        const bool is_reset = k % (config.gap * config.reset_every) == 0;
        // At full rank nothing is lost, so a refinement moves the projection by rounding or not at all.
        if (rank < std::min(m, n) || is_reset || k % config.gap != 0) {
          EXPECT_EQ(values("projection") != before, k % config.gap == 0) << file.path() << at;
        }
        if (is_reset) take_signs(published);
        if (is_reset && coded && config.restore) restore_codes(moment, before, published);
        (is_reset ? resets : refinements) += k % config.gap == 0;
        expect_close(values("projection"), published, "projection" + at);
      }
      for (double& rate : rig.scalars.learning_rate)
        rate = rates.is_array() ? rates.at(static_cast<size_t>(k)).get<double>() : rates.get<double>();
      rig.begin(step);
      Ctx ctx = rig.ctx();
      rig.run([&] { net->optimizer->update(ctx, w()); });
      expect_close(net->value("w"), part(file, "w", k), "w" + at);
    }
    EXPECT_EQ(refinements > 0, planned("refine") > 0) << file.path();
    EXPECT_EQ(resets, planned("reset")) << file.path();
    expect_states();
    layer_test::report_golden(file.path(), worst, std::string(" in ") + name_of(rig.dtype));
  }

  const SafetensorsFile file;
  Rig rig;
  const bool coded;
  const double limit;
  CoapConfig config;
  std::optional<Trainee> net;
  int64_t m = 0, n = 0, rank = 0, steps = 0;
};

TEST(Golden, Coap) {
  for (const std::string& path : golden_files("coap"))
    for (const DType dtype : {DType::f64, DType::f32}) CoapReplay(path, dtype).run();
}

TEST(Golden, CoapWithAdafactor) {
  for (const std::string& path : golden_files("coap_adafactor"))
    for (const DType dtype : {DType::f64, DType::f32}) CoapReplay(path, dtype).run();
}

TEST(Golden, CoapWithEightBits) {
  for (const std::string& path : golden_files("coap8"))
    for (const DType dtype : {DType::f64, DType::f32}) CoapReplay(path, dtype).run();
}

// Their steps before the first refinement, at which the published code stops.
TEST(Golden, CoapWithAdafactorInEightBits) {
  for (const std::string& path : golden_files("coap_adafactor8"))
    for (const DType dtype : {DType::f64, DType::f32}) CoapReplay(path, dtype).run();
}

struct CoapSides : testing::TestWithParam<std::pair<int64_t, int64_t>> {
  static constexpr int64_t r = 4;
  const int64_t m = GetParam().first, n = GetParam().second;
  const bool right = m >= n;
  static CoapConfig options() {
    CoapConfig config;
    config.rank = r;
    config.gap = 2;
    config.reset_every = 2;
    return config;
  }
  Values project(const Values& p, const Values& g) const {
    return right ? product(g, false, p, true, m, n, r) : product(p, true, g, false, r, m, n);
  }
  Values back(const Values& p, const Values& u) const {
    return right ? product(u, false, p, false, m, r, n) : product(p, false, u, false, m, r, n);
  }
  // ||back(project(G)) - G||^2 / (m n) (1 - mean over rows of the cosine of G and the moment brought back).
  double loss(const Values& p, const Values& moment, const Values& g) const {
    const Values gone = back(p, project(p, g)), c = back(p, moment);
    double lost = 0, cosines = 0;
    for (int64_t i = 0; i < m; ++i) {
      double cc = 0, gg = 0, cg = 0;
      for (int64_t j = i * n; j < (i + 1) * n; ++j) {
        const auto at = static_cast<size_t>(j);
        lost += (gone[at] - g[at]) * (gone[at] - g[at]);
        cc += c[at] * c[at], gg += g[at] * g[at], cg += c[at] * g[at];
      }
      cosines += cg / std::sqrt(cc * gg);
    }
    return lost / static_cast<double>(m * n) * (1 - cosines / static_cast<double>(m));
  }
};
INSTANTIATE_TEST_SUITE_P(Shapes, CoapSides,
                         testing::Values(std::pair<int64_t, int64_t>{18, 11}, std::pair<int64_t, int64_t>{11, 18},
                                         std::pair<int64_t, int64_t>{12, 12}));

TEST_P(CoapSides, AResetIsOrthonormalAndOnTheRightSide) {
  Rig rig;
  Trainee net(rig, options().make({}), coap_weight(m, n));
  for (uint32_t t = 1; t <= 9; ++t) {
    net.set_grad("w", random_values(m * n, t));
    net.step(t);
    if (t % 4 != 1) continue;
    EXPECT_EQ(net.state("w", "projection").shape(), right ? (Shape{r, n}) : (Shape{m, r}));
    EXPECT_EQ(net.state("w", "m").shape(), right ? (Shape{m, r}) : (Shape{r, n}));
    const Values p = to_host(*rig.device, net.state("w", "projection"));
    const Values gram = right ? product(p, false, p, true, r, n, r) : product(p, true, p, false, r, m, r);
    for (size_t i = 0; i < r; ++i)
      for (size_t j = 0; j < r; ++j) EXPECT_NEAR(gram[i * r + j], i == j, 1e-12) << "step " << t;
  }
}

// Nothing of it is lost, so there is nothing to refine.
TEST_P(CoapSides, AGradientOfLowRankPassesWhole) {
  Rig rig;
  Trainee net(rig, options().make({}), coap_weight(m, n));
  const Values g = product(random_values(m * r, 21), false, random_values(r * n, 22), false, m, r, n);
  Values first;
  for (uint32_t t = 1; t <= 3; ++t) {
    net.set_grad("w", g);
    net.step(t);
    const Values p = to_host(*rig.device, net.state("w", "projection"));
    EXPECT_LT(largest_difference(back(p, project(p, g)), g), 1e-11) << "step " << t;
    if (t == 1) first = p;
    EXPECT_LT(largest_difference(p, first), 1e-12) << "step " << t;
  }
}

TEST_P(CoapSides, ARefinementStepsDownTheLoss) {
  for (const bool normalised : {false, true}) {
    Rig rig;
    CoapConfig config = options();
    config.normalised = normalised;
    Trainee net(rig, config.make({}), coap_weight(m, n));
    for (uint32_t t = 1; t <= 2; ++t) {
      net.set_grad("w", random_values(m * n, t, 0.3));
      net.step(t);
    }
    Values p = to_host(*rig.device, net.state("w", "projection")), moment = to_host(*rig.device, net.state("w", "m"));
    const Values start = p, g = random_values(m * n, 3, 0.3);
    net.set_grad("w", g);
    net.step(3);
    const Values after = to_host(*rig.device, net.state("w", "projection"));
    Values scaled = g;
    if (normalised) {
      double square = 0;
      for (const double value : g) square += value * value;
      const double rms = std::sqrt(square / static_cast<double>(m * n));
      for (Values* values : {&scaled, &moment})
        for (double& value : *values) value /= rms;
    }
    Values slope(p.size());
    double square = 0;
    for (size_t i = 0; i < p.size(); ++i) {
      p[i] = start[i] + 1e-5;
      const double above = loss(p, moment, scaled);
      p[i] = start[i] - 1e-5;
      slope[i] = (above - loss(p, moment, scaled)) / 2e-5;
      p[i] = start[i];
      square += slope[i] * slope[i];
    }
    const double factor = 0.1 * std::min(1.0, 1 / (std::sqrt(square) + 1e-6));
    for (size_t i = 0; i < p.size(); ++i) p[i] -= factor * slope[i];
    EXPECT_LT(largest_difference(after, p), 1e-9);
    EXPECT_GT(largest_difference(after, start), 1e-4);
    EXPECT_LT(loss(after, moment, scaled), loss(start, moment, scaled));
  }
}

// As published a small gradient moves nothing; the deviation sees its direction alone.
TEST_P(CoapSides, ANormalisedRefinementDoesNotSeeTheScale) {
  for (const bool normalised : {true, false}) {
    const auto refined = [&](double scale) {
      Rig rig;
      CoapConfig config = options();
      config.normalised = normalised;
      Trainee net(rig, config.make({}), coap_weight(m, n));
      for (uint32_t t = 1; t <= 3; ++t) {
        net.set_grad("w", random_values(m * n, t, scale));
        net.step(t);
      }
      return to_host(*rig.device, net.state("w", "projection"));
    };
    const double difference = largest_difference(refined(1e-3), refined(1));
    if (normalised) {
      EXPECT_LT(difference, 1e-12);
    } else {
      EXPECT_GT(difference, 1e-6);
    }
  }
}

// Neither by a reset nor by a refinement.
TEST_P(CoapSides, AGradientThatIsNotFiniteLeavesTheProjection) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    Rig rig;
    Trainee net(rig, options().make({}), coap_weight(m, n));
    for (uint32_t t = 1; t <= 2; ++t) {
      net.set_grad("w", random_values(m * n, t));
      net.step(t);
    }
    const Values before = to_host(*rig.device, net.state("w", "projection"));
    Values g = random_values(m * n, 7);
    g[g.size() / 2] = bad;
    net.set_grad("w", g);
    for (const uint64_t step : {uint64_t{1}, uint64_t{3}, uint64_t{5}}) {  // drawn, refined, reset
      rig.begin(step);
      Ctx ctx = rig.ctx();
      ASSERT_TRUE(net.optimizer->refresh_due(step));
      rig.run([&] { net.optimizer->refresh(ctx, net.params.params(), step); });
      EXPECT_EQ(to_host(*rig.device, net.state("w", "projection")), before) << "step " << step;
    }
  }
}

// Two matrices of one size start from directions of their own: one fixed seed for all is a fault of the published code.
TEST(Coap, EachMatrixDrawsItsOwnStart) {
  Rig rig;
  CoapConfig config;
  config.rank = 2;
  Trainee net(rig, config.make({}), [](ParamSet& params) {
    params.add("a", {8, 6}, ParamKind::weight, ParamGroup::rest, {});
    params.add("b", {8, 6}, ParamKind::weight, ParamGroup::rest, {});
  });
  for (const char* name : {"a", "b"}) net.set_grad(name, random_values(48, 3));
  net.step(1);
  EXPECT_NE(to_host(*rig.device, net.state("a", "projection")), to_host(*rig.device, net.state("b", "projection")));
}

// As released Adafactor needs a first moment here; without one the refinement follows what is lost alone.
TEST_P(CoapSides, WithoutAFirstMomentOnlyTheLossIsRefined) {
  Rig rig;
  CoapConfig config = options();
  config.rule = "adafactor";
  Trainee net(rig, config.make({}), coap_weight(m, n));
  EXPECT_FALSE(net.state("w", "m"));
  for (uint32_t t = 1; t <= 2; ++t) {
    net.set_grad("w", random_values(m * n, t, 0.3));
    net.step(t);
  }
  const auto lost = [&](const Values& p, const Values& g) {
    const Values kept = back(p, project(p, g));
    double sum = 0;
    for (size_t i = 0; i < g.size(); ++i) sum += (kept[i] - g[i]) * (kept[i] - g[i]);
    return sum / static_cast<double>(m * n);
  };
  Values p = to_host(*rig.device, net.state("w", "projection")), slope(p.size());
  const Values start = p, g = random_values(m * n, 3, 0.3);
  double square = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    p[i] = start[i] + 1e-5;
    const double above = lost(p, g);
    p[i] = start[i] - 1e-5;
    slope[i] = (above - lost(p, g)) / 2e-5;
    p[i] = start[i];
    square += slope[i] * slope[i];
  }
  net.set_grad("w", g);
  net.step(3);
  const double factor = 0.1 * std::min(1.0, 1 / (std::sqrt(square) + 1e-6));
  for (size_t i = 0; i < p.size(); ++i) p[i] -= factor * slope[i];
  EXPECT_LT(largest_difference(to_host(*rig.device, net.state("w", "projection")), p), 1e-9);
  EXPECT_GT(largest_difference(p, start), 1e-4);
}

// The first update comes from moments that were not rounded yet; later ones, refined and restored, from codes.
TEST_P(CoapSides, EightBitsStayCloseToPlainMoments) {
  for (const char* rule : {"adam", "adafactor"}) {
    Rig rig(DType::f32);
    CoapConfig config = options();
    config.restore = true;
    config.rule = rule;
    const AdafactorConfig adafactor{.beta1 = 0.9};
    Trainee plain(rig, config.make({.adafactor = adafactor}), coap_weight(m, n));
    config.rule = std::string(rule) + "8bit";
    Trainee coded(rig, config.make({.adam8bit = {.min_size = 1}, .adafactor = adafactor}), coap_weight(m, n));
    EXPECT_TRUE(coded.state("w", "m8"));
    EXPECT_FALSE(coded.state("w", "m"));
    EXPECT_EQ(static_cast<bool>(coded.state("w", "v8")), config.rule == "adam8bit");
    EXPECT_EQ(static_cast<bool>(coded.state("w", "row8")), config.rule == "adafactor8bit");
    for (uint32_t t = 1; t <= 6; ++t) {
      for (Trainee* net : {&plain, &coded}) {
        net->set_grad("w", random_values(m * n, t));
        net->step(t);
      }
      const double difference = largest_difference(coded.value("w"), plain.value("w"));
      EXPECT_LT(difference, t == 1 ? 1e-6 : 0.01 * t) << config.rule << ", step " << t;  // a step moves by 0.01 times a few
      if (t > 1) {
        EXPECT_GT(difference, 1e-6) << config.rule << ", step " << t;
      }
    }
    Ctx ctx = rig.ctx();
    auto numbers = by_name(coded.optimizer->capture(*rig.device, ctx, *coded.params.find("w")));
    for (const double value : numbers[config.rule == "adam8bit" ? "v" : "row"]) EXPECT_GE(value, 0) << config.rule;
  }
}

// A row and a column of the gradient are a million times smaller than the rest: their second moments are below the smallest code.
TEST_P(CoapSides, TheFloorKeepsCodedSecondMomentsAboveZero) {
  for (const char* rule : {"adam8bit", "adafactor8bit"})
    for (const bool floor : {true, false}) {
      Rig rig(DType::f32);
      CoapConfig config = options();
      config.rule = rule;
      Trainee net(rig, config.make({.adam8bit = {.min_size = 1, .floor = floor}}), coap_weight(m, n));
      Values gradient = random_values(m * n, 1);
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j)
          if (i == 0 || j == 0) gradient[static_cast<size_t>(i * n + j)] *= 1e-6;
      net.set_grad("w", gradient);
      net.step(1);
      Ctx ctx = rig.ctx();
      auto numbers = by_name(net.optimizer->capture(*rig.device, ctx, *net.params.find("w")));
      double least = INFINITY;
      for (const char* name : {"v", "row", "column"})
        for (const double value : numbers[name]) least = std::min(least, value);
      EXPECT_EQ(least > 0, floor) << rule << " " << least;
    }
}

// METHODS.md 14: b (2 r L + r s).
TEST(Coap, StateBytesByRankAndByRatio) {
  const auto bytes = [](const CoapConfig& config) {
    const auto optimizer = config.make({});
    ParamSet params;
    optimizer->attach(params.add("w", {3072, 768}, ParamKind::weight, ParamGroup::rest, {}));
    return optimizer->planned(DType::f32)[Purpose::optimizer];
  };
  CoapConfig config;
  config.rank = 192;
  EXPECT_EQ(bytes(config), 4 * (2 * 192 * 3072 + 192 * 768));
  config.rank_ratio = 2;
  EXPECT_EQ(bytes(config), 10'616'832);
  config.rank_ratio = 1000;
  EXPECT_EQ(bytes(config), 4 * (2 * 3072 + 768)) << "at least 1";
}

}  // namespace
}  // namespace comera::test
