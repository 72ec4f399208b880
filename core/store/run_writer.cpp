#include "core/store/run_writer.h"

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "core/base/error.h"
#include "core/store/boot.h"
#include "core/store/schema.h"

namespace comera {
namespace {

constexpr auto kCommitInterval = std::chrono::milliseconds(500);
constexpr size_t kSpillRows = 200'000;  // about 20 MB of rows in memory, then the spill file

double wall_seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::string new_run_id() {
  static constexpr char kLetters[] = "0123456789abcdefghjkmnpqrstvwxyz";  // no letters that look like digits
  std::random_device random;
  std::string id = "r";
  for (int i = 0; i < 8; ++i) id += kLetters[random() % 32];
  return id;
}

Statement& bind_number(Statement& statement, double value) {
  return std::isnan(value) ? statement.bind(std::string("nan")) : statement.bind(value);
}
Statement& bind_optional(Statement& statement, double value) { return std::isnan(value) ? statement.bind_null() : statement.bind(value); }

}  // namespace

RunSummary::RunSummary() {
  train_loss = val_loss = val_accuracy = entries = bytes = dense_bytes = compression = peak_bytes = step_ms = std::numeric_limits<double>::quiet_NaN();
}

// The statements of the writer's connection, prepared once.
class RunWriter::Connection {
 public:
  Connection(const std::string& store, int busy_ms)
      : database(store, Database::Mode::write, busy_ms),
        prepared((prepare_schema(database), true)),
        metric(database, "INSERT OR REPLACE INTO metrics(run, metric, step, value) VALUES(?, ?, ?, ?)"),
        rank(database, "INSERT OR REPLACE INTO ranks(run, layer, bond, step, rank) VALUES(?, ?, ?, ?, ?)"),
        memory(database, "INSERT OR REPLACE INTO memory(run, purpose, step, bytes) VALUES(?, ?, ?, ?)"),
        event(database, "INSERT INTO events(run, step, kind, wall, body) VALUES(?, ?, ?, ?, ?)"),
        checkpoint(database, "INSERT OR REPLACE INTO checkpoints(run, step, path, bytes, kind) VALUES(?, ?, ?, ?, ?)"),
        forget(database, "DELETE FROM checkpoints WHERE run = ? AND step = ?"),
        status(database, "UPDATE runs SET status = ?, message = ? WHERE id = ?"),
        heartbeat(database, "UPDATE runs SET heartbeat = ? WHERE id = ?"),
        summary(database,
                "UPDATE runs SET step=?, total_steps=?, stage=?, train_loss=?, val_loss=?, val_accuracy=?, entries=?, bytes=?, dense_bytes=?, "
                "compression=?, peak_bytes=?, step_ms=? WHERE id=?") {}

  int64_t metric_id(const std::string& name) {
    const auto found = metric_ids.find(name);
    if (found != metric_ids.end()) return found->second;
    Statement(database, "INSERT OR IGNORE INTO metric_names(name) VALUES(?)").bind(name).run();
    Statement find(database, "SELECT id FROM metric_names WHERE name = ?");
    find.bind(name).step();
    return metric_ids[name] = find.integer(0);
  }

  void apply(const std::string& run, const Row& row) {
    switch (row.kind) {
      case Kind::metric: bind_number(metric.bind(run).bind(metric_id(row.name)).bind(row.step), row.value).run(); break;
      case Kind::rank: rank.bind(run).bind(row.name).bind(row.number).bind(row.step).bind(static_cast<int64_t>(row.value)).run(); break;
      case Kind::memory: memory.bind(run).bind(row.name).bind(row.step).bind(row.number).run(); break;
      case Kind::event: event.bind(run).bind(row.step).bind(row.name).bind(row.value).bind(row.text).run(); break;
      case Kind::checkpoint: checkpoint.bind(run).bind(row.step).bind(row.text).bind(row.number).bind(row.name).run(); break;
      case Kind::forget: forget.bind(run).bind(row.step).run(); break;
      case Kind::status: status.bind(row.name).bind(row.text).bind(run).run(); break;
      case Kind::truncate:
        for (const char* table : {"metrics", "ranks", "memory", "events", "checkpoints"})
          Statement(database, std::string("DELETE FROM ") + table + " WHERE run = ? AND step > ?").bind(run).bind(row.step).run();
        break;
    }
  }

  Database database;
  bool prepared;
  std::map<std::string, int64_t> metric_ids;
  Statement metric, rank, memory, event, checkpoint, forget, status, heartbeat, summary;
};

RunWriter::RunWriter(const std::string& store, const RunStart& start) : store_(store), run_(new_run_id()) {
  connection_ = std::make_unique<Connection>(store_, 5000);
  merge_spill(*connection_);
  std::string tags;
  for (const std::string& tag : start.tags) tags += (tags.empty() ? "" : ",") + tag;
  Statement insert(connection_->database,
                   "INSERT INTO runs(id, name, created, status, pid, boot_id, heartbeat, config, seed, device, data_fingerprint, parent, fork_step, "
                   "total_steps, tags) VALUES(?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  insert.bind(run_).bind(start.name).bind(wall_seconds()).bind(static_cast<int64_t>(::getpid())).bind(boot_id()).bind(wall_seconds());
  insert.bind(start.config).bind(start.seed).bind(start.device).bind(start.data_fingerprint);
  if (start.parent.empty()) insert.bind_null().bind_null();
  else insert.bind(start.parent).bind(start.fork_step);
  insert.bind(start.total_steps).bind(tags).run();
  start_thread();
}

RunWriter::RunWriter(const std::string& store, const std::string& run) : store_(store), run_(run) {
  connection_ = std::make_unique<Connection>(store_, 5000);
  merge_spill(*connection_);
  Statement update(connection_->database, "UPDATE runs SET status = 'running', message = '', pid = ?, boot_id = ?, heartbeat = ? WHERE id = ?");
  update.bind(static_cast<int64_t>(::getpid())).bind(boot_id()).bind(wall_seconds()).bind(run_).run();
  if (connection_->database.changes() == 0) throw Error(ErrorCode::not_found, "no run " + run_ + " in " + store_, "", "comera runs list shows the runs");
  start_thread();
}

RunWriter::~RunWriter() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    wake_.notify_all();
  }
  thread_.join();
}

void RunWriter::start_thread() {
  thread_ = std::thread([this] { loop(); });
}

void RunWriter::push(Row row) {
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(row));
}

void RunWriter::metrics(int64_t step, const std::vector<std::pair<const char*, double>>& values) {
  const std::lock_guard lock(mutex_);
  for (const auto& [name, value] : values) queue_.push_back({Kind::metric, step, 0, value, name, ""});
}
void RunWriter::rank(int64_t step, const std::string& layer, int64_t bond, int64_t rank) {
  push({Kind::rank, step, bond, static_cast<double>(rank), layer, ""});
}
void RunWriter::memory(int64_t step, const char* purpose, int64_t bytes) { push({Kind::memory, step, bytes, 0, purpose, ""}); }
void RunWriter::event(int64_t step, const std::string& kind, const std::string& body) { push({Kind::event, step, 0, wall_seconds(), kind, body}); }
void RunWriter::checkpoint(int64_t step, const std::string& path, int64_t bytes, const std::string& kind) {
  push({Kind::checkpoint, step, bytes, 0, kind, path});
}
void RunWriter::forget_checkpoint(int64_t step) { push({Kind::forget, step, 0, 0, "", ""}); }
void RunWriter::truncate_after(int64_t step) { push({Kind::truncate, step, 0, 0, "", ""}); }
void RunWriter::finish(const std::string& status, const std::string& message) { push({Kind::status, 0, 0, 0, status, message}); }

void RunWriter::summary(const RunSummary& summary) {
  const std::lock_guard lock(mutex_);
  summary_ = summary;
  summary_changed_ = true;
}

bool RunWriter::flush() {
  std::unique_lock lock(mutex_);
  flush_ = true;
  wake_.notify_all();
  written_.wait(lock, [&] { return !flush_ || stop_; });
  return problem_.empty();
}

std::string RunWriter::store_problem() const {
  const std::lock_guard lock(mutex_);
  return problem_;
}

// ---- the writer's thread -----------------------------------------------------------------------------------------

void RunWriter::loop() {
  std::vector<Row> rows;  // not stored yet, oldest first
  bool stopping = false;
  while (!stopping) {
    bool flushing = false;
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, kCommitInterval, [&] { return stop_ || flush_; });
      rows.insert(rows.end(), std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.end()));
      queue_.clear();
      stopping = stop_;
      flushing = flush_;
    }
    const bool stored = write(rows, stopping);
    if (!stored && (rows.size() > kSpillRows || stopping)) spill(rows);
    if (flushing) {
      const std::lock_guard lock(mutex_);
      flush_ = false;
      written_.notify_all();
    }
  }
}

// Stores rows and the heartbeat in one transaction; on failure everything stays in `rows`.
bool RunWriter::write(std::vector<Row>& rows, bool) {
  RunSummary summary;
  bool summary_changed = false;
  {
    const std::lock_guard lock(mutex_);
    summary = summary_;
    summary_changed = std::exchange(summary_changed_, false);
  }
  std::string problem;
  try {
    if (!connection_) {
      connection_ = std::make_unique<Connection>(store_, 500);
      merge_spill(*connection_);
    }
    Connection& c = *connection_;
    Transaction transaction(c.database);
    for (const Row& row : rows) c.apply(run_, row);
    c.heartbeat.bind(wall_seconds()).bind(run_).run();
    if (summary_changed) {
      Statement& s = c.summary.bind(summary.step).bind(summary.total_steps).bind(summary.stage);
      for (double value : {summary.train_loss, summary.val_loss, summary.val_accuracy, summary.entries, summary.bytes, summary.dense_bytes,
                           summary.compression, summary.peak_bytes, summary.step_ms})
        bind_optional(s, value);
      s.bind(run_).run();
    }
    transaction.commit();
    rows.clear();
  } catch (const Error& error) {
    problem = std::string("not saved: ") + error.what() + (error.why().empty() ? "" : " (" + error.why() + ")");
  } catch (const std::exception& error) {
    problem = std::string("not saved: ") + error.what();
  }
  if (!problem.empty()) connection_.reset();  // half-bound statements and a vanished file heal by opening anew
  const std::lock_guard lock(mutex_);
  if (!problem.empty() && summary_changed) summary_changed_ = true;
  problem_ = problem;
  return problem.empty();
}

std::string RunWriter::spill_path() const { return store_ + ".unsaved.jsonl"; }

void RunWriter::spill(std::vector<Row>& rows) {
  std::ofstream file(spill_path(), std::ios::app);
  for (const Row& row : rows) {
    nlohmann::json line = {{"run", run_}, {"kind", static_cast<int>(row.kind)}, {"step", row.step}, {"number", row.number}, {"name", row.name}, {"text", row.text}};
    if (std::isfinite(row.value)) line["value"] = row.value;
    else line["value"] = std::isnan(row.value) ? "nan" : row.value > 0 ? "inf" : "-inf";
    file << line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  }
  file.flush();
  if (file) rows.clear();  // else they stay in memory
}

// Rows that could not be stored at their time, of any run, in their order.
void RunWriter::merge_spill(Connection& connection) {
  std::ifstream file(spill_path());
  if (!file) return;
  Transaction transaction(connection.database);
  std::string line;
  while (std::getline(file, line)) {
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_discarded() || !json.is_object()) continue;  // the last line of a killed program
    Row row{static_cast<Kind>(json.value("kind", 0)), json.value("step", int64_t{0}), json.value("number", int64_t{0}), 0, json.value("name", ""), json.value("text", "")};
    const nlohmann::json& value = json["value"];
    row.value = value.is_number() ? value.get<double>() : value == "inf" ? HUGE_VAL : value == "-inf" ? -HUGE_VAL : std::nan("");
    connection.apply(json.value("run", ""), row);
  }
  transaction.commit();
  std::error_code ignored;
  std::filesystem::remove(spill_path(), ignored);
}

}  // namespace comera
