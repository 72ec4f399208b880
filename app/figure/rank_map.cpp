#include "app/figure/rank_map.h"

#include <algorithm>

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
    out.text({left + kCell * (static_cast<float>(bond) + 0.5f), top - 14}, kText, t.dim, "bond " + std::to_string(bond + 1),
             Anchor::middle);
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

}  // namespace comera
