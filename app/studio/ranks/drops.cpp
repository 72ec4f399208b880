#include "app/studio/ranks/drops.h"

#include <algorithm>

#include "app/format.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/shown_run/timeline.h"
#include "app/studio/theme.h"

namespace comera::studio {

void draw_rank_drops(UiState& ui, ImVec2 size) {
  const std::vector<RankDrop>& drops = ui.shown().drops;
  const int64_t now = ui.snapshot().step;
  const auto end = ui.replaying() ? std::upper_bound(drops.begin(), drops.end(), now,
                                                     [](int64_t step, const RankDrop& drop) { return step < drop.step; })
                                  : drops.end();
  const auto count = static_cast<int>(end - drops.begin());
  ImGui::BeginChild("drops", size);
  if (count == 0) {
    empty_state(Icon::none, "No rank drops", ui.replaying() ? "No drops up to the shown step." : "Each drop of a rank appears here.");
    ImGui::EndChild();
    return;
  }
  const char* why_not = no_past(ui);
  const float steps = ImGui::CalcTextSize(thousands(static_cast<double>(std::max<int64_t>(now, 1000))).c_str()).x + em(0.4f);
  ImGuiListClipper clipper;
  clipper.Begin(count);
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const RankDrop& drop = *(end - 1 - i);
      const std::string step = thousands(static_cast<double>(drop.step)), bond = drop.layer + " bond " + std::to_string(drop.bond),
                        ranks = std::to_string(drop.from) + " -> " + std::to_string(drop.to);
      ImGui::PushID(i);
      const float left = ImGui::GetCursorPosX(), y = ImGui::GetCursorPosY(), right = left + ImGui::GetContentRegionAvail().x;
      const bool chosen = ui.selected_layer == drop.layer && ui.tt.bond == drop.bond;
      if (ImGui::Selectable("##drop", chosen)) {
        ui.selected_layer = drop.layer;
        ui.tt.bond = drop.bond;
        ui.tt.core = 0;
        seek(ui, drop.step);
      }
      name_item("drop:" + step + " " + bond + ": " + ranks);
      tooltip(why_not ? why_not : ("Go to step " + step).c_str());
      copy_menu({{"Copy line", "step " + step + "  " + bond + ": " + ranks}});
      ImGui::PushFont(fonts().numbers, 0);
      const float numbers = ImGui::CalcTextSize("1234 -> 1234").x;
      ImGui::SetCursorPos({left, y});
      text_right(step, left + steps, theme().dim);
      ImGui::SetCursorPos({left, y});
      text_right(ranks, right, drop.to == 0 ? theme().bad : theme().text);
      ImGui::PopFont();
      ImGui::SetCursorPos({left + steps + em(0.6f), y});
      text_fit(bond, std::max(1.0f, right - left - steps - em(1) - numbers), theme().text);
      ImGui::PopID();
    }
  ImGui::EndChild();
}

}  // namespace comera::studio
