#pragma once
#include <chrono>

namespace comera {

// Milliseconds of a clock that never goes back, for differences.
inline double now_ms() { return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace comera
