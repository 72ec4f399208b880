// Memory by purpose: now, at its peak, as planned before step 1, and over the steps.
#include <algorithm>
#include <cfloat>
#include <cmath>

#include "app/format.h"
#include "app/studio/panels.h"
#include "app/studio/parts/memory_plot.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/painting.h"
#include "app/studio/parts/widgets.h"
#include "app/studio/shown_run/layer_memory.h"

namespace comera::studio {
namespace {

float wide(const std::string& text, float height) {
  return fonts().text->CalcTextSizeA(height, FLT_MAX, 0, text.data(), text.data() + text.size()).x;
}

// A drawing on a page of its own, under a title.
Drawing on_page(Drawing drawing, const std::string& title, const std::string& note) {
  constexpr float kSide = 20, kTop = kBelowNote + 8;
  Drawing page = begin_drawing({drawing.size.x + 2 * kSide, drawing.size.y + kTop + kSide}, title, note);
  drawing.move({kSide, kTop});
  page.clips = std::move(drawing.clips);
  page.shapes.insert(page.shapes.end(), drawing.shapes.begin(), drawing.shapes.end());
  return page;
}

void table(const UiState& ui) {
  const Snapshot& s = ui.snapshot();
  const bool planned = s.memory_planned.total() > 0;
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(em(0.4f), em(0.05f)));
  const bool open = ImGui::BeginTable("purposes", planned ? 4 : 3, ImGuiTableFlags_SizingStretchProp);
  ImGui::PopStyleVar();
  if (!open) return;
  ImGui::TableSetupColumn("Purpose", ImGuiTableColumnFlags_WidthStretch, 1.5f);
  ImGui::TableSetupColumn("Now", ImGuiTableColumnFlags_WidthStretch, 1);
  ImGui::TableSetupColumn("Peak", ImGuiTableColumnFlags_WidthStretch, 1);
  if (planned) ImGui::TableSetupColumn("Planned", ImGuiTableColumnFlags_WidthStretch, 1);
  const auto number = [](double bytes, ImU32 color) {
    ImGui::PushID(ImGui::TableGetRowIndex() * 8 + ImGui::TableGetColumnIndex());
    ImGui::PushFont(fonts().numbers, 0);
    text_right(mebibytes(bytes), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, color);
    ImGui::PopFont();
    tooltip(exact_bytes(bytes).c_str());
    copy_menu({{"Copy value", mebibytes(bytes)}, {"Copy bytes", csv_number(bytes)}});
    ImGui::PopID();
  };
  ImGui::TableNextRow();
  for (int column = 0; column < ImGui::TableGetColumnCount(); ++column) {
    ImGui::TableSetColumnIndex(column);
    if (column == 0)
      text_dim(ImGui::TableGetColumnName(column));
    else
      text_right(ImGui::TableGetColumnName(column), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, theme().dim);
  }
  for (int i = 0; i < kPurposes; ++i) {
    const auto at = static_cast<size_t>(i);
    if (s.memory_now.bytes[at] == 0 && s.memory_peak.bytes[at] == 0 && s.memory_planned.bytes[at] == 0) continue;
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    const PurposeLook look = look_of(static_cast<Purpose>(i));
    color_mark(look.color);
    text_fit(look.title, ImGui::GetContentRegionAvail().x, theme().text);
    tooltip(look.help);
    ImGui::TableNextColumn();
    number(static_cast<double>(s.memory_now.bytes[at]), theme().text);
    ImGui::TableNextColumn();
    number(static_cast<double>(s.memory_peak.bytes[at]), theme().text);
    if (!planned) continue;
    ImGui::TableNextColumn();
    number(static_cast<double>(s.memory_planned.bytes[at]), theme().dim);
  }
  const MemoryAt at = memory_around(ui);
  const auto beside = [&](const std::string& title, const char* help, double bytes, ImU32 mark) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    color_mark(mark);
    text_fit(title, ImGui::GetContentRegionAvail().x, theme().dim);
    name_item("row:" + title);
    tooltip(help);
    ImGui::TableNextColumn();
    if (std::isfinite(bytes)) return number(bytes, theme().dim);
    text_fit("not recorded", ImGui::GetContentRegionAvail().x, theme().dim);
    tooltip("Not recorded for this run.");
  };
  if (!has_own_memory(s)) beside("Rest of the process", kRestHelp, at.rest, rest_of_process_color());
  beside(memory_level_title(s), "Measured about once a second: what every process holds of the memory that this run takes from.", at.used,
         theme().pressed);
  ImGui::EndTable();
}

// ---- within one step ---------------------------------------------------------------------------------------------------

const char* title_of_phase(const std::string& name) {
  return name == "forward" ? "Forward" : name == "backward" ? "Backward" : name == "update" ? "Update" : "Scores";
}

constexpr size_t kPhaseColors[] = {0, 1, 2, 7};  // those of the phases in the profile

// The temporaries of a step by phase, as planned, over what is held all the time; a sign where they are most.
struct StepPicture {
  Drawing drawing;
  std::vector<Box> phases;  // where each one stands
  std::string says;         // how much, and where most
};
// `unit`: a line of the page's text; `text`: the height of that in the drawing.
StepPicture step_picture(const Snapshot& s, Point size, float unit, float text) {
  const std::vector<StepMemory::Phase>& phases = s.step_memory->phases;
  const double held =
      static_cast<double>(s.memory_planned.total() - s.memory_planned[Purpose::activation] - s.memory_planned[Purpose::workspace]);
  StepPicture out;
  size_t parts = 0, peak_phase = 0, peak_part = 0;
  int64_t most = -1;
  for (size_t i = 0; i < phases.size(); ++i) {
    parts += std::max<size_t>(1, phases[i].bytes.size());
    for (size_t k = 0; k < phases[i].bytes.size(); ++k)
      if (phases[i].bytes[k] > most) {
        most = phases[i].bytes[k];
        peak_phase = i;
        peak_part = k;
      }
  }
  most = std::max<int64_t>(most, 0);
  out.says = std::string("most in ") + title_of_phase(phases[peak_phase].name) + ": " + mebibytes(static_cast<double>(most)) +
             " of temporaries over " + mebibytes(held) + " held";
  const float sign = unit * 0.5f, least = unit * 3.2f, gap = std::max(1.0f, unit * 0.12f);
  const float full = std::max(unit * 1.5f, size.y - sign - text * 1.3f), bottom = sign + full;
  const float spread = std::max(0.0f, size.x - least * static_cast<float>(phases.size()));
  const Theme& t = theme();
  float x = 0;
  for (size_t i = 0; i < phases.size(); ++i) {
    const std::vector<int64_t>& bytes = phases[i].bytes;
    const float width = least + spread * static_cast<float>(std::max<size_t>(1, bytes.size())) / static_cast<float>(parts);
    const Color color = t.series[kPhaseColors[std::min(i, std::size(kPhaseColors) - 1)]];
    out.drawing.rect({x, sign}, {x + width - gap, bottom}, t.raised, unit * 0.12f);
    const float each = (width - gap) / static_cast<float>(std::max<size_t>(1, bytes.size()));
    for (size_t k = 0; k < bytes.size(); ++k) {
      const float tall = most > 0 ? full * static_cast<float>(bytes[k]) / static_cast<float>(most) : 0;
      const float from = x + each * static_cast<float>(k);
      out.drawing.rect({from, bottom - tall}, {from + each, bottom}, with_alpha(color, 0.85f));
      if (i == peak_phase && k == peak_part) {
        const float middle = from + each / 2;
        out.drawing.polygon({{middle - sign / 2, 0}, {middle + sign / 2, 0}, {middle, sign * 0.8f}}, t.text);
      }
    }
    const char* title = title_of_phase(phases[i].name);
    if (wide(title, text) < width) out.drawing.text({x, bottom + text * 0.7f}, text, t.dim, title);
    out.phases.push_back({x, 0, x + width, bottom + text * 1.3f});
    x += width;
  }
  out.drawing.size = {size.x, bottom + text * 1.3f};
  return out;
}

bool knows_step(const Snapshot& s) { return s.step_memory && !s.step_memory->phases.empty(); }

void within_step(const Snapshot& s, ImVec2 size) {
  if (!knows_step(s)) return text_dim("The plan of a step is not known for this run.");
  const ImVec2 line = ImGui::GetCursorScreenPos();
  const float below = ImGui::GetTextLineHeight() + ImGui::GetStyle().ItemSpacing.y;
  const StepPicture picture = step_picture(s, {size.x, size.y - below}, em(1), ImGui::GetFontSize());
  text_fit(picture.says, std::max(1.0f, size.x - em(1.6f)), theme().dim);
  name_item("says:" + picture.says);
  ImGui::SameLine(0, em(0.35f));
  help_marker(
      "From the dry run before step 1, with the ranks of the start: what forward, backward, update and scores hold beside weights, "
      "gradients, moments and data. Along the bar are requests and drops in their order, not time.");
  const ImVec2 at(line.x, ImGui::GetCursorScreenPos().y);
  paint(picture.drawing, *ImGui::GetWindowDrawList(), at, 1);
  ImGui::Dummy(picture.drawing.size.x > 0 ? ImVec2(picture.drawing.size.x, picture.drawing.size.y) : ImVec2(1, 1));
  name_item("chart:memory-in-step");
  std::vector<Copied> copied;
  for (size_t i = 0; i < picture.phases.size(); ++i) {
    const Box& box = picture.phases[i];
    if (!ImGui::IsMouseHoveringRect({at.x + box.x0, at.y + box.y0}, {at.x + box.x1, at.y + box.y1}) || !ImGui::IsWindowHovered()) continue;
    const StepMemory::Phase& phase = s.step_memory->phases[i];
    const auto most = static_cast<double>(phase.bytes.empty() ? 0 : *std::max_element(phase.bytes.begin(), phase.bytes.end()));
    const std::string text = std::string(title_of_phase(phase.name)) + ": " + exact_bytes(most) + " of temporaries at most";
    ImGui::SetTooltip("%s", text.c_str());
    copied = {{"Copy value", text}};
  }
  ImGui::PushID("in-step");
  copy_menu(copied, !copied.empty());
  ImGui::PopID();
}

// ---- by layer --------------------------------------------------------------------------------------------------------

void right(const std::string& text, ImU32 color) {
  ImGui::PushFont(fonts().numbers, 0);
  text_right(text, ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, color);
  ImGui::PopFont();
}

constexpr Purpose kOfLayers[] = {Purpose::tt_core, Purpose::rank_vector, Purpose::gradient, Purpose::optimizer};

// The values alone, or with what training them takes.
MemoryByPurpose counted(const UiState& ui, const LayerMemory& layer) {
  MemoryByPurpose out = layer.bytes;
  if (ui.memory_counts == 0) out[Purpose::gradient] = out[Purpose::optimizer] = 0;
  return out;
}
double counted_dense(const UiState& ui, const LayerMemory& layer) { return ui.memory_counts == 0 ? layer.dense_values : layer.dense; }

// Purposes have columns of their own where there is room for them.
void layer_table(UiState& ui, const ModelMemory& memory, ImVec2 size) {
  const bool purposes = size.x > em(36);
  std::vector<const char*> titles{"Layer", "All", "If dense"};
  if (purposes) titles.insert(titles.begin() + 1, {"Cores", "Ranks", "Gradients", "Moments"});
  const auto columns = static_cast<int>(titles.size());
  ImGui::PushStyleVar(ImGuiStyleVar_CellPadding, ImVec2(em(0.4f), em(0.05f)));
  const bool open = ImGui::BeginTable("layers", columns, ImGuiTableFlags_SizingStretchProp | ImGuiTableFlags_ScrollY, size);
  ImGui::PopStyleVar();
  if (!open) return;
  for (int i = 0; i < columns; ++i)
    ImGui::TableSetupColumn(titles[static_cast<size_t>(i)], ImGuiTableColumnFlags_WidthStretch, i == 0 ? 1.7f : 1);
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
    all += static_cast<double>(counted(ui, layer).total());
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
      const auto all_of_it = static_cast<double>(counted(ui, layer).total());
      copy_menu({{"Copy value", mebibytes(all_of_it)},
                 {"Copy line", layer.name + "\t" + exact_bytes(all_of_it) + "\tif dense " + exact_bytes(counted_dense(ui, layer))}});
      ImGui::SetCursorPos(at);
      text_fit(layer.name, ImGui::GetContentRegionAvail().x, theme().text);
      for (const Purpose purpose : kOfLayers) {
        if (!purposes) break;
        ImGui::TableNextColumn();
        const int64_t bytes = counted(ui, layer)[purpose];
        right(bytes > 0 ? mebibytes(static_cast<double>(bytes)) : "-", theme().text);
      }
      ImGui::TableNextColumn();
      right(mebibytes(static_cast<double>(counted(ui, layer).total())), theme().text);
      ImGui::TableNextColumn();
      right(mebibytes(counted_dense(ui, layer)), theme().dim);
      ImGui::PopID();
    }
  if (ui.memory_counts == 2) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    text_fit("Everything else", ImGui::GetContentRegionAvail().x, theme().dim);
    tooltip("What is no tensor train, and what a step takes as a whole: activations, workspace, data.");
    ImGui::TableSetColumnIndex(columns - 2);
    right(mebibytes(static_cast<double>(memory.rest.total())), theme().dim);
  }
  ImGui::TableNextRow();
  ImGui::TableNextColumn();
  text_fit("All tensor trains", ImGui::GetContentRegionAvail().x, theme().text);
  ImGui::TableSetColumnIndex(columns - 2);
  right(mebibytes(all), theme().text);
  ImGui::TableNextColumn();
  right(mebibytes(dense), theme().dim);
  ImGui::EndTable();
}

// One area a layer, as large as what it takes, divided by purpose; the rest of the step beside them when it is asked for.
struct Area {
  std::string name;
  MemoryByPurpose bytes;
  bool layer = false;
  std::vector<std::pair<double, Purpose>> parts = {};  // the largest first
};
std::vector<Area> areas_of(const UiState& ui, const ModelMemory& memory) {
  std::vector<Area> areas;
  for (const LayerMemory& layer : memory.layers) areas.push_back({layer.name, counted(ui, layer), true});
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
  std::vector<Tile> tiles;  // of each area
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
      // The name of the layer over that of its largest part; parts are named where they have room.
      const auto fits = [&](const std::string& words, float lines) {
        return wide(words, text) + 2 * pad < part.width && lines * line + pad < part.height;
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

void by_layer(UiState& ui, const ModelMemory& memory) {
  if (!memory.known) {
    const bool trains = ui.config().tensorised() && ui.shown().config_problem.empty();
    empty_state(Icon::chart, "Not known by layer",
                trains ? "Shapes and memory of the layers were not recorded for this run."
                       : "Only tensor trains are told apart by layer; this run has none that are known.");
    return;
  }
  const ImVec2 space = ImGui::GetContentRegionAvail();
  if (space.x > em(34)) {
    layer_table(ui, memory, {std::floor(space.x * (space.x > em(72) ? 0.56f : 0.5f)), space.y});
    ImGui::SameLine();
    treemap(ui, memory, ImGui::GetContentRegionAvail());
  } else if (space.y > em(20)) {
    layer_table(ui, memory, {space.x, std::floor(space.y * 0.5f)});
    treemap(ui, memory, ImGui::GetContentRegionAvail());
  } else {
    layer_table(ui, memory, space);
  }
}

// At the right end of the title; where there is little room, as a list.
void view_choice(UiState& ui) {
  static constexpr const char* kViews[] = {"By purpose", "By layer", "Over the steps", "In one step"};
  constexpr int kCount = static_cast<int>(std::size(kViews));
  push_small();
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.5f), em(0.12f)));
  float width = em(1.2f) * static_cast<float>(kCount);
  for (const char* view : kViews) width += ImGui::CalcTextSize(view).x;
  ImGui::SameLine();
  const float room = ImGui::GetContentRegionAvail().x, list = std::min(em(8), room);
  const bool fits = width <= room;
  ImGui::SetCursorPosX(ImGui::GetCursorPosX() + std::max(0.0f, room - (fits ? width : list)));
  if (fits) {
    segmented("memory-view", kViews, kCount, ui.memory_view);
  } else {
    ImGui::SetNextItemWidth(list);
    ImGui::Combo("##memory-view", &ui.memory_view, kViews, kCount);
  }
  ImGui::PopStyleVar();
  ImGui::PopFont();
}

void what_is_counted(UiState& ui) {
  static constexpr const char* kCounts[] = {"Values", "Training", "Whole step"};
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.4f), em(0.05f)));
  segmented("memory-counts", kCounts, 3, ui.memory_counts);
  ImGui::PopStyleVar();
  ImGui::SameLine(0, em(0.8f));
  static constexpr const char* kSaid[] = {"Cores and rank vectors: what is saved and shipped.", "Values, gradients and moments.",
                                          "With what a step takes as a whole, which is not known by layer."};
  text_fit(kSaid[ui.memory_counts], std::max(1.0f, ImGui::GetContentRegionAvail().x - em(1.6f)), theme().dim);
  ImGui::SameLine(0, em(0.35f));
  help_marker(
      "Of what is in memory now. Gradients and moments are shared out by the values they belong to. If dense: one matrix in its place, "
      "with gradient and moments under the same optimizer.");
}

// peak - now - dense equivalent, and where the numbers are from.
void top_strip(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  const double now = static_cast<double>(s.memory_now.total()), peak = static_cast<double>(s.memory_peak.total());
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - export_button_width() - em(0.4f);
  const auto number = [&](const char* caption, const std::string& value, const std::string& behind) {
    push_numbers(1.1f);
    const float wide = ImGui::CalcTextSize(value.c_str()).x;
    ImGui::PopFont();
    push_small();
    const float width = wide + ImGui::CalcTextSize(caption).x + ImGui::CalcTextSize(behind.c_str()).x + em(2);
    ImGui::PopFont();
    if (ImGui::GetCursorPosX() + width > right) return;
    const float base = ImGui::GetCursorPosY();
    small_beside(caption, theme().dim);
    ImGui::SameLine(0, em(0.4f));
    ImGui::SetCursorPosY(base);
    push_numbers(1.1f);
    ImGui::TextUnformatted(value.c_str());
    ImGui::PopFont();
    if (!behind.empty()) {
      ImGui::SameLine(0, em(0.4f));
      small_beside(behind, theme().dim);
    }
    ImGui::SameLine(0, em(1.1f));
    ImGui::SetCursorPosY(base);
  };
  ImGui::BeginGroup();
  number("peak", mebibytes(peak), "");
  number("now", mebibytes(now), "");
  const ModelMemory memory = memory_by_layer(s);
  if (memory.known && now > 0) {
    char times[32];
    std::snprintf(times, sizeof times, "(%.1fx)", memory.dense / now);
    number("dense equivalent", mebibytes(memory.dense), times);
  }
  if (s.memory_planned.total() > 0) number("planned", mebibytes(static_cast<double>(s.memory_planned.total())), "");
  ImGui::NewLine();
  ImGui::EndGroup();
  name_item("memory-strip");
  tooltip(
      "Now and peak: counted by the allocator of training, each byte. Dense equivalent: what is held now, with rows x columns values in "
      "the "
      "place of each tensor train, with their gradient and the moments of the same optimizer; everything else as it is. In brackets: how "
      "many times what is held now.");
  copy_menu({{"Copy values",
              "peak\t" + exact_bytes(peak) + "\nnow\t" + exact_bytes(now) +
                  (memory.known ? "\ndense equivalent\t" + exact_bytes(memory.dense) : "") +
                  (s.memory_planned.total() > 0 ? "\nplanned\t" + exact_bytes(static_cast<double>(s.memory_planned.total())) : "")}});
  ImGui::SameLine();
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right));
  export_button(ui, "memory");
}

// The bar and the table under it.
Chart purposes_chart(const UiState& ui, const std::string& note) {
  const Snapshot& s = ui.snapshot();
  constexpr float kBar = 14;
  const bool planned = s.memory_planned.total() > 0;
  std::vector<std::vector<std::string>> shown{{"purpose", "now", "peak"}}, rows{{"purpose", "now_bytes", "peak_bytes"}};
  TableLook look{.marks = {0}, .above = kBar + 10};
  if (planned) {
    shown[0].push_back("planned");
    rows[0].push_back("planned_bytes");
  }
  const auto add = [&](const std::string& title, Color mark, std::vector<double> bytes) {
    shown.push_back({title});
    rows.push_back({title});
    look.marks.push_back(mark);
    bytes.resize(planned ? 3 : 2, NAN);
    for (const double value : bytes) {
      shown.back().push_back(std::isfinite(value) ? mebibytes(value) : "");
      rows.back().push_back(std::isfinite(value) ? std::to_string(std::llround(value)) : "");
    }
  };
  for (size_t i = 0; i < static_cast<size_t>(kPurposes); ++i) {
    if (s.memory_now.bytes[i] == 0 && s.memory_peak.bytes[i] == 0 && s.memory_planned.bytes[i] == 0) continue;
    const PurposeLook of = look_of(static_cast<Purpose>(i));
    std::vector<double> bytes{static_cast<double>(s.memory_now.bytes[i]), static_cast<double>(s.memory_peak.bytes[i])};
    if (planned) bytes.push_back(static_cast<double>(s.memory_planned.bytes[i]));
    add(of.title, of.color, std::move(bytes));
  }
  const MemoryAt at = memory_around(ui);
  if (std::isfinite(at.rest)) add("Rest of the process", rest_of_process_color(), {at.rest});
  if (std::isfinite(at.used)) add(memory_level_title(s), theme().pressed, {at.used});
  Chart chart = table_chart("memory-now", "Memory now", note, std::move(shown), look);
  chart.csv = [rows = std::move(rows)] { return csv_text(rows); };
  const float full = chart.drawing.size.x - 40;
  const double most = static_cast<double>(std::max(s.memory_now.total(), s.memory_peak.total()));
  chart.drawing.rect({20, kBelowNote}, {20 + full, kBelowNote + kBar}, theme().raised, 3);
  float x = 20;
  for (size_t i = 0; i < static_cast<size_t>(kPurposes); ++i) {
    const float part = full * static_cast<float>(static_cast<double>(s.memory_now.bytes[i]) / most);
    if (part > 0) chart.drawing.rect({x, kBelowNote}, {x + part, kBelowNote + kBar}, look_of(static_cast<Purpose>(i)).color, 1);
    x += part;
  }
  return chart;
}

}  // namespace

void draw_memory(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = ui.snapshot();
  if (begin_card("memory-card")) {
    if (s.memory_now.total() == 0 && s.memory_peak.total() == 0) {
      empty_state(
          Icon::chart, "No memory yet",
          ui.has_run() && !view.live ? "Memory was not recorded for this run." : "Every byte the training takes appears here by purpose.");
      end_card();
      return;
    }
    const double now = static_cast<double>(s.memory_now.total()), peak = static_cast<double>(s.memory_peak.total());
    card_title("Memory", "Every byte that training holds, counted by its own allocator. Planned: known from a dry run before step 1.");
    ImGui::SameLine(0, em(0.6f));
    push_small();
    const bool measured = now > 0;
    chip(measured ? "measured" : "computed", measured ? theme().good : theme().dim, measured ? Icon::check : Icon::dot);
    tooltip(measured ? "Counted while it trained; the dense equivalent is computed." : "Out of the plan: nothing was counted yet.");
    ImGui::PopFont();
    view_choice(ui);
    top_strip(ui);
    purpose_bar(s.memory_now, std::max(now, peak), em(0.8f));
    if (now > 0) name_item("chart:memory-now");
    push_small();
    if (ui.memory_view == 1) {
      what_is_counted(ui);
      by_layer(ui, memory_by_layer(s));
      ImGui::PopFont();
      end_card();
      return;
    }
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const bool beside = space.x > em(52), under = !beside && space.y > em(22);
    if (ui.memory_view == 3) {
      within_step(s, space);
    } else if (ui.memory_view == 2) {
      draw_memory_plot(ui);
    } else if (beside) {
      ImGui::BeginChild("numbers", {space.x * 0.52f, 0});
      table(ui);
      if (const float left = ImGui::GetContentRegionAvail().y; left > em(7))
        within_step(s, {ImGui::GetContentRegionAvail().x, std::min(left, em(12))});
      ImGui::EndChild();
      ImGui::SameLine();
      draw_memory_plot(ui);
    } else {
      table(ui);
      if (under) {
        if (space.y > em(30)) within_step(s, {space.x, em(8)});
        draw_memory_plot(ui);
      }
    }
    ImGui::PopFont();
  }
  end_card();
}

std::vector<Chart> memory_charts(UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = ui.snapshot();
  const std::string note = s.name + ", step " + thousands(static_cast<double>(s.step));
  std::vector<Chart> out;
  if (!view.memory[0].empty()) out.push_back(chart_of("memory", memory_figure(ui, note)));
  if (knows_step(s)) {
    constexpr Point kSize = {860, 260};
    const StepPicture picture = step_picture(s, kSize, 13, 12);
    out.push_back(
        {"memory-in-step", "Memory in one step", {}, on_page(picture.drawing, "Temporaries in one step", note + ": " + picture.says)});
    out.back().csv = [memory = s.step_memory] {
      std::vector<std::vector<std::string>> rows{{"phase", "request", "bytes"}};
      for (const StepMemory::Phase& phase : memory->phases)
        for (size_t i = 0; i < phase.bytes.size(); ++i) rows.push_back({phase.name, std::to_string(i + 1), std::to_string(phase.bytes[i])});
      return csv_text(rows);
    };
  }
  if (const ModelMemory memory = memory_by_layer(s); memory.known) {
    constexpr Point kSize = {860, 420};
    out.push_back({"memory-by-layer",
                   "Memory by layer",
                   {},
                   on_page(treemap_picture(areas_of(ui, memory), kSize, 12).drawing, "Memory by layer", note)});
    out.back().csv = [layers = memory.layers] {
      std::vector<std::vector<std::string>> rows{{"layer", "cores", "ranks", "gradients", "moments", "bytes", "bytes_if_dense"}};
      for (const LayerMemory& layer : layers) {
        rows.push_back({layer.name});
        for (const Purpose purpose : kOfLayers) rows.back().push_back(std::to_string(layer.bytes[purpose]));
        rows.back().push_back(std::to_string(layer.bytes.total()));
        rows.back().push_back(csv_number(layer.dense));
      }
      return csv_text(rows);
    };
  }
  if (s.memory_now.total() > 0) out.push_back(purposes_chart(ui, note));
  return out;
}

}  // namespace comera::studio
