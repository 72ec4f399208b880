// Every panel in every state, in small and large windows, without a display.
#include <tuple>

#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

struct Size {
  const char* name;
  ImVec2 pixels;
  float scale;
};

class Panels : public testing::TestWithParam<std::tuple<Phase, Size, ThemeKind>> {};

const ImGuiWindow* window_of(const Panel& panel) { return ImGui::FindWindowByName((std::string(panel.title) + "###" + panel.id).c_str()); }

TEST_P(Panels, DrawsInside) {
  const auto [phase, size, kind] = GetParam();
  Stage stage(size.pixels, size.scale, kind);
  if (phase == Phase::idle)
    stage.ui.layout = "train";
  else
    stage.begin_run(phase, phase == Phase::preparing ? 0 : 900);
  stage.frames();
  EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, 1000);
  for (const Panel& panel : panels()) {
    const ImGuiWindow* window = window_of(panel);
    ASSERT_NE(window, nullptr) << panel.id;
    EXPECT_TRUE(window->DockIsActive) << panel.id << " is not docked";
    EXPECT_GE(window->Pos.x, -0.5f) << panel.id;
    EXPECT_LE(window->Pos.x + window->Size.x, size.pixels.x + 0.5f) << panel.id;
    EXPECT_LE(window->Pos.y + window->Size.y, size.pixels.y + 0.5f) << panel.id;
    // A tab behind another one is brought to the front and drawn too.
    ImGui::FocusWindow(const_cast<ImGuiWindow*>(window));
    stage.frames(2);
    EXPECT_TRUE(window->WasActive && !window->Hidden) << panel.id << " was not drawn";
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << panel.id;
  }
}

std::string name_of_case(const testing::TestParamInfo<Panels::ParamType>& info) {
  const auto& [phase, size, kind] = info.param;
  return std::string(phase == Phase::idle ? "empty" : name_of(phase)) + "_" + size.name + (kind == ThemeKind::dark ? "_dark" : "_light");
}

INSTANTIATE_TEST_SUITE_P(All, Panels,
                         testing::Combine(testing::Values(Phase::idle, Phase::preparing, Phase::running, Phase::paused, Phase::failed,
                                                          Phase::diverged, Phase::finished),
                                          testing::Values(Size{"960x600", {960, 600}, 1}, Size{"1920x1080", {1920, 1080}, 1},
                                                          Size{"1920x1200_at_2", {1920, 1200}, 2}),
                                          testing::Values(ThemeKind::dark, ThemeKind::light)),
                         name_of_case);

// A check that cannot fail proves nothing.
TEST(Stage, FindsWhatIsTooWide) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  EXPECT_TRUE(stage.overflowing().empty());
  stage.extra = [] {
    ImGui::Begin("Metrics###metrics");
    ImGui::Dummy({5000, 1});
    ImGui::End();
  };
  stage.frames();
  EXPECT_FALSE(stage.overflowing().empty());
}

TEST(Start, EmptyAndManyRuns) {
  for (const ImVec2 size : {ImVec2(960, 600), ImVec2(1920, 1080)}) {
    Stage stage(size);
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
    auto list = std::make_shared<RunList>();
    list->loaded = true;
    for (int i = 0; i < 5000; ++i) {
      RunRow row;
      row.id = "r-" + std::to_string(100000 + i);
      row.name = "a name that is much longer than the column it stands in, as people like to write them";
      row.status = i % 3 == 0 ? "finished" : i % 3 == 1 ? "interrupted" : "diverged";
      row.summary.step = i;
      row.summary.total_steps = 5000;
      row.summary.val_accuracy = 0.9;
      list->rows.push_back(row);
    }
    stage.ui.runs = list;
    stage.frames();
    stage.ui.run_table.filter = "interrupted";
    stage.frames();
    stage.ui.run_table.filter = "nothing like this";
    stage.frames();
    auto broken = std::make_shared<RunList>();
    broken->loaded = true;
    broken->problem = "the store is damaged: page 12 cannot be read";
    stage.ui.runs = broken;
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  }
}

TEST(Ranks, ManyLayersAndOddNumbersOfBonds) {
  Stage stage({960, 600});
  stage.begin_run(Phase::running, 300, 38);
  Snapshot odd = *stage.script->snapshot;
  odd.ranks[1].live = {5};
  odd.ranks[1].initial = {};  // not known
  odd.ranks[1].held.clear();
  odd.ranks[2].live.clear();
  stage.script->snapshot = std::make_shared<const Snapshot>(odd);
  ImGui::SetWindowFocus("Ranks###ranks");
  stage.frames();
  ImGui::SetWindowFocus("Ranks###ranks");
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
}

TEST(Metrics, ARunThatFailedAtOnce) {
  Stage stage({960, 600});
  stage.begin_run(Phase::failed, 0);
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
}

TEST(Metrics, BadValuesAreDrawn) {
  Stage stage;
  stage.begin_run(Phase::running, 400);
  stage.script->records.add(
      401, {{"train_loss", std::numeric_limits<double>::quiet_NaN()}, {"step_ms", std::numeric_limits<double>::infinity()}});
  stage.frames();
  EXPECT_EQ(stage.ui.live->view().metric("train_loss").gaps(), std::vector<double>{401});
}

TEST(Metrics, ManyBadValuesAreAsManySignsAsFit) {
  Stage stage;
  stage.begin_run(Phase::running, 100);
  stage.frames();
  const int before = ImGui::GetDrawData()->TotalVtxCount;
  for (int64_t step = 101; step <= 50'100; ++step)
    stage.script->records.add(step, {{"train_loss", std::numeric_limits<double>::quiet_NaN()}});
  auto last = a_snapshot(Phase::running, 50'100);
  stage.script->snapshot = std::make_shared<const Snapshot>(last);
  stage.frames();
  EXPECT_EQ(stage.ui.live->view().metric("train_loss").gaps().size(), 50'000u);
  EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, before + 200);
  EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, before + 10'000);
}

TEST(Metrics, MillionsOfPointsAreSmoothedOverSomeFrames) {
  Stage stage;
  stage.begin_run(Phase::paused, 2);
  constexpr size_t kPoints = 1'250'000;
  Series& loss = stage.script->records.metrics["train_loss"];
  loss = {};
  for (size_t i = 1; i <= kPoints; ++i) {
    loss.steps.push_back(static_cast<int64_t>(i));
    loss.values.push_back(1 / static_cast<double>(i));
  }
  stage.frames(1);
  const Curve& curve = stage.ui.live->view().metric("train_loss");
  ASSERT_EQ(curve.size(), kPoints);
  const auto smoothed = [&] { return stage.ui.plots.smoothed.at(&curve).curve().size(); };
  EXPECT_LE(smoothed(), PlotView::kSmoothedAFrame);
  EXPECT_GT(smoothed(), PlotView::kSmoothedAFrame / 2);
  EXPECT_TRUE(stage.ui.busy()) << "the next frame must come by itself";
  stage.frames(3);
  EXPECT_EQ(smoothed(), kPoints);
  EXPECT_FALSE(stage.ui.busy());
}

TEST(Frame, SwitchesThemeScaleAndSizeWhileItRuns) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  set_theme(stage.ui, ThemeKind::light);
  stage.frames();
  for (const float scale : {0.75f, 1.5f, 3.0f}) {
    set_user_scale(stage.ui, scale);
    stage.frames();
  }
  show_layout(stage.ui, "start");
  stage.frames();
  show_layout(stage.ui, "train");
  stage.ui.rebuild_layout = true;
  stage.frames();
}

TEST(Frame, QuittingWhileTrainingAsksFirst) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.ui.close_requested = true;
  stage.frames();
  EXPECT_FALSE(stage.ui.quit);
  EXPECT_NE(ImGui::FindWindowByName("Quit while training?###quit"), nullptr);
  Snapshot stopped = *stage.script->snapshot;
  stopped.phase = Phase::stopped;
  stage.script->snapshot = std::make_shared<const Snapshot>(stopped);
  stage.frames();
  EXPECT_TRUE(stage.ui.quit);
}

TEST(Frame, QuittingAnIdleWindowQuits) {
  Stage stage;
  stage.ui.close_requested = true;
  stage.frames();
  EXPECT_TRUE(stage.ui.quit);
}

}  // namespace
}  // namespace comera::studio
