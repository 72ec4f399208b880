#include "app/studio/compare/pareto_points.h"

#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/compare/compare.h"

namespace comera::studio {
namespace {

constexpr double kMebibyte = 1 << 20;

// Cost of a run at a step; NaN = not known.
double cost_of(const ComparedRun& run, ParetoCost cost, double step) {
  const Snapshot& newest = *run.view->snapshot;
  switch (cost) {
    case ParetoCost::size:
      return whole_mebibytes(run, run.view->metric("entries").at(step));
    case ParetoCost::peak:
      return static_cast<double>(newest.memory_peak.total()) / kMebibyte;
    case ParetoCost::step:
      return newest.step_ms_median;
    case ParetoCost::time:
      return no_axis(run, XAxis::time) ? NAN : axis_of(run, XAxis::time).at(step);
  }
  return NAN;
}

}  // namespace

const char* title_of(ParetoCost cost) {
  constexpr const char* kTitles[kParetoCosts] = {"Whole model", "Peak memory", "Step time", "Training time"};
  return kTitles[static_cast<size_t>(cost)];
}

const char* unit_of(ParetoCost cost) { return cost == ParetoCost::step ? "ms" : cost == ParetoCost::time ? "s" : "MiB"; }

std::string text_of(ParetoCost cost, double at) {
  if (cost == ParetoCost::step) return significant(at, 4) + " ms";
  return cost == ParetoCost::time ? duration(at) : mebibytes(at * kMebibyte);
}

std::string ParetoAxes::score_text(double score) const { return significant(shown(score), 4) + (loss ? "" : " %"); }

ParetoAxes pareto_axes(const Compare& compare) {
  const auto stores = [&](const char* metric) {
    return std::any_of(compare.runs.begin(), compare.runs.end(),
                       [&](const auto& run) { return run->read() && run->view->metric(metric).size() > 0; });
  };
  return {compare.pareto_cost, stores("val_perplexity") || (!stores("val_accuracy") && stores("val_loss"))};
}

std::vector<ParetoPoint> pareto_points(const ComparedRun& run, const ParetoAxes& axes) {
  std::vector<ParetoPoint> points;
  if (!run.read()) return points;
  const Curve& score = run.view->metric(axes.loss ? "val_loss" : "val_accuracy");
  for (size_t i = 0; i < score.size() && score.x()[i] <= run.step(); ++i) {
    const double cost = cost_of(run, axes.cost, score.x()[i]);
    if (!std::isfinite(cost) || cost <= 0 || !std::isfinite(score.y()[i])) continue;
    const auto step = static_cast<int64_t>(score.x()[i]);
    const bool kept = std::find(run.checkpoints.begin(), run.checkpoints.end(), step) != run.checkpoints.end();
    points.push_back({step, cost, axes.loss ? -score.y()[i] : score.y()[i], kept});
  }
  return points;
}

}  // namespace comera::studio
