#include "core/session/inspect.h"

#include <algorithm>
#include <cmath>

namespace comera {

double norm_of(const std::vector<double>& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

InspectedCore describe_core(std::string layer, int64_t core, int64_t step, std::vector<int64_t> shape, const std::vector<double>& values) {
  InspectedCore out;
  out.layer = std::move(layer);
  out.core = core;
  out.step = step;
  out.shape = std::move(shape);
  out.norm = norm_of(values);
  for (const double value : values)
    if (std::isfinite(value)) out.largest = std::max(out.largest, std::abs(value));
  out.bins.assign(kCoreBins, 0);
  for (const double value : values) {
    if (!std::isfinite(value)) continue;
    const double place = out.largest > 0 ? (value / out.largest + 1) / 2 : 0.5;
    ++out.bins[std::min(kCoreBins - 1, static_cast<size_t>(place * static_cast<double>(kCoreBins)))];
  }
  return out;
}

}  // namespace comera
