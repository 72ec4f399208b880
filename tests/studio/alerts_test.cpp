// What the rules find, how it becomes an event of the run, and what people see of it.
#include "app/studio/alerts.h"

#include <algorithm>
#include <cmath>

#include "app/studio/actions.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

Records losses(int64_t from, int64_t to, double value) {
  Records records;
  for (int64_t step = from; step <= to; ++step) records.add(step, {{"train_loss", value}});
  return records;
}

TEST(AlertWatch, ALossThatIsNotANumberIsToldOnce) {
  AlertWatch watch;
  AlertRules rules;
  rules.not_finite.pause = true;
  Records records;
  records.add(1, {{"train_loss", 1}, {"val_loss", NAN}});
  records.add(2, {{"val_loss", NAN}});
  records.add(3, {{"lr_core", NAN}});
  const std::vector<Alert> found = watch.look(records, rules);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step, 1);
  EXPECT_EQ(found[0].kind, "not_finite");
  EXPECT_EQ(found[0].text, "val_loss is NaN");
  EXPECT_TRUE(found[0].pause);
  records = {};
  records.add(4, {{"val_loss", 1}});
  records.add(5, {{"val_loss", INFINITY}});
  ASSERT_EQ(watch.look(records, rules).size(), 1u) << "it was well between them";
  rules.not_finite.on = false;
  AlertWatch other;
  EXPECT_TRUE(other.look(records, rules).empty());
}

TEST(AlertWatch, NoProgress) {
  AlertWatch watch;
  AlertRules rules;
  rules.patience = 100;
  Records falling;
  for (int64_t step = 1; step <= 500; ++step) falling.add(step, {{"train_loss", 3 / (1 + static_cast<double>(step) / 100)}});
  EXPECT_TRUE(watch.look(falling, rules).empty());
  const double low = falling.metrics["train_loss"].values.back();
  const std::vector<Alert> found = watch.look(losses(501, 900, low * 1.5), rules);
  ASSERT_EQ(found.size(), 1u) << "once, not with every step";
  EXPECT_GE(found[0].step, 600);
  EXPECT_LE(found[0].step, 610);
  EXPECT_NE(found[0].text.find("no progress for 100 steps"), std::string::npos) << found[0].text;
  EXPECT_FALSE(found[0].pause);
  EXPECT_TRUE(watch.look(losses(901, 990, low / 2), rules).empty()) << "progress";
  EXPECT_EQ(watch.look(losses(991, 1500, low * 2), rules).size(), 1u) << "and none again";
  // Ranks that fall are progress, whatever the loss does.
  Records shrinking = losses(1501, 1590, low * 2);
  shrinking.ranks = {{1560, "a", 1, 12}};
  EXPECT_TRUE(watch.look(shrinking, rules).empty());
  EXPECT_TRUE(watch.look(losses(1591, 1655, low * 2), rules).empty());
  EXPECT_EQ(watch.look(losses(1656, 1700, low * 2), rules).size(), 1u);
  // Another stage minimises something else: it begins anew.
  Records late = losses(1701, 1790, low * 9);
  late.events.push_back({0, 1701, "stage", 0, "{}"});
  EXPECT_TRUE(watch.look(late, rules).empty());
  EXPECT_EQ(watch.look(losses(1791, 2000, low * 9), rules).size(), 1u);
}

TEST(AlertWatch, ACollapsedBond) {
  AlertWatch watch;
  Records records;
  records.ranks = {{0, "a", 1, 30}, {10, "a", 1, 1}, {20, "a", 1, 0}, {21, "a", 1, 0}, {22, "b", 3, 0}};
  const std::vector<Alert> found = watch.look(records, {});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].step, 20);
  EXPECT_EQ(found[0].text, "bond a.1 has rank 0: its layer outputs 0");
  records.ranks = {{30, "a", 1, 5}, {40, "a", 1, 0}};
  EXPECT_EQ(watch.look(records, {}).size(), 1u);
}

Records memory(int64_t step, double used, double total) {
  Records records;
  records.add(step, {{"device_used_bytes", used}, {"device_total_bytes", total}});
  return records;
}

TEST(AlertWatch, LittleFreeMemoryIsToldOnceUntilThereIsMoreAgain) {
  AlertWatch watch;
  AlertRules rules;
  rules.margin = 0.1;
  rules.memory_margin.pause = true;
  constexpr double kMebi = 1 << 20;
  EXPECT_TRUE(watch.look(memory(10, 85 * kMebi, 100 * kMebi), rules).empty());
  const std::vector<Alert> found = watch.look(memory(20, 95 * kMebi, 100 * kMebi), rules);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].step, 20);
  EXPECT_EQ(found[0].kind, "memory_margin");
  EXPECT_EQ(found[0].text, "only 5.000 MiB of 100.0 MiB are free, less than 10 %: close other programs or use a smaller batch");
  EXPECT_TRUE(found[0].pause);
  EXPECT_TRUE(watch.look(memory(30, 96 * kMebi, 100 * kMebi), rules).empty()) << "it is known";
  EXPECT_TRUE(watch.look(memory(40, 89 * kMebi, 100 * kMebi), rules).empty());
  EXPECT_TRUE(watch.look(memory(50, 91 * kMebi, 100 * kMebi), rules).empty()) << "hardly more was free in between";
  EXPECT_TRUE(watch.look(memory(60, 50 * kMebi, 100 * kMebi), rules).empty());
  EXPECT_EQ(watch.look(memory(70, 95 * kMebi, 100 * kMebi), rules).size(), 1u) << "much more was";
  rules.memory_margin.on = false;
  AlertWatch other;
  EXPECT_TRUE(other.look(memory(1, 99 * kMebi, 100 * kMebi), rules).empty());
  EXPECT_TRUE(AlertWatch().look(losses(1, 5, 1), rules).empty()) << "a run that recorded none has no alert";
}

TEST(Alerts, AFindingGoesToTheSessionAndComesBackAsAnEvent) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  stage.ui.settings.alerts.collapsed.pause = true;
  const auto marks = [&] {
    return std::count_if(stage.ui.shown().marks.begin(), stage.ui.shown().marks.end(), [](const Mark& m) { return m.kind == Mark::alert; });
  };
  stage.script->records.ranks.push_back({905, "enc1.attn.q", 1, 0});
  stage.frames(1);
  ASSERT_EQ(stage.script->posted.size(), 1u);
  const AlertCommand& alert = std::get<AlertCommand>(stage.script->posted[0]);
  EXPECT_EQ(alert.step, 905);
  EXPECT_EQ(alert.kind, "collapsed");
  EXPECT_EQ(marks(), 0) << "it is an event of the run, not of the window";
  EXPECT_TRUE(stage.ui.toasts.empty());
  stage.say([&](Snapshot& s) { s.last_ticket = stage.script->tickets; });
  stage.script->records.events.push_back({0, 905, "alert", 0, R"({"kind": "collapsed", "text": ")" + alert.text + "\"}"});
  stage.frames(2);
  EXPECT_EQ(marks(), 1);
  ASSERT_EQ(stage.ui.toasts.size(), 1u);
  EXPECT_EQ(stage.ui.toasts[0].level, Level::warning);
  EXPECT_EQ(stage.ui.toasts[0].text, "Step 905: bond enc1.attn.q.1 has rank 0: its layer outputs 0");
  EXPECT_EQ(stage.ui.shown().log.back().level, Level::warning) << "counted in the status bar";
  EXPECT_TRUE(std::holds_alternative<PauseCommand>(stage.script->posted.back())) << "as the rule says";
  stage.frames(2);
  EXPECT_EQ(stage.ui.toasts.size(), 1u) << "told once";
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
}

TEST(Alerts, WhatTheTrainerFoundItselfIsTold) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  stage.script->records.events.push_back({0, 901, "alert", 0, R"({"kind": "diverged", "loss": "nan", "tensor": "head.weight"})"});
  stage.frames(2);
  ASSERT_EQ(stage.ui.toasts.size(), 1u);
  EXPECT_EQ(stage.ui.toasts[0].text, "Step 901: the loss is NaN, first bad values in head.weight");
  EXPECT_TRUE(stage.script->posted.empty()) << "it is an event already";
}

TEST(Alerts, TheCheckpointIntervalOfTheSettingsIsAnEdit) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  autosave(stage.ui);
  EXPECT_TRUE(stage.script->posted.empty()) << "as the run says";
  stage.ui.settings.autosave_minutes = 3;
  autosave(stage.ui);
  ASSERT_EQ(stage.script->posted.size(), 1u);
  EXPECT_EQ(std::get<EditCommand>(stage.script->posted[0]).path, "train.checkpoint_minutes");
  EXPECT_EQ(std::get<EditCommand>(stage.script->posted[0]).value, "3");
  // A run that begins gets it when it is there.
  stage.script = std::make_shared<Script>();
  stage.say([](Snapshot& s) { s.phase = Phase::preparing; });
  ASSERT_TRUE(start_config(stage.ui, {}));
  stage.frames(2);
  EXPECT_TRUE(stage.script->posted.empty());
  stage.say([](Snapshot& s) { s.phase = Phase::running; });
  stage.frames(2);
  ASSERT_EQ(stage.script->posted.size(), 1u);
  EXPECT_EQ(std::get<EditCommand>(stage.script->posted[0]).value, "3");
}

// A run that fails says why and what to do, whichever panel is in front of its curves.
TEST(Failure, IsToldInFrontOfEveryPanel) {
  for (const char* panel : {"metrics", "tt"}) {
    Stage stage;
    stage.begin_run(Phase::running, 5);
    stage.ui.front_panel = panel;
    stage.frames(6);
    stage.say([](Snapshot& s) {
      s.phase = Phase::failed;
      s.message = "cannot resume r-1";
      s.error_why = "its data have changed";
      s.error_hint = "fork it";
    });
    stage.frames(6);
    const std::string text = "Cannot resume r-1: its data have changed\nTry: fork it";
    const bool toast = std::any_of(stage.ui.toasts.begin(), stage.ui.toasts.end(), [&](const Toast& one) { return one.text == text; });
    EXPECT_EQ(toast, panel == std::string("tt")) << panel;
    const auto& log = stage.ui.shown().log;
    EXPECT_EQ(std::count_if(log.begin(), log.end(), [](const LogLine& line) { return line.text == "try: fork it"; }), 1);
  }
}

}  // namespace
}  // namespace comera::studio
