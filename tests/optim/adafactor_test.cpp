// Adafactor against the published code, on every file of it, and as the rule inside a projection.
#include "tests/optim/published_run.h"

namespace comera::test {
namespace {

using layer_test::golden_files;
using layer_test::golden_setting;

AdafactorConfig config_of(const SafetensorsFile& file) {
  const Json beta1 = golden_setting<Json>(file, "beta1");
  const auto eps = golden_setting<std::vector<double>>(file, "eps");
  return {.beta1 = beta1.is_null() ? 0 : beta1.get<double>(),
          .decay_exponent = golden_setting<double>(file, "decay_exponent"),
          .clip = golden_setting<double>(file, "clip"),
          .eps = eps.at(0),
          .scale_parameter = golden_setting<bool>(file, "scale_parameter"),
          .least_rms = eps.at(1),
          .relative_step = golden_setting<bool>(file, "relative_step"),
          .warmup_init = golden_setting<bool>(file, "warmup_init")};
}

void follows_published_adafactor(const std::string& path, DType dtype) {
  const SafetensorsFile file(path);
  const bool projected = file.has("projection");
  const double limit = dtype == DType::f64 ? layer_test::kGoldenDouble : layer_test::kGoldenFloat;
  Rig rig(dtype);
  rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay");
  GaloreConfig galore;
  if (projected) {
    galore.decomposition = "exact";
    galore.rank = golden_setting<int64_t>(file, "rank");
    galore.scale = golden_setting<double>(file, "scale");
    galore.rule = "adafactor";
  }
  Trainee net(rig, projected ? galore.make({.adafactor = config_of(file)}) : config_of(file).make({}), [&](ParamSet& params) {
    Shape shape;
    for (const int64_t size : file.entry("w0").shape) shape.push_back(size);
    params.add("w", shape, ParamKind::weight, ParamGroup::rest, {});
  });
  Param& w = *net.params.find("w");
  from_host(*rig.device, w.value, file.values("w0"));
  const Json rates = golden_setting<Json>(file, "lr");
  double worst = 0;
  const auto expect_close = [&](const Values& ours, const Values& theirs, const std::string& what) {
    const double error = relative(ours, theirs);
    worst = std::max(worst, error);
    EXPECT_LE(error, limit) << path << " " << what;
  };
  for (int64_t step = 0; step < file.entry("grads").shape[0]; ++step) {
    for (double& rate : rig.scalars.learning_rate) rate = rates.is_null() ? 1e9 : rates.at(static_cast<size_t>(step)).get<double>();
    net.set_grad("w", part(file, "grads", step));
    if (projected)
      from_host(*rig.device, net.state("w", "projection"),
                part(file, "projection", static_cast<int64_t>(file.values("projection_index")[static_cast<size_t>(step)])));
    rig.begin(static_cast<uint64_t>(step + 1));
    Ctx ctx = rig.ctx();
    rig.run([&] { net.optimizer->update(ctx, w); });
    expect_close(net.value("w"), part(file, "w", step), "w, step " + std::to_string(step + 1));
  }
  int states = 0;
  for (const auto& [ours, theirs] : {std::pair("row", "vr"), {"column", "vc"}, {"v", "v"}, {"m", "m"}}) {
    ASSERT_EQ(static_cast<bool>(net.state("w", ours)), file.has(theirs)) << path << " " << ours;
    if (!file.has(theirs)) continue;
    expect_close(to_host(*rig.device, net.state("w", ours)), file.values(theirs), theirs);
    ++states;
  }
  EXPECT_GE(states, 2) << path;
  layer_test::report_golden(path, worst, std::string(" in ") + name_of(dtype));
}

TEST(Golden, Adafactor) {
  for (const std::string& path : golden_files("adafactor"))
    for (const DType dtype : {DType::f64, DType::f32}) follows_published_adafactor(path, dtype);
}

// The published projections are fed. The step is scaled by the rms of the whole weight.
TEST(Golden, AdafactorInAProjection) {
  for (const std::string& path : golden_files("galore_adafactor"))
    for (const DType dtype : {DType::f64, DType::f32}) follows_published_adafactor(path, dtype);
}

// A core (a, l, b) is the matrix (a l, b), a table of four axes likewise.
TEST(Adafactor, ACoreIsAMatrix) {
  const AdafactorConfig config{.beta1 = 0.9};
  Rig rig(DType::f32);
  rig.scalars.weight_decay = 0.1;
  Trainee net(rig, config.make({}), [](ParamSet& params) {
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
    for (const char* state : {"row", "column", "m"})
      EXPECT_EQ(to_host(*rig.device, net.state(name, state)), to_host(*rig.device, net.state("matrix", state))) << state;
  }
  EXPECT_EQ(net.state("core", "row").shape(), (Shape{3, 4}));
  EXPECT_EQ(net.state("core", "column").shape(), (Shape{5}));
}

// METHODS.md 14: b (m + n), and b m n more for a first moment.
TEST(Adafactor, KeepsRowsAndColumnsOnly) {
  for (const double beta1 : {0.0, 0.9}) {
    const auto optimizer = AdafactorConfig{.beta1 = beta1}.make({});
    ParamSet params;
    optimizer->attach(params.add("w", {3072, 768}, ParamKind::weight, ParamGroup::rest, {}));
    EXPECT_EQ(optimizer->planned(DType::f32)[Purpose::optimizer], 15'360 + (beta1 > 0 ? 4 * 3072 * 768 : 0));
  }
}

// The rate of the run counts, the scale of gradients does not.
TEST(Adafactor, TheScaleOfGradientsDoesNotCount) {
  Rig rig;
  const auto ends = [&](double scale) {
    Trainee net(rig, AdafactorConfig{}.make({}), [](ParamSet& params) {
      params.add("w", {6, 7}, ParamKind::weight, ParamGroup::rest, {});
    });
    for (uint32_t t = 1; t <= 4; ++t) {
      Values g = random_values(42, t);
      for (double& value : g) value *= scale;
      net.set_grad("w", g);
      net.step(t);
    }
    return net.value("w");
  };
  EXPECT_LT(largest_difference(ends(1), ends(1e-6)), 1e-12);
}

TEST(Adafactor, StatesComeBackBitForBit) {
  Rig rig(DType::f32);
  Trainee net(rig, AdafactorConfig{.beta1 = 0.5}.make({}), [](ParamSet& params) {
    params.add("core", {3, 4, 5}, ParamKind::tt_core, ParamGroup::core, {});
    params.add("bias", {5}, ParamKind::bias, ParamGroup::rest, {});
  });
  for (uint32_t t = 1; t <= 2; ++t) {
    for (Param& param : net.params.params()) net.set_grad(param.name, random_values(param.count(), t));
    net.step(t);
  }
  Ctx ctx = rig.ctx();
  for (Param& param : net.params.params()) {
    const auto saved = net.optimizer->capture(*rig.device, ctx, param);
    EXPECT_EQ(saved.size(), param.shape.rank() == 1 ? 2u : 3u);
    for (const StateNumbers& state : saved) EXPECT_NE(state.values, Values(state.values.size(), 0.0)) << state.spec.name;
    net.optimizer->states(
        param, [&](const std::string&, Tensor& state) { from_host(*rig.device, state, Values(static_cast<size_t>(state.count()), 0.25)); });
    net.optimizer->restore(*rig.device, ctx, param, saved);
    EXPECT_EQ(by_name(saved), by_name(net.optimizer->capture(*rig.device, ctx, param))) << param.name;
  }
}

}  // namespace
}  // namespace comera::test
