// Which settings of a config have an effect.
#pragma once
#include <string>

#include "core/train/config.h"

namespace comera::studio {

// Why a setting or group has no effect, such as "weights are dense"; null = it has one.
const char* unused_setting(const RunConfig& config, const std::string& path);

}  // namespace comera::studio
