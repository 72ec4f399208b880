#include "app/studio/compare/pareto_points.h"

#include <algorithm>
#include <cmath>

namespace comera::studio {

std::vector<ParetoPoint> pareto_points(const ComparedRun& run) {
  std::vector<ParetoPoint> points;
  if (!run.read()) return points;
  const Curve& accuracy = run.view->metric("val_accuracy");
  const Curve& entries = run.view->metric("entries");
  for (size_t i = 0; i < accuracy.size() && accuracy.x()[i] <= run.step(); ++i) {
    const auto step = static_cast<int64_t>(accuracy.x()[i]);
    const double size = whole_mebibytes(run, entries.at(accuracy.x()[i]));
    if (!std::isfinite(size) || size <= 0 || !std::isfinite(accuracy.y()[i])) continue;
    const bool kept = std::find(run.checkpoints.begin(), run.checkpoints.end(), step) != run.checkpoints.end();
    points.push_back({step, size, accuracy.y()[i], kept});
  }
  return points;
}

}  // namespace comera::studio
