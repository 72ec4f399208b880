#include "core/store/export.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/paths.h"
#include "core/store/run_ops.h"
#include "core/store/tfevents.h"

namespace comera {
namespace {

constexpr const char* kLineEnd = "\r\n";  // RFC 4180

void check(const std::ostream& out, const std::string& what = "the export") {
  if (!out)
    throw Error(ErrorCode::storage, "cannot write " + what, "the disk is full, or the reader has gone",
                "free some disk space, or choose another file");
}

// An empty cell where no time was recorded.
std::string time_text(double value) { return std::isnan(value) ? "" : number_text(value); }

void export_wide(const RunReader& reader, const std::vector<std::string>& ids, std::ostream& out) {
  std::vector<std::string> names;
  std::unordered_map<std::string, size_t> column;
  for (const std::string& id : ids)
    for (const std::string& name : reader.metric_names(id))
      if (column.try_emplace(name, names.size()).second) names.push_back(name);
  out << "run,step,wall_time";
  for (const std::string& name : names) out << ',' << csv_field(name);
  out << kLineEnd;
  for (const std::string& id : ids) {
    std::vector<std::string> cells(names.size());
    int64_t at = 0;
    std::string begin;  // run, step and time of the row being gathered
    const auto write = [&] {
      if (begin.empty()) return;
      out << begin;
      for (std::string& cell : cells) {
        out << ',' << cell;
        cell.clear();
      }
      out << kLineEnd;
    };
    reader.each_metric(id, [&](int64_t step, double wall_time, const std::string& name, double value) {
      if (begin.empty() || step != at) {
        write();
        at = step;
        begin = csv_field(id) + "," + std::to_string(step) + "," + time_text(wall_time);
      }
      cells[column.at(name)] = number_text(value);
    });
    write();
  }
}

// A text that should be JSON, as JSON; else as a text.
Json json_or_text(const std::string& text) {
  Json json = try_parse_json(text);
  return json.is_discarded() ? Json(text) : json;
}

Json run_to_json(const RunReader& reader, const std::string& id) {
  const RunRow run = reader.run(id);
  return {{"type", "run"},
          {"run", run.id},
          {"name", run.name},
          {"created", run.created},
          {"status", run.status},
          {"message", run.message},
          {"active_s", run.active_s},
          {"seed", run.seed},
          {"device", run.device},
          {"data_fingerprint", run.data_fingerprint},
          {"parent", run.parent},
          {"fork_step", run.fork_step},
          {"step", run.summary.step},
          {"total_steps", run.summary.total_steps},
          {"stage", run.summary.stage},
          {"tags", run.tags},
          {"notes", run.notes},
          {"config", json_or_text(reader.config(id))}};
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

void export_csv(const RunReader& reader, const std::vector<std::string>& ids, std::ostream& out, bool wide) {
  if (wide) {
    export_wide(reader, ids, out);
  } else {
    out << "run,step,wall_time,metric,value" << kLineEnd;
    for (const std::string& id : ids)
      reader.each_metric(id, [&](int64_t step, double wall_time, const std::string& name, double value) {
        out << csv_field(id) << ',' << step << ',' << time_text(wall_time) << ',' << csv_field(name) << ',' << number_text(value)
            << kLineEnd;
      });
  }
  out.flush();
  check(out);
}

void export_jsonl(const RunReader& reader, const std::vector<std::string>& ids, std::ostream& out) {
  for (const std::string& id : ids) {
    out << json_line(run_to_json(reader, id));
    Json line;
    const auto write = [&] {
      if (!line.is_null()) out << json_line(line);
    };
    reader.each_metric(id, [&](int64_t step, double wall_time, const std::string& name, double value) {
      if (line.is_null() || line["step"] != step) {
        write();
        line = {{"type", "metrics"},
                {"run", id},
                {"step", step},
                {"wall_time", std::isnan(wall_time) ? Json() : Json(wall_time)},
                {"values", Json::object()}};
      }
      line["values"][name] = json_of(value);
    });
    write();
    for (const RankRow& row : reader.rank_history(id))
      out << json_line({{"type", "rank"}, {"run", id}, {"step", row.step}, {"layer", row.layer}, {"bond", row.bond}, {"rank", row.rank}});
    for (const MemoryRow& row : reader.memory(id))
      out << json_line({{"type", "memory"}, {"run", id}, {"step", row.step}, {"purpose", row.purpose}, {"bytes", row.bytes}});
    for (const EventRow& row : reader.events(id))
      out << json_line({{"type", "event"},
                        {"run", id},
                        {"seq", row.seq},
                        {"step", row.step},
                        {"kind", row.kind},
                        {"time", row.time},
                        {"body", json_or_text(row.body)}});
    for (const CheckpointRow& row : reader.checkpoints(id))
      out << json_line({{"type", "checkpoint"},
                        {"run", id},
                        {"step", row.step},
                        {"path", row.path},
                        {"bytes", row.bytes},
                        {"kind", row.kind},
                        {"time", row.time}});
  }
  out.flush();
  check(out);
}

std::string export_tfevents(const RunReader& reader, const std::string& id, const std::string& folder) {
  namespace fs = std::filesystem;
  const RunRow run = reader.run(id);
  std::string name = run.name + "-" + run.id;
  for (char& c : name)
    if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 32) c = '_';
  if (name[0] == '.') name[0] = '_';
  const std::string path =
      (fs::path(folder) / name / ("events.out.tfevents." + std::to_string(static_cast<int64_t>(run.created)) + ".comera")).string();
  paths::ensure_folder_of(path);
  const std::string part = path + ".part";
  try {
    std::ofstream out(part, std::ios::binary | std::ios::trunc);
    check(out, part);
    TfeventsWriter writer(out, run.created);
    int64_t at = 0;
    double time = run.created;
    NamedValues values;
    reader.each_metric(id, [&](int64_t step, double wall_time, const std::string& metric, double value) {
      if (step != at && !values.empty()) {
        writer.scalars(at, time, values);
        values.clear();
      }
      at = step;
      if (!std::isnan(wall_time)) time = wall_time;
      values.emplace_back(metric, value);
    });
    if (!values.empty()) writer.scalars(at, time, values);
    out.close();
    check(out, part);
    fs::rename(part, path);
  } catch (const std::exception& error) {
    std::error_code ignored;
    fs::remove(part, ignored);
    if (dynamic_cast<const Error*>(&error)) throw;
    throw Error(ErrorCode::storage, "cannot write " + path, error.what());
  }
  return path;
}

}  // namespace comera
