// Layouts that the user saved. Stored as a tree of splits with relative sizes, so that they fit windows and text of other sizes.
#pragma once
#include <imgui.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace comera::studio {

struct UiState;

// Panels in one place as tabs, or a split with two parts.
struct DockTree {
  std::vector<std::string> panels;  // ids in the order of the tabs
  std::string front;                // id of the active tab
  bool beside = false;              // the two parts are side by side; else one above the other
  float share = 0.5f;               // fraction of the first part
  std::vector<DockTree> parts;      // empty, or two
};

struct FloatingPanel {
  std::string panel;
  ImVec2 at, size;  // as fractions of the area of all panels
};

struct SavedLayout {
  std::string name;
  DockTree tree;
  std::vector<FloatingPanel> floating;
  std::set<std::string> closed;  // ids; closed panels keep their places
};

inline constexpr size_t kLongestLayoutName = 40;

// The value of UiState::arrangement for a saved layout of this name.
std::string arrangement_of(const std::string& name);
const SavedLayout* saved_layout(const UiState& ui, const std::string& arrangement);  // null = a built-in layout

// Why the layout cannot be saved under this name; "" = it can, possibly replacing the layout of that name.
std::string no_saving(const UiState& ui, const std::string& name);
// Saves the current arrangement of the panels under this name and makes it the active one.
void save_layout(UiState& ui, const std::string& name);
void choose_saved_layout(UiState& ui, const std::string& name);
void rename_layout(UiState& ui, const std::string& name, const std::string& to);
// The toast that reports it offers undo.
void delete_layout(UiState& ui, const std::string& name);

// Docks the panels into `root`, an existing empty dock space. A panel that the layout does not know joins the first place.
void build_saved_layout(UiState& ui, const SavedLayout& layout, ImGuiID root, ImVec2 at, ImVec2 size);

Json layout_to_json(const SavedLayout& layout);
// Nullopt for an invalid layout. Panels that this program does not have are left out.
std::optional<SavedLayout> layout_from_json(const Json& json);

}  // namespace comera::studio
