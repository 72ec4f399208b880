// The table of all actions. Menus, shortcuts, the command palette and the list of keys are generated from it: a new action is one row.
#pragma once
#include <imgui.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/studio/key_bindings.h"
#include "app/studio/ui_state.h"

namespace comera::studio {

enum class Menu { file, run, view, window, tools, help, timeline };  // menus in the order of the menu bar
inline constexpr int kMenus = 7, kMenusOfBar = 6;                    // the timeline menu is part of View
const char* title_of(Menu menu);

struct Action {
  std::string id;  // stable: "run.stop"
  Menu menu = Menu::file;
  std::string title;       // its current title
  ImGuiKeyChord keys = 0;  // default keys in the table; actions() replaces them by the user's bindings (KeyBindings::of())
  std::function<void(UiState&)> act;
  std::string why_not = "";          // why the action is disabled; "" = enabled
  std::string about = "";            // tooltip
  std::optional<bool> checked = {};  // state of a toggle
  bool line_before = false;          // separator before it in the menu
  KeyScope scope = KeyScope::window;
  bool repeats = false;  // repeats while its keys are held
  ImGuiKeyChord shipped_keys = 0;
};

// The table in its current state. Calling `act` of an action with a `why_not` does nothing.
std::vector<Action> actions(const UiState& ui);
// Performs the action with this id now. Throws Error(usage) if it is disabled.
void perform(UiState& ui, const std::string& id);

void draw_menu(UiState& ui, Menu menu);
// Draws one action as an item of another menu, e.g. of a button.
void draw_action(UiState& ui, const char* id);
// Performs the actions whose keys were pressed. Called once a frame; for scopes other than `window`, from inside the window of that scope.
// Letters go to a text field that has the keyboard; an open dialog takes all keys.
void handle_keys(UiState& ui, KeyScope scope);

}  // namespace comera::studio
