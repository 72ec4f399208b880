// The rank map: the ranks of now; the same over time next to the size; and all rank drops.
#include <algorithm>
#include <cmath>

#include "app/figure/tt_layout.h"
#include "app/format.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plots.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ranks/bond_map.h"
#include "app/studio/ranks/drops.h"
#include "app/studio/ranks/heatmap.h"
#include "app/studio/ranks/matrix_ranks.h"
#include "app/studio/ranks/sizes.h"
#include "app/studio/shown_run/rank_history.h"

namespace comera::studio {
namespace {

void legend(float width) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float height = em(0.55f), y = at.y + (ImGui::GetTextLineHeight() - height) / 2;
  ImDrawList* list = ImGui::GetWindowDrawList();
  constexpr int kParts = 24;
  for (int i = 0; i < kParts; ++i) {
    const float from = at.x + width * static_cast<float>(i) / kParts, to = at.x + width * static_cast<float>(i + 1) / kParts;
    list->AddRectFilled({from, y}, {to, y + height}, heat((static_cast<float>(i) + 0.5f) / kParts));
  }
  ImGui::Dummy({width, ImGui::GetTextLineHeight()});
}

// Heatmap and areas side by side, or one above the other, or the heatmap alone, depending on the room.
void over_steps(UiState& ui, const std::vector<size_t>& order) {
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float gap = ImGui::GetStyle().ItemSpacing.y;
  if (space.x > em(62) && !ui.shown().drops.empty()) {  // also room for the list of drops
    const float feed = em(17), rest = space.x - feed - em(1.6f), left = std::floor(rest * 0.52f);
    ImGui::BeginGroup();
    draw_rank_heatmap(ui, order, {left, space.y});
    ImGui::EndGroup();
    ImGui::SameLine(0, em(0.8f));
    ImGui::BeginGroup();
    draw_sizes(ui, {rest - left, space.y});
    ImGui::EndGroup();
    ImGui::SameLine(0, em(0.8f));
    draw_rank_drops(ui, {feed, space.y});
  } else if (space.x > em(40)) {
    const float left = std::floor(space.x * 0.55f);
    ImGui::BeginGroup();
    draw_rank_heatmap(ui, order, {left, space.y});
    ImGui::EndGroup();
    ImGui::SameLine(0, em(0.8f));
    ImGui::BeginGroup();
    draw_sizes(ui, {space.x - left - em(0.8f), space.y});
    ImGui::EndGroup();
  } else if (space.y > em(16)) {
    const float upper = std::floor(space.y * 0.55f);
    draw_rank_heatmap(ui, order, {space.x, upper});
    draw_sizes(ui, {space.x, space.y - upper - gap});
  } else {
    draw_rank_heatmap(ui, order, space);
  }
}

// Controls below the title: view, and order of the layers.
void how_shown(UiState& ui) {
  static constexpr const char* kViews[] = {"Now", "Over time", "Drops"};
  static constexpr const char* kOrders[kRankOrders] = {"By depth", "By size", "By drop"};
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.4f), em(0.08f)));
  int view = static_cast<int>(ui.ranks_view), order = static_cast<int>(ui.rank_order);
  if (segmented("ranks-view", kViews, 3, view)) ui.ranks_view = static_cast<RanksView>(view);
  ImGui::SameLine(0, em(0.8f));
  if (ui.ranks_view == RanksView::drops) {
    const char* help = "Newest first. Click: go to the step.";
    if (ImGui::GetContentRegionAvail().x > ImGui::CalcTextSize(help).x)
      text_dim(help);
    else
      ImGui::NewLine();
    ImGui::PopStyleVar();
    return;
  }
  ImGui::SetNextItemWidth(em(6.4f));
  if (ImGui::Combo("##rank-order", &order, kOrders, kRankOrders)) ui.rank_order = static_cast<RankOrder>(order);
  name_item("rank-order");
  tooltip("Order of layers: as in the model, by size, or by the share of lost ranks");
  if (ui.ranks_view == RanksView::now) {
    ImGui::SameLine(0, em(0.8f));
    if (ImGui::GetContentRegionAvail().x > ImGui::CalcTextSize("in %").x + ImGui::GetFrameHeight() + em(0.5f))
      ImGui::Checkbox("in %", &ui.ranks_as_share);
    else
      ImGui::NewLine();
  }
  ImGui::PopStyleVar();
}

void no_ranks(const UiState& ui) {
  const RunView& view = ui.shown();
  const bool dense = ui.has_run() && !view.uses("model.tt"), unreadable = !view.config_problem.empty();
  empty_state(unreadable ? Icon::warning : Icon::chart, dense || unreadable ? "No ranks" : "No ranks yet",
              unreadable ? "The stored settings of this run cannot be read."
              : dense    ? "This run has no tensor trains."
                         : "The ranks of all bonds appear here when a run starts.");
}

// Title, sum of all ranks, the colours where there is room, and the export button.
void title_line(UiState& ui, const std::vector<LayerRanks>& layers) {
  int64_t live = 0, initial = 0;
  for (const LayerRanks& layer : layers) {
    for (int64_t rank : layer.live) live += rank;
    for (int64_t rank : layer.initial) initial += rank;
  }
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - export_button_width() - em(0.4f);
  card_title("Rank map",
             "Live rank and initial rank of each bond of each tensor train. A bond links two cores; entries of its rank vector at or "
             "below the threshold are dead.");
  ImGui::SameLine(0, em(1));
  push_small();
  text_dim("sum " + thousands(static_cast<double>(live)) + " of " + thousands(static_cast<double>(initial)));
  const float scale = em(5), labels = ImGui::CalcTextSize("0 %").x + ImGui::CalcTextSize("100 %").x + em(0.8f);
  if (ImGui::GetContentRegionAvail().x > 0 && right - ImGui::GetCursorPosX() > 0) {
    ImGui::SameLine();
    if (right - ImGui::GetCursorPosX() > scale + labels) {
      ImGui::SetCursorPosX(right - scale - labels);
      text_dim("0 %");
      ImGui::SameLine(0, em(0.4f));
      legend(scale);
      ImGui::SameLine(0, em(0.4f));
      text_dim("100 %");
    }
  }
  ImGui::SameLine();
  export_button(ui, "ranks");
  ImGui::PopFont();
}

void bond_ranks(UiState& ui, const std::vector<LayerRanks>& layers) {
  title_line(ui, layers);
  push_small();
  how_shown(ui);
  const std::vector<size_t> order = ordered_layers(layers, ui.rank_order);
  if (ui.ranks_view == RanksView::drops)
    draw_rank_drops(ui, ImGui::GetContentRegionAvail());
  else if (ui.ranks_view == RanksView::over_steps || draw_bond_map(ui, order))
    over_steps(ui, order);
  ImGui::PopFont();
}

std::vector<LayerRanks> layers_as_shown(const UiState& ui) {
  const Snapshot& s = ui.snapshot();
  std::vector<LayerRanks> layers;
  for (const size_t index : ordered_layers(s.ranks, ui.rank_order)) layers.push_back(s.ranks[index]);
  return layers;
}

}  // namespace

void draw_ranks(UiState& ui) {
  const std::vector<LayerRanks>& layers = ui.snapshot().ranks;
  if (begin_card("rank-map")) {
    if (!layers.empty())
      bond_ranks(ui, layers);
    else if (!ui.snapshot().ranked.empty())
      draw_matrix_ranks(ui);
    else
      no_ranks(ui);
  }
  end_card();
}

std::vector<ListedChart> ranks_charts(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  std::vector<ListedChart> out;
  const std::string note = s.name + ", step " + thousands(static_cast<double>(s.step));
  if (s.ranks.empty() && !s.ranked.empty()) out.push_back(matrix_ranks_chart(ui, note));
  if (s.ranks.empty()) return out;
  out.push_back({"rank-map", "Rank map", [&ui, note] { return bond_map_chart(layers_as_shown(ui), note); }});
  if (has_rank_history(ui))
    out.push_back({"rank-history", "Ranks over the steps", [&ui, note] { return rank_history_chart(ui, layers_as_shown(ui), note); }});
  const RunView& view = ui.shown();
  if (view.snapshot->step > 0 && std::any_of(view.snapshot->ranks.begin(), view.snapshot->ranks.end(), has_shape))
    out.push_back({"size-by-module", kSizesTitle, [&view, note] { return chart_of("size-by-module", sizes_figure(view, note)); }});
  return out;
}

}  // namespace comera::studio
