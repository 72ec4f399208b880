// Steps made while backward runs: LOMO's, plain gradient descent, and AdaLomo's, Adafactor's with rates relative to each parameter.
#include <limits>
#include <nlohmann/json.hpp>

#include "core/layers/grads.h"
#include "tests/optim/published_run.h"

namespace comera::test {
namespace {

using layer_test::golden_files;
using layer_test::golden_setting;

constexpr const char* kTensors[] = {"tall", "wide", "bias"};

// The gradients of a step as the published code changed them before it used them. A limit on entries alone is LOMO's own.
std::map<std::string, Values> gradients(const SafetensorsFile& file, int64_t step) {
  std::map<std::string, Values> all;
  const Json clip_norm = golden_setting<Json>(file, "clip_norm");
  Json clip_value = golden_setting<Json>(file, "clip_value");
  if (clip_norm.is_null() && !golden_setting<bool>(file, "adaptive")) clip_value = nullptr;
  double norm2 = 0;
  for (const char* name : kTensors) {
    Values& grad = all[name] = part(file, std::string(name) + ".grads", step);
    for (double& g : grad) {
      if (!clip_value.is_null()) g = std::clamp(g, -clip_value.get<double>(), clip_value.get<double>());
      norm2 += g * g;
    }
  }
  if (clip_norm.is_null()) return all;
  const double coefficient = std::min(1.0, clip_norm.get<double>() / (std::sqrt(norm2) + 1e-6));
  EXPECT_NEAR(coefficient, file.values("clip_coefficient")[static_cast<size_t>(step)], 1e-9);
  for (auto& [name, grad] : all)
    for (double& g : grad) g *= coefficient;
  return all;
}

std::unique_ptr<Optimizer> make(const SafetensorsFile& file) {
  if (!golden_setting<bool>(file, "adaptive")) {
    const Json clip_value = golden_setting<Json>(file, "clip_value");
    return LomoConfig{.clip_value = clip_value.is_null() ? 0 : clip_value.get<double>()}.make({});
  }
  const Json eps = golden_setting<Json>(file, "eps");
  EXPECT_EQ(eps.at(0), 1e-30);
  return AdalomoConfig{.clip = golden_setting<double>(file, "clip"), .least_rms = eps.at(1)}.make({});
}

void follows_published_lomo(const std::string& path, DType dtype) {
  const SafetensorsFile file(path);
  const double limit = dtype == DType::f64 ? layer_test::kGoldenDouble : layer_test::kGoldenFloat;
  Rig rig(dtype);
  rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay");
  Trainee net(rig, make(file), [&](ParamSet& params) {
    for (const char* name : kTensors) {
      Shape shape;
      for (const int64_t size : file.entry(std::string(name) + ".w0").shape) shape.push_back(size);
      params.add(name, shape, shape.rank() == 1 ? ParamKind::bias : ParamKind::weight, ParamGroup::rest, {}).way = GradWay::given;
    }
  });
  for (const char* name : kTensors) from_host(*rig.device, net.params.find(name)->value, file.values(std::string(name) + ".w0"));
  const Json rates = golden_setting<Json>(file, "lr");
  double worst = 0;
  const auto expect_close = [&](const Values& ours, const Values& theirs, const std::string& what) {
    const double error = relative(ours, theirs);
    worst = std::max(worst, error);
    EXPECT_LE(error, limit) << path << " " << what;
  };
  const int64_t steps = file.entry("tall.grads").shape[0];
  for (int64_t step = 0; step < steps; ++step) {
    for (double& rate : rig.scalars.learning_rate) rate = rates.at(static_cast<size_t>(step)).get<double>();
    auto grads = gradients(file, step);
    rig.begin(static_cast<uint64_t>(step + 1));
    Ctx ctx = rig.ctx();
    ctx.taker = net.optimizer.get();
    rig.run([&] {
      for (Param& param : net.params.params()) {
        EXPECT_FALSE(param.has_grad());
        Tensor room = grad_room(ctx, param);
        if (!ctx.ops.dry) from_host(*rig.device, room, grads.at(param.name));
        grad_ready(ctx, param, std::move(room));
      }
    });
    for (const char* name : kTensors) expect_close(net.value(name), part(file, std::string(name) + ".w", step), name);
  }
  const std::pair<const char*, const char*> states[] = {{"row", "vr"}, {"column", "vc"}, {"v", "v"}};
  for (const char* name : kTensors)
    for (const auto& [ours, theirs] : states)
      if (const std::string stored = std::string(name) + "." + theirs; file.has(stored))
        expect_close(to_host(*rig.device, net.state(name, ours)), file.values(stored), stored);
      else
        EXPECT_FALSE(net.state(name, ours)) << stored;
  layer_test::report_golden(path, worst, std::string(" in ") + name_of(dtype));
}

TEST(Golden, LomoAndAdaLomo) {
  for (const std::string& path : golden_files("lomo"))
    for (const DType dtype : {DType::f64, DType::f32}) follows_published_lomo(path, dtype);
}

// METHODS.md 14.
TEST(StateBytes, LomoKeepsNothing) {
  ParamSet params;
  const auto optimizer = LomoConfig{}.make({});
  optimizer->attach(params.add("w", {3072, 768}, ParamKind::weight, ParamGroup::rest, {}));
  EXPECT_EQ(optimizer->planned(DType::f32)[Purpose::optimizer], 0);
}

// A parameter whose entries and gradients are all `g`, after one step at rate 0.1.
double stepped(double clip_value, double g) {
  Rig rig;
  for (double& rate : rig.scalars.learning_rate) rate = 0.1;
  Trainee net(rig, LomoConfig{.clip_value = clip_value}.make({}), [](ParamSet& params) {
    params.add("w", {3, 5}, ParamKind::weight, ParamGroup::rest, {});
  });
  from_host(*rig.device, net.params.find("w")->value, Values(15, 1.0));
  net.set_grad("w", Values(15, g));
  net.step(1);
  return net.value("w")[7];
}

TEST(Lomo, TheLimitIsThatOfTheValueAlone) {
  EXPECT_DOUBLE_EQ(stepped(0.5, 0.25), 1 - 0.1 * 0.25);
  EXPECT_DOUBLE_EQ(stepped(0.5, 40), 1 - 0.1 * 0.5);
  EXPECT_DOUBLE_EQ(stepped(0.5, -40), 1 + 0.1 * 0.5);
  EXPECT_DOUBLE_EQ(stepped(0, 40), 1 - 0.1 * 40) << "no limit";
  EXPECT_DOUBLE_EQ(stepped(0.5, std::numeric_limits<double>::infinity()), 1 - 0.1 * 0.5);
  EXPECT_TRUE(std::isnan(stepped(0.5, std::numeric_limits<double>::quiet_NaN()))) << "hidden, a run would not end as diverged";
}

}  // namespace
}  // namespace comera::test
