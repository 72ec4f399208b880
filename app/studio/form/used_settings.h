// Which settings a config has a use of.
#pragma once
#include <string>

#include "core/train/config.h"

namespace comera::studio {

// Why a config has no use of a setting, or of a whole group of them, as "weights are dense"; null: it has.
const char* unused_setting(const RunConfig& config, const std::string& path);

}  // namespace comera::studio
