// The tensor trains as a diagram: a row a layer, a box a core, a bar a bond. Beside it what was chosen: a bond with its
// entries, its cap and its past, or a core, or a layer.
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/live_controls.h"
#include "app/studio/panels.h"
#include "app/studio/tt_drawing.h"
#include "app/studio/widgets.h"

namespace comera::studio {
namespace {

constexpr float kLeastZoom = 0.08f, kMostZoom = 4, kLeastText = 5;  // pixels
constexpr float kReadableZoom = 0.62f, kLargestFit = 1.25f;         // of a fit to the width
constexpr size_t kManyLayers = 12;                                  // from here on groups start collapsed

std::string bond_name(const std::string& layer, int64_t bond) { return layer + "." + std::to_string(bond); }

const LayerRanks* layer_of(const Snapshot& s, const std::string& name) {
  const auto found = std::find_if(s.ranks.begin(), s.ranks.end(), [&](const LayerRanks& layer) { return layer.name == name; });
  return found == s.ranks.end() ? nullptr : &*found;
}

double bytes_an_entry(const Snapshot& s) { return s.size.entries > 0 ? s.size.bytes / s.size.entries : 4; }

std::string count(int64_t value) { return thousands(static_cast<double>(value)); }

std::string product(const std::vector<int64_t>& modes) {
  std::string out;
  for (const int64_t mode : modes) out += (out.empty() ? "" : " \xc2\xb7 ") + std::to_string(mode);
  return out;
}

int64_t multiplied(const std::vector<int64_t>& modes) {
  int64_t out = 1;
  for (const int64_t mode : modes) out *= mode;
  return out;
}

void choose(UiState& ui, const std::string& layer, int64_t bond, int64_t core) {
  ui.selected_layer = ui.tt.shown_layer = layer;
  ui.tt.bond = bond;
  ui.tt.core = core;
}

// Points of a bond's live rank over the steps, out of the records.
FigureLine history_of(const RunView& view, const std::string& layer, int64_t bond, int64_t until) {
  FigureLine line{.label = bond_name(layer, bond), .color = theme().series[1], .stairs = true};
  for (const RankRow& row : view.rank_changes()) {
    if (row.layer != layer || row.bond != bond || row.step > until) continue;
    line.x.push_back(static_cast<double>(row.step));
    line.y.push_back(static_cast<double>(row.rank));
  }
  if (!line.x.empty() && line.x.back() < static_cast<double>(until)) {
    line.x.push_back(static_cast<double>(until));
    line.y.push_back(line.y.back());
  }
  return line;
}

// ---- the card beside the diagram -------------------------------------------------------------------------------------

void fact(const char* name, const std::string& value, float column) {
  text_dim(name);
  ImGui::SameLine(column);
  text_fit(value, ImGui::GetContentRegionAvail().x, theme().text);
}

void sparkline(const FigureLine& line, double top, double end, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme().raised, em(0.25f));
  const float room = em(0.3f);
  const auto place = [&](double x, double y) {
    return ImVec2(at.x + room + (size.x - 2 * room) * static_cast<float>(end > 0 ? std::min(1.0, x / end) : 0),
                  at.y + size.y - room - (size.y - 2 * room) * static_cast<float>(top > 0 ? y / top : 0));
  };
  std::vector<ImVec2> points;
  for (size_t i = 0; i < line.x.size(); ++i) {
    if (i > 0) points.push_back(place(line.x[i], line.y[i - 1]));
    points.push_back(place(line.x[i], line.y[i]));
  }
  list->AddPolyline(points.data(), static_cast<int>(points.size()), line.color, std::max(1.0f, em(0.12f)));
  if (!points.empty()) list->AddCircleFilled(points.back(), em(0.2f), line.color);
  ImGui::Dummy(size);
  if (ImGui::IsItemHovered() && !line.x.empty()) {
    const double step = end * std::clamp((ImGui::GetMousePos().x - at.x - room) / std::max(1.0f, size.x - 2 * room), 0.0f, 1.0f);
    double rank = line.y.front();
    for (size_t i = 0; i < line.x.size() && line.x[i] <= step; ++i) rank = line.y[i];
    ImGui::SetTooltip("step %s: rank %.0f", thousands(step).c_str(), rank);
  }
}

// The entries from the largest down, on a logarithmic scale: what is under the line is dead.
void entry_bars(std::vector<double> values, double threshold, ImVec2 size) {
  std::sort(values.rbegin(), values.rend());
  const double low = threshold / 10, high = std::max(1.0, values.empty() ? 1.0 : values.front());
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme().raised, em(0.25f));
  const float room = em(0.3f), inner = size.y - 2 * room,
              step = (size.x - 2 * room) / static_cast<float>(std::max<size_t>(1, values.size()));
  const auto height = [&](double value) {
    return inner * static_cast<float>(std::clamp(std::log(std::max(value, low) / low) / std::log(high / low), 0.02, 1.0));
  };
  for (size_t i = 0; i < values.size(); ++i) {
    const float x = at.x + room + step * static_cast<float>(i), y = at.y + size.y - room;
    list->AddRectFilled({x, y - height(values[i])}, {x + std::max(1.0f, step * 0.78f), y},
                        values[i] > threshold ? theme().series[0] : with_alpha(theme().dim, 0.6f));
  }
  const float line = at.y + size.y - room - height(threshold);
  for (const auto& [from, to] : dashes({{at.x, line}, {at.x + size.x, line}}, em(0.35f), em(0.25f)))
    list->AddLine(from, to, theme().warning, std::max(1.0f, em(0.08f)));
  ImGui::Dummy(size);
  if (!ImGui::IsItemHovered() || values.empty()) return;
  const float over = (ImGui::GetMousePos().x - at.x - room) / step;
  const size_t i = std::min(values.size() - 1, static_cast<size_t>(std::max(0.0f, over)));
  ImGui::SetTooltip("entry %zu: %s%s", i + 1, significant(values[i], 3).c_str(), values[i] > threshold ? "" : ", dead");
}

// How often which value is among those of the core; 0 is in the middle.
void value_bars(const InspectedCore& core, ImVec2 size) {
  const ImVec2 at = ImGui::GetCursorScreenPos();
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->AddRectFilled(at, {at.x + size.x, at.y + size.y}, theme().raised, em(0.25f));
  const float room = em(0.3f), step = (size.x - 2 * room) / static_cast<float>(std::max<size_t>(1, core.bins.size()));
  const int64_t most = core.bins.empty() ? 0 : *std::max_element(core.bins.begin(), core.bins.end());
  for (size_t i = 0; i < core.bins.size() && most > 0; ++i) {
    if (core.bins[i] == 0) continue;
    const float x = at.x + room + step * static_cast<float>(i), y = at.y + size.y - room;
    const float high = (size.y - 2 * room) * static_cast<float>(core.bins[i]) / static_cast<float>(most);
    list->AddRectFilled({x, y - std::max(1.0f, high)}, {x + std::max(1.0f, step * 0.85f), y}, theme().series[0]);
  }
  ImGui::Dummy(size);
  if (ImGui::IsItemHovered() && !core.bins.empty()) {
    const auto i = std::min(core.bins.size() - 1, static_cast<size_t>(std::max(0.0f, (ImGui::GetMousePos().x - at.x - room) / step)));
    const double wide = 2 * core.largest / static_cast<double>(core.bins.size()), low = -core.largest + wide * static_cast<double>(i);
    ImGui::SetTooltip("%s to %s: %s values", significant(low, 3).c_str(), significant(low + wide, 3).c_str(), count(core.bins[i]).c_str());
  }
  const std::string most_text = significant(core.largest, 3);
  const float left = ImGui::GetCursorPosX();
  text_dim("-" + most_text);
  ImGui::SameLine();
  ImGui::SetCursorPosX(left + (size.x - ImGui::CalcTextSize("0").x) / 2);
  text_dim("0");
  ImGui::SameLine();
  text_right(most_text, left + size.x, theme().dim);
}

// What is known of the values of a bond or a core where the window stands: of the session that trains, else of the
// checkpoint that is nearest to the cursor. Asks for what it does not have.
struct SeenValues {
  const InspectedBond* bond = nullptr;
  const InspectedCore* core = nullptr;
  std::string note = {};                       // where they are from, or why there are none
  std::shared_ptr<const void> keep = nullptr;  // what they are in
};

SeenValues past_values(UiState& ui, const LayerRanks& layer, int64_t bond, int64_t core) {
  constexpr const char* kNone = "Not recorded for this run at this step: ";
  const int64_t step = ui.snapshot().step;
  const Replay* replay = ui.timeline.replay.get();
  if (!replay) return {.note = std::string(kNone) + "it is not in a store."};
  const CheckpointRow* nearest = nullptr;
  for (const CheckpointRow& row : replay->checkpoints())
    if (!nearest || std::abs(row.step - step) < std::abs(nearest->step - step)) nearest = &row;
  if (!nearest) return {.note = std::string(kNone) + "it has no checkpoint."};
  TTView& tt = ui.tt;
  if (!tt.past) tt.past = std::make_unique<Background<CheckpointQuestion, CheckpointValues>>(read_checkpoint_values, ui.wake);
  const CheckpointQuestion question{nearest->path, nearest->step, layer.name, bond, core};
  if (question != tt.past_question) {
    tt.past_question = question;
    tt.past->ask(question);
  }
  const auto answer = tt.past->latest();
  if (!answer || answer->answer.question != question) return {.note = "Reading the checkpoint of step " + count(nearest->step) + " ..."};
  const CheckpointValues& values = answer->answer;
  if (!values.problem.empty()) return {.note = kNone + values.problem};
  const int64_t away = nearest->step - step;
  return {.bond = bond > 0 ? &values.bond : nullptr,
          .core = core > 0 ? &values.core : nullptr,
          .note = away == 0 ? "As in the checkpoint of this step."
                            : "As in the nearest checkpoint, of step " + count(nearest->step) + ": " + count(std::abs(away)) +
                                  (away > 0 ? " steps later." : " steps earlier."),
          .keep = answer};
}

SeenValues seen_values(UiState& ui, const LayerRanks& layer, int64_t bond, int64_t core) {
  const Snapshot& s = ui.snapshot();
  if (ui.replaying() || !ui.shown().live) return past_values(ui, layer, bond, core);
  if (bond > 0 && s.inspected.layer == layer.name && s.inspected.bond == bond) return {.bond = &s.inspected};
  if (core > 0 && s.inspected_core.layer == layer.name && s.inspected_core.core == core) return {.core = &s.inspected_core};
  if (ui.editable()) return {.note = "Asked for ..."};
  return {.note = "The run ended before they were asked for. Move the timeline to see those of a checkpoint."};
}

void dim_lines(const std::string& text) {
  if (text.empty()) return;
  ImGui::PushTextWrapPos(0);
  text_dim(text);
  ImGui::PopTextWrapPos();
}

void lock_switch(UiState& ui, const LayerRanks& layer) {
  live_switch(ui, "Lock the layer",
              "Weight of this layer in the rank penalty: 0 while it is locked, so nothing pushes its ranks down. The loss still moves "
              "them, and caps count.",
              layer.weight == 0, "rank.weight." + layer.name, "0", "null");
}

void bond_card(UiState& ui, const LayerRanks& layer, int64_t bond) {
  const Snapshot& s = ui.snapshot();
  const RunView& view = ui.shown();
  const auto index = static_cast<size_t>(bond - 1);
  const auto at = [&](const std::vector<int64_t>& ranks) { return index < ranks.size() ? ranks[index] : 0; };
  const int64_t live = at(layer.live), held = at(layer.held), initial = at(layer.initial), cap = at(layer.caps);
  const double threshold = ui.config().method.comera.threshold;
  const float width = ImGui::GetContentRegionAvail().x, column = ImGui::GetCursorPosX() + em(4.6f);
  fact("live rank", std::to_string(live) + " of " + std::to_string(initial) + " at the start", column);
  fact("dead", count(std::max<int64_t>(0, held - live)) + " in memory, " + count(std::max<int64_t>(0, initial - held)) + " cut out",
       column);
  fact("threshold", significant(threshold, 3), column);
  if (live == 0) banner(Level::warning, "The bond is dead: the layer gives 0. The setting floor_rank keeps one entry alive.");

  ImGui::Dummy({0, em(0.15f)});
  const std::string path = "rank.cap." + bond_name(layer.name, bond);
  const auto most = static_cast<double>(std::max<int64_t>(2, initial));
  live_slider(
      ui,
      {"Rank cap",
       "The bond keeps at most so many entries, the largest ones. A cap that is raised gives it new entries to learn with; a cap that is "
       "removed does not.",
       1, most, false, "%.0f", true},
      cap > 0 ? static_cast<double>(cap) : most, path);
  if (cap > 0) {
    if (button("Remove the cap", {.enabled = ui.editable() != nullptr, .why_not = "Only while a run of this window trains"}))
      ui.editable()->edit(path, "null");
  } else {
    text_dim("No cap in force.");
  }
  ImGui::Dummy({0, em(0.15f)});
  text_dim("Entries of the rank vector, sorted");
  const SeenValues seen = seen_values(ui, layer, bond, 0);
  if (seen.bond) entry_bars(seen.bond->values, threshold, {width, em(5)});
  dim_lines(seen.note);
  ImGui::Dummy({0, em(0.15f)});
  text_dim("Live rank over the steps");
  const FigureLine past = history_of(view, layer.name, bond, s.step);
  if (past.x.empty())
    text_dim("Not recorded for this run.");
  else
    sparkline(past, static_cast<double>(initial), static_cast<double>(std::max<int64_t>(1, view.snapshot->step)), {width, em(3.4f)});
  ImGui::Dummy({0, em(0.15f)});
  lock_switch(ui, layer);
}

void core_card(UiState& ui, const LayerRanks& layer, int64_t core) {
  const Snapshot& s = ui.snapshot();
  const auto index = static_cast<size_t>(core - 1);
  const int64_t live = core_entries(layer, layer.live, index), held = core_entries(layer, layer.held, index);
  const std::vector<LayerRanks> alone{layer};
  const TTLayout layout = lay_out(alone, {});
  const float column = ImGui::GetCursorPosX() + em(5.6f);
  const double bytes = bytes_an_entry(s);
  if (index < layout.cores.size()) fact("shape", core_label(layout.cores[index]), column);
  const SeenValues seen = seen_values(ui, layer, 0, core);
  if (seen.core) {
    value_bars(*seen.core, {ImGui::GetContentRegionAvail().x, em(5)});
    std::string shape;
    for (const int64_t size : seen.core->shape) shape += (shape.empty() ? "" : " \xc3\x97 ") + std::to_string(size);
    if (index >= layout.cores.size() || shape != core_label(layout.cores[index])) fact("in memory", shape, column);
    fact("norm", significant(seen.core->norm, 4), column);
    if (ui.shown().live && !ui.replaying())
      fact(
          "gradient",
          std::isfinite(seen.core->gradient_norm) ? "norm " + significant(seen.core->gradient_norm, 4) : "not known: from the next step on",
          column);
    if (seen.core->step != s.step && seen.note.empty()) text_dim("of step " + count(seen.core->step));
  }
  dim_lines(seen.note);
  ImGui::Dummy({0, em(0.15f)});
  const bool input = layer.is_table() || index < layer.in_modes.size();
  fact("side", layer.is_table() ? "rows and columns" : input ? "input" : "output", column);
  fact("parameters", count(live) + " live, " + count(held) + " in memory", column);
  fact("at the start", count(core_entries(layer, layer.initial, index)), column);
  fact("size", mebibytes(static_cast<double>(live) * bytes) + " live, " + mebibytes(static_cast<double>(held) * bytes) + " in memory",
       column);
  if (s.size.entries > 0)
    fact("share", significant(static_cast<double>(live) / s.size.entries * 100, 3) + " % of all tensor trains", column);
}

void layer_card(UiState& ui, const LayerRanks& layer) {
  const Snapshot& s = ui.snapshot();
  const float column = ImGui::GetCursorPosX() + em(5.6f);
  const int64_t live = layer_entries(layer, layer.live), in = multiplied(layer.in_modes), out = multiplied(layer.out_modes);
  fact(layer.is_table() ? "rows" : "inputs", count(in) + " = " + product(layer.in_modes), column);
  fact(layer.is_table() ? "columns" : "outputs", count(out) + " = " + product(layer.out_modes), column);
  fact("parameters", count(live) + " live", column);
  fact("in memory", count(layer_entries(layer, layer.held)), column);
  fact("at the start", count(layer_entries(layer, layer.initial)), column);
  fact("size", mebibytes(static_cast<double>(live) * bytes_an_entry(s)), column);
  if (live > 0)
    fact("dense", significant(static_cast<double>(in) * static_cast<double>(out) / static_cast<double>(live), 3) + " x as many", column);
  ImGui::Dummy({0, em(0.2f)});
  lock_switch(ui, layer);
  text_dim("Click a bond to cap it.");
}

void side_card(UiState& ui, const LayerRanks& layer) {
  TTView& tt = ui.tt;
  const auto bonds = static_cast<int64_t>(layer.initial.size());
  push_title();
  const std::string title = tt.bond > 0 ? "Bond " + std::to_string(tt.bond) : tt.core > 0 ? "Core " + std::to_string(tt.core) : "Layer";
  ImGui::TextUnformatted(title.c_str());
  ImGui::PopFont();
  ImGui::SameLine();
  const float right = ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - em(1.6f);
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), right));
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.25f), 0));
  const bool close = button("###close", {.icon = Icon::cross, .tooltip = "Close", .size = {em(1.6f), 0}});
  ImGui::PopStyleVar();
  ImGui::PopStyleColor();
  push_small();
  text_fit("of " + layer.name, ImGui::GetContentRegionAvail().x, theme().dim);
  ImGui::Dummy({0, em(0.1f)});
  if (tt.bond > 0 && tt.bond <= bonds)
    bond_card(ui, layer, tt.bond);
  else if (tt.core > 0 && tt.core <= bonds + 1)
    core_card(ui, layer, tt.core);
  else
    layer_card(ui, layer);
  ImGui::PopFont();
  if (close) choose(ui, "", 0, 0);
}

// ---- the diagram -----------------------------------------------------------------------------------------------------

void fit(TTView& tt, const TTLayout& layout, ImVec2 space, bool all) {
  const float unit = ImGui::GetFontSize();
  const auto width = static_cast<float>(layout.width), height = static_cast<float>(layout.height);
  if (width <= 0 || height <= 0) return;
  const float by_width = space.x / (width * unit), by_height = space.y / (height * unit);
  // All of it where that can be read, else the width.
  const float whole = std::min(by_width, by_height);
  tt.zoom = all || whole >= kReadableZoom ? std::clamp(whole, kLeastZoom, kLargestFit) : std::clamp(by_width, kReadableZoom, kLargestFit);
  // What is smaller than the room stands in its middle.
  const float wide = space.x / (tt.zoom * unit), high = space.y / (tt.zoom * unit);
  tt.corner = {wide > width ? (width - wide) / 2 : 0, high > height ? (height - high) / 2 : 0};
}

void tip(const TTLayout& layout, const TTHit& at, const Snapshot& s) {
  if (at.kind == TTHit::nothing || !ImGui::BeginTooltip()) return;
  if (at.kind == TTHit::bond) {
    const TTBond& bond = layout.bonds[at.index];
    ImGui::Text("%s, bond %zu", s.ranks[bond.layer].name.c_str(), bond.index + 1);
    text_dim("live rank " + count(bond.live) + " of " + count(bond.initial) + " at the start, " + count(bond.held) + " in memory");
    if (bond.cap > 0) text_dim("capped at " + count(bond.cap));
  } else if (at.kind == TTHit::core) {
    const TTCore& core = layout.cores[at.index];
    ImGui::Text("%s, core %zu", s.ranks[core.layer].name.c_str(), core.index + 1);
    text_dim(core_label(core) + ", " + count(core.entries) + " parameters, " +
             mebibytes(static_cast<double>(core.entries) * bytes_an_entry(s)));
  } else {
    const TTRow& row = layout.rows[at.index];
    ImGui::TextUnformatted(row.name.c_str());
    text_dim(count(row.entries) + " of " + count(row.first_entries) + " parameters");
    text_dim(row.collapsed ? "Click: show its layers" : "Double-click: fold its group");
  }
  ImGui::EndTooltip();
}

void canvas(UiState& ui, const TTLayout& layout, ImVec2 size) {
  TTView& tt = ui.tt;
  const Snapshot& s = ui.snapshot();
  const float font = ImGui::GetFontSize();
  const ImVec2 at = tt.canvas = ImGui::GetCursorScreenPos();
  if (tt.fit || tt.fit_all || (!tt.moved && (size.x != tt.fitted.x || size.y != tt.fitted.y))) {
    fit(tt, layout, size, tt.fit_all);
    tt.fit = tt.fit_all = tt.moved = false;
    tt.fitted = size;
  }
  // What was chosen elsewhere comes into view, unless it is there.
  if (tt.shown_layer != ui.selected_layer) {
    tt.shown_layer = ui.selected_layer;
    for (const TTRow& row : layout.rows)
      if (const double high = size.y / (tt.zoom * font);
          row.name == ui.selected_layer && (row.y < tt.corner.y || row.y > tt.corner.y + high)) {
        tt.corner.y = static_cast<float>(row.y - high / 2);
        tt.moved = true;
      }
  }
  ImGui::InvisibleButton("canvas", size, ImGuiButtonFlags_MouseButtonLeft | ImGuiButtonFlags_MouseButtonMiddle);
  const bool over = ImGui::IsItemHovered();
  const ImGuiIO& io = ImGui::GetIO();
  const bool dragged = mouse_dragged(0) || (ImGui::IsMouseDown(ImGuiMouseButton_Middle) && mouse_dragged(2));
  if (ImGui::IsItemActive() && dragged) {
    tt.moved = true;
    tt.corner.x -= io.MouseDelta.x / (tt.zoom * font);
    tt.corner.y -= io.MouseDelta.y / (tt.zoom * font);
    ImGui::SetMouseCursor(ImGuiMouseCursor_ResizeAll);
  }
  const auto under_mouse = [&] {
    return ImVec2(tt.corner.x + (io.MousePos.x - at.x) / (tt.zoom * font), tt.corner.y + (io.MousePos.y - at.y) / (tt.zoom * font));
  };
  if (over) ImGui::SetItemKeyOwner(ImGuiKey_MouseWheelY);
  if (over && io.MouseWheel != 0) {  // the place under the mouse stays there
    const ImVec2 before = under_mouse();
    tt.moved = true;
    tt.zoom = std::clamp(tt.zoom * std::pow(1.2f, io.MouseWheel), kLeastZoom, kMostZoom);
    const ImVec2 after = under_mouse();
    tt.corner = {tt.corner.x + before.x - after.x, tt.corner.y + before.y - after.y};
  }
  // Some of it always stays in sight.
  const float wide = size.x / (tt.zoom * font), high = size.y / (tt.zoom * font), least = 4;
  tt.corner.x = std::clamp(tt.corner.x, least - wide, std::max(least - wide, static_cast<float>(layout.width) - least));
  tt.corner.y = std::clamp(tt.corner.y, least - high, std::max(least - high, static_cast<float>(layout.height) - least));

  TTLook look{.layer = ui.selected_layer, .bond = tt.bond, .core = tt.core, .hovered = {}};
  look.top = tt.corner.y;
  look.bottom = tt.corner.y + high;
  if (over && !(ImGui::IsItemActive() && dragged)) look.hovered = hit(layout, under_mouse().x, under_mouse().y, 0.75);
  ImDrawList* list = ImGui::GetWindowDrawList();
  list->PushClipRect(at, {at.x + size.x, at.y + size.y}, true);
  const float scale = tt.zoom * font;
  paint(tt_drawing(layout, look), *list, {at.x - tt.corner.x * scale, at.y - tt.corner.y * scale}, scale, kLeastText);
  list->PopClipRect();
  if (over && !ImGui::IsItemActive()) tip(layout, look.hovered, s);

  if (!ImGui::IsItemDeactivated() || dragged || !over) return;
  const TTHit& chosen = look.hovered;
  if (chosen.kind == TTHit::bond) {
    const TTBond& bond = layout.bonds[chosen.index];
    choose(ui, s.ranks[bond.layer].name, static_cast<int64_t>(bond.index) + 1, 0);
  } else if (chosen.kind == TTHit::core) {
    const TTCore& core = layout.cores[chosen.index];
    choose(ui, s.ranks[core.layer].name, 0, static_cast<int64_t>(core.index) + 1);
  } else if (chosen.kind == TTHit::row) {
    const TTRow& row = layout.rows[chosen.index];
    if (row.collapsed)
      tt.collapsed.erase(row.group);
    else if (ImGui::GetMouseClickedCount(0) == 2 && groups_of(s.ranks).contains(row.group))
      tt.collapsed.insert(row.group);
    else
      choose(ui, row.name, 0, 0);
  } else {
    choose(ui, "", 0, 0);
  }
}

void toolbar(UiState& ui, const std::set<std::string>& groups) {
  TTView& tt = ui.tt;
  push_small();
  const ImGuiWindow* focused = ImGui::GetCurrentContext()->NavWindow;
  if (focused && focused->RootWindow == ImGui::GetCurrentWindow()->RootWindow && std::exchange(ui.find, false))
    ImGui::SetKeyboardFocusHere();
  ImGui::SetNextItemWidth(std::min(em(10), ImGui::GetContentRegionAvail().x * 0.35f));
  char text[128];
  std::snprintf(text, sizeof text, "%s", tt.search.c_str());
  if (ImGui::InputTextWithHint("##search", "Find a layer (Ctrl+F)", text, sizeof text)) {
    tt.search = text;
    tt.fit = true;
  }
  if (!groups.empty()) {
    ImGui::SameLine();
    const bool fold = std::any_of(groups.begin(), groups.end(), [&](const std::string& group) { return !tt.collapsed.contains(group); });
    if (button(fold ? "Fold###fold" : "Unfold###fold",
               {.tooltip = fold ? "One row for each encoder" : "A row for each layer", .size = {button_width("Unfold", {}), 0}})) {
      tt.collapsed = fold ? groups : std::set<std::string>{};
      tt.fit = true;
    }
  }
  ImGui::SameLine();
  if (button("Fit", {.tooltip = "Fit the width (F); Shift+F: everything"})) tt.fit = true;
  handle_keys(ui, KeyScope::diagram);
  const std::string zoom = std::to_string(std::lround(tt.zoom * 100)) + " %";
  if (ImGui::GetContentRegionAvail().x > 0) {
    ImGui::SameLine(0, em(0.8f));
    ImGui::AlignTextToFramePadding();
    text_fit(zoom, std::max(1.0f, ImGui::GetContentRegionAvail().x), theme().dim);
  }
  ImGui::PopFont();
}

void header(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  card_title("Tensor trains",
             "A row is a layer. A box is a core: rank \xc3\x97 mode \xc3\x97 rank. A bar is a bond, as thick as the logarithm of its live "
             "rank; its outline is the rank at the start. Legs are modes: inputs up, outputs down; cores of an embedding have both. "
             "Parameters: the sum of rank \xc2\xb7 mode \xc2\xb7 rank over the cores.");
  ImGui::SameLine(0, em(0.8f));
  std::string text = count(static_cast<int64_t>(s.size.entries)) + " parameters, " + mebibytes(s.size.bytes) + ", " +
                     significant(s.size.compression, 3) + " x smaller than dense; " + count(s.size.held_entries) + " in memory";
  const float room = ImGui::GetContentRegionAvail().x - export_button_width() - em(0.6f);
  push_small();
  text_fit(text, std::max(1.0f, room), theme().dim);
  ImGui::PopFont();
  ImGui::SameLine();
  export_button(ui, "tt");
}

// A new run: its groups start folded where there are many layers.
void look_at_run(UiState& ui, const Snapshot& s, const std::set<std::string>& groups) {
  TTView& tt = ui.tt;
  if (tt.view == &ui.shown()) return;
  tt.view = &ui.shown();
  tt.collapsed = s.ranks.size() > kManyLayers ? groups : std::set<std::string>{};
  tt.fit = true;
}

// Asks for the values of the chosen bond or core, and gives them up when another one is chosen.
void inspect(UiState& ui, const LayerRanks* layer) {
  LiveRun* run = ui.editable();
  if (!run) return;
  const auto bonds = layer ? static_cast<int64_t>(layer->initial.size()) : -1;
  const int64_t bond = layer && ui.tt.bond > 0 && ui.tt.bond <= bonds ? ui.tt.bond : 0;
  const int64_t core = layer && bond == 0 && ui.tt.core > 0 && ui.tt.core <= bonds + 1 ? ui.tt.core : 0;
  const std::string name = bond > 0 ? bond_name(layer->name, bond) : core > 0 ? layer->name + "/" + std::to_string(core) : "";
  if (name == ui.tt.inspected && (run == ui.tt.asked || name.empty())) return;
  ui.tt.inspected = name;
  ui.tt.asked = run;
  run->inspect(name.empty() ? "" : layer->name, bond, core);
}

}  // namespace

void draw_tt(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  if (begin_card("tt-card", {0, 0}, 0, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse)) {
    if (std::none_of(s.ranks.begin(), s.ranks.end(), has_shape)) {
      const bool unreadable = !ui.shown().config_problem.empty();
      const bool dense = ui.has_run() && !unreadable && !ui.config().tensorised();
      empty_state(unreadable ? Icon::warning : Icon::chart,
                  dense || unreadable                ? "No tensor trains"
                  : ui.has_run() && !s.ranks.empty() ? "No shapes"
                                                     : "No tensor trains yet",
                  unreadable                         ? "The stored settings of this run cannot be read."
                  : dense                            ? "This method trains dense matrices."
                  : ui.has_run() && !s.ranks.empty() ? "The shapes of its cores were not recorded for this run."
                                                     : "Cores and bonds of every layer appear here as soon as a run begins.");
      end_card();
      return;
    }
    const std::set<std::string> groups = groups_of(s.ranks);
    look_at_run(ui, s, groups);
    header(ui);
    toolbar(ui, groups);
    const LayerRanks* chosen = layer_of(s, ui.selected_layer);
    if (chosen && !has_shape(*chosen)) chosen = nullptr;
    // A layer that was chosen elsewhere must not hide in a folded group.
    if (chosen && ui.tt.shown_layer != ui.selected_layer) ui.tt.collapsed.erase(group_of(chosen->name));
    inspect(ui, chosen);
    const TTLayout layout = lay_out(s.ranks, ui.tt.collapsed, ui.tt.search);
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const float side = chosen ? std::clamp(space.x * 0.4f, em(13), em(19)) : 0;
    const float width = space.x - (chosen ? side + em(0.6f) : 0);
    if (layout.rows.empty()) {
      ImGui::BeginChild("nothing-found", {width, space.y});
      empty_state(Icon::search, "No such layer", "No layer has this in its name.");
      ImGui::EndChild();
    } else {
      canvas(ui, layout, {std::max(1.0f, width), std::max(1.0f, space.y)});
    }
    if (chosen) {
      ImGui::SameLine(0, em(0.6f));
      ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(0.1f), 0));
      ImGui::BeginChild("tt-side", {side, space.y}, ImGuiChildFlags_AlwaysUseWindowPadding);
      ImGui::PopStyleVar();
      side_card(ui, *chosen);
      ImGui::EndChild();
    }
  }
  end_card();
}

std::vector<Chart> tt_charts(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  const TTLayout layout = lay_out(s.ranks, ui.tt.collapsed, ui.tt.search);
  std::vector<Chart> out;
  if (layout.rows.empty()) return out;
  Chart diagram{"tensor-trains", "Diagram of the tensor trains", {}, tt_drawing(layout, {})};
  diagram.drawing.background = theme().card;
  diagram.drawing.title = "Tensor trains of " + s.name + ", step " + thousands(static_cast<double>(s.step));
  diagram.drawing.move({0, 2});
  diagram.drawing.size.y += 2;
  diagram.drawing.text({1, 1.4f}, 1, theme().text,
                       diagram.drawing.title + ":  " + count(static_cast<int64_t>(s.size.entries)) + " parameters, " +
                           significant(s.size.compression, 3) + " x smaller than dense",
                       Shape::left, true);
  // Of every core, folded or not.
  std::vector<std::vector<std::string>> rows{{"layer", "core", "rank_before", "in_mode", "out_mode", "rank_after", "parameters",
                                              "parameters_in_memory", "parameters_at_start", "rank_after_at_start", "rank_after_cap"}};
  const TTLayout whole = lay_out(s.ranks, {}, ui.tt.search);
  for (const TTCore& core : whole.cores) {
    const LayerRanks& layer = s.ranks[core.layer];
    const auto rank = [&](const std::vector<int64_t>& ranks) { return core.index < ranks.size() ? std::to_string(ranks[core.index]) : ""; };
    const int64_t cap = core.index < layer.caps.size() ? layer.caps[core.index] : 0;
    rows.push_back({layer.name, std::to_string(core.index + 1), std::to_string(core.rank_in),
                    core.in_mode ? std::to_string(core.in_mode) : "", core.out_mode ? std::to_string(core.out_mode) : "",
                    std::to_string(core.rank_out), std::to_string(core.entries), std::to_string(core.held_entries),
                    std::to_string(core.first_entries), rank(layer.initial), cap ? std::to_string(cap) : ""});
  }
  diagram.csv = [rows = std::move(rows)] { return csv_text(rows); };
  out.push_back(std::move(diagram));
  const LayerRanks* layer = layer_of(s, ui.selected_layer);
  if (!layer) return out;
  const std::string note = s.name + ", step " + thousands(static_cast<double>(s.step));
  const auto bonds = static_cast<int64_t>(layer->initial.size());
  if (ui.tt.bond == 0 && ui.tt.core > 0 && ui.tt.core <= bonds + 1) {
    const SeenValues seen = seen_values(ui, *layer, 0, ui.tt.core);
    if (!seen.core || seen.core->bins.empty()) return out;
    Figure values{.title = "Values of " + layer->name + ", core " + std::to_string(ui.tt.core),
                  .note = note + (seen.note.empty() ? "" : ". " + seen.note),
                  .x_title = "value"};
    const double wide = 2 * seen.core->largest / static_cast<double>(seen.core->bins.size());
    for (size_t i = 0; i < seen.core->bins.size(); ++i) {
      const double low = -seen.core->largest + wide * static_cast<double>(i);
      values.bars.push_back({"", low, low + wide, static_cast<double>(seen.core->bins[i]), theme().series[0]});
    }
    out.push_back(chart_of("core-values", std::move(values)));
  }
  if (ui.tt.bond <= 0 || ui.tt.bond > bonds) return out;
  const std::string name = bond_name(layer->name, ui.tt.bond);
  out.push_back(chart_of("bond-history", {.title = "Live rank of " + name,
                                          .note = note,
                                          .lines = {history_of(ui.shown(), layer->name, ui.tt.bond, s.step)},
                                          .from_zero = true}));
  if (const SeenValues seen = seen_values(ui, *layer, ui.tt.bond, 0); seen.bond) {
    Figure entries{.title = "Entries of " + name,
                   .note = note + (seen.note.empty() ? "" : ". " + seen.note),
                   .x_title = "entry",
                   .threshold = ui.config().method.comera.threshold};
    std::vector<double> values = seen.bond->values;
    std::sort(values.rbegin(), values.rend());
    for (size_t i = 0; i < values.size(); ++i)
      entries.bars.push_back({"", static_cast<double>(i) + 0.6, static_cast<double>(i) + 1.4, values[i],
                              values[i] > entries.threshold ? theme().series[0] : theme().dim});
    out.push_back(chart_of("bond-entries", std::move(entries)));
  }
  return out;
}

}  // namespace comera::studio
