// The bars around the panels: menus, transport, status.
#include <cmath>

#include "app/studio/actions.h"
#include "app/studio/shown_run/eta.h"
#include "core/store/process.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

class Bars : public Clicked {
 protected:
  // What the progress bar says; "" when it is not there.
  std::string progress() {
    for (int i = 0; i < 3; ++i) frame();
    const NamedItem* item = find("says:900 / 36,000");
    return item ? item->name.substr(5) : "";
  }
  static bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }
  // A panel of the train layout is to be seen.
  static bool in_front(const char* name) {
    const ImGuiWindow* window = ImGui::FindWindowByName(name);
    return window && window->WasActive && !window->Hidden;
  }
};

TEST_F(Bars, TellTheProgressInAsManyWordsAsHaveRoom) {
  stage_.begin_run(Phase::running);
  stage_.resize({2600, 1000});
  const std::string all = progress();
  for (const char* part : {"epoch 1.2 / 3", "1,338 it/s", "42,822 samples/s", "ETA 1 h 11 m", "\xC2\xB1"})
    EXPECT_TRUE(has(all, part)) << part << " in " << all;
  size_t last = all.size();
  for (const float width : {1900.0f, 1600.0f, 1300.0f, 1100.0f}) {
    stage_.resize({width, 1000});
    const std::string less = progress();
    EXPECT_LE(less.size(), last) << width;
    EXPECT_FALSE(less.empty()) << width;
    last = less.size();
  }
  stage_.resize({1100, 600});
  EXPECT_FALSE(has(progress(), "samples/s")) << "these go first";
  EXPECT_TRUE(has(progress(), "ETA")) << "this goes last: " << progress();
}

TEST_F(Bars, FitIntoTheSmallestWindowWithLargeText) {
  for (const Phase phase : {Phase::idle, Phase::running, Phase::paused, Phase::diverged, Phase::finished})
    for (const float scale : {1.0f, 1.5f, 2.0f, 3.0f}) {
      stage_.resize({960, 600}, scale);
      if (phase == Phase::idle)
        ui().layout = "train";
      else
        stage_.begin_run(phase);
      for (int i = 0; i < 4; ++i) frame();
      EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{}) << name_of(phase) << " at " << scale;
      for (const char* name : {"run-to", "stop", "start"})
        EXPECT_TRUE(find(name) || phase == Phase::idle || has_ended(phase)) << name << " at " << scale << ", " << name_of(phase);
    }
}

// On every page: what trains is told and commanded from there, and the page keeps its room.
TEST_F(Bars, AreOnEveryPage) {
  const auto window = [](const char* name) {
    const ImGuiWindow* found = ImGui::FindWindowByName(name);
    return found && found->WasActive ? found : nullptr;
  };
  for (const auto& [size, scale] :
       {std::pair(ImVec2(1600, 900), 1.0f), std::pair(ImVec2(960, 600), 1.0f), std::pair(ImVec2(960, 600), 1.5f),
        std::pair(ImVec2(960, 600), 2.0f), std::pair(ImVec2(960, 600), 3.0f)})
    for (const char* page : {"start", "new", "compare"}) {
      const std::string where = std::string(page) + " at " + std::to_string(size.x) + " x " + std::to_string(scale);
      stage_.resize(size, scale);
      stage_.begin_run(Phase::paused);
      show_layout(ui(), page);
      stage_.frames(6);
      frame();
      for (const char* name : {"step", "stop", "checkpoint"}) EXPECT_TRUE(find(name)) << name << ", " << where;
      EXPECT_TRUE(find("says:Paused")) << where;
      const ImGuiWindow *transport = window("##transport"), *timeline = window("##timeline"),
                        *middle = window((std::string("##") + page).c_str());
      ASSERT_TRUE(transport && middle) << where;
      EXPECT_EQ(timeline != nullptr, scale < 2) << where;
      EXPECT_EQ(find("lanes") != nullptr, scale < 2) << where;
      const float line = Stage::line();
      EXPECT_GE(middle->Pos.y, transport->Pos.y + transport->Size.y - 1) << where;
      EXPECT_LE(middle->Pos.y + middle->Size.y, (timeline ? timeline->Pos.y : size.y) + 1) << where;
      EXPECT_GE(middle->Size.y, line * (scale < 2 ? 15 : 8)) << where;
      EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{}) << where;
      const auto posted = [&] { return stage_.script->posted.size(); };
      const size_t before = posted();
      click("step");
      ASSERT_EQ(posted(), before + 1) << where;
      EXPECT_TRUE(std::holds_alternative<StepCommand>(stage_.script->posted.back())) << where;
      EXPECT_EQ(ui().layout, page) << "and stays there";
    }
}

TEST_F(Bars, WithoutARunOnlyTrainHasThemAndTheyOfferOne) {
  for (const char* page : {"start", "new", "compare", "train"}) {
    show_layout(ui(), page);
    stage_.frames(6);
    EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{}) << page;
    EXPECT_EQ(sees("lanes"), std::string(page) == "train") << page;
    EXPECT_FALSE(find("stop")) << page << ": nothing to stop";
  }
  click("start");
  EXPECT_EQ(stage_.started.config.name, "demo");
  EXPECT_EQ(ui().layout, "train");
}

TEST_F(Bars, OtherPagesSayWhichRunAndThatItsPastIsShown) {
  stage_.resize({2600, 1000});
  stage_.begin_run(Phase::running);
  EXPECT_TRUE(sees("says:900 / 36,000"));
  show_layout(ui(), "start");
  EXPECT_TRUE(sees("says:a run with a rather long name"));
  EXPECT_FALSE(find("says:Replay"));
  ui().timeline.snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 400));
  ui().timeline.config = ui().shown().config;
  EXPECT_TRUE(sees("says:Replay"));
  EXPECT_FALSE(find("says:REPLAY")) << "that is the sign over the panels";
  show_layout(ui(), "train");
  EXPECT_TRUE(sees("says:REPLAY"));
  EXPECT_TRUE(std::none_of(items_.begin(), items_.end(), [](const NamedItem& item) { return item.name == "says:Replay"; }));
}

TEST_F(Bars, TheRunThatTrainsElsewhereIsOneClickAway) {
  for (const float scale : {1.0f, 2.0f}) {
    stage_.resize({960, 600}, scale);
    stage_.begin_run(Phase::running);
    auto other = std::make_shared<RunView>();
    other->snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::stopped, 700));
    ui().stored = other;
    ui().show_stored = true;
    click("show-live");
    EXPECT_FALSE(ui().show_stored);
    EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  }
}

// The sign of the past says of how many steps wherever the tabs leave it the room, and never lies on them.
TEST_F(Bars, TheSignOfThePastIsMeasured) {
  const auto covers_tabs = [&](const ImGuiWindow& sign) {
    for (const ImGuiStoragePair& pair : ImGui::GetCurrentContext()->DockContext.Nodes.Data) {
      const auto* node = static_cast<const ImGuiDockNode*>(pair.val_p);
      if (!node || !node->TabBar || !node->IsVisible || node->TabBar->BarRect.Min.y > sign.Pos.y + sign.Size.y) continue;
      const ImRect tabs(node->TabBar->BarRect.Min, {node->TabBar->BarRect.Min.x + node->TabBar->WidthAllTabs, node->TabBar->BarRect.Max.y});
      if (sign.Rect().Overlaps(tabs)) return true;
    }
    return false;
  };
  stage_.begin_run(Phase::running);
  frame();
  ui().timeline.snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 400));
  ui().timeline.config = ui().shown().config;
  for (const char* layout : {"train", "analyse", "replay"})
    for (const ImVec2 size : {ImVec2(1280, 800), ImVec2(1600, 900), ImVec2(1920, 1080)}) {
      choose_layout(ui(), layout);
      stage_.resize(size);
      for (int i = 0; i < 5; ++i) frame();
      EXPECT_TRUE(find("says:REPLAY  step 400 of 900")) << layout << " at " << size.x;
      const ImGuiWindow* sign = ImGui::FindWindowByName("##replay-sign");
      ASSERT_NE(sign, nullptr);
      EXPECT_FALSE(covers_tabs(*sign)) << layout << " at " << size.x;
    }
  choose_layout(ui(), "train");
  for (const auto& [size, scale] : {std::pair(ImVec2(960, 600), 1.0f), {ImVec2(1600, 900), 3.0f}, {ImVec2(960, 600), 3.0f}}) {
    stage_.resize(size, scale);
    for (int i = 0; i < 5; ++i) frame();
    const ImGuiWindow* sign = ImGui::FindWindowByName("##replay-sign");
    const bool shown = find("says:REPLAY") != nullptr;
    EXPECT_EQ(shown, scale == 1) << "there is no room for it";
    const bool chip = std::any_of(items_.begin(), items_.end(), [](const NamedItem& item) { return item.name == "says:Replay"; });
    EXPECT_NE(shown, chip) << "where the tabs leave no room, the bar above says it";
    EXPECT_TRUE(!shown || !covers_tabs(*sign)) << size.x << " at " << scale;
  }
}

TEST_F(Bars, TheStageIsEarlyLateOrDone) {
  stage_.begin_run(Phase::running, 300);
  EXPECT_TRUE(sees("says:Early"));
  stage_.begin_run(Phase::running);
  EXPECT_TRUE(sees("says:Late"));
  stage_.begin_run(Phase::finished);
  EXPECT_TRUE(sees("says:Done"));
}

// Strokes of their colour under the bar, where ranks fell.
TEST_F(Bars, RanksThatFellAreMarked) {
  const auto strokes = [&] {
    for (int i = 0; i < 3; ++i) frame();
    const ImGuiWindow* bar = ImGui::FindWindowByName("##transport");
    return std::count_if(bar->DrawList->VtxBuffer.begin(), bar->DrawList->VtxBuffer.end(),
                         [](const ImDrawVert& vertex) { return vertex.col == theme().series[1]; });
  };
  stage_.begin_run(Phase::running, 400);
  EXPECT_EQ(strokes(), 0);
  stage_.begin_run(Phase::running);  // its ranks fall at step 510
  EXPECT_EQ(strokes(), 4) << "one column of pixels, however many bonds";
}

TEST_F(Bars, RunToGoesToAStepOrTheNextEvent) {
  stage_.begin_run(Phase::paused);
  const auto last = [&] { return std::get<StepCommand>(stage_.script->posted.back()); };
  click("run-to");
  ASSERT_EQ(ui().dialogs.open, Dialog::run_to);
  click("run-on-100");
  EXPECT_EQ(last().steps, 100);
  EXPECT_EQ(ui().dialogs.open, Dialog::none);
  const auto done = [&] { say([&](Snapshot& s) { s.last_ticket = stage_.script->tickets; }); };
  done();
  stage_.press(ImGuiMod_Ctrl | ImGuiKey_F10);
  ASSERT_EQ(ui().dialogs.open, Dialog::run_to);
  stage_.press(ImGuiMod_Ctrl | ImGuiKey_A);  // the field has the keyboard
  stage_.type("1234");
  stage_.press(ImGuiKey_Enter);
  EXPECT_EQ(last().steps, 334);
  EXPECT_EQ(ui().dialogs.open, Dialog::none);
  done();
  click("run-to");
  stage_.press(ImGuiMod_Ctrl | ImGuiKey_A);
  stage_.type("99999999999999999999");
  stage_.press(ImGuiKey_Enter);
  EXPECT_EQ(stage_.script->posted.size(), 2u) << "so many steps cannot be trained";
  EXPECT_EQ(ui().dialogs.open, Dialog::run_to);
  click("run-to-event");
  EXPECT_TRUE(last().to_event);
  done();
  frame();
  run_to_step(ui(), 900);
  EXPECT_EQ(stage_.script->posted.size(), 3u) << "that step is done";
  EXPECT_FALSE(ui().toasts.empty());
  stage_.press(ImGuiMod_Shift | ImGuiKey_F10);
  EXPECT_TRUE(last().to_event);
  // What was asked for is said until it is so.
  say([](Snapshot& s) {
    s.phase = Phase::running;
    s.pause_at = 1234;
  });
  stage_.resize({2600, 1000});
  EXPECT_TRUE(has(progress(), "pauses at 1,234"));
  say([](Snapshot& s) { s.phase = Phase::finished; });
  EXPECT_FALSE(has(progress(), "pauses")) << "it has ended before";
}

TEST_F(Bars, TheStatusLeadsToWhereMoreOfItIs) {
  stage_.begin_run(Phase::running);
  toast(ui(), Level::warning, "something odd");
  say([](Snapshot& s) { s.saved_at = now_s() - 100; });
  EXPECT_TRUE(sees("says:CPU, 2 threads"));
  EXPECT_TRUE(find("status:process"));
  EXPECT_TRUE(find("says:frame "));
  EXPECT_TRUE(find("says:not stored"));
  EXPECT_FALSE(find("status:gpu")) << "there is none";
  click("status:process");
  frame();
  EXPECT_TRUE(in_front("Memory###memory"));
  click("status:frame");
  frame();
  EXPECT_TRUE(in_front("Profile###profile"));
  ui().layout = "compare";
  click("status:alerts");
  frame();
  EXPECT_EQ(ui().layout, "train");
  EXPECT_TRUE(in_front("Log###log"));
  EXPECT_EQ(ui().log.level, 1) << "the warnings of it";
  click("status:store");
  EXPECT_EQ(ui().layout, "start");
  click("status:device");
  EXPECT_EQ(ui().dialogs.open, Dialog::about);
}

TEST_F(Bars, TheStatusTellsHowFreshTheStoreIsAndWhatTheDeviceHolds) {
  ui().store_path = "/somewhere/runs.db";
  stage_.begin_run(Phase::running);
  say([](Snapshot& s) {
    s.saved_at = now_s() - 100;
    s.device = "NVIDIA of some kind";
  });
  EXPECT_TRUE(sees("says:saved 1 m 4"));
  EXPECT_TRUE(find("says:GPU 34.33 MiB"));
  say([](Snapshot& s) { s.phase = Phase::paused; });
  EXPECT_TRUE(sees("says:saved"));
  EXPECT_EQ(find("says:saved")->name, "says:saved") << "nothing is waiting";
  say([](Snapshot& s) { s.store_problem = "no space left"; });
  EXPECT_TRUE(sees("says:not saved"));
}

// Wherever somebody looks: a run that is not saved says so above it, until it is again.
TEST_F(Bars, AStoreThatFailsIsToldAboveEverything) {
  stage_.begin_run(Phase::running);
  EXPECT_FALSE(sees("says:Not saved"));
  say([](Snapshot& s) { s.store_problem = "the disk is full; training goes on, rows wait in memory"; });
  for (const char* layout : {"train", "start", "new", "compare"}) {
    choose_layout(ui(), layout);
    stage_.frames(6);  // scroll bars come and go
    EXPECT_TRUE(sees("says:Not saved: the disk is full; training goes on")) << layout;
    EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{}) << layout;
  }
  choose_layout(ui(), "train");
  stage_.resize({960, 600}, 2);
  stage_.frames(6);
  EXPECT_TRUE(sees("says:Not saved"));
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  say([](Snapshot& s) { s.store_problem = ""; });
  for (int i = 0; i < 3; ++i) frame();
  EXPECT_FALSE(find("says:Not saved"));
}

TEST(Eta, IsAsSureAsThePaceIsEven) {
  Curve wall, step_ms;
  PlayClock none;
  EXPECT_EQ(estimate_eta(none, 100).seconds, 0) << "nothing is known";
  for (int step = 1; step <= 401; ++step) step_ms.append(step, 50);
  PlayClock even;
  even.update(wall, step_ms);
  EXPECT_NEAR(estimate_eta(even, 1000).seconds, 50, 1e-9);
  EXPECT_NEAR(estimate_eta(even, 1000).spread, 0, 1e-5);
  EXPECT_EQ(estimate_eta(even, 0).seconds, 0) << "nothing is left";
  // Blocks of 20 steps that take 0.9 and 1.1 s in turn: mean 1, variance 10 * 0.01 / 9.
  Curve uneven_ms;
  for (int step = 1; step <= 401; ++step) uneven_ms.append(step, ((step - 2) / 20) % 2 ? 55 : 45);
  PlayClock uneven;
  uneven.update(wall, uneven_ms);
  const Eta eta = estimate_eta(uneven, 1000);
  EXPECT_NEAR(eta.seconds, 50, 1e-9);
  EXPECT_NEAR(eta.spread, std::sqrt(0.1 / 9 * (50 + 50.0 * 50 / 10)), 1e-9);
  EXPECT_GT(estimate_eta(uneven, 2000).spread, 1.5 * eta.spread) << "the farther, the less sure";
}

}  // namespace
}  // namespace comera::studio
