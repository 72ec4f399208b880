#include "app/studio/frame.h"

#include <imgui_internal.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "app/format.h"
#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/closing.h"
#include "app/studio/export.h"
#include "app/studio/named_items.h"
#include "app/studio/panels.h"
#include "app/studio/timeline.h"
#include "app/studio/widgets.h"

namespace comera::studio {

std::span<const Layout> layouts() {
  static constexpr Layout kLayouts[] = {{"start", "Runs", ImGuiMod_Ctrl | ImGuiKey_1},
                                        {"new", "New run", ImGuiMod_Ctrl | ImGuiKey_N},
                                        {"train", "Train", ImGuiMod_Ctrl | ImGuiKey_2},
                                        {"compare", "Compare", ImGuiMod_Ctrl | ImGuiKey_3}};
  return kLayouts;
}

namespace {

constexpr ImGuiWindowFlags kFixed = ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoDocking |
                                    ImGuiWindowFlags_NoSavedSettings | ImGuiWindowFlags_NoBringToFrontOnFocus;

// Every frame begins filled with theme().app: what stands on that is not filled again. Where the processor draws, a
// second layer over the whole window is a third of the work.
constexpr ImU32 kNoBackground = IM_COL32(0, 0, 0, 0);

std::string window_name(const Panel& panel) { return std::string(panel.title) + "###" + panel.id; }

void draw_menu_bar(UiState& ui) {
  ImGui::PushStyleVar(ImGuiStyleVar_FramePadding, ImVec2(em(0.6f), em(0.45f)));
  if (ImGui::BeginMainMenuBar()) {
    push_title();
    ImGui::PushStyleColor(ImGuiCol_Text, theme().accent);
    ImGui::TextUnformatted(" CoMERA");
    ImGui::PopStyleColor();
    ImGui::PopFont();
    ImGui::Dummy({em(0.4f), 0});
    for (int i = 0; i < kMenus; ++i) {
      const auto menu = static_cast<Menu>(i);
      if (!ImGui::BeginMenu(title_of(menu))) continue;
      draw_menu(ui, menu);
      ImGui::EndMenu();
    }
    // Layouts at the right end.
    std::vector<const char*> titles;
    int chosen = 0;
    float width = em(3.2f);
    for (const Layout& layout : layouts()) {
      if (ui.layout == layout.name) chosen = static_cast<int>(titles.size());
      titles.push_back(layout.title);
      width += ImGui::CalcTextSize(layout.title).x + 2 * ImGui::GetStyle().FramePadding.x + em(0.3f);
    }
    ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), ImGui::GetWindowWidth() - width - em(0.6f)));
    if (segmented("layouts", titles.data(), static_cast<int>(titles.size()), chosen))
      show_layout(ui, layouts()[static_cast<size_t>(chosen)].name);
    const bool dark = ui.settings.theme == ThemeKind::dark;
    ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
    if (button("###theme", {.icon = dark ? Icon::sun : Icon::moon, .tooltip = dark ? "Light theme" : "Dark theme"}))
      set_theme(ui, dark ? ThemeKind::light : ThemeKind::dark);
    ImGui::PopStyleColor();
    ImGui::EndMainMenuBar();
  }
  ImGui::PopStyleVar();
}

// A bar over the whole width, taken off the room of the panels.
void draw_bar(const char* name, ImGuiDir side, float height, void (*draw)(UiState&), UiState& ui) {
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(0.8f), 0));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, ImVec2(1, 1));
  ImGui::PushStyleColor(ImGuiCol_WindowBg, side == ImGuiDir_Up ? theme().card : kNoBackground);
  const bool visible = ImGui::BeginViewportSideBar(name, ImGui::GetMainViewport(), side, height, kFixed);
  ImGui::PopStyleColor();
  ImGui::PopStyleVar(3);  // not of the tooltips in it
  if (visible) draw(ui);
  ImGui::End();
}

// Docks the panels: beside each other where there is room, else as tabs with the controls at the side.
bool is_roomy(ImVec2 size) { return size.x > em(85) && size.y > em(40); }

void build_dock(ImGuiID root, ImVec2 size) {
  ImGui::DockBuilderRemoveNode(root);
  ImGui::DockBuilderAddNode(root, ImGuiDockNodeFlags_DockSpace);
  ImGui::DockBuilderSetNodeSize(root, size);
  const bool roomy = is_roomy(size);
  ImGuiID side = 0, main = root, below = 0, below_left = 0, below_right = 0;
  const float side_share = std::clamp(em(roomy ? 22 : 18.5f) / size.x, 0.15f, 0.4f);
  ImGui::DockBuilderSplitNode(main, ImGuiDir_Right, side_share, &side, &main);
  if (roomy) {
    ImGui::DockBuilderSplitNode(main, ImGuiDir_Down, 0.44f, &below, &main);
    ImGui::DockBuilderSplitNode(below, ImGuiDir_Right, 0.5f, &below_right, &below_left);
  }
  for (const Panel& panel : panels()) {
    ImGuiID node = main;
    if (panel.place == Place::side) node = side;
    if (roomy && panel.place == Place::below_left) node = below_left;
    if (roomy && panel.place == Place::below_right) node = below_right;
    ImGui::DockBuilderDockWindow(window_name(panel).c_str(), node);
  }
  ImGui::DockBuilderFinish(root);
}

void draw_panels(UiState& ui) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const ImGuiID root = ImGui::GetID("train-dock");
  // Without the bars of this frame, which the viewport's work area only loses in the next one.
  const ImRect room = static_cast<const ImGuiViewportP*>(viewport)->GetBuildWorkRect();
  // Built anew on request, and when the room changes so much that another arrangement fits.
  const bool roomy = is_roomy(room.GetSize());
  const std::string wanted = roomy ? "train-roomy" : "train-compact";
  if (!ImGui::DockBuilderGetNode(root) || ui.rebuild_layout || (!ui.built_layout.empty() && ui.built_layout != wanted)) {
    build_dock(root, room.GetSize());
    ui.rebuild_layout = false;
  }
  ui.built_layout = wanted;
  ImGui::SetNextWindowPos(viewport->WorkPos);
  ImGui::SetNextWindowSize(viewport->WorkSize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(0.4f), em(0.4f)));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowRounding, 0);
  ImGui::Begin("##train", nullptr, kFixed | ImGuiWindowFlags_NoBackground);
  ImGui::PopStyleVar(2);
  if (ui.replaying()) {  // what is inside of this frame is past
    const ImVec2 at = viewport->WorkPos, size = viewport->WorkSize;
    const float line = em(0.2f);
    ImGui::GetWindowDrawList()->AddRect({at.x + line / 2, at.y + line / 2}, {at.x + size.x - line / 2, at.y + size.y - line / 2},
                                        theme().warning, 0, line);
  }
  ImGui::PushStyleColor(ImGuiCol_Border, theme().app);  // of the gaps between panels
  ImGui::DockSpace(root, {0, 0}, ImGuiDockNodeFlags_NoWindowMenuButton | ImGuiDockNodeFlags_NoCloseButton);
  ImGui::PopStyleColor();
  ImGui::End();
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
    if (visible) panel.draw(ui);
    ImGui::End();
  }
  ui.front_panel.clear();
}

// Hangs from the upper edge of the frame that says that the panels show the past: in the middle, or, where the tabs
// of all panels reach that far, at the right end.
void draw_replay_sign(const UiState& ui) {
  const ImGuiViewport* viewport = ImGui::GetMainViewport();
  const bool middle = is_roomy(viewport->WorkSize);
  std::string text = "REPLAY  step " + thousands(static_cast<double>(ui.snapshot().step));
  if (middle) text += " of " + thousands(static_cast<double>(ui.shown().snapshot->step));
  ImGui::SetNextWindowPos({viewport->WorkPos.x + viewport->WorkSize.x * (middle ? 0.5f : 1.0f), viewport->WorkPos.y}, 0,
                          {middle ? 0.5f : 1.0f, 0});
  ImGui::PushStyleColor(ImGuiCol_WindowBg, theme().warning);
  ImGui::PushStyleColor(ImGuiCol_Text, readable_on(theme().warning));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(em(1), em(0.2f)));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowMinSize, ImVec2(1, 1));
  ImGui::Begin("##replay-sign", nullptr,
               kFixed | ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_NoInputs | ImGuiWindowFlags_NoFocusOnAppearing);
  ImGui::BringWindowToDisplayFront(ImGui::GetCurrentWindow());
  ImGui::PushFont(fonts().bold, 0);
  ImGui::TextUnformatted(text.c_str());
  name_item("says:" + text);
  ImGui::PopFont();
  ImGui::End();
  ImGui::PopStyleVar(2);
  ImGui::PopStyleColor(2);
}

// One page that takes all the room of the panels.
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
  std::optional<std::pair<size_t, std::function<void(UiState&)>>> taken;  // a button of this toast
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

void draw_frame(UiState& ui) {
  tick(ui);
  handle_keys(ui, KeyScope::window);
  ui.plots.begin_frame();
  ui.compare.plots.begin_frame();
  ui.plots.cursor = std::exchange(ui.plots.hovered, -1);
  ui.plots.replay = ui.replaying() ? static_cast<double>(ui.snapshot().step) : -1;
  ui.plots.selection_low = static_cast<double>(ui.timeline.selection.first);
  ui.plots.selection_high = static_cast<double>(ui.timeline.selection.last);
  draw_menu_bar(ui);
  draw_bar("##status", ImGuiDir_Down, em(1.9f), draw_status, ui);
  if (ui.layout == "train") {
    draw_bar("##timeline", ImGuiDir_Down, timeline_height(ui), draw_timeline, ui);
    draw_bar("##transport", ImGuiDir_Up, em(3.4f), draw_transport, ui);
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
  ui.find = false;  // nothing in front can be searched
  draw_toasts(ui);
  draw_close_dialog(ui);
}

}  // namespace comera::studio
