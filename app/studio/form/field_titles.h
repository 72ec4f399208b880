// Titles of settings, with units; the help of a field has the details.
#pragma once
#include <string>

namespace comera::studio {

// Title of a setting; default: the last part of its path.
std::string title_of_field(const std::string& path);
// Title of a group of settings.
std::string title_of_group(const std::string& path);

}  // namespace comera::studio
