#include "app/cli/sweep_training.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "app/cli/follow.h"
#include "core/base/draw.h"
#include "core/base/json.h"
#include "core/base/paths.h"
#include "core/session/duel.h"
#include "core/store/run_reader.h"

namespace comera::cli {
namespace {

namespace fs = std::filesystem;

std::string place(size_t number, const std::vector<const RunConfig*>& tasks) {
  return "[" + std::to_string(number + 1) + "/" + std::to_string(tasks.size()) + "] " + tasks[number]->name;
}

}  // namespace

SweepLock::SweepLock(const Context& context, const std::string& store, const SweepPlan& plan) {
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

SweepLock::~SweepLock() { ::close(file_); }

bool SweepFailure::lasting() const {
  const auto as = static_cast<ErrorCode>(code);
  return as == ErrorCode::config || as == ErrorCode::device || as == ErrorCode::memory;
}

SweepTraining::SweepTraining(const Context& context, const SweepOptions& options, const SweepPlan& plan)
    : context_(context),
      options_(options),
      plan_(plan),
      store_(store_path(context)),
      lock_(context, store_, plan),
      data_of_(fingerprints()),
      rungs_(plan.points.size(), 0) {}

void SweepTraining::all() {
  note_changes();
  std::vector<size_t> points = plan_.chosen;
  for (size_t rung = 0; rung < plan_.rungs(); ++rung) {
    for (const size_t point : points) rungs_[point] = rung;
    if (!train(points, rung) || rung + 1 == plan_.rungs()) return;
    points = best_points(points, rung);
    decided_ = rung + 1;
    if (points.empty()) return;
  }
}

SweepRuns SweepTraining::stored() const { return fs::exists(store_) ? SweepRuns(RunReader(store_), plan_.sweep) : SweepRuns(); }

void SweepTraining::note_changes() {
  const std::vector<std::string> others = stored().of_no_task(plan_.tasks);
  if (others.empty()) return;
  note(context_, options_.file + " has changed: " + counted(static_cast<int64_t>(others.size()), "run") + " of sweep '" + plan_.sweep.name +
                     "' in the store have other settings and are left as they are (" + others.front() +
                     (others.size() > 1 ? ", ...)" : ")"));
}

bool SweepTraining::train(const std::vector<size_t>& points, size_t rung) {
  std::vector<const RunConfig*> tasks;
  for (const size_t point : points)
    for (const RunConfig* run : plan_.runs_of(point)) tasks.push_back(run);
  const size_t before = failures_.size();
  // Twice: a run that was stopped before an earlier rung ended is brought there first.
  for (int pass = 0; pass < 2; ++pass)
    if (!train(tasks, plan_.step_of(rung), pass == 0)) return false;
  return std::all_of(failures_.begin() + static_cast<std::ptrdiff_t>(before), failures_.end(),
                     [](const SweepFailure& failure) { return failure.lasting(); });
}

bool SweepTraining::train(const std::vector<const RunConfig*>& tasks, int64_t step, bool first) {
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
      if (std::any_of(failures_.begin(), failures_.end(), [&](const SweepFailure& failure) { return failure.name == config.name; }))
        continue;
      start(jobs, number, config, run, step);
      note(context_, place(number, tasks) + (run ? ": continues run " + run->row.id : ""));
      continue;
    }
    if (const auto end = jobs.wait(0.25)) take(*end, place(end->job, tasks), tasks[end->job]->name);
  }
  return signal_code() == 0;
}

void SweepTraining::start(Jobs& jobs, size_t number, const RunConfig& config, const SweepRun* run, int64_t step) {
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

void SweepTraining::take(const JobEnd& end, const std::string& place, const std::string& name) {
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
  SweepFailure failure{.run = run, .name = name, .reason = {}, .code = end.code};
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

std::vector<size_t> SweepTraining::best_points(const std::vector<size_t>& points, size_t rung) {
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

}  // namespace comera::cli
