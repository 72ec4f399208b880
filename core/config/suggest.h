// Values that would fit, for a form: what is chosen where a list of modes is empty, and the nearest value that is right
// where one is wrong.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/config/config.h"

namespace comera {

// By path (model.tt.attention.in_modes): balanced modes of the matrices of that kind, as they are chosen when the list is
// empty. A kind whose layers have different sizes is not in it, nor one the model does not have.
std::map<std::string, std::vector<int64_t>> chosen_modes(const RunConfig& config);

// JSON text of the nearest value of a setting that is right while all others stay as they are; "" = none is known.
std::string nearest_value(const RunConfig& config, const std::string& path);

}  // namespace comera
