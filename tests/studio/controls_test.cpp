// The live controls in the window: what a person moves reaches the session.
#include <cmath>
#include <set>

#include "core/base/json.h"
#include "tests/config/choices.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

using LiveControls = Clicked;

TEST_F(LiveControls, ThePaceOfTheLateStageIsAnEditOfWholeSteps) {
  stage_.begin_run(Phase::running);
  click("method.comera.late_halving");  // the middle of its slider
  ASSERT_FALSE(stage_.script->posted.empty());
  const EditCommand& edit = std::get<EditCommand>(stage_.script->posted.back());
  EXPECT_EQ(edit.path, "method.comera.late_halving");
  const double steps = std::stod(edit.value);
  EXPECT_GT(steps, 1);
  EXPECT_LT(steps, 10000);
  EXPECT_EQ(steps, std::round(steps)) << edit.value;
  RunConfig config;
  RankOverrides unused;
  apply_edit(config, unused, edit.path, edit.value);  // throws where it is not live
  EXPECT_EQ(config.method.comera.late_halving, static_cast<int64_t>(steps));
}

// The log shows each: a value with more digits than a hand can set would not have room there.
TEST_F(LiveControls, ASlidValueHasThreeDigits) {
  stage_.begin_run(Phase::running);
  click("method.comera.target");
  ASSERT_FALSE(stage_.script->posted.empty());
  EXPECT_LE(std::get<EditCommand>(stage_.script->posted.back()).value.size(), std::string("0.525").size());
}

// Every setting that may change live has its slider or switch, and what it posts is accepted.
TEST(LiveControlsOfAll, EveryLiveSettingIsThere) {
  std::vector<std::vector<std::string>> methods = {{}, {"method.comera.mode=paper"}};
  for (const char* weights : choices_of("method.weights")) methods.push_back({std::string("method.weights=") + weights});
  for (const char* optimizer : choices_of("method.optimizer"))
    methods.push_back({"method.weights=dense", std::string("method.optimizer=") + optimizer});
  std::set<std::string> live, drawn;
  for (std::vector<std::string> sets : methods) {
    Stage stage({1600, 4000});  // all of them in sight
    std::vector<NamedItem> items;
    collect_items(&items);
    sets.push_back("train.steps=0");
    RunConfig config = load_config("demo", sets);
    stage.script->snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 100));
    stage.ui.live = std::make_unique<LiveRun>(std::make_unique<FakeLink>(stage.script), config);
    stage.ui.layout = "train";
    std::set<std::string> seen;
    for (int unit = 0; unit < 3; ++unit) {
      stage.ui.target_unit = unit;
      stage.frames(4);
      for (const NamedItem& item : items) seen.insert(item.name);
    }
    collect_items(nullptr);
    const UnusedSettings unused = unused_settings(fields_of(config));
    for (const FieldEntry& entry : fields_list(fields_of(config))) {
      if (!entry.info.is_live()) continue;
      live.insert(entry.path);
      if (unused.contains(entry.path)) continue;
      EXPECT_TRUE(seen.contains(entry.path)) << entry.path;
      drawn.insert(entry.path);
    }
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  }
  EXPECT_EQ(drawn, live);
}

// A rank is posted when its slider is let go; while it moves the memory of the value is asked for and shown, and what does not fit is
// beyond its end.
TEST_F(LiveControls, ARankShowsItsMemoryBeforeItIsLetGo) {
  stage_.begin_run(Phase::running);
  ui().live = std::make_unique<LiveRun>(std::make_unique<FakeLink>(stage_.script), load_config("demo", {"method=galore", "train.steps=0"}));
  stage_.frames(3);
  const std::string path = "method.galore.rank";
  ASSERT_TRUE(sees(path));
  const NamedItem slider = *find(path);
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent((slider.low.x + slider.high.x) / 2, (slider.low.y + slider.high.y) / 2);
  frame();
  io.AddMouseButtonEvent(0, true);
  stage_.frames(3);
  ASSERT_EQ(stage_.script->posted.size(), 1u) << "one question, while the answer is not there";
  const ForeseeCommand asked = std::get<ForeseeCommand>(stage_.script->posted.back());
  EXPECT_EQ(asked.path, path);
  EXPECT_EQ(asked.high, static_cast<int64_t>(find_setting(path)->info.usual.high));
  say([&](Snapshot& s) {
    s.last_ticket = stage_.script->tickets;
    s.foreseen = {.path = path, .value = asked.value, .planned = {}, .room = 100 << 20, .largest = 200};
    s.foreseen.planned[Purpose::optimizer] = 50 << 20;
  });
  stage_.frames(3);
  EXPECT_TRUE(sees("memory:" + path));
  io.AddMousePosEvent(slider.high.x + 50, slider.low.y + 1);
  stage_.frames(3);
  EXPECT_TRUE(std::holds_alternative<ForeseeCommand>(stage_.script->posted.back())) << "of the value that it has now";
  io.AddMouseButtonEvent(0, false);
  stage_.frames(2);
  say([&](Snapshot& s) { s.last_ticket = stage_.script->tickets; });
  stage_.frames(2);
  const EditCommand& edit = std::get<EditCommand>(stage_.script->posted.back());
  EXPECT_EQ(edit.path, path);
  EXPECT_EQ(edit.value, "200") << "the largest that fits";
}

// What is typed is posted whole: a number of steps has no exponent.
TEST_F(LiveControls, ARunIsExtendedByTyping) {
  stage_.begin_run(Phase::running);
  stage_.frames(3);
  ui().front_panel = "controls";
  const std::string path = "train.steps";
  for (int i = 0; i < 40 && !sees(path + ":value"); ++i) {  // further down
    ImGui::GetIO().AddMousePosEvent(1500, 500);
    ImGui::GetIO().AddMouseWheelEvent(0, -3);
  }
  click(path + ":value");
  stage_.type("12345678");
  stage_.press(ImGuiKey_Enter);
  ASSERT_FALSE(stage_.script->posted.empty());
  const EditCommand& edit = std::get<EditCommand>(stage_.script->posted.back());
  EXPECT_EQ(edit.path, path);
  EXPECT_EQ(edit.value, "12345678");
}

TEST_F(LiveControls, AValueThatIsTheSameIsNotAnEdit) {
  stage_.begin_run(Phase::running);
  const auto type = [&](const char* text) {
    click("method.comera.late_halving:value");
    stage_.type(text);
    stage_.press(ImGuiKey_Enter);
    return stage_.script->posted.size();
  };
  const std::string now = std::to_string(ui().config().method.comera.late_halving);
  EXPECT_EQ(type(now.c_str()), 0u);
  EXPECT_EQ(type((now + "1").c_str()), 1u);
}

// The slider of the target ends at the size at the start, unless one says so.
TEST_F(LiveControls, ATargetBeyondTheStartIsAskedForWithASwitch) {
  stage_.begin_run(Phase::running);
  const auto far_right = [&] {
    EXPECT_TRUE(sees("method.comera.target"));
    const NamedItem slider = *find("method.comera.target");
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(slider.high.x - 1, (slider.low.y + slider.high.y) / 2);
    frame();
    for (const bool down : {true, false}) {
      io.AddMouseButtonEvent(0, down);
      frame();
    }
    return std::stod(std::get<EditCommand>(stage_.script->posted.back()).value);
  };
  EXPECT_NEAR(far_right(), 1, 0.02);
  say([&](Snapshot& s) { s.last_ticket = stage_.script->tickets; });
  click("target-beyond");
  EXPECT_TRUE(ui().target_beyond);
  const double most = far_right();
  EXPECT_GT(most, 1.9);
  RunConfig config;
  RankOverrides unused;
  apply_edit(config, unused, "method.comera.target", std::to_string(most));
  EXPECT_EQ(config.method.comera.target, std::stod(std::to_string(most)));
}

// While a stored run is shown the one that trains is told, and one click away.
TEST_F(LiveControls, BackToTheRunThatTrains) {
  stage_.begin_run(Phase::running);
  EXPECT_FALSE(stage_.ui.hides_live());
  stage_.ui.stored = std::make_shared<RunView>();
  stage_.ui.show_stored = true;
  stage_.frames(3);
  ASSERT_TRUE(stage_.ui.hides_live());
  click("show-live");
  EXPECT_FALSE(stage_.ui.show_stored);
  EXPECT_TRUE(stage_.ui.commanded());
}

TEST_F(LiveControls, TheModeIsSaidWithWhatItDoes) {
  stage_.begin_run(Phase::running);
  EXPECT_TRUE(sees("says:reference"));
}

TEST_F(LiveControls, WhatIsTypedIsANumber) {
  stage_.begin_run(Phase::running);
  const double before = ui().config().method.comera.target;
  for (const char* text : {"nan", "inf", "-nan"}) {
    ui().toasts.clear();
    click("method.comera.target:value");
    stage_.type(text);
    stage_.press(ImGuiKey_Enter);
    EXPECT_TRUE(stage_.script->posted.empty()) << text;
    ASSERT_FALSE(ui().toasts.empty()) << text;
    EXPECT_NE(ui().toasts.back().text.find("Size target takes a number"), std::string::npos) << ui().toasts.back().text;
  }
  EXPECT_EQ(ui().config().method.comera.target, before);
}

}  // namespace
}  // namespace comera::studio
