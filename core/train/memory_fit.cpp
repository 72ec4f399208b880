#include "core/train/memory_fit.h"

#include <algorithm>
#include <exception>

#include "core/train/forecast.h"
#include "core/train/rank_setting.h"

namespace comera {
namespace {

// Numbers of equal parts of a batch, ascending.
std::vector<int64_t> parts_of(int64_t batch) {
  std::vector<int64_t> parts;
  for (int64_t count = 1; count <= batch; ++count)
    if (batch % count == 0) parts.push_back(count);
  return parts;
}

RunConfig with_micro_batches(RunConfig config, int64_t count) {
  config.train.micro_batches = count;
  return config;
}

}  // namespace

std::optional<int64_t> planned_bytes(const RunConfig& config) try {
  if (!config_problems(config).empty()) return {};
  return make_forecast(config).memory.total();
} catch (const std::exception&) {
  return {};
}

std::optional<FittedValue> first_that_fits(const ConfigWith& with, const std::vector<int64_t>& values, int64_t bytes) {
  std::optional<FittedValue> best;
  for (const int64_t value : values) {
    const std::optional<int64_t> planned = planned_bytes(with(value));
    if (!planned) break;
    if (!best || *planned <= best->bytes) best = FittedValue{value, *planned, *planned <= bytes};
    if (best->fits) break;
  }
  return best;
}

std::optional<FittedValue> largest_that_fits(const ConfigWith& with, int64_t low, int64_t high, int64_t bytes) {
  const auto look_at = [&](int64_t value) -> std::optional<FittedValue> {
    const std::optional<int64_t> planned = planned_bytes(with(value));
    if (!planned) return {};
    return FittedValue{value, *planned, *planned <= bytes};
  };
  std::optional<FittedValue> best = look_at(low);
  if (!best || !best->fits || high <= low) return best;
  if (const auto whole = look_at(high); whole && whole->fits) return whole;
  while (high - best->value > 1) {  // best fits, high does not
    const int64_t middle = best->value + (high - best->value) / 2;
    if (const auto found = look_at(middle); found && found->fits)
      best = found;
    else
      high = middle;
  }
  return best;
}

std::optional<FittedConfig> fit_to_memory(const RunConfig& config, int64_t bytes, bool keeps_rank) {
  const std::vector<int64_t> parts = parts_of(config.train.batch);
  const std::optional<FittedValue> fewest = first_that_fits([&](int64_t count) { return with_micro_batches(config, count); }, parts, bytes);
  if (!fewest) return {};
  FittedConfig best{with_micro_batches(config, fewest->value), fewest->bytes, fewest->fits};
  const std::optional<RankSetting> setting = keeps_rank ? std::nullopt : rank_setting(config);
  if (!setting) return best;
  const auto take_largest = [&](int64_t count, int64_t low, int64_t high) {
    const auto with = [&](int64_t rank) { return with_micro_batches(with_rank(config, rank), count); };
    const std::optional<FittedValue> rank = largest_that_fits(with, low, high, bytes);
    if (rank && (rank->fits || (!best.fits && rank->bytes < best.bytes))) best = {with(rank->value), rank->bytes, rank->fits};
    return rank && rank->fits ? rank->value : 0;
  };
  if (best.fits) {
    take_largest(fewest->value, setting->configured, setting->largest);
    return best;
  }
  int64_t reached = 0;
  for (const int64_t count : parts)
    if (reached + 1 < setting->configured) reached = std::max(reached, take_largest(count, reached + 1, setting->configured - 1));
  return best;
}

}  // namespace comera
