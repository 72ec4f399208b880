// Opening a store in every state a person may have it in: new, old, newer, foreign, damaged, locked, read-only.
// To add a version: freeze its tables in old_schemas.h, and check here what its migration keeps.
#include "core/store/schema.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "core/store/run_admin.h"
#include "tests/store/old_schemas.h"
#include "tests/store/support.h"

namespace comera {
namespace {

using test::error_of;
using test::Folder;
using test::has;
using test::make_version_1;

TEST(Schema, NewStoreHasVersionAndFolder) {
  Folder folder;
  const std::string path = folder.file("a/b/runs.db");
  const auto db = open_store(path, StoreAccess::create);
  EXPECT_EQ(db->number("PRAGMA user_version"), kSchemaVersion);
  EXPECT_EQ(db->number("PRAGMA application_id"), 0x434F4D45);
  EXPECT_EQ(db->text("PRAGMA journal_mode"), "wal");
  EXPECT_TRUE(check_store(path).empty());
  open_store(path, StoreAccess::create);  // again: nothing to do
  open_store(path, StoreAccess::read);
}

TEST(Schema, MissingStoreIsNotFound) {
  Folder folder;
  for (const auto access : {StoreAccess::read, StoreAccess::write})
    EXPECT_TRUE(has(error_of([&] { open_store(folder.store(), access); }), {test::code(ErrorCode::not_found)}));
  EXPECT_FALSE(std::filesystem::exists(folder.store()));
}

TEST(Schema, MigratesVersion1AfterABackup) {
  Folder folder;
  make_version_1(folder.store());
  RunReader reader(folder.store());  // reading is enough to migrate
  const auto runs = reader.runs();
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].name, "old");
  EXPECT_EQ(runs[0].active_s, 60);
  EXPECT_EQ(runs[0].seed, 5);
  EXPECT_EQ(runs[0].tags, std::vector<std::string>{"a"});
  EXPECT_EQ(runs[1].active_s, 0);
  EXPECT_EQ(reader.config("r-000001"), R"({"x":1})");
  EXPECT_EQ(reader.metric("r-000001", "loss").values, std::vector<double>{0.5});
  EXPECT_EQ(reader.query("SELECT value FROM run_metrics WHERE run_name = 'old'").rows.at(0).at(0).text, "0.5");

  Database backup(folder.store() + ".v1-backup", Database::Mode::read);
  EXPECT_EQ(backup.number("PRAGMA user_version"), 1);
  EXPECT_EQ(backup.number("SELECT count(*) FROM runs"), 2);
  // The same tables as a new store, but for white space: one schema, however it came to be.
  Folder fresh;
  open_store(fresh.store(), StoreAccess::create);
  const std::string schema =
      "SELECT group_concat(type || name || replace(replace(coalesce(sql, ''), char(10), ''), ' ', '')) FROM (SELECT * FROM sqlite_master "
      "ORDER BY type, name)";
  EXPECT_EQ(Database(folder.store(), Database::Mode::read).text(schema), Database(fresh.store(), Database::Mode::read).text(schema));
  test::make_run(folder.store(), "new one");
  EXPECT_EQ(reader.runs().size(), 3u);
}

// Development builds of this version had another index.
TEST(Schema, TheIndexOfTheListIsMadeWhereItIsMissing) {
  Folder folder;
  test::make_run(folder.store(), "one");
  const std::string indexes = "SELECT group_concat(name) FROM sqlite_master WHERE name LIKE 'runs_%' AND type = 'index'";
  Database(folder.store(), Database::Mode::write).run("DROP INDEX runs_list; CREATE INDEX runs_by_time ON runs(created)");
  const auto read = open_store(folder.store(), StoreAccess::read);
  EXPECT_EQ(read->text(indexes), "runs_by_time") << "who reads changes nothing";
  EXPECT_EQ(RunReader(folder.store()).runs().size(), 1u);
  {
    const auto held = open_store(folder.store(), StoreAccess::read);
    Database other(folder.store(), Database::Mode::write);
    const Transaction writes(other);
    open_store(folder.store(), StoreAccess::write, 0);
    EXPECT_EQ(held->text(indexes), "runs_by_time") << "another time, and no error now";
  }
  open_store(folder.store(), StoreAccess::write);
  EXPECT_EQ(read->text(indexes), "runs_list");
  EXPECT_EQ(RunReader(folder.store()).runs().size(), 1u);
}

TEST(Schema, SecondBackupDoesNotReplaceTheFirst) {
  Folder folder;
  test::write_text(folder.store() + ".v1-backup", "mine");
  make_version_1(folder.store());
  open_store(folder.store(), StoreAccess::write);
  EXPECT_EQ(test::read_text(folder.store() + ".v1-backup"), "mine");
  EXPECT_TRUE(std::filesystem::exists(folder.store() + ".v1-backup-2"));
}

TEST(Schema, NewerVersionIsReadAndNeverWritten) {
  Folder folder;
  const std::string id = test::make_run(folder.store(), "a");
  {
    const auto db = open_store(folder.store(), StoreAccess::write);
    db->run(
        "ALTER TABLE runs ADD COLUMN mood TEXT NOT NULL DEFAULT 'calm'; CREATE TABLE moods(mood TEXT); PRAGMA user_version = 99;"
        "PRAGMA wal_checkpoint(TRUNCATE)");
  }
  const std::string before = test::read_text(folder.store());
  test::write_text(folder.store() + ".spill-r-000000-abcdefgh.jsonl", "{}\n");  // would be merged into one of this version
  {
    const RunReader reader(folder.store());
    ASSERT_EQ(reader.runs().size(), 1u);
    EXPECT_EQ(reader.metric(id, "loss").values.size(), 3u);
    EXPECT_TRUE(has(reader.read_only(), {"newer version", "schema 99", "knows " + std::to_string(kSchemaVersion)}));
  }
  EXPECT_EQ(why_newer(folder.store()), RunReader(folder.store()).read_only());
  EXPECT_EQ(fault_of(folder.store()), StoreFault::none);
  for (const auto access : {StoreAccess::write, StoreAccess::create})
    EXPECT_TRUE(has(error_of([&] { open_store(folder.store(), access); }),
                    {test::code(ErrorCode::storage), "newer version", "schema 99", "knows " + std::to_string(kSchemaVersion)}));
  EXPECT_TRUE(has(error_of([&] { RunWriter(folder.store(), test::start_of("a")); }), {"schema 99"}));
  EXPECT_TRUE(has(error_of([&] { RunAdmin(folder.store()).archive(id); }), {"schema 99"}));
  EXPECT_EQ(query_store(folder.store(), "SELECT mood FROM runs").rows.at(0).at(0).text, "calm");
  EXPECT_EQ(test::read_text(folder.store()), before);
  EXPECT_FALSE(std::filesystem::exists(folder.store() + ".v99-backup"));
}

// Everything that a reader asks a store for, of each run.
void read_all(const std::string& store) {
  const RunReader reader(store);
  for (const RunRow& listed : reader.runs(true)) {
    const std::string id = reader.find(listed.id).id;
    reader.config(id);
    for (const std::string& name : reader.metric_names(id)) {
      reader.metric(id, name);
      reader.metric_around(id, name, 1, 5);
    }
    reader.metrics_at(id, 1);
    reader.wall_times(id);
    reader.last_step(id);
    reader.each_metric(id, [](int64_t, double, const std::string&, double) {});
    reader.ranks_at(id, 1);
    reader.rank_history(id);
    reader.memory(id);
    reader.events(id);
    reader.checkpoints(id);
  }
}

// Takes each column away from a newer store: either nothing needs it, or it is named and nothing is half read.
TEST(Schema, NewerVersionThatLacksSomethingReadIsRefusedByName) {
  Folder folder;
  test::make_run(folder.store(), "a");
  open_store(folder.store(), StoreAccess::write)->run("DROP VIEW run_metrics; PRAGMA user_version = 99");
  std::vector<std::pair<std::string, std::string>> columns;
  {
    Database db(folder.store(), Database::Mode::read);
    Statement all(db, "SELECT t.name, c.name FROM sqlite_master t, pragma_table_info(t.name) c WHERE t.type = 'table'");
    while (all.step()) columns.emplace_back(all.text(0), all.text(1));
  }
  ASSERT_GT(columns.size(), 50u);
  std::vector<std::string> not_read;
  for (const auto& [table, column] : columns) {
    const auto rename = [&, &table = table](const std::string& from, const std::string& to) {
      Database(folder.store(), Database::Mode::write).run("ALTER TABLE " + table + " RENAME COLUMN " + from + " TO " + to);
    };
    rename(column, "renamed");
    const std::string error = error_of([&] { read_all(folder.store()); });
    if (error.empty())
      not_read.push_back(table + "." + column);
    else
      EXPECT_TRUE(has(error, {test::code(ErrorCode::storage), "newer version", "missing: " + table + "." + column}));
    EXPECT_EQ(fault_of(folder.store()), error.empty() ? StoreFault::none : StoreFault::newer);
    rename("renamed", column);
  }
  EXPECT_EQ(not_read, (std::vector<std::string>{"runs.owner", "spills.token"}));
  Database(folder.store(), Database::Mode::write).run("ALTER TABLE ranks RENAME TO ranks_3");
  EXPECT_TRUE(has(error_of([&] { RunReader reader(folder.store()); }), {"missing: the table ranks", "comera query"}));
  EXPECT_EQ(query_store(folder.store(), "SELECT count(*) FROM runs").rows.at(0).at(0).text, "1");  // free queries still work
}

TEST(Schema, ForeignEmptyAndTextFilesAreLeftAlone) {
  Folder folder;
  { Database(folder.file("foreign.db"), Database::Mode::create).run("CREATE TABLE music(a)"); }
  test::write_text(folder.file("empty.db"), "");
  test::write_text(folder.file("text.db"), std::string(4096, 'x'));
  for (const char* name : {"foreign.db", "text.db"}) {
    const std::string before = test::read_text(folder.file(name));
    for (const auto access : {StoreAccess::read, StoreAccess::write, StoreAccess::create})
      EXPECT_TRUE(has(error_of([&] { open_store(folder.file(name), access); }), {test::code(ErrorCode::storage)})) << name;
    EXPECT_EQ(test::read_text(folder.file(name)), before) << name;
  }
  EXPECT_TRUE(has(error_of([&] { open_store(folder.file("foreign.db"), StoreAccess::create); }), {"another program"}));
  EXPECT_TRUE(has(error_of([&] { open_store(folder.file("text.db"), StoreAccess::create); }), {"not a database", "restore a backup"}));
  EXPECT_TRUE(has(error_of([&] { open_store(folder.file("empty.db"), StoreAccess::read); }), {"it is empty"}));
  open_store(folder.file("empty.db"), StoreAccess::create);  // as left by a program killed while it created it
}

TEST(Schema, DamageIsToldAndNeverOverwritten) {
  Folder folder;
  for (int i = 0; i < 30; ++i) test::make_run(folder.store(), "run " + std::to_string(i), 20);
  { Database(folder.store(), Database::Mode::write).text("PRAGMA journal_mode = DELETE"); }  // all pages in one file
  std::string bytes = test::read_text(folder.store());
  for (size_t i = 4096; i < bytes.size(); ++i) bytes[i] = static_cast<char>(bytes[i] ^ 0x5a);  // all but the first page
  test::write_text(folder.store(), bytes);
  EXPECT_FALSE(check_store(folder.store()).empty());
  EXPECT_TRUE(
      has(error_of([&] { RunReader(folder.store()).runs(); }), {test::code(ErrorCode::storage), "malformed", "comera runs salvage"}));
  EXPECT_TRUE(has(error_of([&] { RunWriter(folder.store(), test::start_of("a")); }), {test::code(ErrorCode::storage), "malformed"}));
  // The header page counts changes of the journal mode; the pages with rows are as they were.
  EXPECT_EQ(test::read_text(folder.store()).substr(4096), bytes.substr(4096));
}

TEST(Schema, MissingTablesAreDamage) {
  Folder folder;
  { open_store(folder.store(), StoreAccess::create)->run("DROP VIEW run_metrics; DROP TABLE metrics"); }
  EXPECT_TRUE(has(error_of([&] { open_store(folder.store(), StoreAccess::write); }), {"damaged", "tables are missing"}));
}

TEST(Schema, LockedByAnotherConnection) {
  Folder folder;
  const std::string id = test::make_run(folder.store(), "a");
  const auto other = open_store(folder.store(), StoreAccess::write);
  Transaction lock(*other);
  EXPECT_EQ(RunReader(folder.store()).runs().size(), 1u);  // readers do not care
  const auto mine = open_store(folder.store(), StoreAccess::write, 0.05);
  EXPECT_TRUE(has(error_of([&] { Transaction transaction(*mine); }), {test::code(ErrorCode::storage), "locked", "another program"}));
  EXPECT_TRUE(is_being_written(folder.store(), 0));
  EXPECT_EQ(fault_of(folder.store()), StoreFault::none) << "it can be read";
}

TEST(Schema, OneThatNobodyMayReadIsLocked) {
  Folder folder;
  test::make_run(folder.store(), "a");
  EXPECT_FALSE(is_being_written(folder.store(), 0));
  {
    Database other(folder.store(), Database::Mode::write);
    other.text("PRAGMA locking_mode = EXCLUSIVE");
    other.run("BEGIN EXCLUSIVE; UPDATE runs SET notes = 'x'");
    EXPECT_EQ(fault_of(folder.store()), StoreFault::locked);
    EXPECT_TRUE(is_being_written(folder.store(), 0));
    EXPECT_TRUE(has(error_of([&] { RunReader(folder.store(), 0.05); }), {test::code(ErrorCode::storage), "locked"}));
  }
  EXPECT_EQ(fault_of(folder.store()), StoreFault::none);
  EXPECT_EQ(RunReader(folder.store()).runs().at(0).notes, "");
}

TEST(Schema, LookingWhetherItIsWrittenChangesNoFile) {
  Folder folder;
  test::make_run(folder.store(), "a");
  const RunReader reader(folder.store());
  const auto files = [&] {
    std::string text = test::read_text(folder.store());
    for (const auto& file : std::filesystem::directory_iterator(folder.path()))
      text += file.path().filename().string() + " " + std::to_string(file.file_size()) + "\n";
    return text;
  };
  const std::string before = files();
  EXPECT_FALSE(is_being_written(folder.store(), 0));
  EXPECT_EQ(files(), before);
}

// Runs `action` in a child without root's rights; 0 = it returned true.
int as_nobody(const std::function<bool()>& action) {
  const pid_t child = ::fork();
  if (child == 0) {
    int status = 2;
    try {
      if (::seteuid(65534) == 0) status = action() ? 0 : 1;
    } catch (...) {
      status = 3;
    }
    ::_exit(status);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(Schema, ReadOnlyFileAndFolder) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to give rights away";
  Folder folder;
  const std::string store = folder.store();
  test::make_run(store, "a");
  ::chmod(folder.path().c_str(), 0755);
  ::chmod(store.c_str(), 0444);
  EXPECT_EQ(why_read_only(store), "") << "root may";
  EXPECT_EQ(as_nobody([&] { return why_read_only(store) == "the file may not be written"; }), 0);
  EXPECT_EQ(as_nobody([&] { return RunReader(store).runs().size() == 1; }), 0) << "a store in a read-only folder can be read";
  EXPECT_EQ(as_nobody([&] {
              return bool(has(error_of([&] { RunWriter(store, test::start_of("b")); }),
                              {test::code(ErrorCode::storage), "readonly", "permissions"}));
            }),
            0);
  Folder old;
  make_version_1(old.store());
  ::chmod(old.path().c_str(), 0755);
  ::chmod(old.store().c_str(), 0444);
  EXPECT_EQ(as_nobody([&] {
              return bool(has(error_of([&] { RunReader reader(old.store()); }), {"older version", "cannot be migrated"}));
            }),
            0);
}

TEST(Schema, ManyMakeTheSameStoreAtOnce) {
  const Folder folder;
  for (int round = 0; round < 20; ++round) {
    const std::string store = folder.file("store-" + std::to_string(round) + ".db");
    std::atomic<int> ready = 0, made = 0;
    std::vector<std::jthread> programs;
    for (int i = 0; i < 4; ++i)
      programs.emplace_back([&] {
        for (++ready; ready < 4;) std::this_thread::yield();
        try {
          open_store(store, StoreAccess::create);
          ++made;
        } catch (const Error& error) {
          ADD_FAILURE() << error.what() << ": " << error.why();
        }
      });
    programs.clear();
    EXPECT_EQ(made, 4);
  }
}

}  // namespace
}  // namespace comera
