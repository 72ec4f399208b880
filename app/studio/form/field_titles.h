// Names of settings for people, with the unit where there is one; the help of a field says the rest.
#pragma once
#include <string>

namespace comera::studio {

// Of a setting by its path. One that is not in the table is named after the last part of its path.
std::string title_of_field(const std::string& path);
// Of a group of settings.
std::string title_of_group(const std::string& path);

}  // namespace comera::studio
