// COAP's projection of convolutions (METHODS.md 3.1) against the published code, and its identities. Published weights are
// (O, I, rows, columns), ours (O, A I) with A = rows x columns; factors are (O, r_O) and (I, r_I) there.
#include "core/optim/projector.h"
#include "tests/optim/published_run.h"

namespace comera::test {
namespace {

using layer_test::golden_files;
using layer_test::golden_setting;

// (n, a, b) -> (n, b, a).
Values swapped(const Values& values, int64_t n, int64_t a, int64_t b) {
  Values out(values.size());
  for (int64_t k = 0; k < n; ++k)
    for (int64_t i = 0; i < a; ++i)
      for (int64_t j = 0; j < b; ++j) out[static_cast<size_t>((k * b + j) * a + i)] = values[static_cast<size_t>((k * a + i) * b + j)];
  return out;
}

// A tensor (O, A, I), and factors L (O, r_O), Q (r_I, I).
struct Tucker {
  int64_t out, places, in, rows, columns;

  Values down(const Values& g, const Values& left, const Values& right) const {
    Values r(static_cast<size_t>(rows * places * columns), 0.0);
    each([&](size_t of_g, size_t of_r, size_t of_left, size_t of_right) { r[of_r] += g[of_g] * left[of_left] * right[of_right]; });
    return r;
  }
  Values back(const Values& r, const Values& left, const Values& right) const {
    Values g(static_cast<size_t>(out * places * in), 0.0);
    each([&](size_t of_g, size_t of_r, size_t of_left, size_t of_right) { g[of_g] += r[of_r] * left[of_left] * right[of_right]; });
    return g;
  }
  double lost(const Values& g, const Values& left, const Values& right) const {
    const Values kept = back(down(g, left, right), left, right);
    double sum = 0;
    for (size_t i = 0; i < g.size(); ++i) sum += (kept[i] - g[i]) * (kept[i] - g[i]);
    return sum;
  }

 private:
  void each(const std::function<void(size_t, size_t, size_t, size_t)>& body) const {
    for (int64_t o = 0; o < out; ++o)
      for (int64_t a = 0; a < places; ++a)
        for (int64_t i = 0; i < in; ++i)
          for (int64_t m = 0; m < rows; ++m)
            for (int64_t n = 0; n < columns; ++n)
              body(static_cast<size_t>((o * places + a) * in + i), static_cast<size_t>((m * places + a) * columns + n),
                   static_cast<size_t>(o * rows + m), static_cast<size_t>(n * in + i));
  }
};

std::function<void(ParamSet&)> one_convolution(int64_t out, int64_t places, int64_t in) {
  return [=](ParamSet& params) { params.add("w", {out, places * in}, ParamKind::weight, ParamGroup::rest, {}).places = places; };
}

// One published run, and ours beside it.
struct TuckerReplay {
  TuckerReplay(const std::string& path, DType dtype) : file(path), rig(dtype) {
    const std::vector<int64_t>& shape = file.entry("w0").shape;
    config.rank_ratio = golden_setting<double>(file, "rank_ratio");
    config.gap = golden_setting<int64_t>(file, "update_interval");
    config.reset_every = golden_setting<int64_t>(file, "reproject_factor");
    config.scale = golden_setting<double>(file, "scale");
    config.restore = golden_setting<bool>(file, "restore", false);
    config.refresh = "together";
    sizes = {shape[0], shape[2] * shape[3], shape[1], file.entry("factor0").shape[2],
             file.has("factor1") ? file.entry("factor1").shape[2] : 0};
    rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay");
    const auto betas = golden_setting<std::vector<double>>(file, "betas");
    const AdamConfig adam{betas.at(0), betas.at(1), golden_setting<double>(file, "eps")};
    // Windows of one pixel are projected along outputs alone, and are matrices here: the left side of the matrix form.
    std::unique_ptr<Optimizer> optimizer =
        tucker() ? config.make({.adam = adam})
                 : std::make_unique<Optimizer>(make_projected_rule(
                       make_adam_rule(AdamFlavour::huggingface, adam), make_coap_projector(config),
                       {.rank = sizes.rows, .gap = config.gap, .scale = config.scale, .together = true, .side = ProjectedOptions::left}));
    net.emplace(rig, std::move(optimizer), one_convolution(sizes.out, sizes.places, sizes.in));
    from_host(*rig.device, net->params.find("w")->value, weights(file.values("w0")));
  }

  bool tucker() const { return sizes.columns > 0; }
  Values weights(const Values& theirs) const { return swapped(theirs, sizes.out, sizes.in, sizes.places); }
  Values moments(const Values& theirs) const { return tucker() ? swapped(theirs, sizes.rows, sizes.columns, sizes.places) : theirs; }
  Values left(int64_t k) const { return part(file, (file.has("factor0_cleared") ? "factor0_cleared" : "factor0"), k); }
  Values right(int64_t k) const {
    return swapped(part(file, (file.has("factor1_cleared") ? "factor1_cleared" : "factor1"), k), 1, sizes.in, sizes.columns);
  }
  Tensor state(const char* name) { return net->state("w", name); }
  const char* left_name() const { return tucker() ? "projection_left" : "projection"; }
  Values values(const char* name) { return to_host(*rig.device, state(name)); }
  void expect_close(const Values& ours, const Values& theirs, const std::string& what) {
    const double error = relative(ours, theirs);
    worst = std::max(worst, error);
    EXPECT_LE(error, rig.dtype == DType::f64 ? layer_test::kGoldenDouble : layer_test::kGoldenFloat) << file.path() << ": " << what;
  }
  // In place of what a reset of ours made: theirs, and the moments in it.
  void take_reset(int64_t k, const Values& m, const Values& v) {
    const Values old_left = left(std::max<int64_t>(0, k - 1)), old_right = tucker() ? right(std::max<int64_t>(0, k - 1)) : Values();
    from_host(*rig.device, state(left_name()), left(k));
    if (!tucker()) return;
    from_host(*rig.device, state("projection"), right(k));
    if (k == 0 || !config.restore) return;
    const auto turned = [&](const Values& x) { return sizes.down(sizes.back(x, old_left, old_right), left(k), right(k)); };
    from_host(*rig.device, state("m"), turned(m));
    Values root = v;
    for (double& value : root) value = std::sqrt(value);
    root = turned(root);
    for (double& value : root) value *= value;
    from_host(*rig.device, state("v"), root);
  }

  void run() {
    const auto rates = golden_setting<std::vector<double>>(file, "lr");
    const auto plan = golden_setting<std::vector<std::string>>(file, "plan");
    for (int64_t k = 0; k < file.entry("grads").shape[0]; ++k) {
      const auto step = static_cast<uint64_t>(k + 1);
      const std::string at = ", step " + std::to_string(step), kind = plan.at(static_cast<size_t>(k));
      const Values g = weights(part(file, "grads", k));
      net->set_grad("w", g);
      rig.begin(step);
      EXPECT_EQ(net->optimizer->refresh_due(step), kind != "keep");
      if (kind != "keep") {
        const Values m = values("m"), v = values("v");
        Ctx ctx = rig.ctx();
        rig.run([&] { net->optimizer->refresh(ctx, net->params.params(), step); });
        if (kind == "reset") {
          if (tucker()) {  // theirs stops where another sweep gains little
            EXPECT_LE(sizes.lost(g, values("projection_left"), values("projection")), 1.001 * sizes.lost(g, left(k), right(k))) << at;
          }
          take_reset(k, m, v);
        }
      }
      expect_close(values(left_name()), left(k), "left projection" + at);
      if (tucker()) expect_close(values("projection"), right(k), "right projection" + at);
      for (double& rate : rig.scalars.learning_rate) rate = rates.at(static_cast<size_t>(k));
      rig.begin(step);
      Ctx ctx = rig.ctx();
      rig.run([&] { net->optimizer->update(ctx, net->params.params()); });
      expect_close(net->value("w"), weights(part(file, file.has("w_cleared") ? "w_cleared" : "w", k)), "w" + at);
    }
    if (!file.has("w_cleared"))  // of that run they are not in the file
      for (const char* name : {"m", "v"}) expect_close(values(name), moments(file.values(name)), name);
    layer_test::report_golden(file.path(), worst, std::string(" in ") + name_of(rig.dtype));
  }

  const SafetensorsFile file;
  Rig rig;
  Tucker sizes{};
  CoapConfig config;
  std::optional<Trainee> net;
  double worst = 0;
};

// Adafactor's second moments of four axes are others there (METHODS.md 0.3).
TEST(Golden, CoapOfConvolutions) {
  for (const std::string& path : golden_files("coap_tucker"))
    for (const DType dtype : {DType::f64, DType::f32})
      if (golden_setting<std::string>(SafetensorsFile(path), "inner") == "adamw") TuckerReplay(path, dtype).run();
}

// Neither side is wider than the other can fill, and a reset is orthonormal.
TEST(CoapTucker, SidesFitAndAreOrthonormal) {
  struct Case {
    int64_t out, places, in;
    double ratio;
    int64_t rank, rows, columns;
  };
  for (const Case& c : {Case{8, 9, 6, 2, 1, 5, 4}, {6, 4, 5, 0, 3, 3, 3}, {64, 4, 1, 0, 64, 4, 1}, {1, 4, 16, 0, 16, 1, 4}}) {
    for (const char* rule : {"adam", "adam8bit", "adafactor", "adafactor8bit"}) {
      Rig rig;
      CoapConfig config;
      config.rank = c.rank;
      config.rank_ratio = c.ratio;
      config.gap = 2;
      config.reset_every = 2;
      config.restore = rule == std::string("adam");
      config.rule = rule;
      Trainee net(rig, config.make({}), one_convolution(c.out, c.places, c.in));
      for (uint32_t t = 1; t <= 7; ++t) {
        net.set_grad("w", random_values(c.out * c.places * c.in, t));
        net.step(t);
        if (t % 4 != 1) continue;
        const Values left = to_host(*rig.device, net.state("w", "projection_left")),
                     right = to_host(*rig.device, net.state("w", "projection"));
        ASSERT_EQ(net.state("w", "projection_left").shape(), (Shape{c.out, c.rows}));
        ASSERT_EQ(net.state("w", "projection").shape(), (Shape{c.columns, c.in}));
        for (int64_t i = 0; i < c.rows; ++i)
          for (int64_t j = 0; j < c.rows; ++j) {
            double dot = 0;
            for (int64_t o = 0; o < c.out; ++o)
              dot += left[static_cast<size_t>(o * c.rows + i)] * left[static_cast<size_t>(o * c.rows + j)];
            EXPECT_NEAR(dot, i == j, 1e-11);
          }
        for (int64_t i = 0; i < c.columns; ++i)
          for (int64_t j = 0; j < c.columns; ++j) {
            double dot = 0;
            for (int64_t n = 0; n < c.in; ++n) dot += right[static_cast<size_t>(i * c.in + n)] * right[static_cast<size_t>(j * c.in + n)];
            EXPECT_NEAR(dot, i == j, 1e-11);
          }
      }
      for (const double value : net.value("w")) EXPECT_TRUE(std::isfinite(value)) << rule;
    }
  }
}

// A setting takes convolutions as matrices.
TEST(CoapTucker, MatricesOnRequest) {
  Rig rig;
  CoapConfig config;
  config.rank = 3;
  config.convolutions = "matrix";
  Trainee net(rig, config.make({}), one_convolution(8, 9, 4));
  EXPECT_FALSE(net.state("w", "projection_left"));
  EXPECT_EQ(net.state("w", "projection").shape(), (Shape{8, 3}));
}

}  // namespace
}  // namespace comera::test
