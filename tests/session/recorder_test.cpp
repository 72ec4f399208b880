// What the recorder makes of what a trainer reports: events that are stored already are not stored twice, times of steps take
// bounded memory.
#include "core/session/recorder.h"

#include <nlohmann/json.hpp>
#include <set>

#include "core/config/metrics.h"
#include "tests/store/support.h"

namespace comera {
namespace {

StepRecord step_of(int64_t step, double ms, int64_t tokens = 10) {
  StepRecord record;
  record.step = step;
  record.step_ms = ms;
  record.tokens = tokens;
  return record;
}

std::vector<std::pair<int64_t, std::string>> logged(Recorder& recorder) {
  std::vector<std::pair<int64_t, std::string>> out;
  for (const EventRow& event : recorder.take_records().events) out.emplace_back(event.step, event.kind);
  return out;
}

TEST(Recorder, AScheduledChangeIsTheOneOfItsStepPathAndValue) {
  Recorder recorder;
  const auto late = [&](int64_t step, const char* reason = "command", const char* stage = "late") {
    recorder.on_event(step, "stage", {{"stage", stage}, {"reason", reason}});
  };
  const auto edit = [&](int64_t step, const char* path, const char* value) {
    recorder.on_event(step, "edit", {{"path", path}, {"value", value}});
  };
  using Events = std::vector<std::pair<int64_t, std::string>>;
  recorder.expect_again({{40, "stage", "late"}, {50, "train.lr", "0.1"}});
  late(11);
  EXPECT_EQ(logged(recorder), (Events{{11, "stage"}})) << "by hand, before the scheduled one";
  late(40, "steps");
  late(40, "command", "early");
  EXPECT_EQ(logged(recorder), (Events{{40, "stage"}, {40, "stage"}})) << "another reason, another stage";
  late(40);
  EXPECT_EQ(logged(recorder), Events{}) << "it is stored already";
  late(40);
  EXPECT_EQ(logged(recorder), (Events{{40, "stage"}})) << "once";
  edit(49, "train.lr", "0.1");
  edit(50, "train.lr", "0.2");
  edit(50, "train.lr_core", "0.1");
  EXPECT_EQ(logged(recorder).size(), 3u);
  edit(50, "train.lr", "0.1");
  EXPECT_EQ(logged(recorder), Events{});
  EXPECT_EQ(recorder.events(), 7) << "those that were reported";
}

TEST(Recorder, CountsWhatHappenedAndNothingWhileItIsMuted) {
  Recorder recorder;
  recorder.on_event(1, "profile", Json::object());
  EXPECT_EQ(recorder.events(), 0) << "a measurement that was asked for";
  recorder.on_event(2, "alert", Json::object());
  EXPECT_EQ(recorder.events(), 1);
  EXPECT_EQ(recorder.take_records().events.size(), 2u);
  recorder.mute(true);
  recorder.on_event(3, "alert", Json::object());
  recorder.on_step(step_of(3, 5));
  recorder.on_eval({{.loss = 0.5, .accuracy = 0.5, .examples = 10}, 3, 1});
  recorder.on_memory(3, {});
  recorder.on_sample(3, {{"process_bytes", 1}});
  const Records records = recorder.take_records();
  EXPECT_EQ(records.points() + records.events.size() + records.memory.size(), 0u);
  EXPECT_EQ(recorder.events(), 1);
  EXPECT_EQ(recorder.recent_step_ms(), 0);
  recorder.mute(false);
  recorder.on_eval({{.loss = 0.5, .accuracy = 0.25, .examples = 10}, 3, 7});
  const auto metrics = recorder.take_records().metrics;
  EXPECT_EQ(metrics.at("val_accuracy").values, std::vector<double>{0.25});
  EXPECT_EQ(metrics.at("eval_ms").values, std::vector<double>{7});
}

// A score is told after its step.
// All that is stored of a step or a score has its description, and nothing else is described as such.
TEST(Recorder, StoresTheMetricsThatAreDescribed) {
  std::set<std::string> steps = {"step_ms"}, evaluations = {"eval_ms"}, described_steps, described_evaluations;
  StepRecord step;
  step.results.grad_norm2 = 4;  // of a run that limits it
  for (const auto& [name, value] : step_metrics(step)) steps.insert(name);
  EvalRecord evaluation;
  for (const std::string& name : more_scores()) evaluation.more.emplace_back(name, 0.5);
  for (const auto& [name, value] : eval_metrics(evaluation)) evaluations.insert(name);
  EXPECT_EQ(step_metrics(step).back(), std::pair(std::string("grad_norm"), 2.0));
  for (const MetricInfo& metric : all_metrics()) {
    if (metric.recorded == Recorded::step) described_steps.insert(metric.name);
    if (metric.recorded == Recorded::evaluation) described_evaluations.insert(metric.name);
  }
  EXPECT_EQ(steps, described_steps);
  EXPECT_EQ(evaluations, described_evaluations);
}

TEST(Recorder, AStepHasTheTimeOfItsFirstValues) {
  Records records;
  records.add(4, {{"train_loss", 2}}, 100);
  records.add(4, {{"val_loss", 3}}, 101);
  records.add(5, {{"train_loss", 1}}, 102);
  EXPECT_EQ(records.times.steps, (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(records.times.values, (std::vector<double>{100, 102}));
}

TEST(Recorder, TimesOfStepsAreExactForAFewAndTakeBoundedMemoryForMany) {
  Recorder recorder;
  EXPECT_EQ(recorder.step_ms_quantile(0.5), 0);
  EXPECT_EQ(recorder.recent_step_ms(), 0);
  EXPECT_EQ(recorder.mean_tokens(), 0);
  for (int64_t step = 1; step <= 101; ++step) recorder.on_step(step_of(step, static_cast<double>(step * 37 % 101), step));
  EXPECT_EQ(recorder.step_ms_quantile(0), 0);
  EXPECT_EQ(recorder.step_ms_quantile(0.5), 50);
  EXPECT_EQ(recorder.step_ms_quantile(0.95), 95);
  EXPECT_EQ(recorder.step_ms_quantile(1), 100);
  EXPECT_EQ(recorder.mean_tokens(), 51);
  double last_20 = 0;
  for (int64_t step = 82; step <= 101; ++step) last_20 += static_cast<double>(step * 37 % 101);
  EXPECT_DOUBLE_EQ(recorder.recent_step_ms(), last_20 / 20);
  for (int64_t step = 102; step <= 300'000; ++step) {
    recorder.on_step(step_of(step, static_cast<double>(step * 37 % 101)));
    ASSERT_LE(recorder.step_times_kept(), Recorder::kStepTimes + 20);
    recorder.take_records();
  }
  EXPECT_NEAR(recorder.step_ms_quantile(0.5), 50, 3) << "of all steps, not of the last ones";
  EXPECT_NEAR(recorder.step_ms_quantile(0.95), 95, 3);
  for (int64_t step = 300'001; step <= 300'020; ++step) recorder.on_step(step_of(step, 1000));
  EXPECT_EQ(recorder.recent_step_ms(), 1000);
  EXPECT_NEAR(recorder.step_ms_quantile(0.5), 50, 3);
}

}  // namespace
}  // namespace comera
