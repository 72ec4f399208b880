// Key bindings: defaults from the table of actions, and changes by the user.
#pragma once
#include <imgui.h>

#include <map>
#include <optional>
#include <string>

namespace comera::studio {

// Scope of the keys of an action: everywhere, or while this is active. The active scope has priority.
enum class KeyScope { window, form, runs, timeline, compare, diagram };
const char* title_of(KeyScope scope);  // "in the timeline"; "" for everywhere

std::string key_text(ImGuiKeyChord keys);  // "Ctrl+Shift+P"; "" for none
// The other way round: 0 for "", nothing for a text that is no key.
std::optional<ImGuiKeyChord> keys_of_text(const std::string& text);
// The key that went down in this frame with the modifiers that are held; 0 = none.
ImGuiKeyChord pressed_keys();

class KeyBindings {
 public:
  // Of an action by its id; 0 = none. `shipped`: what it has when nobody changed it.
  ImGuiKeyChord of(const std::string& id, ImGuiKeyChord shipped) const;
  ImGuiKeyChord of(const std::string& id) const;  // the same, by the table of actions
  bool is_changed(const std::string& id) const { return changed_.contains(id); }
  bool any_changed() const { return !changed_.empty(); }

  // Whether this action always exists: not those of saved layouts.
  static bool known(const std::string& id);
  // Why an action cannot have these keys at all; "" = it can.
  std::string refusal(const std::string& id, ImGuiKeyChord keys) const;
  // The other action that has them where this one works; "" = none.
  std::string holder(const std::string& id, ImGuiKeyChord keys) const;
  // The action that has them in another scope: the active one acts; "" = none.
  std::string shadowed(const std::string& id, ImGuiKeyChord keys) const;

  void bind(const std::string& id, ImGuiKeyChord keys);  // who has them already keeps them: ask holder() first
  void swap(const std::string& id, const std::string& other);
  // Back to the default. Another action that has these keys gets its default back, or none if that is taken.
  void reset(const std::string& id);
  void reset_all() { changed_.clear(); }

  // By id, as text. What is no action, no key, refused or taken twice is left as shipped.
  std::map<std::string, std::string> stored() const;
  void restore(const std::map<std::string, std::string>& stored);

 private:
  std::map<std::string, ImGuiKeyChord> changed_;  // by id
};

// A tooltip or hint with the key of an action after it: "Write a checkpoint (Ctrl+S)".
std::string with_key(const KeyBindings& keys, const std::string& text, const std::string& id);

}  // namespace comera::studio
