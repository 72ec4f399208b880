#include "core/methods/factor_ranks.h"

#include <algorithm>
#include <numeric>

namespace comera {
namespace {

// |a_k|^2 |b_k|^2 of each direction.
std::vector<double> lengths(Device& device, const LoraFactors& factors) {
  const std::vector<double> a = to_host(device, factors.a->value), b = to_host(device, factors.b->value);
  const auto rank = static_cast<size_t>(factors.a->shape[0]), columns = a.size() / rank;
  std::vector<double> of_a(rank), of_b(rank);
  for (size_t i = 0; i < a.size(); ++i) of_a[i / columns] += a[i] * a[i];
  for (size_t i = 0; i < b.size(); ++i) of_b[i % rank] += b[i] * b[i];
  for (size_t k = 0; k < rank; ++k) of_a[k] *= of_b[k];
  return of_a;
}

}  // namespace

std::optional<int64_t> new_factor_rank(const MethodConfig& now, const MethodConfig& wanted, ParamSet& params) {
  if (now.lora.rank == wanted.lora.rank || lora_factors(params).empty()) return {};
  return wanted.lora.rank;
}

FactorEntries entries_at_rank(Device& device, ParamSet& params, int64_t rank) {
  FactorEntries out;
  for (const LoraFactors& factors : lora_factors(params)) {
    const std::vector<double> length = lengths(device, factors);
    std::vector<int64_t> entries(length.size());
    std::iota(entries.begin(), entries.end(), int64_t{0});
    std::stable_sort(entries.begin(), entries.end(),
                     [&](int64_t i, int64_t k) { return length[static_cast<size_t>(i)] > length[static_cast<size_t>(k)]; });
    const size_t kept = std::min(entries.size(), static_cast<size_t>(rank));
    std::sort(entries.begin(), entries.begin() + static_cast<std::ptrdiff_t>(kept));
    entries.resize(kept);
    entries.resize(static_cast<size_t>(rank), kNewEntry);
    out.push_back(std::move(entries));
  }
  return out;
}

void draw_new_directions(Device& device, ParamSet& params, const FactorEntries& entries, uint64_t seed, int64_t step) {
  size_t index = 0;
  for (const LoraFactors& factors : lora_factors(params)) {
    const std::vector<int64_t>& of = entries[index++];
    const auto rank = of.size(), old = static_cast<size_t>(std::find(of.begin(), of.end(), kNewEntry) - of.begin());
    if (old == rank) continue;
    const auto draw = [&](const Param& param, const auto& direction_of) {
      std::vector<double> values = to_host(device, param.value);
      const std::vector<double> drawn = drawn_values(param, seed, static_cast<uint32_t>(step));
      for (size_t i = 0; i < values.size(); ++i)
        if (direction_of(i) >= old) values[i] = drawn[i];
      from_host(device, param.value, values);
    };
    const auto columns = static_cast<size_t>(factors.a->shape[1]);
    draw(*factors.a, [&](size_t i) { return i / columns; });
    draw(*factors.b, [&](size_t i) { return i % rank; });
  }
}

}  // namespace comera
