#include "app/studio/compare/run_bars.h"

#include <algorithm>

#include "app/studio/compare/tabs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/widgets.h"

namespace comera::studio {
namespace {

void draw_parts(Compare& compare, const RunBar& bar, double full, ImVec2 size, const char* item) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme().raised, em(0.2f));
  std::vector<Copied> copied;
  float x = at.x;
  for (const BarPart& part : bar.parts) {
    if (!(part.value > 0)) continue;
    const float width = static_cast<float>(part.value / full) * size.x;
    list->AddRectFilled({x, at.y}, {x + std::max(width - (width > 3 ? 1.0f : 0.0f), 0.5f), at.y + size.y},
                        with_alpha(part.color, bar.run->faint() ? 0.3f : 1), em(0.12f));
    if (ImGui::IsMouseHoveringRect({x, at.y}, {x + width, at.y + size.y}) && ImGui::IsWindowHovered()) {
      ImGui::SetTooltip("%s", part.text.c_str());
      copied = {{"Copy value", part.text}};
    }
    x += width;
  }
  ImGui::PushID(bar.run->wanted.c_str());
  copy_menu(copied, !copied.empty());
  ImGui::PopID();
  ImGui::Dummy(size);
  if (ImGui::IsItemHovered()) compare.hovered = bar.run->wanted;
  name_item(item);
}

}  // namespace

void draw_run_bars(Compare& compare, const std::vector<RunBar>& bars, double full, const char* item) {
  size_t most = 0;
  for (const RunBar& bar : bars) most = std::max(most, bar.figures.size());
  const float room = ImGui::GetContentRegionAvail().x, names = std::clamp(room * 0.28f, em(7), em(18)), number = em(6.75f);
  const ImVec2 size = {std::max(em(4), room - names - number * static_cast<float>(most) - em(1)), em(1.25f)};
  for (const RunBar& bar : bars) {
    const float left = ImGui::GetCursorPosX(), top = ImGui::GetCursorPosY(), middle = (size.y - ImGui::GetTextLineHeight()) / 2;
    ImGui::SetCursorPosY(top + middle);
    run_label(compare, *bar.run, names);
    ImGui::SetCursorPos({left + names + em(0.5f), top});
    draw_parts(compare, bar, full, size, item);
    ImGui::PushFont(fonts().numbers, 0);
    float x = left + names + size.x + em(0.5f);
    for (const RunBar::Figure& figure : bar.figures) {
      ImGui::SetCursorPos({x, top + middle});
      x += number;
      text_right(figure.text, x, figure.color);
    }
    ImGui::PopFont();
    ImGui::SetCursorPos({left, top + size.y + em(0.45f)});
    ImGui::Dummy({0, 0});
  }
}

Chart run_bars_chart(const Compare& compare, const char* id, const char* title, const std::vector<BarKind>& kinds,
                     const std::vector<RunBar>& bars, double full) {
  constexpr float kNames = 220, kBar = 480, kRow = 30, kTop = 96;
  Chart chart{
      id, title, {}, begin_drawing({kNames + kBar + 150, kTop + 20 + kRow * static_cast<float>(bars.size())}, title, note_of(compare))};
  Drawing& drawing = chart.drawing;
  float x = 20;
  for (const BarKind& kind : kinds) {
    drawing.rect({x, 60}, {x + 10, 70}, kind.color, 2);
    drawing.text({x + 15, 65}, 11, theme().dim, kind.title);
    x += 34 + static_cast<float>(kind.title.size()) * 6.2f;
  }
  drawing.size.x = std::max(drawing.size.x, x + 10);
  for (size_t row = 0; row < bars.size(); ++row) {
    const RunBar& bar = bars[row];
    const float y = kTop + kRow * static_cast<float>(row);
    drawing.text({20, y + kRow / 2}, kChartText, theme().text, cut_words(label_of(compare, *bar.run), kNames - 30));
    float at = kNames;
    for (const BarPart& part : bar.parts) {
      if (!(part.value > 0)) continue;
      const float width = static_cast<float>(part.value / full) * kBar;
      drawing.rect({at, y + 5}, {at + width, y + kRow - 5}, part.color, 1);
      at += width;
    }
    if (!bar.figures.empty()) drawing.text({at + 8, y + kRow / 2}, kChartText, bar.figures[0].color, bar.figures[0].text);
  }
  return chart;
}

}  // namespace comera::studio
