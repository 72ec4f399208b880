#include "app/studio/memory/by_layer.h"

#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/painting.h"
#include "app/studio/parts/texts.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

void right(const std::string& text, ImU32 color) {
  ImGui::PushFont(fonts().numbers, 0);
  text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, color);
  ImGui::PopFont();
}

constexpr Purpose kOfLayers[] = {Purpose::tt_core, Purpose::rank_vector, Purpose::gradient, Purpose::optimizer};

// Parameters alone, or with gradients and moments.
MemoryByPurpose memory_of(const UiState& ui, const LayerMemory& layer) {
  MemoryByPurpose out = layer.bytes;
  if (ui.memory_counts == 0) out[Purpose::gradient] = out[Purpose::optimizer] = 0;
  return out;
}
double counted_dense(const UiState& ui, const LayerMemory& layer) { return ui.memory_counts == 0 ? layer.dense_values : layer.dense; }

// Separate columns per purpose if there is room.
void layer_table(UiState& ui, const ModelMemory& memory, ImVec2 size) {
  const float number = mebibytes_width();
  const bool purposes = size.x > 6 * (number + em(0.8f)) + em(8);
  std::vector<const char*> titles{"Layer", "All", "If dense"};
  if (purposes) titles.insert(titles.begin() + 1, {"Cores", "Ranks", "Gradients", "Moments"});
  const auto columns = static_cast<int>(titles.size());
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(em(0.4f), em(0.05f)));
  const bool open = ImGui::BeginTable("layers", columns, ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_ScrollY, size);
  ImGui::PopStyleVar();
  if (!open) return;
  for (int i = 0; i < columns; ++i)
    ImGui::TableSetupColumn(titles[static_cast<size_t>(i)], i == 0 ? ImGuiTableColumnFlags_WidthStretch : ImGuiTableColumnFlags_WidthFixed,
                            i == 0 ? 1 : number);
  ImGui::TableSetupScrollFreeze(0, 1);
  ImGui::TableNextRow();
  for (int i = 0; i < columns; ++i) {
    ImGui::TableSetColumnIndex(i);
    if (i == 0)
      text_dim(ImGui::TableGetColumnName(i));
    else
      text_right(ImGui::TableGetColumnName(i), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, theme().dim);
  }
  double all = 0, dense = 0;
  ImGuiListClipper clipper;
  for (const LayerMemory& layer : memory.layers) {
    all += static_cast<double>(memory_of(ui, layer).total());
    dense += counted_dense(ui, layer);
  }
  clipper.Begin(static_cast<int>(memory.layers.size()));
  while (clipper.Step())
    for (int i = clipper.DisplayStart; i < clipper.DisplayEnd; ++i) {
      const LayerMemory& layer = memory.layers[static_cast<size_t>(i)];
      ImGui::PushID(i);
      ImGui::TableNextRow();
      ImGui::TableNextColumn();
      const ImVec2 at = ImGui::GetCursorPos();
      if (ImGui::Selectable("##row", ui.selected_layer == layer.name, ImGuiSelectableFlags_SpanAllColumns)) ui.selected_layer = layer.name;
      const auto all_of_it = static_cast<double>(memory_of(ui, layer).total());
      copy_menu({{"Copy value", mebibytes(all_of_it)},
                 {"Copy line", layer.name + "\t" + exact_bytes(all_of_it) + "\tif dense " + exact_bytes(counted_dense(ui, layer))}});
      ImGui::SetCursorPos(at);
      text_fit(layer.name, ImGui::GetContentRegionAvail().x, theme().text);
      for (const Purpose purpose : kOfLayers) {
        if (!purposes) break;
        ImGui::TableNextColumn();
        const int64_t bytes = memory_of(ui, layer)[purpose];
        right(bytes > 0 ? mebibytes(static_cast<double>(bytes)) : "-", theme().text);
      }
      ImGui::TableNextColumn();
      right(mebibytes(static_cast<double>(memory_of(ui, layer).total())), theme().text);
      ImGui::TableNextColumn();
      right(mebibytes(counted_dense(ui, layer)), theme().dim);
      ImGui::PopID();
    }
  if (ui.memory_counts == 2) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text_fit("Other", ImGui::GetContentRegionAvail().x, theme().dim);
    tooltip("Dense parameters, and memory of a step that is not known by layer: activations, workspace, data.");
    ImGui::TableSetColumnIndex(columns - 2);
    right(mebibytes(static_cast<double>(memory.rest.total())), theme().dim);
  }
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  text_fit("Sum", ImGui::GetContentRegionAvail().x, theme().text);
  ImGui::TableSetColumnIndex(columns - 2);
  right(mebibytes(all), theme().text);
  ImGui::TableNextColumn();
  right(mebibytes(dense), theme().dim);
  ImGui::EndTable();
}

// Treemap: one area per layer, proportional to its bytes, divided by purpose; optionally the rest of the step.
struct Area {
  std::string name;
  MemoryByPurpose bytes;
  bool layer = false;
  std::vector<std::pair<double, Purpose>> parts = {};  // largest first
};
std::vector<Area> areas_of(const UiState& ui, const ModelMemory& memory) {
  std::vector<Area> areas;
  for (const LayerMemory& layer : memory.layers) areas.push_back({layer.name, memory_of(ui, layer), true});
  if (ui.memory_counts == 2)
    for (int i = 0; i < kPurposes; ++i) {
      MemoryByPurpose one;
      one.bytes[static_cast<size_t>(i)] = memory.rest.bytes[static_cast<size_t>(i)];
      if (one.total() > 0) areas.push_back({std::string("rest: ") + look_of(static_cast<Purpose>(i)).title, one, false});
    }
  std::stable_sort(areas.begin(), areas.end(), [](const Area& a, const Area& b) { return a.bytes.total() > b.bytes.total(); });
  for (Area& area : areas) {
    for (int purpose = 0; purpose < kPurposes; ++purpose)
      area.parts.emplace_back(static_cast<double>(area.bytes.bytes[static_cast<size_t>(purpose)]), static_cast<Purpose>(purpose));
    std::sort(area.parts.begin(), area.parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  }
  return areas;
}

struct TreemapPicture {
  Drawing drawing;
  std::vector<Tile> tiles;  // one per area
};
TreemapPicture treemap_picture(const std::vector<Area>& areas, Point size, float text) {
  TreemapPicture out;
  std::vector<double> sizes;
  for (const Area& area : areas) sizes.push_back(static_cast<double>(area.bytes.total()));
  out.tiles = squarify(sizes, {0, 0, size.x, size.y});
  out.drawing.size = size;
  const float gap = std::max(1.0f, text * 0.08f), line = text * 1.15f, pad = text * 0.3f;
  for (size_t i = 0; i < out.tiles.size(); ++i) {
    Tile& tile = out.tiles[i];
    tile.width -= gap;
    tile.height -= gap;
    if (tile.width <= 0 || tile.height <= 0) continue;
    std::vector<double> part_sizes;
    for (const auto& [bytes, purpose] : areas[i].parts) part_sizes.push_back(bytes);
    const std::vector<Tile> inner = squarify(part_sizes, tile);
    for (size_t k = 0; k < inner.size(); ++k) {
      const Tile& part = inner[k];
      if (part.width <= 0) continue;
      const PurposeLook look = look_of(areas[i].parts[k].second);
      out.drawing.rect({part.x, part.y}, {part.x + part.width, part.y + part.height}, with_alpha(look.color, 0.85f));
      // The largest part shows the name of the layer, then its own name; other parts show their names if there is room.
      const auto fits = [&](const std::string& words, float lines) {
        return drawn_width(words, text) + 2 * pad < part.width && lines * line + pad < part.height;
      };
      const Color ink = readable_on(look.color);
      const Point corner(part.x + pad, part.y + pad * 0.4f + text / 2);
      const bool named = k == 0 && fits(areas[i].name, 1);
      if (named) out.drawing.text(corner, text, ink, areas[i].name);
      if (areas[i].layer && (k > 0 || named) && fits(look.title, k == 0 ? 2 : 1))
        out.drawing.text({corner.x, corner.y + (k == 0 ? line : 0)}, text, with_alpha(ink, 0.8f), look.title);
    }
  }
  return out;
}

void treemap(UiState& ui, const ModelMemory& memory, ImVec2 size) {
  if (size.x < 1 || size.y < 1) return;
  const std::vector<Area> areas = areas_of(ui, memory);
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("treemap", size);
  name_item("chart:memory-by-layer");
  const bool over = ImGui::IsItemHovered(), clicked = ImGui::IsItemClicked();
  const ImVec2 mouse(ImGui::GetMousePos().x - at.x, ImGui::GetMousePos().y - at.y);
  ImDrawList* list = ImGui::GetWindowDrawList();
  const TreemapPicture picture = treemap_picture(areas, size, ImGui::GetFontSize());
  paint(picture.drawing, *list, at, 1);
  std::vector<Copied> copied;
  for (size_t i = 0; i < picture.tiles.size(); ++i) {
    const Tile& tile = picture.tiles[i];
    const bool chosen = areas[i].layer && ui.selected_layer == areas[i].name;
    const bool under = over && mouse.x >= tile.x && mouse.x < tile.x + tile.width && mouse.y >= tile.y && mouse.y < tile.y + tile.height;
    if (chosen || under)
      list->AddRect({at.x + tile.x, at.y + tile.y}, {at.x + tile.x + tile.width, at.y + tile.y + tile.height}, theme().text, 0,
                    std::max(1.0f, em(chosen ? 0.16f : 0.09f)));
    if (!under) continue;
    if (clicked && areas[i].layer) ui.selected_layer = areas[i].name;
    std::string text = areas[i].name + "\t" + exact_bytes(static_cast<double>(areas[i].bytes.total()));
    for (const auto& [bytes, purpose] : areas[i].parts)
      if (bytes > 0) text += std::string("\n") + look_of(purpose).title + "\t" + mebibytes(bytes);
    copied = {{"Copy values", text}};
    if (!ImGui::BeginTooltip()) continue;
    ImGui::TextUnformatted(areas[i].name.c_str());
    for (const auto& [bytes, purpose] : areas[i].parts) {
      if (bytes <= 0) continue;
      color_mark(look_of(purpose).color);
      text_dim(std::string(look_of(purpose).title) + "  " + exact_bytes(bytes));
    }
    ImGui::EndTooltip();
  }
  ImGui::PushID("areas");
  copy_menu(copied, !copied.empty());
  ImGui::PopID();
}

}  // namespace

float mebibytes_width() {
  ImGui::PushFont(fonts().numbers, 0);
  const float width = ImGui::CalcTextSize("0.0000 MiB").x;
  ImGui::PopFont();
  return width;
}

void draw_memory_by_layer(UiState& ui, const ModelMemory& memory) {
  if (!memory.known) {
    const bool trains = ui.shown().uses("model.tt") && ui.shown().config_problem.empty();
    empty_state(Icon::chart, "Not known by layer",
                trains ? "Shapes and memory of the layers were not recorded for this run."
                       : "Only tensor trains are listed by layer, and this run has none.");
    return;
  }
  const ImVec2 space = ImGui::GetContentRegionAvail();
  if (space.x > em(34)) {
    layer_table(ui, memory, {std::max(em(19), std::floor(space.x * (space.x > em(72) ? 0.56f : 0.5f))), space.y});
    ImGui::SameLine();
    treemap(ui, memory, ImGui::GetContentRegionAvail());
  } else if (space.y > em(20)) {
    layer_table(ui, memory, {space.x, std::floor(space.y * 0.5f)});
    treemap(ui, memory, ImGui::GetContentRegionAvail());
  } else {
    layer_table(ui, memory, space);
  }
}

Chart memory_by_layer_chart(const UiState& ui, const ModelMemory& memory, const std::string& note) {
  constexpr Point kSize = {860, 420};
  Chart chart{
      "memory-by-layer", "Memory by layer", {}, on_page(treemap_picture(areas_of(ui, memory), kSize, 12).drawing, "Memory by layer", note)};
  chart.csv = [layers = memory.layers] {
    std::vector<std::vector<std::string>> rows{{"layer", "cores", "ranks", "gradients", "moments", "bytes", "bytes_if_dense"}};
    for (const LayerMemory& layer : layers) {
      rows.push_back({layer.name});
      for (const Purpose purpose : kOfLayers) rows.back().push_back(std::to_string(layer.bytes[purpose]));
      rows.back().push_back(std::to_string(layer.bytes.total()));
      rows.back().push_back(csv_number(layer.dense));
    }
    return csv_text(rows);
  };
  return chart;
}

}  // namespace comera::studio
