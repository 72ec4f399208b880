// What the window keeps between two starts of how it is looked at and of what was open; what a file that somebody edited
// leaves of that; and the ways back to what ships.
#include "app/studio/kept_views.h"

#include <array>
#include <nlohmann/json.hpp>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/parts/export.h"
#include "app/studio/preferences.h"
#include "app/studio/shown_run/timeline.h"
#include "core/base/json.h"
#include "core/base/paths.h"
#include "core/store/run_admin.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

void lock(PlotLook& look, double low, double high) {
  look.locked = true;
  look.low = low;
  look.high = high;
}

// Everything as it is not at first.
void look_otherwise(UiState& ui) {
  ui.plots.smoothing = 0.5f;
  ui.plots.log_scale = true;
  lock(ui.plots.looks["loss"], -1.5, 2.25);
  ui.metrics.alone = "size";
  ui.timeline.speed = 8;
  ui.timeline.loop = Loop::all;
  ui.ranks_view = RanksView::drops;
  ui.rank_order = RankOrder::drop;
  ui.ranks_as_share = true;
  ui.memory_view = 3;
  ui.memory_counts = 2;
  ui.memory_scope = 0;
  ui.target_unit = 2;
  ui.target_beyond = true;
  ui.form.methods.shown = true;
  ui.log.level = 2;
  ui.log.filter.set("/prune|late/");
  ui.log.follow = false;
  ui.log.later = false;
  set_axis(ui.compare, XAxis::epoch);
  ui.compare.front_tab = "pareto";
  ui.compare.toggled_metrics = {"train_loss"};
  ui.compare.by_run = true;
  ui.compare.group_by = "method.comera.target";
  ui.compare.group_middle = GroupMiddle::median;
  ui.compare.group_band = GroupBand::deviation;
  ui.compare.all_settings = true;
  ui.compare.memory_at_peak = false;
  ui.compare.pareto_log = false;
  ui.compare.pareto_cost = ParetoCost::time;
  ui.compare.plots.smoothing = 0.25f;
  lock(ui.compare.plots.looks["val_loss"], 0, 1);
  ui.compare.plots.looks["val_loss"].log_scale = true;
}

void expect_otherwise(UiState& ui) {
  EXPECT_EQ(ui.plots.smoothing, 0.5f);
  EXPECT_TRUE(ui.plots.log_scale);
  EXPECT_TRUE(ui.plots.looks["loss"].locked);
  EXPECT_EQ(ui.plots.looks["loss"].low, -1.5);
  EXPECT_EQ(ui.plots.looks["loss"].high, 2.25);
  EXPECT_EQ(ui.metrics.alone, "size");
  EXPECT_EQ(ui.timeline.speed, 8);
  EXPECT_EQ(ui.timeline.loop, Loop::all);
  EXPECT_EQ(ui.ranks_view, RanksView::drops);
  EXPECT_EQ(ui.rank_order, RankOrder::drop);
  EXPECT_TRUE(ui.ranks_as_share);
  EXPECT_EQ(ui.memory_view, 3);
  EXPECT_EQ(ui.memory_counts, 2);
  EXPECT_EQ(ui.memory_scope, 0);
  EXPECT_EQ(ui.target_unit, 2);
  EXPECT_TRUE(ui.target_beyond);
  EXPECT_TRUE(ui.form.methods.shown);
  EXPECT_EQ(ui.log.level, 2);
  EXPECT_EQ(ui.log.filter.text(), "/prune|late/");
  EXPECT_FALSE(ui.log.filter.fits("nothing of both")) << "it works, too";
  EXPECT_FALSE(ui.log.follow);
  EXPECT_FALSE(ui.log.later);
  EXPECT_EQ(ui.compare.axis, XAxis::epoch);
  EXPECT_LT(ui.compare.plots.grain, 1) << "what belongs to that axis";
  EXPECT_EQ(ui.compare.tab.empty() ? ui.compare.front_tab : ui.compare.tab, "pareto");
  EXPECT_EQ(ui.compare.toggled_metrics, (std::set<std::string>{"train_loss"}));
  EXPECT_TRUE(ui.compare.by_run);
  EXPECT_EQ(ui.compare.group_by, "method.comera.target");
  EXPECT_EQ(ui.compare.group_middle, GroupMiddle::median);
  EXPECT_EQ(ui.compare.group_band, GroupBand::deviation);
  EXPECT_TRUE(ui.compare.all_settings);
  EXPECT_FALSE(ui.compare.memory_at_peak);
  EXPECT_FALSE(ui.compare.pareto_log);
  EXPECT_EQ(ui.compare.pareto_cost, ParetoCost::time);
  EXPECT_EQ(ui.compare.plots.smoothing, 0.25f);
  EXPECT_EQ(ui.compare.plots.looks["val_loss"].log_scale, std::optional<bool>(true));
  EXPECT_TRUE(ui.compare.plots.looks["val_loss"].locked);
}

Json views_of(const UiState& ui) {
  Json json = Json::object();
  save_views(ui, json);
  return json;
}

class KeptViews : public testing::Test {
 protected:
  // As the next start has it.
  void restart(UiState& later) {
    save_preferences(stage_.ui, file_);
    load_preferences(later, file_);
  }
  UiState& ui() { return stage_.ui; }

  Stage stage_;
  const test::Folder folder_;
  const std::string file_ = folder_.file("studio.json");
};

TEST_F(KeptViews, AreAsTheyWereAfterARestart) {
  look_otherwise(ui());
  UiState later;
  restart(later);
  expect_otherwise(later);
  UiState without;
  load_preferences(without, folder_.file("none.json"));
  EXPECT_EQ(views_of(without), views_of(UiState())) << "no file: as shipped";
  EXPECT_EQ(without.layout, "start");
  EXPECT_FALSE(without.place.known());
}

TEST_F(KeptViews, AreDrawnAsTheyWere) {
  stage_.begin_run(Phase::paused);
  look_otherwise(ui());
  UiState later;
  restart(later);
  Json kept;
  save_views(later, kept);
  load_views(ui(), kept);
  stage_.frames(8);
  expect_otherwise(ui());
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
}

TEST_F(KeptViews, TheSelectionOfALoopIsNotKept) {
  stage_.begin_run(Phase::paused);
  select_steps(ui(), 100, 200);
  ui().timeline.loop = Loop::selection;
  UiState later;
  restart(later);
  EXPECT_EQ(later.timeline.loop, Loop::off);
  EXPECT_FALSE(later.timeline.selection.any());
}

// Each value by itself: nothing that makes no sense is taken, and nothing of it is told.
TEST_F(KeptViews, WhatMakesNoSenseIsAsShipped) {
  const Json shipped = views_of(UiState());
  for (const char* text :
       {R"({"ranks": {"view": "sideways", "order": 7, "as_share": "yes"}, "memory": {"view": -1, "counts": null, "scope": ["all"]}})",
        R"({"ranks": 3, "memory": "all", "log": [], "compare": null, "timeline": true, "size_target": {"unit": "furlongs"}})",
        R"({"timeline": {"speed": 1e9, "loop": "for ever"}})", R"({"timeline": {"speed": 0, "loop": 2}})",
        R"({"log": {"level": "whispers", "filter": 7, "follow": 1}})", R"({"smoothing": 7, "smoothing_kind": 99, "plot_columns": -3})",
        R"({"smoothing": "much", "smoothing_kind": 1.5, "x_axis": "sideways", "log_scale": "no", "pinned_plots": 3})",
        R"({"compare": {"tab": "no such tab", "axis": "wall", "group_band": 3, "by_run": "no", "toggled_metrics": 3, "plots": []}})",
        R"({"compare": {"group_by": 7, "group_middle": "mode", "group_band": "wide"}})",
        R"({"plots": {"loss": {"locked": [2, 1]}, "size": {"locked": [0]}, "lr": {"locked": "yes", "log": 3}, "accuracy": 7}})",
        R"({"plots": {"loss": {"locked": [1, 1]}, "size": {"locked": [null, 3]}, "lr": {"locked": [1, "2"]}}})"}) {
    test::write_text(file_, text);
    UiState later;
    load_preferences(later, file_);
    EXPECT_EQ(views_of(later), shipped) << text;
    EXPECT_FALSE(std::filesystem::exists(file_ + ".damaged")) << text;
    EXPECT_TRUE(later.toasts.empty());
  }
  // One bad value takes no other with it.
  test::write_text(file_, R"({"max_fps": "fast", "scale": 1000, "theme": 7, "gui_share": -1, "alerts": {"margin": 9, "patience": 55},
                              "ranks": {"view": 3, "order": "size"}, "smoothing": 0.75, "sort": "no such column", "toggled_columns": ["id", 3]})");
  UiState later;
  load_preferences(later, file_);
  EXPECT_EQ(later.settings.max_fps, 60);
  EXPECT_EQ(later.settings.user_scale, 1);
  EXPECT_EQ(later.settings.theme, ThemeKind::dark);
  EXPECT_EQ(later.settings.gui_share, 0.5);
  EXPECT_EQ(later.settings.alerts.margin, 0.05);
  EXPECT_EQ(later.settings.alerts.patience, 55);
  EXPECT_EQ(later.ranks_view, RanksView::now);
  EXPECT_EQ(later.rank_order, RankOrder::size);
  EXPECT_EQ(later.plots.smoothing, 0.75f);
  EXPECT_EQ(later.run_table.sort, "started");
  EXPECT_EQ(later.run_table.toggled_columns, (std::set<std::string>{"id"}));
}

TEST_F(KeptViews, ResettingTheLayoutBringsBackWhatShipsAndCanBeUndone) {
  const Json shipped = views_of(UiState());
  const auto reset = [&] {
    for (const Action& action : actions(ui()))
      if (action.id == "view.reset") action.act(ui());
  };
  reset();
  EXPECT_TRUE(ui().toasts.empty()) << "nothing was changed";
  look_otherwise(ui());
  reset();
  Json now = views_of(ui());
  EXPECT_EQ(now["compare"]["tab"], "curves");
  now["compare"]["tab"] = "";
  EXPECT_EQ(now, shipped);
  ASSERT_EQ(ui().toasts.size(), 1u);
  ui().toasts[0].offers.at(0).act(ui());
  expect_otherwise(ui());
}

TEST_F(KeptViews, TheSettingsOfTheWindowAreResetToo) {
  Settings& settings = ui().settings;
  settings.max_fps = 7;
  settings.gui_share = 0.1;
  settings.autosave_minutes = 9;
  settings.desktop_dialogs = false;
  settings.alerts.collapsed.pause = true;
  settings.alerts.patience = 3;
  settings.store = "kept.db";
  settings.keys.bind("run.stop", 0);
  set_theme(ui(), ThemeKind::light);
  set_user_scale(ui(), 2);
  use_shipped_settings(ui());
  EXPECT_EQ(settings.max_fps, 60);
  EXPECT_EQ(settings.gui_share, 0.5);
  EXPECT_EQ(settings.autosave_minutes, 0);
  EXPECT_TRUE(settings.desktop_dialogs);
  EXPECT_FALSE(settings.alerts.collapsed.pause);
  EXPECT_EQ(settings.alerts.patience, 2000);
  EXPECT_EQ(settings.theme, ThemeKind::dark);
  EXPECT_EQ(settings.user_scale, 1);
  EXPECT_EQ(settings.store, "kept.db") << "where the runs are is no matter of taste";
  EXPECT_TRUE(settings.keys.any_changed()) << "keys have a way back of their own";
  stage_.frames(2);
}

TEST_F(KeptViews, PlacesOfFilesAreKept) {
  ui().exports.folder = folder_.path();
  ui().exports.png = true;
  ui().exports.png_scale = 3;
  remember_folder(ui(), folder_.file("inner/data.tsv"));
  ui().dialogs.browse_for = BrowseFor::store;
  remember_folder(ui(), folder_.file("runs.db"));
  UiState later;
  restart(later);
  EXPECT_EQ(later.exports.folder, folder_.path());
  EXPECT_TRUE(later.exports.png);
  EXPECT_EQ(later.exports.png_scale, 3);
  EXPECT_EQ(later.last_folders, (std::array<std::string, 4>{folder_.path(), folder_.file("inner"), "", ""}));
  ui().exports.folder = exports_folder({});
  UiState usual;
  restart(usual);
  EXPECT_EQ(usual.exports.folder, "") << "that may be another folder by then";
}

TEST_F(KeptViews, AFolderThatIsGoneIsNotChosenIn) {
  ui().last_folders = {"", folder_.path(), "", ""};
  browse_inside(ui(), BrowseFor::config);
  ASSERT_TRUE(stage_.until([&] { return ui().dialogs.folders->latest() != nullptr; }));
  stage_.frames(3);
  EXPECT_EQ(ui().dialogs.folder, folder_.path());
  close_dialog(ui());
  ui().last_folders = {"", folder_.file("gone"), "", ""};
  browse_inside(ui(), BrowseFor::config);
  EXPECT_TRUE(stage_.until([&] { return ui().dialogs.folder != folder_.file("gone"); })) << "the usual one";
}

TEST(WindowPlace, IsTakenWhereItCanBeSeen) {
  const ScreenArea left{0, 0, 1920, 1080}, right{1920, 200, 1280, 1024};
  const std::array<ScreenArea, 2> both = {left, right};
  const WindowPlace usual{100, 100, 1600, 900, false};
  EXPECT_TRUE(lies_on(usual, both));
  EXPECT_TRUE(lies_on({1200, 250, 1600, 800, false}, both)) << "on both";
  EXPECT_FALSE(lies_on({1200, 250, 1600, 800, false}, {&left, 1})) << "its monitor is gone";
  EXPECT_FALSE(lies_on({2000, 300, 1200, 700, false}, {&left, 1}));
  EXPECT_TRUE(lies_on({2000, 300, 1200, 700, false}, both));
  EXPECT_FALSE(lies_on({100, -400, 1600, 900, false}, both)) << "its upper edge cannot be taken";
  EXPECT_FALSE(lies_on({-1500, 100, 1600, 900, false}, both));
  EXPECT_FALSE(lies_on({0, 0, 2560, 1440, false}, {&left, 1})) << "larger than the monitor that is left";
  EXPECT_FALSE(lies_on({}, both)) << "not known";
  EXPECT_FALSE(lies_on(usual, {})) << "no monitor";
}

TEST_F(KeptViews, ThePlaceOfTheWindowIsKept) {
  ui().place = {-20, 30, 1234, 777, true};
  UiState later;
  restart(later);
  EXPECT_EQ(later.place.x, -20);
  EXPECT_EQ(later.place.y, 30);
  EXPECT_EQ(later.place.width, 1234);
  EXPECT_EQ(later.place.height, 777);
  EXPECT_TRUE(later.place.maximised);
  test::write_text(file_, R"({"window": {"x": 1e12, "y": "top", "width": -5, "height": 3.5, "maximised": 1}})");
  UiState garbage;
  load_preferences(garbage, file_);
  EXPECT_FALSE(garbage.place.known());
  EXPECT_FALSE(garbage.place.maximised);
}

// ---- What was open --------------------------------------------------------------------------------------------------

class Reopened : public StoreStage {
 protected:
  Reopened() {
    for (const char* name : {"first", "second", "third"}) runs_.push_back(test::make_run(store_, name));
    ui().store_path = store_;
    open(ui());
  }
  ~Reopened() override { ui().store.reset(); }
  void open(UiState& of) const { of.store = std::make_unique<StoreClient>(store_, std::function<void()>{}); }
  // Another window on the same store, as the next start has it.
  void restart() {
    const std::string file = (folder_ / "studio.json").string();
    save_preferences(ui(), file);
    ui().store.reset();
    stage_.reset();  // one context at a time
    stage_ = std::make_unique<Stage>();
    load_preferences(ui(), file);
    ui().store_path = store_;
    open(ui());
  }
  bool listed() {
    return until([&] { return ui().runs->loaded; });
  }
  std::vector<std::string> runs_;
};

TEST_F(Reopened, ThePageItsRunAndTheComparedOnes) {
  open_run(ui(), runs_[0]);
  ASSERT_TRUE(until([&] { return ui().stored != nullptr; }));
  for (const size_t i : {2, 1}) pick_run(ui().compare, runs_[i]);
  set_baseline(ui().compare, runs_[1]);
  ui().compare.front_tab = "table";
  ui().compare.group_by = "tag:first";
  ASSERT_EQ(ui().layout, "train");
  restart();
  EXPECT_EQ(ui().layout, "train") << "from the first frame on";
  EXPECT_TRUE(ui().opening());
  ASSERT_TRUE(until([&] { return ui().stored != nullptr; }));
  EXPECT_EQ(ui().stored->snapshot->run, runs_[0]);
  EXPECT_EQ(ui().layout, "train");
  ASSERT_EQ(ui().compare.runs.size(), 2u);
  EXPECT_EQ(ui().compare.runs[0]->wanted, runs_[2]) << "in their order";
  EXPECT_EQ(ui().compare.baseline_run()->wanted, runs_[1]);
  show_layout(ui(), "compare");
  EXPECT_TRUE(until([&] { return all_read(ui().compare); }));
  stage_->frames(3);
  EXPECT_EQ(ui().compare.front_tab, "table");
  EXPECT_EQ(ui().compare.group_by, "tag:first") << "also while none of them has it";
  restart();
  EXPECT_EQ(ui().layout, "compare");
  ASSERT_TRUE(until([&] { return ui().stored != nullptr; }));
  EXPECT_EQ(ui().layout, "compare") << "a run that comes does not turn the page";
  EXPECT_TRUE(ui().toasts.empty());
}

TEST_F(Reopened, RunsThatAreGoneAreLeftOutWithoutAWord) {
  open_run(ui(), runs_[0]);
  ASSERT_TRUE(until([&] { return ui().stored != nullptr; }));
  for (const std::string& run : runs_) pick_run(ui().compare, run);
  for (const char* name : {"first", "third"}) {
    RunAdmin admin(store_);
    admin.purge(runs_[name == std::string("first") ? 0 : 2], name);
  }
  restart();
  ASSERT_TRUE(listed());
  stage_->frames(3);
  EXPECT_EQ(ui().layout, "start") << "nothing is there for the other page";
  EXPECT_FALSE(ui().opening());
  ASSERT_EQ(ui().compare.runs.size(), 1u);
  EXPECT_EQ(ui().compare.runs[0]->wanted, runs_[1]);
  EXPECT_TRUE(ui().toasts.empty());
}

TEST_F(Reopened, AnArchivedOneIsStillThere) {
  pick_run(ui().compare, runs_[1]);
  RunAdmin(store_).archive(runs_[1]);
  restart();
  ASSERT_TRUE(listed());
  stage_->frames(2);
  EXPECT_EQ(ui().compare.runs.size(), 1u);
}

TEST_F(Reopened, WhatIsAskedForMeanwhileComesFirst) {
  open_run(ui(), runs_[0]);
  ASSERT_TRUE(until([&] { return ui().stored != nullptr; }));
  restart();
  forget_shown(ui());  // as by --run
  EXPECT_EQ(ui().layout, "start");
  open_run(ui(), runs_[1]);
  ASSERT_TRUE(until([&] { return ui().stored != nullptr; }));
  EXPECT_EQ(ui().stored->snapshot->run, runs_[1]);
  restart();
  stage_->begin_run(Phase::running);
  ASSERT_TRUE(listed());
  stage_->frames(5);
  EXPECT_FALSE(ui().show_stored) << "a run that trains is not hidden";
}

TEST_F(Reopened, APageThatIsNoneIsTheFirst) {
  const std::string file = (folder_ / "studio.json").string();
  for (const char* text : {R"({"open": {"page": "attic", "run": 7, "compared": "all", "baseline": []}})", R"({"open": {"page": "train"}})",
                           R"({"open": [1]})", R"({"open": {"page": null, "compared": [1, 2]}})"}) {
    test::write_text(file, text);
    UiState later;
    load_preferences(later, file);
    EXPECT_EQ(later.layout, "start") << text;
    EXPECT_TRUE(later.compare.runs.empty()) << text;
  }
  test::write_text(file, R"({"open": {"page": "new"}})");
  UiState later;
  load_preferences(later, file);
  EXPECT_EQ(later.layout, "new");
}

}  // namespace
}  // namespace comera::studio
