#include "app/studio/saved_layouts.h"

#include <imgui_internal.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

constexpr size_t kMostLayouts = 50;  // saved layouts at most, since the menu lists all of them
constexpr int kDeepest = 8;          // nested splits; enough to give each panel a place of its own
constexpr float kLeastShare = 0.03f;

auto find(std::vector<SavedLayout>& all, const std::string& name) {
  return std::find_if(all.begin(), all.end(), [&](const SavedLayout& one) { return one.name == name; });
}

const Panel* docked_panel(const std::string& id) {
  for (const Panel& panel : panels())
    if (panel.id == id) return &panel;
  return nullptr;
}

// Dock node of a panel, also of a closed one; 0 = none.
ImGuiID dock_of(const Panel& panel) {
  const std::string name = window_name(panel);
  if (const ImGuiWindow* window = ImGui::FindWindowByName(name.c_str())) return window->DockId;
  const ImGuiWindowSettings* settings = ImGui::FindWindowSettingsByID(ImHashStr(name.c_str()));
  return settings ? settings->DockId : 0;
}

int place_among_tabs(const ImGuiDockNode& node, const Panel& panel) {
  if (!node.TabBar) return 0;
  const ImGuiWindow* window = ImGui::FindWindowByName(window_name(panel).c_str());
  for (int i = 0; i < node.TabBar->Tabs.Size; ++i)
    if (node.TabBar->Tabs[i].Window == window) return i;
  return node.TabBar->Tabs.Size;  // closed panels come last
}

bool is_empty(const DockTree& tree) { return tree.panels.empty() && tree.parts.empty(); }

DockTree read_tree(const ImGuiDockNode& node) {
  DockTree tree;
  if (node.IsSplitNode()) {
    DockTree first = read_tree(*node.ChildNodes[0]), second = read_tree(*node.ChildNodes[1]);
    if (is_empty(first)) return second;
    if (is_empty(second)) return first;
    tree.beside = node.SplitAxis == ImGuiAxis_X;
    const auto length = [&](int i) { return tree.beside ? node.ChildNodes[i]->Size.x : node.ChildNodes[i]->Size.y; };
    const float all = length(0) + length(1);
    tree.share = all > 0 ? length(0) / all : 0.5f;
    tree.parts = {std::move(first), std::move(second)};
    return tree;
  }
  std::vector<std::pair<int, const Panel*>> here;
  for (const Panel& panel : panels())
    if (dock_of(panel) == node.ID) here.emplace_back(place_among_tabs(node, panel), &panel);
  std::stable_sort(here.begin(), here.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [place, panel] : here) {
    tree.panels.emplace_back(panel->id);
    if (node.VisibleWindow && node.VisibleWindow == ImGui::FindWindowByName(window_name(*panel).c_str())) tree.front = panel->id;
  }
  return tree;
}

bool holds(const DockTree& tree, const std::string& panel) {
  if (std::find(tree.panels.begin(), tree.panels.end(), panel) != tree.panels.end()) return true;
  return std::any_of(tree.parts.begin(), tree.parts.end(), [&](const DockTree& part) { return holds(part, panel); });
}

void dock(const Panel& panel, ImGuiID node, int order) {
  const std::string name = window_name(panel);
  ImGui::DockBuilderDockWindow(name.c_str(), node);
  if (ImGuiWindow* window = ImGui::FindWindowByName(name.c_str())) window->DockOrder = static_cast<short>(order);
}

// Docks the panels of `tree`; `rest`: panels without a place in it, which join its first place.
void build_tree(const DockTree& tree, ImGuiID node, std::vector<const Panel*>& rest) {
  if (!tree.parts.empty()) {
    ImGuiID first = 0, second = 0;
    ImGui::DockBuilderSplitNode(node, tree.beside ? ImGuiDir_Left : ImGuiDir_Up, tree.share, &first, &second);
    build_tree(tree.parts[0], first, rest);
    build_tree(tree.parts[1], second, rest);
    return;
  }
  int order = 0;
  for (const std::string& id : tree.panels)
    if (const Panel* panel = docked_panel(id)) dock(*panel, node, order++);
  for (const Panel* panel : std::exchange(rest, {})) dock(*panel, node, order++);
  const Panel* front = docked_panel(tree.front.empty() ? tree.panels.front() : tree.front);
  if (front) ImGui::DockBuilderGetNode(node)->SelectedTabId = ImHashStr("#TAB", 0, ImHashStr(window_name(*front).c_str()));
}

Json tree_to_json(const DockTree& tree) {
  if (tree.parts.empty()) return {{"panels", tree.panels}, {"front", tree.front}};
  return {{"split", tree.beside ? "beside" : "under"},
          {"share", std::round(1000 * tree.share) / 1000},
          {"parts", {tree_to_json(tree.parts[0]), tree_to_json(tree.parts[1])}}};
}

// Parses a tree of known panels, each at most once; `left`: panels that have no place yet. May throw exceptions of the JSON library.
std::optional<DockTree> tree_from_json(const Json& json, std::set<std::string>& left, int depth = 0) {
  if (!json.is_object() || depth > kDeepest) return std::nullopt;
  DockTree tree;
  if (!json.contains("parts")) {
    for (const std::string& id : json.at("panels").get<std::vector<std::string>>())
      if (left.erase(id)) tree.panels.push_back(id);
    tree.front = json.value("front", "");
    if (std::find(tree.panels.begin(), tree.panels.end(), tree.front) == tree.panels.end()) tree.front.clear();
    return tree;
  }
  if (json.at("parts").size() != 2) return std::nullopt;
  auto first = tree_from_json(json.at("parts").at(0), left, depth + 1), second = tree_from_json(json.at("parts").at(1), left, depth + 1);
  if (!first || !second) return std::nullopt;
  if (is_empty(*first)) return second;
  if (is_empty(*second)) return first;
  tree.beside = json.at("split") == "beside";
  tree.share = json.at("share").get<float>();
  if (!(tree.share >= kLeastShare && tree.share <= 1 - kLeastShare)) return std::nullopt;
  tree.parts = {std::move(*first), std::move(*second)};
  return tree;
}

std::string trimmed(const std::string& name) {
  const size_t from = name.find_first_not_of(' '), to = name.find_last_not_of(' ');
  return from == std::string::npos ? "" : name.substr(from, to - from + 1);
}

}  // namespace

std::string arrangement_of(const std::string& name) { return "saved:" + name; }

const SavedLayout* saved_layout(const UiState& ui, const std::string& arrangement) {
  for (const SavedLayout& layout : ui.layouts)
    if (arrangement_of(layout.name) == arrangement) return &layout;
  return nullptr;
}

std::string no_saving(const UiState& ui, const std::string& name) {
  const std::string wanted = trimmed(name);
  if (wanted.empty()) return "Enter a name";
  if (wanted.size() > kLongestLayoutName) return "The name is longer than " + std::to_string(kLongestLayoutName) + " letters";
  if (ui.layout != "train" || !ImGui::DockBuilderGetNode(ui.panels_dock)) return "The training page is not shown";
  if (ui.layouts.size() >= kMostLayouts && !saved_layout(ui, arrangement_of(wanted)))
    return "There are already " + std::to_string(kMostLayouts) + " layouts: delete one first";
  return "";
}

void save_layout(UiState& ui, const std::string& name) {
  if (!no_saving(ui, name).empty()) return;
  const ImGuiDockNode& root = *ImGui::DockBuilderGetNode(ui.panels_dock);
  SavedLayout layout{.name = trimmed(name), .tree = read_tree(root), .floating = {}, .closed = {}};
  for (const Panel& panel : panels()) {
    if (const auto closed = ui.closed_panels.find(panel.id); closed != ui.closed_panels.end() && closed->second)
      layout.closed.insert(panel.id);
    const ImGuiWindow* window = ImGui::FindWindowByName(window_name(panel).c_str());
    if (!window || holds(layout.tree, panel.id) || root.Size.x <= 0 || root.Size.y <= 0) continue;
    layout.floating.push_back({panel.id,
                               {(window->Pos.x - root.Pos.x) / root.Size.x, (window->Pos.y - root.Pos.y) / root.Size.y},
                               {window->SizeFull.x / root.Size.x, window->SizeFull.y / root.Size.y}});
  }
  ui.arrangement = ui.built_layout = arrangement_of(layout.name);
  if (const auto same = find(ui.layouts, layout.name); same != ui.layouts.end())
    *same = std::move(layout);
  else
    ui.layouts.push_back(std::move(layout));
  ImGui::MarkIniSettingsDirty();
}

void choose_saved_layout(UiState& ui, const std::string& name) {
  if (!saved_layout(ui, arrangement_of(name))) return;
  show_layout(ui, "train");
  ui.arrangement = arrangement_of(name);
}

void rename_layout(UiState& ui, const std::string& name, const std::string& to) {
  const std::string wanted = trimmed(to);
  const auto found = find(ui.layouts, name);
  if (found == ui.layouts.end() || wanted.empty() || wanted.size() > kLongestLayoutName || find(ui.layouts, wanted) != ui.layouts.end())
    return;
  found->name = wanted;
  for (std::string* of : {&ui.arrangement, &ui.built_layout})
    if (*of == arrangement_of(name)) *of = arrangement_of(wanted);
  ImGui::MarkIniSettingsDirty();
}

void delete_layout(UiState& ui, const std::string& name) {
  const auto found = find(ui.layouts, name);
  if (found == ui.layouts.end()) return;
  const auto at = static_cast<size_t>(found - ui.layouts.begin());
  const SavedLayout gone = std::move(*found);
  ui.layouts.erase(found);
  if (ui.arrangement == arrangement_of(gone.name)) ui.arrangement = "train";
  ImGui::MarkIniSettingsDirty();
  Toast told{.level = Level::info, .text = "Layout " + gone.name + " deleted", .until = ImGui::GetTime() + 10, .id = "layout"};
  told.offers = {{"Undo", [gone, at](UiState& state) {
                    if (find(state.layouts, gone.name) != state.layouts.end()) return;
                    const size_t back = std::min(at, state.layouts.size());
                    state.layouts.insert(state.layouts.begin() + static_cast<std::ptrdiff_t>(back), gone);
                    ImGui::MarkIniSettingsDirty();
                  }}};
  add_toast(ui, std::move(told));
}

void build_saved_layout(UiState& ui, const SavedLayout& layout, ImGuiID root, ImVec2 at, ImVec2 size) {
  std::vector<const Panel*> rest;
  for (const Panel& panel : panels()) {
    ui.closed_panels[panel.id] = layout.closed.contains(panel.id);
    const auto floats =
        std::find_if(layout.floating.begin(), layout.floating.end(), [&](const FloatingPanel& one) { return one.panel == panel.id; });
    if (holds(layout.tree, panel.id)) continue;
    if (floats == layout.floating.end()) {
      rest.push_back(&panel);
      continue;
    }
    const std::string name = window_name(panel);
    ImGui::DockBuilderDockWindow(name.c_str(), 0);
    ImGui::SetWindowPos(name.c_str(), {at.x + floats->at.x * size.x, at.y + floats->at.y * size.y});
    ImGui::SetWindowSize(name.c_str(), {floats->size.x * size.x, floats->size.y * size.y});
  }
  build_tree(layout.tree, root, rest);
  // A focused panel would become the active tab of its place, so the focus goes to the active panel of the first place.
  ImGui::FocusWindow(nullptr);
  const DockTree* first = &layout.tree;
  while (!first->parts.empty()) first = &first->parts[0];
  ui.front_panel = first->front;
}

Json layout_to_json(const SavedLayout& layout) {
  Json json = {{"name", layout.name}, {"docked", tree_to_json(layout.tree)}, {"closed", layout.closed}, {"floating", Json::array()}};
  for (const FloatingPanel& one : layout.floating)
    json["floating"].push_back({{"panel", one.panel}, {"at", {one.at.x, one.at.y}}, {"size", {one.size.x, one.size.y}}});
  return json;
}

std::optional<SavedLayout> layout_from_json(const Json& json) try {
  SavedLayout layout;
  layout.name = json.at("name").get<std::string>();
  if (layout.name.empty() || layout.name.size() > kLongestLayoutName || layout.name != trimmed(layout.name)) return std::nullopt;
  std::set<std::string> left;
  for (const Panel& panel : panels()) left.insert(panel.id);
  const std::set<std::string> known = left;
  std::optional<DockTree> tree = tree_from_json(json.at("docked"), left);
  if (!tree || is_empty(*tree)) return std::nullopt;
  layout.tree = std::move(*tree);
  for (const Json& one : json.value("floating", Json::array())) {
    const auto pair = [&](const char* key) { return ImVec2(one.at(key).at(0).get<float>(), one.at(key).at(1).get<float>()); };
    const FloatingPanel floats{one.at("panel").get<std::string>(), pair("at"), pair("size")};
    const bool seen = floats.at.x > -0.9f && floats.at.x < 0.95f && floats.at.y > -0.2f && floats.at.y < 0.95f;
    const bool sized = floats.size.x > kLeastShare && floats.size.x < 4 && floats.size.y > kLeastShare && floats.size.y < 4;
    if (seen && sized && left.erase(floats.panel)) layout.floating.push_back(floats);  // else it is docked with the others
  }
  for (const std::string& id : json.value("closed", std::set<std::string>{}))
    if (known.contains(id)) layout.closed.insert(id);
  return layout;
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace comera::studio
