#include "core/store/run_reader.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/store/checkpoint_files.h"
#include "core/store/run_ops.h"
#include "core/store/schema.h"
#include "core/store/spill.h"
#include "core/store/writer_lock.h"

namespace comera {
namespace {

const std::string kSelectRuns = std::string("SELECT created, ") + kListColumns + ", run FROM runs ";

RunRow run_of(const Statement& row, const std::string& store) {
  RunRow run;
  run.created = row.real(0);
  run.id = row.text(1);
  run.name = row.text(2);
  run.status = row.text(3);
  run.message = row.text(4);
  run.pid = row.integer(5);
  run.heartbeat = row.real(7);
  // A program that was killed could not write that it ended: the sign of life decides.
  if (run.status == "running" && !writer_alive(store, row.integer(29), run.heartbeat, run.pid, row.text(6))) run.status = "interrupted";
  run.active_s = row.real(8);
  run.seed = row.integer(9);
  run.device = row.text(10);
  run.data_fingerprint = row.text(11);
  run.parent = row.text(12);
  run.fork_step = row.integer(13);
  run.summary.step = row.integer(14);
  run.summary.total_steps = row.integer(15);
  run.summary.stage = row.text(16);
  double* const numbers[] = {&run.summary.train_loss,  &run.summary.val_loss,   &run.summary.val_accuracy,
                             &run.summary.entries,     &run.summary.bytes,      &run.summary.dense_bytes,
                             &run.summary.compression, &run.summary.peak_bytes, &run.summary.step_ms};
  int column = 17;
  for (double* number : numbers) *number = row.real(column++);
  run.tags = tags_of(row.text(26));
  run.notes = row.text(27);
  run.archived = row.integer(28) != 0;
  return run;
}

bool begins_with(const std::string& text, const std::string& beginning) { return text.compare(0, beginning.size(), beginning) == 0; }

struct Named {
  std::string id, name;
};

// "r-abc123 (mnli-r30), ..." of at most five runs.
std::string list_of(const std::vector<Named>& runs) {
  std::string text;
  for (size_t i = 0; i < runs.size() && i < 5; ++i) text += (i ? ", " : "") + runs[i].id + " (" + runs[i].name + ")";
  return runs.size() > 5 ? text + ", and " + std::to_string(runs.size() - 5) + " more" : text;
}

// Up to three ids and names like `text`.
std::string nearest_of(const std::string& text, const std::vector<Named>& runs) {
  std::vector<std::string> known;
  for (const Named& run : runs) {
    known.push_back(run.id);
    known.push_back(run.name);
  }
  std::string list;
  for (int i = 0; i < 3; ++i) {
    const std::string near = nearest_name(text, known);
    if (near.empty()) break;
    list += (list.empty() ? "" : ", ") + near;
    std::erase(known, near);
  }
  return list;
}

}  // namespace

RunReader::RunReader(const std::string& store, double busy_s) : path_(store) {
  if (has_spills(store)) {
    try {
      merge_spills(*open_store(store, StoreAccess::write, 0.5));
    } catch (const Error&) {  // a store that may only be read, or is in use: what it holds can still be read
    }
  }
  db_ = open_store(store, StoreAccess::read, busy_s);
}
RunReader::~RunReader() = default;
RunReader::RunReader(RunReader&&) noexcept = default;

std::string RunReader::read_only() const {
  const std::string newer = why_newer(*db_);
  return newer.empty() ? why_read_only(path_) : newer;
}

void RunReader::in_one_state(const std::function<void()>& read) const {
  Transaction state(*db_, Transaction::Kind::read);
  read();
  state.commit();
}

int64_t RunReader::rows_given() const { return db_->rows_given(); }

int64_t RunReader::key_of(const std::string& id) const {
  const int64_t key = find_run(*db_, id);
  if (key == 0) throw Error(ErrorCode::not_found, "there is no run " + id + " in " + path_, "", "comera runs list shows the runs");
  return key;
}

// ---- runs --------------------------------------------------------------------------------------------------------

std::vector<RunRow> RunReader::runs(bool with_archived) const {
  Statement rows(*db_, kSelectRuns + (with_archived ? "" : "WHERE archived = 0 ") + "ORDER BY created DESC, run DESC");
  std::vector<RunRow> out;
  while (rows.step()) out.push_back(run_of(rows, path_));
  return out;
}

RunRow RunReader::run(const std::string& id) const {
  Statement row(*db_, kSelectRuns + "WHERE id = ?");
  if (!row.bind(id).step()) key_of(id);  // throws
  return run_of(row, path_);
}

RunRow RunReader::find(const std::string& text) const {
  std::vector<Named> all, exact, beginning;
  Statement rows(*db_, "SELECT id, name FROM runs ORDER BY created DESC, run DESC");
  while (rows.step()) all.push_back({rows.text(0), rows.text(1)});
  for (const Named& run : all) {
    if (run.id == text) return this->run(text);
    if (run.name == text)
      exact.push_back(run);
    else if (begins_with(run.id, text) || begins_with(run.id, "r-" + text) || begins_with(run.name, text))
      beginning.push_back(run);
  }
  const std::vector<Named>& fits = exact.empty() ? beginning : exact;
  if (fits.size() == 1 && !text.empty()) return run(fits[0].id);
  if (fits.size() > 1 && !text.empty())
    throw Error(ErrorCode::not_found, "'" + text + "' fits " + std::to_string(fits.size()) + " runs", list_of(fits),
                "give the id of one run");
  const std::string near = nearest_of(text, all);
  throw Error(ErrorCode::not_found, "there is no run '" + text + "' in " + path_, std::to_string(all.size()) + " runs are stored there",
              near.empty() ? "comera runs list shows the runs" : "did you mean " + near + "?");
}

std::string RunReader::config(const std::string& id) const {
  Statement row(*db_, "SELECT config FROM runs WHERE run = ?");
  row.bind(key_of(id)).step();
  return row.text(0);
}

// ---- metrics -----------------------------------------------------------------------------------------------------

std::vector<std::string> RunReader::metric_names(const std::string& id) const {
  Statement rows(
      *db_,
      "SELECT name FROM metric_names WHERE EXISTS(SELECT 1 FROM metrics WHERE metrics.run = ? AND metrics.metric = metric_names.metric) "
      "ORDER BY metric");
  rows.bind(key_of(id));
  std::vector<std::string> names;
  while (rows.step()) names.push_back(rows.text(0));
  return names;
}

Series RunReader::metric(const std::string& id, const std::string& name, int64_t after_step) const {
  Series series;
  metric(id, name, after_step, INT64_MAX, series);
  return series;
}

void RunReader::metric(const std::string& id, const std::string& name, int64_t after_step, int64_t last_step, Series& series,
                       const std::function<void(int64_t step)>& seen) const {
  constexpr size_t kBetween = 65'536;
  constexpr double kMost = 1e8;
  const int64_t last = std::min(last_step, this->last_step(id));
  Statement rows(*db_,
                 "SELECT step, value FROM metrics WHERE run = ? AND metric = (SELECT metric FROM metric_names WHERE name = ?) AND step > ? "
                 "AND step <= ? ORDER BY step");
  rows.bind(key_of(id), name, after_step, last_step);
  for (size_t count = 1; rows.step(); ++count) {
    series.steps.push_back(rows.integer(0));
    series.values.push_back(rows.real(1));
    if (count % kBetween != 0) continue;
    if (count == kBetween) {  // by now it is known how close the points lie: no copies while millions come
      const int64_t first = series.steps[series.steps.size() - kBetween], step = series.steps.back();
      const double rest = std::clamp(static_cast<double>(last - step) * kBetween / static_cast<double>(step - first + 1), 0.0, kMost);
      series.steps.reserve(series.steps.size() + static_cast<size_t>(rest) + 1);
      series.values.reserve(series.steps.capacity());
    }
    if (seen) seen(series.steps.back());
  }
}

std::vector<MetricPoint> RunReader::metric_around(const std::string& id, const std::string& name, int64_t step, int64_t window) const {
  Statement rows(
      *db_,
      "SELECT metrics.step, wall_time, value FROM metrics LEFT JOIN steps ON steps.run = metrics.run AND steps.step = metrics.step "
      "WHERE metrics.run = ? AND metric = (SELECT metric FROM metric_names WHERE name = ?) AND metrics.step BETWEEN ? AND ? "
      "ORDER BY metrics.step");
  rows.bind(key_of(id), name, step - window, step + window);
  std::vector<MetricPoint> points;
  while (rows.step()) points.push_back({rows.integer(0), rows.real(1), rows.real(2)});
  return points;
}

NamedValues RunReader::metrics_at(const std::string& id, int64_t step) const {
  Statement rows(*db_, "SELECT name, value FROM metric_names JOIN metrics USING(metric) WHERE run = ? AND step = ? ORDER BY metric");
  rows.bind(key_of(id), step);
  NamedValues values;
  while (rows.step()) values.emplace_back(rows.text(0), rows.real(1));
  return values;
}

Series RunReader::wall_times(const std::string& id, int64_t after_step) const {
  Statement rows(*db_, "SELECT step, wall_time FROM steps WHERE run = ? AND step > ? ORDER BY step");
  rows.bind(key_of(id), after_step);
  Series series;
  while (rows.step()) {
    series.steps.push_back(rows.integer(0));
    series.values.push_back(rows.real(1));
  }
  return series;
}

int64_t RunReader::last_step(const std::string& id) const {
  Statement row(*db_, "SELECT step FROM steps WHERE run = ? ORDER BY step DESC LIMIT 1");
  return row.bind(key_of(id)).step() ? row.integer(0) : -1;
}

void RunReader::each_metric(const std::string& id,
                            const std::function<void(int64_t step, double wall_time, const std::string& name, double value)>& visit) const {
  Statement rows(
      *db_,
      "SELECT metrics.step, wall_time, name, value FROM metrics JOIN metric_names USING(metric) "
      "LEFT JOIN steps ON steps.run = metrics.run AND steps.step = metrics.step WHERE metrics.run = ? ORDER BY metrics.step, name");
  rows.bind(key_of(id));
  while (rows.step()) visit(rows.integer(0), rows.real(1), rows.text(2), rows.real(3));
}

// ---- ranks, memory, events, checkpoints --------------------------------------------------------------------------

std::vector<LayerRank> RunReader::ranks_at(const std::string& id, int64_t step) const {
  // SQLite promises that bare columns beside max() come from the row of the maximum.
  Statement rows(*db_,
                 "SELECT layer, bond, rank, max(step) FROM ranks WHERE run = ? AND step <= ? GROUP BY layer, bond ORDER BY layer, bond");
  rows.bind(key_of(id), step);
  std::vector<LayerRank> out;
  while (rows.step()) out.push_back({rows.text(0), rows.integer(1), rows.integer(2), rows.integer(3)});
  return out;
}

std::vector<RankRow> RunReader::rank_history(const std::string& id, int64_t after_step) const {
  Statement rows(*db_, "SELECT step, layer, bond, rank FROM ranks WHERE run = ? AND step > ? ORDER BY step, layer, bond");
  rows.bind(key_of(id), after_step);
  std::vector<RankRow> out;
  while (rows.step()) out.push_back({rows.integer(0), rows.text(1), rows.integer(2), rows.integer(3)});
  return out;
}

std::vector<MemoryRow> RunReader::memory(const std::string& id, int64_t after_step) const {
  Statement rows(*db_, "SELECT step, purpose, bytes FROM memory WHERE run = ? AND step > ? ORDER BY step, purpose");
  rows.bind(key_of(id), after_step);
  std::vector<MemoryRow> out;
  while (rows.step()) out.push_back({rows.integer(0), rows.text(1), rows.integer(2)});
  return out;
}

std::vector<EventRow> RunReader::events(const std::string& id, int64_t after_seq) const {
  Statement rows(*db_, "SELECT seq, step, kind, time, body FROM events WHERE run = ? AND seq > ? ORDER BY seq");
  rows.bind(key_of(id), after_seq);
  std::vector<EventRow> out;
  while (rows.step()) out.push_back({rows.integer(0), rows.integer(1), rows.text(2), rows.real(3), rows.text(4)});
  return out;
}

int64_t RunReader::events_until(const std::string& id, int64_t seq) const {
  Statement count(*db_, "SELECT count(*) FROM events WHERE run = ? AND seq <= ?");
  count.bind(key_of(id), seq).step();
  return count.integer(0);
}

std::vector<CheckpointRow> RunReader::checkpoints(const std::string& id) const {
  Statement rows(*db_, "SELECT step, path, bytes, kind, time FROM checkpoints WHERE run = ? ORDER BY step");
  rows.bind(key_of(id));
  std::vector<CheckpointRow> out;
  while (rows.step()) {
    const std::string path = place_of_checkpoint(rows.text(1), db_->path());
    out.push_back({rows.integer(0), path, rows.integer(2), rows.text(3), rows.real(4)});
  }
  return out;
}

}  // namespace comera
