#include "app/studio/shown_run/step_times.h"

#include <algorithm>
#include <cmath>

#include "core/base/rounding.h"

namespace comera::studio {
namespace {

constexpr size_t kBins = 32;
constexpr size_t kMostSorted = 400'000;  // most steps to sort, which takes about 10 ms

double at_share(const std::vector<double>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1) + 0.5)];
}

}  // namespace

double quantile_of(std::vector<double> values, double quantile) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return at_share(values, quantile);
}

StepTimeSummary step_times(const Curve& step_ms, double until) {
  StepTimeSummary out;
  std::vector<double> sorted;
  const auto end = static_cast<size_t>(std::upper_bound(step_ms.x().begin(), step_ms.x().end(), until) - step_ms.x().begin());
  const size_t stride = ceil_div(end, kMostSorted);
  for (size_t i = 0; i < end; i += stride)
    if (std::isfinite(step_ms.y()[i])) sorted.push_back(step_ms.y()[i]);
  if (sorted.empty()) return out;
  std::sort(sorted.begin(), sorted.end());
  out.count = stride == 1 ? sorted.size() : end;
  out.median = at_share(sorted, 0.5);
  out.p95 = at_share(sorted, 0.95);
  out.low = sorted.front();
  out.high = at_share(sorted, 0.99);
  double fastest = 0;
  step_ms.extremes(-INFINITY, until, fastest, out.slowest);
  if (!(out.high > out.low)) {  // all equal: add a margin
    out.low -= std::max(1e-3, out.low * 0.05);
    out.high += std::max(1e-3, out.high * 0.05);
  }
  out.bins.assign(kBins, 0);
  for (const double ms : sorted) {
    if (ms > out.high) {
      out.beyond += stride;
      continue;
    }
    const double share = (ms - out.low) / (out.high - out.low);
    out.bins[std::min(kBins - 1, static_cast<size_t>(share * static_cast<double>(kBins)))] += stride;
  }
  return out;
}

}  // namespace comera::studio
