// Databases that are missing, newer, damaged, no database, or may only be read.
#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "core/store/run_writer.h"
#include "core/store/sqlite.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

class StoreTrouble : public Clicked {
 protected:
  ~StoreTrouble() override {
    ui().store.reset();  // before the folder goes
    ui().dialogs = {};
  }
  std::string path(const char* name = "runs.db") const { return folder_.file(name); }
  void make_store() {
    RunWriter writer(path(), test::start_of("kept"), test::quick());
    for (int64_t step = 1; step <= 3000; ++step) writer.metrics(step, {{"train_loss", 1.0}});
    writer.finish("finished");
  }
  void open() {
    ui().store = std::make_unique<StoreClient>(path(), std::function<void()>{});
    ui().store_path = path();
    ASSERT_TRUE(stage_.until([&] { return ui().runs->loaded; }));
  }
  static std::string why_not(const UiState& ui, const std::string& id) {
    for (const Action& action : actions(ui))
      if (action.id == id) return action.why_not;
    return "no such action";
  }
  test::Folder folder_;
};

TEST_F(StoreTrouble, OneThatIsMissingIsSaidToBeAndAnotherOneOffered) {
  ui().settings.store = path();  // it was chosen, and is gone
  open();
  EXPECT_TRUE(ui().runs->missing);
  click("choose-store");
  EXPECT_EQ(ui().dialogs.open, Dialog::browser);
  // The panels say what is missing, and nothing breaks.
  ui().dialogs.open = Dialog::none;
  choose_layout(ui(), "train");
  for (int i = 0; i < 3; ++i) frame();
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
}

TEST_F(StoreTrouble, OneThatIsMissingIsMadeOnRequest) {
  open();
  ASSERT_TRUE(ui().runs->missing);
  EXPECT_FALSE(std::filesystem::exists(path())) << "looking does not make it";
  click("create-store");
  ASSERT_TRUE(stage_.until([&] { return !ui().runs->missing; }));
  EXPECT_EQ(fault_of(path()), StoreFault::none);
  EXPECT_TRUE(sees("Run the demo"));
  EXPECT_FALSE(find("create-store"));
}

TEST_F(StoreTrouble, OneThatCannotBeMadeThereSaysWhy) {
  test::write_text(path("a-file"), "");
  ui().store = std::make_unique<StoreClient>(path("a-file/runs.db"), std::function<void()>{});
  ASSERT_TRUE(stage_.until([&] { return ui().runs->loaded; }));
  click("create-store");
  ASSERT_TRUE(stage_.until([&] { return !ui().toasts.empty(); }));
  EXPECT_EQ(ui().toasts[0].level, Level::error);
  EXPECT_NE(ui().toasts[0].text.find("a-file"), std::string::npos) << ui().toasts[0].text;
}

TEST_F(StoreTrouble, ANewerOneIsShownAndTakesNothing) {
  make_store();
  { Database(path(), Database::Mode::write).run("ALTER TABLE runs ADD COLUMN mood TEXT; PRAGMA user_version = 99"); }
  const std::string before = test::read_text(path());
  open();
  EXPECT_EQ(ui().runs->fault, StoreFault::none);
  ASSERT_EQ(ui().runs->rows.size(), 1u);
  EXPECT_TRUE(sees("says:This database is read-only: a newer version of this program wrote it (schema 99, this program knows"));
  EXPECT_FALSE(find("Run the demo"));
  ui().run_table.selected = {ui().runs->rows[0].id};
  EXPECT_NE(why_not(ui(), "runs.star").find("newer version"), std::string::npos) << why_not(ui(), "runs.star");
  open_run(ui(), ui().runs->rows[0].id);
  ASSERT_TRUE(stage_.until([&] { return ui().stored != nullptr; }));
  EXPECT_EQ(ui().stored->metric("train_loss").size(), 3000u);
  EXPECT_EQ(test::read_text(path()), before);
}

TEST_F(StoreTrouble, ANewerOneThatCannotBeReadIsLeftAsItIs) {
  make_store();
  { Database(path(), Database::Mode::write).run("ALTER TABLE ranks RENAME TO ranks_3; PRAGMA user_version = 99"); }
  const std::string before = test::read_text(path());
  open();
  EXPECT_EQ(ui().runs->fault, StoreFault::newer);
  EXPECT_TRUE(sees("says:" + path() + " was written by a newer version"));
  EXPECT_TRUE(find("Open another ..."));
  EXPECT_FALSE(find("Salvage ...")) << "it is not damaged";
  EXPECT_EQ(test::read_text(path()), before);
}

TEST_F(StoreTrouble, WhatIsNoDatabaseIsSaidToBeNone) {
  test::write_text(path(), std::string(9000, 'x'));
  open();
  EXPECT_EQ(ui().runs->fault, StoreFault::foreign);
  EXPECT_TRUE(sees("Open another ..."));
  EXPECT_FALSE(find("Salvage ..."));
}

TEST_F(StoreTrouble, ADamagedOneIsSalvagedIntoACopyThatCanBeOpened) {
  make_store();
  {
    Database db(path(), Database::Mode::write);
    db.text("PRAGMA wal_checkpoint(TRUNCATE)");
    // The page of the index by which runs are listed.
    Statement page(db, "SELECT rootpage FROM sqlite_master WHERE name = 'runs_list'");
    ASSERT_TRUE(page.step());
    const auto at = static_cast<size_t>((page.integer(0) - 1) * db.number("PRAGMA page_size"));
    page.reset();
    std::string bytes = test::read_text(path());
    bytes.replace(at, 64, 64, '\xff');
    test::write_text(path(), bytes);
  }
  const std::string before = test::read_text(path());
  open();
  ASSERT_EQ(ui().runs->fault, StoreFault::damaged) << ui().runs->problem;
  click("Salvage ...");
  ASSERT_EQ(ui().dialogs.open, Dialog::salvage);
  click("Salvage into a copy");
  ASSERT_TRUE(stage_.until([&] { return ui().dialogs.salvager && ui().dialogs.salvager->latest(); }));
  EXPECT_TRUE(sees("says:1 run with 6,0"));
  EXPECT_EQ(test::read_text(path()), before) << "the damaged one is not touched";
  click("Open the copy");
  ASSERT_TRUE(stage_.until([&] { return ui().runs->loaded && ui().runs->rows.size() == 1; }));
  EXPECT_EQ(ui().runs->rows[0].name, "kept");
  EXPECT_EQ(ui().store_path, path("runs.db.salvaged.db"));
}

TEST_F(StoreTrouble, OneThatNobodyMayReadOpensWhenThatEnds) {
  make_store();
  auto other = std::make_unique<Database>(path(), Database::Mode::write);
  other->text("PRAGMA locking_mode = EXCLUSIVE");
  other->run("BEGIN EXCLUSIVE; UPDATE runs SET notes = 'x'");
  open();
  EXPECT_EQ(ui().runs->fault, StoreFault::locked) << ui().runs->problem;
  EXPECT_TRUE(sees("Try again"));
  EXPECT_TRUE(find("Open another ..."));
  EXPECT_FALSE(find("Salvage ...")) << "it is not damaged";
  EXPECT_FALSE(find("Run the demo"));
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  const int reads = ui().store->list_reads();
  click("Try again");
  ASSERT_TRUE(stage_.until([&] { return ui().store->list_reads() > reads; }));
  EXPECT_EQ(ui().runs->fault, StoreFault::locked);
  other.reset();
  ASSERT_TRUE(stage_.until([&] { return ui().runs->rows.size() == 1; })) << "by itself";
  EXPECT_EQ(ui().runs->read_only, "");
  EXPECT_TRUE(sees("Run the demo"));
}

TEST_F(StoreTrouble, OneThatAnotherProgramIsWritingIsReadMeanwhile) {
  make_store();
  Database other(path(), Database::Mode::write);
  {
    const Transaction writing(other);
    open();
    ASSERT_EQ(ui().runs->rows.size(), 1u);
    EXPECT_TRUE(sees("says:This database is read-only: another program is writing it"));
    EXPECT_FALSE(find("Run the demo"));
  }
  ASSERT_TRUE(stage_.until([&] { return ui().runs->read_only.empty(); })) << "by itself";
  EXPECT_TRUE(sees("Run the demo"));
}

// Looking is allowed, and all that would write says why it cannot.
TEST_F(StoreTrouble, OneThatMayOnlyBeReadTakesNothing) {
  make_store();
  open();
  EXPECT_EQ(why_not(ui(), "run.toggle"), "") << "it can be written";
  auto list = std::make_shared<RunList>(*ui().runs);
  list->read_only = "the file may not be written";
  ui().store.reset();  // else it is looked at again
  ui().runs = list;
  ui().selected_run = list->rows[0].id;
  ui().run_table.selected = {list->rows[0].id};
  EXPECT_TRUE(sees("says:This database is read-only: the file may not be written"));
  EXPECT_TRUE(find("says:read-only"));
  for (const char* name : {"Run the demo", "Start", "Resume"}) EXPECT_FALSE(find(name)) << name;
  EXPECT_TRUE(find("Open")) << "looking is allowed";
  for (const char* id : {"run.toggle", "runs.edit", "runs.star", "runs.archive", "runs.purge"})
    EXPECT_NE(why_not(ui(), id).find("is read-only"), std::string::npos) << id << ": " << why_not(ui(), id);
  EXPECT_EQ(why_not(ui(), "runs.compare"), "");
  choose_layout(ui(), "train");
  EXPECT_TRUE(sees("says:read-only"));
  EXPECT_FALSE(find("start")) << "nothing can be started";
  EXPECT_FALSE(start_preset(ui(), "demo"));
  EXPECT_EQ(ui().toasts.size(), 1u) << "and it says why";
}

}  // namespace
}  // namespace comera::studio
