// What the choices of a setting mean, in a line each, for those whose names do not say it.
#pragma once
#include <string>

namespace comera::studio {

// "" when there is nothing to say of it.
std::string about_choice(const std::string& path, const std::string& choice);

}  // namespace comera::studio
