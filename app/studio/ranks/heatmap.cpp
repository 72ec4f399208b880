#include "app/studio/ranks/heatmap.h"

#include <algorithm>
#include <cmath>

#include "app/figure/rank_map.h"
#include "app/format.h"
#include "app/studio/parts/export.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_axes.h"
#include "app/studio/parts/plots.h"
#include "app/studio/parts/texts.h"
#include "app/studio/theme.h"

namespace comera::studio {
namespace {

// Labels of the axis of steps.
void step_axis(ImDrawList* list, const PlotView& plots, float left, float right, float y) {
  float free = left;
  for (const double at : ticks(plots.x_low, plots.x_high, 4, false)) {
    if (at < plots.x_low || at > plots.x_high) continue;
    const std::string text = thousands(at);
    const float width = ImGui::CalcTextSize(text.c_str()).x;
    const float x = left + (right - left) * static_cast<float>((at - plots.x_low) / (plots.x_high - plots.x_low)) - width / 2;
    if (x < free || x + width > right) continue;
    list->AddText({x, y}, theme().dim, text.c_str());
    free = x + width + em(1);
  }
}

}  // namespace

void draw_rank_heatmap(UiState& ui, const std::vector<size_t>& order, ImVec2 size) {
  const RunView& view = ui.shown();
  const std::vector<LayerRanks>& layers = ui.snapshot().ranks;
  PlotView& plots = ui.plots;
  float names = 0;
  size_t bonds = 0;
  for (const LayerRanks& layer : layers) {
    names = std::max(names, ImGui::CalcTextSize(layer.name.c_str()).x);
    bonds += layer.live.size();
  }
  names = std::min(names, size.x * 0.3f) + em(0.5f);
  const float axis = ImGui::GetTextLineHeight() + em(0.2f), gap = em(0.25f);
  const float room = (size.y - axis - gap * static_cast<float>(layers.size())) / static_cast<float>(std::max<size_t>(1, bonds));
  const float row = std::clamp(std::floor(room), em(0.5f), em(3));
  const auto height_of = [&](const LayerRanks& layer) {
    return std::max(row * static_cast<float>(layer.live.size()), ImGui::GetTextLineHeight()) + gap;
  };
  float all = 0;
  for (const LayerRanks& layer : layers) all += height_of(layer);
  // The axis is directly below the last bond.
  ImGui::BeginChild("bonds", {size.x, std::min(size.y - axis, std::ceil(all))});
  const ImVec2 origin = ImGui::GetCursorScreenPos();
  const float left = origin.x + names, right = origin.x + ImGui::GetContentRegionAvail().x - em(0.2f);
  const double low = plots.x_low, high = std::max(plots.x_high, low + 1), newest = static_cast<double>(view.snapshot->step);
  const auto place = [&](double step) {
    return left + (right - left) * static_cast<float>(std::clamp((step - low) / (high - low), 0.0, 1.0));
  };
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 mouse = ImGui::GetMousePos();
  const bool over = ImGui::IsWindowHovered() && mouse.x >= left && mouse.x < right;
  if (over) plots.hovered = std::round(low + (high - low) * static_cast<double>((mouse.x - left) / (right - left)));
  std::vector<Copied> copied;  // facts about the bond and step under the mouse
  float y = origin.y;
  for (const size_t index : order) {
    const LayerRanks& layer = layers[index];
    const float height = height_of(layer), top = y;
    y += height;
    if (!ImGui::IsRectVisible({origin.x, top}, {right, top + height})) continue;
    const float each = (height - gap) / static_cast<float>(std::max<size_t>(1, layer.live.size()));
    ImGui::SetCursorScreenPos({origin.x, top + (height - gap - ImGui::GetTextLineHeight()) / 2});
    text_fit(layer.name, names - em(0.5f), ui.selected_layer == layer.name ? theme().text : theme().dim);
    for (size_t bond = 0; bond < layer.live.size(); ++bond) {
      const float from_y = top + each * static_cast<float>(bond), to_y = from_y + std::max(1.0f, each - 1);
      const auto found = view.bond_ranks.find({layer.name, static_cast<int64_t>(bond) + 1});
      if (found == view.bond_ranks.end() || found->second.empty()) continue;
      const Rising<double>& x = found->second.x();
      const std::vector<double>& ranks = found->second.y();
      const double initial = bond < layer.initial.size() ? std::max(1.0, static_cast<double>(layer.initial[bond])) : 1;
      size_t i = static_cast<size_t>(std::max<std::ptrdiff_t>(1, std::upper_bound(x.begin(), x.end(), low) - x.begin())) - 1;
      for (float from = place(x[i]); i < x.size() && x[i] < high; ++i) {
        const float to = place(i + 1 < x.size() ? x[i + 1] : newest);
        if (to - from < 1 && i + 1 < x.size()) continue;  // within a pixel, only the last rank is drawn
        const ImU32 color = ranks[i] <= 0 ? theme().bad : heat(static_cast<float>(std::min(1.0, ranks[i] / initial)));
        list->AddRectFilled({from, from_y}, {std::max(to, from + 1), to_y}, color);
        from = to;
      }
      if (!over || mouse.y < from_y || mouse.y >= from_y + each) continue;
      list->AddRect({left, from_y}, {right, to_y}, theme().text);
      if (ImGui::IsMouseClicked(0)) {
        ui.selected_layer = layer.name;
        ui.tt.bond = static_cast<int64_t>(bond) + 1;
        ui.tt.core = 0;
      }
      const double rank = found->second.at(plots.hovered);
      if (!std::isfinite(rank) || plots.hovered > newest) continue;
      const std::string name = layer.name + ", bond " + std::to_string(bond + 1),
                        text = "step " + thousands(plots.hovered) + ": rank " + thousands(rank) + " of " + thousands(initial);
      copied = {{"Copy value", csv_number(rank)}, {"Copy line", name + "\t" + text}};
      if (!ImGui::BeginTooltip()) continue;
      ImGui::TextUnformatted(name.c_str());
      text_dim(text);
      ImGui::EndTooltip();
    }
  }
  const float bottom = y - gap;
  for (const auto& [step, color, weight] :
       {std::tuple(plots.cursor, with_alpha(theme().dim, 0.6f), em(0.06f)), std::tuple(plots.replay, theme().warning, em(0.1f))})
    if (step >= low && step <= high)
      list->AddLine({std::round(place(step)), origin.y}, {std::round(place(step)), bottom}, color, std::max(1.0f, weight));
  ImGui::SetCursorScreenPos(origin);
  ImGui::Dummy({1, bottom - origin.y});
  copy_menu(copied, !copied.empty());
  ImGui::EndChild();
  name_item("chart:rank-history");
  const ImVec2 under = ImGui::GetCursorScreenPos();
  step_axis(ImGui::GetWindowDrawList(), plots, left, right, under.y - ImGui::GetStyle().ItemSpacing.y + em(0.1f));
  ImGui::Dummy({size.x, axis - ImGui::GetStyle().ItemSpacing.y});
}

Chart rank_history_chart(const UiState& ui, const std::vector<LayerRanks>& layers, const std::string& note) {
  const RunView& view = ui.shown();
  const double low = std::max(0.0, ui.plots.x_low), high = ui.plots.x_high;
  std::vector<BondPast> bonds;
  std::vector<std::vector<std::string>> rows{{"layer", "bond", "step", "rank"}};
  for (const LayerRanks& layer : layers)
    for (size_t bond = 0; bond < layer.live.size(); ++bond) {
      const auto found = view.bond_ranks.find({layer.name, static_cast<int64_t>(bond) + 1});
      if (found == view.bond_ranks.end() || found->second.empty()) continue;
      BondPast past{.layer = layer.name, .bond = found->first.second, .initial = bond < layer.initial.size() ? layer.initial[bond] : 0};
      const Rising<double>& x = found->second.x();
      for (size_t i = static_cast<size_t>(std::max<std::ptrdiff_t>(1, std::upper_bound(x.begin(), x.end(), low) - x.begin())) - 1;
           i < x.size() && x[i] < high; ++i) {
        past.steps.push_back(x[i]);
        past.ranks.push_back(found->second.y()[i]);
        rows.push_back({layer.name, std::to_string(past.bond), csv_number(x[i]), csv_number(past.ranks.back())});
      }
      bonds.push_back(std::move(past));
    }
  Chart chart{"rank-history", "Ranks over the steps", {}, rank_heatmap(bonds, low, high, static_cast<double>(view.snapshot->step), note)};
  chart.csv = [rows = std::move(rows)] { return csv_text(rows); };
  return chart;
}

bool has_rank_history(const UiState& ui) {
  const RunView& view = ui.shown();
  for (const LayerRanks& layer : ui.snapshot().ranks)
    for (size_t bond = 0; bond < layer.live.size(); ++bond)
      if (const auto found = view.bond_ranks.find({layer.name, static_cast<int64_t>(bond) + 1});
          found != view.bond_ranks.end() && !found->second.empty())
        return true;
  return false;
}

}  // namespace comera::studio
