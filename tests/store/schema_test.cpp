// Opening a store in every state a person may have it in: new, old, newer, foreign, damaged, locked, read-only.
// To add a version: freeze its tables here as kVersionN, and check what its migration keeps.
#include "core/store/schema.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "tests/store/support.h"

namespace comera {
namespace {

using test::error_of;
using test::Folder;
using test::has;

// As version 1 wrote it: no active_s. Never change this text.
constexpr const char* kVersion1 = R"(
CREATE TABLE runs(
  run INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, name TEXT NOT NULL, created REAL NOT NULL, status TEXT NOT NULL,
  message TEXT NOT NULL DEFAULT '', pid INTEGER NOT NULL DEFAULT 0, boot_id TEXT NOT NULL DEFAULT '', owner TEXT NOT NULL DEFAULT '',
  heartbeat REAL NOT NULL DEFAULT 0, seed INTEGER NOT NULL DEFAULT 0, device TEXT NOT NULL DEFAULT '',
  data_fingerprint TEXT NOT NULL DEFAULT '', parent TEXT NOT NULL DEFAULT '', fork_step INTEGER NOT NULL DEFAULT 0,
  step INTEGER NOT NULL DEFAULT 0, total_steps INTEGER NOT NULL DEFAULT 0, stage TEXT NOT NULL DEFAULT '',
  train_loss REAL, val_loss REAL, val_accuracy REAL, entries REAL, bytes REAL, dense_bytes REAL, compression REAL, peak_bytes REAL,
  step_ms REAL, tags TEXT NOT NULL DEFAULT '[]', notes TEXT NOT NULL DEFAULT '', archived INTEGER NOT NULL DEFAULT 0,
  config TEXT NOT NULL DEFAULT '{}');
CREATE INDEX runs_by_time ON runs(created);
CREATE TABLE metric_names(metric INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE metrics(run INTEGER NOT NULL, metric INTEGER NOT NULL, step INTEGER NOT NULL, value REAL,
  PRIMARY KEY(run, metric, step)) WITHOUT ROWID;
CREATE TABLE steps(run INTEGER NOT NULL, step INTEGER NOT NULL, wall_time REAL NOT NULL, PRIMARY KEY(run, step)) WITHOUT ROWID;
CREATE TABLE ranks(run INTEGER NOT NULL, layer TEXT NOT NULL, bond INTEGER NOT NULL, step INTEGER NOT NULL, rank INTEGER NOT NULL,
  PRIMARY KEY(run, layer, bond, step)) WITHOUT ROWID;
CREATE TABLE memory(run INTEGER NOT NULL, purpose TEXT NOT NULL, step INTEGER NOT NULL, bytes INTEGER NOT NULL,
  PRIMARY KEY(run, purpose, step)) WITHOUT ROWID;
CREATE TABLE events(run INTEGER NOT NULL, seq INTEGER NOT NULL, step INTEGER NOT NULL, kind TEXT NOT NULL, time REAL NOT NULL,
  body TEXT NOT NULL, PRIMARY KEY(run, seq)) WITHOUT ROWID;
CREATE TABLE checkpoints(run INTEGER NOT NULL, step INTEGER NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL, kind TEXT NOT NULL,
  time REAL NOT NULL, PRIMARY KEY(run, step)) WITHOUT ROWID;
CREATE TABLE spills(token TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE VIEW run_metrics AS
  SELECT runs.id AS id, runs.name AS run_name, metric_names.name AS metric, metrics.step AS step, steps.wall_time AS wall_time,
         metrics.value AS value
  FROM runs JOIN metrics USING(run) JOIN metric_names USING(metric) LEFT JOIN steps ON steps.run = metrics.run AND steps.step = metrics.step;
INSERT INTO runs(id, name, created, status, heartbeat, seed, tags, config) VALUES('r-000001', 'old', 1000, 'finished', 1060, 5, '["a"]', '{"x":1}');
INSERT INTO runs(id, name, created, status, heartbeat) VALUES('r-000002', 'older', 900, 'running', 800);
INSERT INTO metric_names VALUES(3, 'loss');
INSERT INTO metrics VALUES(1, 3, 10, 0.5);
INSERT INTO steps VALUES(1, 10, 1010);
PRAGMA application_id = 1129270597;
PRAGMA user_version = 1;
)";

void make_version_1(const std::string& path) {
  Database db(path, Database::Mode::create);
  db.text("PRAGMA journal_mode = WAL");
  db.run(kVersion1);
}

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
  // The same tables as a new store, word for word: one schema, however it came to be.
  Folder fresh;
  open_store(fresh.store(), StoreAccess::create);
  const std::string schema = "SELECT group_concat(type || name || coalesce(sql, ''), char(10)) FROM (SELECT * FROM sqlite_master ORDER BY type, name)";
  EXPECT_EQ(Database(folder.store(), Database::Mode::read).text(schema), Database(fresh.store(), Database::Mode::read).text(schema));
  test::make_run(folder.store(), "new one");
  EXPECT_EQ(reader.runs().size(), 3u);
}

TEST(Schema, SecondBackupDoesNotReplaceTheFirst) {
  Folder folder;
  test::write_text(folder.store() + ".v1-backup", "mine");
  make_version_1(folder.store());
  open_store(folder.store(), StoreAccess::write);
  EXPECT_EQ(test::read_text(folder.store() + ".v1-backup"), "mine");
  EXPECT_TRUE(std::filesystem::exists(folder.store() + ".v1-backup-2"));
}

TEST(Schema, NewerVersionIsRefusedAndLeftAlone) {
  Folder folder;
  {
    const auto db = open_store(folder.store(), StoreAccess::create);
    db->run("PRAGMA user_version = 99");
  }
  for (const auto access : {StoreAccess::read, StoreAccess::write, StoreAccess::create})
    EXPECT_TRUE(has(error_of([&] { open_store(folder.store(), access); }),
                    {test::code(ErrorCode::storage), "newer version", "version 99", "knows " + std::to_string(kSchemaVersion)}));
  EXPECT_TRUE(has(error_of([&] { RunWriter(folder.store(), test::start_of("a")); }), {"version 99"}));
  EXPECT_EQ(query_store(folder.store(), "SELECT count(*) FROM runs").rows.at(0).at(0).text, "0");  // free queries still work
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
  EXPECT_TRUE(has(error_of([&] { open_store(folder.file("text.db"), StoreAccess::create); }), {"not a database", ".recover"}));
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
  EXPECT_TRUE(has(error_of([&] { RunReader(folder.store()).runs(); }), {test::code(ErrorCode::storage), "malformed", ".recover"}));
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
  EXPECT_EQ(as_nobody([&] { return RunReader(store).runs().size() == 1; }), 0) << "a store in a read-only folder can be read";
  EXPECT_EQ(as_nobody([&] {
              const std::string error = error_of([&] { RunWriter(store, test::start_of("b")); });
              if (!has(error, {test::code(ErrorCode::storage), "cannot write"})) std::fprintf(stderr, "%s\n", error.c_str());
              return bool(has(error, {test::code(ErrorCode::storage), "cannot write"}));
            }),
            0);
  Folder old;
  make_version_1(old.store());
  ::chmod(old.path().c_str(), 0755);
  ::chmod(old.store().c_str(), 0444);
  EXPECT_EQ(as_nobody([&] { return bool(has(error_of([&] { RunReader reader(old.store()); }), {"older version", "cannot be migrated"})); }), 0);
}

}  // namespace
}  // namespace comera
