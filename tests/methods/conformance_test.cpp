// What every optimizer must do, whatever its rule: tensors of any shape, gradients of zero, memory as planned. Around every rule that it
// can have. A new optimizer is in the table by its choice in the config. Cuts, growth, copies of the state and tiny nets:
// combinations_test.cpp and rank_*_test.cpp; parts of a batch, edits, capture and resume: tests/train.
#include "core/methods/tables.h"
#include "tests/config/choices.h"
#include "tests/optim/harness.h"

namespace comera::test {
namespace {

struct Row {
  std::string name;
  MethodConfig method;
  double factor = 1;  // on learning rates of AdamW
};

std::vector<Row> every_rule() {
  std::vector<Row> rows;
  for (const char* optimizer : choices_of("method.optimizer")) {
    const FieldEntry* variants = variants_of(optimizer);
    for (const Choice& choice : variants ? variants->info.choices : std::vector<Choice>{{""}}) {
      RunConfig config;
      config.method.optimizer = optimizer;
      if (variants) set_field_values(fields_of(config), {{variants->path, std::string(choice.id)}});
      shrink(config.method);
      const double factor = take_rates_of_adamw(config.method);
      rows.push_back({std::string(optimizer) + (variants ? std::string("_") + choice.id : ""), config.method, factor});
    }
  }
  return rows;
}

// Ranks are 4 (shrink): over the sides of the small ones, under both of the large one, between those of the others.
void all_shapes(ParamSet& params) {
  const auto matrix = [&](const char* name, Shape shape) { params.add(name, shape, ParamKind::weight, ParamGroup::rest, {}); };
  matrix("one", {1, 1});
  matrix("row", {1, 9});
  matrix("column", {9, 1});
  matrix("flat", {3, 40});
  matrix("tall", {40, 3});
  matrix("square", {4, 4});
  matrix("large", {12, 17});
  params.add("head", {3, 12}, ParamKind::head, ParamGroup::rest, {});
  params.add("bias", {7}, ParamKind::bias, ParamGroup::rest, {});
  params.add("scale", {1}, ParamKind::norm, ParamGroup::rest, {});
  params.add("table", {20, 6}, ParamKind::table, ParamGroup::rest, {});
  params.add("core", {2, 5, 3}, ParamKind::tt_core, ParamGroup::core, {});
}

class EveryOptimizer : public testing::TestWithParam<Row> {
 protected:
  EveryOptimizer() {
    for (double& rate : rig.scalars.learning_rate) rate = 0.01 * GetParam().factor;
  }
  std::map<std::string, Values> values() {
    std::map<std::string, Values> out;
    for (const Param& param : net.params.params()) out[param.name] = to_host(*rig.device, param.value);
    return out;
  }
  void set_gradients(double scale, uint32_t seed) {
    for (Param& param : net.params.params()) from_host(*rig.device, param.grad, random_values(param.count(), seed++, scale));
  }

  Rig rig{DType::f32};
  Trainee net{rig, make_optimizer(GetParam().method), all_shapes};
};

INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer, testing::ValuesIn(every_rule()),
                         [](const testing::TestParamInfo<Row>& info) { return test_name(info.param.name); });

// Past two refreshes of each projection.
TEST_P(EveryOptimizer, TrainsTensorsOfEveryShape) {
  const MemoryByPurpose planned = net.optimizer->planned(DType::f32);
  EXPECT_EQ(rig.memory.now()[Purpose::optimizer], planned[Purpose::optimizer]);
  const auto first = values();
  for (uint64_t t = 1; t <= 12; ++t) {
    set_gradients(0.1, static_cast<uint32_t>(100 * t));
    net.step(t);
  }
  for (const auto& [name, now] : values()) {
    EXPECT_NE(now, first.at(name)) << name << " never moved";
    for (const double value : now) ASSERT_TRUE(std::isfinite(value)) << name;
    EXPECT_LT(largest_difference(now, first.at(name)), 1) << name << " leapt: steps are about the learning rate, 0.01";
  }
}

TEST_P(EveryOptimizer, GradientsOfZeroMoveNothing) {
  const auto first = values();
  for (uint64_t t = 1; t <= 5; ++t) {
    set_gradients(0, 1);
    net.step(t);
  }
  for (const auto& [name, now] : values()) EXPECT_EQ(now, first.at(name)) << name;
  for (uint64_t t = 6; t <= 12; ++t) {  // and they leave nothing behind that spoils later steps
    set_gradients(0.1, static_cast<uint32_t>(100 * t));
    net.step(t);
  }
  for (const auto& [name, now] : values()) {
    EXPECT_NE(now, first.at(name)) << name << " never moved";
    for (const double value : now) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

// A gradient that is zero for some steps, as that of a row that no batch has: what it had before stays finite.
TEST_P(EveryOptimizer, GradientsThatVanishLeaveFiniteWeights) {
  for (uint64_t t = 1; t <= 12; ++t) {
    set_gradients(t <= 3 || t > 9 ? 0.1 : 0, static_cast<uint32_t>(100 * t));
    net.step(t);
    for (const auto& [name, now] : values())
      for (const double value : now) ASSERT_TRUE(std::isfinite(value)) << name << " at step " << t;
  }
}

}  // namespace
}  // namespace comera::test
