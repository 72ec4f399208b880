// Sweeps in the window: their points are those of `comera sweep` with the saved file, their runs are found by either, and none is trained
// twice.
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/dueling.h"
#include "app/studio/sweeping.h"
#include "core/config/named_methods.h"
#include "core/session/session.h"
#include "core/train/forecast.h"
#include "core/train/method_plans.h"
#include "tests/studio/form_window.h"

namespace comera::studio {
namespace {

using Texts = std::vector<std::string>;

TEST(SweepValues, AreReadAsTheSettingHoldsThem) {
  const auto values = [](const char* path, const char* text) {
    const ValueList list = read_values(path, text);
    EXPECT_EQ(list.problem, "") << path << ": " << text;
    return list.values;
  };
  EXPECT_EQ(values("train.lr", "1e-3, 0.003"), (Texts{"0.001", "0.003"}));
  EXPECT_EQ(values("train.batch", " 8,16 , "), (Texts{"8", "16"})) << "a comma at the end waits for the next value";
  EXPECT_EQ(values("data.pack", "true, false"), (Texts{"true", "false"}));
  EXPECT_EQ(values("train.schedule", "linear, \"cosine\""), (Texts{"\"linear\"", "\"cosine\""}));
  EXPECT_EQ(values("model.mlp.hidden", "[96, 64], [32]"), (Texts{"[96,64]", "[32]"}));
  EXPECT_EQ(values("method", "comera, comera+adam8bit"), (Texts{"\"comera\"", "\"comera+adam8bit\""}));
}

TEST(SweepValues, AreRefusedWithAReason) {
  const auto problem = [](const char* path, const char* text) { return read_values(path, text).problem; };
  const auto tells = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
  EXPECT_EQ(problem("train.lr", "1e-3, 0.001"), "'0.001': is given twice");
  EXPECT_EQ(problem("train.lr", "  "), "Give values, separated by commas");
  EXPECT_EQ(problem("train.lr", "1, , 2"), "A value is missing between two commas");
  EXPECT_TRUE(tells(problem("train.lr", "1e-3, fast"), "'fast': ")) << problem("train.lr", "1e-3, fast");
  EXPECT_TRUE(tells(problem("train.batch", "0"), "'0': must be ")) << problem("train.batch", "0");
  EXPECT_NE(problem("train.batch", "1.5"), "");
  EXPECT_TRUE(tells(problem("train.schedule", "cosin"), "'cosin': ")) << problem("train.schedule", "cosin");
  EXPECT_TRUE(tells(problem("method", "adamv"), "did you mean 'adamw'?")) << problem("method", "adamv");
  EXPECT_TRUE(may_vary("train.lr"));
  EXPECT_TRUE(may_vary("method"));
  for (const char* path : {"name", "train.seed", "train.no_such"}) EXPECT_FALSE(may_vary(path)) << path;
}

class SweepWindow : public FormWindow {
 protected:
  SweepWindow() {
    open(3);
    ui().form.sweep.shown = true;
    settle();
  }
  void open(int64_t steps) {
    FormWindow::open(steps);
    ui().form.config = with_method(ui().form.config, "adamw");  // the modes of the demo do not fit the small layers
    form_changed(ui(), "");
    settle();
  }
  FormSweep& sweep() { return ui().form.sweep; }
  void vary(const std::string& path, const std::string& values) {
    set_varied(ui().form, path, true);
    for (VariedSetting& varied : sweep().varied)
      if (varied.path == path) set_values(sweep(), varied, values);
  }
  void seeds(const std::string& values) { set_values(sweep(), sweep().seeds, values); }
  // Two learning rates under two seeds.
  void vary_rates() {
    vary("train.lr", "1e-3, 3e-3");
    seeds("1, 2");
    settle();
  }
  // As `comera sweep` plans the saved file.
  std::vector<SweepPoint> points_of_file() {
    const Sweep read = read_sweep(parse_json(sweep_file(ui().form), "file"), "file", "other");
    EXPECT_EQ(read.name, sweep().name);
    return plan_sweep(read, [&](const Texts& sets) { return load_config(read.base, sets); });
  }
  void expect_points_of_file() {
    const std::vector<SweepPoint> points = points_of_file();
    ASSERT_TRUE(sweep().plan);
    ASSERT_EQ(sweep().plan->points.size(), points.size());
    for (size_t i = 0; i < points.size(); ++i) {
      const SweepPoint& mine = sweep().plan->points[i];
      EXPECT_EQ(mine.settings, points[i].settings);
      EXPECT_EQ(mine.refusal, points[i].refusal);
      ASSERT_EQ(mine.runs.size(), points[i].runs.size());
      for (size_t run = 0; run < mine.runs.size(); ++run) EXPECT_EQ(text(mine.runs[run]), text(points[i].runs[run]));
    }
  }
  bool says(const std::string& part) {
    return std::any_of(items_.begin(), items_.end(),
                       [&](const NamedItem& item) { return item.name.starts_with("says:") && item.name.find(part) != std::string::npos; });
  }
  void type(const std::string& box, const std::string& values) {
    click(box);
    stage_->press(ImGuiMod_Ctrl | ImGuiKey_A);
    stage_->press(ImGuiKey_Delete);
    stage_->type(values);
    stage_->press(ImGuiKey_Enter);
    settle();
  }
};

TEST_F(SweepWindow, PlansThePointsOfItsFile) {
  set_sweep_name(sweep(), "rates");
  vary("train.lr", "1e-3, 3e-3");
  vary("train.micro_batches", "1, 2");
  seeds("1, 2, 3");
  settle();
  ASSERT_EQ(sweep().plan->points.size(), 4u);
  EXPECT_EQ(sweep().plan->runs(), 12u);
  expect_points_of_file();
  // What does not vary is what the form shows.
  RunConfig run = sweep().plan->points[3].runs[2];
  EXPECT_EQ(run.train.lr, 3e-3);
  EXPECT_EQ(run.train.micro_batches, 2);
  EXPECT_EQ(run.train.seed, 3);
  const RunConfig& form = ui().form.config;
  run.name = form.name;
  run.train.lr = form.train.lr;
  run.train.micro_batches = form.train.micro_batches;
  run.train.seed = form.train.seed;
  EXPECT_EQ(text(run), text(form));
  // A change of the form is one of every point.
  ui().form.config.train.batch = 32;
  form_changed(ui(), "train.batch");
  EXPECT_NE(no_sweep(ui()), "") << "the plan is of other settings";
  settle();
  EXPECT_EQ(sweep().plan->points[0].runs[0].train.batch, 32);
  expect_points_of_file();
}

TEST_F(SweepWindow, AMethodSetsItsPartsItself) {
  ui().form.config = with_method(ui().form.config, "galore");
  form_changed(ui(), "");
  vary("method", "adamw, adam8bit, galore");
  settle();
  expect_points_of_file();
  ASSERT_EQ(sweep().plan->points.size(), 3u);
  const std::vector<SweepPoint>& points = sweep().plan->points;
  const char* methods[] = {"adamw", "adam8bit", "galore"};
  for (size_t i = 0; i < points.size(); ++i) {
    ASSERT_FALSE(points[i].runs.empty()) << points[i].refusal;
    EXPECT_EQ(name_of_method(points[i].runs[0].method), methods[i]);
  }
  for (const SweepPoint& point : points)
    EXPECT_EQ(point.runs[0].method.adam.eps, point.runs[0].method.chosen().eps) << "of its own optimizer";
}

TEST_F(SweepWindow, IsFilledInWithTheMouse) {
  EXPECT_TRUE(says("Tick the settings to vary"));
  ui().form.search = "train.";  // all in sight
  EXPECT_FALSE(find("vary:train.seed")) << "seeds have a list of their own";
  click("vary:train.batch");
  settle();
  ASSERT_TRUE(sweep().find("train.batch"));
  EXPECT_EQ(sweep().find("train.batch")->text, "16") << "the value of the form to begin with";
  type("values:train.batch", "16, 15, 32");
  type("values:seeds", "4, 5");
  click("vary:train.micro_batches");
  type("values:train.micro_batches", "1, 2");
  ASSERT_EQ(sweep().plan->points.size(), 6u);
  EXPECT_TRUE(says("10 runs of 5 points"));
  EXPECT_TRUE(says("Left out: batch=15 micro_batches=2: ")) << "a batch of 15 has no halves";
  EXPECT_FALSE(says("Left out: 2 points")) << "one a reason";
  std::pair<int64_t, std::string> most;
  for (const SweepPoint& point : points_of_file()) {
    if (point.runs.empty()) continue;
    const std::string values = comera::text_of(point.settings, {"train.batch", "train.micro_batches"});
    most = std::max(most, std::make_pair(make_forecast(point.runs[0]).memory.total(), values));
  }
  EXPECT_TRUE(says("Largest planned peak " + mebibytes(static_cast<double>(most.first)) + " (" + most.second + ")"));
  EXPECT_EQ(stage_->overflowing(), Texts{});
  click("vary:train.batch");
  settle();
  EXPECT_FALSE(sweep().find("train.batch"));
  EXPECT_TRUE(says("4 runs of 2 points"));
  click("vary:train.batch");
  settle();
  EXPECT_EQ(sweep().find("train.batch")->text, "16, 15, 32") << "nothing typed is lost";
}

// A line that appeared below a box while the mouse is pressed would put another one under it.
TEST_F(SweepWindow, NothingMovesUnderAClick) {
  vary("train.lr", "1e-3");
  settle();
  click("values:train.lr");
  stage_->type(", fast");
  frame();
  EXPECT_FALSE(says("'fast': ")) << "it may become more";
  click("values:seeds");
  EXPECT_TRUE(says("'fast': "));
  stage_->type("7");
  frame();
  EXPECT_EQ(sweep().seeds.text, "7");
}

TEST_F(SweepWindow, SaysWhatIsWrongAtTheBox) {
  EXPECT_NE(no_sweep(ui()), "") << "nothing varies";
  ui().form.search = "train.";  // in sight
  click("vary:train.lr");
  type("values:train.lr", "1e-3, fast");
  EXPECT_TRUE(says("'fast': "));
  EXPECT_NE(no_sweep(ui()).find("train.lr: 'fast'"), std::string::npos) << no_sweep(ui());
  EXPECT_EQ(sweep().find("train.lr")->text, "1e-3, fast");
  start_sweep(ui());
  EXPECT_FALSE(ui().queue);
  type("values:train.lr", "1e-3, 2e-3");
  EXPECT_FALSE(says("'fast': "));
  EXPECT_EQ(no_sweep(ui()), "");
  type("values:seeds", "1, -1");
  EXPECT_NE(no_sweep(ui()).find("Seeds: '-1'"), std::string::npos) << no_sweep(ui());
  type("values:seeds", "");
  EXPECT_EQ(no_sweep(ui()), "") << "the seed of the form";
  type("sweep-name", "a b");
  EXPECT_TRUE(says("name must be of letters"));
  EXPECT_NE(no_sweep(ui()), "");
  type("sweep-name", "rates");
  std::string many;
  for (size_t i = 1; i <= kMostSweepRuns + 1; ++i) many += std::to_string(i) + ",";
  seeds(many);
  frame();
  EXPECT_NE(no_sweep(ui()).find("more than 1000 runs"), std::string::npos) << no_sweep(ui());
}

TEST_F(SweepWindow, SavesTheFileThatTheCommandLineReads) {
  set_sweep_name(sweep(), "rates");
  vary_rates();
  ui().exports.folder = (folder_ / "exports").string();
  const std::string file = sweep_file(ui().form);
  for (const char* name : {"rates.json", "rates-2.json"}) {  // an existing file is kept
    perform(ui(), "sweep.save");
    ASSERT_TRUE(until([&] { return !ui().exports.busy(); }));
    std::ifstream in(folder_ / "exports" / name);
    ASSERT_TRUE(in) << name;
    EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), file);
  }
  const Sweep read = read_sweep(read_json_file((folder_ / "exports" / "rates-2.json").string()), "file", "rates-2");
  EXPECT_EQ(read.tag(), "sweep:rates");
  EXPECT_EQ(read.seeds, (std::vector<int64_t>{1, 2}));
}

TEST_F(SweepWindow, TrainsEachRunOnceAndOpensTheComparison) {
  set_sweep_name(sweep(), "rates");
  vary_rates();
  const std::vector<SweepPoint> points = points_of_file();
  train();
  perform(ui(), "sweep.start");
  ASSERT_TRUE(ui().queue);
  ASSERT_TRUE(ends());
  const std::vector<RunRow> runs = stored();
  ASSERT_EQ(runs.size(), 4u);
  for (size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].status, "finished") << runs[i].message;
    EXPECT_EQ(runs[i].tags, (Texts{"sweep", "sweep:rates"}));
    EXPECT_EQ(runs[i].name, points[i % 2].runs[i / 2].name) << "seed by seed";
  }
  // `comera sweep` finds them.
  const Sweep read = read_sweep(parse_json(sweep_file(ui().form), "file"), "file", "");
  const SweepRuns found(RunReader(store_), read);
  for (const RunConfig* task : tasks_of(points)) {
    const SweepRun* run = found.find(*task, fingerprints());
    ASSERT_TRUE(run) << task->name;
    EXPECT_TRUE(run->is_over(0)) << task->name;
  }
  EXPECT_EQ(ui().layout, "compare");
  EXPECT_EQ(ui().compare.runs.size(), 4u);
  EXPECT_EQ(ui().compare.group_by, kBySeed);
  // Once more: nothing is left to train.
  open_form(ui());
  settle();
  EXPECT_TRUE(stage_->until([&] { return sweep().runs_over() == 4; }));  // as soon as the list of runs has the last one's end
  const LiveRun* last = ui().live.get();
  start_sweep(ui());
  ASSERT_TRUE(ends());
  EXPECT_EQ(ui().live.get(), last);
  EXPECT_EQ(stored().size(), 4u);
  EXPECT_EQ(ui().layout, "compare");
  list_sweep(ui());
  stage_->frames();
  EXPECT_EQ(ui().run_table.parsed.problem(), "");
  EXPECT_EQ(ui().run_table.rows.size(), 4u);
}

TEST_F(SweepWindow, ContinuesARunOfTheCommandLine) {
  set_sweep_name(sweep(), "rates");
  vary_rates();
  SessionStart first;
  first.config = points_of_file()[0].runs[0];
  first.store = store_;
  first.tags = {kSweepTag, "sweep:rates"};
  Session session(first);
  ASSERT_TRUE(session.wait(60));
  session.join();
  perform(ui(), "sweep.start");
  ASSERT_TRUE(until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(text(stage_->started.config), text(sweep().plan->points[1].runs[0])) << "the first one is there";
  EXPECT_EQ(stage_->started.tags, first.tags);
  EXPECT_EQ(queue_progress(*ui().queue), "2 of 4: lr=0.003 seed 1");
  EXPECT_NE(no_duel(ui()).find("A sweep is training"), std::string::npos);
}

TEST_F(SweepWindow, StopsWithACheckpointAndContinues) {
  open(100'000);
  vary_rates();
  train();
  start_sweep(ui());
  ASSERT_TRUE(until([&] { return ui().live && ui().live->view().snapshot->step > 2; }));
  perform(ui(), "sweep.stop");
  ASSERT_TRUE(ends());
  const std::vector<RunRow> runs = stored();
  ASSERT_EQ(runs.size(), 1u) << "the sweep has stopped";
  EXPECT_EQ(runs[0].status, "stopped");
  const int64_t step = runs[0].summary.step;
  open_form(ui());
  settle();
  start_sweep(ui());
  ASSERT_TRUE(until([&] { return ui().live && !ui().live->view().ended() && ui().live->view().snapshot->step > step; }));
  EXPECT_EQ(ui().live->run(), runs[0].id) << "continued";
  stop_queue(ui());
  ASSERT_TRUE(ends());
  EXPECT_EQ(stored().size(), 1u);
}

TEST_F(SweepWindow, ARunThatDivergesIsAResult) {
  vary_rates();
  start_sweep(ui());
  ASSERT_TRUE(until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(stage_->started.config.train.lr, 1e-3);
  const auto end = [&](Phase phase) {
    const std::shared_ptr<Script> ended = stage_->script;
    stage_->script = std::make_shared<Script>();  // of the next run
    ended->snapshot = std::make_shared<const Snapshot>(a_snapshot(phase, 2));
    ended->ended = true;
  };
  end(Phase::diverged);
  ASSERT_TRUE(until([&] { return stage_->started.config.train.lr == 3e-3; })) << "the next run";
  EXPECT_TRUE(ui().queue);
  end(Phase::failed);
  ASSERT_TRUE(ends()) << "a failure is none";
  EXPECT_EQ(stage_->started.config.train.seed, 1);
}

TEST_F(SweepWindow, AForkHasNone) {
  vary_rates();
  EXPECT_EQ(no_sweep(ui()), "");
  ui().form.fork = std::make_shared<const ForkOf>();
  frame();
  EXPECT_FALSE(find("sweep-name"));
  EXPECT_FALSE(find("vary:train.lr"));
  EXPECT_NE(no_sweep(ui()).find("fork"), std::string::npos);
}

TEST_F(SweepWindow, FitsIntoEveryWindow) {
  vary("train.lr", "1e-3, 3e-3");
  vary("train.micro_batches", "1, 3");
  vary("method", "comera, adamw");
  seeds("1, 2, 3");
  settle();
  struct Size {
    ImVec2 pixels;
    float scale;
  };
  for (const Size& size : {Size{{960, 600}, 1}, {{960, 600}, 3}, {{1600, 900}, 1}, {{2880, 1800}, 3}, {{3840, 2160}, 1}}) {
    stage_->resize(size.pixels, size.scale);
    stage_->frames();
    EXPECT_EQ(stage_->overflowing(), Texts{}) << size.pixels.x << " at " << size.scale;
  }
  vary("train.clip_norm", "no");
  stage_->resize({960, 600}, 3);
  stage_->frames();
  EXPECT_EQ(stage_->overflowing(), Texts{}) << "with a problem";
  set_varied(ui().form, "train.clip_norm", false);
  settle();
  start_sweep(ui());
  ASSERT_TRUE(until([&] { return ui().live != nullptr; }));
  show_layout(ui(), "new");
  stage_->frames();
  EXPECT_EQ(stage_->overflowing(), Texts{}) << "while it trains";
}

}  // namespace
}  // namespace comera::studio
