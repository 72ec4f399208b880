// The table of all actions. Menus, shortcuts, the command palette and the list of keys are made from it: a new action is
// one row.
#pragma once
#include <imgui.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "app/studio/key_bindings.h"
#include "app/studio/ui_state.h"

namespace comera::studio {

enum class Menu { file, run, view, window, tools, help, timeline };  // in the order of the bar
inline constexpr int kMenus = 7, kMenusOfBar = 6;                    // the timeline's is inside of View
const char* title_of(Menu menu);

struct Action {
  std::string id;  // never changes: "run.stop"
  Menu menu = Menu::file;
  std::string title;       // its current title
  ImGuiKeyChord keys = 0;  // keys that work now; KeyBindings::of() has those that are bound
  std::function<void(UiState&)> act;
  std::string why_not = "";          // "" = it can act
  std::string about = "";            // tooltip
  std::optional<bool> checked = {};  // state of a toggle
  bool line_before = false;          // in the menu
  KeyScope scope = KeyScope::window;
  bool repeats = false;  // while its keys are held
  ImGuiKeyChord shipped_keys = 0;
};

// The table as it is at this moment. `act` of an action with a `why_not` does nothing.
std::vector<Action> actions(const UiState& ui);
// By its id, now. Throws Error(usage) when it cannot act.
void perform(UiState& ui, const std::string& id);

void draw_menu(UiState& ui, Menu menu);
// One of them as an item of another menu, e.g. of a button.
void draw_action(UiState& ui, const char* id);
// Acts on keys that were pressed. Once a frame; for what is not everywhere from inside its window. While a text field has the
// keyboard letters go into it, and while a dialog is open it has all keys.
void handle_keys(UiState& ui, KeyScope scope);

}  // namespace comera::studio
