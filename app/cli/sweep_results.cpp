#include "app/cli/sweep_results.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <optional>

#include "core/store/run_reader.h"

namespace comera::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostShown = 8;  // runs that the window compares at once

// `decided`: rungs after which it is known which points continue.
std::string status_of(const SweepPlan& plan, const PointResult& result, size_t decided) {
  const auto any = [&](const char* status) {
    return std::any_of(result.runs.begin(), result.runs.end(), [&](const SweepRun* run) { return run && run->row.status == status; });
  };
  if (any("diverged")) return "diverged";
  if (any("failed")) return "failed";
  const int64_t step = plan.step_of(result.rung);
  if (!std::all_of(result.runs.begin(), result.runs.end(), [&](const SweepRun* run) { return run && run->is_over(step); }))
    return "unfinished";
  if (result.rung + 1 == plan.rungs()) return "finished";
  return result.rung < decided ? "not_kept" : "unfinished";
}

}  // namespace

std::vector<PointResult> results_of(const SweepPlan& plan, const SweepTraining& training, const SweepRuns& stored) {
  std::vector<PointResult> results;
  std::optional<RunReader> reader;
  if (fs::exists(training.store())) reader.emplace(training.store());
  for (const size_t point : plan.chosen) {
    PointResult& result = results.emplace_back();
    result.point = point;
    result.rung = training.rung_of(point);
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
    result.status = status_of(plan, result, training.rungs_decided());
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

}  // namespace comera::cli
