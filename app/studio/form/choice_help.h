// One line of help per choice of a setting.
#pragma once
#include <string>

namespace comera::studio {

// Help on one choice of the setting; "" = none.
std::string about_choice(const std::string& path, const std::string& choice);

}  // namespace comera::studio
