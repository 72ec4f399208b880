// Libraries that the program opens when they are needed, so that all else runs without what they link.
#pragma once
#include <string>

namespace comera {

// Where libcomera_X.so is: next to the program, or in ../lib/comera, where it is installed. Empty where it is in neither.
std::string module_path(const char* file);

}  // namespace comera
