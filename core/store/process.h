// Who is writing a run: process id and boot id (writer_lock.h), so that a crash shows as `interrupted`, not as running.
#pragma once
#include <cstdint>
#include <string>

namespace comera {

inline constexpr double kHeartbeatFreshS = 10;  // five missed beats

double now_s();  // seconds since 1970, UTC
int64_t own_pid();
const std::string& boot_id();  // of this boot of the machine; "" when the system does not tell

// `length` random characters of Crockford's base 32 in lower case: no i, l, o, u, so ids can be read aloud.
std::string random_text(int length);

}  // namespace comera
