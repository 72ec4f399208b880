// Diagram of tensor trains: one row per layer, one box per core, one line per bond; next to it the card of the selection (tt_card.h).
#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/figure/tt_drawing.h"
#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/texts.h"
#include "app/studio/parts/tt_card.h"

namespace comera::studio {
namespace {

constexpr float kLeastZoom = 0.08f, kMostZoom = 4, kLeastText = 5;  // kLeastText: height in pixels
constexpr float kReadableZoom = 0.62f, kLargestFit = 1.25f;         // limits of a fit to the width
constexpr size_t kManyLayers = 12;                                  // from this number on, groups are collapsed at first

const LayerRanks* layer_of(const Snapshot& s, const std::string& name) {
  const auto found = std::find_if(s.ranks.begin(), s.ranks.end(), [&](const LayerRanks& layer) { return layer.name == name; });
  return found == s.ranks.end() ? nullptr : &*found;
}

void fit(TTView& tt, const TTLayout& layout, ImVec2 space, bool all) {
  const float unit = ImGui::GetFontSize();
  const auto width = static_cast<float>(layout.width), height = static_cast<float>(layout.height);
  if (width <= 0 || height <= 0) return;
  const float by_width = space.x / (width * unit), by_height = space.y / (height * unit);
  // Fits the whole diagram if it stays readable, else the width.
  const float whole = std::min(by_width, by_height);
  tt.zoom = all || whole >= kReadableZoom ? std::clamp(whole, kLeastZoom, kLargestFit) : std::clamp(by_width, kReadableZoom, kLargestFit);
  // Centres a diagram that is smaller than the area.
  const float wide = space.x / (tt.zoom * unit), high = space.y / (tt.zoom * unit);
  tt.corner = {wide > width ? (width - wide) / 2 : 0, high > height ? (height - high) / 2 : 0};
}

// Tooltip of the item under the mouse: its name, then facts.
std::vector<std::string> facts_of(const TTLayout& layout, const TTHit& at, const Snapshot& s) {
  if (at.kind == TTHit::bond) {
    const TTBond& bond = layout.bonds[at.index];
    std::vector<std::string> out{
        s.ranks[bond.layer].name + ", bond " + std::to_string(bond.index + 1),
        "live rank " + grouped(bond.live) + " of " + grouped(bond.initial) + " initially, " + grouped(bond.held) + " in memory"};
    if (bond.cap > 0) out.push_back("capped at " + grouped(bond.cap));
    return out;
  }
  if (at.kind == TTHit::core) {
    const TTCore& core = layout.cores[at.index];
    const double bytes = static_cast<double>(core.entries) * s.size.bytes_an_entry();
    return {s.ranks[core.layer].name + ", core " + std::to_string(core.index + 1),
            core_label(core) + ", " + grouped(core.entries) + " parameters, " + mebibytes(bytes) + " = " + megabytes(bytes)};
  }
  if (at.kind != TTHit::row) return {};
  const TTRow& row = layout.rows[at.index];
  return {row.name, grouped(row.entries) + " of " + grouped(row.first_entries) + " parameters"};
}

void tip(const TTLayout& layout, const TTHit& at, const std::vector<std::string>& facts) {
  if (facts.empty() || !ImGui::BeginTooltip()) return;
  ImGui::TextUnformatted(facts.front().c_str());
  for (size_t i = 1; i < facts.size(); ++i) text_dim(facts[i]);
  if (at.kind == TTHit::row) text_dim(layout.rows[at.index].collapsed ? "Click: show its layers" : "Double-click: fold the group");
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
  // Scrolls to a layer that was selected elsewhere.
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
  if (over && io.MouseWheel != 0) {  // zooms around the position of the mouse
    const ImVec2 before = under_mouse();
    tt.moved = true;
    tt.zoom = std::clamp(tt.zoom * std::pow(1.2f, io.MouseWheel), kLeastZoom, kMostZoom);
    const ImVec2 after = under_mouse();
    tt.corner = {tt.corner.x + before.x - after.x, tt.corner.y + before.y - after.y};
  }
  // Keeps a part of the diagram visible.
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
  const std::vector<std::string> facts = facts_of(layout, look.hovered, s);
  std::string copied;
  for (const std::string& fact : facts) copied += (copied.empty() ? "" : "\n") + fact;
  const bool activated = ImGui::IsItemActive(), let_go = ImGui::IsItemDeactivated();
  if (over && !activated) tip(layout, look.hovered, facts);
  copy_menu({{"Copy details", copied}}, over && !facts.empty());

  if (!let_go || dragged || !over) return;
  const TTHit& chosen = look.hovered;
  if (chosen.kind == TTHit::bond) {
    const TTBond& bond = layout.bonds[chosen.index];
    choose_in_diagram(ui, s.ranks[bond.layer].name, static_cast<int64_t>(bond.index) + 1, 0);
  } else if (chosen.kind == TTHit::core) {
    const TTCore& core = layout.cores[chosen.index];
    choose_in_diagram(ui, s.ranks[core.layer].name, 0, static_cast<int64_t>(core.index) + 1);
  } else if (chosen.kind == TTHit::row) {
    const TTRow& row = layout.rows[chosen.index];
    if (row.collapsed)
      tt.collapsed.erase(row.group);
    else if (ImGui::GetMouseClickedCount(0) == 2 && groups_of(s.ranks).contains(row.group))
      tt.collapsed.insert(row.group);
    else
      choose_in_diagram(ui, row.name, 0, 0);
  } else {
    choose_in_diagram(ui, "", 0, 0);
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
  if (ImGui::InputTextWithHint("##search", with_key(ui.settings.keys, "Search layers", "view.find").c_str(), text, sizeof text)) {
    tt.search = text;
    tt.fit = true;
  }
  if (!groups.empty()) {
    ImGui::SameLine();
    const bool fold = std::any_of(groups.begin(), groups.end(), [&](const std::string& group) { return !tt.collapsed.contains(group); });
    if (button(fold ? "Fold###fold" : "Unfold###fold",
               {.tooltip = fold ? "One row per encoder block" : "One row per layer", .size = {button_width("Unfold", {}), 0}})) {
      tt.collapsed = fold ? groups : std::set<std::string>{};
      tt.fit = true;
    }
  }
  ImGui::SameLine();
  if (button("Fit", {.tooltip = "Fit the width", .keys = ui.settings.keys.of("diagram.fit")})) tt.fit = true;
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
             "Row: layer. Box: core, rank \xc3\x97 mode \xc3\x97 rank. Bar: bond, its width is the logarithm of the live rank, its outline "
             "the initial rank. Legs: modes, inputs up, outputs down; cores of an embedding have both. Parameters: sum of rank \xc2\xb7 "
             "mode \xc2\xb7 rank over the cores.");
  ImGui::SameLine(0, em(0.8f));
  std::string text =
      grouped(static_cast<int64_t>(s.size.entries)) + " parameters, " + mebibytes(s.size.bytes) + ", " + smaller_than_dense(s.size);
  if (s.size.held_entries != static_cast<int64_t>(s.size.entries)) text += "; " + grouped(s.size.held_entries) + " in memory";
  const float room = ImGui::GetContentRegionAvail().x - export_button_width() - em(0.6f);
  push_small();
  text_fit(text, std::max(1.0f, room), theme().dim);
  ImGui::PopFont();
  ImGui::SameLine();
  export_button(ui, "tt");
}

// Resets the view for another run; with many layers all groups are collapsed.
void look_at_run(UiState& ui, const Snapshot& s, const std::set<std::string>& groups) {
  TTView& tt = ui.tt;
  if (tt.view == &ui.shown()) return;
  tt.view = &ui.shown();
  tt.collapsed = s.ranks.size() > kManyLayers ? groups : std::set<std::string>{};
  tt.fit = true;
}

}  // namespace

void draw_tt(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  if (begin_card("tt-card", {0, 0}, 0, ImGuiWindowFlags_NoScrollbar | ImGuiWindowFlags_NoScrollWithMouse)) {
    if (std::none_of(s.ranks.begin(), s.ranks.end(), has_shape)) {
      const bool unreadable = !ui.shown().config_problem.empty();
      const bool dense = ui.has_run() && !unreadable && !ui.shown().uses("model.tt");
      empty_state(unreadable ? Icon::warning : Icon::chart,
                  dense || unreadable                ? "No tensor trains"
                  : ui.has_run() && !s.ranks.empty() ? "No shapes"
                                                     : "No tensor trains yet",
                  unreadable                         ? "The stored settings of this run cannot be read."
                  : dense                            ? "This run has no tensor trains."
                  : ui.has_run() && !s.ranks.empty() ? "The core shapes were not recorded for this run."
                                                     : "Cores and bonds of all layers appear here when a run starts.");
      end_card();
      return;
    }
    const std::set<std::string> groups = groups_of(s.ranks);
    look_at_run(ui, s, groups);
    header(ui);
    toolbar(ui, groups);
    const LayerRanks* chosen = layer_of(s, ui.selected_layer);
    if (chosen && !has_shape(*chosen)) chosen = nullptr;
    // Expands the group of a layer that was selected elsewhere.
    if (chosen && ui.tt.shown_layer != ui.selected_layer) ui.tt.collapsed.erase(group_of(chosen->name));
    inspect_chosen(ui, chosen);
    const TTLayout layout = lay_out(s.ranks, ui.tt.collapsed, ui.tt.search);
    const ImVec2 space = ImGui::GetContentRegionAvail();
    const float side = chosen ? std::clamp(space.x * 0.4f, em(13), em(19)) : 0;
    const float width = space.x - (chosen ? side + em(0.6f) : 0);
    if (layout.rows.empty()) {
      ImGui::BeginChild("nothing-found", {width, space.y});
      empty_state(Icon::search, "No match", "No layer name contains this text.");
      ImGui::EndChild();
    } else {
      canvas(ui, layout, {std::max(1.0f, width), std::max(1.0f, space.y)});
    }
    if (chosen) {
      ImGui::SameLine(0, em(0.6f));
      ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(0.1f), 0));
      ImGui::BeginChild("tt-side", {side, space.y}, ImGuiChildFlags_AlwaysUseWindowPadding);
      ImGui::PopStyleVar();
      draw_tt_card(ui, *chosen);
      ImGui::EndChild();
    }
  }
  end_card();
}

namespace {

constexpr const char* kDiagram = "Diagram of the tensor trains";

Chart diagram_chart(const UiState& ui) {
  const Snapshot& s = ui.snapshot();
  Chart diagram{"tensor-trains", kDiagram, {}, tt_picture(s, lay_out(s.ranks, ui.tt.collapsed, ui.tt.search))};
  // All cores, also of collapsed groups.
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
  return diagram;
}

}  // namespace

std::vector<ListedChart> tt_charts(UiState& ui) {
  const Snapshot& s = ui.snapshot();
  std::vector<ListedChart> out;
  if (lay_out(s.ranks, ui.tt.collapsed, ui.tt.search).rows.empty()) return out;
  out.push_back({"tensor-trains", kDiagram, [&ui] { return diagram_chart(ui); }});
  if (const LayerRanks* layer = layer_of(s, ui.selected_layer)) add_card_charts(ui, *layer, out);
  return out;
}

}  // namespace comera::studio
