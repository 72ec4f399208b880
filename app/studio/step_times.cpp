#include "app/studio/step_times.h"

#include <algorithm>
#include <cmath>

namespace comera::studio {
namespace {

constexpr size_t kBins = 32;

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
  const auto end = std::upper_bound(step_ms.x().begin(), step_ms.x().end(), until) - step_ms.x().begin();
  std::copy_if(step_ms.y().begin(), step_ms.y().begin() + end, std::back_inserter(sorted), [](double ms) { return std::isfinite(ms); });
  if (sorted.empty()) return out;
  std::sort(sorted.begin(), sorted.end());
  out.count = sorted.size();
  out.median = at_share(sorted, 0.5);
  out.p95 = at_share(sorted, 0.95);
  out.low = sorted.front();
  out.high = at_share(sorted, 0.99);
  out.slowest = sorted.back();
  if (!(out.high > out.low)) {  // all alike: some room around them
    out.low -= std::max(1e-3, out.low * 0.05);
    out.high += std::max(1e-3, out.high * 0.05);
  }
  out.bins.assign(kBins, 0);
  for (const double ms : sorted) {
    if (ms > out.high) {
      ++out.beyond;
      continue;
    }
    const double share = (ms - out.low) / (out.high - out.low);
    ++out.bins[std::min(kBins - 1, static_cast<size_t>(share * static_cast<double>(kBins)))];
  }
  return out;
}

}  // namespace comera::studio
