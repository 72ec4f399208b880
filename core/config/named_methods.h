// Methods by name: "galore", "comera", or several joined by +: "comera+adam8bit+mesa". Each part sets its own axis of a method, so what
// combines needs no name of its own.
#pragma once
#include <vector>

#include "core/config/config.h"

namespace comera {

struct NamedMethod {
  std::string id;       // "comera+adam8bit"
  std::string title;    // for menus
  std::string summary;  // a sentence or two
  MethodConfig config;  // built-in settings with this method
};

// In the order of menus: every single name, then combinations that were published or are often used.
const std::vector<NamedMethod>& named_methods();
// One of them. Throws Error(not_found) that names the nearest.
const NamedMethod& find_method(const std::string& id);

// Replaces the method of a config by one or more names. Settings of its axes (method.optimizer, method.galore.rank ...) stay as they
// are; a part that needs some at special values ("apollo-mini") sets those, and they go back when another method takes its place.
// Throws Error(config) for an unknown name, which names the nearest, and where two parts are of the same axis.
void set_method(MethodConfig& config, const std::string& name);
// The same; models of blocks whose matrices become tensor trains recompute their wide outputs (method.waist).
void set_method(RunConfig& config, const std::string& name);

// The name in named_methods() that a config has: it would change nothing; "" = none. Of two the last, which names more settings.
std::string name_of_method(const MethodConfig& config);

}  // namespace comera
