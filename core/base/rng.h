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
    HD uint32_t half(uint64_t i) const { return word(i >> 1) >> (i & 1 ? 16 : 0) & 0xffffu; }             // i % 8, 16 bits, the lower first
  };

  // Four independent 32-bit words for counter `block`.
  HD Block draw(uint64_t block) const {
    uint32_t c0 = static_cast<uint32_t>(block), c1 = static_cast<uint32_t>(block >> 32), c2 = step, c3 = site;
    uint32_t k0 = static_cast<uint32_t>(seed), k1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const uint32_t n0 = high_of(0xCD9E8D57u, c2) ^ c1 ^ k0, n2 = high_of(0xD2511F53u, c0) ^ c3 ^ k1;
      c1 = 0xCD9E8D57u * c2;
      c3 = 0xD2511F53u * c0;
      c0 = n0;
      c2 = n2;
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    return {{c0, c1, c2, c3}};
  }

  // The upper half of a product, as an instruction of a GPU's own: its compiler makes 64-bit arithmetic of the other way.
  static HD uint32_t high_of(uint32_t a, uint32_t b) {
#ifdef __CUDA_ARCH__
    return __umulhi(a, b);
#else
    return static_cast<uint32_t>(uint64_t{a} * b >> 32);
#endif
  }

  // Word `index` of the stream: word index%4 of block index/4.
  HD uint32_t word(uint64_t index) const { return draw(index >> 2).word(index); }
  // Half `index` of the stream: 16 bits of word index/2.
  HD uint32_t half(uint64_t index) const { return draw(index >> 3).half(index); }
};

// A 32-bit word as a uniform in (0, 1]; never 0, so its logarithm is finite.
HD float uniform_open(uint32_t word) { return (static_cast<float>(word >> 8) + 1.0f) * (1.0f / 16777216.0f); }
// A 32-bit word as a uniform in [0, 1).
HD float uniform_half(uint32_t word) { return static_cast<float>(word >> 8) * (1.0f / 16777216.0f); }

}  // namespace comera
