// Many words of a Philox stream at once. The lanes of a vector are consecutive counters; each state word sits in
// the low half of a 64-bit lane, where the 32 x 32 -> 64 bit product of a round finds its operands without shuffles.
#pragma once
#include <bit>
#include <cstdint>

#include "core/base/rng.h"
#include "core/base/rounding.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace comera {

namespace philox_detail {

#if defined(__AVX512F__)
inline constexpr int kLanes = 8;
typedef uint64_t Lanes __attribute__((vector_size(8 * kLanes)));
inline constexpr Lanes kIota = {0, 1, 2, 3, 4, 5, 6, 7};
#else
inline constexpr int kLanes = 4;
typedef uint64_t Lanes __attribute__((vector_size(8 * kLanes)));
inline constexpr Lanes kIota = {0, 1, 2, 3};
#endif

// Product of the low halves. The upper half of each factor is ignored, so nothing has to be masked between rounds.
inline Lanes multiply(Lanes a, Lanes b) {
#if defined(__AVX512F__)
  return reinterpret_cast<Lanes>(_mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif defined(__AVX2__)
  return reinterpret_cast<Lanes>(_mm256_mul_epu32(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#else
  return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

// Interleaves a = a0 a1 .. and b = b0 b1 .. to a0 b0 a1 b1 ..
inline void store_interleaved(uint32_t* out, Lanes a, Lanes b) {
#if defined(__AVX512F__)
  const Lanes low = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11),
              high = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
  const Lanes low = __builtin_shufflevector(a, b, 0, 4, 1, 5), high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
#endif
  __builtin_memcpy(out, &low, sizeof low);
  __builtin_memcpy(out + 2 * kLanes, &high, sizeof high);
}

// The blocks first .. first + kVectors * kLanes - 1. Several vectors side by side hide the latency of the products.
template <int kVectors>
inline void draw(const Philox& stream, uint64_t first, uint32_t* out) {
  Lanes c0[kVectors], c1[kVectors], c2[kVectors], c3[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    c0[v] = kIota + (first + static_cast<uint64_t>(v * kLanes));
    c1[v] = c0[v] >> 32;
    c2[v] = Lanes{} + stream.step;
    c3[v] = Lanes{} + stream.site;
  }
  uint32_t k0 = static_cast<uint32_t>(stream.seed), k1 = static_cast<uint32_t>(stream.seed >> 32);
  const Lanes m0 = Lanes{} + 0xD2511F53ull, m1 = Lanes{} + 0xCD9E8D57ull;
  for (int round = 0; round < 10; ++round) {
    const Lanes key0 = Lanes{} + uint64_t{k0}, key1 = Lanes{} + uint64_t{k1};
    for (int v = 0; v < kVectors; ++v) {
      const Lanes p0 = multiply(c0[v], m0), p1 = multiply(c2[v], m1);
      c0[v] = (p1 >> 32) ^ c1[v] ^ key0;
      c2[v] = (p0 >> 32) ^ c3[v] ^ key1;
      c1[v] = p1;
      c3[v] = p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int v = 0; v < kVectors; ++v)
    store_interleaved(out + v * 4 * kLanes, (c0[v] & 0xffffffffu) | (c1[v] << 32), (c2[v] & 0xffffffffu) | (c3[v] << 32));
}

}  // namespace philox_detail

// out[i] = stream.word(first + i) for i < count, rounded up: `out` has room for philox_room(count) words and
// `first` is moved down to a whole block. Returns where word `first` lies in `out`.
inline constexpr int64_t kPhiloxGroup = 4 * 4 * philox_detail::kLanes;  // words of one unrolled round
constexpr int64_t philox_room(int64_t count) { return round_up(count + 3, kPhiloxGroup); }

inline const uint32_t* philox_words(const Philox& stream, uint64_t first, int64_t count, uint32_t* out) {
  const int64_t skip = static_cast<int64_t>(first & 3);
  uint64_t block = first >> 2;
  int64_t done = 0;
  for (; done + kPhiloxGroup / 2 < count + skip; done += kPhiloxGroup, block += kPhiloxGroup / 4)
    philox_detail::draw<4>(stream, block, out + done);
  if (done < count + skip) philox_detail::draw<2>(stream, block, out + done);
  return out + skip;
}

// The same for 16-bit halves of words: out[i] = stream.half(first + i). `out` has room for philox_halves_room(count).
constexpr int64_t philox_halves_room(int64_t count) { return 2 * philox_room(count / 2 + 1); }

inline const uint16_t* philox_halves(const Philox& stream, uint64_t first, int64_t count, uint16_t* out) {
  static_assert(std::endian::native == std::endian::little, "a word's lower half comes first");
  uint32_t* const words = reinterpret_cast<uint32_t*>(out);  // written by copies of bytes
  const auto skip = static_cast<int64_t>(first & 1);
  return reinterpret_cast<const uint16_t*>(philox_words(stream, first >> 1, ceil_div(count + skip, int64_t{2}), words)) + skip;
}

}  // namespace comera
