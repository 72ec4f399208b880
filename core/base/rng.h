// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011): a value is a pure function of
// (seed, step, site, index), so dropout masks are recomputed instead of stored, runs reproduce bit for bit,
// and CPU and GPU draw the same numbers. No state, no global generator.
#pragma once
#include <cstdint>

#include "core/base/hd.h"

namespace comera {

struct Philox {
  uint64_t seed = 0;
  uint32_t step = 0;  // the training step; 0 for initialisation
  uint32_t site = 0;  // which place in the program asks: every drawing site has a number of its own

  struct Block {
    uint32_t v[4];
    HD uint32_t word(uint64_t i) const { return i & 2 ? (i & 1 ? v[3] : v[2]) : (i & 1 ? v[1] : v[0]); }  // i % 4
  };

  // Four independent 32-bit words for counter `block`.
  HD Block draw(uint64_t block) const {
    uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32), c2 = step, c3 = site;
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint64_t p0 = 0xD2511F53ull * c0, p1 = 0xCD9E8D57ull * c2;
      const uint32_t n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
      c1 = static_cast<uint32_t>(p1);
      c3 = static_cast<uint32_t>(p0);
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }

  // Word `index` of the stream: word index%4 of block index/4.
  HD uint32_t word(uint64_t index) const { return draw(index >> 2).word(index); }
};

// A 32-bit word as a uniform in (0, 1]; never 0, so its logarithm is finite.
HD float uniform_open(uint32_t word) { return (static_cast<float>(word >> 8) + 1.0f) * (1.0f / 16777216.0f); }
// A 32-bit word as a uniform in [0, 1).
HD float uniform_half(uint32_t word) { return static_cast<float>(word >> 8) * (1.0f / 16777216.0f); }

}  // namespace comera
