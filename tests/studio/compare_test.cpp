// Runs side by side: what is read of them, what is said of them, and that every tab draws in every state.
#include "app/studio/compare/compare.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "app/studio/actions.h"
#include "app/studio/compare/parallel_axes.h"
#include "app/studio/compare/pareto_points.h"
#include "app/studio/compare/tabs.h"
#include "core/store/config_diff.h"
#include "core/store/run_writer.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

// What a run can lack.
struct Lacks {
  bool accuracy = false, ranks = false, memory = false, step_times = false, config = false;
};

// A run as the store would give it: 600 steps, an evaluation every 100, accuracy rising to `accuracy`.
WatchedRun a_run(const std::string& id, double accuracy, Lacks lacks = {}, int layers = 3) {
  WatchedRun run;
  run.run = id;
  RunConfig config;
  config.train.batch = 16;
  Snapshot s = a_snapshot(Phase::finished, 600, layers);
  s.run = id;
  s.name = "a name that is rather long and tells little of " + id;
  s.step_ms_median = 12;
  s.elapsed_s = 7.2;
  if (lacks.ranks) s.ranks.clear();
  if (lacks.memory) s.memory_now = s.memory_peak = s.memory_planned = {};
  Records records;
  for (int64_t step = 1; step <= 600; ++step) {
    const double x = static_cast<double>(step);
    records.add(step, {{"train_loss", 2 / (1 + x / 50)}, {"entries", lacks.ranks ? 0 : 1e6 - x * 300}, {"epoch", x / 200}});
    if (!lacks.step_times) records.add(step, {{"step_ms", step % 2 ? 10 : 14}});
    if (step % 100 == 0 && !lacks.accuracy) records.add(step, {{"val_accuracy", accuracy * x / 600}, {"val_loss", 1 - accuracy * x / 600}});
  }
  run.view = std::make_shared<RunView>(config);
  run.view->take(std::make_shared<const Snapshot>(std::move(s)), records);
  if (!lacks.config) run.config = {{"train.batch", "16"}, {"method.comera.target", accuracy > 0.8 ? "0.5" : "0.2"}, {"train.seed", "1"}};
  run.checkpoints = {300, 600};
  return run;
}

void add_run(Compare& compare, WatchedRun run) {
  pick_run(compare, run.run);
  take_watched(compare, std::move(run));
}

double value_of(const ComparedRun& run, const std::string& id) {
  for (const Quantity& quantity : results())
    if (quantity.id == id) return quantity.value(run);
  ADD_FAILURE() << "no quantity " << id;
  return 0;
}

const Quantity& quantity(const std::string& id) {
  static const std::vector<Quantity> all = results();
  return *std::find_if(all.begin(), all.end(), [&](const Quantity& q) { return q.id == id; });
}

TEST(ComparePicks, AtMostEightEachWithASignOfItsOwn) {
  Compare compare;
  for (int i = 0; i < 10; ++i) pick_run(compare, "r-" + std::to_string(i));
  pick_run(compare, "r-3");  // again
  ASSERT_EQ(compare.runs.size(), 8u);
  std::set<int> slots;
  for (const auto& run : compare.runs) slots.insert(run->slot);
  EXPECT_EQ(slots.size(), 8u);
  const int freed = compare.find("r-2")->slot;
  std::map<std::string, int> before;
  for (const auto& run : compare.runs) before[run->wanted] = run->slot;
  unpick_run(compare, "r-2");
  EXPECT_EQ(compare.find("r-2"), nullptr);
  for (const auto& run : compare.runs) EXPECT_EQ(run->slot, before[run->wanted]) << "the others keep their colours";
  pick_run(compare, "r-9");
  EXPECT_EQ(compare.find("r-9")->slot, freed);
}

TEST(ComparePicks, AColourBelongsToTheRun) {
  Compare compare, other;
  for (const char* id : {"r-a", "r-b", "r-c", "r-d"}) pick_run(compare, id);
  for (const auto& run : compare.runs) {
    const int slot = run->slot;
    const std::string id = run->wanted;
    Compare alone;
    pick_run(alone, id);
    EXPECT_EQ(alone.runs[0]->slot, slot_of(id)) << "the same in every comparison that does not need it twice";
    unpick_run(compare, id);
    pick_run(compare, id);
    EXPECT_EQ(compare.find(id)->slot, slot) << id << ", unticked and ticked again";
  }
  // One that was asked for by its name has the colour of its id.
  pick_run(other, "one by its name");
  WatchedRun named = a_run("r-b", 0.9);
  named.run = "one by its name";
  take_watched(other, std::move(named));
  EXPECT_EQ(other.runs[0]->slot, slot_of("r-b"));
  // Chosen by hand: whoever had it takes the other one.
  const int a = compare.find("r-a")->slot, b = compare.find("r-b")->slot;
  ASSERT_NE(a, b);
  choose_slot(compare, "r-a", b);
  EXPECT_EQ(compare.find("r-a")->slot, b);
  EXPECT_EQ(compare.find("r-b")->slot, a);
  unpick_run(compare, "r-a");
  pick_run(compare, "r-a");
  EXPECT_EQ(compare.find("r-a")->slot, b);
  for (int slot = 0; slot < 8; ++slot) EXPECT_EQ(slot_of_tags({"good", color_tag(slot)}), slot);
  EXPECT_EQ(slot_of_tags({"color:9", "color"}), -1);
}

TEST(ComparePicks, TheBaselineIsChosenAndSurvives) {
  Compare compare;
  EXPECT_EQ(compare.baseline_run(), nullptr);
  for (const char* id : {"r-a", "r-b", "r-c"}) pick_run(compare, id);
  EXPECT_EQ(compare.baseline_run()->wanted, "r-a");
  set_baseline(compare, "r-c");
  EXPECT_EQ(compare.baseline_run()->wanted, "r-c");
  next_baseline(compare);
  EXPECT_EQ(compare.baseline_run()->wanted, "r-a");
  next_baseline(compare);
  EXPECT_EQ(compare.baseline_run()->wanted, "r-b");
  unpick_run(compare, "r-b");
  EXPECT_EQ(compare.baseline_run()->wanted, "r-a") << "the first one when it is gone";
}

TEST(ComparePicks, ARunThatWasAskedForByNameAndByIdIsOne) {
  Compare compare;
  add_run(compare, a_run("r-one", 0.9));
  pick_run(compare, "one by its name");
  WatchedRun same = a_run("r-one", 0.9);
  same.run = "one by its name";
  take_watched(compare, std::move(same));
  EXPECT_EQ(compare.runs.size(), 1u);
}

TEST(ComparePicks, NamesWithoutTheWordsThatAllBeginWith) {
  Compare compare;
  const auto named = [&](const char* id, const char* name) {
    WatchedRun run = a_run(id, 0.9);
    Snapshot s = *run.view->snapshot;
    s.name = name;
    run.view->take(std::make_shared<const Snapshot>(s), {});
    add_run(compare, std::move(run));
  };
  named("r-1", "fashion-mnist | CoMERA late 0.2 | 1");
  EXPECT_EQ(label_of(compare, *compare.runs[0]), "fashion-mnist | CoMERA late 0.2 | 1") << "alone";
  named("r-2", "fashion-mnist | CoMERA late 0.5 | 1");
  EXPECT_EQ(label_of(compare, *compare.runs[0]), "0.2 | 1");
  named("r-3", "fashion-mnist | dense");
  EXPECT_EQ(label_of(compare, *compare.runs[0]), "CoMERA late 0.2 | 1");
  named("r-4", "fashion-mnist | dense");
  EXPECT_EQ(label_of(compare, *compare.runs[2]), "dense (r-3)");
  EXPECT_EQ(label_of(compare, *compare.runs[3]), "dense (r-4)");
}

TEST(CompareAxes, StepsSamplesTimeAndEpochs) {
  Compare compare;
  add_run(compare, a_run("r-a", 0.9));
  const ComparedRun& run = *compare.runs[0];
  EXPECT_EQ(axis_of(run, XAxis::step).at(250), 250);
  EXPECT_EQ(axis_of(run, XAxis::samples).at(250), 4000);
  EXPECT_EQ(axis_of(run, XAxis::samples).step(4000), 250);
  EXPECT_NEAR(axis_of(run, XAxis::time).at(250), 3.0, 1e-9) << "10 and 14 ms in turn";
  EXPECT_NEAR(axis_of(run, XAxis::time).step(3.0), 250, 1e-6);
  EXPECT_NEAR(axis_of(run, XAxis::epoch).at(250), 1.25, 1e-12);
  add_run(compare, a_run("r-b", 0.9, {.step_times = true, .config = true}));
  EXPECT_NE(no_axis(*compare.runs[1], XAxis::time), nullptr);
  EXPECT_NE(no_axis(*compare.runs[1], XAxis::samples), nullptr);
  EXPECT_EQ(no_axis(*compare.runs[1], XAxis::epoch), nullptr);
  EXPECT_EQ(no_axis(*compare.runs[1], XAxis::step), nullptr);
}

TEST(CompareAxes, TheCursorStaysAtItsStepWhenTheAxisChanges) {
  Compare compare;
  add_run(compare, a_run("r-a", 0.9));
  move_cursor(compare, 250);
  set_axis(compare, XAxis::time);
  EXPECT_NEAR(compare.cursor, 3.0, 1e-9);
  set_axis(compare, XAxis::samples);
  EXPECT_NEAR(compare.cursor, 4000, 1e-6);
  move_cursor(compare, 1e9);
  EXPECT_EQ(compare.cursor, -1) << "beyond the end";
}

TEST(CompareResults, DirectionDecidesWhatIsBetter) {
  EXPECT_EQ(delta_of(quantity("accuracy"), 0.91, 0.90).verdict, Delta::better);
  EXPECT_EQ(delta_of(quantity("accuracy"), 0.89, 0.90).verdict, Delta::worse);
  EXPECT_EQ(delta_of(quantity("val_loss"), 0.3, 0.4).verdict, Delta::better);
  EXPECT_EQ(delta_of(quantity("peak"), 3e6, 2e6).verdict, Delta::worse);
  EXPECT_EQ(delta_of(quantity("compression"), 9, 3).verdict, Delta::better);
  EXPECT_EQ(delta_of(quantity("steps"), 9, 3).verdict, Delta::different);
  EXPECT_EQ(delta_of(quantity("val_loss"), 0.3, 0.3).verdict, Delta::same);
  EXPECT_EQ(delta_of(quantity("val_loss"), NAN, 0.3).verdict, Delta::unknown);
  EXPECT_EQ(delta_of(quantity("accuracy"), 0.91, 0.90).text, "+1 points");
  EXPECT_EQ(delta_of(quantity("size"), 1.5e6, 2e6).text, "-25.0 %");
}

TEST(CompareResults, FollowTheCursor) {
  Compare compare;
  add_run(compare, a_run("r-a", 0.9));
  ComparedRun& run = *compare.runs[0];
  EXPECT_NEAR(value_of(run, "accuracy"), 0.9, 1e-12);
  double last = 0;
  for (int64_t step = 501; step <= 600; ++step) last += 2 / (1 + static_cast<double>(step) / 50) / 100;
  EXPECT_NEAR(value_of(run, "train_loss"), last, 1e-12);
  Snapshot past = *run.view->snapshot;
  past.step = 250;
  compare.cursor = 250;
  WatchedRun answer;
  answer.run = "r-a";
  answer.step = 250;
  answer.past = std::make_shared<const Snapshot>(past);
  take_watched(compare, answer);
  EXPECT_NEAR(value_of(run, "accuracy"), 0.9 * 200 / 600, 1e-12);
  EXPECT_NEAR(value_of(run, "best_accuracy"), 0.9 * 200 / 600, 1e-12);
  move_cursor(compare, -1);
  take_watched(compare, answer);  // comes late
  EXPECT_NEAR(value_of(run, "accuracy"), 0.9, 1e-12);
}

TEST(CompareResults, WhatIsNotRecordedIsNotZero) {
  Compare compare;
  add_run(compare, a_run("r-a", 0.9, {.accuracy = true, .memory = true}));
  EXPECT_TRUE(std::isnan(value_of(*compare.runs[0], "accuracy")));
  EXPECT_TRUE(std::isnan(value_of(*compare.runs[0], "best_val_loss")));
  EXPECT_TRUE(std::isnan(value_of(*compare.runs[0], "peak")));
  EXPECT_TRUE(pareto_points(*compare.runs[0], {}).empty());
}

TEST(CompareSettings, ListsWhatDiffersAndWhatEditsDid) {
  Compare compare;
  add_run(compare, a_run("r-a", 0.9));
  add_run(compare, a_run("r-b", 0.7));
  WatchedRun third = a_run("r-c", 0.9);
  third.config.emplace_back("new.setting", "true");
  third.view->edits.push_back({31, "train.batch", "32"});
  add_run(compare, std::move(third));
  std::map<std::string, SettingRow> rows;
  for (const SettingRow& row : settings_of(compare.runs)) rows[row.path] = row;
  EXPECT_TRUE(rows.at("train.seed").same);
  EXPECT_FALSE(rows.at("method.comera.target").same);
  EXPECT_EQ(rows.at("method.comera.target").values, (std::vector<std::string>{"0.5", "0.2", "0.5"}));
  EXPECT_EQ(rows.at("train.batch").values[2], "16 -> 32 at 31");
  EXPECT_FALSE(rows.at("train.batch").same);
  EXPECT_EQ(rows.at("new.setting").values, (std::vector<std::string>{"", "", "true"}));
}

TEST(ComparePareto, SizesOfThenAndAFrontThatNothingBeats) {
  Compare compare;
  add_run(compare, a_run("r-a", 0.9));
  const ComparedRun& run = *compare.runs[0];
  const auto points = pareto_points(run, {});
  ASSERT_EQ(points.size(), 6u);
  // 4 bytes an entry; 200,000 of the model are no tensor train.
  EXPECT_NEAR(points[0].cost, (200'000 + 1e6 - 100 * 300) * 4 / (1 << 20), 1e-9);
  EXPECT_FALSE(points[0].checkpoint);
  EXPECT_TRUE(points[2].checkpoint);
  const auto front = pareto_front({{1, 2.0, 0.5}, {2, 1.0, 0.4}, {3, 3.0, 0.45}, {4, 1.0, 0.3}, {5, 4.0, 0.6}});
  ASSERT_EQ(front.size(), 3u);
  EXPECT_EQ(front[0].step, 2);
  EXPECT_EQ(front[1].step, 1);
  EXPECT_EQ(front[2].step, 5);
  // A dense model has no entries that shrink.
  add_run(compare, a_run("r-d", 0.9, {.ranks = true}));
  for (const ParetoPoint& point : pareto_points(*compare.runs[1], {})) EXPECT_NEAR(point.cost, 1e6 * 4 / (1 << 20), 1e-9);
}

TEST(ComparePareto, TheCostIsMemoryOrTimeAndTheScoreOfLanguageModelsTheirLoss) {
  Compare compare;
  add_run(compare, a_run("r-a", 0.9));
  add_run(compare, a_run("r-b", 0.9, {.memory = true, .step_times = true}));
  const ComparedRun& run = *compare.runs[0];
  const double peak = static_cast<double>(run.snapshot().memory_peak.total()) / (1 << 20);
  EXPECT_GT(peak, 0);
  const auto points = [&](const ComparedRun& of, ParetoCost cost) {
    compare.pareto_cost = cost;
    return pareto_points(of, pareto_axes(compare));
  };
  ASSERT_EQ(points(run, ParetoCost::peak).size(), 6u);
  EXPECT_EQ(points(run, ParetoCost::peak)[0].cost, peak);
  EXPECT_EQ(points(run, ParetoCost::step)[5].cost, 12);
  EXPECT_NEAR(points(run, ParetoCost::time)[0].cost, 1.2, 1e-9) << "100 steps of 12 ms";
  EXPECT_NEAR(points(run, ParetoCost::time)[5].cost, 7.2, 1e-9);
  EXPECT_TRUE(points(*compare.runs[1], ParetoCost::peak).empty()) << "not recorded";
  EXPECT_TRUE(points(*compare.runs[1], ParetoCost::time).empty());
  EXPECT_FALSE(pareto_axes(compare).loss);

  Compare languages;
  WatchedRun language = a_run("r-l", 0.9, {.accuracy = true});
  Records records;
  for (const int64_t step : {200, 400})
    records.add(step, {{"val_loss", 5.0 - static_cast<double>(step) / 200}, {"val_accuracy", 0.1}, {"val_perplexity", 20}});
  language.view->take(language.view->snapshot, records);
  add_run(languages, std::move(language));
  const ParetoAxes axes = pareto_axes(languages);
  EXPECT_TRUE(axes.loss);
  const auto losses = pareto_points(*languages.runs[0], axes);
  ASSERT_EQ(losses.size(), 2u);
  EXPECT_EQ(axes.shown(losses[0].score), 4);
  EXPECT_EQ(axes.score_text(losses[1].score), "3");
  EXPECT_EQ(pareto_front(losses).back().step, 400) << "less is better";
  const Chart chart = drawn(pareto_charts(languages))[0];
  EXPECT_EQ(chart.title, "Loss against whole model");
  const std::string csv = chart.csv();
  EXPECT_TRUE(csv.starts_with("run,step,whole model (MiB),loss,checkpoint\n")) << csv;
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 3) << csv;
}

TEST(CompareParallel, BrushesFadeWhatLiesOutside) {
  Compare compare;
  for (int i = 0; i < 4; ++i) add_run(compare, a_run("r-" + std::to_string(i), 0.6 + 0.1 * i));
  const auto axes = parallel_axes(compare);
  const auto axis = std::find_if(axes.begin(), axes.end(), [](const ParallelAxis& a) { return a.id == "best_accuracy"; });
  ASSERT_NE(axis, axes.end());
  EXPECT_EQ(axis->places.front(), 0);
  EXPECT_EQ(axis->places.back(), 1);
  EXPECT_NEAR(axis->places[1], 1 / 3.0, 1e-6);
  EXPECT_TRUE(std::any_of(axes.begin(), axes.end(), [](const ParallelAxis& a) { return a.id == "method.comera.target" && a.setting; }));
  EXPECT_TRUE(std::none_of(axes.begin(), axes.end(), [](const ParallelAxis& a) { return a.id == "train.seed"; })) << "it is the same";
  compare.brushes["best_accuracy"] = {0.5f, 1};
  fade_unbrushed(compare);
  EXPECT_TRUE(compare.runs[0]->faded && compare.runs[1]->faded);
  EXPECT_FALSE(compare.runs[2]->faded || compare.runs[3]->faded);
  compare.brushes.clear();
  fade_unbrushed(compare);
  EXPECT_FALSE(compare.runs[0]->faded);
}

// What opens can be compared as well.
TEST(Compare, ARunWithSettingsThatCannotBeReadIsRead) {
  const test::Folder folder;
  for (const char* config : {R"({"train": {"batch": "many"}})", "{no JSON"}) {
    RunStart start = a_start("of another time");
    start.config = config;
    std::string id;
    {
      RunWriter writer(folder.store(), start, test::quick());
      id = writer.run_id();
      for (int64_t step = 1; step <= 20; ++step) writer.metrics(step, {{"train_loss", 1.0}});
      writer.finish("stopped");
    }
    RunWatch watch;
    watch.open(folder.store());
    WatchedRun answer = watch.read({.run = id});
    EXPECT_EQ(answer.problem, "");
    ASSERT_TRUE(answer.view);
    EXPECT_EQ(answer.view->metric("train_loss").size(), 20u);
    EXPECT_NE(answer.view->config_problem, "");
    EXPECT_EQ(answer.config.size(), config[1] == '"' ? 1u : 0u) << "as far as there is a text";
    Compare compare;
    add_run(compare, std::move(answer));
    EXPECT_NE(no_axis(*compare.runs[0], XAxis::samples), nullptr) << "its batch is not known";
    EXPECT_EQ(no_axis(*compare.runs[0], XAxis::step), nullptr);
  }
}

// ---- Every tab in every state ---------------------------------------------------------------------------------

enum class State { none, one, two, eight, missing, layers, reading, cursor };
constexpr const char* kStates[] = {"none", "one", "two", "eight", "missing", "layers", "reading", "cursor"};

void fill(Compare& compare, State state) {
  if (state == State::none) return;
  add_run(compare, a_run("r-a", 0.9));
  if (state == State::one) return;
  if (state == State::missing) {
    add_run(compare, a_run("r-b", 0.8, {.accuracy = true, .memory = true, .step_times = true}));
    add_run(compare, a_run("r-c", 0.8, {true, true, true, true, true}));
    WatchedRun empty;  // nothing was stored of it but its beginning
    empty.run = "r-e";
    empty.view = std::make_shared<RunView>();
    Snapshot s;
    s.run = "r-e";
    empty.view->take(std::make_shared<const Snapshot>(s), {});
    add_run(compare, std::move(empty));
    return;
  }
  if (state == State::layers) {
    WatchedRun other = a_run("r-b", 0.8, {}, 38);
    Snapshot s = *other.view->snapshot;
    s.ranks[1].live = {5};
    s.ranks[2].live.clear();
    s.ranks[0].name = "a layer that no other run has, with a long name";
    other.view->take(std::make_shared<const Snapshot>(s), {});
    add_run(compare, std::move(other));
    return;
  }
  if (state == State::reading) {
    pick_run(compare, "r-b");
    WatchedRun broken;
    broken.run = "r-c";
    broken.problem = "no run 'r-c': the nearest is r-b, and the store has 80 more of them that are not named here";
    add_run(compare, std::move(broken));
    return;
  }
  const int count = state == State::eight ? 8 : 2;
  for (int i = 1; i < count; ++i) add_run(compare, a_run("r-" + std::to_string(i), 0.9 - 0.05 * i));
  if (state != State::cursor) return;
  move_cursor(compare, 250);
  for (const auto& run : compare.runs) {
    Snapshot past = *run->view->snapshot;
    past.step = 250;
    run->past = std::make_shared<const Snapshot>(past);
  }
}

struct CompareSize {
  const char* name;
  ImVec2 pixels;
  float scale;
};

class CompareStates : public testing::TestWithParam<std::tuple<State, CompareSize, ThemeKind>> {};

TEST_P(CompareStates, EveryTabDrawsInside) {
  const auto [state, size, kind] = GetParam();
  Stage stage(size.pixels, size.scale, kind);
  Compare& compare = stage.ui.compare;
  fill(compare, state);
  stage.ui.layout = "compare";
  for (const CompareTab& tab : compare_tabs()) {
    compare.tab = tab.id;
    stage.frames();
    EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, 300) << tab.id;
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << tab.id;
    if (compare.runs.size() >= 2) {
      EXPECT_TRUE(compare.tab.empty()) << tab.id << " was not brought to the front";
      for (int axis = 0; axis < kXAxes && tab.id == std::string("curves"); ++axis) {
        set_axis(compare, static_cast<XAxis>(axis));
        stage.frames(2);
        EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << title_of(compare.axis);
      }
    }
  }
}

std::string name_of_compare_case(const testing::TestParamInfo<CompareStates::ParamType>& info) {
  const auto& [state, size, kind] = info.param;
  return std::string(kStates[static_cast<int>(state)]) + "_" + size.name + (kind == ThemeKind::dark ? "_dark" : "_light");
}

INSTANTIATE_TEST_SUITE_P(All, CompareStates,
                         testing::Combine(testing::Values(State::none, State::one, State::two, State::eight, State::missing, State::layers,
                                                          State::reading, State::cursor),
                                          testing::Values(CompareSize{"960x600", {960, 600}, 1}, CompareSize{"1600x900", {1600, 900}, 1},
                                                          CompareSize{"1920x1200_at_2", {1920, 1200}, 2},
                                                          CompareSize{"960x600_at_2", {960, 600}, 2}),
                                          testing::Values(ThemeKind::dark, ThemeKind::light)),
                         name_of_compare_case);

// The windows of a frame; they are named by ids, so that names, values and the baseline do not lose what the user did.
std::set<std::string> windows() {
  std::set<std::string> names;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive) names.insert(window->Name);
  return names;
}

TEST(CompareFrame, IdsAreStable) {
  Stage stage;
  Compare& compare = stage.ui.compare;
  for (int i = 0; i < 3; ++i) add_run(compare, a_run("r-" + std::to_string(i), 0.9 - 0.1 * i));
  stage.ui.layout = "compare";
  for (const CompareTab& tab : compare_tabs()) {
    compare.tab = tab.id;
    stage.frames();
    const auto before = windows();
    set_baseline(compare, "r-2");
    for (const auto& run : compare.runs) {
      Snapshot renamed = *run->view->snapshot;
      renamed.name = "renamed " + run->id();
      run->view->take(std::make_shared<const Snapshot>(renamed), {});
    }
    stage.frames();
    EXPECT_EQ(windows(), before) << tab.id;
    set_baseline(compare, "r-0");
  }
}

TEST(CompareFrame, AClickInTheListTicksARun) {
  Stage stage;
  auto list = std::make_shared<RunList>();
  list->loaded = true;
  for (int i = 0; i < 3; ++i) {
    RunRow row;
    row.id = "r-" + std::to_string(i);
    row.status = "finished";
    list->rows.push_back(row);
  }
  stage.ui.runs = list;
  stage.ui.layout = "start";
  stage.frames();
  const ImGuiWindow* rows = nullptr;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && std::string(window->Name).find("/runs_") != std::string::npos) rows = window;
  ASSERT_NE(rows, nullptr);
  ImGuiIO& io = ImGui::GetIO();
  const auto click = [&](float y) {
    io.AddMousePosEvent(rows->InnerRect.Min.x + em(1), y);
    stage.frames(2);
    io.AddMouseButtonEvent(0, true);
    stage.frames(2);
    io.AddMouseButtonEvent(0, false);
    stage.frames(2);
  };
  // Down the column of ticks: each click picks the row under it, or takes it back.
  const float top = rows->InnerRect.Min.y;
  for (float y = top + em(3); stage.ui.compare.runs.empty() && y < top + em(6); y += em(0.5f)) click(y);
  ASSERT_EQ(stage.ui.compare.runs.size(), 1u);
  EXPECT_TRUE(stage.ui.selected_run.empty()) << "a tick does not choose the row";
  click(io.MousePos.y);
  EXPECT_TRUE(stage.ui.compare.runs.empty());
}

TEST(CompareFrame, OpensByShortcut) {
  Stage stage;
  stage.frames();
  ImGuiIO& io = ImGui::GetIO();
  io.AddKeyEvent(ImGuiMod_Ctrl, true);
  io.AddKeyEvent(ImGuiKey_3, true);
  stage.frames(2);
  EXPECT_EQ(stage.ui.layout, "compare");
}

// ---- Out of a store -------------------------------------------------------------------------------------------

class CompareStore : public StoreStage {
 protected:
  Compare& compare() { return ui().compare; }

  std::string train(const std::vector<std::string>& sets) {
    SessionStart start;
    std::vector<std::string> all = {"train.threads=1", "train.steps=30", "train.eval_every=10", "train.max_steps_per_s=0",
                                    "data.validation_rows=64"};
    all.insert(all.end(), sets.begin(), sets.end());
    start.config = load_config("demo", all);
    start.store = store_;
    Session session(std::move(start));
    EXPECT_TRUE(session.wait(120));
    session.join();
    return session.latest()->run;
  }

  void show(const std::vector<std::string>& runs) {
    stage_->ui.store = std::make_unique<StoreClient>(store_, [] {});
    stage_->ui.layout = "compare";
    for (const std::string& run : runs) pick_run(compare(), run);
    ASSERT_TRUE(until([&] { return all_read(compare()); }));
  }
};

TEST_F(CompareStore, ValuesAreThoseOfTheStore) {
  const std::string a = train({"method.comera.late_after=10", "method.comera.target=0.3"}),
                    b = train({"method.weights=dense", "train.lr=1e-3"});
  show({a, b.substr(0, b.size() - 1)});  // the beginning of an id is enough
  const RunReader reader(store_);
  for (const auto& run : compare().runs) {
    ASSERT_TRUE(run->read()) << run->problem;
    const RunRow row = reader.run(run->id());
    const Series accuracy = reader.metric(run->id(), "val_accuracy"), step_ms = reader.metric(run->id(), "step_ms");
    EXPECT_DOUBLE_EQ(value_of(*run, "accuracy"), row.summary.val_accuracy);
    EXPECT_DOUBLE_EQ(value_of(*run, "best_accuracy"), *std::max_element(accuracy.values.begin(), accuracy.values.end()));
    EXPECT_DOUBLE_EQ(value_of(*run, "val_loss"), row.summary.val_loss);
    EXPECT_DOUBLE_EQ(value_of(*run, "size"), row.summary.bytes);
    EXPECT_NEAR(value_of(*run, "compression"), row.summary.compression, 1e-9);
    EXPECT_DOUBLE_EQ(value_of(*run, "peak"), row.summary.peak_bytes);
    EXPECT_EQ(value_of(*run, "steps"), 30);
    double time = 0;
    for (const double ms : step_ms.values) time += ms / 1000;
    EXPECT_NEAR(value_of(*run, "time"), time, 1e-9);
    EXPECT_FALSE(run->checkpoints.empty());
  }
  EXPECT_EQ(compare().runs[1]->id(), b);

  // The differences are those of `comera runs diff`.
  std::set<std::string> want, got;
  for (const ConfigDifference& row : diff_configs(reader.config(a), reader.config(b))) want.insert(row.path + ": " + row.a + " / " + row.b);
  for (const SettingRow& row : settings_of(compare().runs))
    if (!row.same) got.insert(row.path + ": " + row.values[0] + " / " + row.values[1]);
  EXPECT_EQ(got, want);
  EXPECT_TRUE(got.contains(R"(method.weights: "tt" / "dense")"));

  // The cursor moves both, and lets them go again.
  move_cursor(compare(), 15);
  ASSERT_TRUE(until([&] { return all_read(compare()); }));
  for (const auto& run : compare().runs) {
    ASSERT_TRUE(run->past);
    EXPECT_EQ(run->past->step, 15);
    EXPECT_DOUBLE_EQ(value_of(*run, "accuracy"), reader.metric(run->id(), "val_accuracy").values[0]) << "of step 10";
  }
  move_cursor(compare(), -1);
  stage_->frames();
  EXPECT_FALSE(compare().runs[0]->past);
}

TEST_F(CompareStore, ARunThatIsNotThereIsNamed) {
  const std::string a = train({});
  show({a, "no-such-run"});
  EXPECT_TRUE(compare().runs[0]->read());
  EXPECT_FALSE(compare().runs[1]->read());
  EXPECT_FALSE(compare().runs[1]->problem.empty());
}

TEST_F(CompareStore, ATickTakenBackAndSetAgainIsReadAgain) {
  const std::string a = train({}), b = train({"train.seed=2"});
  show({a, b});
  unpick_run(compare(), b);
  pick_run(compare(), b);
  ASSERT_TRUE(until([&] { return all_read(compare()); }));
  EXPECT_TRUE(compare().find(b)->read());
}

TEST_F(CompareStore, ARunThatTrainsIsRefreshed) {
  const std::string a = train({});
  RunWriter writer(store_, a_start("still training"));
  const auto write = [&](int64_t from, int64_t to) {
    for (int64_t step = from; step <= to; ++step)
      writer.metrics(step, {{"train_loss", 1.0 / static_cast<double>(step)}, {"entries", 1000}, {"step_ms", 100}});
    ASSERT_TRUE(writer.flush());
  };
  write(1, 10);
  show({a, writer.run_id()});
  const ComparedRun& run = *compare().runs[1];
  EXPECT_EQ(run.last_step(), 10);
  write(11, 25);
  EXPECT_TRUE(until([&] { return run.last_step() == 25; }));
  EXPECT_EQ(run.view->metric("train_loss").size(), 25u);
  EXPECT_EQ(run.view->trained_ms.curve().last(), 2500);
  writer.finish("finished", "");
  ASSERT_TRUE(writer.flush());
  EXPECT_TRUE(until([&] { return run.view->ended(); }));
}

TEST_F(Clicked, AnEmptyComparisonOffersTheParentOfAFork) {
  stage_.begin_run(Phase::running);
  show_layout(ui(), "compare");
  EXPECT_TRUE(sees("Show runs"));
  EXPECT_FALSE(find("compare-parent")) << "the run is not a fork";
  stage_.script->records.events.push_back({0, 0, "start", 0, R"({"parent": "r-older", "fork_step": 20})"});
  click("compare-parent");
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  ASSERT_EQ(ui().compare.runs.size(), 2u);
  EXPECT_EQ(ui().compare.baseline_run()->wanted, "r-older");
}

}  // namespace
}  // namespace comera::studio
