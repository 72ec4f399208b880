#include "core/store/run_ops.h"

#include <cmath>
#include <limits>
#include <new>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/store/checkpoint_files.h"
#include "core/store/process.h"

namespace comera {

int32_t MetricNames::index(const std::string& name) {
  if (const auto known = index_.find(name); known != index_.end()) return known->second;
  names_.push_back(name);
  try {
    return index_[name] = static_cast<int32_t>(names_.size() - 1);
  } catch (const std::bad_alloc&) {  // both or none
    index_.erase(name);
    names_.pop_back();
    throw;
  }
}

int64_t bytes_of(const RunOp& op) {
  struct Texts {
    size_t operator()(const MetricsOp& op) const { return op.values.capacity() * sizeof op.values[0]; }
    size_t operator()(const RankOp& op) const { return op.row.layer.size(); }
    size_t operator()(const MemoryOp& op) const { return op.row.purpose.size(); }
    size_t operator()(const EventOp& op) const { return op.row.kind.size() + op.row.body.size(); }
    size_t operator()(const CheckpointOp& op) const { return op.row.path.size() + op.row.kind.size(); }
    size_t operator()(const ForgetCheckpointOp&) const { return 0; }
    size_t operator()(const ForgetEditsOp& op) const { return op.path.size(); }
    size_t operator()(const TruncateOp&) const { return 0; }
    size_t operator()(const SetAsideOp& op) const { return op.course.start.config.size() + op.course.event.size(); }
    size_t operator()(const SummaryOp&) const { return 0; }
    size_t operator()(const FinishOp& op) const { return op.status.size() + op.message.size(); }
  };
  return static_cast<int64_t>(sizeof(RunOp) + std::visit(Texts{}, op));
}

// ---- JSON --------------------------------------------------------------------------------------------------------

Json json_of(double value) {
  if (std::isfinite(value)) return value;
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

double double_of(const Json& json) {
  if (!json.is_string()) return json.get<double>();
  const std::string text = json.get<std::string>();
  return text == "inf" ? std::numeric_limits<double>::infinity() : text == "-inf" ? -std::numeric_limits<double>::infinity() : kUnknown;
}

namespace {

// Name and place of each number of a summary: one list for JSON both ways.
template <class Summary, class Visit>
void each_number(Summary& s, Visit visit) {
  visit("train_loss", s.train_loss);
  visit("val_loss", s.val_loss);
  visit("val_accuracy", s.val_accuracy);
  visit("entries", s.entries);
  visit("bytes", s.bytes);
  visit("dense_bytes", s.dense_bytes);
  visit("compression", s.compression);
  visit("peak_bytes", s.peak_bytes);
  visit("step_ms", s.step_ms);
}

struct ToJson {
  const MetricNames& names;
  Json operator()(const MetricsOp& op) const {
    Json values = Json::object();
    for (const auto& [name, value] : op.values) values[names.name(name)] = json_of(value);
    return {{"op", "metrics"}, {"step", op.step}, {"wall_time", op.wall_time}, {"values", values}};
  }
  Json operator()(const RankOp& op) const {
    return {{"op", "rank"}, {"step", op.row.step}, {"layer", op.row.layer}, {"bond", op.row.bond}, {"rank", op.row.rank}};
  }
  Json operator()(const MemoryOp& op) const {
    return {{"op", "memory"}, {"step", op.row.step}, {"purpose", op.row.purpose}, {"bytes", op.row.bytes}};
  }
  Json operator()(const EventOp& op) const {
    return {{"op", "event"},       {"seq", op.row.seq},   {"step", op.row.step},
            {"kind", op.row.kind}, {"time", op.row.time}, {"body", op.row.body}};
  }
  Json operator()(const CheckpointOp& op) const {
    return {{"op", "checkpoint"},    {"step", op.row.step}, {"path", op.row.path},
            {"bytes", op.row.bytes}, {"kind", op.row.kind}, {"time", op.row.time}};
  }
  Json operator()(const ForgetCheckpointOp& op) const { return {{"op", "forget_checkpoint"}, {"step", op.step}}; }
  Json operator()(const ForgetEditsOp& op) const { return {{"op", "forget_edits"}, {"path", op.path}, {"step", op.step}}; }
  Json operator()(const TruncateOp& op) const { return {{"op", "truncate"}, {"step", op.step}}; }
  Json operator()(const SetAsideOp& op) const {
    return {{"op", "set_aside"},
            {"step", op.course.step},
            {"id", op.id},
            {"status", op.status},
            {"message", op.message},
            {"start", start_to_json(op.course.start)},
            {"event", op.course.event},
            {"checkpoint", (*this)(CheckpointOp{op.course.checkpoint})}};
  }
  Json operator()(const SummaryOp& op) const {
    Json json = {{"op", "summary"}, {"step", op.summary.step}, {"total_steps", op.summary.total_steps}, {"stage", op.summary.stage}};
    each_number(op.summary, [&](const char* name, double value) { json[name] = json_of(value); });
    return json;
  }
  Json operator()(const FinishOp& op) const { return {{"op", "finish"}, {"status", op.status}, {"message", op.message}}; }
};

CheckpointRow checkpoint_of(const Json& json) {
  return {json.at("step"), json.at("path"), json.at("bytes"), json.at("kind"), json.at("time")};
}

}  // namespace

Json op_to_json(const RunOp& op, const MetricNames& names) { return std::visit(ToJson{names}, op); }

RunOp op_from_json(const Json& json, MetricNames& names) {
  const std::string op = json.at("op");
  if (op == "finish") return FinishOp{json.at("status"), json.at("message")};
  const int64_t step = json.at("step");
  if (op == "metrics") {
    MetricsOp out{step, json.at("wall_time"), {}};
    for (const auto& [name, value] : json.at("values").items()) out.values.emplace_back(names.index(name), double_of(value));
    return out;
  }
  if (op == "rank") return RankOp{{step, json.at("layer"), json.at("bond"), json.at("rank")}};
  if (op == "memory") return MemoryOp{{step, json.at("purpose"), json.at("bytes")}};
  if (op == "event") return EventOp{{json.at("seq"), step, json.at("kind"), json.at("time"), json.at("body")}};
  if (op == "checkpoint") return CheckpointOp{checkpoint_of(json)};
  if (op == "forget_checkpoint") return ForgetCheckpointOp{step};
  if (op == "forget_edits") return ForgetEditsOp{json.at("path"), step};
  if (op == "truncate") return TruncateOp{step};
  if (op == "set_aside")
    return SetAsideOp{json.at("id"),
                      json.at("status"),
                      json.at("message"),
                      {step, start_from_json(json.at("start")), json.at("event"), checkpoint_of(json.at("checkpoint"))}};
  SummaryOp out;
  if (op != "summary") json.at("no such op");  // throws, as a missing key does
  out.summary.step = step;
  out.summary.total_steps = json.at("total_steps");
  out.summary.stage = json.at("stage");
  each_number(out.summary, [&](const char* name, double& value) { value = double_of(json.at(name)); });
  return out;
}

Json start_to_json(const RunStart& start) {
  return {{"name", start.name},
          {"config", start.config},
          {"seed", start.seed},
          {"device", start.device},
          {"data_fingerprint", start.data_fingerprint},
          {"parent", start.parent},
          {"fork_step", start.fork_step},
          {"total_steps", start.total_steps},
          {"tags", start.tags}};
}

RunStart start_from_json(const Json& json) {
  RunStart start;
  start.name = json.at("name");
  start.config = json.at("config");
  start.seed = json.at("seed");
  start.device = json.at("device");
  start.data_fingerprint = json.at("data_fingerprint");
  start.parent = json.at("parent");
  start.fork_step = json.at("fork_step");
  start.total_steps = json.at("total_steps");
  start.tags = json.at("tags").get<std::vector<std::string>>();
  return start;
}

// ---- runs --------------------------------------------------------------------------------------------------------

std::string tags_text(const std::vector<std::string>& tags) { return Json(tags).dump(-1, ' ', false, Json::error_handler_t::replace); }

std::vector<std::string> tags_of(const std::string& text) {
  std::vector<std::string> tags;
  if (text == "[]") return tags;  // of most runs in a long list
  const Json json = try_parse_json(text);
  if (json.is_array())
    for (const Json& tag : json)
      if (tag.is_string()) tags.push_back(tag);
  return tags;
}

int64_t insert_run(Database& db, const std::string& id, const RunStart& start, double created) {
  Statement(db,
            "INSERT INTO runs(id, name, created, status, heartbeat, seed, device, data_fingerprint, parent, fork_step, step, total_steps, "
            "tags, config)"
            " VALUES(?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
      .bind(id, start.name, created, created, start.seed, start.device, start.data_fingerprint, start.parent, start.fork_step,
            start.fork_step, start.total_steps, tags_text(start.tags), start.config)
      .run();
  return find_run(db, id);
}

int64_t find_run(Database& db, const std::string& id) {
  Statement statement(db, "SELECT run FROM runs WHERE id = ?");
  return statement.bind(id).step() ? statement.integer(0) : 0;
}

std::string unused_run_id(Database& db) {
  std::string id;
  do id = "r-" + random_text(6);  // 10^9 ids: a clash is rare, and noticed
  while (find_run(db, id) != 0);
  return id;
}

constexpr const char* kTablesOfSteps[] = {"steps", "ranks", "memory", "events", "checkpoints"};  // and metrics

// ---- RunTables ---------------------------------------------------------------------------------------------------

RunTables::RunTables(Database& db, int64_t run)
    : db_(db),
      run_(run),
      metric_(db, "INSERT OR REPLACE INTO metrics(run, metric, step, value) VALUES(?, ?, ?, ?)"),
      step_(db, "INSERT OR IGNORE INTO steps(run, step, wall_time) VALUES(?, ?, ?)"),
      rank_(db, "INSERT OR REPLACE INTO ranks(run, layer, bond, step, rank) VALUES(?, ?, ?, ?, ?)"),
      memory_(db, "INSERT OR REPLACE INTO memory(run, purpose, step, bytes) VALUES(?, ?, ?, ?)"),
      event_(db, "INSERT OR REPLACE INTO events(run, seq, step, kind, time, body) VALUES(?, ?, ?, ?, ?, ?)"),
      checkpoint_(db, "INSERT OR REPLACE INTO checkpoints(run, step, path, bytes, kind, time) VALUES(?, ?, ?, ?, ?, ?)"),
      forget_(db, "DELETE FROM checkpoints WHERE run = ? AND step = ?"),
      forget_edits_(db, "DELETE FROM events WHERE run = ? AND kind = 'edit' AND step > ? AND json_extract(body, '$.path') = ?"),
      summary_(
          db,
          "UPDATE runs SET step = ?, total_steps = ?, stage = ?, train_loss = ?, val_loss = ?, val_accuracy = ?, entries = ?, bytes = ?, "
          "dense_bytes = ?, compression = ?, peak_bytes = ?, step_ms = ? WHERE run = ?"),
      finish_(db, "UPDATE runs SET status = ?, message = ? WHERE run = ?") {}

int64_t RunTables::metric_key(const std::string& name) {
  const auto found = metric_keys_.find(name);
  if (found != metric_keys_.end()) return found->second;
  Statement(db_, "INSERT OR IGNORE INTO metric_names(name) VALUES(?)").bind(name).run();
  Statement key(db_, "SELECT metric FROM metric_names WHERE name = ?");
  CHECK(key.bind(name).step(), name);
  return metric_keys_[name] = key.integer(0);
}

void RunTables::apply_one(const MetricsOp& op, const MetricNames& names) {
  step_.bind(run_, op.step, op.wall_time).run();
  for (const auto& [name, value] : op.values) metric_.bind(run_, metric_key(names.name(name)), op.step, value).run();
}

std::vector<int64_t> RunTables::all_metrics() {
  std::vector<int64_t> keys;
  for (Statement all(db_, "SELECT metric FROM metric_names"); all.step();) keys.push_back(all.integer(0));
  return keys;
}

// Nothing is copied but what the new run begins with: its rows change hands.
void RunTables::set_aside(const SetAsideOp& op) {
  if (find_run(db_, op.id) != 0) return;  // done before
  const int64_t after = op.course.step;
  double began = now_s(), ended = began;
  {
    Statement times(db_, "SELECT min(wall_time), max(wall_time) FROM steps WHERE run = ? AND step > ?");
    times.bind(run_, after).step();
    if (!times.is_null(0)) {
      began = times.real(0);
      ended = times.real(1);
    }
  }
  const int64_t to = insert_run(db_, op.id, op.course.start, began);
  const std::string columns =
      "step, total_steps, stage, train_loss, val_loss, val_accuracy, entries, bytes, dense_bytes, compression, peak_bytes, step_ms";
  Statement(db_, "UPDATE runs SET (" + columns + ") = (SELECT " + columns +
                     " FROM runs WHERE run = ?), status = ?, message = ?, heartbeat = ?, active_s = ? WHERE run = ?")
      .bind(run_, op.status, op.message, ended, ended - began, to)
      .run();
  // What was in force at its first step, as the newest row of each kind up to there says.
  Statement(db_,
            "INSERT INTO ranks(run, layer, bond, step, rank) SELECT ?, layer, bond, ?, rank FROM"
            " (SELECT layer, bond, max(step), rank FROM ranks WHERE run = ? AND step <= ? GROUP BY layer, bond)")
      .bind(to, after, run_, after)
      .run();
  Statement(db_,
            "INSERT INTO memory(run, purpose, step, bytes) SELECT ?, purpose, ?, bytes FROM"
            " (SELECT purpose, max(step), bytes FROM memory WHERE run = ? AND step <= ? GROUP BY purpose)")
      .bind(to, after, run_, after)
      .run();
  Statement metrics(db_, "UPDATE metrics SET run = ? WHERE run = ? AND metric = ? AND step > ?");
  for (int64_t key : all_metrics()) metrics.bind(to, run_, key, after).run();
  for (const char* table : kTablesOfSteps)
    Statement(db_, std::string("UPDATE ") + table + " SET run = ? WHERE run = ? AND step > ?").bind(to, run_, after).run();
  // Its files move to its folder, so that the run that goes on can write its own.
  std::vector<std::pair<int64_t, std::string>> files;
  Statement paths(db_, "SELECT step, path FROM checkpoints WHERE run = ?");
  for (paths.bind(to); paths.step();) files.emplace_back(paths.integer(0), moved_checkpoint(paths.text(1), op.course.start.parent, op.id));
  paths.reset();
  Statement move(db_, "UPDATE checkpoints SET path = ? WHERE run = ? AND step = ?");
  for (const auto& [step, path] : files) move.bind(path, to, step).run();
  // The first event of a run is its start, at or before that step: number 0 is free.
  event_.bind(to, int64_t{0}, after, "start", began, op.course.event).run();
  if (const CheckpointRow& first = op.course.checkpoint; !first.path.empty())
    checkpoint_.bind(to, first.step, first.path, first.bytes, first.kind, first.time).run();
}

void RunTables::apply(const RunOp& op, const MetricNames& names) {
  struct Visitor {
    RunTables& t;
    const MetricNames& names;
    void operator()(const MetricsOp& op) { t.apply_one(op, names); }
    void operator()(const RankOp& op) { t.rank_.bind(t.run_, op.row.layer, op.row.bond, op.row.step, op.row.rank).run(); }
    void operator()(const MemoryOp& op) { t.memory_.bind(t.run_, op.row.purpose, op.row.step, op.row.bytes).run(); }
    void operator()(const EventOp& op) { t.event_.bind(t.run_, op.row.seq, op.row.step, op.row.kind, op.row.time, op.row.body).run(); }
    void operator()(const CheckpointOp& op) {
      t.checkpoint_.bind(t.run_, op.row.step, op.row.path, op.row.bytes, op.row.kind, op.row.time).run();
    }
    void operator()(const ForgetCheckpointOp& op) { t.forget_.bind(t.run_, op.step).run(); }
    void operator()(const ForgetEditsOp& op) { t.forget_edits_.bind(t.run_, op.step, op.path).run(); }
    void operator()(const TruncateOp& op) {
      // Once a resume, so prepared here. The key begins with (run, metric): one range a metric, not a scan of the run.
      Statement metrics(t.db_, "DELETE FROM metrics WHERE run = ? AND metric = ? AND step > ?");
      for (int64_t key : t.all_metrics()) metrics.bind(t.run_, key, op.step).run();
      for (const char* table : kTablesOfSteps)
        Statement(t.db_, std::string("DELETE FROM ") + table + " WHERE run = ? AND step > ?").bind(t.run_, op.step).run();
      Statement(t.db_, "UPDATE runs SET step = min(step, ?) WHERE run = ?").bind(op.step, t.run_).run();
    }
    void operator()(const SetAsideOp& op) { t.set_aside(op); }
    void operator()(const SummaryOp& op) {
      const RunSummary& s = op.summary;
      t.summary_
          .bind(s.step, s.total_steps, s.stage, s.train_loss, s.val_loss, s.val_accuracy, s.entries, s.bytes, s.dense_bytes, s.compression,
                s.peak_bytes, s.step_ms, t.run_)
          .run();
    }
    void operator()(const FinishOp& op) { t.finish_.bind(op.status, op.message, t.run_).run(); }
  };
  std::visit(Visitor{*this, names}, op);
}

}  // namespace comera
