// comera sweep FILE: trains many combinations of settings under several seeds, several runs at once, each in a process of its own
// (jobs.h). Its runs are ordinary runs of the store, so the same command continues where it was stopped.
#include <memory>

#include "app/cli/follow.h"
#include "app/cli/planned_sweep.h"
#include "app/cli/sweep_results.h"
#include "app/cli/sweep_slurm.h"
#include "app/cli/sweep_training.h"
#include "core/base/json.h"
#include "core/comm/mpi.h"
#include "core/train/forecast.h"

namespace comera::cli {
namespace {

int exit_code(const std::vector<SweepFailure>& failures) {
  if (signal_code() != 0) return signal_code();
  if (failures.empty()) return 0;
  const int code = failures.front().code;
  return code >= 128 ? static_cast<int>(ErrorCode::other) : code;
}

int train_sweep(const Context& context, const SweepOptions& options, const SweepPlan& plan) {
  catch_signals();
  note_left_out(context, plan);
  SweepTraining training(context, options, plan);
  training.all();
  const SweepRuns stored = training.stored();
  const std::vector<PointResult> results = results_of(plan, training, stored);
  const std::string compare = compare_command(context, results);
  if (context.json) {
    Json points = Json::array(), failures = Json::array();
    for (const PointResult& result : results) points.push_back(result_of_point_json(plan, result));
    for (const SweepFailure& failure : training.failures())
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
  for (const SweepFailure& failure : training.failures()) note(context, "failed: " + failure.name + ": " + failure.reason);
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
