// Every task in whole runs: memory as planned, a resumed run equals one that was never stopped, scores that improve.
#include "core/config/metrics.h"
#include "core/train/forecast.h"
#include "tests/config/choices.h"
#include "tests/train/course.h"

namespace comera::test {
namespace {

class Tasks : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(All, Tasks, testing::ValuesIn(choices_of("model.task")));

RunConfig config_of(const std::string& task) {
  RunConfig config = task_config(task);
  config.model.encoder.dropout = config.model.encoder.attention_dropout = 0;
  config.model.decoder.dropout = config.model.decoder.attention_dropout = 0;
  return config;
}

// Rows with a label, and the share of them that can be known: of the made-up text one token in eight is drawn.
struct Known {
  int64_t examples = 64;
  double share = 0.9;
  explicit Known(const RunConfig& config) {
    if (!config.model.per_token()) return;
    examples = 48 * 8;
    share = 0.75;
    if (config.mask_share() == 0) return;
    BatchOptions options = batch_options(config);
    options.mask_share = config.mask_share();
    options.seed = static_cast<uint64_t>(config.train.seed);
    options.shuffle = options.drop_last = false;
    const auto data = data_of(config);
    Batch batch;
    examples = 0;
    for (int64_t cursor = 0; make_batch(*data, options, cursor, batch); cursor = batch.next_cursor)
      examples += std::count_if(batch.ints["labels"].begin(), batch.ints["labels"].end(), [](int32_t label) { return label >= 0; });
    EXPECT_NEAR(static_cast<double>(examples), 0.2 * 48 * 9, 40);
    share = 0.3;  // of neighbours that may be masked, too
  }
};

bool is_better(const std::pair<std::string, double>& after, const std::pair<std::string, double>& before) {
  for (const MetricInfo& metric : all_metrics())
    if (metric.name == "val_" + after.first)
      return metric.better == Better::higher ? after.second > before.second : after.second < before.second;
  return false;
}

TEST_P(Tasks, TrainsInPlannedMemoryAndImproves) {
  RunConfig config = config_of(GetParam());
  config.train.steps = config.mask_share() > 0 ? 4000 : 300;  // which sees one label in five tokens, and both sides of it
  config.method.comera.train_ranks = false;
  const auto device = open_cpu_device(2);
  Course course;
  Trainer trainer(config, data_of(config), data_of(config), *device, course);
  EXPECT_EQ(trainer.engine().planned().total(), make_forecast(config).memory.total());
  trainer.start();
  EXPECT_EQ(trainer.engine().memory().now().total(), trainer.engine().planned().total());
  const EvalRecord before = trainer.evaluate();
  while (!trainer.finished()) trainer.step();
  const EvalRecord& after = trainer.last_eval();
  EXPECT_EQ(after.examples, Known(config).examples);
  EXPECT_LT(after.loss, before.loss / 2);
  EXPECT_GT(after.accuracy, Known(config).share);
  ASSERT_EQ(after.more.size(), before.more.size());
  for (size_t i = 0; i < after.more.size(); ++i) EXPECT_TRUE(is_better(after.more[i], before.more[i])) << after.more[i].first;
}

TEST_P(Tasks, AResumedRunIsTheSame) {
  RunConfig config = config_of(GetParam());
  config.train.steps = 20;
  const std::string middle = file("task-middle"), end = file("task-end"), again = file("task-again");
  const auto device = open_cpu_device(1);
  Course course, rest;
  Trainer trainer(config, data_of(config), data_of(config), *device, course);
  trainer.start();
  while (trainer.state().step < 11) trainer.step();
  trainer.save(middle);
  while (!trainer.finished()) trainer.step();
  trainer.save(end);
  Trainer resumed(config, data_of(config), data_of(config), *device, rest);
  resumed.restore(middle);
  while (!resumed.finished()) resumed.step();
  resumed.save(again);
  EXPECT_EQ(difference(end, again), "");
  EXPECT_EQ(course.lines.back(), rest.lines.back()) << "the evaluation";
  for (const std::string& path : {middle, end, again}) std::filesystem::remove(path);
}

}  // namespace
}  // namespace comera::test
