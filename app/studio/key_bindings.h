// Key bindings: defaults from the table of actions, and changes by the user.
#pragma once
#include <imgui.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace comera::studio {

// Scope of an action's keys: the whole window, or one part of it while that is active. The active part has priority.
enum class KeyScope { window, form, runs, timeline, compare, diagram };
const char* title_of(KeyScope scope);  // "in the timeline"; "" for everywhere

std::string key_text(ImGuiKeyChord keys);  // "Ctrl+Shift+P"; "" for none
// Inverse of key_text(): 0 for "", nullopt for a text that is not a key.
std::optional<ImGuiKeyChord> keys_of_text(const std::string& text);
// The key pressed in this frame, with the held modifiers; 0 = none.
ImGuiKeyChord pressed_keys();

struct ShippedKeys {
  std::string id;  // of the action
  ImGuiKeyChord keys;
  KeyScope scope;
  bool repeats;
};
// The actions that exist in every state of the window (all but saved layouts), in the order of the table.
const std::vector<ShippedKeys>& shipped_keys();

class KeyBindings {
 public:
  // Keys of an action by its id; 0 = none. `shipped`: its default keys.
  ImGuiKeyChord of(const std::string& id, ImGuiKeyChord shipped) const;
  ImGuiKeyChord of(const std::string& id) const;  // same, with the default from the table of actions
  bool is_changed(const std::string& id) const { return changed_.contains(id); }
  bool any_changed() const { return !changed_.empty(); }

  // Whether an action with this id always exists; false for saved layouts.
  static bool known(const std::string& id);
  // Why an action cannot have these keys at all; "" = allowed.
  std::string refusal(const std::string& id, ImGuiKeyChord keys) const;
  // The other action that has these keys in the same scope; "" = none.
  std::string holder(const std::string& id, ImGuiKeyChord keys) const;
  // The action that has these keys in another scope, where the active scope has priority; "" = none.
  std::string shadowed(const std::string& id, ImGuiKeyChord keys) const;

  void bind(const std::string& id, ImGuiKeyChord keys);  // an action that already has these keys keeps them: check holder() first
  void swap(const std::string& id, const std::string& other);
  // Resets an action to its default keys. Another action that has these keys returns to its own default, or to no keys if that is taken.
  void reset(const std::string& id);
  void reset_all() { changed_.clear(); }

  // Changed bindings by action id, as text. restore() ignores unknown actions, invalid, refused and duplicate keys.
  std::map<std::string, std::string> stored() const;
  void restore(const std::map<std::string, std::string>& stored);

 private:
  std::map<std::string, ImGuiKeyChord> changed_;  // by action id
};

// A tooltip or hint followed by the keys of an action: "Write a checkpoint (Ctrl+S)".
std::string with_key(const KeyBindings& keys, const std::string& text, const std::string& id);

}  // namespace comera::studio
