// Times of steps: what is recorded, what is asked for, and what is said when there is nothing.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/studio/panels.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/runs/run_actions.h"
#include "app/studio/shown_run/step_times.h"
#include "core/base/json.h"
#include "core/store/run_writer.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

constexpr const char* kProfile =
    R"({"steps": 20, "step_ms": {"median": 9, "p95": 11, "mean": 10}, "phases": [{"name": "data", "median": 1, "p95": 2, "mean": 1}, {"name": "forward", "median": 3, "p95": 4, "mean": 3}, {"name": "unknown phase", "median": 6, "p95": 6, "mean": 6}], "ops": [{"op": "gemm", "calls": 12, "ms": 5, "gflop": 0.5}, {"op": "copy", "calls": 1, "ms": 0.1, "gflop": 0, "gbyte": 0.001}], "processes_ms": [5, 8.5], "rates": {"sgemm_gflops": 200, "copy_gbs": 20}})";

TEST(StepTimes, QuantilesAndBinsOfAllSteps) {
  Curve curve;
  for (int i = 1; i <= 1000; ++i) curve.append(i, i == 500 ? 9000 : 100 + i % 10);
  curve.append(1001, NAN);
  const StepTimeSummary all = step_times(curve, INFINITY);
  EXPECT_EQ(all.count, 1000u);
  EXPECT_EQ(all.low, 100);
  EXPECT_GE(all.median, 104);
  EXPECT_LE(all.median, 105);
  EXPECT_EQ(all.p95, 109);
  EXPECT_EQ(all.slowest, 9000);
  EXPECT_EQ(all.beyond, 1u) << "one slow step must not flatten the others";
  size_t sum = all.beyond;
  for (const size_t bin : all.bins) sum += bin;
  EXPECT_EQ(sum, all.count);
  EXPECT_EQ(step_times(curve, 10).count, 10u);
  EXPECT_EQ(step_times(curve, 0).count, 0u);
  EXPECT_EQ(step_times({}, INFINITY).count, 0u);
}

TEST(StepTimes, OfMillionsASampleAndTheSlowest) {
  Curve curve;
  for (int i = 0; i < 1'000'000; ++i) curve.append(i, i == 700'001 ? 1e6 : i % 100);
  const StepTimeSummary times = step_times(curve, INFINITY);
  EXPECT_EQ(times.count, 1'000'000u);
  EXPECT_EQ(times.slowest, 1e6);
  EXPECT_NEAR(times.median, 50, 2);
  EXPECT_NEAR(times.p95, 95, 2);
  size_t all = times.beyond;
  for (const size_t bin : times.bins) all += bin;
  EXPECT_NEAR(static_cast<double>(all), 1e6, 10);
}

TEST(StepTimes, StepsThatAreAllAlike) {
  Curve curve;
  for (int i = 1; i <= 5; ++i) curve.append(i, 7);
  const StepTimeSummary same = step_times(curve, INFINITY);
  EXPECT_LT(same.low, 7);
  EXPECT_GT(same.high, 7);
  EXPECT_EQ(same.beyond, 0u);
}

void front(Stage& stage) {
  stage.frames(2);
  stage.ui.front_panel = "profile";
  stage.frames(3);
}

TEST(Profile, IsAskedForOnceAndComesWithTheRecords) {
  Stage stage;
  stage.begin_run(Phase::running);
  front(stage);
  EXPECT_TRUE(stage.ui.shown().profiles.empty());
  EXPECT_TRUE(stage.script->posted.empty()) << "measured without being asked";
  stage.ui.live->profile(20);
  EXPECT_TRUE(stage.ui.live->waits<ProfileCommand>());
  stage.frames();
  stage.script->records.events.push_back({0, 920, "profile", 0, kProfile});
  stage.say([&](Snapshot& s) { s.last_ticket = stage.script->tickets; });
  stage.frames();
  EXPECT_FALSE(stage.ui.live->waits<ProfileCommand>());
  ASSERT_EQ(stage.ui.shown().profiles.size(), 1u);
  const StepProfile& profile = stage.ui.shown().profiles[0];
  EXPECT_EQ(profile.step, 920);
  EXPECT_EQ(profile.steps, 20);
  EXPECT_EQ(profile.whole.mean, 10);
  ASSERT_EQ(profile.phases.size(), 3u);
  EXPECT_EQ(profile.phases[1].p95, 4);
  EXPECT_EQ(profile.ops.at(0).op, "gemm");
  EXPECT_EQ(profile.processes_ms, (std::vector<double>{5, 8.5}));
  EXPECT_EQ(StepProfile::read(profile.to_json().dump(), 920).processes_ms, profile.processes_ms);
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  // The run goes back before it: it did not happen.
  stage.script->records.events.push_back({0, 900, "resume", 0, R"({"from_step": 900})"});
  stage.frames();
  EXPECT_TRUE(stage.ui.shown().profiles.empty());
}

TEST(Profile, TheLastStepsOfAFinishedRunCount) {
  Stage stage;
  stage.begin_run(Phase::running, 1000);
  const auto add = [&](int64_t step) { stage.script->records.add(step, {{"step_ms", 10}}); };
  for (int64_t step = 1; step <= 1000; ++step) add(step);
  front(stage);
  ASSERT_EQ(stage.ui.profile.times.count, 1000u);
  add(1001);
  stage.say([](Snapshot& s) { s.step = 1001; });
  stage.frames(2);
  EXPECT_EQ(stage.ui.profile.times.count, 1000u) << "one more in a thousand is not visible";
  stage.say([](Snapshot& s) { s.phase = Phase::finished; });
  stage.frames(2);
  EXPECT_EQ(stage.ui.profile.times.count, 1001u);
}

TEST(Profile, OpsAreToldAsTheBenchDoes) {
  Stage stage;
  stage.begin_run(Phase::finished);
  stage.script->records.events.push_back({0, 700, "profile", 0, kProfile});
  stage.frames(2);
  const std::vector<Chart> charts = drawn(profile_charts(stage.ui));
  const auto ops = std::find_if(charts.begin(), charts.end(), [](const Chart& chart) { return chart.name == "ops"; });
  ASSERT_NE(ops, charts.end());
  // gemm: 5 of 10 ms, 0.5 GFLOP in 5 ms = 100 GFLOP/s, half of the rate. copy: 1 MB in 0.1 ms = 10 GB/s, half of the rate.
  const std::string csv = ops->csv();
  EXPECT_NE(csv.find("op,calls,ms,share,gbyte,gbyte_per_s,gflop_per_s,share_of_rate,gflop\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("gemm,12,5,0.5,,,100,0.5,0.5\n"), std::string::npos) << csv;
  EXPECT_NE(csv.find("copy,1,0.1,0.01,0.001,10,,0.5,0\n"), std::string::npos) << csv;
  // A profile of a time when neither was measured says so.
  const StepProfile old = StepProfile::read(R"({"steps": 1, "ops": [{"op": "gemm", "ms": 5, "gflop": 0.5}]})", 1);
  EXPECT_EQ(share_of_rate(old.ops.at(0), old.rates), 0);
}

TEST(Profile, WaitingForDataIsKnownOfAStoredRunWithoutAProfile) {
  Stage stage({1600, 900});
  stage.begin_run(Phase::finished, 900);
  stage.script->records.add(901, {{"step_ms", 100}, {"data_ms", 25}});
  stage.say([](Snapshot& s) { s.step = 901; });
  std::vector<NamedItem> items;
  front(stage);
  collect_items(&items);
  stage.frames(1);
  collect_items(nullptr);
  EXPECT_TRUE(std::any_of(items.begin(), items.end(),
                          [](const NamedItem& item) { return item.name == "says:waiting for data: 25.0 % of a step"; }));
}

TEST(Profile, WhatIsDamagedIsNotShown) {
  Stage stage;
  stage.begin_run(Phase::running);
  for (const char* body : {"", "{", "[]", R"({"steps": "many"})", "{}"})
    stage.script->records.events.push_back({0, 910, "profile", 0, body});
  front(stage);
  for (const StepProfile& profile : stage.ui.shown().profiles) EXPECT_EQ(profile.steps, 0);
  EXPECT_EQ(profile_charts(stage.ui).size(), 1u) << "only the step times";
}

TEST(Profile, EverySizeWithAndWithoutAProfile) {
  struct Case {
    ImVec2 pixels;
    float scale;
  };
  for (const bool timed : {false, true})
    for (const Case& c : {Case{{960, 600}, 1}, Case{{1600, 900}, 1}, Case{{1920, 1200}, 2}, Case{{3840, 2160}, 3}}) {
      Stage stage(c.pixels, c.scale);
      stage.begin_run(Phase::finished);
      if (timed) stage.script->records.events.push_back({0, 700, "profile", 0, kProfile});
      for (int i = 0; i < 300; ++i) stage.ui.profile.add_frame(i % 10, 0.1 * i);
      EXPECT_EQ(stage.ui.profile.frame_ms.size(), 240u);
      EXPECT_NEAR(stage.ui.profile.frame_share(), 0.045, 0.001) << "4.5 ms ten times a second";
      front(stage);
      EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << c.pixels.x << " at " << c.scale;
      auto view = std::make_shared<RunView>(stage.ui.shown());  // of the store, and without times
      view->live = false;
      view->metrics.clear();
      stage.ui.stored = view;
      stage.ui.show_stored = true;
      stage.frames();
      EXPECT_EQ(stage.ui.profile.times.count, 0u);
      EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << c.pixels.x << " at " << c.scale;
    }
}

class ProfileOfAStore : public StoreStage {};

TEST_F(ProfileOfAStore, ATraceOfTheRunIsWritten) {
  std::string id;
  {
    RunStart start;
    start.name = "timed";
    RunWriter writer(store_, start);
    for (int64_t step = 1; step <= 20; ++step) writer.metrics(step, {{"train_loss", 1}, {"step_ms", 3}});
    writer.finish("finished", "");
    ASSERT_TRUE(writer.flush());
    id = writer.run_id();
  }
  ui().store = std::make_unique<StoreClient>(store_, [] {});
  ui().exports.folder = (folder_ / "out").string();
  export_runs(ui(), {id}, RunChange::export_trace);
  ASSERT_TRUE(until([&] { return !ui().toasts.empty(); }));
  const std::string told = ui().toasts.back().text, path = told.substr(std::string("Written: ").size());
  EXPECT_EQ(path, (folder_ / "out" / (id + ".trace.json")).string()) << told;
  EXPECT_GE(read_json_file(path)["traceEvents"].size(), 20u);
}

TEST(Controls, HoldAtTheTargetIsALiveSwitch) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  EXPECT_TRUE(stage.ui.config().method.comera.hold_at_target);
  const ImGuiWindow* card = nullptr;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && std::string(window->Name).find("card-size") != std::string::npos) card = window;
  ASSERT_NE(card, nullptr);
  // Found by its id, wherever it stands.
  const ImGuiID id = ImHashStr("Hold at the target", 0, const_cast<ImGuiWindow*>(card)->GetID("method.comera.hold_at_target"));
  for (float y = card->Pos.y; y < card->Pos.y + card->Size.y; y += 4) {
    ImGui::GetIO().AddMousePosEvent(card->Pos.x + ImGui::GetFontSize() * 1.6f, y);
    stage.frames(2);
    if (ImGui::GetCurrentContext()->HoveredIdPreviousFrame != id) continue;
    ImGui::GetIO().AddMouseButtonEvent(0, true);
    stage.frames(2);
    ImGui::GetIO().AddMouseButtonEvent(0, false);
    stage.frames(2);
    break;
  }
  ASSERT_EQ(stage.script->posted.size(), 1u);
  const auto* edit = std::get_if<EditCommand>(&stage.script->posted[0]);
  ASSERT_NE(edit, nullptr);
  EXPECT_EQ(edit->path, "method.comera.hold_at_target");
  EXPECT_EQ(edit->value, "false");
}

}  // namespace
}  // namespace comera::studio
