// The list of runs: what its filter understands, its order and selection, and what it does to stored runs.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/runs/run_actions.h"
#include "app/studio/runs/run_fields.h"
#include "core/base/json.h"
#include "core/store/run_reader.h"
#include "core/store/run_writer.h"
#include "tests/store/support.h"
#include "tests/studio/run_rows.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;
using test::Folder;

RunRow a_row(const std::string& id, const std::string& name, const std::string& status, double accuracy, double mebibytes,
             std::vector<std::string> tags = {}) {
  RunRow row;
  row.id = id;
  row.name = name;
  row.status = status;
  row.device = "CPU, 2 threads";
  row.summary.val_accuracy = accuracy;
  row.summary.bytes = mebibytes * (1 << 20);
  row.summary.step = 100;
  row.tags = std::move(tags);
  return row;
}

std::shared_ptr<RunList> a_list() {
  auto list = std::make_shared<RunList>();
  list->loaded = true;
  list->rows = {a_row("r-1", "Fashion late 0.2", "finished", 0.90, 1.5, {"good", "paper"}),
                a_row("r-2", "fashion dense", "finished", 0.93, 12, {"good"}), a_row("r-3", "mnli (first)", "failed", kUnknown, kUnknown),
                a_row("r-4", "fashion late 0.5", "interrupted", 0.85, 3, {"star"})};
  list->rows[2].message = "out of memory";
  for (size_t i = 0; i < list->rows.size(); ++i) list->rows[i].created = 1000.0 - static_cast<double>(i);
  list->archived = {a_row("r-9", "an old one", "finished", 0.5, 1)};
  list->settings["train.lr_core"] = {{"r-1", "0.001"}, {"r-2", "0.0005"}, {"r-3", "0.01"}};
  list->settings["method.weights"] = {{"r-1", "tt"}, {"r-2", "dense"}};
  return list;
}

std::string fitting(const std::string& text) { return fitting_rows(*a_list(), text); }

TEST(RunFilter, UnderstandsWordsFieldsSettingsAndLogic) {
  EXPECT_EQ(fitting(""), "1234");
  EXPECT_EQ(fitting("FASHION late"), "14");
  EXPECT_EQ(fitting("\"late 0.2\""), "1");
  EXPECT_EQ(fitting("paper"), "1") << "tags are looked through";
  EXPECT_EQ(fitting("/late 0\\.[25]$/"), "14");
  EXPECT_EQ(fitting("/^mnli/ or tag:paper"), "13");
  EXPECT_EQ(fitting("accuracy>=0.9"), "12");
  EXPECT_EQ(fitting("accuracy >= 90%"), "12");
  EXPECT_EQ(fitting("accuracy<0.9"), "4") << "what is not known fits no comparison";
  EXPECT_EQ(fitting("size<2 and status:finished"), "1");
  EXPECT_EQ(fitting("lr<1e-3 or tag:star"), "24");
  EXPECT_EQ(fitting("lr<=1e-3 and tag:good"), "12");
  EXPECT_EQ(fitting("train.lr_core=0.001"), "1");
  EXPECT_EQ(fitting("weights=dense"), "2");
  EXPECT_EQ(fitting("weights!=dense"), "1");
  EXPECT_EQ(fitting("not tag:good"), "34");
  EXPECT_EQ(fitting("not (tag:good or status:failed)"), "4");
  EXPECT_EQ(fitting("tag!=good"), "34");
  EXPECT_EQ(fitting("step=100 not status:fail"), "124");
  EXPECT_EQ(fitting("name:first"), "3");
  EXPECT_EQ(fitting("fashion and accuracy>0.86 or mnli"), "123") << "or binds weaker";
}

// Neither a score that there is not nor an infinite loss is more, less or other than a number.
TEST(RunFilter, AValueThatIsNoNumberFitsNoComparison) {
  RunList list = *a_list();
  list.rows[0].summary.train_loss = std::numeric_limits<double>::infinity();
  list.rows[1].summary.train_loss = 0.5;
  list.rows[2].summary.train_loss = list.rows[3].summary.train_loss = kUnknown;
  for (const char* compare : {"<", "<=", ">", ">=", "=", "!="}) {
    const std::string fit =
        fitting_rows(list, std::string("train_loss") + compare + "0.4") + fitting_rows(list, std::string("train_loss") + compare + "0.5");
    EXPECT_EQ(fit.find_first_not_of('2'), std::string::npos) << compare << ": " << fit;
  }
  EXPECT_EQ(fitting_rows(list, "train_loss!=0.4"), "2");
  EXPECT_EQ(fitting_rows(list, "accuracy!=0.9"), "24") << "r-3 has no score";
  EXPECT_EQ(fitting_rows(list, "-accuracy!=0.9"), "13");
}

TEST(RunFilter, SaysWhatItDoesNotUnderstand) {
  for (const auto& [text, said] : {std::pair<const char*, const char*>{"accuracy>", "there is no value"},
                                   {"acuracy>0.9", "did you mean accuracy?"},
                                   {"accuracy>high", "high is not"},
                                   {"lr<abc", "abc is not"},
                                   {"train.batch=many", "many is not"},
                                   {"acc>0.9", "did you mean accuracy?"},
                                   {"(late", "not closed"},
                                   {"late)", "too many"},
                                   {"\"late", "not closed"},
                                   {"/[/", "not a regular expression"},
                                   {"rank<3", "Several settings"},
                                   {"<3", "there is no field"},
                                   {"not", "incomplete"}}) {
    const RunFilter filter(text);
    EXPECT_NE(filter.problem().find(said), std::string::npos) << text << ": " << filter.problem();
    EXPECT_TRUE(filter.fits(RunRow{}, {})) << "nothing is hidden by a half typed filter: " << text;
  }
  EXPECT_EQ(RunFilter("lr<1 and train.batch=32").settings(), (std::vector<std::string>{"train.lr_core", "train.batch"}));
}

// Whatever is typed, in whichever order: it is understood, or it says why it is not and hides nothing.
TEST(RunFilter, EveryPieceOfATextIsUnderstoodOrHidesNothing) {
  const std::string all = "not (lr<1e-3 and tag:good) or /a+(b|c)*/ \"x\" accuracy!=90% :( ";
  const auto list = a_list();
  int refused = 0, hiding = 0;
  for (size_t from = 0; from < all.size(); ++from)
    for (size_t length = 0; from + length <= all.size(); ++length) {
      const std::string piece = all.substr(from, length);
      const RunFilter filter(piece);
      const auto shown =
          std::count_if(list->rows.begin(), list->rows.end(), [&](const RunRow& row) { return filter.fits(row, list->settings); });
      if (filter.problem().empty()) {
        hiding += shown < 4 ? 1 : 0;
      } else {
        ++refused;
        EXPECT_EQ(shown, 4) << "'" << piece << "': " << filter.problem();
      }
    }
  EXPECT_GT(refused, 100) << "else this shows nothing";
  EXPECT_GT(hiding, 100);
  EXPECT_FALSE(RunFilter(all).problem().empty());
  EXPECT_TRUE(RunFilter(all.substr(0, all.find(" :("))).problem().empty());
}

std::string shown(const RunTable& table) {
  std::string ids;
  for (const RunRow* row : table.rows) ids += row->id.substr(2);
  return ids;
}

TEST(RunTable, SortsAndKeepsUnknownValuesLast) {
  RunTable table;
  const auto list = a_list();
  update(table, list);
  EXPECT_EQ(shown(table), "1234") << "the newest first";
  table.sort = "accuracy";
  update(table, list);
  EXPECT_EQ(shown(table), "2143");
  table.descending = false;
  update(table, list);
  EXPECT_EQ(shown(table), "4123");
  table.sort = "name";
  table.filter = "late";
  update(table, list);
  EXPECT_EQ(shown(table), "14") << "capitals come first";
  table.archived = true;
  table.filter.clear();
  update(table, list);
  EXPECT_EQ(shown(table), "9");
}

TEST(RunTable, SelectsOneMoreARangeAndAll) {
  RunTable table;
  const auto list = a_list();
  update(table, list);
  select_run(table, "r-2", false, false);
  EXPECT_EQ(table.selected, (std::set<std::string>{"r-2"}));
  select_run(table, "r-4", false, true);
  EXPECT_EQ(table.selected, (std::set<std::string>{"r-2", "r-3", "r-4"}));
  select_run(table, "r-1", false, true);
  EXPECT_EQ(table.selected, (std::set<std::string>{"r-1", "r-2"})) << "a range begins at the last single click";
  select_run(table, "r-4", true, false);
  select_run(table, "r-1", true, false);
  EXPECT_EQ(table.selected, (std::set<std::string>{"r-2", "r-4"}));
  select_all(table);
  EXPECT_EQ(table.selected.size(), 4u);
  table.filter = "status:finished";
  update(table, list);
  EXPECT_EQ(table.selected, (std::set<std::string>{"r-1", "r-2"})) << "what is not shown is not selected";
}

// Every field is a text or a number, and every column has its place.
TEST(RunFields, AreCompleteAndUnique) {
  std::set<std::string> ids;
  const RunRow row = a_list()->rows[0];
  for (const RunField& field : run_fields()) {
    EXPECT_TRUE(ids.insert(field.id).second) << field.id;
    ASSERT_NE(field.text, nullptr) << field.id;
    field.text(row);
    if (field.number) field.number(row);
    EXPECT_EQ(RunFilter(std::string(field.id) + (field.number ? ">0" : ":x")).problem(), "") << field.id;
  }
}

struct Size {
  const char* name;
  ImVec2 pixels;
  float scale;
};
constexpr Size kSizes[] = {
    {"960x600", {960, 600}, 1}, {"1600x900", {1600, 900}, 1}, {"1920x1200_at_2", {1920, 1200}, 2}, {"3840x2160", {3840, 2160}, 1}};

TEST(RunList, DrawsInsideWithEveryColumnAndDialog) {
  for (const Size& size : kSizes)
    for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
      Stage stage(size.pixels, size.scale, kind);
      stage.ui.runs = a_list();
      stage.frames();
      EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << size.name;
      for (const RunField& field : run_fields())
        if (field.width > 0 && !field.shown) stage.ui.run_table.toggled_columns.insert(field.id);
      stage.ui.run_table.filter = "acuracy>1";
      stage.frames();
      EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << size.name << ", all columns and a problem";
      stage.ui.run_table.filter.clear();
      select_run(stage.ui.run_table, "r-1", false, false);
      for (const Dialog dialog : {Dialog::edit_runs, Dialog::purge_runs}) {
        open_dialog(stage.ui, dialog);
        stage.frames();
        EXPECT_EQ(stage.ui.dialogs.open, dialog);
        EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << size.name << ", a dialog";
        stage.press(ImGuiKey_Escape);
        EXPECT_EQ(stage.ui.dialogs.open, Dialog::none);
        select_all(stage.ui.run_table);
      }
    }
}

// ---- In a store -----------------------------------------------------------------------------------------------

class StoredRuns : public testing::Test {
 protected:
  StoredRuns() : store_(folder_.store()) {}

  std::string write(const std::string& name, const std::vector<std::string>& sets = {}) {
    RunStart start;
    start.name = name;
    start.config = config_to_json(load_config("demo", sets)).dump();
    start.total_steps = 10;
    RunWriter writer(store_, start);
    for (int64_t step = 1; step <= 10; ++step) writer.metrics(step, {{"train_loss", 1.0 / static_cast<double>(step)}, {"step_ms", 5}});
    writer.finish("finished", "");
    EXPECT_TRUE(writer.flush());
    return writer.run_id();
  }
  void open(Stage& stage) {
    stage.ui.store_path = store_;
    stage.ui.store = std::make_unique<StoreClient>(store_, [] {});
    ASSERT_TRUE(stage.until([&] { return stage.ui.runs->loaded; }));
    stage.frames(2);
  }
  const RunRow* row(Stage& stage, const std::string& id) const {
    for (const RunRow& one : stage.ui.runs->rows)
      if (one.id == id) return &one;
    return nullptr;
  }
  void choose(Stage& stage, const std::string& id) {
    select_run(stage.ui.run_table, id, false, false);
    stage.ui.selected_run = id;
    stage.frames(1);
  }
  void ask_about(Stage& stage, const std::string& id, Dialog dialog) {
    choose(stage, id);
    open_dialog(stage.ui, dialog);
    stage.frames(3);
  }

  Folder folder_;
  const std::string store_;
};

TEST_F(StoredRuns, AreRenamedTaggedAndStarred) {
  const std::string a = write("one"), b = write("two");
  Stage stage;
  open(stage);
  ask_about(stage, a, Dialog::edit_runs);
  EXPECT_EQ(stage.ui.dialogs.run_name, "one");
  stage.press(ImGuiMod_Ctrl | ImGuiKey_A);
  stage.type("another name");
  stage.ui.dialogs.run_tags = "good, for the paper";
  stage.press(ImGuiKey_Enter);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::none);
  ASSERT_TRUE(stage.until([&] { return row(stage, a) && row(stage, a)->name == "another name" && row(stage, a)->tags.size() == 2; }));
  EXPECT_EQ(row(stage, a)->tags, (std::vector<std::string>{"good", "for the paper"}));
  EXPECT_EQ(row(stage, b)->name, "two");
  toggle_star(stage.ui, {row(stage, a), row(stage, b)});
  ASSERT_TRUE(stage.until([&] { return has_tag(*row(stage, a), kStar) && has_tag(*row(stage, b), kStar); }));
  toggle_star(stage.ui, {row(stage, a), row(stage, b)});
  ASSERT_TRUE(stage.until([&] { return !has_tag(*row(stage, a), kStar) && !has_tag(*row(stage, b), kStar); }));
  const RunReader reader(store_);
  EXPECT_EQ(reader.run(a).name, "another name");
}

TEST_F(StoredRuns, AreArchivedAndTheToastTakesItBack) {
  const std::string a = write("one"), b = write("two");
  Stage stage;
  open(stage);
  archive_runs(stage.ui, {a});
  ASSERT_EQ(stage.ui.toasts.size(), 1u);
  const Toast toast = stage.ui.toasts[0];  // now: time goes on while the store is waited for
  ASSERT_EQ(toast.offers.size(), 1u);
  EXPECT_EQ(toast.offers[0].label, "Undo");
  EXPECT_DOUBLE_EQ(toast.until - ImGui::GetTime(), 10);
  ASSERT_TRUE(stage.until([&] { return stage.ui.runs->archived.size() == 1; }));
  EXPECT_EQ(row(stage, a), nullptr);
  EXPECT_NE(row(stage, b), nullptr);
  toast.offers[0].act(stage.ui);
  ASSERT_TRUE(stage.until([&] { return stage.ui.runs->archived.empty(); }));
  EXPECT_NE(row(stage, a), nullptr);
}

TEST_F(StoredRuns, ArePurgedOnlyWithTheirNameTyped) {
  const std::string a = write("one"), b = write("two");
  Stage stage;
  open(stage);
  ask_about(stage, a, Dialog::purge_runs);
  stage.type("onee");
  stage.press(ImGuiKey_Enter);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::purge_runs) << "another text does nothing";
  stage.press(ImGuiKey_Escape);
  open_dialog(stage.ui, Dialog::purge_runs);
  stage.frames(3);
  EXPECT_EQ(stage.ui.dialogs.typed, "");
  stage.type("one");
  stage.press(ImGuiKey_Enter);
  ASSERT_TRUE(stage.until([&] { return stage.ui.runs->rows.size() == 1; }));
  EXPECT_EQ(stage.ui.runs->rows[0].id, b);
  EXPECT_EQ(RunReader(store_).runs(true).size(), 1u);
  EXPECT_EQ(purge_words({&stage.ui.runs->rows[0], &stage.ui.runs->rows[0]}), "purge 2 runs");
}

TEST_F(StoredRuns, AChangeThatFailsIsTold) {
  write("one");
  Stage stage;
  open(stage);
  rename_run(stage.ui, "r-none", "x");
  ASSERT_TRUE(stage.until([&] { return !stage.ui.toasts.empty(); }));
  EXPECT_EQ(stage.ui.toasts[0].level, Level::error);
  EXPECT_NE(stage.ui.toasts[0].text.find("r-none"), std::string::npos);
}

TEST_F(StoredRuns, AreFilteredByTheirSettings) {
  const std::string a = write("one", {"train.lr_core=2e-3"}), b = write("two", {"train.lr_core=5e-4", "method.weights=dense"});
  Stage stage;
  open(stage);
  stage.ui.run_table.filter = "lr<1e-3";
  ASSERT_TRUE(stage.until([&] { return stage.ui.run_table.rows.size() == 1; }));
  EXPECT_EQ(stage.ui.run_table.rows[0]->id, b);
  stage.ui.run_table.filter = "weights=tt";
  ASSERT_TRUE(stage.until([&] { return stage.ui.run_table.rows.size() == 1 && stage.ui.run_table.rows[0]->id == a; }));
}

TEST_F(StoredRuns, AreExported) {
  const std::string a = write("one");
  Stage stage;
  open(stage);
  stage.ui.exports.folder = folder_.file("out");
  for (const RunChange::Kind as : {RunChange::export_csv, RunChange::export_jsonl, RunChange::export_tfevents}) {
    stage.ui.toasts.clear();
    export_runs(stage.ui, {a}, as);
    ASSERT_TRUE(stage.until([&] { return !stage.ui.toasts.empty(); }));
    ASSERT_EQ(stage.ui.toasts[0].level, Level::good) << stage.ui.toasts[0].text;
    const std::string path = stage.ui.toasts[0].text.substr(std::string("Written: ").size());
    EXPECT_GT(fs::file_size(path), 100u) << path;
  }
  std::ifstream csv(folder_.file("out/" + a + ".csv"));
  std::string line;
  std::getline(csv, line);
  EXPECT_EQ(line, "run,step,wall_time,metric,value\r");
}

TEST_F(StoredRuns, KeysActOnWhatIsChosen) {
  const std::string a = write("one");
  Stage stage;
  open(stage);
  stage.frames();
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && std::string(window->Name).find("/runs_") != std::string::npos)
      ImGui::FocusWindow(const_cast<ImGuiWindow*>(window));
  choose(stage, a);
  stage.press(ImGuiKey_S);
  ASSERT_TRUE(stage.until([&] { return row(stage, a) && has_tag(*row(stage, a), kStar); }));
  stage.press(ImGuiKey_Space);
  EXPECT_NE(stage.ui.compare.find(a), nullptr);
  stage.press(ImGuiKey_F2);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::edit_runs);
  stage.press(ImGuiKey_Escape);
  stage.press(ImGuiKey_Delete);
  ASSERT_TRUE(stage.until([&] { return stage.ui.runs->archived.size() == 1; }));
}

// The axes of the clock need them; a run that trains tells them by itself.
TEST_F(StoredRuns, TellWhenTheirStepsWere) {
  const double before = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::string a = write("one");
  Stage stage;
  open(stage);
  open_run(stage.ui, a);
  ASSERT_TRUE(stage.until([&] { return stage.ui.stored != nullptr; }));
  const Curve& wall = stage.ui.stored->wall;
  ASSERT_EQ(wall.size(), 10u);
  EXPECT_GE(wall.y().front(), before - 1);
  EXPECT_LE(wall.last(), before + 600);
  EXPECT_TRUE(std::is_sorted(wall.y().begin(), wall.y().end()));
}

TEST_F(StoredRuns, AreExtendedAndForked) {
  const std::string a = write("one");
  Stage stage;
  open(stage);
  resume_run(stage.ui, a, {.extend = 25});
  ASSERT_TRUE(stage.until([&] { return stage.ui.live != nullptr; }));
  EXPECT_EQ(stage.started.resume_run, a);
  EXPECT_EQ(stage.started.extend, 25);
  stage.started = {};
  fork_run(stage.ui, a, {.at_step = 7, .sets = {"train.lr_core=0.25"}});
  ASSERT_TRUE(stage.until([&] { return !stage.started.fork_run.empty(); }));
  EXPECT_EQ(stage.started.fork_run, a);
  EXPECT_EQ(stage.started.at_step, 7);
  EXPECT_EQ(stage.started.config.train.lr_core, 0.25);
}

// A fork at the end would have no steps to train: the form asks how many.
TEST_F(StoredRuns, AreForkedAtTheirEndWithMoreSteps) {
  const std::string a = write("one", {"train.steps=10"});
  Stage stage;
  open(stage);
  open_run(stage.ui, a);
  ASSERT_TRUE(stage.until([&] { return stage.ui.stored != nullptr; }));
  EXPECT_TRUE(fork_shown(stage.ui));
  EXPECT_TRUE(stage.started.fork_run.empty());
  EXPECT_EQ(stage.ui.layout, "new");
  NewRun& form = stage.ui.form;
  ASSERT_TRUE(stage.until([&] { return form.ready && !form.looking; }));
  EXPECT_EQ(form.config.train.steps, 15);
  EXPECT_EQ(form_command(form, ""), "comera fork " + a + " --at-step 10 --set train.steps=15");
  start_form(stage.ui);
  ASSERT_TRUE(stage.until([&] { return !stage.started.fork_run.empty(); }));
  EXPECT_EQ(stage.started.config.train.steps, 15);
}

// Esc and a click beside the dialog are not an answer: what was typed stays until it is saved or cancelled.
TEST_F(StoredRuns, WhatIsTypedAboutARunIsKeptUntilItIsSaved) {
  const std::string a = write("one"), b = write("two");
  Stage stage;
  open(stage);
  ask_about(stage, a, Dialog::edit_runs);
  stage.press(ImGuiMod_Ctrl | ImGuiKey_A);
  stage.type("a better name");
  stage.ui.dialogs.run_notes = "long notes";
  stage.frames(1);
  stage.press(ImGuiKey_Escape);
  stage.press(ImGuiKey_Escape);
  ASSERT_EQ(stage.ui.dialogs.open, Dialog::none);
  ask_about(stage, b, Dialog::edit_runs);
  EXPECT_EQ(stage.ui.dialogs.run_name, "two");
  EXPECT_EQ(stage.ui.dialogs.run_notes, "");
  close_dialog(stage.ui);
  stage.frames(2);
  ask_about(stage, a, Dialog::edit_runs);
  EXPECT_EQ(stage.ui.dialogs.run_notes, "long notes");
  stage.press(ImGuiKey_Enter);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::none);
  ASSERT_TRUE(stage.until([&] { return row(stage, a) && row(stage, a)->notes == "long notes"; }));
  EXPECT_TRUE(stage.ui.dialogs.run_drafts.empty());
}

}  // namespace
}  // namespace comera::studio
