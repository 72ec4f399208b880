// The plan of a run under every method: that of the same config with another method, and what an engine then takes.
#include "core/train/method_plans.h"

#include "core/base/error.h"
#include "core/config/named_methods.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

// Settings of optimizers that are not the built-in ones, and small enough for small matrices.
RunConfig with_own_settings(RunConfig config) {
  config.method.galore.rank = 4;
  config.method.coap.rank = 3;
  config.method.flora.rank = 5;
  config.method.adam8bit.min_size = 64;
  config.method.checkpoint = 1;
  return config;
}

FieldValues values_of(RunConfig config) { return field_values(fields_of(config)); }

TEST(MethodPlans, AreOneARecipeInTheOrderOfTheTable) {
  const std::vector<MethodPlan> plans = method_plans(image_config());
  ASSERT_EQ(plans.size(), named_methods().size());
  for (size_t i = 0; i < plans.size(); ++i) {
    EXPECT_EQ(plans[i].id, named_methods()[i].id);
    EXPECT_EQ(plans[i].title, named_methods()[i].title);
    EXPECT_EQ(plans[i].id, named_methods()[i].id);
    EXPECT_TRUE(plans[i].forecast) << plans[i].id << ": " << plans[i].refused;
  }
}

TEST(MethodPlans, AreTheForecastsOfTheConfigWithThatMethodAndWhatIsTaken) {
  const std::unique_ptr<Device> device = open_device("cpu", 1);
  for (const RunConfig& small : {image_config(), text_config()})
    for (RunConfig config : {small, with_own_settings(small)})
      for (const int64_t batch : {8, 24}) {
        config.train.batch = batch;
        for (const MethodPlan& plan : method_plans(config)) {
          SCOPED_TRACE(plan.id + ", " + config.model.kind + ", batch " + std::to_string(batch));
          ASSERT_TRUE(plan.forecast) << plan.refused;
          const RunConfig changed = with_method(config, plan.id);
          const Forecast forecast = make_forecast(changed);
          EXPECT_EQ(plan.forecast->memory.bytes, forecast.memory.bytes);
          EXPECT_EQ(plan.forecast->parameters, forecast.parameters);
          EXPECT_EQ(plan.forecast->trainable, forecast.trainable);
          EXPECT_EQ(plan.forecast->work.gemm_flops, forecast.work.gemm_flops);
          Engine engine(changed, *device);
          engine.allocate();
          EXPECT_EQ(engine.memory().now().bytes, plan.forecast->memory.bytes);
        }
      }
}

// Only the method of a config is another one, and of that only its axes.
TEST(MethodPlans, LeaveOtherSettingsAsTheyAre) {
  RunConfig config = with_own_settings(image_config());
  config.train.batch = 48;
  config.method.stash = "bf16";
  config.method.waist = true;
  config.method.wta.ratio = 0.5;
  for (const NamedMethod& recipe : named_methods()) {
    SCOPED_TRACE(recipe.id);
    const RunConfig changed = with_method(config, recipe.id);
    const MethodConfig& method = changed.method;
    EXPECT_EQ(method.weights, recipe.config.weights);
    EXPECT_EQ(method.stash, recipe.config.stash);
    EXPECT_EQ(method.optimizer, recipe.config.optimizer);
    EXPECT_EQ(method.update, recipe.config.update);
    EXPECT_EQ(method.waist, method.weights == "tt") << "kept where it saves time";
    EXPECT_EQ(method.wta.ratio, recipe.config.wta.ratio);
    EXPECT_EQ(method.galore.rule, recipe.config.galore.rule);
    EXPECT_EQ(method.coap.rule, recipe.config.coap.rule);
    EXPECT_EQ(method.galore.rank, 4);
    EXPECT_EQ(method.coap.rank, 3);
    EXPECT_EQ(method.adam8bit.min_size, 64);
    EXPECT_EQ(method.checkpoint, 1);
    FieldValues before = values_of(config), after = values_of(changed);
    for (FieldValues* values : {&before, &after})
      std::erase_if(*values, [](const auto& entry) { return entry.first.starts_with("method."); });
    EXPECT_EQ(before, after);
    EXPECT_EQ(name_of_method(changed.method), recipe.id);
    EXPECT_EQ(values_of(with_method(changed, recipe.id)), values_of(changed)) << "once more changes nothing";
  }
  EXPECT_EQ(name_of_method(config.method), "") << "no recipe has this stash";
}

TEST(MethodPlans, ARefusedOneSaysWhyInOneLine) {
  RunConfig config = image_config();
  config.train.clip_norm = 1;
  std::vector<MethodPlan> plans = method_plans(config);
  for (const MethodPlan& plan : plans) {
    EXPECT_NE(plan.forecast.has_value(), find_method(plan.id).config.update == "backward") << plan.id;
    EXPECT_EQ(plan.refused.empty(), plan.forecast.has_value()) << plan.id;
    EXPECT_EQ(plan.refused.find('\n'), std::string::npos);
  }
  std::stable_sort(plans.begin(), plans.end(), takes_less);
  EXPECT_EQ(plans.back().refused, "method.update: backward: the norm of all gradients is known when they are gone");
  for (size_t i = 1; i < plans.size() && plans[i].forecast; ++i)
    EXPECT_LE(plans[i - 1].forecast->memory.total(), plans[i].forecast->memory.total()) << plans[i].id;
  EXPECT_THROW(plan_method(config, "no-such-method"), Error);
}

}  // namespace
}  // namespace comera::test
