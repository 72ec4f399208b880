#include "app/studio/sweeping.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "app/studio/actions.h"
#include "app/studio/form/form_sweep.h"
#include "core/session/duel.h"
#include "core/store/run_reader.h"

namespace comera::studio {
namespace {

// Seed by seed, so that the first comparison of all points comes early.
std::vector<QueuedRun> runs_of(const PlannedSweep& plan) {
  std::vector<QueuedRun> runs;
  size_t seeds = 0;
  for (const SweepPoint& point : plan.points) seeds = std::max(seeds, point.runs.size());
  for (size_t seed = 0; seed < seeds; ++seed)
    for (size_t i = 0; i < plan.points.size(); ++i) {
      if (plan.points[i].runs.empty()) continue;
      const RunConfig& config = plan.points[i].runs[seed];
      const std::string values = plan.text_of_point(i);
      runs.push_back({.title = values + (values.empty() ? "" : " ") + "seed " + std::to_string(config.train.seed), .config = config});
    }
  return runs;
}

struct StoredPoint {
  std::vector<std::string> runs;  // ids of those that were begun
  double score = kUnknown;        // mean over the runs that are over; those that diverged have none
};

std::vector<StoredPoint> stored_points(const RunReader& reader, const PlannedSweep& plan, const SweepRuns& stored, const DataOf& data_of,
                                       const MetricInfo& metric) {
  std::vector<StoredPoint> points;
  for (const SweepPoint& point : plan.points) {
    StoredPoint& found = points.emplace_back();
    std::vector<double> scores;
    for (const RunConfig& config : point.runs) {
      const SweepRun* run = stored.find(config, data_of);
      if (!run || run->row.summary.step <= 0) continue;
      found.runs.push_back(run->row.id);
      const double score = run->row.status != "diverged" && run->is_over(0) ? score_of(reader, run->row.id, metric.name, 0) : kUnknown;
      if (std::isfinite(score)) scores.push_back(score);
    }
    found.score = spread_of(scores).mean;
  }
  return points;
}

// All runs if there is room for them, else one of each of the best points.
std::vector<std::string> runs_to_compare(const std::vector<StoredPoint>& points, Better better, size_t most) {
  std::vector<double> scores;
  std::vector<std::string> all, firsts;
  for (const StoredPoint& point : points) scores.push_back(point.score);
  std::vector<size_t> order = best_of(scores, better, static_cast<int64_t>(points.size()));
  for (size_t i = 0; i < points.size(); ++i)
    if (std::find(order.begin(), order.end(), i) == order.end()) order.push_back(i);
  for (const size_t i : order) {
    all.insert(all.end(), points[i].runs.begin(), points[i].runs.end());
    if (!points[i].runs.empty()) firsts.push_back(points[i].runs.front());
  }
  if (all.size() <= most) return all;
  if (firsts.size() > most) firsts.resize(most);
  return firsts;
}

}  // namespace

QueueState look_at_sweep(const std::string& store, const PlannedSweep& plan, const DataOf& data_of) {
  QueueState state{.runs = runs_of(plan), .compare = {}, .problem = {}};
  if (!std::filesystem::exists(store)) return state;
  const RunReader reader(store);
  const SweepRuns stored(reader, plan.sweep);
  for (QueuedRun& run : state.runs)
    if (const SweepRun* found = stored.find(run.config, data_of)) {
      run.stored = found->row.id;
      run.over = found->is_over(0);
    }
  const MetricInfo& metric = metric_of(plan.sweep, plan.points);
  state.compare = runs_to_compare(stored_points(reader, plan, stored, data_of, metric), metric.better, kMostCompared);
  return state;
}

std::string no_sweep_file(const UiState& ui) {
  const NewRun& form = ui.form;
  const FormSweep& sweep = form.sweep;
  if (ui.layout != "new" || !sweep.shown) return "Only in the form of a new run, with its sweep shown";
  if (form.fork) return "A fork continues one run";
  if (folder_of(form)) return "The runs of a sweep begin with drawn weights, not with those of a folder";
  if (sweep.varied.empty() && sweep.seeds.list.values.size() < 2) return "Tick a setting to vary, or give several seeds";
  if (const std::string problem = sweep.problem(); !problem.empty()) return problem;
  if (!form.ready || !is_planned(form)) return "The plan is still being made";
  return sweep.plan->problem;
}

std::string no_sweep(const UiState& ui) {
  if (ui.queue) return "A " + ui.queue->order.noun + " is training already";
  if (const std::string no = no_sweep_file(ui); !no.empty()) return no;
  if (ui.store_path.empty() || !ui.store) return "Runs are not stored in this window: open a database";
  if (const std::string no = no_writing(ui); !no.empty()) return no;
  for (const Problem& problem : ui.form.outlook_problems)
    if ((problem.path == "data.set" || problem.path == "train.device") && !ui.form.sweep.find(problem.path)) return problem.text;
  return "";
}

void start_sweep(UiState& ui) {
  if (!no_sweep(ui).empty()) return;
  const std::shared_ptr<const PlannedSweep> plan = ui.form.sweep.plan;
  QueueOrder order{.noun = kSweepNoun, .store = ui.store_path, .tags = {kSweepTag, plan->sweep.tag()}, .runs = runs_of(*plan)};
  order.look = [store = ui.store_path, plan, data_of = fingerprints()] { return look_at_sweep(store, *plan, data_of); };
  order.compare = [](UiState& state) { state.compare.group_by = kBySeed; };
  order.open_form = [](UiState& state) {
    state.form.sweep.shown = true;
    open_form(state);
  };
  start_queue(ui, std::move(order));
}

void save_sweep(UiState& ui) {
  if (!no_sweep_file(ui).empty()) return;
  Exports& exports = ui.exports;
  if (!exports.writer) exports.writer = std::make_shared<FileWriter>();
  exports.writer->write({exports_folder(exports), {{ui.form.sweep.name, "json", [file = sweep_file(ui.form)] { return file; }}}});
}

std::string no_sweep_comparison(const UiState& ui) {
  if (const std::string no = no_sweep_file(ui); !no.empty()) return no;
  return ui.form.sweep.trained.compare.size() < 2 ? "Fewer than two of its runs are in the database" : "";
}

void compare_sweep(UiState& ui) {
  if (!no_sweep_comparison(ui).empty()) return;
  compare_runs(ui, ui.form.sweep.trained.compare);
  ui.compare.group_by = kBySeed;
}

void list_sweep(UiState& ui) {
  ui.run_table.filter = "tag:\"" + std::string(kSweepTag) + ":" + ui.form.sweep.name + "\"";
  show_layout(ui, "start");
}

}  // namespace comera::studio
