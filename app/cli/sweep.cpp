// comera sweep FILE: trains many combinations of settings under several seeds, several runs at once, each in a process of its own
// (jobs.h). Its runs are ordinary runs of the store, so the same command continues where it was stopped.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <numeric>
#include <optional>
#include <thread>

#include "app/cli/follow.h"
#include "app/cli/jobs.h"
#include "app/cli/sweep_slurm.h"
#include "core/base/draw.h"
#include "core/base/json.h"
#include "core/base/paths.h"
#include "core/comm/mpi.h"
#include "core/session/duel.h"
#include "core/session/sweep_runs.h"
#include "core/store/run_reader.h"
#include "core/train/forecast.h"

namespace comera::cli {
namespace {
namespace fs = std::filesystem;

constexpr size_t kMostShown = 8;  // runs that the window compares at once

struct SweepOptions {
  std::string file, slurm, metric;
  int64_t jobs = 0, task = -1;  // jobs 0: not given
  double grace = 30;
  bool plan = false;
};

struct SweepPlan {
  Sweep sweep;
  std::vector<SweepPoint> points;
  const MetricInfo* metric = nullptr;
  std::vector<const RunConfig*> tasks;
  std::vector<size_t> chosen;  // points that are trained: all that are not left out, or the one of --task
  int64_t task = -1;

  // The step up to which a rung trains; 0 = the end of each config.
  int64_t step_of(size_t rung) const { return sweep.halving ? sweep.halving->rungs[rung] : 0; }
  size_t rungs() const { return sweep.halving ? sweep.halving->rungs.size() : 1; }
  std::vector<const RunConfig*> runs_of(size_t point) const {
    std::vector<const RunConfig*> runs;
    for (const RunConfig& run : points[point].runs)
      if (task < 0 || &run == tasks[static_cast<size_t>(task)]) runs.push_back(&run);
    return runs;
  }
};

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

// ---- the plan ----------------------------------------------------------------------------------------------------------

std::string steps_text(const SweepPlan& plan, const RunConfig& config) {
  if (plan.sweep.halving) {
    std::string text;
    for (const int64_t rung : plan.sweep.halving->rungs) text += (text.empty() ? "" : ", ") + thousands(static_cast<double>(rung));
    return text;
  }
  if (config.train.steps > 0) return thousands(static_cast<double>(config.train.steps));
  return significant(config.train.epochs, 3) + " epochs";
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

// ---- training ----------------------------------------------------------------------------------------------------------

// One process at a time trains the runs of a sweep in a store; its jobs hold the lock as well, so after a kill the next start waits until
// they have ended. Tasks lock a byte each. The file STORE-sweeps may be deleted when no sweep runs.
class SweepLock {
 public:
  SweepLock(const Context& context, const std::string& store, const SweepPlan& plan) {
    const std::string path = store + "-sweeps";
    paths::ensure_folder_of(store);
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) fail_to_write(path);
    constexpr int64_t kTasks = 1 << 20;
    struct flock range {};
    range.l_type = F_WRLCK;
    range.l_whence = SEEK_SET;
    range.l_start = int64_t{site_of(plan.sweep.name)} * kTasks + std::max<int64_t>(0, plan.task);
    range.l_len = plan.task >= 0 ? 1 : kTasks;
    bool waits = false;
    while (::fcntl(file_, F_OFD_SETLK, &range) != 0 && signal_code() == 0) {
      if (errno != EAGAIN && errno != EACCES) return;  // a disk without locks
      if (!waits) note(context, "another process still trains runs of this sweep: waiting until it ends");
      waits = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }
  ~SweepLock() { ::close(file_); }
  SweepLock(const SweepLock&) = delete;
  int file() const { return file_; }

 private:
  int file_ = -1;
};

struct Failure {
  std::string run, name, reason;
  int code = 0;
  // Whether it would fail again: for its config or its data, without a device, without memory.
  bool lasting() const {
    const auto as = static_cast<ErrorCode>(code);
    return as == ErrorCode::config || as == ErrorCode::device || as == ErrorCode::memory;
  }
};

class Training {
 public:
  Training(const Context& context, const SweepOptions& options, const SweepPlan& plan)
      : context_(context),
        options_(options),
        plan_(plan),
        store_(store_path(context)),
        lock_(context, store_, plan),
        data_of_(fingerprints()) {}

  // Trains rung by rung. `reached[point]`: its last rung.
  void all(std::vector<size_t>& reached) {
    note_changes();
    std::vector<size_t> points = plan_.chosen;
    for (size_t rung = 0; rung < plan_.rungs(); ++rung) {
      for (const size_t point : points) reached[point] = rung;
      if (!train(points, rung) || rung + 1 == plan_.rungs()) return;
      points = best_points(points, rung);
      if (points.empty()) return;
    }
  }

  SweepRuns stored() const { return fs::exists(store_) ? SweepRuns(RunReader(store_), plan_.sweep) : SweepRuns(); }
  const DataOf& data_of() const { return data_of_; }
  const std::string& store() const { return store_; }
  const std::vector<Failure>& failures() const { return failures_; }

 private:
  void note_changes() {
    const std::vector<std::string> others = stored().of_no_task(plan_.tasks);
    if (others.empty()) return;
    note(context_, options_.file + " has changed: " + counted(static_cast<int64_t>(others.size()), "run") + " of sweep '" +
                       plan_.sweep.name + "' in the store have other settings and are left as they are (" + others.front() +
                       (others.size() > 1 ? ", ...)" : ")"));
  }

  // All runs of the points up to the rung. False: some may still get there, so nothing can be decided.
  bool train(const std::vector<size_t>& points, size_t rung) {
    std::vector<const RunConfig*> tasks;
    for (const size_t point : points)
      for (const RunConfig* run : plan_.runs_of(point)) tasks.push_back(run);
    const size_t before = failures_.size();
    // Twice: a run that was stopped before an earlier rung ended is brought there first.
    for (int pass = 0; pass < 2; ++pass)
      if (!train(tasks, plan_.step_of(rung), pass == 0)) return false;
    return std::all_of(failures_.begin() + static_cast<std::ptrdiff_t>(before), failures_.end(),
                       [](const Failure& failure) { return failure.lasting(); });
  }

  bool train(const std::vector<const RunConfig*>& tasks, int64_t step, bool first) {
    const SweepRuns stored = this->stored();
    Jobs jobs;
    const auto at_once = static_cast<size_t>(std::max<int64_t>(1, options_.jobs));
    bool stopping = false;
    size_t next = 0;
    while (jobs.running() > 0 || (next < tasks.size() && !stopping)) {
      if (signal_code() != 0 && !stopping) {
        stopping = true;
        if (jobs.running() > 0) note(context_, "\nStopping: each run writes a checkpoint after its step. Ctrl-C again quits at once");
        jobs.send(signal_code() - 128);
      }
      if (!stopping && next < tasks.size() && jobs.running() < at_once) {
        const size_t number = next++;
        const RunConfig& config = *tasks[number];
        const SweepRun* run = stored.find(config, data_of_);
        if (run && run->is_over(step)) {
          if (first) note(context_, place(number, tasks) + ": " + run->row.status + " already, run " + run->row.id);
          continue;
        }
        if (std::any_of(failures_.begin(), failures_.end(), [&](const Failure& failure) { return failure.name == config.name; })) continue;
        start(jobs, number, config, run, step);
        note(context_, place(number, tasks) + (run ? ": continues run " + run->row.id : ""));
        continue;
      }
      if (const auto end = jobs.wait(0.25)) take(*end, place(end->job, tasks), tasks[end->job]->name);
    }
    return signal_code() == 0;
  }

  static std::string place(size_t number, const std::vector<const RunConfig*>& tasks) {
    return "[" + std::to_string(number + 1) + "/" + std::to_string(tasks.size()) + "] " + tasks[number]->name;
  }

  void start(Jobs& jobs, size_t number, const RunConfig& config, const SweepRun* run, int64_t step) {
    std::vector<std::string> arguments;
    std::string input;
    if (!run) {
      RunConfig with_threads = config;
      if (with_threads.train.threads == 0 && options_.jobs > 1)
        with_threads.train.threads = std::max<int64_t>(1, static_cast<int64_t>(std::thread::hardware_concurrency()) / options_.jobs);
      input = config_to_json(with_threads).dump();
      arguments = {"train", "-", "--tag", kSweepTag, "--tag", plan_.sweep.tag()};
    } else {
      arguments = {"resume", run->row.id};
      const int64_t planned = std::max(run->steps, run->row.summary.total_steps);
      if (run->row.status == "finished" && planned < step) {
        arguments.emplace_back("--extend");
        arguments.push_back(std::to_string(step - planned));
      }
    }
    for (const std::string& word : {std::string("--json"), std::string("--quiet"), std::string("--grace"), significant(options_.grace, 6),
                                    std::string("--store"), store_})
      arguments.push_back(word);
    jobs.start(number, arguments, input, lock_.file());
  }

  void take(const JobEnd& end, const std::string& place, const std::string& name) {
    const Json document = try_parse_json(end.output);
    const bool is_read = document.is_object();
    std::string run;
    if (is_read && document.contains("run")) run = document["run"].get<std::string>();
    if (end.code == 0 && is_read) {
      const Json& metrics = document["metrics"];
      std::string text = place + ": " + document["status"].get<std::string>() + ", run " + run;
      if (metrics.contains(plan_.metric->name) && metrics[plan_.metric->name].is_number())
        text += ", " + std::string(plan_.metric->name) + " " + significant(metrics[plan_.metric->name].get<double>(), 4);
      note(context_, text);
      return;
    }
    if (signal_code() != 0 && (end.code == 128 + SIGINT || end.code == 128 + SIGTERM)) return;  // it was stopped
    Failure failure{.run = run, .name = name, .reason = {}, .code = end.code};
    if (end.signal != 0)
      failure.reason = "ended by signal " + std::to_string(end.signal);
    else if (is_read && document.contains("error"))
      failure.reason = document["error"]["message"].get<std::string>() +
                       (document["error"]["why"].get<std::string>().empty() ? "" : ": " + document["error"]["why"].get<std::string>());
    else
      failure.reason = "exit code " + std::to_string(end.code);
    note(context_, place + ": " + failure.reason);
    if (static_cast<ErrorCode>(end.code) != ErrorCode::diverged) failures_.push_back(failure);  // a run that diverges is a result
  }

  std::vector<size_t> best_points(const std::vector<size_t>& points, size_t rung) {
    if (!fs::exists(store_)) return {};  // all runs failed before they began
    const SweepRuns stored = this->stored();
    const RunReader reader(store_);
    std::vector<double> scores;
    for (const size_t point : points) {
      std::vector<double> of_runs;
      for (const RunConfig* config : plan_.runs_of(point)) {
        const SweepRun* run = stored.find(*config, data_of_);
        const bool whole = run && run->row.status != "diverged" && run->is_over(plan_.step_of(rung));
        of_runs.push_back(whole ? score_of(reader, run->row.id, plan_.sweep.halving->metric, plan_.step_of(rung)) : kUnknown);
      }
      scores.push_back(spread_of(of_runs).mean);  // NaN where a run has none
    }
    const int64_t kept = kept_of(static_cast<int64_t>(points.size()), plan_.sweep.halving->keep);
    std::vector<size_t> best;
    for (const size_t index : best_of(scores, find_metric(plan_.sweep.halving->metric)->better, kept)) best.push_back(points[index]);
    std::sort(best.begin(), best.end());
    note(context_, "step " + thousands(static_cast<double>(plan_.step_of(rung))) + ": " +
                       counted(static_cast<int64_t>(best.size()), "point") + " of " + std::to_string(points.size()) + " continue");
    return best;
  }

  const Context& context_;
  const SweepOptions& options_;
  const SweepPlan& plan_;
  std::string store_;
  SweepLock lock_;
  DataOf data_of_;
  std::vector<Failure> failures_;
};

// ---- the result --------------------------------------------------------------------------------------------------------

struct PointResult {
  size_t point = 0, rung = 0;
  std::vector<const RunConfig*> configs;
  std::vector<const SweepRun*> runs;  // of configs; null = it is not begun
  std::vector<double> scores;         // of runs
  Spread spread;                      // of the runs that are over
  std::string status;
};

std::string status_of(const SweepPlan& plan, const PointResult& result) {
  const auto any = [&](const char* status) {
    return std::any_of(result.runs.begin(), result.runs.end(), [&](const SweepRun* run) { return run && run->row.status == status; });
  };
  if (any("diverged")) return "diverged";
  if (any("failed")) return "failed";
  const int64_t step = plan.step_of(result.rung);
  if (!std::all_of(result.runs.begin(), result.runs.end(), [&](const SweepRun* run) { return run && run->is_over(step); }))
    return "unfinished";
  return result.rung + 1 == plan.rungs() ? "finished" : "not_kept";
}

// The furthest first, then by the metric.
std::vector<PointResult> results_of(const SweepPlan& plan, const Training& training, const SweepRuns& stored,
                                    const std::vector<size_t>& reached) {
  std::vector<PointResult> results;
  std::optional<RunReader> reader;
  if (fs::exists(training.store())) reader.emplace(training.store());
  for (const size_t point : plan.chosen) {
    PointResult& result = results.emplace_back();
    result.point = point;
    result.rung = reached[point];
    result.configs = plan.runs_of(point);
    std::vector<double> known;
    for (const RunConfig* config : result.configs) {
      const SweepRun* run = stored.find(*config, training.data_of());
      result.runs.push_back(run);
      const int64_t step = plan.step_of(result.rung);
      const bool counts = run && run->row.status != "diverged" && run->is_over(step);
      result.scores.push_back(counts ? score_of(*reader, run->row.id, plan.metric->name, step) : kUnknown);
      if (std::isfinite(result.scores.back())) known.push_back(result.scores.back());
    }
    result.spread = spread_of(known);
    result.status = status_of(plan, result);
  }
  std::stable_sort(results.begin(), results.end(), [&](const PointResult& a, const PointResult& b) {
    if (a.rung != b.rung) return a.rung > b.rung;
    const double x = a.spread.mean, y = b.spread.mean;
    if (std::isfinite(x) != std::isfinite(y)) return std::isfinite(x);
    return std::isfinite(x) && (plan.metric->better == Better::lower ? x < y : x > y);
  });
  return results;
}

std::string compare_command(const Context& context, const std::vector<PointResult>& results) {
  std::string runs;
  size_t count = 0;
  for (const PointResult& result : results)
    if (result.spread.count > 0 && result.runs.front() && count++ < kMostShown)
      runs += (runs.empty() ? "" : ",") + result.runs.front()->row.id;
  if (runs.empty()) return "";
  return "comera-studio --compare " + runs + (context.store.empty() ? "" : " --store " + context.store);
}

Json result_of_point_json(const SweepPlan& plan, const PointResult& result) {
  const SweepPoint& point = plan.points[result.point];
  Json runs = Json::array();
  for (size_t i = 0; i < result.runs.size(); ++i) {
    const SweepRun* run = result.runs[i];
    runs.push_back({{"run", run ? Json(run->row.id) : Json(nullptr)},
                    {"name", result.configs[i]->name},
                    {"seed", result.configs[i]->train.seed},
                    {"status", run ? run->row.status : "not_begun"},
                    {"step", run ? run->row.summary.step : 0},
                    {"value", number_json(result.scores[i])},
                    {"time_s", run ? run->row.active_s : 0.0}});
  }
  Json json = {{"point", point.number}, {"settings", settings_json(point.settings)}, {"status", result.status}};
  if (plan.sweep.halving) json["rung"] = result.rung + 1;
  json["value"] = {
      {"mean", number_json(result.spread.mean)}, {"deviation", number_json(result.spread.deviation)}, {"runs", result.spread.count}};
  json["runs"] = runs;
  return json;
}

void print_results(const Context& context, const SweepPlan& plan, const std::vector<PointResult>& results) {
  const auto value = [](double number, int digits) { return std::isfinite(number) ? significant(number, digits) : std::string("-"); };
  std::vector<std::string> header{"point"};
  for (const std::string& name : short_names(plan.sweep)) header.push_back(name);
  if (plan.sweep.halving) header.emplace_back("steps");
  for (const char* title : {plan.metric->name, "deviation", "runs", ""}) header.emplace_back(title);
  std::vector<std::vector<std::string>> rows;
  for (const PointResult& result : results) {
    std::vector<std::string>& row = rows.emplace_back(1, std::to_string(plan.points[result.point].number));
    for (const std::string& cell : cells_of(plan.points[result.point].settings)) row.push_back(cell);
    if (plan.sweep.halving) row.push_back(thousands(static_cast<double>(plan.step_of(result.rung))));
    row.push_back(value(result.spread.mean, 4));
    row.push_back(value(result.spread.deviation, 2));
    row.push_back(std::to_string(result.spread.count) + "/" + std::to_string(result.configs.size()));
    row.push_back(result.status == "finished" ? "" : result.status == "not_kept" ? "not kept" : result.status);
  }
  print_table(context, header, rows);
}

int exit_code(const std::vector<Failure>& failures) {
  if (signal_code() != 0) return signal_code();
  if (failures.empty()) return 0;
  const int code = failures.front().code;
  return code >= 128 ? static_cast<int>(ErrorCode::other) : code;
}

int train_sweep(const Context& context, const SweepOptions& options, const SweepPlan& plan) {
  catch_signals();
  note_left_out(context, plan);
  Training training(context, options, plan);
  std::vector<size_t> reached(plan.points.size(), 0);
  training.all(reached);
  const SweepRuns stored = training.stored();
  const std::vector<PointResult> results = results_of(plan, training, stored, reached);
  const std::string compare = compare_command(context, results);
  if (context.json) {
    Json points = Json::array(), failures = Json::array();
    for (const PointResult& result : results) points.push_back(result_of_point_json(plan, result));
    for (const Failure& failure : training.failures())
      failures.push_back({{"name", failure.name}, {"reason", failure.reason}, {"code", failure.code}});
    print_json({{"sweep", plan.sweep.name},
                {"file", options.file},
                {"tag", plan.sweep.tag()},
                {"metric", plan.metric->name},
                {"better", plan.metric->better == Better::lower ? "lower" : "higher"},
                {"points", points},
                {"left_out", left_out_json(plan)},
                {"failures", failures},
                {"compare", compare}});
  } else {
    print_results(context, plan, results);
    if (!compare.empty()) note(context, "compare the best in the window: " + compare);
  }
  for (const Failure& failure : training.failures()) note(context, "failed: " + failure.name + ": " + failure.reason);
  if (signal_code() != 0) note(context, "stopped: the same command continues");
  return exit_code(training.failures());
}

int run_sweep(const Context& context, const SweepOptions& options) {
  if (started_processes() > 1) {
    if (started_as_process() > 0) return 0;  // process 0 says it
    throw Error(ErrorCode::usage, "a sweep starts its runs itself", "mpirun or srun started it as several processes",
                "start it alone, with --jobs N for several runs at once");
  }
  const InputFile input(options.file);
  const SweepPlan plan = plan_of(options, input.path());
  if (options.plan) return print_plan(context, options, plan);
  if (options.slurm.empty()) return train_sweep(context, options, plan);
  note_left_out(context, plan);
  SlurmArray array{
      .folder = options.slurm, .name = plan.sweep.name, .tasks = static_cast<int64_t>(plan.tasks.size()), .at_once = options.jobs};
  for (const SweepPoint& point : plan.points) {
    if (point.runs.empty()) continue;
    const RunConfig& config = point.runs.front();
    array.threads = std::max(array.threads, config.train.threads);
    array.gpu = array.gpu || config.train.device.starts_with("cuda");
    array.planned_bytes = std::max(array.planned_bytes, make_forecast(config).memory.total());
  }
  return write_slurm(context, array, input.path());
}

}  // namespace

void add_sweep(Verb& program, Context& context) {
  Verb verb = program.verb("sweep", "train many combinations of settings and seeds, several runs at once, and compare them");
  const auto options = std::make_shared<SweepOptions>();
  verb.option("file", options->file,
              "JSON: \"base\" (preset or file) with \"set\"; \"grid\" {path: [values]}, or \"random\" {\"runs\", \"seed\", \"ranges\" "
              "{path: {\"uniform\": [a, b]}, {\"log\": [a, b]} or [values]}}; \"seeds\"; \"halving\" {\"metric\", \"rungs\", \"keep\"}; "
              "\"name\"")
      .required();
  verb.flag("--plan", options->plan, "print the points with their steps and planned peak memory; trains nothing");
  verb.option("--jobs", options->jobs,
              "runs at once, each in a process of its own; without train.threads they share the cores (default: 1). With --slurm: tasks at "
              "once (default: all)")
      .within(1, 1024);
  verb.option("--metric", options->metric, "sort points by this metric (default: that of halving, else val_accuracy or val_loss)");
  verb.option("--slurm", options->slurm, "write a batch script for Slurm into this folder, one task a run; trains nothing");
  verb.option("--task", options->task, "train this run alone, counted from 0 as --plan lists them").not_negative();
  verb.option("--grace", options->grace, "seconds that each run has to write its last checkpoint after Ctrl-C or SIGTERM")
      .not_negative()
      .shows_default();
  verb.does([&context, options] { return run_sweep(context, *options); });
}

}  // namespace comera::cli
