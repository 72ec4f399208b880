#include "app/studio/key_bindings.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "app/studio/action_table.h"

namespace comera::studio {
namespace {

const ShippedKeys* find(const std::string& id) {
  const std::vector<ShippedKeys>& all = shipped_keys();
  const auto found = std::find_if(all.begin(), all.end(), [&](const ShippedKeys& one) { return one.id == id; });
  return found == all.end() ? nullptr : &*found;
}

ImGuiKey key_of(ImGuiKeyChord keys) { return static_cast<ImGuiKey>(keys & ~ImGuiMod_Mask_); }

struct KeyName {
  ImGuiKey key;
  const char* text;
};
constexpr KeyName kNames[] = {{ImGuiKey_Equal, "="},        {ImGuiKey_Minus, "-"},          {ImGuiKey_LeftBracket, "["},
                              {ImGuiKey_RightBracket, "]"}, {ImGuiKey_Comma, ","},          {ImGuiKey_Period, "."},
                              {ImGuiKey_Slash, "/"},        {ImGuiKey_Backslash, "\\"},     {ImGuiKey_Semicolon, ";"},
                              {ImGuiKey_Apostrophe, "'"},   {ImGuiKey_GraveAccent, "`"},    {ImGuiKey_LeftArrow, "Left"},
                              {ImGuiKey_UpArrow, "Up"},     {ImGuiKey_RightArrow, "Right"}, {ImGuiKey_DownArrow, "Down"},
                              {ImGuiKey_Escape, "Esc"},     {ImGuiKey_Delete, "Del"}};
constexpr std::pair<ImGuiKey, const char*> kMods[] = {{ImGuiMod_Ctrl, "Ctrl+"}, {ImGuiMod_Shift, "Shift+"}, {ImGuiMod_Alt, "Alt+"}};
constexpr ImGuiKeyChord kQuestionMark = ImGuiMod_Shift | ImGuiKey_Slash;

bool of_keyboard(ImGuiKey key) {
  return key >= ImGuiKey_NamedKey_BEGIN && key < ImGuiKey_GamepadStart && !(key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper);
}

std::string name_of(ImGuiKey key) {
  for (const KeyName& name : kNames)
    if (name.key == key) return name.text;
  return ImGui::GetKeyName(key);
}

// Keys that move the focus among controls or press them.
bool moves(ImGuiKeyChord keys) {
  constexpr ImGuiKey kMoving[] = {ImGuiKey_Space, ImGuiKey_LeftArrow, ImGuiKey_RightArrow, ImGuiKey_UpArrow, ImGuiKey_DownArrow,
                                  ImGuiKey_Home,  ImGuiKey_End,       ImGuiKey_PageUp,     ImGuiKey_PageDown};
  return (keys & (ImGuiMod_Ctrl | ImGuiMod_Alt)) == 0 &&
         std::find(std::begin(kMoving), std::end(kMoving), key_of(keys)) != std::end(kMoving);
}

}  // namespace

const std::vector<ShippedKeys>& shipped_keys() {
  static const std::vector<ShippedKeys> kAll = [] {
    std::vector<ShippedKeys> all;
    const auto nothing = std::make_unique<UiState>();
    for (const Action& action : actions(*nothing)) all.push_back({action.id, action.shipped_keys, action.scope, action.repeats});
    return all;
  }();
  return kAll;
}

const char* title_of(KeyScope scope) {
  switch (scope) {
    case KeyScope::window:
      break;
    case KeyScope::form:
      return "in the form of a new run";
    case KeyScope::runs:
      return "in the list of runs";
    case KeyScope::timeline:
      return "in the timeline";
    case KeyScope::compare:
      return "in the comparison";
    case KeyScope::diagram:
      return "in the diagram";
  }
  return "";
}

std::string key_text(ImGuiKeyChord keys) {
  if (keys == 0) return "";
  if (keys == kQuestionMark) return "?";
  std::string text;
  for (const auto& [mod, name] : kMods)
    if (keys & mod) text += name;
  return text + name_of(key_of(keys));
}

std::optional<ImGuiKeyChord> keys_of_text(const std::string& text) {
  if (text.empty()) return 0;
  if (text == "?") return kQuestionMark;
  ImGuiKeyChord keys = 0;
  std::string rest = text;
  for (const auto& [mod, name] : kMods)
    if (rest.starts_with(name)) {
      keys |= mod;
      rest = rest.substr(std::string(name).size());
    }
  for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_GamepadStart; ++key)
    if (of_keyboard(static_cast<ImGuiKey>(key)) && name_of(static_cast<ImGuiKey>(key)) == rest) return keys | key;
  return {};
}

ImGuiKeyChord pressed_keys() {
  for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_GamepadStart; ++key)
    if (of_keyboard(static_cast<ImGuiKey>(key)) && ImGui::IsKeyPressed(static_cast<ImGuiKey>(key), false))
      return ImGui::GetIO().KeyMods | key;
  return 0;
}

ImGuiKeyChord KeyBindings::of(const std::string& id, ImGuiKeyChord shipped) const {
  const auto found = changed_.find(id);
  return found == changed_.end() ? shipped : found->second;
}

ImGuiKeyChord KeyBindings::of(const std::string& id) const {
  const ShippedKeys* action = find(id);
  return action ? of(id, action->keys) : 0;
}

bool KeyBindings::known(const std::string& id) { return find(id) != nullptr; }

std::string KeyBindings::refusal(const std::string& id, ImGuiKeyChord keys) const {
  const ShippedKeys* action = find(id);
  if (!action) return "Unknown action";
  if (keys == 0 || keys == action->keys) return "";
  const std::string name = name_of(key_of(keys));
  if (keys & ImGuiMod_Super) return "The desktop reserves keys with Super";
  switch (key_of(keys)) {
    case ImGuiKey_Escape:
      return "Esc closes dialogs";
    case ImGuiKey_Tab:
      return "Tab moves between controls and Ctrl+Tab between panels";
    case ImGuiKey_Enter:
    case ImGuiKey_KeypadEnter:
      return "Enter activates the focused control";
    default:
      break;
  }
  if (moves(keys) && (action->scope == KeyScope::window || action->scope == KeyScope::form))
    return name + " moves between controls or activates them: combine it with Ctrl or Alt";
  return "";
}

std::string KeyBindings::holder(const std::string& id, ImGuiKeyChord keys) const {
  const ShippedKeys* action = find(id);
  if (!action || keys == 0) return "";
  for (const ShippedKeys& other : shipped_keys())
    if (other.id != id && other.scope == action->scope && of(other.id, other.keys) == keys) return other.id;
  return "";
}

std::string KeyBindings::shadowed(const std::string& id, ImGuiKeyChord keys) const {
  const ShippedKeys* action = find(id);
  if (!action || keys == 0) return "";
  for (const ShippedKeys& other : shipped_keys()) {
    const bool meet = (other.scope == KeyScope::window) != (action->scope == KeyScope::window);
    if (meet && of(other.id, other.keys) == keys) return other.id;
  }
  return "";
}

void KeyBindings::bind(const std::string& id, ImGuiKeyChord keys) {
  const ShippedKeys* action = find(id);
  if (!action) return;
  if (keys == action->keys)
    changed_.erase(id);
  else
    changed_[id] = keys;
}

void KeyBindings::swap(const std::string& id, const std::string& other) {
  const ImGuiKeyChord mine = of(id), its = of(other);
  bind(id, its);
  bind(other, mine);
}

void KeyBindings::reset(const std::string& id) {
  const ShippedKeys* action = find(id);
  if (!action) return;
  const std::string has = holder(id, action->keys);
  changed_.erase(id);
  if (has.empty()) return;
  const ImGuiKeyChord its = find(has)->keys;
  bind(has, holder(has, its).empty() ? its : 0);
}

std::map<std::string, std::string> KeyBindings::stored() const {
  std::map<std::string, std::string> out;
  for (const auto& [id, keys] : changed_) out[id] = key_text(keys);
  return out;
}

void KeyBindings::restore(const std::map<std::string, std::string>& stored) {
  changed_.clear();
  for (const auto& [id, text] : stored) {
    const std::optional<ImGuiKeyChord> keys = keys_of_text(text);
    if (keys && find(id) && refusal(id, *keys).empty()) bind(id, *keys);
  }
  std::map<std::pair<KeyScope, ImGuiKeyChord>, std::string> taken;
  for (const ShippedKeys& action : shipped_keys())
    if (is_changed(action.id) && of(action.id) != 0 && !taken.emplace(std::pair(action.scope, of(action.id)), action.id).second)
      changed_.erase(action.id);
  // Keys of the user have priority over defaults.
  for (const ShippedKeys& action : shipped_keys())
    if (!is_changed(action.id) && taken.contains(std::pair(action.scope, action.keys))) changed_[action.id] = 0;
}

std::string with_key(const KeyBindings& keys, const std::string& text, const std::string& id) {
  const std::string key = key_text(keys.of(id));
  return key.empty() ? text : text + " (" + key + ")";
}

}  // namespace comera::studio
