// The rank map: layers by bonds, each cell with its live rank, coloured by the remaining fraction; the same over time next to the size; and
// all rank drops, newest first.
#include <implot.h>

#include <algorithm>
#include <cmath>

#include "app/figure/rank_map.h"
#include "app/figure/tt_layout.h"
#include "app/format.h"
#include "app/studio/panels.h"
#include "app/studio/panels/matrix_ranks.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/looks.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/plot_axes.h"
#include "app/studio/parts/plot_layers.h"
#include "app/studio/parts/plots.h"
#include "app/studio/parts/texts.h"
#include "app/studio/shown_run/rank_history.h"
#include "app/studio/shown_run/timeline.h"

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

// ---- over time --------------------------------------------------------------------------------------------------------

constexpr size_t kModules = 8;  // the number of series colours

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

// Live ranks over steps: a row per bond, grouped by layer, coloured by the fraction of the initial rank. Scrolls if there are many.
void heatmap(UiState& ui, const std::vector<size_t>& order, ImVec2 size) {
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

// ---- rank drops -------------------------------------------------------------------------------------------------------

// All rank drops up to the shown step, newest first. A click moves the cursor to the step.
void drops_feed(UiState& ui, ImVec2 size) {
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

// Size over time, stacked by module.
void size_areas(UiState& ui, ImVec2 size) {
  const RunView& view = ui.shown();
  const Snapshot& s = *view.snapshot;
  const double bytes = s.size.bytes_an_entry(), newest = static_cast<double>(s.step);
  const double low = std::max(0.0, ui.plots.x_low), high = std::max(low + 1, std::min(ui.plots.x_high, newest));
  const std::vector<double> steps = rank_steps(view, low, high, std::max<size_t>(16, static_cast<size_t>(size.x)));
  const std::vector<ModuleSize> modules = module_sizes(view, s.ranks, steps, kModules);
  // Legend of the modules, as many as fit.
  const ImVec2 line = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  float x = line.x;
  for (size_t i = 0; i < modules.size(); ++i) {
    const float width = ImGui::CalcTextSize(modules[i].name.c_str()).x;
    if (x + em(0.9f) + width > line.x + size.x) break;
    list->AddCircleFilled({x + em(0.3f), line.y + ImGui::GetTextLineHeight() / 2}, em(0.28f), theme().series[i]);
    list->AddText({x + em(0.8f), line.y}, theme().dim, modules[i].name.c_str());
    x += width + em(1.7f);
  }
  ImGui::Dummy({size.x, ImGui::GetTextLineHeight()});
  const ImVec2 box(size.x, std::max(em(3), size.y - ImGui::GetTextLineHeight() - ImGui::GetStyle().ItemSpacing.y));
  if (!ImPlot::BeginPlot("##sizes", box, kPlotFlags | ImPlotFlags_NoBoxSelect)) return;
  ImPlot::SetupAxes(nullptr, nullptr, ImPlotAxisFlags_NoHighlight, ImPlotAxisFlags_NoHighlight);
  ImPlot::SetupAxisLimits(ImAxis_X1, ui.plots.x_low, ui.plots.x_high, ImPlotCond_Always);
  static char unit[] = " MiB";
  ImPlot::SetupAxisFormat(ImAxis_X1, axis_label);
  ImPlot::SetupAxisFormat(ImAxis_Y1, axis_label, unit);
  // Step functions: each value holds until the next point.
  const size_t points = steps.size();
  std::vector<double> at, under, over;
  for (size_t i = 0; i < points; ++i) {
    at.push_back(steps[i]);
    at.push_back(i + 1 < points ? steps[i + 1] : steps[i]);
  }
  under.assign(at.size(), 0);
  std::vector<std::vector<double>> edges;
  for (const ModuleSize& module : modules) {
    over = under;
    for (size_t i = 0; i < points; ++i) {
      over[2 * i] += module.entries[i] * bytes / (1 << 20);
      over[2 * i + 1] += module.entries[i] * bytes / (1 << 20);
    }
    edges.push_back(over);
    under = over;
  }
  const double top = under.empty() ? 0 : *std::max_element(under.begin(), under.end());
  ImPlot::SetupAxisLimits(ImAxis_Y1, 0, std::max(1e-6, top * 1.08), ImPlotCond_Always);
  setup_y_ticks(0, std::max(1e-6, top * 1.08), box.y);
  ImPlot::SetupFinish();
  under.assign(at.size(), 0);
  for (size_t i = 0; i < edges.size(); ++i) {
    ImPlotSpec spec;
    spec.FillColor = vec(theme().series[i]);
    spec.FillAlpha = 0.85f;
    ImPlot::PlotShaded(modules[i].name.c_str(), at.data(), under.data(), edges[i].data(), static_cast<int>(at.size()), spec);
    under = edges[i];
  }
  ImPlot::PushPlotClipRect();
  draw_timeline_marks(ui.plots);
  ImPlot::PopPlotClipRect();
  std::vector<Copied> copied;
  if (ImPlot::IsPlotHovered()) {
    ui.plots.hovered = std::round(ImPlot::GetPlotMousePos().x);
    const auto after = std::upper_bound(steps.begin(), steps.end(), ui.plots.hovered);
    const auto i = static_cast<size_t>(std::max<std::ptrdiff_t>(1, after - steps.begin())) - 1;
    const bool known = after != steps.begin() && ui.plots.hovered <= newest;
    std::string text = "step " + thousands(ui.plots.hovered);
    for (const ModuleSize& module : modules)
      if (known) text += "\n" + module.name + "\t" + mebibytes(module.entries[i] * bytes);
    if (known) copied = {{"Copy values", text}};
    if (known && ImGui::BeginTooltip()) {
      text_dim("step " + thousands(ui.plots.hovered));
      for (size_t m = modules.size(); m-- > 0;) {
        color_mark(theme().series[m]);
        text_dim(modules[m].name + "  " + mebibytes(modules[m].entries[i] * bytes));
      }
      ImGui::EndTooltip();
    }
  }
  ImPlot::EndPlot();
  name_item("chart:size-by-module");
  ImGui::PushID("sizes");
  copy_menu(copied, !copied.empty());
  ImGui::PopID();
}

// Heatmap and areas side by side, or one above the other, or the heatmap alone, depending on the room.
void over_steps(UiState& ui, const std::vector<size_t>& order) {
  const ImVec2 space = ImGui::GetContentRegionAvail();
  const float gap = ImGui::GetStyle().ItemSpacing.y;
  if (space.x > em(62) && !ui.shown().drops.empty()) {  // also room for the list of drops
    const float feed = em(17), rest = space.x - feed - em(1.6f), left = std::floor(rest * 0.52f);
    ImGui::BeginGroup();
    heatmap(ui, order, {left, space.y});
    ImGui::EndGroup();
    ImGui::SameLine(0, em(0.8f));
    ImGui::BeginGroup();
    size_areas(ui, {rest - left, space.y});
    ImGui::EndGroup();
    ImGui::SameLine(0, em(0.8f));
    drops_feed(ui, {feed, space.y});
  } else if (space.x > em(40)) {
    const float left = std::floor(space.x * 0.55f);
    ImGui::BeginGroup();
    heatmap(ui, order, {left, space.y});
    ImGui::EndGroup();
    ImGui::SameLine(0, em(0.8f));
    ImGui::BeginGroup();
    size_areas(ui, {space.x - left - em(0.8f), space.y});
    ImGui::EndGroup();
  } else if (space.y > em(16)) {
    const float upper = std::floor(space.y * 0.55f);
    heatmap(ui, order, {space.x, upper});
    size_areas(ui, {space.x, space.y - upper - gap});
  } else {
    heatmap(ui, order, space);
  }
}

// The areas as a figure over the whole run.
constexpr const char* kSizes = "Size by module";

Figure sizes_figure(const RunView& view, const std::string& note) {
  constexpr size_t kPoints = 2000;
  const Snapshot& s = *view.snapshot;
  Figure figure{.title = kSizes, .note = note, .unit = "MiB", .from_zero = true};
  const double bytes = s.size.bytes_an_entry();
  const std::vector<double> steps = rank_steps(view, 0, static_cast<double>(s.step), kPoints);
  const std::vector<ModuleSize> modules = module_sizes(view, s.ranks, steps, kModules);
  std::vector<double> under(steps.size(), 0);
  for (size_t m = 0; m < modules.size(); ++m) {
    FigureLine area{.label = modules[m].name, .color = theme().series[m], .x = steps, .y = under, .base = under, .stairs = true};
    for (size_t i = 0; i < steps.size(); ++i) area.y[i] += modules[m].entries[i] * bytes / (1 << 20);
    under = area.y;
    figure.lines.push_back(std::move(area));
  }
  return figure;
}

// The heatmap over the visible steps as a chart; its CSV has the rank changes.
Chart history_chart(const UiState& ui, const std::vector<LayerRanks>& layers, const std::string& note) {
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

// The ranks of now, with their history below where there is room. `names`: width of the longest name.
void map_of_now(UiState& ui, const std::vector<LayerRanks>& layers, const std::vector<size_t>& order, float names) {
  size_t bonds = 0;
  for (const LayerRanks& layer : layers) bonds = std::max(bonds, layer.live.size());
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
  if (with_history) over_steps(ui, order);
}

void bond_ranks(UiState& ui, const std::vector<LayerRanks>& layers) {
  float names = 0;
  for (const LayerRanks& layer : layers) names = std::max(names, ImGui::CalcTextSize(layer.name.c_str()).x);
  title_line(ui, layers);
  push_small();
  how_shown(ui);
  const std::vector<size_t> order = ordered_layers(layers, ui.rank_order);
  if (ui.ranks_view == RanksView::now)
    map_of_now(ui, layers, order, names);
  else if (ui.ranks_view == RanksView::drops)
    drops_feed(ui, ImGui::GetContentRegionAvail());
  else
    over_steps(ui, order);
  ImGui::PopFont();
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

namespace {

std::vector<LayerRanks> layers_as_shown(const UiState& ui) {
  const Snapshot& s = ui.snapshot();
  std::vector<LayerRanks> layers;
  for (const size_t index : ordered_layers(s.ranks, ui.rank_order)) layers.push_back(s.ranks[index]);
  return layers;
}

Chart rank_map_chart(const UiState& ui, const std::string& note) {
  const std::vector<LayerRanks> layers = layers_as_shown(ui);
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

// history_chart() is not empty.
bool has_history(const UiState& ui) {
  const RunView& view = ui.shown();
  for (const LayerRanks& layer : ui.snapshot().ranks)
    for (size_t bond = 0; bond < layer.live.size(); ++bond)
      if (const auto found = view.bond_ranks.find({layer.name, static_cast<int64_t>(bond) + 1});
          found != view.bond_ranks.end() && !found->second.empty())
        return true;
  return false;
}

}  // namespace

std::vector<ListedChart> ranks_charts(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  std::vector<ListedChart> out;
  const std::string note = s.name + ", step " + thousands(static_cast<double>(s.step));
  if (s.ranks.empty() && !s.ranked.empty()) out.push_back(matrix_ranks_chart(ui, note));
  if (s.ranks.empty()) return out;
  out.push_back({"rank-map", "Rank map", [&ui, note] { return rank_map_chart(ui, note); }});
  if (has_history(ui))
    out.push_back({"rank-history", "Ranks over the steps", [&ui, note] { return history_chart(ui, layers_as_shown(ui), note); }});
  const RunView& view = ui.shown();
  if (view.snapshot->step > 0 && std::any_of(view.snapshot->ranks.begin(), view.snapshot->ranks.end(), has_shape))
    out.push_back({"size-by-module", kSizes, [&view, note] { return chart_of("size-by-module", sizes_figure(view, note)); }});
  return out;
}

}  // namespace comera::studio
