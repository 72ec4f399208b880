#include "app/cli/planned_sweep.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "core/session/duel.h"
#include "core/train/forecast.h"

namespace comera::cli {
namespace {

namespace fs = std::filesystem;

// A name for tags and files from that of the file.
std::string name_of_file(const std::string& file) {
  std::string name = file == "-" ? "sweep" : fs::path(file).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return !std::isalnum(c) && c != '-' && c != '_' && c != '.'; }, '-');
  return name;
}

Json read_file(const std::string& file, const std::string& shown) {
  try {
    return read_json_file(file);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::config) throw;
    throw Error(error.code(), error.what(), error.why(), "comera help sweep shows an example");
  }
}

std::string steps_text(const SweepPlan& plan, const RunConfig& config) {
  if (plan.sweep.halving) {
    std::string text;
    for (const int64_t rung : plan.sweep.halving->rungs) text += (text.empty() ? "" : ", ") + thousands(static_cast<double>(rung));
    return text;
  }
  if (config.train.steps > 0) return thousands(static_cast<double>(config.train.steps));
  return significant(config.train.epochs, 3) + " epochs";
}

}  // namespace

SweepPlan plan_of(const SweepOptions& options, const std::string& file) {
  SweepPlan plan;
  plan.sweep = read_sweep(read_file(file, options.file), options.file == "-" ? "stdin" : options.file, name_of_file(options.file));
  plan.points = plan_sweep(plan.sweep, [&](const std::vector<std::string>& sets) { return load_config(plan.sweep.base, sets); });
  plan.metric = &metric_of(plan.sweep, plan.points);
  if (!options.metric.empty()) {
    plan.metric = find_metric(options.metric);
    if (!plan.metric || plan.metric->better == Better::none)
      throw Error(ErrorCode::usage, "points cannot be sorted by '" + options.metric + "'",
                  plan.metric ? "neither high nor low values of it are better" : "there is no such metric",
                  "for example --metric val_loss");
  }
  plan.tasks = tasks_of(plan.points);
  plan.task = options.task;
  const auto count = static_cast<int64_t>(plan.tasks.size());
  if (options.task >= count)
    throw Error(ErrorCode::usage, "there is no task " + std::to_string(options.task), "the tasks are 0 to " + std::to_string(count - 1),
                "comera sweep FILE --plan lists them");
  if (plan.sweep.halving && (options.task >= 0 || !options.slurm.empty()))
    throw Error(ErrorCode::usage, "halving cannot be divided into tasks", "which runs continue after a rung depends on all runs of it",
                "run the sweep on one machine with --jobs, or leave halving out");
  for (size_t i = 0; i < plan.points.size(); ++i)
    if (!plan.runs_of(i).empty()) plan.chosen.push_back(i);
  return plan;
}

Json settings_json(const SweepSettings& settings) {
  Json json = Json::object();
  for (const auto& [path, value] : settings) json[path] = parse_valid_json(value);
  return json;
}

std::vector<std::string> short_names(const Sweep& sweep) {
  std::vector<std::string> names;
  for (const std::string& path : sweep.varied()) names.push_back(short_name(path, sweep.varied()));
  return names;
}

std::vector<std::string> cells_of(const SweepSettings& settings) {
  std::vector<std::string> cells;
  for (const auto& [path, value] : settings) {
    const Json json = parse_valid_json(value);
    cells.push_back(json.is_string() ? json.get<std::string>() : value);
  }
  return cells;
}

Json left_out_json(const SweepPlan& plan) {
  Json left_out = Json::array();
  for (const SweepPoint& point : plan.points)
    if (point.runs.empty())
      left_out.push_back({{"point", point.number}, {"settings", settings_json(point.settings)}, {"reason", point.refusal}});
  return left_out;
}

void note_left_out(const Context& context, const SweepPlan& plan) {
  for (const SweepPoint& point : plan.points)
    if (point.runs.empty())
      note(context, "point " + std::to_string(point.number) + " (" + text_of(point.settings, plan.sweep.varied()) +
                        ") is left out: " + point.refusal);
}

int print_plan(const Context& context, const SweepOptions& options, const SweepPlan& plan) {
  std::vector<std::vector<std::string>> rows;
  Json points = Json::array();
  int64_t task = 0;
  for (const SweepPoint& point : plan.points) {
    if (point.runs.empty()) continue;
    const RunConfig& config = point.runs.front();
    const int64_t peak = make_forecast(config).memory.total(), last = task + static_cast<int64_t>(point.runs.size()) - 1;
    std::vector<std::string>& row = rows.emplace_back(1, std::to_string(point.number));
    for (const std::string& cell : cells_of(point.settings)) row.push_back(cell);
    row.push_back(std::to_string(task) + (last > task ? "-" + std::to_string(last) : ""));
    row.push_back(steps_text(plan, config));
    row.push_back(mebibytes(static_cast<double>(peak)));
    Json runs = Json::array();
    for (const RunConfig& run : point.runs) runs.push_back({{"task", task++}, {"name", run.name}, {"seed", run.train.seed}});
    points.push_back({{"point", point.number},
                      {"settings", settings_json(point.settings)},
                      {"steps", config.train.steps > 0 ? Json(config.train.steps) : Json(nullptr)},
                      {"epochs", config.train.steps > 0 ? Json(nullptr) : Json(config.train.epochs)},
                      {"memory", {{"planned_peak_bytes", peak}}},
                      {"runs", runs}});
  }
  Json rungs = Json::array();
  if (plan.sweep.halving) {
    const std::vector<int64_t> sizes = rung_sizes(*plan.sweep.halving, static_cast<int64_t>(plan.chosen.size()));
    for (size_t i = 0; i < sizes.size(); ++i) rungs.push_back({{"steps", plan.sweep.halving->rungs[i]}, {"points", sizes[i]}});
  }
  if (context.json) {
    print_json({{"sweep", plan.sweep.name},
                {"file", options.file},
                {"metric", plan.metric->name},
                {"runs", plan.tasks.size()},
                {"rungs", rungs},
                {"points", points},
                {"left_out", left_out_json(plan)}});
    return 0;
  }
  std::vector<std::string> header{"point"};
  for (const std::string& name : short_names(plan.sweep)) header.push_back(name);
  for (const char* title : {"task", "steps", "peak"}) header.emplace_back(title);
  print_table(context, header, rows);
  note_left_out(context, plan);
  std::string text =
      counted(static_cast<int64_t>(plan.tasks.size()), "run") + " of " + counted(static_cast<int64_t>(points.size()), "point");
  for (const Json& rung : rungs)
    text += (&rung == &rungs.front() ? "; " : ", ") + rung["points"].dump() + " to step " + thousands(rung["steps"].get<double>());
  note(context, text);
  return 0;
}

}  // namespace comera::cli
