#include "app/figure/rank_map.h"

#include <algorithm>
#include <cmath>

#include "app/figure/figure.h"
#include "app/format.h"

namespace comera {

Drawing rank_map(std::span<const LayerRanks> layers, const std::string& note) {
  constexpr float kCell = 84, kLine = 24, kGap = 2, kText = 12;
  const Theme& t = theme();
  Drawing out;
  size_t bonds = 0, longest = 0;
  for (const LayerRanks& layer : layers) {
    bonds = std::max(bonds, layer.live.size());
    longest = std::max(longest, layer.name.size());
  }
  const float left = 36 + static_cast<float>(longest) * kText * 0.56f, top = 84;
  out.size = {std::max(360.0f, left + static_cast<float>(bonds) * kCell + 20), top + static_cast<float>(layers.size()) * kLine + 20};
  out.background = t.card;
  out.title = "Rank map, " + note;
  out.text({20, 22}, 16, t.text, "Rank map", Anchor::left, true);
  out.text({20, 42}, kText, t.dim, note);
  for (size_t bond = 0; bond < bonds; ++bond)
    out.text({left + kCell * (static_cast<float>(bond) + 0.5f), top - 14}, kText, t.dim,
             layers.front().in_modes.empty() ? "rank" : "bond " + std::to_string(bond + 1), Anchor::middle);
  for (size_t i = 0; i < layers.size(); ++i) {
    const LayerRanks& layer = layers[i];
    const float y = top + static_cast<float>(i) * kLine;
    out.text({left - 10, y + kLine / 2}, kText, t.dim, layer.name, Anchor::right);
    for (size_t bond = 0; bond < layer.live.size(); ++bond) {
      const int64_t live = layer.live[bond], initial = bond < layer.initial.size() ? layer.initial[bond] : live;
      const Color color = live == 0 ? t.bad : heat(initial > 0 ? static_cast<float>(live) / static_cast<float>(initial) : 0);
      const float x = left + kCell * static_cast<float>(bond);
      out.rect({x, y}, {x + kCell - kGap, y + kLine - kGap}, color, 3);
      out.text({x + (kCell - kGap) / 2, y + (kLine - kGap) / 2}, kText, readable_on(color),
               std::to_string(live) + " / " + std::to_string(initial), Anchor::middle);
    }
  }
  return out;
}

Drawing rank_heatmap(std::span<const BondPast> bonds, double low, double high, double newest, const std::string& note) {
  constexpr float kWidth = 900, kTop = 64, kText = 12, kGap = 5, kLeastLayer = 16, kParts = 24;
  const Theme& t = theme();
  Drawing out;
  size_t longest = 0;
  for (const BondPast& bond : bonds) longest = std::max(longest, bond.layer.size());
  const float left = 36 + static_cast<float>(longest) * kText * 0.56f, right = kWidth - 22;
  const float row = std::clamp(360 / static_cast<float>(std::max<size_t>(1, bonds.size())), 5.0f, 18.0f);
  out.background = t.card;
  out.title = "Ranks over the steps, " + note;
  out.text({20, 22}, 16, t.text, "Ranks over the steps", Anchor::left, true);
  out.text({20, 42}, kText, t.dim, note);
  for (float part = 0; part < kParts; ++part)
    out.rect({right - 172 + part * 5, 17}, {right - 172 + (part + 1) * 5, 27}, heat((part + 0.5f) / kParts));
  out.text({right - 178, 22}, kText, t.dim, "0 %", Anchor::right);
  out.text({right, 22}, kText, t.dim, "100 %", Anchor::right);
  high = std::max(high, low + 1);
  const auto place = [&](double step) {
    return left + (right - left) * static_cast<float>(std::clamp((step - low) / (high - low), 0.0, 1.0));
  };
  float y = kTop;
  for (size_t i = 0; i < bonds.size();) {
    size_t end = i;
    while (end < bonds.size() && bonds[end].layer == bonds[i].layer) ++end;
    const float tall = std::max(kLeastLayer, row * static_cast<float>(end - i)), each = tall / static_cast<float>(end - i);
    out.text({left - 10, y + tall / 2}, kText, t.dim, bonds[i].layer, Anchor::right);
    for (; i < end; ++i, y += each) {
      const BondPast& bond = bonds[i];
      const double initial = std::max<double>(1, static_cast<double>(bond.initial));
      float from = place(bond.steps.empty() ? newest : bond.steps.front());
      for (size_t k = 0; k < bond.steps.size() && bond.steps[k] < high; ++k) {
        const bool last = k + 1 == bond.steps.size();
        const float to = place(std::min(newest, last ? newest : bond.steps[k + 1]));
        if (to - from < 0.5f && !last) continue;  // too narrow: drawn as part of the next interval
        out.rect({from, y}, {to, y + each - 1},
                 bond.ranks[k] <= 0 ? t.bad : heat(static_cast<float>(std::min(1.0, bond.ranks[k] / initial))));
        from = to;
      }
    }
    y += kGap;
  }
  for (const double step : ticks(low, high, 8, false))
    if (step >= low && step <= high) out.text({place(step), y + 8}, kText, t.dim, thousands(step), Anchor::middle);
  out.text({(left + right) / 2, y + 26}, kText, t.dim, "step", Anchor::middle);
  out.size = {kWidth, y + 42};
  return out;
}

}  // namespace comera
