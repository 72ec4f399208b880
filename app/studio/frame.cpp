#include "app/studio/frame.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/closing.h"
#include "app/studio/menu_bar.h"
#include "app/studio/panels.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/export.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/saved_layouts.h"
#include "app/studio/shown_run/timeline.h"

namespace comera::studio {

std::span<const Layout> layouts() {
  static constexpr Layout kLayouts[] = {
      {"start", "Runs", ImGuiMod_Ctrl | ImGuiKey_R},        {"new", "New run", ImGuiMod_Ctrl | ImGuiKey_N},
      {"train", "Train", ImGuiMod_Ctrl | ImGuiKey_1, true}, {"analyse", "Analyse", ImGuiMod_Ctrl | ImGuiKey_2, true},
      {"compare", "Compare", ImGuiMod_Ctrl | ImGuiKey_3},   {"replay", "Replay", ImGuiMod_Ctrl | ImGuiKey_4, true}};
  return kLayouts;
}

const char* chosen_layout(const UiState& ui) {
  for (const Layout& layout : layouts())
    if (layout.panels ? ui.layout == "train" && ui.arrangement == layout.name : ui.layout == layout.name) return layout.name;
  return "";
}

void choose_layout(UiState& ui, const std::string& name) {
  for (const Layout& layout : layouts()) {
    if (layout.name != name) continue;
    show_layout(ui, layout.panels ? "train" : name);
    if (layout.panels) ui.arrangement = name;  // draw_panels() docks it
  }
}

namespace {

constexpr ImGuiWindowFlags kFixed = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                                    ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus;

// Every frame is first filled with theme().app, so windows are not filled again: with software rendering a second layer over the whole
// window takes a third of the drawing time.
constexpr ImU32 kNoBackground = IM_COL32(0, 0, 0, 0);

// A bar across the whole width, outside the area of the panels.
void draw_bar(const char* name, ImGuiDir side, float height, void (*draw)(UiState&), UiState& ui) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(0.8f), 0));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, ImVec2(1, 1));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, side == ImGuiDir_Up ? theme().card : kNoBackground);
  const bool visible = ImGui::BeginViewportSideBar(name, ImGui::GetMainViewport(), side, height, kFixed);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);  // tooltips inside the bar must not inherit these
  if (visible) draw(ui);
  ImGui::End();
}

bool is_roomy(ImVec2 size) { return size.x > em(85) && size.y > em(40); }
bool is_narrow(ImVec2 size) { return size.x < em(50); }  // two panels side by side would both be cut
bool is_low(ImVec2 size) { return size.y < em(16); }     // with all bars shown no room would be left for a panel

// Places of the panels in an arrangement. Without room for columns the places become tabs.
struct Arrangement {
  const char* name;
  bool side;                 // has a column at the right
  float below, middle, low;  // fractions: height of the lower row; width of the right part of the upper and of the lower row; 0 = none
  std::vector<std::pair<const char*, const char*>> places;  // panel, place; other panels are in `main`
  const char* front;                                        // active panel of the tabs of `main`
};

const Arrangement& arrangement(const std::string& name) {
  static const std::vector<Arrangement> kAll = {
      // Train: places as in the table of panels: curves above; ranks, memory and the log below; the controls at the side.
      {"train", true, 0.44f, 0, 0.54f, {}, "metrics"},
      // Analyse: ranks next to tensor trains; memory and times below.
      {"analyse",
       false,
       0.46f,
       0.5f,
       0.5f,
       {{"ranks", "main"},
        {"metrics", "main"},
        {"tt", "right"},
        {"compare", "right"},
        {"memory", "below_left"},
        {"profile", "below_right"},
        {"log", "below_right"},
        {"controls", "below_right"}},
       "ranks"},
      // Replay: all panels that follow the timeline's cursor side by side.
      {"replay",
       false,
       0.5f,
       0.42f,
       0.42f,
       {{"metrics", "main"},
        {"profile", "main"},
        {"compare", "main"},
        {"ranks", "right"},
        {"tt", "below_left"},
        {"samples", "below_left"},
        {"memory", "below_right"},
        {"log", "below_right"},
        {"controls", "below_right"}},
       "metrics"}};
  for (const Arrangement& one : kAll)
    if (one.name == name) return one;
  return kAll.front();
}

std::string place_of(const Panel& panel, const Arrangement& in) {
  for (const auto& [id, place] : in.places)
    if (panel.id == std::string(id)) return place;
  switch (panel.place) {
    case Place::side:
      return "side";
    case Place::below_end:
      return "below_end";
    case Place::below_left:
      return "below_left";
    case Place::below_right:
      return "below_right";
    case Place::main:
      break;
  }
  return "main";
}

constexpr float kDockEdge = 0.4f;  // em around all panels

void build_dock(UiState& ui, ImGuiID root, ImVec2 at, ImVec2 size) {
  ImGui::DockBuilderRemoveNode(root);
  ImGui::DockBuilderAddNode(root, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(root, size);
  if (const SavedLayout* saved = saved_layout(ui, ui.arrangement); saved && !is_narrow(size)) {
    const float edge = em(kDockEdge);
    const ImVec2 inner(size.x - 2 * edge, size.y - 2 * edge);  // the size that the saved fractions refer to
    ImGui::DockBuilderSetNodeSize(root, inner);
    build_saved_layout(ui, *saved, root, {at.x + edge, at.y + edge}, inner);
    return ImGui::DockBuilderFinish(root);
  }
  const bool roomy = is_roomy(size);
  const Arrangement& wanted = arrangement(ui.arrangement);
  ImGuiID main = root;
  std::map<std::string, ImGuiID> nodes;
  const float side_share = std::clamp(em(roomy ? 22 : 18.5f) / size.x, 0.15f, 0.4f);
  if (wanted.side && !is_narrow(size)) ImGui::DockBuilderSplitNode(main, ImGuiDir_Right, side_share, &nodes["side"], &main);
  if (roomy) {
    ImGuiID below = 0;
    ImGui::DockBuilderSplitNode(main, ImGuiDir_Down, wanted.below, &below, &main);
    if (wanted.middle > 0) ImGui::DockBuilderSplitNode(main, ImGuiDir_Right, wanted.middle, &nodes["right"], &main);
    // Three columns if each is wide enough.
    if (wanted.side && size.x > em(100)) ImGui::DockBuilderSplitNode(below, ImGuiDir_Right, 0.27f, &nodes["below_end"], &below);
    ImGui::DockBuilderSplitNode(below, ImGuiDir_Right, wanted.low, &nodes["below_right"], &nodes["below_left"]);
    if (!nodes.contains("below_end")) nodes["below_end"] = nodes["below_right"];
  }
  std::map<ImGuiID, std::string> front;  // active panel of each dock node
  for (const Panel& panel : panels()) {
    const auto found = nodes.find(place_of(panel, wanted));
    const ImGuiID node = found != nodes.end() ? found->second : main;
    const std::string name = window_name(panel);
    ImGui::DockBuilderDockWindow(name.c_str(), node);
    if (!front.contains(node) || panel.id == std::string(wanted.front)) front[node] = name;
  }
  for (const auto& [node, name] : front)
    ImGui::DockBuilderGetNode(node)->SelectedTabId = ImHashStr("#TAB", 0, ImHashStr(name.c_str()));  // id that the tab will get
  ImGui::DockBuilderFinish(root);
}

void draw_panels(UiState& ui) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImGuiID root = ImGui::GetID("train-dock");
  // Excludes this frame's bars, which the viewport's work area excludes only from the next frame on.
  const ImRect room = static_cast<const ImGuiViewportP*>(viewport)->GetBuildWorkRect();
  // Rebuilt on request, and when the changed size needs another variant of the arrangement.
  const bool roomy = is_roomy(room.GetSize());
  const bool saved = saved_layout(ui, ui.arrangement) != nullptr;  // one variant for all sizes except the narrowest
  const std::string wanted = ui.arrangement + (is_narrow(room.GetSize())            ? "-narrow"
                                               : saved                              ? ""
                                               : roomy && room.GetWidth() > em(100) ? "-wide"
                                               : roomy                              ? "-roomy"
                                                                                    : "-compact");
  if (!ImGui::DockBuilderGetNode(root) || ui.rebuild_layout || (!ui.built_layout.empty() && ui.built_layout != wanted)) {
    build_dock(ui, root, room.Min, room.GetSize());
    ui.rebuild_layout = false;
    // Dear ImGui activates the tab of the focused panel. That is right only if the arrangement stayed and the size changed.
    if (!saved && ui.front_panel.empty() && !ui.built_layout.starts_with(ui.arrangement + "-"))
      ui.front_panel = arrangement(ui.arrangement).front;
  }
  ui.built_layout = wanted;
  ui.panels_dock = root;
  ImGui::SetNextWindowPos(viewport->WorkPos);
  ImGui::SetNextWindowSize(viewport->WorkSize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(kDockEdge), em(kDockEdge)));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::Begin("##train", nullptr, kFixed | ImGuiWindowFlags_NoBackground);
  ImGui::PopStyleVar(2);
  if (ui.replaying()) {  // frame around panels that show the past
    const ImVec2 at = viewport->WorkPos, size = viewport->WorkSize;
    const float line = em(0.2f);
    ImGui::GetWindowDrawList()->AddRect({at.x + line / 2, at.y + line / 2}, {at.x + size.x - line / 2, at.y + size.y - line / 2},
                                        theme().warning, 0, line);
  }
  ImGui::PushStyleColor(ImGuiCol_Border, theme().app);  // colour of the gaps between panels
  ImGui::DockSpace(root, {0, 0}, ImGuiDockNodeFlags_NoWindowMenuButton | ImGuiDockNodeFlags_NoCloseButton);
  ImGui::PopStyleColor();
  ImGui::End();
  bool comes = false;  // the panel to bring to the front is not settled yet
  for (const Panel& panel : panels()) {
    if (ui.closed_panels[panel.id]) continue;
    ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(0.35f), em(0.5f)));
    if (ui.front_panel == panel.id) ImGui::SetNextWindowFocus();
    const std::string name = window_name(panel);
    const ImGuiWindow* window = ImGui::FindWindowByName(name.c_str());
    const bool floats = !window || !window->DockIsActive;
    ImGui::PushStyleColor(ImGuiCol_WindowBg, floats ? theme().app : kNoBackground);
    const bool visible = ImGui::Begin(name.c_str());
    ImGui::PopStyleColor();
    ImGui::PopStyleVar();
    const ImGuiWindow* drawn = ImGui::GetCurrentWindow();
    const bool settled = visible && !drawn->Hidden && !drawn->Appearing;  // when tabs appear, Dear ImGui first activates the last one
    comes = comes || (ui.front_panel == panel.id && !settled);
    if (visible) panel.draw(ui);
    ImGui::End();
  }
  if (!comes) ui.front_panel.clear();
}

// Free intervals of the upper edge between tabs, from the left.
std::vector<std::pair<float, float>> free_of_tabs(const ImGuiViewport& viewport) {
  std::vector<std::pair<float, float>> taken;
  for (const ImGuiStoragePair& pair : ImGui::GetCurrentContext()->DockContext.Nodes.Data) {
    const auto* node = static_cast<const ImGuiDockNode*>(pair.val_p);
    const ImGuiTabBar* bar = node ? node->TabBar : nullptr;
    if (!bar || !node->IsVisible || bar->BarRect.Min.y > viewport.WorkPos.y + em(1.5f)) continue;
    taken.emplace_back(bar->BarRect.Min.x, std::min(bar->BarRect.Min.x + bar->WidthAllTabs, bar->BarRect.Max.x));
  }
  std::sort(taken.begin(), taken.end());
  std::vector<std::pair<float, float>> free;
  float from = viewport.WorkPos.x;
  for (const auto& [left, right] : taken) {
    if (left > from) free.emplace_back(from, left);
    from = std::max(from, right);
  }
  free.emplace_back(from, viewport.WorkPos.x + viewport.WorkSize.x);
  return free;
}

// The replay sign at the upper edge of the replay frame: centred, at the right end, or wherever the tabs leave room; with the step if that
// fits. Empty text: there is no room.
struct ReplaySign {
  std::string text;
  float at = 0;  // left end
};
ReplaySign replay_sign(const UiState& ui) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const float left = viewport->WorkPos.x, right = left + viewport->WorkSize.x, pad = em(1), apart = em(0.5f);
  const std::string step = "REPLAY  step " + thousands(static_cast<double>(ui.snapshot().step));
  const auto width_of = [pad](const std::string& text) {
    ImGui::PushFont(fonts().bold, 0);
    const float width = ImGui::CalcTextSize(text.c_str()).x + 2 * pad;
    ImGui::PopFont();
    return width;
  };
  const auto free = free_of_tabs(*viewport);
  const auto widest = std::max_element(free.begin(), free.end(), [](auto& a, auto& b) { return a.second - a.first < b.second - b.first; });
  const auto place = [&](float width) {  // left end; negative: no room
    for (const float at : {(left + right - width) / 2, right - width, (widest->first + widest->second - width) / 2})
      for (const auto& [low, high] : free)
        if (at >= low + (low > left ? apart : 0) && at + width <= high - (high < right ? apart : 0)) return at;
    return -1.0f;
  };
  for (const std::string& text : {step + " of " + thousands(static_cast<double>(ui.shown().snapshot->step)), step, std::string("REPLAY")})
    if (const float at = place(width_of(text)); at >= 0) return {text, std::round(at)};
  return {};
}

void draw_replay_sign(const UiState& ui) {
  const auto [text, at] = replay_sign(ui);
  if (text.empty()) return;
  ImGui::SetNextWindowPos({at, ImGui::GetMainViewport()->WorkPos.y});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, theme().warning);
  ImGui::PushStyleColor(ImGuiCol_Text, readable_on(theme().warning));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(1), em(0.2f)));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, ImVec2(1, 1));
  ImGui::Begin("##replay-sign", nullptr,
               kFixed | ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoInputs | ImGuiWindowFlags_NoFocusOnAppearing);
  if (!ImGui::GetTopMostPopupModal()) ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  ImGui::PushFont(fonts().bold, 0);
  ImGui::TextUnformatted(text.c_str());
  name_item("says:" + text);
  ImGui::PopFont();
  ImGui::End();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(2);
}

// Banner above everything while writes of the live run to the database fail.
void draw_store_banner(const UiState& ui) {
  const std::string problem = ui.live ? ui.live->view().snapshot->store_problem : "";
  if (problem.empty()) return;
  const std::string text = "Not saved: " + problem;
  const float room = ImGui::GetMainViewport()->Size.x - em(1.6f), height = banner_height(text, room);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(0.8f), em(0.2f)));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, ImVec2(1, 1));
  const bool visible = ImGui::BeginViewportSideBar("##store-trouble", ImGui::GetMainViewport(), ImGuiDir_Up, height + em(0.4f), kFixed);
  ImGui::PopStyleVar(3);
  if (visible) banner(Level::error, text);
  ImGui::End();
}

// The bars of the run: always on the train page, on other pages only if there is a run. In the smallest windows with the largest text the
// panels need this room: the content of the status bar is also in Log, Memory and About, and the keys and the menu of the timeline still
// work. On low pages the timeline is one line.
void draw_run_bars(UiState& ui, ImVec2 size) {
  const bool page = ui.layout != "train", tight = size.y < em(22);
  if (page && !ui.has_run() && !ui.opening()) return;
  const bool wanted = size.x >= em(30) && !page && (ui.replaying() || ui.arrangement == "replay");
  if (page ? !tight && size.y < em(45) : tight && wanted)
    draw_bar("##timeline", ImGuiDir_Down, timeline_line_height(), draw_timeline_line, ui);
  else if (!tight)
    draw_bar("##timeline", ImGuiDir_Down, timeline_height(ui), draw_timeline, ui);
  draw_bar("##transport", ImGuiDir_Up, em(page && tight ? 2.2f : is_low(size) ? 2.7f : 3.4f), draw_transport, ui);
}

// A page that fills the area of the panels.
void draw_page(const char* name, void (*draw)(UiState&), UiState& ui) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  ImGui::SetNextWindowPos(viewport->WorkPos);
  ImGui::SetNextWindowSize(viewport->WorkSize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::Begin(name, nullptr, kFixed | ImGuiWindowFlags_NoBackground);
  ImGui::PopStyleVar();
  draw(ui);
  ImGui::End();
}

void draw_toasts(UiState& ui) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  float bottom = viewport->WorkPos.y + viewport->WorkSize.y - em(1);
  std::optional<std::pair<size_t, std::function<void(UiState&)>>> taken;  // toast whose button was pressed, and the button's action
  for (size_t i = ui.toasts.size(), shown = 0; i-- > 0 && shown < kToastsShown; ++shown) {
    const Toast& toast = ui.toasts[i];
    const float width = std::min(em(26), viewport->WorkSize.x - em(2));
    ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x - em(1), bottom}, 0, {1, 1});
    ImGui::SetNextWindowSize({width, 0});
    ImGui::PushStyleColor(ImGuiCol_WindowBg, theme().card);
    ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 1);
    ImGui::Begin(("##toast" + std::to_string(i)).c_str(), nullptr,
                 (kFixed & ~ImGuiWindowFlags_NoBringToFrontOnFocus) | ImGuiWindowFlags_NoFocusOnAppearing | ImGuiWindowFlags_NoNav);
    ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
    banner(toast.level, toast.text);
    for (const Offer& offer : toast.offers) {
      if (button((offer.label + "###" + toast.id + ":" + offer.label).c_str())) taken = {i, offer.act};
      ImGui::SameLine();
    }
    if (toast.offers.empty() && toast.until >= kUntilDismissed && button("Dismiss")) taken = {i, {}};
    bottom -= ImGui::GetWindowHeight() + em(0.5f);
    ImGui::End();
    ImGui::PopStyleVar();
    ImGui::PopStyleColor();
  }
  if (!taken) return;
  ui.toasts.erase(ui.toasts.begin() + static_cast<std::ptrdiff_t>(taken->first));
  if (taken->second) taken->second(ui);
}

}  // namespace

bool shows_replay_sign(const UiState& ui) { return ui.layout == "train" && ui.replaying() && !replay_sign(ui).text.empty(); }

void draw_frame(UiState& ui) {
  tick(ui);
  handle_keys(ui, KeyScope::window);
  ui.plots.line_width = ui.compare.plots.line_width = ui.settings.line_width;
  ui.plots.markers = ui.compare.plots.markers = ui.settings.line_markers;
  ui.plots.begin_frame();
  ui.compare.plots.begin_frame();
  if (ui.has_run()) follow_head(ui.plots, static_cast<double>(ui.shown().snapshot->step));
  ui.plots.cursor = std::exchange(ui.plots.hovered, -1);
  ui.plots.replay = ui.replaying() ? static_cast<double>(ui.snapshot().step) : -1;
  ui.plots.selection_low = static_cast<double>(ui.timeline.selection.first);
  ui.plots.selection_high = static_cast<double>(ui.timeline.selection.last);
  draw_menu_bar(ui);
  const ImVec2 size = ImGui::GetMainViewport()->Size;
  if (!is_low(size)) draw_bar("##status", ImGuiDir_Down, em(1.9f), draw_status, ui);
  draw_store_banner(ui);
  draw_run_bars(ui, size);
  if (ui.layout == "train") {
    draw_panels(ui);
    if (ui.replaying()) draw_replay_sign(ui);
  } else if (ui.layout == "compare") {
    draw_page("##compare", draw_compare, ui);
  } else if (ui.layout == "new") {
    draw_page("##new", draw_new_run, ui);
  } else {
    draw_page("##start", draw_start, ui);
  }
  draw_export(ui);
  if (!ui.close_requested) draw_dialogs(ui);
  ui.find = false;  // the active panel has no search field
  draw_toasts(ui);
  draw_close_dialog(ui);
}

}  // namespace comera::studio
