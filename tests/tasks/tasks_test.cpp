// Every task: the gradient of its loss against differences, the fields that it reads, the class that outputs say.
#include "core/tasks/task.h"

#include <array>
#include <cmath>

#include "tests/config/choices.h"
#include "tests/layers/check_layer.h"

namespace comera::layer_test {
namespace {

ModelConfig config_of(const std::string& task) {
  ModelConfig config;
  config.task = task;
  const int64_t classes = find_task(task).classes;
  config.classes = classes > 0 ? classes : 3;
  config.encoder.vocab = config.decoder.vocab = 3;
  return config;
}

constexpr int64_t kRows = 6;
const std::vector<int32_t> kLabels = {0, 1, -1, 1, 0, -1};

class Tasks : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Tasks, testing::ValuesIn(choices_of("model.task")));

TEST_P(Tasks, TheLossHasItsGradient) {
  const ModelConfig config = config_of(GetParam());
  const std::unique_ptr<Task> task = make_task(config);
  Rig rig;
  rig.start();
  DeviceBatch batch;
  batch["labels"] = rig.put_ids(kLabels);
  batch.examples = batch.tokens = kRows;
  const Shape shape{kRows, config.outputs()};
  Values outputs = noise_values(shape.count(), 3, 4), gradient;
  const Tensor out = rig.put(outputs, shape);
  const auto loss = [&] {
    rig.run([&](Ctx& ctx) {
      const Tensor dout = ctx.temp(shape, "dout");
      task->loss(ctx, out, batch, dout);
      if (!ctx.ops.dry) gradient = rig.get(dout);
    });
    return rig.results.ce;
  };
  loss();
  const Values exact = gradient;
  EXPECT_EQ(rig.results.examples, 4);
  constexpr double kStep = 1e-3;
  for (size_t i = 0; i < outputs.size(); ++i) {
    double values[4];
    for (int k = 0; k < 4; ++k) {  // five-point differences
      Values moved = outputs;
      moved[i] += std::array{-2.0, -1.0, 1.0, 2.0}[static_cast<size_t>(k)] * kStep;
      rig.set(out, moved);
      values[k] = loss();
    }
    EXPECT_NEAR(exact[i], (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * kStep), 1e-11) << i;
  }
}

TEST_P(Tasks, TargetsHaveRangesAndMessages) {
  const ModelConfig config = config_of(GetParam());
  BatchLayout layout;
  make_task(config)->targets(layout);
  EXPECT_FALSE(layout.fields.empty());
  for (const BatchField& field : layout.fields) {
    EXPECT_LT(field.low, field.high) << field.name;
    EXPECT_NE(field.title, "") << field.name;
    EXPECT_NE(field.hint, "") << field.name;
  }
}

TEST_P(Tasks, ThePredictedClassHasTheSmallestLoss) {
  const ModelConfig config = config_of(GetParam());
  const std::unique_ptr<Task> task = make_task(config);
  Rig rig;
  rig.start();
  const Shape shape{1, config.outputs()};
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Values outputs = noise_values(shape.count(), seed, 3);
    const Tensor out = rig.put(outputs, shape);
    int64_t best = -1;
    double least = INFINITY;
    for (int32_t label = 0; label < config.classes; ++label) {
      DeviceBatch batch;
      batch["labels"] = rig.put_ids({label});
      batch.examples = batch.tokens = 1;
      rig.run([&](Ctx& ctx) { task->loss(ctx, out, batch, ctx.temp(shape, "dout")); });
      if (rig.results.ce >= least) continue;
      least = rig.results.ce;
      best = label;
    }
    EXPECT_EQ(task->predicted(outputs), best) << seed;
  }
}

TEST(Scores, MeansAreOverExamplesNotOverBatches) {
  MeanScores scores;
  StepResults large, small;
  large.ce = 1, large.examples = 3, large.correct = 3;
  small.ce = 5, small.examples = 1, small.correct = 0;
  EXPECT_EQ(scores.values().examples, 0);
  scores.add(large, {}, {});
  scores.add(small, {}, {});
  EXPECT_EQ(scores.values().examples, 4);
  EXPECT_DOUBLE_EQ(scores.values().loss, 2);
  EXPECT_DOUBLE_EQ(scores.values().accuracy, 0.75);
}

}  // namespace
}  // namespace comera::layer_test
