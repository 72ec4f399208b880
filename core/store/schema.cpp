#include "core/store/schema.h"

#include <filesystem>
#include <string>

#include "core/base/error.h"

namespace comera {
namespace {

// Step k leads from version k to k + 1. A released step is never edited: add one.
constexpr const char* kMigrations[kSchemaVersion] = {
    R"sql(
    CREATE TABLE runs (
      id TEXT PRIMARY KEY, name TEXT NOT NULL, created REAL NOT NULL,
      status TEXT NOT NULL, message TEXT NOT NULL DEFAULT '', pid INTEGER, boot_id TEXT, heartbeat REAL,
      config TEXT NOT NULL, seed INTEGER NOT NULL, device TEXT NOT NULL, data_fingerprint TEXT NOT NULL,
      parent TEXT, fork_step INTEGER,
      step INTEGER NOT NULL DEFAULT 0, total_steps INTEGER NOT NULL DEFAULT 0, stage TEXT NOT NULL DEFAULT 'early',
      train_loss REAL, val_loss REAL, val_accuracy REAL, entries REAL, bytes REAL, dense_bytes REAL, compression REAL,
      peak_bytes REAL, step_ms REAL,
      tags TEXT NOT NULL DEFAULT '', archived INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX runs_by_time ON runs(created);
    CREATE TABLE metric_names (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
    CREATE TABLE metrics (run TEXT NOT NULL, metric INTEGER NOT NULL, step INTEGER NOT NULL, value,
      PRIMARY KEY (run, metric, step)) WITHOUT ROWID;
    CREATE TABLE ranks (run TEXT NOT NULL, layer TEXT NOT NULL, bond INTEGER NOT NULL, step INTEGER NOT NULL, rank INTEGER NOT NULL,
      PRIMARY KEY (run, layer, bond, step)) WITHOUT ROWID;
    CREATE TABLE memory (run TEXT NOT NULL, purpose TEXT NOT NULL, step INTEGER NOT NULL, bytes INTEGER NOT NULL,
      PRIMARY KEY (run, purpose, step)) WITHOUT ROWID;
    CREATE TABLE events (id INTEGER PRIMARY KEY, run TEXT NOT NULL, step INTEGER NOT NULL, kind TEXT NOT NULL, wall REAL NOT NULL,
      body TEXT NOT NULL);
    CREATE INDEX events_by_run ON events(run, step, id);
    CREATE TABLE checkpoints (run TEXT NOT NULL, step INTEGER NOT NULL, path TEXT NOT NULL, bytes INTEGER NOT NULL, kind TEXT NOT NULL,
      PRIMARY KEY (run, step)) WITHOUT ROWID;
    )sql",
    R"sql(
    ALTER TABLE runs ADD COLUMN notes TEXT NOT NULL DEFAULT '';
    )sql",
};

[[noreturn]] void newer(const Database& database, int64_t version) {
  throw Error(ErrorCode::storage, "the database " + database.path() + " is newer than this program",
              "its schema is version " + std::to_string(version) + ", this program knows " + std::to_string(kSchemaVersion),
              "update the program, or use another --store; the file was left as it is");
}

}  // namespace

void prepare_schema(Database& database) {
  const int64_t version = database.number("PRAGMA user_version");
  if (version > kSchemaVersion) newer(database, version);
  if (version == kSchemaVersion) return;
  const bool empty = database.number("SELECT count(*) FROM sqlite_master") == 0;
  if (version == 0 && !empty)
    throw Error(ErrorCode::storage, "the database " + database.path() + " belongs to another program", "it has tables, but no schema version", "use another --store");
  if (!empty) {
    const std::string backup = database.path() + ".v" + std::to_string(version) + "-backup";
    std::error_code ignored;
    std::filesystem::remove(backup, ignored);
    database.copy_to(backup);
  }
  Transaction transaction(database);
  // Somebody else may have been faster.
  for (int64_t at = database.number("PRAGMA user_version"); at < kSchemaVersion; ++at) database.run(kMigrations[at]);
  database.run("PRAGMA user_version = " + std::to_string(kSchemaVersion));
  transaction.commit();
}

void check_schema(Database& database) {
  const int64_t version = database.number("PRAGMA user_version");
  if (version > kSchemaVersion) newer(database, version);
  if (version == 0)
    throw Error(ErrorCode::storage, "the database " + database.path() + " holds no runs", "it was not made by this program", "use another --store");
  if (version < kSchemaVersion) {  // older: a writer migrates it
    Database writer(database.path(), Database::Mode::write);
    prepare_schema(writer);
  }
}

}  // namespace comera
