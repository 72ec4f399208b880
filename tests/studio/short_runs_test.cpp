// Runs that ended after a few steps: told by a word that nobody stored, filtered by it, and hidden with one click.
#include "app/studio/actions.h"
#include "app/studio/preferences.h"
#include "app/studio/runs/run_actions.h"
#include "app/studio/runs/run_fields.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"
#include "tests/studio/run_rows.h"

namespace comera::studio {
namespace {

RunRow short_row(const std::string& id, const std::string& status, int64_t step) {
  RunRow row;
  row.id = id;
  row.name = "run of " + status;
  row.status = status;
  row.device = "CPU, 2 threads";
  row.summary.step = step;
  row.summary.val_accuracy = 0.5;
  return row;
}

std::shared_ptr<RunList> short_list() {
  auto list = std::make_shared<RunList>();
  list->loaded = true;
  list->rows = {short_row("r-1", "finished", 100),  short_row("r-2", "failed", 3),    short_row("r-3", "running", 2),
                short_row("r-4", "interrupted", 0), short_row("r-5", "stopped", 104), short_row("r-6", "finished", 1)};
  list->rows[4].parent = "r-1";  // four steps of its own
  list->rows[4].fork_step = 100;
  list->rows[5].tags = {"imported"};
  for (size_t i = 0; i < list->rows.size(); ++i) list->rows[i].created = 1000.0 - static_cast<double>(i);
  return list;
}

std::string fitting_short(const std::string& text) { return fitting_rows(*short_list(), text); }

TEST(ShortRun, IsOneThatEndedAfterAFewSteps) {
  for (const auto& [status, step, brief] :
       {std::tuple("finished", 9, true), {"finished", 10, false}, {"failed", 0, true}, {"running", 0, false}, {"stopped", 1, true}})
    EXPECT_EQ(is_short(short_row("r-1", status, step)), brief) << status << " at " << step;
  RunRow fork = short_row("r-2", "stopped", 2005);
  EXPECT_FALSE(is_short(fork));
  fork.parent = "r-1";
  fork.fork_step = 2000;
  EXPECT_TRUE(is_short(fork)) << "the other steps are its parent's";
  RunRow model = short_row("r-3", "finished", 0);
  model.device = "imported";
  EXPECT_FALSE(is_short(model)) << "it was trained elsewhere";
}

TEST(ShortRun, IsToldAmongTheTagsUntilItGoesOn) {
  RunRow row = short_row("r-1", "stopped", 4);
  row.tags = {"good"};
  EXPECT_EQ(all_tags(row), (std::vector<std::string>{"good", "short"}));
  EXPECT_TRUE(has_tag(row, "short"));
  EXPECT_EQ(row.tags.size(), 1u) << "nothing is stored";
  row.summary.step = 50;
  EXPECT_EQ(all_tags(row), (std::vector<std::string>{"good"}));
  EXPECT_FALSE(has_tag(row, "short"));
  row.tags = {"short"};  // by hand
  EXPECT_EQ(all_tags(row), (std::vector<std::string>{"short"}));
  row.summary.step = 4;
  EXPECT_EQ(all_tags(row).size(), 1u) << "once";
}

TEST(ShortRun, IsAWordOfTheFilter) {
  EXPECT_EQ(fitting_short("tag:short"), "245");
  EXPECT_EQ(fitting_short("-tag:short"), "136");
  EXPECT_EQ(fitting_short("tag!=short"), "136");
  EXPECT_EQ(fitting_short("not tag:short"), "136");
  EXPECT_EQ(fitting_short("short"), "245");
  EXPECT_EQ(fitting_short("/^short$/"), "245");
  EXPECT_EQ(fitting_short("tag:Short status:failed"), "2");
  EXPECT_EQ(fitting_short("-status:failed tag:short"), "45") << "before every field";
  EXPECT_EQ(fitting_short("-accuracy>0.9 and -tag:imported"), "12345");
  EXPECT_TRUE(RunFilter("-tag:short").asks_for_short());
  EXPECT_FALSE(RunFilter("tag:good").asks_for_short());
  EXPECT_NE(RunFilter("-acuracy>0.9").problem().find("accuracy"), std::string::npos);
  EXPECT_EQ(RunFilter("- -: -").problem().empty(), false);
}

class ShortRuns : public Clicked {
 protected:
  ShortRuns() { ui().runs = list_ = short_list(); }
  std::string order() {
    for (int i = 0; i < 3; ++i) frame();
    return rows_on_screen(items_);
  }
  std::shared_ptr<RunList> list_;
};

TEST_F(ShortRuns, AreHiddenAndShownWithAClick) {
  EXPECT_EQ(order(), "123456");
  EXPECT_EQ(ui().run_table.short_runs, 3u);
  click("hide-short");
  EXPECT_TRUE(ui().run_table.hide_short);
  EXPECT_EQ(order(), "136");
  // A filter that names them decides by itself.
  ui().run_table.filter = "tag:short";
  EXPECT_EQ(order(), "245");
  ui().run_table.filter.clear();
  EXPECT_EQ(order(), "136");
  click("hide-short");
  EXPECT_EQ(order(), "123456");
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
}

TEST_F(ShortRuns, AreNotSpokenOfWhereThereAreNone) {
  auto list = std::make_shared<RunList>(*list_);
  list->rows.resize(1);
  ui().runs = list;
  EXPECT_TRUE(sees("run:r-1"));
  EXPECT_FALSE(find("hide-short"));
  EXPECT_FALSE(find("short:"));
  ui().run_table.hide_short = true;
  EXPECT_EQ(order(), "1");
}

TEST_F(ShortRuns, AreSaidBehindTheirNamesOrInTheColumnOfTags) {
  EXPECT_TRUE(sees("short:r-2"));
  EXPECT_FALSE(find("short:r-1"));
  ui().run_table.toggled_columns = {"tag"};
  EXPECT_FALSE(sees("short:r-2")) << "there it is said already";
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
}

TEST_F(ShortRuns, WhereAllAreHiddenTheWayBackIsInSight) {
  auto list = std::make_shared<RunList>(*list_);
  list->rows = {list->rows[1], list->rows[3]};
  ui().runs = list;
  ui().run_table.hide_short = true;
  EXPECT_EQ(order(), "");
  click("show-short");
  EXPECT_EQ(order(), "24");
}

TEST_F(ShortRuns, TheWordIsNotGivenByHand) {
  set_tag(ui(), {"r-1"}, kShort, true);
  ASSERT_EQ(ui().toasts.size(), 1u);
  EXPECT_EQ(ui().toasts[0].level, Level::info);
}

TEST_F(ShortRuns, FitIntoEveryWindow) {
  for (const auto& [size, scale] : {std::pair(ImVec2(960, 600), 1.0f), std::pair(ImVec2(960, 600), 2.0f), std::pair(ImVec2(960, 600), 3.0f),
                                    std::pair(ImVec2(1920, 1080), 1.5f)}) {
    stage_.resize(size, scale);
    for (const bool hidden : {false, true}) {
      ui().run_table.hide_short = hidden;
      stage_.frames(5);
      EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{}) << size.x << " x " << scale;
    }
  }
}

TEST_F(ShortRuns, HidingThemIsKept) {
  const test::Folder folder;
  frame();
  ui().run_table.hide_short = true;
  save_preferences(ui(), folder.file("studio.json"));
  UiState later;
  load_preferences(later, folder.file("studio.json"));
  EXPECT_TRUE(later.run_table.hide_short);
  test::write_text(folder.file("studio.json"), R"({"hide_short": "maybe"})");
  UiState garbage;
  load_preferences(garbage, folder.file("studio.json"));
  EXPECT_FALSE(garbage.run_table.hide_short);
}

}  // namespace
}  // namespace comera::studio
