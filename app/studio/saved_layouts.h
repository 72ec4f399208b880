// Layouts that the user saved. Stored as a tree of splits, not in pixels, so that they fit windows and texts of other
// sizes.
#pragma once
#include <imgui.h>

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace comera::studio {

struct UiState;

// Panels in one place, or two parts.
struct DockTree {
  std::vector<std::string> panels;  // ids in the order of their tabs
  std::string front;                // the one that is seen
  bool beside = false;              // the two parts are beside each other, not one under the other
  float share = 0.5f;               // of the first part
  std::vector<DockTree> parts;      // none or two
};

struct FloatingPanel {
  std::string panel;
  ImVec2 at, size;  // as shares of the room of all panels
};

struct SavedLayout {
  std::string name;
  DockTree tree;
  std::vector<FloatingPanel> floating;
  std::set<std::string> closed;  // ids; they keep their places
};

inline constexpr size_t kLongestLayoutName = 40;

// How UiState::arrangement says that it is one of these.
std::string arrangement_of(const std::string& name);
const SavedLayout* saved_layout(const UiState& ui, const std::string& arrangement);  // null = it is a shipped one

// Why it cannot be kept under this name; "" = it can, maybe in place of the one of that name.
std::string no_saving(const UiState& ui, const std::string& name);
// Keeps the panels as they are docked now, which then are an arrangement of that name.
void save_layout(UiState& ui, const std::string& name);
void choose_saved_layout(UiState& ui, const std::string& name);
void rename_layout(UiState& ui, const std::string& name, const std::string& to);
// The toast that tells it has the way back.
void delete_layout(UiState& ui, const std::string& name);

// Docks the panels of `root`, a dock space that is there and empty. A panel that the layout does not know is with the first.
void build_saved_layout(UiState& ui, const SavedLayout& layout, ImGuiID root, ImVec2 at, ImVec2 size);

Json layout_to_json(const SavedLayout& layout);
// Nothing where it is none: what is broken is left out whole. Panels that this program does not have are left out.
std::optional<SavedLayout> layout_from_json(const Json& json);

}  // namespace comera::studio
