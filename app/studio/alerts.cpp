#include "app/studio/alerts.h"

#include <algorithm>
#include <cmath>

#include "app/format.h"

namespace comera::studio {
namespace {
constexpr double kWeight = 0.98;     // weight of the past in the smoothed loss: about 50 steps
constexpr double kLeastGain = 1e-3;  // fraction of the minimum; smaller improvements are noise
}  // namespace

void AlertWatch::forget_progress() {
  sum_ = norm_ = 0;
  best_step_ = -1;
  stuck_ = false;
}

// Used and total bytes are measured together. Alerts again only after clearly more was free in between (hysteresis).
void AlertWatch::look_at_memory(const Records& records, const AlertRules& rules, std::vector<Alert>& found) {
  constexpr double kClearly = 1.2;  // factor of the margin
  const auto used = records.metrics.find("device_used_bytes"), total = records.metrics.find("device_total_bytes");
  if (used == records.metrics.end() || total == records.metrics.end()) return;
  const size_t count = std::min(used->second.values.size(), total->second.values.size());
  for (size_t i = 0; i < count; ++i) {
    const double all = total->second.values[i], free = all - used->second.values[i];
    if (!(all > 0)) continue;
    if (free >= rules.margin * kClearly * all) tight_ = false;
    if (tight_ || free >= rules.margin * all) continue;
    tight_ = true;
    if (rules.memory_margin.on)
      found.push_back({used->second.steps[i], "memory_margin",
                       "only " + mebibytes(free) + " of " + mebibytes(all) + " are free, less than " + significant(100 * rules.margin, 3) +
                           " %: close other programs or use a smaller batch",
                       rules.memory_margin.pause});
  }
}

std::vector<Alert> AlertWatch::look(const Records& records, const AlertRules& rules) {
  std::vector<Alert> found;
  // A new stage has another objective, so the loss may rise at first.
  int64_t restart = -1;
  for (const EventRow& event : records.events)
    if (event.kind == "stage") restart = event.step;
  // In the late stage falling ranks may raise the loss: that counts as progress.
  int64_t rank_step = -1;
  for (const RankRow& row : records.ranks) rank_step = std::max(rank_step, row.step);
  for (const char* name : {"train_loss", "train_objective", "val_loss"}) {
    const auto series = records.metrics.find(name);
    for (size_t i = 0; series != records.metrics.end() && i < series->second.steps.size(); ++i) {
      const int64_t step = series->second.steps[i];
      const double value = series->second.values[i];
      if (!std::isfinite(value)) {
        if (not_finite_.insert(name).second && rules.not_finite.on)
          found.push_back(
              {step, "not_finite", std::string(name) + " is " + (std::isnan(value) ? "NaN" : "infinite"), rules.not_finite.pause});
        continue;
      }
      not_finite_.erase(name);
      if (series->first != "train_loss") continue;
      if (restart >= 0 && step >= restart) {
        forget_progress();
        restart = -1;
      }
      sum_ = kWeight * sum_ + (1 - kWeight) * value;
      norm_ = kWeight * norm_ + (1 - kWeight);
      const double loss = sum_ / norm_;
      if (best_step_ >= 0 && rank_step > best_step_ && rank_step <= step) {
        best_step_ = rank_step;
        stuck_ = false;
      }
      if (best_step_ < 0 || loss < best_ - kLeastGain * std::abs(best_)) {
        best_ = loss;
        best_step_ = step;
        stuck_ = false;
      } else if (!stuck_ && step - best_step_ >= rules.patience && rules.no_progress.on) {
        stuck_ = true;
        found.push_back({step, "no_progress",
                         "no progress for " + thousands(static_cast<double>(step - best_step_)) +
                             " steps: the smoothed loss did not fall below its minimum, " + significant(best_, 4) + ", and no rank changed",
                         rules.no_progress.pause});
      }
    }
  }
  if (restart >= 0) forget_progress();
  for (const RankRow& row : records.ranks) {
    const std::string bond = row.layer + "." + std::to_string(row.bond);
    if (row.rank > 0)
      collapsed_.erase(bond);
    else if (collapsed_.insert(bond).second && rules.collapsed.on)
      found.push_back({row.step, "collapsed", "bond " + bond + " has rank 0: its layer outputs 0", rules.collapsed.pause});
  }
  look_at_memory(records, rules, found);
  return found;
}

}  // namespace comera::studio
