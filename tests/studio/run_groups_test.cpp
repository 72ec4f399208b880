// Compared runs that are taken together: by their seeds, by a setting, by a tag; and what is drawn of them.
#include "app/studio/compare/run_groups.h"

#include <cmath>
#include <set>

#include "app/studio/action_table.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/parts/named_items.h"
#include "tests/studio/clicked.h"
#include "tests/studio/compared_runs.h"

namespace comera::studio {
namespace {

using Runs = std::vector<size_t>;
using Tags = std::vector<std::string>;
constexpr const char* kGroupTarget = "method.comera.target";

// Accuracies 0.1, 0.2 and 0.9 with a target of 0.2; 0.3 and 0.5 with one of 0.5; and one whose config is not known.
void two_targets(Compare& compare) {
  add_run(compare, "r-1", 0.1, settings("1"));
  add_run(compare, "r-2", 0.3, settings("1", "0.5"));
  add_run(compare, "r-3", 0.2, settings("2"));
  add_run(compare, "r-4", 0.5, settings("4", "0.5"));
  add_run(compare, "r-5", 0.9, settings("1"));
  add_run(compare, "r-6", 0.6, {});
}

std::vector<std::string> legends(const Compare& compare) {
  std::vector<std::string> out;
  for (const RunGroup& group : run_groups(compare)) out.push_back(legend_of(group, group.runs.size()));
  return out;
}

TEST(SeedGroups, TakeRunsTogetherThatDifferInNothingElse) {
  Compare compare;
  three_seeds(compare);
  add_run(compare, "r-edited", 0.5, settings("4"));
  compare.runs.back()->view->edits.push_back({5, "train.lr_core", "1e-3"});
  add_run(compare, "r-unknown", 0.5, {});
  add_run(compare, "r-unknown2", 0.5, {});
  EXPECT_EQ(run_groups(compare).size(), 7u) << "nothing is chosen";
  compare.group_by = kBySeed;
  const std::vector<RunGroup> groups = run_groups(compare);
  ASSERT_EQ(groups.size(), 5u);
  EXPECT_EQ(groups[0].runs, (Runs{0, 1, 3}));
  EXPECT_EQ(legend_of(groups[0], 3), "1 (3 seeds)");
  EXPECT_EQ(groups[1].runs, (Runs{2}));
  EXPECT_FALSE(groups[1].together());
  EXPECT_EQ(legend_of(groups[1], 1), "other");
  EXPECT_EQ(groups[2].runs, (Runs{4})) << "an edit makes another run of it";
  EXPECT_EQ(groups[3].runs, (Runs{5})) << "settings that are not known are not the same";
}

TEST(SeedGroups, MeanAndBandAreThoseOfTheRuns) {
  Compare compare;
  three_seeds(compare);
  compare.plots.smoothing = 0;
  const Runs runs = {0, 1, 3};
  const GroupCurve& loss = group_curve(compare, runs, "train_loss", true);
  ASSERT_EQ(loss.middle.size(), 300u);
  for (const size_t i : {size_t{0}, size_t{149}, size_t{299}}) {
    const double over = 1 / static_cast<double>(i + 1);
    EXPECT_NEAR(loss.middle.y()[i], 0.7 + over, 1e-12);
    EXPECT_NEAR(loss.low.y()[i], 0.5 + over, 1e-12);
    EXPECT_NEAR(loss.high.y()[i], 0.9 + over, 1e-12);
  }
  EXPECT_EQ(&group_curve(compare, runs, "train_loss", true), &loss);
  EXPECT_EQ(group_curve(compare, runs, "val_accuracy", false).middle.size(), 6u);
  // Over time the slow run is at half of its steps where the others end.
  set_axis(compare, XAxis::time);
  const GroupCurve& over_time = group_curve(compare, runs, "train_loss", true);
  EXPECT_NEAR(over_time.middle.x().back(), 3.0, 1e-9);
  EXPECT_NEAR(over_time.middle.last(), 0.7 + (2 * 1.0 / 300 + 1.0 / 150) / 3, 1e-6);
}

TEST(SeedGroups, TheBandMayBeTheStandardDeviation) {
  Compare compare;
  three_seeds(compare);
  compare.plots.smoothing = 0;
  compare.group_band = GroupBand::deviation;
  const GroupCurve& loss = group_curve(compare, {0, 1, 3}, "train_loss", true);
  // Of 0.5, 0.7, 0.9: 0.2.
  EXPECT_NEAR(loss.middle.y()[299], 0.7 + 1 / 300.0, 1e-12);
  EXPECT_NEAR(loss.low.y()[299], 0.5 + 1 / 300.0, 1e-12);
  EXPECT_NEAR(loss.high.y()[299], 0.9 + 1 / 300.0, 1e-12);
  compare.group_band = GroupBand::extremes;
  add_run(compare, "r-4", 0.7, settings("4"));
  const auto high = [&] { return group_curve(compare, {0, 1, 3, 4}, "train_loss", true).high.y()[299]; };
  EXPECT_NEAR(high(), 0.9 + 1 / 300.0, 1e-12);
  compare.group_band = GroupBand::deviation;
  EXPECT_NEAR(high(), 0.7 + 1 / 300.0 + std::sqrt(0.08 / 3), 1e-9) << "of n - 1";
}

TEST(RunGroups, OfASettingHaveTheSameValue) {
  Compare compare;
  two_targets(compare);
  compare.group_by = kGroupTarget;
  const std::vector<RunGroup> groups = run_groups(compare);
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].runs, (Runs{0, 2, 4}));
  EXPECT_EQ(groups[1].runs, (Runs{1, 3}));
  EXPECT_EQ(groups[2].runs, (Runs{5}));
  EXPECT_FALSE(groups[2].together()) << "its config is not known: it goes alone";
  EXPECT_EQ(legends(compare),
            (std::vector<std::string>{"method.comera.target = 0.2 (3 runs)", "method.comera.target = 0.5 (2 runs)", "6"}));
  add_run(compare, "r-7", 0.7, {});
  EXPECT_EQ(run_groups(compare).size(), 4u) << "two that are not known are not the same";
}

TEST(RunGroups, WhatARunDoesWithASettingCounts) {
  Compare compare;
  two_targets(compare);
  compare.group_by = kGroupTarget;
  compare.runs[0]->view->edits.push_back({50, kGroupTarget, "0.1"});
  compare.runs[2]->view->config.method.weights = "dense";
  compare.runs[2]->view->unused = unused_settings(fields_of(compare.runs[2]->view->config));
  std::erase_if(compare.runs[3]->config, [](const auto& setting) { return setting.first == kGroupTarget; });
  EXPECT_EQ(legends(compare),
            (std::vector<std::string>{"method.comera.target = 0.2 -> 0.1 at 50 (1 run)", "method.comera.target = 0.5 (1 run)",
                                      "method.comera.target not used (1 run)", "method.comera.target not set (1 run)",
                                      "method.comera.target = 0.2 (1 run)", "6"}));
  compare.group_by = "data.set";
  add_run(compare, "r-7", 0.7, settings("1", "0.2", "\"sst2\""));
  EXPECT_EQ(legends(compare), (std::vector<std::string>{"data.set = fashion-mnist (5 runs)", "6", "data.set = sst2 (1 run)"}));
}

TEST(RunGroups, OfATagHaveItOrHaveItNot) {
  Compare compare;
  two_targets(compare);
  compare.group_by = "tag:good";
  EXPECT_EQ(run_groups(compare).size(), 6u) << "no tags are known";
  compare.runs[0]->tags = Tags{"good", "color:3"};
  compare.runs[1]->tags = Tags{};
  compare.runs[2]->tags = Tags{"other"};
  compare.runs[5]->tags = Tags{"other", "good"};
  EXPECT_EQ(legends(compare), (std::vector<std::string>{"tag:good (2 runs)", "not tag:good (2 runs)", "4", "5"}));
  EXPECT_EQ(run_groups(compare)[0].runs, (Runs{0, 5})) << "its config does not matter";
}

TEST(RunGroups, WhatDoesNotTellRunsApartTakesNoneTogether) {
  Compare compare;
  two_targets(compare);
  for (const char* by : {"data.set", "no.such.setting", "tag:good", ""}) {
    compare.group_by = by;
    for (const RunGroup& group : run_groups(compare)) EXPECT_FALSE(group.together()) << by;
  }
  compare.group_by = kGroupTarget;
  EXPECT_EQ(run_groups(compare).size(), 3u);
  compare.over = "entries";
  EXPECT_EQ(run_groups(compare).size(), 6u) << "a mean is of steps";
}

TEST(RunGroups, AreOfferedForWhatTellsRunsApart) {
  Compare compare;
  two_targets(compare);
  using Choices = std::vector<std::string>;
  EXPECT_EQ(group_choices(compare), (Choices{"seed", "train.seed", kGroupTarget})) << "not the name, nor what is the same";
  compare.runs[0]->tags = Tags{"good", "color:3", "all"};
  compare.runs[1]->tags = Tags{"all"};
  EXPECT_EQ(group_choices(compare), (Choices{"seed", "train.seed", kGroupTarget, "tag:good"})) << "nor colours, nor what all have";
  Compare none;
  add_run(none, "r-1", 0.1, settings("1"));
  add_run(none, "r-2", 0.1, settings("2", "0.5"));
  EXPECT_EQ(group_choices(none), (Choices{"train.seed", kGroupTarget})) << "they differ in more than the seed";
  std::vector<std::string> seen;
  for (int i = 0; i < 6; ++i) {
    choose_next_group(compare);
    seen.push_back(compare.group_by);
  }
  EXPECT_EQ(seen, (Choices{"seed", "train.seed", kGroupTarget, "tag:good", "", "seed"}));
}

// 0.1, 0.2 and 0.9: mean 0.4, median 0.2, deviation sqrt((0.09 + 0.04 + 0.25) / 2). 0.3 and 0.5: 0.4 twice.
TEST(RunGroups, MeanMedianAndBandsAreThoseComputedByHand) {
  Compare compare;
  two_targets(compare);
  const auto expect = [&](const Runs& runs, double middle, double low, double high) {
    const GroupCurve& accuracy = group_curve(compare, runs, "val_accuracy", false);
    ASSERT_EQ(accuracy.middle.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_EQ(accuracy.middle.x()[i], 50.0 * static_cast<double>(i + 1));
      EXPECT_NEAR(accuracy.middle.y()[i], middle, 1e-12);
      EXPECT_NEAR(accuracy.low.y()[i], low, 1e-12);
      EXPECT_NEAR(accuracy.high.y()[i], high, 1e-12);
    }
  };
  expect({0, 2, 4}, 0.4, 0.1, 0.9);
  expect({1, 3}, 0.4, 0.3, 0.5);
  compare.group_middle = GroupMiddle::median;
  expect({0, 2, 4}, 0.2, 0.1, 0.9);
  expect({1, 3}, 0.4, 0.3, 0.5);
  expect({0, 2, 4, 5}, 0.4, 0.1, 0.9);
  compare.group_band = GroupBand::deviation;
  const double deviation = std::sqrt(0.19);
  expect({0, 2, 4}, 0.2, 0.4 - deviation, 0.4 + deviation);
  compare.group_middle = GroupMiddle::mean;
  expect({0, 2, 4}, 0.4, 0.4 - deviation, 0.4 + deviation);
  EXPECT_TRUE(std::isnan(middle_of({}, GroupMiddle::mean)));
  EXPECT_TRUE(std::isnan(middle_of({}, GroupMiddle::median)));
}

const Chart* chart_of(const std::vector<Chart>& charts, const std::string& name) {
  for (const Chart& chart : charts)
    if (chart.name == name) return &chart;
  return nullptr;
}

TEST(RunGroups, AreDrawnInOneColourEach) {
  Stage stage;
  Compare& compare = stage.ui.compare;
  two_targets(compare);
  compare.runs[0]->view->metrics.erase("val_accuracy");  // the sign of its group stays
  stage.ui.layout = "compare";
  compare.group_by = kGroupTarget;
  compare.group_middle = GroupMiddle::median;
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  const std::vector<Chart> charts = drawn(curves_charts(compare));
  const Chart *loss = chart_of(charts, "curves-train_loss"), *accuracy = chart_of(charts, "curves-val_accuracy");
  ASSERT_TRUE(loss && accuracy);
  const auto color = [&](size_t run) { return theme().series[static_cast<size_t>(compare.runs[run]->slot)]; };
  for (const Chart* chart : {loss, accuracy}) {
    std::set<Color> drawn;
    for (const DrawnShape& shape : chart->drawing.shapes)
      if (shape.kind == DrawnShape::line && shape.clip >= 0 && alpha_of(shape.color) == 255) drawn.insert(shape.color);
    EXPECT_EQ(drawn, (std::set<Color>{color(0), color(1), color(5)})) << chart->name;
  }
  const std::string svg = to_svg(loss->drawing), csv = accuracy->csv();
  for (const char* legend : {"method.comera.target = 0.2 (3 runs), median", "method.comera.target = 0.5 (2 runs), lowest to highest"})
    EXPECT_NE(svg.find(legend), std::string::npos) << legend;
  EXPECT_NE(csv.find("method.comera.target = 0.2 (2 runs), median"), std::string::npos) << "those that have it: " << csv.substr(0, 300);
  EXPECT_NE(csv.find("method.comera.target = 0.2 (2 runs), lowest to highest: from (%)"), std::string::npos) << csv.substr(0, 300);
  EXPECT_NE(csv.find("\n50,20,90,30,50,"), std::string::npos) << "both edges of both bands: " << csv.substr(0, 900);
}

TEST(RunGroups, HaveTheirValuesAboveThoseOfTheirRuns) {
  Stage stage({1920, 1080});
  Compare& compare = stage.ui.compare;
  two_targets(compare);
  stage.ui.layout = "compare";
  compare.group_by = kGroupTarget;
  const auto items = [&] {
    std::vector<NamedItem> found;
    stage.frames();
    collect_items(&found);
    stage.frames(1);
    collect_items(nullptr);
    return found;
  };
  const auto find = [](const std::vector<NamedItem>& all, const std::string& name) -> const NamedItem* {
    for (const NamedItem& item : all)
      if (item.name == name) return &item;
    return nullptr;
  };
  std::vector<NamedItem> now = items();
  const NamedItem *mean = find(now, "value:accuracy:method.comera.target = 0.2:40.00 %"), *first = find(now, "value:accuracy:r-1:10.00 %"),
                  *other = find(now, "value:accuracy:method.comera.target = 0.5:40.00 %");
  ASSERT_TRUE(mean && first && other);
  EXPECT_LT(mean->low.y, first->low.y);
  EXPECT_LT(first->low.y, other->low.y);
  EXPECT_TRUE(find(now, "legend:method.comera.target = 0.2 (3 runs)"));
  EXPECT_TRUE(find(now, "value:accuracy:r-6:60.00 %")) << "it goes alone, and is there";
  compare.group_middle = GroupMiddle::median;
  now = items();
  EXPECT_TRUE(find(now, "value:accuracy:method.comera.target = 0.2:20.00 %"));
  compare.group_by.clear();
  now = items();
  EXPECT_FALSE(find(now, "legend:method.comera.target = 0.2 (3 runs)"));
  EXPECT_TRUE(find(now, "value:accuracy:r-1:10.00 %"));
}

TEST(RunGroups, FitIntoEveryWindow) {
  for (const auto& [size, scale] : {std::pair(ImVec2{960, 600}, 1.0f), {{960, 600}, 2.0f}, {{1600, 900}, 1.0f}, {{1920, 1200}, 2.0f}}) {
    Stage stage(size, scale);
    Compare& compare = stage.ui.compare;
    two_targets(compare);
    add_run(compare, "r-7", 0.4, settings("7", "0.5", "\"a set with a name that is rather long\""));
    stage.ui.layout = "compare";
    for (const std::string& by : group_choices(compare))
      for (const bool by_run : {false, true}) {
        compare.group_by = by;
        compare.by_run = by_run;
        stage.frames();
        EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << by << " " << size.x << "x" << size.y << " at " << scale;
        for (const Chart& chart : drawn(curves_charts(compare)))
          for (const DrawnShape& shape : chart.drawing.shapes)
            if (shape.kind == DrawnShape::text && shape.anchor == Anchor::left) {
              EXPECT_LE(shape.points[0].x + shape.width * 0.42f * static_cast<float>(shape.words.size()), chart.drawing.size.x)
                  << shape.words;
            }
      }
  }
}

class RunGroupsClicked : public Clicked {};

TEST_F(RunGroupsClicked, AreChosenInTheToolbar) {
  Compare& compare = ui().compare;
  stage_.resize({1920, 1080});
  two_targets(compare);
  ui().layout = "compare";
  click("group-by");
  click("group:" + std::string(kGroupTarget));
  EXPECT_EQ(compare.group_by, kGroupTarget);
  EXPECT_TRUE(sees("legend:method.comera.target = 0.5 (2 runs)"));
  click("group-by");
  click("group:seed");
  EXPECT_EQ(compare.group_by, kBySeed);
  EXPECT_TRUE(sees("legend:1 (3 seeds)"));
}

TEST_F(RunGroupsClicked, AreActions) {
  Compare& compare = ui().compare;
  two_targets(compare);
  ui().layout = "compare";
  const auto act = [&](const std::string& id) {
    for (const Action& action : actions(ui()))
      if (action.id == id) action.act(ui());
    return compare.group_by;
  };
  EXPECT_EQ(act("compare.seeds"), kBySeed);
  EXPECT_EQ(act("compare.seeds"), "");
  EXPECT_EQ(act("compare.group"), kBySeed);
  EXPECT_EQ(act("compare.group"), "train.seed");
}

TEST_F(RunGroupsClicked, ARunUnderTheMouseBringsOutItsGroup) {
  Compare& compare = ui().compare;
  stage_.resize({1920, 1080});
  two_targets(compare);
  ui().layout = "compare";
  compare.group_by = kGroupTarget;
  ASSERT_TRUE(sees("compared:r-3"));  // not the first one of its group
  const NamedItem entry = *find("compared:r-3");
  ImGui::GetIO().AddMousePosEvent((entry.low.x + entry.high.x) / 2, (entry.low.y + entry.high.y) / 2);
  for (int i = 0; i < 4; ++i) frame();
  ASSERT_EQ(compare.highlighted, "r-3");
  std::set<std::pair<Color, bool>> drawn;  // whole colour, and whether it stands out
  for (const Chart& chart : studio::drawn(curves_charts(compare)))
    for (const DrawnShape& shape : chart.drawing.shapes)
      if (shape.kind == DrawnShape::line && shape.clip >= 0 && shape.color != theme().dim)
        drawn.insert({shape.color | 0xff000000u, alpha_of(shape.color) == 255});
  const auto color = [&](size_t run) { return theme().series[static_cast<size_t>(compare.runs[run]->slot)]; };
  EXPECT_TRUE(drawn.contains({color(0), true}));
  EXPECT_FALSE(drawn.contains({color(1), true}));
  EXPECT_TRUE(drawn.contains({color(1), false}));
}

}  // namespace
}  // namespace comera::studio
