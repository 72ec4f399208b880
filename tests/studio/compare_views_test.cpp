// Plots by run, metrics that cannot be compared, and charts of every tab.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/compare/parallel_axes.h"
#include "app/studio/compare/phase_times.h"
#include "app/studio/compare/placed_names.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/panels.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_over.h"
#include "tests/studio/clicked.h"
#include "tests/studio/compared_runs.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

TEST(Incomparable, MetricsOfOtherDataAndDevicesAreNamed) {
  Compare compare;
  add_run(compare, "r-1", 0.5, settings("1"));
  add_run(compare, "r-2", 0.7, settings("1", "0.2", "\"sst2\""));
  add_run(compare, "r-3", 0.7, settings("2"));
  const ComparedRun &a = *compare.runs[0], &b = *compare.runs[1], &c = *compare.runs[2];
  for (const char* id : {"accuracy", "val_accuracy", "train_loss", "val_loss"}) {
    EXPECT_STREQ(incomparable(b, a, id), "different data") << id;
    EXPECT_EQ(incomparable(c, a, id), nullptr) << id;
  }
  for (const char* id : {"size", "compression", "peak", "entries"}) EXPECT_EQ(incomparable(b, a, id), nullptr) << id;
  Snapshot elsewhere = *c.view->snapshot;
  elsewhere.device = "CPU, 64 threads";
  compare.runs[2]->view->take(std::make_shared<const Snapshot>(elsewhere), {});
  EXPECT_STREQ(incomparable(c, a, "step_ms"), "different device");
  EXPECT_EQ(incomparable(c, a, "accuracy"), nullptr);
}

struct ViewSize {
  const char* name;
  ImVec2 pixels;
  float scale;
};
constexpr ViewSize kViewSizes[] = {
    {"960x600", {960, 600}, 1}, {"1600x900", {1600, 900}, 1}, {"1920x1200_at_2", {1920, 1200}, 2}, {"3840x2160", {3840, 2160}, 1}};

size_t plots_shown() {
  size_t count = 0;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    const std::string name = window->Name;
    const size_t grid = name.find("/grid_");
    count += window->WasActive && grid != std::string::npos && name.find('/', grid + 1) != std::string::npos;
  }
  return count;
}

TEST(CurvesByRun, HaveAPlotForEachRunAndForEachGroupOfSeeds) {
  for (const ViewSize& size : kViewSizes) {
    Stage stage(size.pixels, size.scale);
    Compare& compare = stage.ui.compare;
    three_seeds(compare);
    stage.ui.layout = "compare";
    stage.frames();
    compare.toggled_metrics = {"val_accuracy", "entries", "step_ms"};  // the loss alone
    stage.frames();
    EXPECT_EQ(curves_charts(compare).size(), 1u);
    compare.by_run = true;
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << size.name;
    EXPECT_EQ(curves_charts(compare).size(), 4u);
    if (size.pixels.y > 2000) {
      EXPECT_EQ(plots_shown(), 4u);
    }
    compare.group_by = kBySeed;
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << size.name;
    const std::vector<Chart> charts = drawn(curves_charts(compare));
    ASSERT_EQ(charts.size(), 2u);
    EXPECT_NE(charts[0].title.find("1 (3 seeds)"), std::string::npos) << charts[0].title;
    EXPECT_NE(charts[0].csv().find("1 (3 seeds), mean of smoothed 0.95"), std::string::npos) << charts[0].csv().substr(0, 200);
    EXPECT_NE(charts[0].csv().find("lowest to highest"), std::string::npos);
    compare.by_run = false;
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << size.name;
  }
}

// Plots of a metric by run share their y axis, so that heights can be compared.
TEST(CurvesByRun, ShareTheirAxes) {
  Stage stage({3840, 2160});
  Compare& compare = stage.ui.compare;
  three_seeds(compare);
  compare.by_run = true;
  compare.plots.smoothing = 0;
  stage.ui.layout = "compare";
  stage.frames();
  const auto &first = compare.plots.looks["train_loss/0"], &last = compare.plots.looks["train_loss/3"];
  EXPECT_GT(first.shown_high, first.shown_low);
  EXPECT_EQ(first.shown_low, last.shown_low);
  EXPECT_EQ(first.shown_high, last.shown_high);
}

TEST(CompareCharts, EveryTabHasSomeAndTheyAreWhatIsShown) {
  Stage stage;
  Compare& compare = stage.ui.compare;
  EXPECT_TRUE(compare_charts(stage.ui).empty());
  three_seeds(compare);
  stage.ui.layout = "compare";
  stage.frames();
  std::set<std::string> names;
  for (const CompareTab& tab : compare_tabs()) {
    const std::vector<ListedChart> listed = tab.charts(compare);
    const std::vector<Chart> charts = drawn(listed);
    for (size_t i = 0; i < charts.size(); ++i) EXPECT_EQ(listed[i].name + listed[i].title, charts[i].name + charts[i].title);
    EXPECT_FALSE(charts.empty()) << tab.id;
    for (const Chart& chart : charts) {
      EXPECT_TRUE(names.insert(chart.name).second) << chart.name;
      EXPECT_GT(chart.drawing.shapes.size(), 5u) << chart.name;
      const std::string svg = to_svg(chart.drawing), csv = chart.csv();
      EXPECT_NE(svg.find("</svg>"), std::string::npos) << chart.name;
      EXPECT_EQ(svg.find("nan"), std::string::npos) << chart.name;
      EXPECT_GE(std::count(csv.begin(), csv.end(), '\n'), 2) << chart.name;
      for (const DrawnShape& shape : chart.drawing.shapes) {
        if (shape.clip >= 0) continue;
        // Letters are at least so wide.
        const float words = shape.kind == DrawnShape::text && shape.anchor == Anchor::left
                                ? shape.width * 0.42f * static_cast<float>(shape.words.size())
                                : 0;
        for (const Point point : shape.points) {
          EXPECT_GE(point.x, -1) << chart.name << " " << shape.words;
          EXPECT_LE(point.x + words, chart.drawing.size.x + 1) << chart.name << " " << shape.words;
          EXPECT_LE(point.y, chart.drawing.size.y + 1) << chart.name << " " << shape.words;
        }
      }
    }
  }
  const std::string pareto = drawn(pareto_charts(compare))[0].csv();
  EXPECT_NE(pareto.find("\n1,100,"), std::string::npos) << pareto.substr(0, 200);
  const std::string ranks = drawn(rank_difference_charts(compare))[0].csv();
  EXPECT_NE(ranks.find("enc0.attn.q,1,30,30,0"), std::string::npos) << ranks.substr(0, 200);
}

TEST(CompareTabs, SayOneValueOfARun) {
  Stage stage;
  three_seeds(stage.ui.compare);
  stage.ui.layout = "compare";
  std::vector<NamedItem> items;
  std::map<std::string, std::map<std::string, std::string>> said;  // by tab, then by quantity and run
  for (const char* tab : {"curves", "table"}) {
    stage.ui.compare.tab = tab;
    stage.frames();
    collect_items(&items);
    stage.frames(1);
    collect_items(nullptr);
    for (const NamedItem& item : std::exchange(items, {}))
      if (item.name.starts_with("value:")) {
        const size_t value = item.name.rfind(':');
        said[tab][item.name.substr(0, value)] = item.name.substr(value + 1);
      }
  }
  EXPECT_GE(said["curves"].size(), 4 * 3u);
  for (const auto& [what, value] : said["curves"])
    if (said["table"].contains(what)) {
      EXPECT_EQ(value, said["table"][what]) << what;
    }
  EXPECT_EQ(said["table"]["value:step_ms:r-1"], "12 ms") << "the median, not the last step's 10 ms";
  EXPECT_EQ(said["table"]["value:train_loss:r-1"], "0.504") << "the mean of 100 steps, not the last one's 0.5033";
}

TEST(CompareCharts, AreExportedFromThePage) {
  Stage stage;
  three_seeds(stage.ui.compare);
  stage.ui.layout = "compare";
  stage.frames();
  stage.press(ImGuiMod_Ctrl | ImGuiKey_E);
  EXPECT_TRUE(stage.ui.exports.open) << "there is no run in front, and none is needed";
  EXPECT_EQ(stage.ui.exports.panel, "compare");
  EXPECT_GE(stage.ui.exports.titles.size(), 7u);
}

TEST(ComparePanel, IsDockedBesideTheOthersToo) {
  Stage stage({1920, 1080});
  stage.begin_run(Phase::running);
  three_seeds(stage.ui.compare);
  stage.ui.front_panel = "compare";
  stage.frames();
  const ImGuiWindow* window = ImGui::FindWindowByName("Compare###compare");
  ASSERT_NE(window, nullptr);
  EXPECT_TRUE(window->DockIsActive);
  ImGui::FocusWindow(const_cast<ImGuiWindow*>(window));
  stage.frames(3);
  EXPECT_FALSE(window->Hidden);
  EXPECT_TRUE(compare_shown(stage.ui)) << "so its runs are kept up to date";
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  stage.ui.closed_panels["compare"] = true;
  stage.frames(3);
  EXPECT_FALSE(compare_shown(stage.ui));
}

TEST(CompareSettings, AreCopiedAsMarkdown) {
  Stage stage;
  Compare& compare = stage.ui.compare;
  three_seeds(compare);
  stage.ui.layout = "compare";
  compare.tab = "config";
  stage.frames();
  const std::string table = settings_markdown(compare);
  EXPECT_NE(table.find("| method.comera.target | 0.2 | 0.2 | 0.5 | 0.2 |"), std::string::npos) << table;
  EXPECT_EQ(table.find("data.set"), std::string::npos) << "only what differs";
  EXPECT_NE(table.find("|---|---|---|---|---|"), std::string::npos) << table;
}

// 0.1 + 0.3 + 0.2 + 0.1 of the step up to step 200, then 0.6 in the forward pass.
TEST(Phases, AreMeansOfAllStepsUpToTheCursor) {
  Compare compare;
  add_run(compare, "r-1", 0.5, settings("1"), 10);
  const PhaseTimes times = phase_times(*compare.runs[0]);
  EXPECT_NEAR(times.data, 1, 1e-9);
  EXPECT_NEAR(times.forward, (3 * 200 + 6 * 100) / 300.0, 1e-9) << "a sample counts for the steps since the one before";
  EXPECT_NEAR(times.backward, 2, 1e-9);
  EXPECT_NEAR(times.update, 1, 1e-9);
  EXPECT_NEAR(times.whole, 10, 1e-9);
  EXPECT_NEAR(times.data + times.forward + times.backward + times.update + times.rest, times.whole, 1e-9);
  EXPECT_TRUE(std::isnan(times.evaluation)) << "not recorded is not 0";
  Snapshot past = *compare.runs[0]->view->snapshot;
  past.step = 250;
  compare.runs[0]->past = std::make_shared<const Snapshot>(past);
  EXPECT_NEAR(phase_times(*compare.runs[0]).forward, 3, 1e-9);
}

TEST(Phases, OfARunWithoutSamplesAreThoseOfItsProfile) {
  Compare compare;
  add_run(compare, "r-1", 0.5, settings("1"));
  RunView& view = *compare.runs[0]->view;
  for (const char* name : {"data_ms", "forward_ms", "backward_ms", "update_ms"}) view.metrics.erase(name);
  EXPECT_FALSE(phase_times(*compare.runs[0]).known());
  view.profiles.push_back(StepProfile::read(
      R"({"steps": 5, "step_ms": {"mean": 8}, "phases": [{"name": "data", "mean": 1}, {"name": "forward", "mean": 2}, {"name": "backward", "mean": 3}, {"name": "refresh", "mean": 0.5}, {"name": "update", "mean": 1}, {"name": "ranks", "mean": 0.5}]})",
      100));
  const PhaseTimes times = phase_times(*compare.runs[0]);
  EXPECT_EQ(times.update, 1.5);
  EXPECT_NEAR(times.rest, 0.5, 1e-9);
}

TEST(Phases, DifferencesAreInMillisecondsAndPercent) {
  Compare compare;
  add_run(compare, "r-1", 0.5, settings("1"), 10);
  add_run(compare, "r-2", 0.5, settings("2"), 20);
  const auto times = std::make_shared<const AllPhaseTimes>(phase_times(compare.runs));
  for (const Quantity& quantity : phase_quantities(times))
    if (quantity.id == "phase:backward") {
      const Delta delta = delta_of(quantity, quantity.value(*compare.runs[1]), quantity.value(*compare.runs[0]));
      EXPECT_EQ(delta.text, "+2 ms, +100.0 %");
      EXPECT_EQ(delta.verdict, Delta::worse);
    }
  EXPECT_EQ(incomparable(*compare.runs[1], *compare.runs[0], "phase:forward"), nullptr);
  Snapshot elsewhere = *compare.runs[1]->view->snapshot;
  elsewhere.device = "CPU, 64 threads";
  compare.runs[1]->view->take(std::make_shared<const Snapshot>(elsewhere), {});
  EXPECT_STREQ(incomparable(*compare.runs[1], *compare.runs[0], "phase:forward"), "different device");
  const std::string csv = drawn(phases_charts(compare)).at(0).csv();
  EXPECT_NE(csv.find("run,data_ms,forward_ms,backward_ms,update_ms,rest_ms,step_ms,evaluation_ms\n"), std::string::npos) << csv;
}

TEST(CompareSettings, AreFilteredByWordsAndByRegularExpressions) {
  Stage stage;
  Compare& compare = stage.ui.compare;
  three_seeds(compare);
  compare.all_settings = true;
  const auto shown = [&](const char* filter) {
    compare.setting_filter.set(filter);
    const std::string table = settings_markdown(compare);
    std::vector<std::string> paths;
    for (const char* path : {"name", "train.seed", "method.comera.target", "data.set", "train.batch"})
      if (table.find("| " + std::string(path) + " |") != std::string::npos) paths.push_back(path);
    return paths;
  };
  using Paths = std::vector<std::string>;
  EXPECT_EQ(shown("").size(), 5u);
  EXPECT_EQ(shown("TRAIN."), (Paths{"train.seed", "train.batch"}));
  EXPECT_EQ(shown("/^train\\.s|target$/"), (Paths{"train.seed", "method.comera.target"}));
  EXPECT_EQ(shown("/mnist/"), (Paths{"data.set"})) << "values too";
  EXPECT_EQ(shown("nothing has this"), Paths{});
  EXPECT_EQ(shown("/(/").size(), 5u) << "what is no regular expression hides nothing";
  EXPECT_FALSE(compare.setting_filter.problem().empty());
}

TEST(CompareTable, RowsAreFilteredByTheirNames) {
  Stage stage;
  Compare& compare = stage.ui.compare;
  three_seeds(compare);
  const auto rows = [&](const char* filter) {
    compare.result_filter.set(filter);
    std::istringstream csv(drawn(table_charts(compare)).at(0).csv());
    std::vector<std::string> out;
    for (std::string line; std::getline(csv, line);) out.push_back(line);
    out.erase(out.begin());  // the names of the runs
    return out;
  };
  const size_t all = rows("").size();
  const std::vector<std::string> losses = rows("LOSS");
  EXPECT_GT(losses.size(), 0u);
  EXPECT_LT(losses.size(), all);
  for (const std::string& row : losses) EXPECT_TRUE(row.find("oss") != std::string::npos) << row;
  EXPECT_EQ(rows("/loss$|no such/").size() + rows("nothing has this").size(), rows("/loss$/").size());
}

TEST(CompareParallel, WhatARunHasNoUseOfIsNoValue) {
  Compare compare;
  three_seeds(compare);
  add_run(compare, "r-dense", 0.6, settings("9", "0.1"));
  compare.runs.back()->view->config.method.weights = "dense";
  compare.runs.back()->view->unused = unused_settings(fields_of(compare.runs.back()->view->config));
  const auto axes = parallel_axes(compare);
  const auto target = std::find_if(axes.begin(), axes.end(), [](const ParallelAxis& a) { return a.id == "method.comera.target"; });
  ASSERT_NE(target, axes.end());
  EXPECT_TRUE(target->unused.back());
  EXPECT_TRUE(std::isnan(target->places.back())) << "its default means nothing";
  EXPECT_EQ(target->low, "0.2") << "nor does it stretch the axis";
  EXPECT_FALSE(target->unused.front());
  const auto seed = std::find_if(axes.begin(), axes.end(), [](const ParallelAxis& a) { return a.id == "train.seed"; });
  ASSERT_NE(seed, axes.end());
  EXPECT_EQ(seed->places.back(), 1) << "what it uses it has";
  EXPECT_NE(drawn(parallel_charts(compare)).at(0).csv().find("not used"), std::string::npos);
}

TEST(PlacedNames, NoneLiesOnAnotherOrOnTheLine) {
  // A stair that goes through the place to the right of each point, and two points that are the same.
  const std::vector<Point> line = {{0, 100}, {300, 100}, {300, 50}, {400, 50}};
  std::vector<PlacedName> names = {{{150, 100}, {60, 12}}, {{150, 100}, {60, 12}}, {{300, 50}, {60, 12}}};
  place_names(names, line, {0, 0, 400, 200}, 8);
  const auto overlap = [](const Box& a, const Box& b) { return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1; };
  for (size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(names[i].place, PlacedName::beside) << i;
    EXPECT_FALSE(names[i].box.y0 < 100 && names[i].box.y1 > 100 && names[i].box.x0 < 300) << i << " is crossed";
    for (size_t k = 0; k < i; ++k) EXPECT_FALSE(overlap(names[i].box, names[k].box)) << i << " lies on " << k;
  }
  // Where everything is crossed it gets a ground; where there is no room it is not drawn.
  std::vector<Point> grid;
  for (int y = 0; y <= 40; y += 4) {
    grid.emplace_back(0, y);
    grid.emplace_back(400, y);
  }
  names = {{{150, 20}, {60, 12}}, {{150, 20}, {900, 12}}};
  place_names(names, grid, {0, 0, 400, 40}, 8);
  EXPECT_EQ(names[0].place, PlacedName::on_ground);
  EXPECT_EQ(names[1].place, PlacedName::nowhere);
}

class CompareHover : public Clicked {};

TEST_F(CompareHover, ARunUnderTheMouseStandsOutInEveryTab) {
  Compare& compare = ui().compare;
  stage_.resize({1920, 1080});
  three_seeds(compare);
  ui().layout = "compare";
  ASSERT_TRUE(sees("compared:r-2"));
  const NamedItem entry = *find("compared:r-2");
  ImGui::GetIO().AddMousePosEvent((entry.low.x + entry.high.x) / 2, (entry.low.y + entry.high.y) / 2);
  for (const CompareTab& tab : compare_tabs()) {
    compare.tab = tab.id;
    for (int i = 0; i < 4; ++i) frame();
    EXPECT_EQ(compare.highlighted, "r-2") << tab.id;
    for (const auto& run : compare.runs) {
      EXPECT_EQ(run->dimmed, run->wanted != "r-2") << tab.id << " " << run->wanted;
      EXPECT_EQ((color_of(*run) >> IM_COL32_A_SHIFT) < 128, run->wanted != "r-2") << run->wanted;
    }
  }
  ImGui::GetIO().AddMousePosEvent(-100, -100);
  for (int i = 0; i < 3; ++i) frame();
  for (const auto& run : compare.runs) EXPECT_FALSE(run->faint());
}

TEST_F(CompareHover, ACurveUnderTheMouseIsItsRun) {
  Compare& compare = ui().compare;
  stage_.resize({1920, 1080});
  add_run(compare, "r-low", 0.2, settings("1"));
  add_run(compare, "r-high", 0.9, settings("2"));
  compare.toggled_metrics = {"val_accuracy", "entries", "step_ms"};  // the loss alone
  compare.plots.smoothing = 0;
  ui().layout = "compare";
  ASSERT_TRUE(sees("chart:train_loss"));
  const NamedItem plot = *find("chart:train_loss");
  std::set<std::string> found;
  for (float y = plot.low.y; y < plot.high.y; y += 6) {
    ImGui::GetIO().AddMousePosEvent(plot.low.x + (plot.high.x - plot.low.x) * 0.7f, y);
    frame();
    frame();
    if (!compare.highlighted.empty()) found.insert(compare.highlighted);
  }
  EXPECT_EQ(found, (std::set<std::string>{"r-high", "r-low"}));
}

TEST(OverMetric, PointsAreAtTheSameSteps) {
  Curve loss, accuracy;
  for (int step = 1; step <= 100; ++step) loss.append(step, 1.0 / step);
  for (const int step : {20, 40, 60}) accuracy.append(step, step / 100.0);
  const OverPoints over = points_over(loss, accuracy, 0, 50, 1000);  // accuracy over loss
  EXPECT_EQ(over.steps, (std::vector<double>{20, 40})) << "those that are visible";
  EXPECT_EQ(over.x, (std::vector<double>{1 / 20.0, 1 / 40.0}));
  EXPECT_EQ(over.y, (std::vector<double>{0.2, 0.4}));
  const OverPoints other = points_over(accuracy, loss, 0, 100, 1000);  // loss over accuracy
  EXPECT_EQ(other.steps, (std::vector<double>{20, 40, 60}));
  EXPECT_EQ(other.x, (std::vector<double>{0.2, 0.4, 0.6}));
  EXPECT_EQ(other.y, (std::vector<double>{1 / 20.0, 1 / 40.0, 1 / 60.0}));
}

TEST(OverMetric, CurvesAreDrawnAndExportedOverIt) {
  for (const ViewSize& size : kViewSizes) {
    Stage stage(size.pixels, size.scale);
    Compare& compare = stage.ui.compare;
    three_seeds(compare);
    compare.runs[1]->view->metrics.erase("entries");
    stage.ui.layout = "compare";
    compare.over = "entries";
    compare.plots.smoothing = 0;
    compare.group_by = kBySeed;  // has no meaning here
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << size.name;
    const std::vector<Chart> charts = drawn(curves_charts(compare));
    ASSERT_FALSE(charts.empty());
    const auto accuracy = std::find_if(charts.begin(), charts.end(), [](const Chart& c) { return c.name == "curves-val_accuracy"; });
    ASSERT_NE(accuracy, charts.end());
    const std::string csv = accuracy->csv();
    EXPECT_EQ(csv.find("step,entries,1 (%),other (%),3 (%)\n"), 0u) << csv.substr(0, 100);
    EXPECT_NE(csv.find("\n100,990000,50,,\n"), std::string::npos) << csv.substr(0, 300);
    EXPECT_EQ(to_svg(accuracy->drawing).find("nan"), std::string::npos);
  }
}

}  // namespace
}  // namespace comera::studio
