// What the list of runs draws besides its columns: lineage, colours, the pinned baseline; and what its menu offers for a
// run that failed for want of memory.
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/studio/actions.h"
#include "app/studio/preferences.h"
#include "app/studio/runs/run_actions.h"
#include "app/studio/runs/run_difference.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/store/run_reader.h"
#include "core/store/run_writer.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"
#include "tests/studio/run_rows.h"

namespace comera::studio {
namespace {

RunRow listed_row(const std::string& id, const std::string& parent = "", double accuracy = 0.9, double bytes = 1 << 20) {
  RunRow row;
  row.id = id;
  row.name = "run " + id;
  row.status = "finished";
  row.device = "CPU, 2 threads";
  row.data_fingerprint = "abc";
  row.parent = parent;
  row.summary.step = 100;
  row.summary.val_accuracy = accuracy;
  row.summary.bytes = bytes;
  return row;
}

// "a b2 c1|": depth behind each id, "|" where it is the last of its siblings.
std::string tree_of(const std::vector<RunRow>& rows) {
  std::vector<const RunRow*> shown;
  for (const RunRow& row : rows) shown.push_back(&row);
  const std::vector<Branch> branches = arrange_by_lineage(shown);
  EXPECT_EQ(branches.size(), rows.size());
  EXPECT_EQ(shown.size(), rows.size());
  std::string text;
  for (size_t i = 0; i < shown.size(); ++i) {
    text += (i ? " " : "") + shown[i]->id;
    if (branches[i].depth > 0) text += std::to_string(branches[i].depth) + (branches[i].last ? "|" : "");
    if (branches[i].rails) text += "r" + std::to_string(branches[i].rails);
  }
  return text;
}

TEST(Lineage, ForksStandUnderTheirParentsInTheOrderOfTheList) {
  EXPECT_EQ(tree_of({}), "");
  EXPECT_EQ(tree_of({listed_row("a"), listed_row("b"), listed_row("c")}), "a b c");
  EXPECT_EQ(tree_of({listed_row("f2", "b"), listed_row("a"), listed_row("f1", "b"), listed_row("b")}), "a b f21 f11|");
  // A line goes on beside the forks of all but the last: bit 1 is that of depth 1.
  EXPECT_EQ(tree_of({listed_row("a"), listed_row("x", "a"), listed_row("y", "a"), listed_row("xx", "x"), listed_row("xxx", "xx"),
                     listed_row("yy", "y")}),
            "a x1 xx2|r2 xxx3|r2 y1| yy2|");
  EXPECT_EQ(tree_of({listed_row("f", "gone"), listed_row("a")}), "f a") << "a parent that is not shown";
}

TEST(Lineage, WhatCannotBeIsStillListedOnce) {
  EXPECT_EQ(tree_of({listed_row("self", "self"), listed_row("a", "b"), listed_row("b", "a"), listed_row("c", "b")}), "self a b1| c2|");
  std::vector<RunRow> chain = {listed_row("0")};
  for (int i = 1; i < 3000; ++i) chain.push_back(listed_row(std::to_string(i), std::to_string(i - 1)));
  const std::string text = tree_of(chain);
  EXPECT_TRUE(text.ends_with(" 29992999|")) << text.substr(text.size() - 40);
}

TEST(Lineage, IsASwitchOfTheTable) {
  auto list = std::make_shared<RunList>();
  list->rows = {listed_row("r-3"), listed_row("r-2", "r-3"), listed_row("r-1")};
  for (size_t i = 0; i < 3; ++i) list->rows[i].created = static_cast<double>(i);
  RunTable table;
  const auto shown = [&] {
    update(table, list);
    std::string ids;
    for (const RunRow* row : table.rows) ids += row->id.substr(2);
    return ids;
  };
  EXPECT_EQ(shown(), "123") << "sorted, the newest first";
  EXPECT_TRUE(table.branches.empty());
  table.lineage = true;
  EXPECT_EQ(shown(), "132");
  table.sort = "name";
  table.descending = false;
  EXPECT_EQ(shown(), "132");
  table.descending = true;
  EXPECT_EQ(shown(), "321") << "parents are sorted, forks stay below them";
  table.filter = "r-2";
  EXPECT_EQ(shown(), "2");
  EXPECT_EQ(table.branches.at(0).depth, 0);
  table.filter.clear();
  table.lineage = false;
  EXPECT_EQ(shown(), "321");
  EXPECT_TRUE(table.branches.empty());
}

TEST(Difference, IsOfWhatTheListIsSortedBy) {
  RunTable table;
  const RunRow baseline = listed_row("r-1");
  EXPECT_STREQ(judged_field(table, baseline).id, "accuracy") << "started: no direction of that is better";
  EXPECT_STREQ(judged_field(table, listed_row("r-1", "", kUnknown)).id, "accuracy");
  RunRow by_loss = listed_row("r-1", "", kUnknown);
  by_loss.summary.val_loss = 0.5;
  EXPECT_STREQ(judged_field(table, by_loss).id, "loss");
  for (const char* id : {"accuracy", "loss", "train_loss", "size", "compression", "peak", "step_ms", "time"}) {
    table.sort = id;
    EXPECT_STREQ(judged_field(table, baseline).id, id);
  }
  for (const char* id : {"status", "name", "step", "seed", "parent"}) {
    table.sort = id;
    EXPECT_STREQ(judged_field(table, baseline).id, "accuracy");
  }
}

TEST(Difference, SaysHowMuchBetterOrWorse) {
  const RunRow baseline = listed_row("r-1", "", 0.9, 1 << 20);
  const auto of = [&](const char* id, const RunRow& row) { return difference_to(*find_run_field(id), row, baseline); };
  const RunDifference higher = of("accuracy", listed_row("r-2", "", 0.93));
  EXPECT_EQ(higher.delta.text, "+3 points");
  EXPECT_EQ(higher.delta.verdict, Delta::better);
  EXPECT_EQ(of("accuracy", listed_row("r-2", "", 0.85)).delta.verdict, Delta::worse);
  EXPECT_EQ(of("accuracy", listed_row("r-2", "", 0.9)).delta.verdict, Delta::same);
  EXPECT_EQ(of("accuracy", listed_row("r-2", "", kUnknown)).delta.verdict, Delta::unknown);
  const RunDifference larger = of("size", listed_row("r-2", "", 0.9, 3 << 19));
  EXPECT_EQ(larger.delta.text, "+50.0 %");
  EXPECT_EQ(larger.delta.verdict, Delta::worse) << "lower is better";
  RunRow other = listed_row("r-2", "", 0.93);
  other.data_fingerprint = "def";
  EXPECT_STREQ(of("accuracy", other).incomparable, "different data");
  EXPECT_EQ(of("size", other).incomparable, nullptr) << "a size is a size";
  other.summary.step_ms = 5;
  RunRow timed = baseline;
  timed.summary.step_ms = 4;
  other.device = "CUDA";
  EXPECT_STREQ(difference_to(*find_run_field("step_ms"), other, timed).incomparable, "different device");
}

class ListOfRuns : public Clicked {
 protected:
  ListOfRuns() {
    auto list = std::make_shared<RunList>();
    list->loaded = true;
    list->rows = {listed_row("r-1", "", 0.90, 1 << 20), listed_row("r-2", "r-1", 0.93, 3 << 20), listed_row("r-3", "", 0.85, 1 << 19),
                  listed_row("r-4", "r-2", kUnknown)};
    for (size_t i = 0; i < list->rows.size(); ++i) list->rows[i].created = static_cast<double>(i);
    list_ = list;
    ui().runs = list;
  }
  void right_click(const std::string& name) { click(name, ImGuiMouseButton_Right); }
  // Ids as they stand below each other.
  std::string order() {
    for (int i = 0; i < 3; ++i) frame();
    return rows_on_screen(items_);
  }
  std::shared_ptr<RunList> list_;
};

TEST_F(ListOfRuns, ARunIsPinnedAndTheOthersAreMeasuredAgainstIt) {
  EXPECT_FALSE(sees("difference:"));
  right_click("run:r-1");
  click("baseline");
  EXPECT_EQ(ui().run_table.baseline, "r-1");
  EXPECT_EQ(ui().compare.baseline_run()->wanted, "r-1");
  EXPECT_TRUE(sees("difference:r-1:baseline"));
  EXPECT_TRUE(find("difference:r-2:+3 points"));
  EXPECT_TRUE(find("difference:r-3:-5 points"));
  EXPECT_FALSE(find("difference:r-4")) << "not known";
  ui().run_table.sort = "size";
  EXPECT_TRUE(sees("difference:r-2:+200.0 %"));
  EXPECT_TRUE(find("difference:r-3:-50.0 %"));
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  right_click("run:r-1");
  click("baseline");
  EXPECT_EQ(ui().run_table.baseline, "");
  EXPECT_FALSE(sees("difference:"));
}

TEST_F(ListOfRuns, ABaselineThatIsNotInThisStoreIsNone) {
  ui().run_table.baseline = "r-elsewhere";
  EXPECT_TRUE(sees("run:r-1"));
  EXPECT_FALSE(find("difference:"));
  ui().run_table.baseline = "r-1";
  EXPECT_TRUE(sees("difference:r-1:baseline"));
  auto other = std::make_shared<RunList>();
  other->loaded = true;
  other->rows = {listed_row("r-9")};
  ui().runs = other;
  EXPECT_TRUE(sees("run:r-9"));
  EXPECT_FALSE(find("difference:"));
}

TEST_F(ListOfRuns, LineageIsASwitchAmongTheColumns) {
  EXPECT_EQ(order(), "4321") << "the newest first";
  click("Columns");
  click("lineage");
  stage_.press(ImGuiKey_Escape);
  EXPECT_TRUE(ui().run_table.lineage);
  EXPECT_EQ(order(), "3124") << "each fork under its parent";
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
}

TEST_F(ListOfRuns, LineageAndBaselineAreRemembered) {
  const test::Folder folder;
  ui().run_table.lineage = true;
  ui().run_table.baseline = "r-2";
  frame();
  save_preferences(ui(), folder.file("studio.json"));
  UiState later;
  load_preferences(later, folder.file("studio.json"));
  EXPECT_TRUE(later.run_table.lineage);
  EXPECT_EQ(later.run_table.baseline, "r-2");
}

TEST_F(ListOfRuns, AColourBelongsToARunWhereverItIsShown) {
  RunRow& row = list_->rows[0];
  EXPECT_EQ(shown_slot(ui().compare, row), slot_of("r-1")) << "what its id says";
  row.tags = {"good", "color:3"};
  EXPECT_EQ(shown_slot(ui().compare, row), 2) << "what was chosen";
  pick_run(ui().compare, "r-1");
  choose_slot(ui().compare, "r-1", 5);
  EXPECT_EQ(shown_slot(ui().compare, row), 5) << "what it has in the comparison";
  row.tags.clear();
  unpick_run(ui().compare, "r-1");
  EXPECT_EQ(shown_slot(ui().compare, row), 5) << "and keeps";
}

// ---- In a store -----------------------------------------------------------------------------------------------------

class StoredList : public ListOfRuns {
 protected:
  ~StoredList() override { ui().store.reset(); }  // before the folder goes
  std::string write(const std::string& status, const std::string& message, const std::vector<std::string>& sets,
                    const std::string& parent = "") {
    RunStart start;
    start.name = "stored";
    start.config = config_to_json(load_config("demo", sets)).dump();
    start.device = "CUDA device 0";
    start.parent = parent;
    start.fork_step = parent.empty() ? 0 : 7;
    RunWriter writer(folder_.store(), start, test::quick());
    for (int64_t step = 1; step <= 10; ++step) writer.metrics(step, {{"train_loss", 1.0}});
    writer.finish(status, message);
    return writer.run_id();
  }
  void open() {
    ui().store_path = folder_.store();
    ui().store = std::make_unique<StoreClient>(folder_.store(), std::function<void()>{});
    ASSERT_TRUE(stage_.until([&] { return ui().runs->loaded && ui().runs != list_; }));
  }
  test::Folder folder_;
};

TEST_F(StoredList, AColourIsKeptAsATag) {
  const std::string id = write("finished", "", {});
  open();
  const auto tags = [&] { return RunReader(folder_.store()).run(id).tags; };
  set_color(ui(), ui().runs->rows[0], 3);
  ASSERT_TRUE(stage_.until([&] { return ui().runs->rows[0].tags.size() == 1; }));
  EXPECT_EQ(tags(), std::vector<std::string>{"color:4"});
  set_color(ui(), ui().runs->rows[0], 6);
  ASSERT_TRUE(stage_.until([&] { return ui().runs->rows[0].tags == std::vector<std::string>{"color:7"}; }));
  EXPECT_EQ(tags(), std::vector<std::string>{"color:7"}) << "one at a time";
}

TEST_F(StoredList, OneThatFailedForWantOfMemoryIsTriedAgainFromTheMenu) {
  const std::string id =
      write("failed", "out of memory: could not take 3 GiB of GPU memory", {"train.batch=48", "train.device=\"cuda:0\""});
  open();
  right_click("run:" + id);
  click("retry-half");
  ASSERT_TRUE(stage_.until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(stage_.started.config.train.batch, 24);
  EXPECT_EQ(stage_.started.config.train.device, "cuda:0");
  EXPECT_EQ(stage_.started.resume_run + stage_.started.fork_run, "") << "a new run";
  stage_.started = {};
  choose_layout(ui(), "start");
  right_click("run:" + id);
  click("retry-cpu");
  ASSERT_TRUE(stage_.until([&] { return !stage_.started.config.train.device.empty() && stage_.started.config.train.batch == 48; }));
  EXPECT_EQ(stage_.started.config.train.device, "cpu");
}

TEST_F(StoredList, WhatTheListTellsCanBeCopied) {
  const std::string id = write("failed", "out of memory", {"train.batch=48"});
  open();
  right_click("run:" + id);
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  click("copy-message");
  EXPECT_STREQ(ImGui::GetClipboardText(), "out of memory");
  right_click("run:" + id);
  click("copy-cell");
  EXPECT_STREQ(ImGui::GetClipboardText(), "failed") << "what is under the mouse: its status";
  right_click("run:" + id);
  click("copy-values");
  const std::string text = ImGui::GetClipboardText();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << "titles and the run";
  EXPECT_NE(text.find("Name\t"), std::string::npos) << text;
  EXPECT_NE(text.find("stored\t"), std::string::npos) << text;
}

TEST_F(StoredList, ItsBannerOffersTheSame) {
  const std::string id = write("failed", "out of memory", {"train.batch=48"});
  open();
  open_run(ui(), id);
  ASSERT_TRUE(stage_.until([&] { return ui().stored != nullptr; }));
  EXPECT_EQ(ui().stored->snapshot->error_code, static_cast<int>(ErrorCode::memory));
  click("retry-half");
  ASSERT_TRUE(stage_.until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(stage_.started.config.train.batch, 24);
  EXPECT_EQ(stage_.started.store, folder_.store());
}

TEST_F(StoredList, AForkIsForkedAgainWithItsOwnSettings) {
  const std::string parent = write("finished", "", {"train.batch=16"});
  const std::string id = write("failed", "out of memory", {"train.batch=48", "train.lr_core=0.125", "name=the fork"}, parent);
  open();
  retry_run(ui(), id, Retry::half_batch);
  ASSERT_TRUE(stage_.until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(stage_.started.fork_run, parent);
  EXPECT_EQ(stage_.started.at_step, 7);
  RunConfig config = load_config("demo", {"train.batch=16"});
  set_config(config, stage_.started.sets);  // as the session does it
  EXPECT_EQ(config.train.batch, 24);
  EXPECT_EQ(config.train.lr_core, 0.125);
  EXPECT_EQ(config.name, "the fork");
}

TEST_F(StoredList, AnotherFailureIsNoQuestionOfMemory) {
  const std::string id = write("failed", "the data are gone", {});
  const std::string one = write("failed", "out of memory", {"train.batch=1"});
  open();
  right_click("run:" + id);
  EXPECT_TRUE(sees("baseline"));
  EXPECT_FALSE(find("retry-half"));
  stage_.press(ImGuiKey_Escape);
  retry_run(ui(), one, Retry::half_batch);
  ASSERT_TRUE(stage_.until([&] { return !ui().toasts.empty(); }));
  EXPECT_NE(ui().toasts[0].text.find("already 1"), std::string::npos);
  EXPECT_EQ(ui().live, nullptr);
}

}  // namespace
}  // namespace comera::studio
