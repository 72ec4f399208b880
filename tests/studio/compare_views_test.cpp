// Seeds taken together, plots by run, metrics that cannot be compared, and charts of every tab.
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/panels.h"
#include "app/studio/parts/named_items.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

// 300 steps; loss = level + 1/step, an evaluation every 50.
void add_run(Compare& compare, const std::string& id, double level, Settings settings, double ms = 10) {
  WatchedRun run;
  run.run = id;
  Snapshot s = a_snapshot(Phase::finished, 300);
  s.run = id;
  s.name = "fashion | late 0.2 | " + id;
  s.step_ms_median = ms + 2;  // not that of the last step
  Records records;
  for (int64_t step = 1; step <= 300; ++step) {
    const double x = static_cast<double>(step);
    records.add(step, {{"train_loss", level + 1 / x}, {"entries", 1e6 - x * 100}, {"epoch", x / 100}, {"step_ms", ms}});
    if (step % 50 == 0) records.add(step, {{"val_accuracy", level}});
  }
  run.view = std::make_shared<RunView>();
  run.view->take(std::make_shared<const Snapshot>(std::move(s)), records);
  run.config = std::move(settings);
  run.checkpoints = {100};
  pick_run(compare, id);
  take_watched(compare, std::move(run));
}

Settings settings(const char* seed, const char* target = "0.2", const char* set = "\"fashion-mnist\"") {
  return {{"name", seed}, {"train.seed", seed}, {"method.comera.target", target}, {"data.set", set}, {"train.batch", "32"}};
}

void three_seeds(Compare& compare) {
  add_run(compare, "r-1", 0.5, settings("1"));
  add_run(compare, "r-2", 0.7, settings("2"), 20);
  add_run(compare, "r-other", 0.9, settings("1", "0.5"));
  add_run(compare, "r-3", 0.9, settings("3"));
}

TEST(SeedGroups, TakeRunsTogetherThatDifferInNothingElse) {
  Compare compare;
  three_seeds(compare);
  add_run(compare, "r-edited", 0.5, settings("4"));
  compare.runs.back()->view->edits.push_back({5, "train.lr_core", "1e-3"});
  add_run(compare, "r-unknown", 0.5, {});
  add_run(compare, "r-unknown2", 0.5, {});
  const std::vector<SeedGroup> groups = seed_groups(compare);
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[0].runs, (std::vector<size_t>{0, 1, 3}));
  EXPECT_EQ(groups[1].runs, (std::vector<size_t>{2}));
  EXPECT_EQ(groups[2].runs, (std::vector<size_t>{4})) << "an edit makes another run of it";
  EXPECT_EQ(groups[3].runs, (std::vector<size_t>{5})) << "settings that are not known are not the same";
}

TEST(SeedGroups, MeanAndBandAreThoseOfTheRuns) {
  Compare compare;
  three_seeds(compare);
  compare.plots.smoothing = 0;
  const SeedGroup group = seed_groups(compare)[0];
  const GroupCurve& loss = group_curve(compare, group, "train_loss", true);
  ASSERT_EQ(loss.mean.size(), 300u);
  for (const size_t i : {size_t{0}, size_t{149}, size_t{299}}) {
    const double over = 1 / static_cast<double>(i + 1);
    EXPECT_NEAR(loss.mean.y()[i], 0.7 + over, 1e-12);
    EXPECT_NEAR(loss.low.y()[i], 0.5 + over, 1e-12);
    EXPECT_NEAR(loss.high.y()[i], 0.9 + over, 1e-12);
  }
  EXPECT_EQ(&group_curve(compare, group, "train_loss", true), &loss);
  EXPECT_EQ(group_curve(compare, group, "val_accuracy", false).mean.size(), 6u);
  // Over time the slow run is at half of its steps where the others end.
  set_axis(compare, XAxis::time);
  const GroupCurve& over_time = group_curve(compare, group, "train_loss", true);
  EXPECT_NEAR(over_time.mean.x().back(), 3.0, 1e-9);
  EXPECT_NEAR(over_time.mean.last(), 0.7 + (2 * 1.0 / 300 + 1.0 / 150) / 3, 1e-6);
}

TEST(Incomparable, MetricsOfOtherDataAndDevicesAreNamed) {
  Compare compare;
  add_run(compare, "r-1", 0.5, settings("1"));
  add_run(compare, "r-2", 0.7, settings("1", "0.2", "\"sst2\""));
  add_run(compare, "r-3", 0.7, settings("2"));
  const ComparedRun &a = *compare.runs[0], &b = *compare.runs[1], &c = *compare.runs[2];
  for (const char* id : {"accuracy", "val_accuracy", "train_loss", "val_loss"}) {
    EXPECT_STREQ(incomparable(b, a, id), "other data") << id;
    EXPECT_EQ(incomparable(c, a, id), nullptr) << id;
  }
  for (const char* id : {"size", "compression", "peak", "entries"}) EXPECT_EQ(incomparable(b, a, id), nullptr) << id;
  Snapshot elsewhere = *c.view->snapshot;
  elsewhere.device = "CPU, 64 threads";
  compare.runs[2]->view->take(std::make_shared<const Snapshot>(elsewhere), {});
  EXPECT_STREQ(incomparable(c, a, "step_ms"), "other device");
  EXPECT_EQ(incomparable(c, a, "accuracy"), nullptr);
}

struct Size {
  const char* name;
  ImVec2 pixels;
  float scale;
};
constexpr Size kSizes[] = {
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
  for (const Size& size : kSizes) {
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
    compare.seeds_together = true;
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << size.name;
    const std::vector<Chart> charts = curves_charts(compare);
    ASSERT_EQ(charts.size(), 2u);
    EXPECT_NE(charts[0].title.find("mean of 3 seeds"), std::string::npos) << charts[0].title;
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
    const std::vector<Chart> charts = tab.charts(compare);
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
  const std::string pareto = pareto_charts(compare)[0].csv();
  EXPECT_NE(pareto.find("\n1,100,"), std::string::npos) << pareto.substr(0, 200);
  const std::string ranks = rank_difference_charts(compare)[0].csv();
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

}  // namespace
}  // namespace comera::studio
