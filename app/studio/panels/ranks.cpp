// The rank map: layers by bonds, each cell with its live rank, coloured by the share that is left.
#include <algorithm>
#include <cmath>

#include "app/figure/rank_map.h"
#include "app/format.h"
#include "app/studio/panels.h"
#include "app/studio/plots.h"
#include "app/studio/widgets.h"

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

// A click chooses the bond, for the diagram of the tensor trains; moving the mouse up or down with the button held sets
// its cap, in force when it is let go.
void cell(UiState& ui, const LayerRanks& layer, size_t bond, ImVec2 at, ImVec2 size) {
  const int64_t live = layer.live[bond], initial = bond < layer.initial.size() ? layer.initial[bond] : live;
  const int64_t cap = bond < layer.caps.size() ? layer.caps[bond] : 0;
  const float share = initial > 0 ? static_cast<float>(live) / static_cast<float>(initial) : 0;
  const ImU32 color = live == 0 ? theme().bad : heat(share);
  const std::string path = "rank.cap." + layer.name + "." + std::to_string(bond + 1);
  LiveRun* run = ui.editable();
  ImGui::SetCursorScreenPos(at);
  ImGui::PushID(static_cast<int>(bond));
  const bool pressed = ImGui::InvisibleButton("bond", size);
  ImGui::PopID();
  const bool hovered = ImGui::IsItemHovered(), dragged = mouse_dragged();
  if (run && initial > 1 && ImGui::IsItemActive() && dragged) {
    const double from = cap > 0 ? static_cast<double>(cap) : static_cast<double>(std::max<int64_t>(1, live));
    ui.drags[path].value = std::clamp(std::round(from - ImGui::GetMouseDragDelta(0).y / em(0.6f)), 1.0, static_cast<double>(initial));
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeNS);
  }
  const auto drag = ui.drags.find(path);
  const bool capping = drag != ui.drags.end() && ImGui::IsItemActive();
  if (ImGui::IsItemDeactivated() && drag != ui.drags.end()) {
    if (run) run->edit(path, std::to_string(std::lround(drag->second.value)));
    ui.drags.erase(drag);
  } else if (pressed && !dragged) {
    ui.selected_layer = layer.name;
    ui.tt.bond = static_cast<int64_t>(bond) + 1;
    ui.tt.core = 0;
  }
  ImDrawList* list = ImGui::GetWindowDrawList();
  const ImVec2 end(at.x + size.x, at.y + size.y);
  list->AddRectFilled(at, end, color, em(0.25f));
  if (ui.selected_layer == layer.name && ui.tt.bond == static_cast<int64_t>(bond) + 1)
    list->AddRect(at, end, theme().text, em(0.25f), std::max(1.0f, em(0.12f)));
  std::string text = ui.ranks_as_share ? std::to_string(std::lround(share * 100)) + " %" : std::to_string(live);
  const std::string with_initial = text + " / " + std::to_string(initial);
  if (capping) text = "cap " + std::to_string(std::lround(ui.drags[path].value));
  ImVec2 extent = ImGui::CalcTextSize(with_initial.c_str());
  if (!ui.ranks_as_share && !capping && extent.x < size.x - em(0.6f))
    text = with_initial;
  else
    extent = ImGui::CalcTextSize(text.c_str());
  list->AddText({std::round(at.x + (size.x - extent.x) / 2), std::round(at.y + (size.y - extent.y) / 2)}, readable_on(color), text.c_str());
  if (!hovered || capping || !ImGui::BeginTooltip()) return;
  ImGui::Text("%s, bond %zu", layer.name.c_str(), bond + 1);
  text_dim("live rank " + std::to_string(live) + " of " + std::to_string(initial) + " at the start (" +
           std::to_string(std::lround(share * 100)) + " %)");
  if (bond < layer.held.size() && layer.held[bond] != live)
    text_dim("held in memory: " + std::to_string(layer.held[bond]) + ", until the next cut");
  if (cap > 0) text_dim("capped at " + std::to_string(cap));
  if (live == 0) text_dim("The layer gives 0: see the setting floor_rank.");
  if (run) text_dim("Drag up or down: set a cap");
  ImGui::EndTooltip();
}

// The sum of each layer's ranks over the steps. Colours repeat where there are many layers.
PlotTile sums_of(const RunView& view) {
  PlotTile tile{.id = "##rank-history", .title = "Sum of ranks", .unit = "ranks", .from_zero = true};
  const std::vector<LayerRanks>& layers = view.snapshot->ranks;
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto found = view.rank_sums.find(layers[i].name);
    if (found == view.rank_sums.end()) continue;
    const ImU32 color = theme().series[i % theme().series.size()];
    tile.lines.push_back({.curve = &found->second, .label = layers[i].name.c_str(), .color = color, .hold = true});
  }
  return tile;
}

void history(UiState& ui, const RunView& view) {
  const PlotTile tile = sums_of(view);
  text_dim(tile.title);
  for (const PlotLine& line : tile.lines) {
    ImGui::SameLine(0, em(0.9f));
    const ImVec2 at = ImGui::GetCursorScreenPos();
    ImGui::GetWindowDrawList()->AddCircleFilled({at.x + em(0.3f), at.y + ImGui::GetTextLineHeight() / 2}, em(0.28f), line.color);
    ImGui::Dummy({em(0.6f), 0});
    ImGui::SameLine(0, em(0.3f));
    text_dim(line.label);
  }
  follow_head(ui.plots, static_cast<double>(view.snapshot->step));
  plot_lines(ui.plots, tile, view.marks, ImGui::GetContentRegionAvail());
}

}  // namespace

void draw_ranks(UiState& ui) {
  const RunView& view = ui.shown();
  const std::vector<LayerRanks>& layers = ui.snapshot().ranks;
  if (begin_card("rank-map")) {
    if (layers.empty()) {
      const bool dense = ui.has_run() && !view.config.tensorised();
      const bool unreadable = !view.config_problem.empty();
      empty_state(unreadable ? Icon::warning : Icon::chart, dense || unreadable ? "No ranks" : "No ranks yet",
                  unreadable ? "The stored settings of this run cannot be read."
                  : dense    ? "This method trains dense matrices."
                             : "The ranks of every tensor-train bond appear here as soon as a run begins.");
      end_card();
      return;
    }
    int64_t live = 0, initial = 0;
    size_t bonds = 0;
    float names = 0;
    for (const LayerRanks& layer : layers) {
      bonds = std::max(bonds, layer.live.size());
      names = std::max(names, ImGui::CalcTextSize(layer.name.c_str()).x);
      for (int64_t rank : layer.live) live += rank;
      for (int64_t rank : layer.initial) initial += rank;
    }
    const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - export_button_width() - em(0.4f);
    card_title("Rank map",
               "Live rank of each bond of each tensor train, and its rank at the start. A bond is where two cores meet; entries of its "
               "rank vector at or under the threshold are dead.");
    ImGui::SameLine(0, em(1));
    push_small();
    text_dim("sum " + thousands(static_cast<double>(live)) + " of " + thousands(static_cast<double>(initial)));
    const float scale = em(5), labels = ImGui::CalcTextSize("0 %").x + ImGui::CalcTextSize("100 %").x + em(0.8f);
    const float check = ImGui::CalcTextSize("in %").x + ImGui::GetFrameHeight() + em(1.2f);
    if (ImGui::GetContentRegionAvail().x > 0 && right - ImGui::GetCursorPosX() > 0) {
      ImGui::SameLine();
      if (right - ImGui::GetCursorPosX() > scale + labels + check) {
        ImGui::SetCursorPosX(right - scale - labels - check);
        ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.2f), 0));
        ImGui::Checkbox("in %", &ui.ranks_as_share);
        ImGui::PopStyleVar();
        ImGui::SameLine(0, em(1));
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

    push_small();
    const float header = ImGui::GetTextLineHeight() + em(0.3f);
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const float gap = std::max(1.0f, em(0.14f));
    names = std::min(names, space.x * 0.35f);
    // With few layers there is room for their history below the map.
    const float map = header + static_cast<float>(layers.size()) * em(2.6f) + gap;
    const bool with_history = layers.size() <= theme().series.size() && space.y - map > em(9);
    ImGui::BeginChild("cells", {0, with_history ? map : 0}, 0, with_history ? ImGuiWindowFlags_NoScrollbar : 0);
    const float width = ImGui::GetContentRegionAvail().x;
    const auto count = static_cast<float>(std::max<size_t>(1, bonds));
    const float cell_width = std::max(em(2.6f), std::floor(std::min(em(14), (width - names - em(0.8f)) / count - gap)));
    const float cell_height =
        std::floor(std::clamp(((with_history ? map : space.y) - header) / static_cast<float>(layers.size()) - gap, em(1.5f), em(4.2f)));
    const ImVec2 origin = ImGui::GetCursorScreenPos();
    ImDrawList* list = ImGui::GetWindowDrawList();
    for (size_t bond = 0; bond < bonds; ++bond) {
      const std::string title = cell_width > em(4) ? "bond " + std::to_string(bond + 1) : std::to_string(bond + 1);
      const float text = ImGui::CalcTextSize(title.c_str()).x;
      list->AddText({origin.x + names + em(0.8f) + static_cast<float>(bond) * (cell_width + gap) + (cell_width - text) / 2, origin.y},
                    theme().dim, title.c_str());
    }
    ImGui::Dummy({names + em(0.8f) + count * (cell_width + gap), header});
    ImGui::PushFont(fonts().numbers, 0);
    ImGuiListClipper clipper;
    clipper.Begin(static_cast<int>(layers.size()), cell_height + gap);
    while (clipper.Step())
      for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
        const LayerRanks& layer = layers[static_cast<size_t>(i)];
        const ImVec2 at(origin.x, origin.y + header + static_cast<float>(i) * (cell_height + gap));
        ImGui::SetCursorScreenPos(at);
        ImGui::PushID(i);
        const bool chosen = ui.selected_layer == layer.name;
        ImGui::PushFont(fonts().text, 0);
        if (ImGui::InvisibleButton("layer", {names + em(0.4f), cell_height})) {
          ui.selected_layer = chosen ? "" : layer.name;
          ui.tt.bond = ui.tt.core = 0;
        }
        const bool hovered = ImGui::IsItemHovered();
        ImGui::SetCursorScreenPos({at.x, at.y + (cell_height - ImGui::GetTextLineHeight()) / 2});
        text_fit(layer.name, names, chosen || hovered ? theme().text : theme().dim);
        ImGui::PopFont();
        for (size_t bond = 0; bond < layer.live.size(); ++bond)
          cell(ui, layer, bond, {at.x + names + em(0.8f) + static_cast<float>(bond) * (cell_width + gap), at.y}, {cell_width, cell_height});
        ImGui::PopID();
      }
    ImGui::PopFont();
    ImGui::SetCursorScreenPos({origin.x, origin.y + header + static_cast<float>(layers.size()) * (cell_height + gap)});
    ImGui::Dummy({1, 1});
    ImGui::EndChild();
    if (with_history) history(ui, view);
    ImGui::PopFont();
  }
  end_card();
}

std::vector<Chart> ranks_charts(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  std::vector<Chart> out;
  if (s.ranks.empty()) return out;
  const std::string note = s.name + ", step " + thousands(static_cast<double>(s.step));
  out.push_back({"rank-map", "Rank map", {}, rank_map(s.ranks, note)});
  std::vector<std::vector<std::string>> rows{{"layer", "bond", "live", "held", "initial", "cap"}};
  for (const LayerRanks& layer : s.ranks)
    for (size_t bond = 0; bond < layer.live.size(); ++bond) {
      const auto at = [&](const std::vector<int64_t>& ranks) { return bond < ranks.size() ? std::to_string(ranks[bond]) : ""; };
      const bool capped = bond < layer.caps.size() && layer.caps[bond] > 0;
      rows.push_back(
          {layer.name, std::to_string(bond + 1), at(layer.live), at(layer.held), at(layer.initial), capped ? at(layer.caps) : ""});
    }
  out.back().csv = [rows = std::move(rows)] { return csv_text(rows); };
  follow_head(ui.plots, static_cast<double>(ui.shown().snapshot->step));
  if (const PlotTile tile = sums_of(ui.shown()); !tile.lines.empty()) out.push_back(chart_of("rank-sums", figure_of(ui.plots, tile, note)));
  return out;
}

}  // namespace comera::studio
