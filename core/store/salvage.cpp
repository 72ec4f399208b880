#include "core/store/salvage.h"

#include <algorithm>
#include <filesystem>
#include <memory>

#include "core/base/error.h"
#include "core/store/schema.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

struct Table {
  const char *name, *columns, *key;  // key: within a run, in the order of the rows on disk
};
constexpr Table kOfRuns[] = {
    {"metrics", "run, metric, step, value", "metric, step"},        {"steps", "run, step, wall_time", "step"},
    {"ranks", "run, layer, bond, step, rank", "layer, bond, step"}, {"memory", "run, purpose, step, bytes", "purpose, step"},
    {"events", "run, seq, step, kind, time, body", "seq"},          {"checkpoints", "run, step, path, bytes, kind, time", "step"}};
// Of a run; that of version 1 has no active_s, which is 0 then.
constexpr const char* kRunColumns =
    "run, id, name, created, status, message, pid, boot_id, owner, heartbeat, seed, device, data_fingerprint, parent, fork_step, step, "
    "total_steps, stage, train_loss, val_loss, val_accuracy, entries, bytes, dense_bytes, compression, peak_bytes, step_ms, tags, notes, "
    "archived, config";

std::string descending(const std::string& key) {
  std::string out;
  for (const char c : key) out += c == ',' ? std::string(" DESC,") : std::string(1, c);
  return out + " DESC";
}

class Salvage {
 public:
  Salvage(const std::string& from, const std::string& to) : from_(from, Database::Mode::read), to_(open_store(to, StoreAccess::create)) {
    if (from_.number("PRAGMA user_version") > kSchemaVersion)
      throw Error(ErrorCode::storage, "cannot salvage " + from, why_newer(from_), "update this program");
  }

  Salvaged work() {
    Transaction transaction(*to_);
    copy("runs", kRunColumns, "", "run", "the list of runs");
    copy("metric_names", "metric, name", "", "metric", "the names of metrics");
    for (int64_t run = 1, last = last_run(); run <= last; ++run) copy_run(run);
    saved_.runs = to_->number("SELECT count(*) FROM runs");
    transaction.commit();
    return std::move(saved_);
  }

 private:
  // Rows in one direction; false when something could not be read on the way.
  bool copy_ordered(const std::string& select, Statement& insert) {
    try {
      Statement rows(from_, select);
      while (rows.step()) {
        insert.bind_row(rows).run();
        saved_.rows += to_->changed();
      }
      return true;
    } catch (const DatabaseError& error) {
      if (!error.damaged()) throw;
      return false;
    }
  }

  int64_t copy(const std::string& table, const std::string& columns, const std::string& where, const std::string& key,
               const std::string& called) {
    std::string marks = "?";
    for (const char c : columns)
      if (c == ',') marks += ", ?";
    Statement insert(*to_, "INSERT OR IGNORE INTO " + table + "(" + columns + ") VALUES(" + marks + ")");
    const std::string select = "SELECT " + columns + " FROM " + table + where + " ORDER BY ";
    const int64_t before = saved_.rows;
    if (!copy_ordered(select + key, insert)) {
      copy_ordered(select + descending(key), insert);
      saved_.gaps.push_back(called + ": " + std::to_string(saved_.rows - before) + " rows could be read, others not");
    }
    return saved_.rows - before;
  }

  // The largest key of a run that anything is told of.
  int64_t last_run() {
    int64_t last = to_->number("SELECT coalesce(max(run), 0) FROM runs");
    for (const Table& table : kOfRuns) try {
        last = std::max(last, from_.number(std::string("SELECT coalesce(max(run), 0) FROM ") + table.name));
      } catch (const Error&) {  // its last page is gone
      }
    return last;
  }

  void copy_run(int64_t run) {
    Statement known(*to_, "SELECT id FROM runs WHERE run = ?");
    const bool listed = known.bind(run).step();
    const std::string id = listed ? known.text(0) : "r-salvaged-" + std::to_string(run);
    known.reset();
    int64_t rows = 0;
    for (const Table& table : kOfRuns)
      rows += copy(table.name, table.columns, " WHERE run = " + std::to_string(run), table.key, "run " + id + ", " + table.name);
    if (listed || rows == 0) return;
    Statement(*to_,
              "INSERT INTO runs(run, id, name, created, status, step) SELECT ?, ?, ?, coalesce(min(wall_time), 0), 'interrupted', "
              "coalesce(max(step), 0) FROM steps WHERE run = ?")
        .bind(run, id, id, run)
        .run();
  }

  Database from_;
  std::unique_ptr<Database> to_;
  Salvaged saved_;
};

}  // namespace

Salvaged salvage_store(const std::string& path, const std::string& wanted) {
  if (fault_of(path) == StoreFault::foreign)
    throw Error(ErrorCode::storage, "cannot salvage " + path, "it is not a store of this program, or its first page is lost",
                "restore a backup of it");
  std::error_code nothing;
  if (!wanted.empty() && fs::exists(wanted, nothing))
    throw Error(ErrorCode::usage, "cannot salvage into " + wanted, "it is there already, and nothing is written over", "name another file");
  std::string into = wanted.empty() ? path + ".salvaged.db" : wanted;
  for (int i = 2; wanted.empty() && fs::exists(into); ++i) into = path + ".salvaged-" + std::to_string(i) + ".db";
  try {
    Salvaged saved = Salvage(path, into).work();
    saved.path = into;
    return saved;
  } catch (...) {
    std::error_code ignored;
    for (const char* ending : {"", "-wal", "-shm"}) fs::remove(into + ending, ignored);
    throw;
  }
}

}  // namespace comera
