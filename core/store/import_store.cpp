#include <filesystem>
#include <map>

#include "core/base/error.h"
#include "core/store/import.h"
#include "core/store/process.h"
#include "core/store/run_ops.h"
#include "core/store/schema.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

// A private copy of the other store: consistent while someone writes it, and free to be migrated. Beside our store,
// where there is room for the rows anyway.
class Copy {
 public:
  Copy(const std::string& from, const std::string& beside) : path_(beside + ".import-" + random_text(8)) {
    Database(from, Database::Mode::read).copy_to(path_);
    try {
      open_store(path_, StoreAccess::write);  // checks that it is a store, migrates it
    } catch (const Error& error) {
      remove();
      throw Error(error.code() == ErrorCode::storage ? ErrorCode::config : error.code(), "cannot import " + from, reason(error, from),
                  error.hint());
    }
  }
  ~Copy() { remove(); }
  const std::string& path() const { return path_; }

 private:
  std::string reason(const Error& error, const std::string& from) const {  // names the file that the person knows
    std::string text = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
    for (size_t at; (at = text.find(path_)) != std::string::npos;) text.replace(at, path_.size(), fs::path(from).filename().string());
    return text;
  }
  void remove() const {
    std::error_code ignored;
    for (const char* ending : {"", "-wal", "-shm", ".v1-backup"}) fs::remove(path_ + ending, ignored);
  }
  std::string path_;
};

struct OtherRun {
  int64_t key = 0;
  std::string id, name, parent, new_id;
  double created = 0;
};

// The id that this run has in our store, by an earlier import also another one than its own; "" = it is not here.
std::string id_here(const Database& db, const OtherRun& run) {
  Statement same(db, "SELECT created FROM main.runs WHERE id = ?");
  if (!same.bind(run.id).step()) return "";
  if (same.real(0) == run.created) return run.id;
  Statement renamed(db, "SELECT id FROM main.runs WHERE created = ? AND config = (SELECT config FROM other.runs WHERE run = ?)");
  return renamed.bind(run.created, run.key).step() ? renamed.text(0) : "";
}

void copy_run(Database& db, const OtherRun& run) {
  static const std::string columns =
      "name, created, message, heartbeat, active_s, seed, device, data_fingerprint, fork_step, step, total_steps, stage, train_loss, "
      "val_loss, "
      "val_accuracy, entries, bytes, dense_bytes, compression, peak_bytes, step_ms, tags, notes, archived, config";
  Statement(db, "INSERT INTO main.runs(id, parent, status, " + columns +
                    ") SELECT ?, ?, CASE status WHEN 'running' THEN 'interrupted' ELSE status END, " + columns +
                    " FROM other.runs WHERE run = ?")
      .bind(run.new_id, run.parent, run.key)
      .run();
  const int64_t key = find_run(db, run.new_id);
  Statement(db,
            "INSERT INTO main.metrics SELECT ?, mine.metric, m.step, m.value FROM other.metrics m JOIN other.metric_names USING(metric) "
            "JOIN main.metric_names mine USING(name) WHERE m.run = ?")
      .bind(key, run.key)
      .run();
  const std::pair<const char*, const char*> tables[] = {{"steps", "step, wall_time"},
                                                        {"ranks", "layer, bond, step, rank"},
                                                        {"memory", "purpose, step, bytes"},
                                                        {"events", "seq, step, kind, time, body"}};
  for (const auto& [table, rest] : tables)
    Statement(
        db, std::string("INSERT INTO main.") + table + "(run, " + rest + ") SELECT ?, " + rest + " FROM other." + table + " WHERE run = ?")
        .bind(key, run.key)
        .run();
}

}  // namespace

Imported import_store(const std::string& store, const std::string& path) {
  std::error_code ignored;
  if (fs::equivalent(store, path, ignored)) throw Error(ErrorCode::usage, "cannot import " + path, "it is the store itself");
  const auto db = open_store(store, StoreAccess::create);
  const Copy copy(path, store);
  Statement(*db, "ATTACH ? AS other").bind(copy.path()).run();
  Imported imported;
  {
    Transaction transaction(*db);
    db->run("INSERT OR IGNORE INTO main.metric_names(name) SELECT name FROM other.metric_names");
    std::vector<OtherRun> runs;
    std::map<std::string, std::string> new_ids;
    Statement all(*db, "SELECT run, id, name, parent, created FROM other.runs ORDER BY created, run");
    while (all.step()) runs.push_back({all.integer(0), all.text(1), all.text(2), all.text(3), "", all.real(4)});
    for (OtherRun& run : runs) {
      const std::string here = id_here(*db, run);
      if (!here.empty())
        imported.notes.push_back("run " + here + " (" + run.name + ") is already here");
      else
        run.new_id = find_run(*db, run.id) == 0 ? run.id : unused_run_id(*db);
      new_ids[run.id] = here.empty() ? run.new_id : here;
    }
    for (OtherRun& run : runs) {
      if (run.new_id.empty()) continue;
      if (const auto parent = new_ids.find(run.parent); parent != new_ids.end()) run.parent = parent->second;
      copy_run(*db, run);
      imported.ids.push_back(run.new_id);
    }
    for (const OtherRun& run : runs)
      if (!run.new_id.empty()) {
        Statement points(*db, "SELECT count(*) FROM other.metrics WHERE run = ?");
        points.bind(run.key).step();
        imported.points += points.integer(0);
      }
    if (const int64_t left = db->number("SELECT count(*) FROM other.checkpoints"); left > 0)
      imported.notes.push_back(std::to_string(left) + (left == 1 ? " checkpoint stays" : " checkpoints stay") + " with the other store");
    all.reset();
    transaction.commit();
  }
  db->run("DETACH other");
  return imported;
}

}  // namespace comera
