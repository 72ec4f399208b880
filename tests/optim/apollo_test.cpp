// APOLLO (METHODS.md 6) against the published code, on every file of it, and its identities.
#include "core/optim/projector.h"
#include "tests/optim/published_run.h"

namespace comera::test {
namespace {

using layer_test::golden_files;
using layer_test::golden_setting;

std::function<void(ParamSet&)> apollo_weight(int64_t m, int64_t n) {
  return [=](ParamSet& params) { params.add("w", {m, n}, ParamKind::weight, ParamGroup::rest, {}); };
}

// The projection is a state that the test writes, as it is for GaLore: APOLLO itself never asks for its refresh.
std::unique_ptr<Optimizer> apollo_with_given_projection(const AdamConfig& adam, const ApolloConfig& options) {
  return std::make_unique<Optimizer>(make_apollo_rule(adam, options, make_svd_projector()));
}

void follows_published_apollo(const std::string& path, DType dtype) {
  const SafetensorsFile file(path);
  const double limit = dtype == DType::f64 ? layer_test::kGoldenDouble : layer_test::kGoldenFloat;
  const std::vector<int64_t>& shape = file.entry("w0").shape;
  const auto betas = golden_setting<std::vector<double>>(file, "betas", std::vector<double>{0.9, 0.999});
  ApolloConfig options;
  options.rank = golden_setting<int64_t>(file, "rank");
  options.alpha = golden_setting<double>(file, "alpha");
  options.scaling = golden_setting<std::string>(file, "scale_type", path.find("apollo_tensor") == std::string::npos ? "channel" : "tensor");
  options.alpha_first = golden_setting<bool>(file, "scale_front", false);
  options.growth = golden_setting<double>(file, "limiter", options.growth);
  Rig rig(dtype);
  rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay", 0.0);
  Trainee net(rig, apollo_with_given_projection({betas.at(0), betas.at(1), golden_setting<double>(file, "eps")}, options),
              apollo_weight(shape[0], shape[1]));
  from_host(*rig.device, net.params.find("w")->value, file.values("w0"));
  const Json rates = golden_setting<Json>(file, "lr");
  double worst = 0;
  const auto expect_close = [&](const Values& ours, const Values& theirs, const std::string& what) {
    const double error = relative(ours, theirs);
    worst = std::max(worst, error);
    EXPECT_LE(error, limit) << path << " in " << name_of(dtype) << ": " << what;
  };
  const int64_t steps = file.entry("grads").shape[0];
  for (int64_t k = 0; k < steps; ++k) {
    for (double& rate : rig.scalars.learning_rate)
      rate = rates.is_array() ? rates.at(static_cast<size_t>(k)).get<double>() : rates.get<double>();
    const bool many = file.has("projection_index");  // an older file has one draw
    const Values draw = many ? part(file, "projection", static_cast<int64_t>(file.values("projection_index")[static_cast<size_t>(k)]))
                             : file.values("projection");
    from_host(*rig.device, net.state("w", "projection"), draw);
    net.set_grad("w", part(file, "grads", k));
    net.step(static_cast<uint64_t>(k + 1));
    expect_close(net.value("w"), part(file, "w", k), "w, step " + std::to_string(k + 1));
  }
  for (const char* moment : {"m", "v"}) expect_close(to_host(*rig.device, net.state("w", moment)), file.values(moment), moment);
  layer_test::report_golden(path, worst, std::string(" in ") + name_of(dtype));
}

TEST(Golden, Apollo) {
  for (const std::string& path : golden_files("apollo"))
    for (const DType dtype : {DType::f64, DType::f32}) follows_published_apollo(path, dtype);
}

constexpr double kApolloRate = 0.01;

// Row i of a tall matrix (n columns), column i of a wide one.
double length_of(const Values& x, int64_t m, int64_t n, int64_t i) {
  double square = 0;
  for (int64_t j = 0; j < (m >= n ? n : m); ++j) {
    const double value = x[static_cast<size_t>(m >= n ? i * n + j : j * n + i)];
    square += value * value;
  }
  return std::sqrt(square);
}
double length_of(const Values& x) {
  double square = 0;
  for (const double value : x) square += value * value;
  return std::sqrt(square);
}
Values less(const Values& a, const Values& b) {
  Values out = a;
  for (size_t i = 0; i < out.size(); ++i) out[i] -= b[i];
  return out;
}

struct ApolloSides : testing::TestWithParam<std::pair<int64_t, int64_t>> {
  const int64_t m = GetParam().first, n = GetParam().second, channels = std::max(m, n);
  const bool right = m >= n;
  size_t channel_of(size_t i) const { return right ? i / static_cast<size_t>(n) : i % static_cast<size_t>(n); }
  Values project(const Values& p, const Values& g, int64_t r) const {
    return right ? product(g, false, p, true, m, n, r) : product(p, true, g, false, r, m, n);
  }
  double length_of_projected(const Values& x, int64_t r, int64_t i) const { return length_of(x, right ? m : r, right ? r : n, i); }
};
INSTANTIATE_TEST_SUITE_P(Shapes, ApolloSides,
                         testing::Values(std::pair<int64_t, int64_t>{18, 11}, std::pair<int64_t, int64_t>{11, 18},
                                         std::pair<int64_t, int64_t>{12, 12}));

TEST_P(ApolloSides, EachChannelMovesAgainstItsGradient) {
  for (const char* scaling : {"channel", "tensor"}) {
    Rig rig;
    Trainee net(rig, ApolloConfig{.rank = 3, .gap = 2, .scaling = scaling}.make({}), apollo_weight(m, n));
    Values before = net.value("w");
    for (uint32_t t = 1; t <= 4; ++t) {
      const Values g = random_values(m * n, 60 + t);
      net.set_grad("w", g);
      net.step(t);
      const Values moved = less(net.value("w"), before);
      Values scale(static_cast<size_t>(channels));
      for (size_t i = 0; i < g.size(); ++i) {
        double& of_channel = scale[channel_of(i)];
        const double here = -moved[i] / g[i];
        if (of_channel == 0) of_channel = here;
        EXPECT_NEAR(here, of_channel, 1e-9 * of_channel) << scaling << ", entry " << i;
      }
      EXPECT_GT(*std::min_element(scale.begin(), scale.end()), 0);
      const bool one = std::fabs(scale[0] - scale[1]) < 1e-9 * scale[0];
      EXPECT_EQ(one, std::string(scaling) == "tensor") << "step " << t;
      before = net.value("w");
    }
  }
}

// The first update of a channel is eta sqrt(alpha r) |G_i| / |R_i| long, where eps does not count.
TEST_P(ApolloSides, TheFirstUpdateHasTheLengthOfAWholeOne) {
  const int64_t r = 4;
  Rig rig;
  Trainee net(rig, apollo_with_given_projection({0.9, 0.999, 1e-30}, {.rank = r, .alpha = 2.25}), apollo_weight(m, n));
  const Values p = random_values(r * std::min(m, n), 7), g = random_values(m * n, 8), before = net.value("w");
  from_host(*rig.device, net.state("w", "projection"), p);
  net.set_grad("w", g);
  net.step(1);
  const Values moved = less(net.value("w"), before), projected = project(p, g, r);
  for (int64_t i = 0; i < channels; ++i)
    EXPECT_NEAR(length_of(moved, m, n, i),
                kApolloRate * 1.5 * std::sqrt(static_cast<double>(r)) * length_of(g, m, n, i) / length_of_projected(projected, r, i), 1e-8);
}

// At full rank without a projection each channel is as long as Adam's.
TEST_P(ApolloSides, WithoutAProjectionChannelsAreAsLongAsAdams) {
  const int64_t s = std::min(m, n);
  const AdamConfig adam{0.9, 0.999, 1e-6};
  Rig rig;
  Trainee net(rig, apollo_with_given_projection(adam, {.rank = s, .growth = 1e9}), apollo_weight(m, n));
  Values identity(static_cast<size_t>(s * s));
  for (int64_t i = 0; i < s; ++i) identity[static_cast<size_t>(i * s + i)] = 1;
  from_host(*rig.device, net.state("w", "projection"), identity);
  AdamReference reference{{AdamFlavour::huggingface, adam.beta1, adam.beta2, adam.eps}};
  Values before = net.value("w");
  for (uint32_t t = 1; t <= 5; ++t) {
    const Values g = random_values(m * n, 20 + t);
    net.set_grad("w", g);
    net.step(t);
    const Values moved = less(net.value("w"), before), whole = reference.update(g, kApolloRate, t);
    for (int64_t i = 0; i < channels; ++i) EXPECT_NEAR(length_of(moved, m, n, i), length_of(whole, m, n, i), 1e-9) << "step " << t;
    before = net.value("w");
  }
}

// Updates over the step size of Adam: their length grows by at most 1.01 times a step, however gradients grow.
TEST_P(ApolloSides, TheLengthOfUpdatesGrowsSlowly) {
  Rig rig;
  const AdamConfig adam{0.9, 0.999, 1e-6};
  Trainee net(rig, ApolloConfig{.rank = 3, .gap = 4}.make({.adam = adam}), apollo_weight(m, n));
  Values before = net.value("w");
  double last = 0;
  int limited = 0;
  for (uint32_t t = 1; t <= 20; ++t) {
    net.set_grad("w", random_values(m * n, 40 + t, std::pow(1.3, t)));
    net.step(t);
    const double size = kApolloRate * std::sqrt(1 - std::pow(adam.beta2, t)) / (1 - std::pow(adam.beta1, t));
    const double length = length_of(less(net.value("w"), before)) / size;
    if (t > 1) {
      EXPECT_LE(length, last * 1.01 * (1 + 1e-6)) << "step " << t;
      limited += length > last * 1.00999 ? 1 : 0;
    }
    EXPECT_NEAR(to_host(*rig.device, net.state("w", "norm"))[0], length, 1e-9 * length) << "step " << t;
    last = length;
    before = net.value("w");
  }
  EXPECT_GT(limited, 3);
}

// A gradient of 0 would hold all later updates near 0, as published.
TEST(Apollo, AStepWithoutAGradientLimitsNoLaterOne) {
  const auto length_after = [](bool pause) {
    Rig rig;
    Trainee net(rig, ApolloConfig{.rank = 3}.make({}), apollo_weight(9, 7));
    uint32_t t = 0;
    for (; t < 3; ++t) {
      net.set_grad("w", random_values(63, t));
      net.step(t + 1);
    }
    if (pause) {
      net.set_grad("w", Values(63));
      net.step(++t);
    }
    const Values before = net.value("w");
    net.set_grad("w", random_values(63, 50));
    net.step(++t);
    return length_of(less(net.value("w"), before));
  };
  EXPECT_GT(length_after(true), 0.2 * length_after(false));
}

// Draws hold for a gap, belong to a matrix and to the seed of the run, and have variance 1 / r; `ahead` is the step behind.
TEST(Apollo, ProjectionsAreDrawnAgainEveryGap) {
  Rig rig;
  const Buffer memory(rig.memory, 8 * (30 * 30 + 30 * 20), Purpose::data);
  const Tensor one(memory.data(), {30, 30}, DType::f64), r(one.data<double>() + 900, {30, 20}, DType::f64);
  Values identity(900);
  for (size_t i = 0; i < 30; ++i) identity[31 * i] = 1;
  from_host(*rig.device, one, identity);
  const auto drawn = [&](uint64_t step, int64_t ahead = 0, uint32_t site = 1) {
    rig.begin(step);
    Ctx ctx = rig.ctx();
    const auto projector = make_random_projector(3, ahead);
    rig.run([&] { projector->down(ctx, {{30, 30}, 20, true, site}, States({}), r, one); });
    return to_host(*rig.device, r);
  };
  const Values first = drawn(1);
  EXPECT_EQ(drawn(2), first);
  EXPECT_EQ(drawn(3), first);
  const Values second = drawn(4);
  EXPECT_NE(second, first);
  EXPECT_EQ(drawn(6), second);
  EXPECT_NE(drawn(7), second);
  EXPECT_EQ(drawn(3, 1), second);
  EXPECT_EQ(drawn(2, 1), first);
  EXPECT_NE(drawn(1, 0, 2), first);
  rig.scalars.seed = 5;
  EXPECT_NE(drawn(1), first);
  double sum = 0, square = 0;
  for (const double value : first) sum += value, square += value * value;
  EXPECT_NEAR(sum / 600, 0, 0.03);
  EXPECT_NEAR(square / 600, 1.0 / 20, 0.01);
}

TEST(Apollo, OtherParametersGetAdam) {
  Rig rig;
  const AdamConfig adam{0.9, 0.999, 1e-6, 0.2};
  rig.scalars.weight_decay = adam.weight_decay;
  Trainee net(rig, ApolloConfig{.rank = 2}.make({.adam = adam}), [](ParamSet& params) {
    params.add("bias", {12}, ParamKind::bias, ParamGroup::rest, {});
    params.add("head", {3, 12}, ParamKind::head, ParamGroup::rest, {});
    params.add("core", {2, 5, 3}, ParamKind::tt_core, ParamGroup::core, {});
  });
  std::map<std::string, Values> expected;
  std::map<std::string, AdamReference> references;
  for (Param& param : net.params.params()) {
    expected[param.name] = net.value(param.name);
    references[param.name] = {{AdamFlavour::huggingface, adam.beta1, adam.beta2, adam.eps}};
  }
  for (uint32_t t = 1; t <= 3; ++t) {
    for (Param& param : net.params.params()) {
      const Values g = random_values(param.count(), t);
      net.set_grad(param.name, g);
      references[param.name].step(expected[param.name], g, kApolloRate, adam.weight_decay, t);
    }
    net.step(t);
  }
  for (const auto& [name, values] : expected) EXPECT_LT(largest_difference(net.value(name), values), 1e-13) << name;
}

// METHODS.md 14: b (2 r L + 1); the one number takes 64 bytes.
TEST(Apollo, StateBytes) {
  const auto bytes = [](int64_t rank) {
    const auto optimizer = ApolloConfig{.rank = rank}.make({});
    ParamSet params;
    optimizer->attach(params.add("w", {3072, 768}, ParamKind::weight, ParamGroup::rest, {}));
    return optimizer->planned(DType::f32)[Purpose::optimizer];
  };
  EXPECT_EQ(bytes(192), 4'718'592 + 64);
  EXPECT_EQ(bytes(1), 24'576 + 64) << "APOLLO-Mini";
}

}  // namespace
}  // namespace comera::test
