// Flora (METHODS.md 5) against the published code, on every file of it, and its identities.
#include "core/optim/projector.h"
#include "tests/optim/published_run.h"

namespace comera::test {
namespace {

using layer_test::golden_files;
using layer_test::golden_setting;

std::function<void(ParamSet&)> flora_weight(int64_t m, int64_t n) {
  return [=](ParamSet& params) { params.add("w", {m, n}, ParamKind::weight, ParamGroup::rest, {}); };
}

// A projection that the test writes into a state.
class GivenProjector final : public Projector {
 public:
  explicit GivenProjector(const char* name) : name_(name) {}
  std::vector<StateSpec> declare(const Projection& p) const override {
    return {{.name = name_, .shape = p.right ? Shape{p.rank, p.gradient[1]} : Shape{p.gradient[0], p.rank}, .axes = kStartsAnew}};
  }
  Tensor basis(Ctx&, const Projection&, const States& states) override { return states[name_].value; }

 private:
  const char* name_;
};

std::unique_ptr<Optimizer> flora_with_given_projections(const AdafactorConfig& config, const FloraConfig& options) {
  return std::make_unique<Optimizer>(make_flora_rule(config, options, {.min_size = 1}, std::make_unique<GivenProjector>("now"),
                                                     std::make_unique<GivenProjector>("next"),
                                                     std::make_unique<GivenProjector>("of sums")));
}

Values transposed(const Values& x, int64_t rows, int64_t columns) {
  Values out(x.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) out[static_cast<size_t>(j * rows + i)] = x[static_cast<size_t>(i * columns + j)];
  return out;
}

// One published run of one parameter, and ours beside it.
struct FloraReplay {
  FloraReplay(const std::string& path, DType dtype)
      : file(path),
        rig(dtype),
        coded(golden_setting<bool>(file, "quantised")),
        limit(coded                 ? golden_setting<double>(file, "tolerance")  // published in float
              : dtype == DType::f64 ? layer_test::kGoldenDouble
                                    : layer_test::kGoldenFloat) {
    const auto eps = golden_setting<std::vector<double>>(file, "eps");
    const Json beta1 = golden_setting<Json>(file, "beta1");
    const AdafactorConfig config{.decay_exponent = golden_setting<double>(file, "decay_exponent"),
                                 .clip = golden_setting<double>(file, "clip"),
                                 .eps = eps.at(0),
                                 .scale_parameter = golden_setting<bool>(file, "scale_parameter"),
                                 .least_rms = eps.at(1),
                                 .relative_step = golden_setting<bool>(file, "relative_step"),
                                 .warmup_init = golden_setting<bool>(file, "warmup_init")};
    const FloraConfig options{.rank = golden_setting<int64_t>(file, "rank"),
                              .gap = golden_setting<int64_t>(file, "kappa"),
                              .beta1 = beta1.is_null() ? 0 : beta1.get<double>(),
                              .momentum_format = coded ? "int8" : "full"};
    rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay");
    net.emplace(rig, flora_with_given_projections(config, options), [&](ParamSet& params) {
      Shape shape;
      for (const int64_t size : file.entry("w0").shape) shape.push_back(size);
      params.add("w", shape, ParamKind::weight, ParamGroup::rest, {});
    });
    from_host(*rig.device, net->params.find("w")->value, file.values("w0"));
  }

  void expect_close(const Values& ours, const Values& theirs, const std::string& what) {
    const double error = relative(ours, theirs);
    worst = std::max(worst, error);
    EXPECT_LE(error, limit) << file.path() << " in " << name_of(rig.dtype) << ": " << what;
  }
  // Theirs are transposed.
  void give(const char* state, const char* index, int64_t step) {
    const std::vector<int64_t>& shape = file.entry("draw").shape;
    const Values drawn = part(file, "draw", static_cast<int64_t>(file.values(index)[static_cast<size_t>(step)]));
    from_host(*rig.device, net->state("w", state), transposed(drawn, shape[1], shape[2]));
  }

  void run() {
    const Json rates = golden_setting<Json>(file, "lr");
    const bool compressed = golden_setting<bool>(file, "compressed");
    ASSERT_EQ(static_cast<bool>(net->state("w", "now")), compressed) << file.path();
    for (int64_t k = 0; k < file.entry("grads").shape[0]; ++k) {
      for (double& rate : rig.scalars.learning_rate) rate = rates.at(static_cast<size_t>(k)).get<double>();
      if (compressed) {
        give("now", "up_index", k);
        give("next", "down_index", k);
      }
      net->set_grad("w", part(file, "grads", k));
      net->step(static_cast<uint64_t>(k + 1));
      expect_close(net->value("w"), part(file, "w", k), "w, step " + std::to_string(k + 1));
    }
    for (const auto& [ours, theirs] : {std::pair("m", "c"), {"absmax_m", "c_absmax"}, {"row", "vr"}, {"column", "vc"}, {"v", "v"}}) {
      ASSERT_EQ(static_cast<bool>(net->state("w", ours)), file.has(theirs)) << file.path() << " " << ours;
      if (file.has(theirs)) expect_close(to_host(*rig.device, net->state("w", ours)), file.values(theirs), theirs);
    }
    if (coded) {
      EXPECT_EQ(to_host(*rig.device, net->state("w", "m8")), file.values("c_code")) << file.path();
    }
    layer_test::report_golden(file.path(), worst, std::string(" in ") + name_of(rig.dtype));
  }

  const SafetensorsFile file;
  Rig rig;
  const bool coded;
  const double limit;
  std::optional<Trainee> net;
  double worst = 0;
};

TEST(Golden, Flora) {
  for (const std::string& path : golden_files("flora"))
    for (const DType dtype : {DType::f64, DType::f32}) FloraReplay(path, dtype).run();
}

// Gradients of parts are summed in the projection of their step; no momentum.
TEST(Golden, FloraAccumulated) {
  for (const std::string& path : golden_files("flora_accumulate"))
    for (const DType dtype : {DType::f64, DType::f32}) {
      const SafetensorsFile file(path);
      const std::vector<int64_t>&grads = file.entry("grads").shape, &draw = file.entry("draw").shape;
      const auto eps = golden_setting<std::vector<double>>(file, "eps");
      const AdafactorConfig config{.decay_exponent = golden_setting<double>(file, "decay_exponent"),
                                   .clip = golden_setting<double>(file, "clip"),
                                   .eps = eps.at(0),
                                   .scale_parameter = golden_setting<bool>(file, "scale_parameter"),
                                   .least_rms = eps.at(1)};
      Rig rig(dtype);
      rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay");
      Trainee net(
          rig,
          flora_with_given_projections(config, {.rank = golden_setting<int64_t>(file, "rank"), .gap = 1, .beta1 = 0, .sums = "projected"}),
          [&](ParamSet& params) {
            params.add("w", {grads[2], grads[3]}, ParamKind::weight, ParamGroup::rest, {}).way = GradWay::summed;
          });
      Param& w = *net.params.find("w");
      ASSERT_EQ(w.grad.count(), golden_setting<int64_t>(file, "rank") * std::max(grads[2], grads[3]));
      from_host(*rig.device, w.value, file.values("w0"));
      const Buffer memory(rig.memory, w.count() * static_cast<int64_t>(size_of(dtype)), Purpose::data);
      const Tensor part_grad(memory.data(), w.shape, dtype);
      double worst = 0;
      const auto expect_close = [&](const Values& ours, const Values& theirs, const std::string& what) {
        worst = std::max(worst, relative(ours, theirs));
        EXPECT_LE(relative(ours, theirs), dtype == DType::f64 ? layer_test::kGoldenDouble : layer_test::kGoldenFloat)
            << path << " " << what;
      };
      const Values all = file.values("grads"), indices = file.values("draw_index");
      const auto rates = golden_setting<std::vector<double>>(file, "lr");
      for (int64_t step = 0; step < grads[0]; ++step) {
        for (double& rate : rig.scalars.learning_rate) rate = rates[static_cast<size_t>(step)];
        from_host(*rig.device, net.state("w", "of sums"),
                  transposed(part(file, "draw", static_cast<int64_t>(indices[static_cast<size_t>(step)])), draw[1], draw[2]));
        from_host(*rig.device, w.grad, Values(static_cast<size_t>(w.grad.count()), 0.0));
        rig.begin(static_cast<uint64_t>(step + 1));
        Ctx ctx = rig.ctx();
        for (int64_t i = 0; i < grads[1]; ++i) {
          const auto from = all.begin() + (step * grads[1] + i) * w.count();
          from_host(*rig.device, part_grad, Values(from, from + w.count()));
          rig.run([&] { net.optimizer->add_projected(ctx, w, part_grad); });
        }
        net.step(static_cast<uint64_t>(step + 1));
        expect_close(net.value("w"), part(file, "w", step), "w, step " + std::to_string(step + 1));
      }
      expect_close(to_host(*rig.device, net.state("w", "row")), file.values("vr"), "vr");
      expect_close(to_host(*rig.device, net.state("w", "column")), file.values("vc"), "vc");
      layer_test::report_golden(path, worst, std::string(" in ") + name_of(dtype));
    }
}

// What the project draws: the same draws for all parts of a step, others in the next one, and not those of the momentum.
TEST(Flora, SumsOfPartsAreTheProjectionOfTheirSum) {
  Rig rig;
  Trainee net(rig, FloraConfig{.rank = 3, .gap = 1, .sums = "projected"}.make({}), [](ParamSet& params) {
    for (const auto& [name, shape] : {std::pair("w", Shape{12, 9}), {"wide", Shape{9, 12}}, {"thin", Shape{3, 9}}})
      params.add(name, shape, ParamKind::weight, ParamGroup::rest, {}).way = GradWay::summed;
    params.add("bias", {9}, ParamKind::bias, ParamGroup::rest, {}).way = GradWay::summed;
  });
  EXPECT_EQ(net.params.find("w")->grad.shape(), (Shape{12, 3}));
  EXPECT_EQ(net.params.find("wide")->grad.shape(), (Shape{3, 12}));
  EXPECT_EQ(net.params.find("thin")->grad.shape(), (Shape{3, 9})) << "of which a projection makes nothing less";
  EXPECT_EQ(net.params.find("bias")->grad.shape(), (Shape{9}));
  for (const char* name : {"w", "wide"}) {
    Param& w = *net.params.find(name);
    const Buffer memory(rig.memory, w.count() * 8, Purpose::data);
    const Tensor one(memory.data(), w.shape, DType::f64);
    const auto sum_of = [&](uint64_t step, const std::vector<Values>& parts) {
      from_host(*rig.device, w.grad, Values(static_cast<size_t>(w.grad.count()), 0.0));
      rig.begin(step);
      Ctx ctx = rig.ctx();
      for (const Values& values : parts) {
        from_host(*rig.device, one, values);
        rig.run([&] { net.optimizer->add_projected(ctx, w, one); });
      }
      return to_host(*rig.device, w.grad);
    };
    const Values a = random_values(w.count(), 1), b = random_values(w.count(), 2);
    Values both = a;
    for (size_t i = 0; i < both.size(); ++i) both[i] += b[i];
    EXPECT_LT(largest_difference(sum_of(4, {a, b}), sum_of(4, {both})), 1e-12) << name;
    EXPECT_GT(largest_difference(sum_of(5, {both}), sum_of(4, {both})), 0.1) << name;
  }
}

void train(Trainee& net, int64_t count, uint32_t steps) {
  for (uint32_t t = 1; t <= steps; ++t) {
    net.set_grad("w", random_values(count, 30 + t));
    net.step(t);
  }
}

TEST(Flora, WithoutMomentumItIsAdafactor) {
  const AdafactorConfig config{.scale_parameter = true};
  Rig rig;
  Trainee flora(rig, FloraConfig{.rank = 3, .gap = 2, .beta1 = 0}.make({.adafactor = config}), flora_weight(9, 7));
  Trainee adafactor(rig, config.make({}), flora_weight(9, 7));
  for (Trainee* net : {&flora, &adafactor}) train(*net, 63, 5);
  EXPECT_EQ(flora.value("w"), adafactor.value("w"));
}

// A square orthonormal projection loses nothing, also where it changes.
TEST(Flora, AtFullRankAnOrthonormalProjectionLosesNothing) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{12, 8}, {8, 12}}) {
    Rig rig;
    Trainee projected(rig, flora_with_given_projections({}, {.rank = 8, .gap = 2}), flora_weight(m, n));
    Trainee whole(rig, FloraConfig{.rank = 9, .gap = 2}.make({}), flora_weight(m, n));
    EXPECT_EQ(whole.state("w", "m").shape(), (Shape{m, n}));
    EXPECT_EQ(projected.state("w", "m").count(), 8 * std::max(m, n));
    const auto reflection = [](uint32_t seed) {
      const Values a = random_values(8, seed);
      double square = 0;
      for (const double value : a) square += value * value;
      Values q(64);
      for (size_t i = 0; i < 8; ++i)
        for (size_t j = 0; j < 8; ++j) q[8 * i + j] = (i == j) - 2 * a[i] * a[j] / square;
      return q;
    };
    for (uint32_t t = 1; t <= 6; ++t) {
      const Values g = random_values(m * n, 50 + t);
      from_host(*rig.device, projected.state("w", "now"), reflection((t - 1) / 2));
      from_host(*rig.device, projected.state("w", "next"), reflection(t / 2));
      for (Trainee* net : {&projected, &whole}) {
        net->set_grad("w", g);
        net->step(t);
      }
      EXPECT_LT(largest_difference(projected.value("w"), whole.value("w")), 1e-12) << "step " << t;
    }
  }
}

// The draws of the rule are those of the step it reads its history in, and of the step behind.
TEST(Flora, ReadsItsHistoryWithTheDrawsThatWroteIt) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{9, 7}, {7, 9}, {8, 8}}) {
    const int64_t r = 3, s = std::min(m, n);
    const bool right = m >= n;
    Rig rig;
    const Buffer memory(rig.memory, 8 * (s * s + s * r) + 64, Purpose::data);
    const Tensor one(memory.data(), {s, s}, DType::f64);
    const Tensor turned(one.data<double>() + s * s, right ? Shape{s, r} : Shape{r, s}, DType::f64);
    Values identity(static_cast<size_t>(s * s));
    for (int64_t i = 0; i < s; ++i) identity[static_cast<size_t>(i * s + i)] = 1;
    from_host(*rig.device, one, identity);
    Trainee flora(rig, FloraConfig{.rank = r, .gap = 2}.make({}), flora_weight(m, n));
    Trainee given(rig, flora_with_given_projections({}, {.rank = r, .gap = 2}), flora_weight(m, n));
    // A projection of the identity is P^T.
    const auto drawn = [&](uint64_t t) {
      rig.begin(t);
      Ctx ctx = rig.ctx();
      const auto projector = make_random_projector(2);
      const uint32_t site = projection_of(*flora.params.find("w"), r).site;
      rig.run([&] { projector->down(ctx, {{s, s}, r, right, site}, States({}), turned, one); });
      return transposed(to_host(*rig.device, turned), turned.size(0), turned.size(1));
    };
    for (uint32_t t = 1; t <= 7; ++t) {
      from_host(*rig.device, given.state("w", "now"), drawn(t));
      from_host(*rig.device, given.state("w", "next"), drawn(t + 1));
      for (Trainee* net : {&flora, &given}) {
        net->set_grad("w", random_values(m * n, 70 + t));
        net->step(t);
      }
      EXPECT_LT(largest_difference(flora.value("w"), given.value("w")), 1e-12) << "step " << t;
    }
  }
}

// The mean over draws of a matrix that goes down and up is the matrix; the error falls with the root of their number.
TEST(Flora, DownAndUpIsRightInTheMean) {
  for (const bool right : {true, false}) {
    const int64_t m = right ? 20 : 16, n = right ? 16 : 20, r = 4;
    Rig rig;
    const Buffer memory(rig.memory, 8 * (2 * m * n + 20 * r) + 128, Purpose::data);
    const Tensor u(memory.data(), {m, n}, DType::f64), back(u.data<double>() + m * n, {m, n}, DType::f64);
    const Tensor small(back.data<double>() + m * n, right ? Shape{m, r} : Shape{r, n}, DType::f64);
    const Values values = random_values(m * n, 3);
    from_host(*rig.device, u, values);
    from_host(*rig.device, back, Values(values.size()));
    const auto projector = make_random_projector(1);
    rig.begin(1);
    Ctx ctx = rig.ctx();
    constexpr uint32_t kTrials = 1600;
    for (uint32_t site = 0; site < kTrials; ++site)
      rig.run([&] {
        projector->down(ctx, {{m, n}, r, right, site}, States({}), small, u);
        projector->up(ctx, {{m, n}, r, right, site}, States({}), back, small, 1.0 / kTrials);
      });
    double lost = 0, all = 0;
    const Values mean = to_host(*rig.device, back);
    for (size_t i = 0; i < values.size(); ++i) lost += std::pow(mean[i] - values[i], 2), all += values[i] * values[i];
    const double expected = std::sqrt(16.0 / static_cast<double>(r) / kTrials);
    EXPECT_LT(std::sqrt(lost / all), 1.5 * expected);
    EXPECT_GT(std::sqrt(lost / all), 0.5 * expected);
  }
}

// Matrices that are long for their width, and whose rank would not be below it, keep whole momentum, as vectors do.
TEST(Flora, WhatIsCompressed) {
  Rig rig;
  Trainee net(rig, FloraConfig{.rank = 3}.make({}), [](ParamSet& params) {
    params.add("w", {16, 4}, ParamKind::weight, ParamGroup::rest, {});
    params.add("long", {17, 4}, ParamKind::weight, ParamGroup::rest, {});
    params.add("thin", {2, 5}, ParamKind::weight, ParamGroup::rest, {});
    params.add("head", {6, 6}, ParamKind::head, ParamGroup::rest, {});
    params.add("bias", {6}, ParamKind::bias, ParamGroup::rest, {});
    params.add("core", {2, 5, 3}, ParamKind::tt_core, ParamGroup::core, {});
  });
  for (Param& param : net.params.params())
    EXPECT_EQ(net.state(param.name, "m").shape(), param.name == "w" ? (Shape{16, 3}) : param.shape) << param.name;
}

// METHODS.md 14: b (r L + m + n).
TEST(Flora, StateBytes) {
  const auto optimizer = FloraConfig{.rank = 192}.make({});
  ParamSet params;
  optimizer->attach(params.add("w", {3072, 768}, ParamKind::weight, ParamGroup::rest, {}));
  EXPECT_EQ(optimizer->planned(DType::f32)[Purpose::optimizer], 4 * (192 * 3072 + 3072 + 768));
}

// Codes and an absmax for every 256 of them; small matrices and tables keep whole momentum, as in 8-bit Adam.
TEST(Flora, StateBytesInEightBits) {
  const auto bytes = [](Shape shape, ParamKind kind) {
    const auto optimizer = FloraConfig{.rank = 192, .momentum_format = "int8"}.make({});
    ParamSet params;
    optimizer->attach(params.add("w", shape, kind, ParamGroup::rest, {}));
    return optimizer->planned(DType::f32)[Purpose::optimizer];
  };
  EXPECT_EQ(bytes({3072, 768}, ParamKind::weight), 192 * 3072 + 4 * (192 * 3072 / 256) + 4 * (3072 + 768));
  EXPECT_EQ(bytes({6144, 768}, ParamKind::weight), 6144 * 768 + 4 * (6144 * 768 / 256) + 4 * (6144 + 768)) << "whole momentum";
  EXPECT_EQ(bytes({6144, 768}, ParamKind::table), 4 * (6144 * 768 + 6144 + 768));
  EXPECT_EQ(bytes({48, 64}, ParamKind::weight), 4 * (48 * 64 + 48 + 64));
}

}  // namespace
}  // namespace comera::test
