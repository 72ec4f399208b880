#include "core/store/schema.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>
#include <thread>

#include "core/base/error.h"
#include "core/base/paths.h"

namespace comera {
namespace {

// `config` is the last column and large: SQLite reads a row from its beginning, so what is asked of one run seldom touches it.
constexpr const char* kRunsColumns = R"(
  run INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  created REAL NOT NULL,
  status TEXT NOT NULL,
  message TEXT NOT NULL DEFAULT '',
  pid INTEGER NOT NULL DEFAULT 0,
  boot_id TEXT NOT NULL DEFAULT '',
  owner TEXT NOT NULL DEFAULT '',
  heartbeat REAL NOT NULL DEFAULT 0,
  active_s REAL NOT NULL DEFAULT 0,
  seed INTEGER NOT NULL DEFAULT 0,
  device TEXT NOT NULL DEFAULT '',
  data_fingerprint TEXT NOT NULL DEFAULT '',
  parent TEXT NOT NULL DEFAULT '',
  fork_step INTEGER NOT NULL DEFAULT 0,
  step INTEGER NOT NULL DEFAULT 0,
  total_steps INTEGER NOT NULL DEFAULT 0,
  stage TEXT NOT NULL DEFAULT '',
  train_loss REAL, val_loss REAL, val_accuracy REAL,
  entries REAL, bytes REAL, dense_bytes REAL, compression REAL, peak_bytes REAL, step_ms REAL,
  tags TEXT NOT NULL DEFAULT '[]',
  notes TEXT NOT NULL DEFAULT '',
  archived INTEGER NOT NULL DEFAULT 0,
  config TEXT NOT NULL DEFAULT '{}'
)";

// WITHOUT ROWID: rows lie in the order of their key, so a curve is one range of pages.
constexpr const char* kOtherTables = R"(
CREATE TABLE metric_names(metric INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE metrics(run INTEGER NOT NULL, metric INTEGER NOT NULL, step INTEGER NOT NULL, value REAL,
  PRIMARY KEY(run, metric, step)) WITHOUT ROWID;
CREATE TABLE steps(run INTEGER NOT NULL, step INTEGER NOT NULL, wall_time REAL NOT NULL,
  PRIMARY KEY(run, step)) WITHOUT ROWID;
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
)";

// Newest last, in the order of the list.
void create_list_index(Database& db) { db.run(std::string("CREATE INDEX runs_list ON runs(created, run, ") + kListColumns + ")"); }

// Stores of before it was there have an index of the times alone. One that another program holds gets it another time.
void renew_list_index(Database& db) try {
  const auto has = [&] { return db.number("SELECT count(*) FROM sqlite_master WHERE type = 'index' AND name = 'runs_list'") > 0; };
  if (has()) return;
  Transaction transaction(db);
  if (!has()) {
    db.run("DROP INDEX IF EXISTS runs_by_time");
    create_list_index(db);
  }
  transaction.commit();
} catch (const DatabaseError& error) {
  if (!error.locked()) throw;
}

std::string mark_version() {
  return "PRAGMA application_id = " + std::to_string(kApplicationId) + "; PRAGMA user_version = " + std::to_string(kSchemaVersion) + ";";
}

// 1 -> 2: runs.active_s. The table is written anew, not altered: a new column would come after `config`, and every
// list would then read all configs.
void migrate_from_1(Database& db) {
  const std::string old_columns =
      "run, id, name, created, status, message, pid, boot_id, owner, heartbeat, seed, device, data_fingerprint, parent, fork_step, step, "
      "total_steps, stage, train_loss, val_loss, val_accuracy, entries, bytes, dense_bytes, compression, peak_bytes, step_ms, tags, notes, "
      "archived, config";
  db.run(
      "PRAGMA legacy_alter_table = ON;"  // the view keeps naming `runs` while the table is replaced
      "ALTER TABLE runs RENAME TO runs_1;"
      "DROP INDEX runs_by_time;"
      "CREATE TABLE runs(" +
      std::string(kRunsColumns) +
      ");"
      "INSERT INTO runs(" +
      old_columns + ", active_s) SELECT " + old_columns +
      ", max(0, heartbeat - created) FROM runs_1;"
      "DROP TABLE runs_1;"
      "PRAGMA legacy_alter_table = OFF;");
}

void migrate(Database& db) {
  // The copy is taken before the write lock, since a database cannot be backed up by the connection that is changing
  // it; whoever comes second finds the new version.
  const int64_t from = db.number("PRAGMA user_version");
  std::string backup = db.path() + ".v" + std::to_string(from) + "-backup";
  for (int i = 2; std::filesystem::exists(backup); ++i) backup = db.path() + ".v" + std::to_string(from) + "-backup-" + std::to_string(i);
  db.copy_to(backup);
  Transaction transaction(db);
  int64_t version = db.number("PRAGMA user_version");
  if (version == 1) {
    migrate_from_1(db);
    create_list_index(db);
    version = 2;
  }
  db.run(mark_version());
  transaction.commit();
}

[[noreturn]] void not_ours(const std::string& path, const char* why = "it is a database of another program") {
  throw Error(ErrorCode::storage, path + " is not a store of runs", why, "name another file: --store FILE");
}

// What this program reads. A newer version that kept it can be read as it is.
struct ReadTable {
  const char *name, *columns;
};
constexpr ReadTable kRead[] = {
    {"runs",
     "run id name created status message pid boot_id heartbeat active_s seed device data_fingerprint parent fork_step step total_steps "
     "stage train_loss val_loss val_accuracy entries bytes dense_bytes compression peak_bytes step_ms tags notes archived config"},
    {"metric_names", "metric name"},
    {"metrics", "run metric step value"},
    {"steps", "run step wall_time"},
    {"ranks", "run layer bond step rank"},
    {"memory", "run purpose step bytes"},
    {"events", "run seq step kind time body"},
    {"checkpoints", "run step path bytes kind time"}};

// "the table ranks, runs.tags": what is not there of that; "" = all is.
std::string missing_to_read(Database& db) {
  std::string missing;
  const auto add = [&](const std::string& what) { missing += (missing.empty() ? "" : ", ") + what; };
  for (const ReadTable& table : kRead) {
    std::set<std::string> there;
    Statement columns(db, "SELECT name FROM pragma_table_info(?)");
    for (columns.bind(table.name); columns.step();) there.insert(columns.text(0));
    std::istringstream wanted(table.columns);
    if (there.empty())
      add(std::string("the table ") + table.name);
    else
      for (std::string column; wanted >> column;)
        if (!there.contains(column)) add(std::string(table.name) + "." + column);
  }
  return missing;
}

std::string version_words(int64_t version) {
  return "schema " + std::to_string(version) + ", this program knows " + std::to_string(kSchemaVersion);
}

[[noreturn]] void refuse_newer(Database& db, const std::string& missing) {
  throw Error(ErrorCode::storage, db.path() + " was written by a newer version of this program",
              version_words(db.number("PRAGMA user_version")) + (missing.empty() ? "" : "; missing: " + missing),
              missing.empty() ? "update this program, or use another store: --store FILE; reading works on this store too"
                              : "update this program, or use another store: --store FILE; comera query still reads this one");
}

enum class State { empty, old, current, newer };

State state_of(Database& db) {
  const Transaction at_once(db, Transaction::Kind::read);  // another program may make it a store meanwhile
  const int64_t version = db.number("PRAGMA user_version"), application = db.number("PRAGMA application_id");
  if (application == 0 && version == 0 && db.number("SELECT count(*) FROM sqlite_master") == 0) return State::empty;
  if (application != kApplicationId) not_ours(db.path());
  if (version > kSchemaVersion) return State::newer;
  if (version < 1) not_ours(db.path());
  if (!db.has_table("runs") || !db.has_table("metrics"))
    throw Error(ErrorCode::storage, db.path() + " is damaged", "tables are missing",
                "restore a backup, or use another store: --store FILE");
  return version == kSchemaVersion ? State::current : State::old;
}

// A connection that reads needs its pages of the log; NORMAL survives a crash of the program, and after a power failure
// the last seconds may be missing but the file is sound. Where several programs make a new file such a database at once, SQLite refuses all
// but one without waiting.
void prepare_writing(Database& db, double busy_s) {
  using Clock = std::chrono::steady_clock;
  for (const Clock::time_point begin = Clock::now();;) {
    try {
      db.text("PRAGMA journal_mode = WAL");
      break;
    } catch (const DatabaseError& error) {
      if (!error.locked() || std::chrono::duration<double>(Clock::now() - begin).count() > busy_s) throw;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  db.run("PRAGMA synchronous = NORMAL");
}

}  // namespace

void create_schema(Database& db) {
  Transaction transaction(db);
  if (db.number("PRAGMA user_version") == 0) {  // else another program was quicker
    db.run("CREATE TABLE runs(" + std::string(kRunsColumns) + ")");
    db.run(kOtherTables);
    create_list_index(db);
    db.run(mark_version());
  }
  transaction.commit();
}

std::unique_ptr<Database> open_store(const std::string& path, StoreAccess access, double busy_s) {
  if (access == StoreAccess::create) paths::ensure_folder_of(path);
  if (access == StoreAccess::read) {
    auto db = std::make_unique<Database>(path, Database::Mode::read, busy_s);
    switch (state_of(*db)) {
      case State::current:
        return db;
      case State::newer:
        if (const std::string missing = missing_to_read(*db); !missing.empty()) refuse_newer(*db, missing);
        return db;
      case State::empty:
        not_ours(path, "it is empty");
      case State::old:
        break;
    }
    db.reset();
    try {
      open_store(path, StoreAccess::write, busy_s);  // migrates
    } catch (const Error& error) {
      throw Error(ErrorCode::storage, path + " was written by an older version and cannot be migrated",
                  std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()), error.hint());
    }
    return std::make_unique<Database>(path, Database::Mode::read, busy_s);
  }
  auto db = std::make_unique<Database>(path, access == StoreAccess::create ? Database::Mode::create : Database::Mode::write, busy_s);
  switch (state_of(*db)) {
    case State::empty:
      if (access != StoreAccess::create) not_ours(path, "it is empty");
      prepare_writing(*db, busy_s);
      create_schema(*db);
      break;
    case State::old:
      prepare_writing(*db, busy_s);
      migrate(*db);
      break;
    case State::current:
      prepare_writing(*db, busy_s);
      renew_list_index(*db);
      break;
    case State::newer:
      refuse_newer(*db, "");
  }
  return db;
}

StoreFault fault_of(const std::string& path) {
  try {
    Database db(path, Database::Mode::read, 0);
    if (db.number("PRAGMA application_id") != kApplicationId) return StoreFault::foreign;
    if (db.number("PRAGMA user_version") > kSchemaVersion) {
      if (!missing_to_read(db).empty()) return StoreFault::newer;
    } else if (!db.has_table("runs") || !db.has_table("metrics")) {
      return StoreFault::damaged;
    }
    db.number("SELECT count(*) FROM runs");
    return StoreFault::none;
  } catch (const DatabaseError& error) {
    if (error.locked()) return StoreFault::locked;
    if (!error.damaged()) return StoreFault::other;
    std::ifstream file(path, std::ios::binary);
    std::array<char, 16> head{};
    file.read(head.data(), head.size());
    return std::string_view(head.data()) == "SQLite format 3" ? StoreFault::damaged : StoreFault::foreign;
  } catch (const Error&) {
    return StoreFault::other;
  }
}

std::string why_read_only(const std::string& path) {
  const auto no = [](const std::string& what) { return ::faccessat(AT_FDCWD, what.c_str(), W_OK, AT_EACCESS) != 0; };
  const std::string folder = std::filesystem::absolute(path).parent_path().string();
  if (no(path)) return errno == EROFS ? "it lies on a disk that may only be read" : "the file may not be written";
  if (no(folder)) return "its folder may not be written, and a database needs more files there";
  return "";
}

std::string why_newer(Database& db) {
  const int64_t version = db.number("PRAGMA user_version");
  return version > kSchemaVersion ? "a newer version of this program wrote it (" + version_words(version) + ")" : "";
}

std::string why_newer(const std::string& path) {
  try {
    Database db(path, Database::Mode::read);
    return db.number("PRAGMA application_id") == kApplicationId ? why_newer(db) : "";
  } catch (const Error&) {  // whoever opens it says why
    return "";
  }
}

bool is_being_written(const std::string& path, double wait_s) {
  try {
    Database db(path, Database::Mode::write, wait_s);
    db.keeps_log();
    const Transaction transaction(db);
    return false;
  } catch (const DatabaseError& error) {
    return error.locked();
  } catch (const Error&) {
    return false;
  }
}

std::vector<std::string> check_store(const std::string& path) {
  std::vector<std::string> findings;
  try {
    const auto db = open_store(path, StoreAccess::read);
    Statement check(*db, "PRAGMA quick_check(100)");
    while (check.step())
      if (check.text(0) != "ok") findings.push_back(check.text(0));
  } catch (const Error& error) {
    findings.push_back(std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()));
  }
  return findings;
}

}  // namespace comera
