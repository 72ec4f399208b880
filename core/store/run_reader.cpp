#include "core/store/run_reader.h"

#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/store/boot.h"
#include "core/store/schema.h"

namespace comera {
namespace {

constexpr double kFreshSeconds = 10;  // the writer's heart beats twice a second

double wall_seconds() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

double number_or_nan(const Statement& row, int column) {
  return row.is_null(column) || row.type(column) == Statement::Type::text ? std::numeric_limits<double>::quiet_NaN() : row.real(column);
}

constexpr const char* kRunColumns =
    "id, name, status, message, created, pid, boot_id, heartbeat, seed, fork_step, step, total_steps, config, device, data_fingerprint, parent, "
    "stage, tags, notes, archived, train_loss, val_loss, val_accuracy, entries, bytes, dense_bytes, compression, peak_bytes, step_ms";

RunRow read_run(const Statement& row, double now, const std::string& boot) {
  RunRow run;
  run.id = row.text(0);
  run.name = row.text(1);
  run.status = row.text(2);
  run.message = row.text(3);
  run.created = row.real(4);
  run.pid = row.integer(5);
  // Same boot and a living process: its number may have been given to another program, so the heartbeat decides.
  if (run.status == "running" && !(row.text(6) == boot && process_lives(run.pid) && now - row.real(7) < kFreshSeconds)) run.status = "interrupted";
  run.seed = row.integer(8);
  run.fork_step = row.is_null(9) ? -1 : row.integer(9);
  run.step = row.integer(10);
  run.total_steps = row.integer(11);
  run.config = row.text(12);
  run.device = row.text(13);
  run.data_fingerprint = row.text(14);
  run.parent = row.text(15);
  run.stage = row.text(16);
  run.tags = row.text(17);
  run.notes = row.text(18);
  run.archived = row.integer(19) != 0;
  double* const numbers[] = {&run.train_loss, &run.val_loss,    &run.val_accuracy, &run.entries, &run.bytes,
                             &run.dense_bytes, &run.compression, &run.peak_bytes,   &run.step_ms};
  for (int i = 0; i < 9; ++i) *numbers[i] = number_or_nan(row, 20 + i);
  return run;
}

}  // namespace

RunReader::RunReader(const std::string& store) : database_(store, Database::Mode::read) { check_schema(database_); }

std::vector<RunRow> RunReader::runs(bool with_archived) {
  Statement rows(database_, std::string("SELECT ") + kRunColumns + " FROM runs" + (with_archived ? "" : " WHERE archived = 0") + " ORDER BY created DESC");
  const double now = wall_seconds();
  const std::string boot = boot_id();
  std::vector<RunRow> out;
  while (rows.step()) out.push_back(read_run(rows, now, boot));
  return out;
}

RunRow RunReader::find(const std::string& id_or_name) {
  const auto first = [&](const char* condition, const std::string& value, int64_t* count) -> RunRow {
    Statement rows(database_, std::string("SELECT ") + kRunColumns + " FROM runs WHERE " + condition + " ORDER BY created DESC");
    rows.bind(value);
    RunRow found;
    *count = 0;
    while (rows.step())
      if ((*count)++ == 0) found = read_run(rows, wall_seconds(), boot_id());
    return found;
  };
  int64_t count = 0;
  RunRow run = first("id = ?", id_or_name, &count);
  if (count == 1) return run;
  run = first("name = ?", id_or_name, &count);
  if (count >= 1) return run;
  run = first("substr(id, 1, length(?1)) = ?1", id_or_name, &count);
  if (count == 1 && !id_or_name.empty()) return run;
  if (count > 1 && !id_or_name.empty())
    throw Error(ErrorCode::not_found, "'" + id_or_name + "' is the beginning of " + std::to_string(count) + " runs", "", "give more letters of the id");
  std::vector<std::string> names;
  Statement rows(database_, "SELECT id, name FROM runs");
  while (rows.step()) {
    names.push_back(rows.text(0));
    names.push_back(rows.text(1));
  }
  const std::string near = nearest_name(id_or_name, names);
  throw Error(ErrorCode::not_found, "no run '" + id_or_name + "' in " + database_.path(), std::to_string(names.size() / 2) + " runs are stored",
              near.empty() ? "comera runs list shows them" : "did you mean '" + near + "'?");
}

std::vector<std::string> RunReader::metric_names(const std::string& run) {
  Statement rows(database_, "SELECT name FROM metric_names n WHERE EXISTS (SELECT 1 FROM metrics m WHERE m.run = ? AND m.metric = n.id) ORDER BY id");
  rows.bind(run);
  std::vector<std::string> out;
  while (rows.step()) out.push_back(rows.text(0));
  return out;
}

std::vector<MetricPoint> RunReader::metric(const std::string& run, const std::string& name, int64_t from, int64_t to) {
  Statement rows(database_,
                 "SELECT step, value FROM metrics WHERE run = ? AND metric = (SELECT id FROM metric_names WHERE name = ?) AND step BETWEEN ? AND ? "
                 "ORDER BY step");
  rows.bind(run).bind(name).bind(from).bind(to);
  std::vector<MetricPoint> out;
  while (rows.step()) out.push_back({rows.integer(0), number_or_nan(rows, 1)});
  return out;
}

std::vector<RankRow> RunReader::rank_history(const std::string& run) {
  Statement rows(database_, "SELECT layer, bond, step, rank FROM ranks WHERE run = ? ORDER BY step, layer, bond");
  rows.bind(run);
  std::vector<RankRow> out;
  while (rows.step()) out.push_back({rows.text(0), rows.integer(1), rows.integer(2), rows.integer(3)});
  return out;
}

std::vector<RankRow> RunReader::ranks_at(const std::string& run, int64_t step) {
  Statement rows(database_, "SELECT layer, bond, max(step), rank FROM ranks WHERE run = ? AND step <= ? GROUP BY layer, bond ORDER BY layer, bond");
  rows.bind(run).bind(step);
  std::vector<RankRow> out;
  while (rows.step()) out.push_back({rows.text(0), rows.integer(1), rows.integer(2), rows.integer(3)});
  return out;
}

std::vector<MemoryRow> RunReader::memory(const std::string& run) {
  Statement rows(database_, "SELECT purpose, step, bytes FROM memory WHERE run = ? ORDER BY step, purpose");
  rows.bind(run);
  std::vector<MemoryRow> out;
  while (rows.step()) out.push_back({rows.text(0), rows.integer(1), rows.integer(2)});
  return out;
}

std::vector<EventRow> RunReader::events(const std::string& run) {
  Statement rows(database_, "SELECT id, step, kind, body, wall FROM events WHERE run = ? ORDER BY step, id");
  rows.bind(run);
  std::vector<EventRow> out;
  while (rows.step()) out.push_back({rows.integer(0), rows.integer(1), rows.text(2), rows.text(3), rows.real(4)});
  return out;
}

std::vector<CheckpointRow> RunReader::checkpoints(const std::string& run) {
  Statement rows(database_, "SELECT step, bytes, path, kind FROM checkpoints WHERE run = ? ORDER BY step");
  rows.bind(run);
  std::vector<CheckpointRow> out;
  while (rows.step()) out.push_back({rows.integer(0), rows.integer(1), rows.text(2), rows.text(3)});
  return out;
}

RunReader::Table RunReader::query(const std::string& sql) {
  database_.allow_only_reading();
  Statement rows(database_, sql);
  Table table;
  for (int column = 0; column < rows.columns(); ++column) table.columns.push_back(rows.column_name(column));
  while (rows.step()) {
    table.rows.emplace_back();
    table.types.emplace_back();
    for (int column = 0; column < rows.columns(); ++column) {
      table.rows.back().push_back(rows.text(column));
      table.types.back().push_back(rows.type(column));
    }
  }
  return table;
}

// ---- changes -----------------------------------------------------------------------------------------------------

namespace {
void change(const std::string& store, const std::string& run, const char* sql, const std::string& value) {
  Database database(store, Database::Mode::write);
  prepare_schema(database);
  Statement(database, sql).bind(value).bind(run).run();
  if (database.changes() == 0) throw Error(ErrorCode::not_found, "no run " + run, "", "comera runs list shows the runs");
}
}  // namespace

void rename_run(const std::string& store, const std::string& run, const std::string& name) { change(store, run, "UPDATE runs SET name = ? WHERE id = ?", name); }
void tag_run(const std::string& store, const std::string& run, const std::string& tags) { change(store, run, "UPDATE runs SET tags = ? WHERE id = ?", tags); }
void archive_run(const std::string& store, const std::string& run, bool archived) {
  change(store, run, "UPDATE runs SET archived = CAST(? AS INTEGER) WHERE id = ?", archived ? "1" : "0");
}

void purge_run(const std::string& store, const std::string& run) {
  std::vector<CheckpointRow> checkpoints;
  {
    RunReader reader(store);
    checkpoints = reader.checkpoints(run);
  }
  Database database(store, Database::Mode::write);
  prepare_schema(database);
  Transaction transaction(database);
  for (const char* table : {"metrics", "ranks", "memory", "events", "checkpoints"})
    Statement(database, std::string("DELETE FROM ") + table + " WHERE run = ?").bind(run).run();
  Statement(database, "DELETE FROM runs WHERE id = ?").bind(run).run();
  if (database.changes() == 0) throw Error(ErrorCode::not_found, "no run " + run, "", "comera runs list shows the runs");
  transaction.commit();
  for (const CheckpointRow& checkpoint : checkpoints) {
    std::error_code ignored;
    std::filesystem::remove(checkpoint.path, ignored);
    std::filesystem::remove(std::filesystem::path(checkpoint.path).parent_path(), ignored);  // when it was the last one
  }
}

}  // namespace comera
