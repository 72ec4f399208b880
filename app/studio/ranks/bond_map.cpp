#include "app/studio/ranks/bond_map.h"

#include <algorithm>
#include <cmath>

#include "app/figure/rank_map.h"
#include "app/figure/tt_layout.h"
#include "app/format.h"
#include "app/studio/parts/export.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/theme.h"

namespace comera::studio {
namespace {

// Ranks, entries, memory and fraction of a layer, one per line.
std::vector<std::string> layer_facts(const Snapshot& s, const LayerRanks& layer) {
  std::string ranks;
  for (size_t bond = 0; bond < layer.live.size(); ++bond) ranks += (bond ? "  " : "") + std::to_string(layer.live[bond]);
  if (!has_shape(layer)) return {"ranks " + ranks};
  const auto entries = static_cast<double>(layer_entries(layer, layer.live));
  const double bytes = s.size.entries > 0 ? s.size.bytes / s.size.entries : 0;
  std::string text = thousands(entries) + " values";
  if (bytes > 0) text += ", " + mebibytes(entries * bytes) + " = " + megabytes(entries * bytes);
  if (s.size.model_entries > 0) text += ", " + significant(entries / s.size.model_entries * 100, 3) + " % of the model";
  return {"ranks " + ranks, text};
}

// A tooltip with a title and facts.
void tell(const std::string& name, const std::vector<std::string>& facts) {
  if (!ImGui::BeginTooltip()) return;
  ImGui::TextUnformatted(name.c_str());
  if (collects_items()) name_item("tip:" + name);
  for (const std::string& fact : facts) text_dim(fact);
  ImGui::EndTooltip();
}

std::string joined(const std::string& name, const std::vector<std::string>& facts) {
  std::string text = name;
  for (const std::string& fact : facts) text += "\n" + fact;
  return text;
}

// An item of the map: the arrow keys move across all of them; Tab stops at the first one only.
class MapItem {
 public:
  explicit MapItem(bool first) : first_(first) {
    if (!first_) ImGui::PushItemFlag(ImGuiItemFlags_NoTabStop, true);
  }
  ~MapItem() {
    if (!first_) ImGui::PopItemFlag();
  }
  MapItem(const MapItem&) = delete;

 private:
  const bool first_;
};

// A click selects the bond in the diagram of tensor trains. Dragging up or down sets its cap when the button is released.
void cell(UiState& ui, const LayerRanks& layer, size_t bond, ImVec2 at, ImVec2 size) {
  const int64_t live = layer.live[bond], initial = bond < layer.initial.size() ? layer.initial[bond] : live;
  const int64_t cap = bond < layer.caps.size() ? layer.caps[bond] : 0;
  const float share = initial > 0 ? static_cast<float>(live) / static_cast<float>(initial) : 0;
  const ImU32 color = live == 0 ? theme().bad : heat(share);
  const std::string path = "rank.cap." + layer.name + "." + std::to_string(bond + 1);
  LiveRun* run = ui.editable();
  ImGui::SetCursorScreenPos(at);
  const bool pressed = [&] {
    const MapItem item(false);
    return focus_area(("bond " + std::to_string(bond)).c_str(), ImGui::GetCursorPos(), size);
  }();
  if (collects_items()) name_item("cell:" + layer.name + "." + std::to_string(bond + 1));
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
  const std::string name = layer.name + ", bond " + std::to_string(bond + 1);
  std::vector<std::string> facts;
  std::vector<Copied> what;
  if (hovered || ImGui::IsItemFocused()) {
    facts = layer_facts(ui.snapshot(), layer);
    facts.push_back("live rank " + std::to_string(live) + " of " + std::to_string(initial) + " initially (" +
                    std::to_string(std::lround(share * 100)) + " %)");
    if (bond < layer.held.size() && layer.held[bond] != live)
      facts.push_back("in memory: " + std::to_string(layer.held[bond]) + ", until the next pruning");
    if (cap > 0) facts.push_back("capped at " + std::to_string(cap));
    if (live == 0) facts.push_back("The layer outputs 0: see the setting floor_rank.");
    what = {{"Copy value", std::to_string(live)},
            {"Copy line", name + "\tlive rank " + std::to_string(live) + " of " + std::to_string(initial)},
            {"Copy tooltip", joined(name, facts)}};
    if (run && !led_by_keyboard()) facts.push_back("Drag up or down: set a cap");
  }
  ImGui::PushID(static_cast<int>(bond));
  copy_menu(what, hovered);
  ImGui::PopID();
  if (hovered && !capping) tell(name, facts);
}

// Where the cells of the map lie.
struct MapGrid {
  ImVec2 origin, cell;
  float names = 0, header = 0, gap = 0;

  ImVec2 place(size_t row, size_t bond) const {
    return {origin.x + names + em(0.8f) + static_cast<float>(bond) * (cell.x + gap),
            origin.y + header + static_cast<float>(row) * (cell.y + gap)};
  }
};

void bond_titles(const MapGrid& grid, size_t bonds) {
  for (size_t bond = 0; bond < bonds; ++bond) {
    const std::string title = grid.cell.x > em(4) ? "bond " + std::to_string(bond + 1) : std::to_string(bond + 1);
    const float text = ImGui::CalcTextSize(title.c_str()).x;
    ImGui::GetWindowDrawList()->AddText({grid.place(0, bond).x + (grid.cell.x - text) / 2, grid.origin.y}, theme().dim, title.c_str());
  }
}

// Name and cells of a layer in row `row` of the map.
void layer_row(UiState& ui, const LayerRanks& layer, const MapGrid& grid, size_t row) {
  const ImVec2 at(grid.origin.x, grid.place(row, 0).y);
  ImGui::SetCursorScreenPos(at);
  ImGui::PushID(layer.name.c_str());
  const bool chosen = ui.selected_layer == layer.name;
  ImGui::PushFont(fonts().text, 0);
  const bool pressed = [&] {
    const MapItem item(row == 0);
    return focus_area("layer", ImGui::GetCursorPos(), {grid.names + em(0.4f), grid.cell.y});
  }();
  if (pressed) {
    ui.selected_layer = chosen ? "" : layer.name;
    ui.tt.bond = ui.tt.core = 0;
  }
  name_item("layer:" + layer.name);
  const bool hovered = ImGui::IsItemHovered();
  std::vector<Copied> what;
  if (hovered || ImGui::IsItemFocused()) {
    const std::vector<std::string> facts = layer_facts(ui.snapshot(), layer);
    what = {{"Copy name", layer.name}, {"Copy tooltip", joined(layer.name, facts)}};
    if (hovered) tell(layer.name, facts);
  }
  copy_menu(what, hovered);
  ImGui::SetCursorScreenPos({at.x, at.y + (grid.cell.y - ImGui::GetTextLineHeight()) / 2});
  text_fit(layer.name, grid.names, chosen || hovered ? theme().text : theme().dim);
  ImGui::PopFont();
  for (size_t bond = 0; bond < layer.live.size(); ++bond) cell(ui, layer, bond, grid.place(row, bond), grid.cell);
  ImGui::PopID();
}

}  // namespace

bool draw_bond_map(UiState& ui, const std::vector<size_t>& order) {
  const std::vector<LayerRanks>& layers = ui.snapshot().ranks;
  size_t bonds = 0;
  float names = 0;
  for (const LayerRanks& layer : layers) {
    bonds = std::max(bonds, layer.live.size());
    names = std::max(names, ImGui::CalcTextSize(layer.name.c_str()).x);
  }
  const ImVec2 space = ImGui::GetContentRegionAvail();
  MapGrid grid;
  grid.header = ImGui::GetTextLineHeight() + em(0.3f);
  grid.gap = std::max(1.0f, em(0.14f));
  grid.names = std::min(names, space.x * 0.35f);
  const auto rows = static_cast<float>(layers.size()), count = static_cast<float>(std::max<size_t>(1, bonds));
  const float map = grid.header + rows * em(2.6f) + grid.gap;
  const bool with_history = space.y - map > em(5.5f);
  ImGui::BeginChild("cells", {0, with_history ? map : 0}, ImGuiChildFlags_NavFlattened, with_history ? ImGuiWindowFlags_NoScrollbar : 0);
  const float width = ImGui::GetContentRegionAvail().x;
  grid.cell.x = std::max(em(2.6f), std::floor(std::min(em(14), (width - grid.names - em(0.8f)) / count - grid.gap)));
  grid.cell.y = std::floor(std::clamp(((with_history ? map : space.y) - grid.header) / rows - grid.gap, em(1.5f), em(4.2f)));
  grid.origin = ImGui::GetCursorScreenPos();
  bond_titles(grid, bonds);
  ImGui::Dummy({grid.names + em(0.8f) + count * (grid.cell.x + grid.gap), grid.header});
  ImGui::PushFont(fonts().numbers, 0);
  ImGuiListClipper clipper;
  clipper.Begin(static_cast<int>(layers.size()), grid.cell.y + grid.gap);
  while (clipper.Step())
    for (auto i = static_cast<size_t>(clipper.DisplayStart); i < static_cast<size_t>(clipper.DisplayEnd); ++i)
      layer_row(ui, layers[order[i]], grid, i);
  ImGui::PopFont();
  ImGui::SetCursorScreenPos({grid.origin.x, grid.place(layers.size(), 0).y});
  ImGui::Dummy({1, 1});
  ImGui::EndChild();
  name_item("chart:rank-map");
  return with_history;
}

Chart bond_map_chart(const std::vector<LayerRanks>& layers, const std::string& note) {
  Chart chart{"rank-map", "Rank map", {}, rank_map(layers, note)};
  std::vector<std::vector<std::string>> rows{{"layer", "bond", "live", "held", "initial", "cap"}};
  for (const LayerRanks& layer : layers)
    for (size_t bond = 0; bond < layer.live.size(); ++bond) {
      const auto at = [&](const std::vector<int64_t>& ranks) { return bond < ranks.size() ? std::to_string(ranks[bond]) : ""; };
      const bool capped = bond < layer.caps.size() && layer.caps[bond] > 0;
      rows.push_back(
          {layer.name, std::to_string(bond + 1), at(layer.live), at(layer.held), at(layer.initial), capped ? at(layer.caps) : ""});
    }
  chart.csv = [rows = std::move(rows)] { return csv_text(rows); };
  return chart;
}

}  // namespace comera::studio
