#include "app/studio/shown_run/memory_history.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

namespace comera::studio {
namespace {

double training_at(const RunView& view, double step) {
  double sum = 0;
  for (const Curve& bytes : view.memory)
    if (const double value = bytes.at(step); std::isfinite(value)) sum += value;
  return sum;
}

// Extends a step function to the end of the run.
void hold(std::vector<double>& x, std::vector<double>& y, double end) {
  if (x.empty() || x.back() >= end) return;
  x.push_back(end);
  y.push_back(y.back());
}

}  // namespace

bool has_own_memory(const Snapshot& snapshot) { return !snapshot.device.empty() && !snapshot.device.starts_with("CPU"); }

MemoryHistory memory_history(const RunView& view, double from, double to, int columns) {
  MemoryHistory out;
  const auto end = static_cast<double>(view.snapshot->step);
  std::vector<double> steps = view.memory[0].x().all();  // all purposes have the same steps
  std::vector<double> low(steps.size(), 0);
  for (size_t purpose = 0; purpose < view.memory.size(); ++purpose) {
    const std::vector<double>& bytes = view.memory[purpose].y();
    MemoryHistory::Area& area = out.purposes[purpose];
    area.x = steps;
    area.low = low;
    for (size_t i = 0; i < low.size() && i < bytes.size(); ++i) low[i] += bytes[i];
    area.high = low;
    std::vector<double> same = area.x;
    hold(same, area.low, end);
    hold(area.x, area.high, end);
  }
  for (const double total : low) out.top = std::max(out.top, total);

  const Curve& process = view.metric("process_bytes");
  if (!has_own_memory(*view.snapshot) && !process.empty() && !steps.empty()) {
    std::vector<double> samples, unused;
    process.envelope(from, to, columns, samples, unused);
    std::vector<double> x;
    std::set_union(samples.begin(), samples.end(), steps.begin(), steps.end(), std::back_inserter(x));
    std::erase_if(x, [&](double step) { return step < process.x().front(); });
    for (const double step : x) {
      const double training = training_at(view, step);
      out.process.x.push_back(step);
      out.process.low.push_back(training);
      out.process.high.push_back(std::max(training, process.at(step)));
      out.process_top = std::max(out.process_top, out.process.high.back());
    }
    std::vector<double> same = out.process.x;
    hold(same, out.process.low, end);
    hold(out.process.x, out.process.high, end);
  }
  if (const Curve& used = view.metric("device_used_bytes"); !used.empty()) {
    used.envelope(from, to, columns, out.used_x, out.used);
    for (const double bytes : out.used) out.used_top = std::max(out.used_top, bytes);
    hold(out.used_x, out.used, end);
  }
  return out;
}

MemoryAt memory_at(const RunView& view, double step) {
  MemoryAt out;
  for (size_t purpose = 0; purpose < view.memory.size(); ++purpose)
    if (const double bytes = view.memory[purpose].at(step); std::isfinite(bytes)) out.purposes.bytes[purpose] = static_cast<int64_t>(bytes);
  out.training = static_cast<double>(out.purposes.total());
  const double process = has_own_memory(*view.snapshot) ? std::numeric_limits<double>::quiet_NaN() : view.metric("process_bytes").at(step);
  out.rest = std::isfinite(process) ? std::max(0.0, process - out.training) : process;
  out.used = view.metric("device_used_bytes").at(step);
  out.total = view.metric("device_total_bytes").at(step);
  return out;
}

}  // namespace comera::studio
