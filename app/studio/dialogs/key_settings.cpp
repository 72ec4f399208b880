// Key bindings of all actions. Two actions with the same scope never share a key.
#include <imgui_internal.h>

#include <algorithm>
#include <utility>

#include "app/studio/action_table.h"
#include "app/studio/dialogs.h"
#include "app/studio/parts/cards.h"
#include "app/studio/parts/icons.h"
#include "app/studio/parts/inputs.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"

namespace comera::studio {
namespace {

std::string title_of(const std::vector<Action>& all, const std::string& id) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const Action& action) { return action.id == id; });
  return found == all.end() ? id : found->title;
}

// Clears the pending change; keeps the search text.
void begin_anew(KeyChange& change) {
  KeyChange next;
  next.search = std::move(change.search);
  change = std::move(next);
}

void tell(KeyChange& change, bool went_well, const std::string& text) {
  begin_anew(change);
  change.told = text;
  change.went_well = went_well;
}

// Binds keys to an action or reports why not; asks before it takes keys from another action.
void give(UiState& ui, const std::vector<Action>& all, const std::string& id, ImGuiKeyChord keys) {
  KeyBindings& bindings = ui.settings.keys;
  KeyChange& change = ui.dialogs.key_change;
  const std::string text = key_text(keys), title = title_of(all, id);
  if (const std::string why = bindings.refusal(id, keys); !why.empty())
    return tell(change, false, text + " was not assigned. " + why + ".");
  if (const std::string other = bindings.holder(id, keys); !other.empty()) {
    tell(change, false, text + " is already assigned to: " + title_of(all, other) + ".");
    change.wants = id;
    change.other = other;
    change.keys = keys;
    return;
  }
  bindings.bind(id, keys);
  ImGui::MarkIniSettingsDirty();  // saves the preferences, which are stored together with the layouts
  const std::string shadowed = bindings.shadowed(id, keys);
  std::string said = text + " now runs: " + title + ".";
  if (!shadowed.empty()) said += " Elsewhere it runs: " + title_of(all, shadowed) + ". The active panel has priority.";
  tell(change, true, said);
}

// Captures the next key press as the new binding; a click or Esc cancels.
void take_keys(UiState& ui, const std::vector<Action>& all) {
  KeyChange& change = ui.dialogs.key_change;
  if (change.action.empty()) return;
  const ImGuiID owner = ImGui::GetID("takes-keys");
  const bool began = ImGui::GetActiveID() != owner;
  ImGui::SetActiveID(owner, ImGui::GetCurrentWindow());
  ImGui::KeepAliveID(owner);
  ImGui::SetActiveIdUsingAllKeyboardKeys();  // keys must not move the focus meanwhile
  if (began) return;                         // the key or button that started the capture is still down
  const ImGuiKeyChord keys = pressed_keys();
  if (keys == 0 && !ImGui::IsMouseClicked(0)) return;
  ImGui::ClearActiveID();
  const std::string id = std::exchange(change.action, "");
  if (keys == ImGuiKey_Escape || keys == 0) return tell(change, true, "Nothing changed.");
  give(ui, all, id, keys);
}

void message(UiState& ui, const std::vector<Action>& all) {
  KeyChange& change = ui.dialogs.key_change;
  KeyBindings& bindings = ui.settings.keys;
  push_small();
  if (!change.told.empty()) banner(change.went_well ? Level::good : Level::warning, change.told);
  if (!change.wants.empty()) {
    const std::string mine = key_text(bindings.of(change.wants)), other = title_of(all, change.other);
    const std::string label = mine.empty() ? "Reassign###swap" : "Swap###swap";
    const std::string tip = mine.empty() ? other + " loses its key" : other + " gets " + mine;
    if (button(label.c_str(), {.icon = Icon::check, .primary = true, .tooltip = tip.c_str()})) {
      const std::string wants = change.wants, keys = key_text(change.keys);
      bindings.swap(wants, change.other);
      ImGui::MarkIniSettingsDirty();
      tell(change, true, keys + " now runs: " + title_of(all, wants) + ". " + tip + ".");
    }
    ImGui::SameLine();
    if (button("Cancel###leave")) tell(change, true, "Nothing changed.");
    ImGui::SameLine();
    ImGui::AlignTextToFramePadding();
    ImGui::PushTextWrapPos(0);
    text_dim(tip + ".");
    ImGui::PopTextWrapPos();
  }
  ImGui::PopFont();
}

// One row: title, scope, keys, and buttons to remove and to reset the keys.
void key_row(UiState& ui, const Action& action, float full) {
  KeyBindings& bindings = ui.settings.keys;
  KeyChange& change = ui.dialogs.key_change;
  const float square = ImGui::GetFrameHeight(), key = em(8.5f), gap = em(0.3f), left = ImGui::GetCursorPosX();
  const float controls = key + 2 * (square + gap), words = full - controls - em(0.6f);
  const bool beside = words > em(12);  // else the controls are below the title
  const float top = ImGui::GetCursorPosY();
  ImGui::BeginGroup();
  ImGui::PushTextWrapPos(left + (beside ? words : full));
  ImGui::AlignTextToFramePadding();
  ImGui::TextUnformatted(action.title.c_str());
  if (*title_of(action.scope)) {
    push_small();
    ImGui::SetCursorPosY(ImGui::GetCursorPosY() - em(0.35f));
    text_dim(title_of(action.scope));
    ImGui::PopFont();
  }
  ImGui::PopTextWrapPos();
  ImGui::EndGroup();
  const float below = ImGui::GetCursorPosY();
  if (beside) ImGui::SetCursorPos({left + full - controls, top});
  const ImGuiKeyChord keys = bindings.of(action.id);
  const bool waits = change.action == action.id;
  const std::string label = (waits ? "Press keys" : keys == 0 ? "none" : key_text(keys)) + "###key:" + action.id;
  if (button(label.c_str(), {.primary = waits, .tooltip = "Click, then press new keys", .size = {key, 0}})) {
    begin_anew(change);
    change.action = action.id;
  }
  ImGui::PushStyleColor(ImGuiCol_Button, IM_COL32(0, 0, 0, 0));
  ImGui::SameLine(0, gap);
  if (keys != 0) {
    if (button(("###no-key:" + action.id).c_str(), {.icon = Icon::cross, .tooltip = "Remove the key", .size = {square, 0}})) {
      bindings.bind(action.id, 0);
      ImGui::MarkIniSettingsDirty();
      tell(change, true, action.title + " has no key.");
    }
  } else {
    ImGui::Dummy({square, square});
  }
  ImGui::SameLine(0, gap);
  if (bindings.is_changed(action.id)) {
    const std::string tip = action.shipped_keys == 0 ? "Reset to no key" : "Reset to " + key_text(action.shipped_keys);
    if (button(("###reset-key:" + action.id).c_str(), {.icon = Icon::rewind, .tooltip = tip.c_str(), .size = {square, 0}})) {
      bindings.reset(action.id);
      ImGui::MarkIniSettingsDirty();
      tell(change, true, action.title + " has its default key.");
    }
  } else {
    ImGui::Dummy({square, square});
  }
  ImGui::PopStyleColor();
  ImGui::SetCursorPos({left, std::max(below, ImGui::GetCursorPosY()) - ImGui::GetStyle().ItemSpacing.y});
  ImGui::Dummy({0, 0});
}

}  // namespace

void draw_key_settings(UiState& ui) {
  KeyChange& change = ui.dialogs.key_change;
  const std::vector<Action> all = actions(ui);
  take_keys(ui, all);
  const float reset = button_width("Reset all", {.icon = Icon::rewind});
  ImGui::SetNextItemWidth(std::max(em(5), std::min(em(18), ImGui::GetContentRegionAvail().x - reset - em(0.8f))));
  char text[64];
  std::snprintf(text, sizeof text, "%s", change.search.c_str());
  if (ImGui::InputTextWithHint("##key-search", "Search actions and keys", text, sizeof text)) change.search = text;
  ImGui::SameLine();
  ImGui::SetCursorPosX(std::max(ImGui::GetCursorPosX(), ImGui::GetCursorPosX() + ImGui::GetContentRegionAvail().x - reset));
  if (button("Reset all###reset-keys", {.icon = Icon::rewind,
                                        .enabled = ui.settings.keys.any_changed(),
                                        .tooltip = "Resets all keys to their defaults",
                                        .why_not = "All keys have their defaults"})) {
    ui.settings.keys.reset_all();
    ImGui::MarkIniSettingsDirty();
    tell(change, true, "All keys have their defaults.");
  }
  message(ui, all);
  ImGui::BeginChild("keys-of-actions", {0, 0}, ImGuiChildFlags_NavFlattened);
  const float full = ImGui::GetContentRegionAvail().x;
  bool any = false;
  for (int menu = 0; menu < kMenus; ++menu) {
    bool first = true;
    for (const Action& action : all) {
      const std::string words = action.title + " " + title_of(action.scope) + " " + key_text(ui.settings.keys.of(action.id));
      if (static_cast<int>(action.menu) != menu || !KeyBindings::known(action.id) || fuzzy_score(change.search, words) < 0) continue;
      if (std::exchange(first, false)) {
        if (any) ImGui::Dummy({0, em(0.4f)});
        card_title(title_of(static_cast<Menu>(menu)));
      }
      any = true;
      key_row(ui, action, full);
    }
  }
  if (!any) text_dim("No match. Try fewer letters.");
  ImGui::EndChild();
}

}  // namespace comera::studio
