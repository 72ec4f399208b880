// Memory by purpose: now, at its peak, as planned before step 1, and over the steps.
#include <implot.h>

#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/layer_memory.h"
#include "app/studio/named_items.h"
#include "app/studio/panels.h"
#include "app/studio/plots.h"
#include "app/studio/widgets.h"

namespace comera::studio {
namespace {

// Resident memory of this process that is not training's: known of a run that trains here on the processor.
int64_t rest_of_process(const UiState& ui) {
  const Snapshot& s = ui.snapshot();
  const RunView& view = ui.shown();
  if (ui.replaying() || !view.live || view.ended() || !s.device.starts_with("CPU")) return 0;
  return std::max<int64_t>(0, ui.process_bytes - s.memory_now.total());
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
    ImGui::PushFont(fonts().numbers, 0);
    text_right(mebibytes(bytes), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x, color);
    ImGui::PopFont();
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
  if (const int64_t rest = rest_of_process(ui); rest > 0) {
    ImGui::TableNextRow();
    ImGui::TableNextColumn();
    color_mark(theme().dim);
    text_fit("Rest of the process", ImGui::GetContentRegionAvail().x, theme().dim);
    name_item("rest-of-process");
    tooltip("Measured: resident memory of this program less what training holds. Code, libraries, the window, the data set.");
    ImGui::TableNextColumn();
    number(static_cast<double>(rest), theme().dim);
  }
  ImGui::EndTable();
}

// Stacked areas over the steps. Memory changes seldom, so the points are few.
void history(UiState& ui, const RunView& view) {
  if (!ImPlot::BeginPlot(
          "##history", ImGui::GetContentRegionAvail(),
          ImPlotFlags_NoTitle | ImPlotFlags_NoMouseText | ImPlotFlags_NoMenus | ImPlotFlags_NoLegend | ImPlotFlags_NoBoxSelect))
    return;
  const std::vector<double> x = view.memory[0].x().all();
  const double end = std::max(static_cast<double>(view.snapshot->step), x.empty() ? 1.0 : x.back());
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisLimits(ImAxis_X1, ui.plots.x_low, ui.plots.x_high, ImPlotCond_Always);
  ImPlot::SetupAxisFormat(ImAxis_Y1, "%g MiB");
  const double top = static_cast<double>(std::max(view.snapshot->memory_peak.total(), view.snapshot->memory_now.total())) / (1 << 20);
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, std::max(0.01, top * 1.08), ImPlotCond_Always);
  ImPlot::SetupFinish();
  // As stairs: each value holds until the next point.
  std::vector<double> steps, low, high;
  for (size_t i = 0; i < x.size(); ++i) {
    steps.push_back(x[i]);
    steps.push_back(i + 1 < x.size() ? x[i + 1] : end);
  }
  low.assign(steps.size(), 0);
  for (int purpose = 0; purpose < kPurposes; ++purpose) {
    const std::vector<double>& bytes = view.memory[static_cast<size_t>(purpose)].y();
    high = low;
    for (size_t i = 0; i < bytes.size() && 2 * i + 1 < high.size(); ++i) {
      high[2 * i] += bytes[i] / (1 << 20);
      high[2 * i + 1] += bytes[i] / (1 << 20);
    }
    ImPlotSpec spec;
    const PurposeLook look = look_of(static_cast<Purpose>(purpose));
    spec.FillColor = vec(look.color);
    spec.FillAlpha = 0.85f;
    ImPlot::PlotShaded(look.title, steps.data(), low.data(), high.data(), static_cast<int>(steps.size()), spec);
    low = high;
  }
  ImPlot::PushPlotClipRect();
  draw_timeline_marks(ui.plots);
  ImPlot::PopPlotClipRect();
  ImPlot::EndPlot();
}

// ---- within one step ---------------------------------------------------------------------------------------------------

const char* title_of_phase(const std::string& name) {
  return name == "forward" ? "Forward" : name == "backward" ? "Backward" : name == "update" ? "Update" : "Scores";
}

// The temporaries of a step by phase, as planned, over what is held all the time; a sign where they are most.
void within_step(const Snapshot& s, ImVec2 size) {
  if (!s.step_memory || s.step_memory->phases.empty()) return text_dim("The plan of a step is not known for this run.");
  const std::vector<StepMemory::Phase>& phases = s.step_memory->phases;
  const double held =
      static_cast<double>(s.memory_planned.total() - s.memory_planned[Purpose::activation] - s.memory_planned[Purpose::workspace]);
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
  const std::string peak = std::string("most in ") + title_of_phase(phases[peak_phase].name) + ": " + mebibytes(static_cast<double>(most)) +
                           " of temporaries over " + mebibytes(held) + " held";
  text_fit(peak, std::max(1.0f, size.x - em(1.6f)), theme().dim);
  name_item("says:" + peak);
  ImGui::SameLine(0, em(0.35f));
  help_marker(
      "From the dry run before step 1, with the ranks of the start: what forward, backward, update and scores hold beside weights, "
      "gradients, moments and data. Along the bar are requests and drops in their order, not time.");
  const ImVec2 at = ImGui::GetCursorScreenPos();
  const float line = ImGui::GetTextLineHeight(), sign = em(0.5f),
              full = std::max(em(1.5f), size.y - 2 * line - ImGui::GetStyle().ItemSpacing.y - sign);
  const float least = em(3.2f), gap = std::max(1.0f, em(0.12f));
  ImDrawList* list = ImGui::GetWindowDrawList();
  const Theme& t = theme();
  const float spread = std::max(0.0f, size.x - least * static_cast<float>(phases.size()));
  const float bottom = at.y + sign + full;
  constexpr size_t kColors[] = {0, 1, 2, 7};  // those of the phases in the profile
  float x = at.x;
  for (size_t i = 0; i < phases.size(); ++i) {
    const std::vector<int64_t>& bytes = phases[i].bytes;
    const float width = least + spread * static_cast<float>(std::max<size_t>(1, bytes.size())) / static_cast<float>(parts);
    const ImU32 color = t.series[kColors[std::min(i, std::size(kColors) - 1)]];
    list->AddRectFilled({x, at.y + sign}, {x + width - gap, bottom}, t.raised, em(0.12f));
    const float each = (width - gap) / static_cast<float>(std::max<size_t>(1, bytes.size()));
    for (size_t k = 0; k < bytes.size(); ++k) {
      const float tall = most > 0 ? full * static_cast<float>(bytes[k]) / static_cast<float>(most) : 0;
      const float from = x + each * static_cast<float>(k);
      list->AddRectFilled({from, bottom - tall}, {from + each, bottom}, with_alpha(color, 0.85f));
      if (i == peak_phase && k == peak_part) {
        const float middle = from + each / 2;
        list->AddTriangleFilled({middle - sign / 2, at.y}, {middle + sign / 2, at.y}, {middle, at.y + sign * 0.8f}, t.text);
      }
    }
    const char* title = title_of_phase(phases[i].name);
    if (ImGui::CalcTextSize(title).x < width) list->AddText({x, bottom + em(0.1f)}, t.dim, title);
    const int64_t phase_most = bytes.empty() ? 0 : *std::max_element(bytes.begin(), bytes.end());
    if (ImGui::IsMouseHoveringRect({x, at.y}, {x + width, bottom + line}) && ImGui::IsWindowHovered())
      ImGui::SetTooltip("%s: %s of temporaries at most", title, mebibytes(static_cast<double>(phase_most)).c_str());
    x += width;
  }
  ImGui::Dummy({size.x, bottom + line - at.y});
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
void treemap(UiState& ui, const ModelMemory& memory, ImVec2 size) {
  struct Area {
    std::string name;
    MemoryByPurpose bytes;
    bool layer = false;
  };
  std::vector<Area> areas;
  for (const LayerMemory& layer : memory.layers) areas.push_back({layer.name, counted(ui, layer), true});
  if (ui.memory_counts == 2)
    for (int i = 0; i < kPurposes; ++i) {
      MemoryByPurpose one;
      one.bytes[static_cast<size_t>(i)] = memory.rest.bytes[static_cast<size_t>(i)];
      if (one.total() > 0) areas.push_back({std::string("rest: ") + look_of(static_cast<Purpose>(i)).title, one, false});
    }
  std::stable_sort(areas.begin(), areas.end(), [](const Area& a, const Area& b) { return a.bytes.total() > b.bytes.total(); });
  std::vector<double> sizes;
  for (const Area& area : areas) sizes.push_back(static_cast<double>(area.bytes.total()));
  if (size.x < 1 || size.y < 1) return;
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImGui::InvisibleButton("treemap", size);
  const bool over = ImGui::IsItemHovered(), clicked = ImGui::IsItemClicked();
  const ImVec2 mouse = ImGui::GetMousePos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  const std::vector<Tile> tiles = squarify(sizes, {at.x, at.y, size.x, size.y});
  const float gap = std::max(1.0f, em(0.07f));
  for (size_t i = 0; i < tiles.size(); ++i) {
    const Tile& tile = tiles[i];
    if (tile.width < gap || tile.height < gap) continue;
    std::vector<std::pair<double, Purpose>> parts;
    for (int purpose = 0; purpose < kPurposes; ++purpose)
      parts.emplace_back(static_cast<double>(areas[i].bytes.bytes[static_cast<size_t>(purpose)]), static_cast<Purpose>(purpose));
    std::sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<double> part_sizes;
    for (const auto& [bytes, purpose] : parts) part_sizes.push_back(bytes);
    const std::vector<Tile> inner = squarify(part_sizes, {tile.x, tile.y, tile.width - gap, tile.height - gap});
    for (size_t k = 0; k < inner.size(); ++k)
      if (inner[k].width > 0)
        list->AddRectFilled({inner[k].x, inner[k].y}, {inner[k].x + inner[k].width, inner[k].y + inner[k].height},
                            with_alpha(look_of(parts[k].second).color, 0.85f));
    const bool chosen = areas[i].layer && ui.selected_layer == areas[i].name;
    const bool under = over && mouse.x >= tile.x && mouse.x < tile.x + tile.width && mouse.y >= tile.y && mouse.y < tile.y + tile.height;
    if (chosen || under)
      list->AddRect({tile.x, tile.y}, {tile.x + tile.width - gap, tile.y + tile.height - gap}, theme().text, 0,
                    std::max(1.0f, em(chosen ? 0.16f : 0.09f)));
    // The name of the layer over that of its largest part; parts are named where they have room.
    const float line = ImGui::GetFontSize() * 1.15f;
    for (size_t k = 0; k < inner.size(); ++k) {
      const auto fits = [&](const char* text, float lines) {
        return ImGui::CalcTextSize(text).x + em(0.5f) < inner[k].width && lines * line + em(0.2f) < inner[k].height;
      };
      const ImU32 ink = readable_on(look_of(parts[k].second).color);
      const ImVec2 corner(inner[k].x + em(0.25f), inner[k].y + em(0.1f));
      const char* part = look_of(parts[k].second).title;
      const bool named = k == 0 && fits(areas[i].name.c_str(), 1);
      if (named) list->AddText(corner, ink, areas[i].name.c_str());
      if (areas[i].layer && (k > 0 || named) && fits(part, k == 0 ? 2 : 1))
        list->AddText({corner.x, corner.y + (k == 0 ? line : 0)}, with_alpha(ink, 0.8f), part);
    }
    if (under && clicked && areas[i].layer) ui.selected_layer = areas[i].name;
    if (!under || !ImGui::BeginTooltip()) continue;
    ImGui::TextUnformatted(areas[i].name.c_str());
    for (const auto& [bytes, purpose] : parts) {
      if (bytes <= 0) continue;
      color_mark(look_of(purpose).color);
      text_dim(std::string(look_of(purpose).title) + "  " + mebibytes(bytes));
    }
    ImGui::EndTooltip();
  }
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
  ImGui::SameLine();
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right));
  export_button(ui, "memory");
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
      history(ui, view);
    } else if (beside) {
      ImGui::BeginChild("numbers", {space.x * 0.52f, 0});
      table(ui);
      if (const float left = ImGui::GetContentRegionAvail().y; left > em(7))
        within_step(s, {ImGui::GetContentRegionAvail().x, std::min(left, em(12))});
      ImGui::EndChild();
      ImGui::SameLine();
      history(ui, view);
    } else {
      table(ui);
      if (under) {
        if (space.y > em(30)) within_step(s, {space.x, em(8)});
        history(ui, view);
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
  if (!view.memory[0].empty()) {
    Figure past{.title = "Memory by purpose", .note = note, .unit = "MiB", .from_zero = true};
    std::vector<double> low(view.memory[0].size(), 0);
    for (int purpose = 0; purpose < kPurposes; ++purpose) {
      const Curve& bytes = view.memory[static_cast<size_t>(purpose)];
      FigureLine area{.label = look_of(static_cast<Purpose>(purpose)).title,
                      .color = look_of(static_cast<Purpose>(purpose)).color,
                      .x = bytes.x().all(),
                      .y = low,
                      .base = low,
                      .stairs = true};
      for (size_t i = 0; i < area.y.size() && i < bytes.size(); ++i) area.y[i] += bytes.y()[i] / (1 << 20);
      low = area.y;
      // The last value holds to the newest step.
      area.x.push_back(std::max(area.x.back(), static_cast<double>(view.snapshot->step)));
      area.y.push_back(area.y.back());
      area.base.push_back(area.base.back());
      past.lines.push_back(std::move(area));
    }
    out.push_back(chart_of("memory", std::move(past)));
  }
  if (const ModelMemory memory = memory_by_layer(s); memory.known) {
    Figure layers{.title = "Memory by layer", .note = note, .unit = "MiB", .x_title = "layer"};
    for (const LayerMemory& layer : memory.layers)
      layers.bars.push_back({layer.name, 0, 0, static_cast<double>(layer.bytes.total()) / (1 << 20), theme().series[0]});
    out.push_back(chart_of("memory-by-layer", std::move(layers)));
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
  if (s.memory_now.total() > 0) {
    Figure now{.title = "Memory now", .note = note, .unit = "MiB", .x_title = "purpose"};
    for (int purpose = 0; purpose < kPurposes; ++purpose)
      now.bars.push_back({look_of(static_cast<Purpose>(purpose)).title, 0, 0,
                          static_cast<double>(s.memory_now.bytes[static_cast<size_t>(purpose)]) / (1 << 20),
                          look_of(static_cast<Purpose>(purpose)).color});
    out.push_back(chart_of("memory-now", std::move(now)));
  }
  return out;
}

}  // namespace comera::studio
