// The order of an epoch: a pseudo-random permutation of 0..rows-1 that needs no table. It is a balanced Feistel
// network over 2*half bits (Luby and Rackoff 1988); a result outside 0..rows-1 is fed in again until it is inside
// ("cycle walking", Black and Rogaway 2002), which keeps it a permutation. At most 4 walks on average, as the
// network's range is less than 4*rows.
#pragma once
#include <cstdint>

#include "core/base/rng.h"

namespace comera {

inline constexpr uint32_t kShuffleSite = 0x64617461;                           // "data": the layers' random sites count up from 1
inline constexpr uint32_t kMaskSite = 0x6d61736b, kMaskedAsSite = 0x6d61736c;  // "mask", "masl"
inline constexpr uint32_t kTokenDropoutSite = 0x64726f70;                      // "drop"
inline constexpr int kFeistelRounds = 8;                                       // 4 suffice for large ranges; small ones mix slower

// Row at place `place` (0..rows-1) of epoch `epoch`.
inline int64_t shuffled_row(int64_t place, int64_t rows, uint64_t seed, int64_t epoch) {
  int half = 1;  // bits
  while ((int64_t{1} << (2 * half)) < rows) ++half;
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << half) - 1);
  const Philox random{seed, static_cast<uint32_t>(epoch), kShuffleSite};
  auto value = static_cast<uint64_t>(place);
  do {
    auto left = static_cast<uint32_t>(value >> half), right = static_cast<uint32_t>(value) & mask;
    for (int round = 0; round < kFeistelRounds; ++round) {
      const uint32_t next = left ^ (random.draw(static_cast<uint64_t>(round) << 32 | right).v[0] & mask);
      left = right;
      right = next;
    }
    value = static_cast<uint64_t>(left) << half | right;
  } while (value >= static_cast<uint64_t>(rows));
  return static_cast<int64_t>(value);
}

}  // namespace comera
