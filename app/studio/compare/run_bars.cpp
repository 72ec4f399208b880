#include "app/studio/compare/run_bars.h"

#include <algorithm>

#include "app/studio/compare/tabs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

void draw_parts(Compare& compare, const RunBar& bar, double full, ImVec2 size, const char* item) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::GetWindowDrawList()->AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme().raised, em(0.2f));
  const BarPart* under = paint_parts(bar.parts, full, at, size, bar.run->faint() ? 0.3f : 1);
  std::vector<Copied> copied;
  if (under) {
    ImGui::SetTooltip("%s", under->text.c_str());
    copied = {{"Copy value", under->text}};
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
  std::vector<StackedBar> all;
  for (const RunBar& bar : bars) {
    const bool told = !bar.figures.empty();
    all.push_back({label_of(compare, *bar.run), bar.parts, told ? bar.figures[0].text : "", told ? bar.figures[0].color : theme().text});
  }
  return stacked_bars_chart(id, title, note_of(compare), kinds, all, full);
}

}  // namespace comera::studio
