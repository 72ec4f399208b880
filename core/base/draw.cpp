#include "core/base/draw.h"

#include <cmath>

namespace comera {
namespace {

// 32 random bits as a double in (0, 1] and [0, 1): finer than the float helpers of rng.h, so that f64 runs start from
// numbers with a full tail.
double open_uniform(uint32_t word) { return (static_cast<double>(word) + 1.0) * 0x1p-32; }
double half_uniform(uint32_t word) { return static_cast<double>(word) * 0x1p-32; }

}  // namespace

uint32_t site_of(const std::string& name) {  // FNV-1a
  uint32_t hash = 2166136261u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash;
}

std::vector<double> draw_normals(const Philox& random, size_t count) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  std::vector<double> values(count);
  for (size_t i = 0; i < count; i += 2) {  // Box-Muller: two normals from two words
    const Philox::Block words = random.draw(i / 4);
    const size_t j = i % 4;
    const double radius = std::sqrt(-2 * std::log(open_uniform(words.v[j]))), angle = kTwoPi * half_uniform(words.v[j + 1]);
    values[i] = radius * std::cos(angle);
    if (i + 1 < count) values[i + 1] = radius * std::sin(angle);
  }
  return values;
}

std::vector<double> draw_uniforms(const Philox& random, size_t count) {
  std::vector<double> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = 2 * half_uniform(random.word(i)) - 1;
  return values;
}

}  // namespace comera
