#include "app/studio/parts/stacked_bars.h"

#include <algorithm>

#include "app/format.h"
#include "app/studio/parts/looks.h"

namespace comera::studio {

std::vector<BarPart> purpose_parts(const MemoryByPurpose& memory) {
  std::vector<BarPart> parts;
  for (int i = 0; i < kPurposes; ++i) {
    const PurposeLook look = look_of(static_cast<Purpose>(i));
    const auto bytes = static_cast<double>(memory.bytes[static_cast<size_t>(i)]);
    parts.push_back({bytes, look.color, std::string(look.title) + "  " + mebibytes(bytes) + " = " + megabytes(bytes)});
  }
  return parts;
}

const BarPart* paint_parts(const std::vector<BarPart>& parts, double full, ImVec2 at, ImVec2 size, float alpha) {
  ImDrawList* list = ImGui::GetWindowDrawList();
  const BarPart* under = nullptr;
  float x = at.x;
  for (const BarPart& part : parts) {
    if (!(part.value > 0)) continue;
    const float width = static_cast<float>(part.value / full) * size.x;
    list->AddRectFilled({x, at.y}, {x + std::max(width - (width > 3 ? 1.0f : 0.0f), 0.5f), at.y + size.y}, with_alpha(part.color, alpha),
                        em(0.12f));
    if (ImGui::IsMouseHoveringRect({x, at.y}, {x + width, at.y + size.y}) && ImGui::IsWindowHovered()) under = &part;
    x += width;
  }
  return under;
}

Chart stacked_bars_chart(const char* id, const char* title, const std::string& note, const std::vector<BarKind>& kinds,
                         const std::vector<StackedBar>& bars, double full) {
  constexpr float kNames = 220, kBar = 480, kRow = 30, kTop = 96;
  Chart chart{id, title, {}, begin_drawing({kNames + kBar + 150, kTop + 20 + kRow * static_cast<float>(bars.size())}, title, note)};
  Drawing& drawing = chart.drawing;
  float x = 20;
  for (const BarKind& kind : kinds) {
    drawing.rect({x, 60}, {x + 10, 70}, kind.color, 2);
    drawing.text({x + 15, 65}, 11, theme().dim, kind.title);
    x += 34 + static_cast<float>(kind.title.size()) * 6.2f;
  }
  drawing.size.x = std::max(drawing.size.x, x + 10);
  for (size_t row = 0; row < bars.size(); ++row) {
    const StackedBar& bar = bars[row];
    const float y = kTop + kRow * static_cast<float>(row);
    drawing.text({20, y + kRow / 2}, kChartText, theme().text, cut_words(bar.label, kNames - 30));
    float at = kNames;
    for (const BarPart& part : bar.parts) {
      if (!(part.value > 0)) continue;
      const float width = static_cast<float>(part.value / full) * kBar;
      drawing.rect({at, y + 5}, {at + width, y + kRow - 5}, part.color, 1);
      at += width;
    }
    if (!bar.figure.empty()) drawing.text({at + 8, y + kRow / 2}, kChartText, bar.figure_color, bar.figure);
  }
  return chart;
}

}  // namespace comera::studio
