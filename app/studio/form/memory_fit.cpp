#include "app/studio/form/memory_fit.h"

#include <algorithm>
#include <optional>

#include "core/train/memory_fit.h"

namespace comera::studio {
namespace {

struct Knob {
  const char *path, *title;
  int64_t least;
  int64_t& (*value)(RunConfig& config);
};

// Settings that reduce memory, from the least to the largest effect on results.
constexpr Knob kKnobs[] = {
    {"train.batch", "Batch size", 1, [](RunConfig& c) -> int64_t& { return c.train.batch; }},
    {"model.length", "Sequence length", 8, [](RunConfig& c) -> int64_t& { return c.model.length; }},
    {"model.tt.ffn_in.rank", "Feed-forward rank", 2, [](RunConfig& c) -> int64_t& { return c.model.tt.ffn_in.rank; }},
    {"model.tt.convolution.rank", "Convolution rank", 2, [](RunConfig& c) -> int64_t& { return c.model.tt.convolution.rank; }},
    {"model.tt.attention.rank", "Attention rank", 2, [](RunConfig& c) -> int64_t& { return c.model.tt.attention.rank; }},
};

// Halves the setting until the plan fits or the smallest value is reached.
std::optional<Remedy> try_knob(const RunConfig& config, const Knob& knob, int64_t available) {
  RunConfig changed = config;
  const int64_t from = knob.value(changed);
  if (unused_settings(fields_of(changed)).contains(knob.path)) return {};
  std::vector<int64_t> values;
  for (int64_t value = from; value > knob.least;) values.push_back(value = std::max(knob.least, value / 2));
  const auto with = [&](int64_t value) {
    knob.value(changed) = value;
    return changed;
  };
  const std::optional<FittedValue> found = first_that_fits(with, values, available);
  if (!found) return {};
  return Remedy{knob.path, knob.title, from, found->value, found->bytes, found->fits};
}

}  // namespace

std::shared_ptr<const MemoryMisfit> find_misfit(const RunConfig& config) try {
  const Forecast forecast = make_forecast(config);
  return find_misfit(config, forecast.memory, forecast.available);
} catch (const std::exception&) {
  return nullptr;
}

std::shared_ptr<const MemoryMisfit> find_misfit(const RunConfig& config, const MemoryByPurpose& planned, int64_t available) {
  if (planned.total() <= available) return nullptr;
  MemoryMisfit misfit{.planned = planned, .available = available, .remedies = {}};
  for (const Knob& knob : kKnobs)
    if (const std::optional<Remedy> remedy = try_knob(config, knob, available)) misfit.remedies.push_back(*remedy);
  // First the remedies that fit, in the order above; then the others, smallest memory first.
  std::stable_sort(misfit.remedies.begin(), misfit.remedies.end(),
                   [](const Remedy& a, const Remedy& b) { return a.fits != b.fits ? a.fits : !a.fits && a.bytes < b.bytes; });
  std::erase_if(misfit.remedies, [&](const Remedy& remedy) { return !remedy.fits && remedy.bytes > planned.total() * 9 / 10; });
  if (misfit.remedies.size() > 2) misfit.remedies.resize(2);
  return std::make_shared<const MemoryMisfit>(std::move(misfit));
}

}  // namespace comera::studio
