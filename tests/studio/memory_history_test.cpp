// Memory over the steps: what training holds, on it the rest of the process, and what all processes hold.
#include "app/studio/shown_run/memory_history.h"

#include <cmath>

#include "app/studio/panels.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

constexpr double kMebi = 1 << 20;

// 100 steps; training holds 8 MiB of cores up to step 50 and 4 from there, the process 20 and then 30, everyone 600 of 1,000.
RunView a_view(const char* device, bool measured = true) {
  RunView view;
  Snapshot s;
  s.device = device;
  s.step = 100;
  Records records;
  for (int64_t step = 1; step <= 100; ++step) records.add(step, {{"train_loss", 1}});
  records.memory = {{0, name_of(Purpose::tt_core), 8 << 20}, {50, name_of(Purpose::tt_core), 4 << 20}};
  if (measured) {
    records.add(1, {{"process_bytes", 20 * kMebi}, {"device_used_bytes", 600 * kMebi}, {"device_total_bytes", 1000 * kMebi}});
    records.add(80, {{"process_bytes", 30 * kMebi}, {"device_used_bytes", 650 * kMebi}, {"device_total_bytes", 1000 * kMebi}});
  }
  view.take(std::make_shared<const Snapshot>(std::move(s)), records);
  return view;
}

TEST(MemoryHistory, TheRestOfTheProcessLiesOnTraining) {
  const MemoryHistory past = memory_history(a_view("CPU, 2 threads"), 0, 100, 1000);
  const auto& cores = past.purposes[static_cast<size_t>(Purpose::tt_core)];
  EXPECT_EQ(cores.x, (std::vector<double>{0, 50, 100})) << "to the newest step";
  EXPECT_EQ(cores.high, (std::vector<double>{8 * kMebi, 4 * kMebi, 4 * kMebi}));
  // A cut between two samples is seen: what training gave back the process still has.
  EXPECT_EQ(past.process.x, (std::vector<double>{1, 50, 80, 100}));
  EXPECT_EQ(past.process.low, (std::vector<double>{8 * kMebi, 4 * kMebi, 4 * kMebi, 4 * kMebi}));
  EXPECT_EQ(past.process.high, (std::vector<double>{20 * kMebi, 20 * kMebi, 30 * kMebi, 30 * kMebi}));
  EXPECT_EQ(past.used, (std::vector<double>{600 * kMebi, 650 * kMebi, 650 * kMebi}));
  EXPECT_EQ(past.process_top, 30 * kMebi);
  EXPECT_EQ(past.used_top, 650 * kMebi);
  const MemoryAt at = memory_at(a_view("CPU, 2 threads"), 60);
  EXPECT_EQ(at.training, 4 * kMebi);
  EXPECT_EQ(at.rest, 16 * kMebi);
  EXPECT_EQ(at.used, 600 * kMebi);
  EXPECT_EQ(at.total, 1000 * kMebi);
}

TEST(MemoryHistory, WhatWasNotRecordedIsNoZero) {
  const RunView none = a_view("CPU, 2 threads", false);
  const MemoryHistory past = memory_history(none, 0, 100, 1000);
  EXPECT_TRUE(past.process.x.empty());
  EXPECT_TRUE(past.used.empty());
  EXPECT_TRUE(std::isnan(memory_at(none, 60).rest));
  EXPECT_TRUE(std::isnan(memory_at(none, 60).used));
  // Before the first sample nothing is known either.
  EXPECT_TRUE(std::isnan(memory_at(a_view("CPU, 2 threads"), 0).rest));
  // A card's memory holds no rest of the process.
  const RunView card = a_view("NVIDIA H200");
  EXPECT_TRUE(memory_history(card, 0, 100, 1000).process.x.empty());
  EXPECT_TRUE(std::isnan(memory_at(card, 60).rest));
  EXPECT_EQ(memory_at(card, 60).used, 600 * kMebi);
}

TEST(MemoryHistory, ManySamplesAreAsManyPointsAsPixelsShow) {
  RunView view = a_view("CPU, 2 threads");
  Records more;
  for (int64_t step = 101; step <= 50'000; ++step) more.add(step, {{"process_bytes", (20 + static_cast<double>(step % 100)) * kMebi}});
  Snapshot s = *view.snapshot;
  s.step = 50'000;
  view.take(std::make_shared<const Snapshot>(s), more);
  const MemoryHistory past = memory_history(view, 0, 50'000, 400);
  EXPECT_LT(past.process.x.size(), 2000u);
  EXPECT_EQ(past.process_top, 119 * kMebi) << "no peak is lost";
}

class MemoryPanel : public Clicked {
 protected:
  void begin(bool measured, const char* device = "CPU, 2 threads") {
    stage_.resize({1920, 1080});
    stage_.begin_run(Phase::finished, 900);
    if (measured)
      for (const int64_t step : {100, 900})
        stage_.script->records.add(step, {{"process_bytes", 90e6}, {"device_used_bytes", 600e6}, {"device_total_bytes", 1e9}});
    say([&](Snapshot& s) { s.device = device; });
    stage_.frames(2);
    ui().front_panel = "memory";
    ui().memory_view = 2;
    stage_.frames(3);
  }
  NamedItem plot_item() {
    for (int i = 0; i < 3; ++i) frame();
    for (const NamedItem& item : items_)
      if (item.name == "chart:memory") return item;  // not "chart:memory-now"
    ADD_FAILURE() << "the plot is not there";
    return {};
  }
  Chart chart(const std::string& name) {
    for (Chart& chart : drawn(memory_charts(ui())))
      if (chart.name == name) return chart;
    ADD_FAILURE() << "no chart " << name;
    return {};
  }
};

TEST_F(MemoryPanel, TheExportHasWhatIsDrawn) {
  begin(true);
  ui().memory_scope = 0;
  EXPECT_EQ(chart("memory").csv().find("Rest of the process"), std::string::npos);
  ui().memory_scope = 1;
  EXPECT_NE(chart("memory").csv().find("Rest of the process (MiB)"), std::string::npos);
  EXPECT_EQ(chart("memory").csv().find("Other processes"), std::string::npos);
  ui().memory_scope = 2;
  EXPECT_NE(chart("memory").csv().find("Other processes (MiB),\"Machine, all processes (MiB)\""), std::string::npos)
      << chart("memory").csv().substr(0, 300);
  // The table under the bar, not bars.
  const Chart now = chart("memory-now");
  EXPECT_NE(now.csv().find("TT cores,1000000,1000000,1000000\n"), std::string::npos) << now.csv();
  EXPECT_NE(now.csv().find("Rest of the process,54000000,,\n"), std::string::npos) << "90 MB less the 36 MB of training: " << now.csv();
  EXPECT_NE(to_svg(now.drawing).find("planned"), std::string::npos);
  for (int scope = 0; scope < 3; ++scope) {
    ui().memory_scope = scope;
    stage_.frames(2);
    EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{}) << scope;
  }
}

TEST_F(MemoryPanel, ARunThatRecordedNoneSaysSo) {
  begin(false);
  ui().memory_scope = 1;
  EXPECT_TRUE(sees("says:Memory of the rest of the process was not recorded."));
  ui().memory_scope = 2;
  EXPECT_TRUE(sees("says:Memory of all processes was not recorded."));
  EXPECT_EQ(chart("memory-now").csv().find("Rest of"), std::string::npos) << "no zeros";
  begin(true);
  ui().memory_scope = 2;
  EXPECT_FALSE(sees("says:Memory of all processes"));
}

TEST_F(MemoryPanel, ThePlotStandsBesideTheNumbersWhereThereIsRoom) {
  begin(true);
  stage_.resize({3840, 2160});
  ui().memory_view = 0;
  stage_.frames(4);
  ASSERT_TRUE(sees("row:Rest of the process"));
  const NamedItem row = *find("row:Rest of the process"), plot = plot_item();
  EXPECT_GT(plot.low.x, row.high.x);
  EXPECT_LT(plot.low.y, row.low.y);
  EXPECT_GT(plot.high.y, row.high.y) << "beside, not under";
}

// Also where nothing else is drawn over the steps, as in the layout to analyse with its rank map in front.
TEST_F(MemoryPanel, ThePlotHasAllStepsByItself) {
  begin(true);
  ui().layout = "analyse";
  stage_.frames(3);
  ui().plots.x_high = 1;
  stage_.frames(2);
  EXPECT_GT(ui().plots.x_high, 900);
}

TEST_F(MemoryPanel, ValuesUnderTheMouseAreCopied) {
  begin(true);
  const NamedItem plot = plot_item();
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(plot.low.x + (plot.high.x - plot.low.x) * 0.6f, (plot.low.y + plot.high.y) / 2);
  frame();
  for (const bool down : {true, false}) {
    io.AddMouseButtonEvent(1, down);
    frame();
  }
  click("copy:Copy values");
  const std::string values = ImGui::GetClipboardText();
  EXPECT_EQ(values.find("step "), 0u) << values;
  EXPECT_NE(values.find("\nRest of the process\t51.50 MiB"), std::string::npos) << values;
  EXPECT_NE(values.find("\nTraining\t34.33 MiB"), std::string::npos) << values;
}

TEST_F(MemoryPanel, TheDataUnderTheMouseIsCopied) {
  begin(true);
  const NamedItem plot = plot_item();
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent((plot.low.x + plot.high.x) / 2, (plot.low.y + plot.high.y) / 2);
  frame();
  for (const bool down : {true, false}) {
    io.AddMouseButtonEvent(1, down);
    frame();
  }
  click("copy:Copy data");
  EXPECT_EQ(std::string(ImGui::GetClipboardText()), chart("memory").csv());
}

}  // namespace
}  // namespace comera::studio
