// The table of methods: recipes with a name. Each is a MethodConfig to start from; every field can be changed.
#pragma once
#include <vector>

#include "core/config/method.h"

namespace comera {

struct MethodRecipe {
  const char* id;       // "comera+adam8bit"
  const char* title;    // for menus
  const char* summary;  // one line
  MethodConfig config;
};

const std::vector<MethodRecipe>& methods();  // in display order
// Throws Error(not_found) that names the nearest recipe.
const MethodRecipe& find_method(const std::string& id);

}  // namespace comera
