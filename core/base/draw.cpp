#include "core/base/draw.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace comera {
namespace {

// 32 random bits as a double in (0, 1] and [0, 1): finer than the float helpers of rng.h, so that f64 runs start from
// numbers with a full tail.
double open_uniform(uint32_t word) { return (static_cast<double>(word) + 1.0) * 0x1p-32; }
double half_uniform(uint32_t word) { return static_cast<double>(word) * 0x1p-32; }

// Gram-Schmidt, twice, so that rounding leaves nothing of the lines before. Normal lines become evenly distributed ones.
void orthonormalise(std::vector<double>& lines, size_t count, size_t length) {
  for (size_t i = 0; i < count; ++i) {
    double* line = lines.data() + i * length;
    for (int pass = 0; pass < 2; ++pass)
      for (size_t before = 0; before < i; ++before) {
        const double* other = lines.data() + before * length;
        const double along = std::inner_product(line, line + length, other, 0.0);
        for (size_t k = 0; k < length; ++k) line[k] -= along * other[k];
      }
    const double norm = std::sqrt(std::inner_product(line, line + length, line, 0.0));
    for (size_t k = 0; k < length; ++k) line[k] /= norm;
  }
}

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

std::vector<double> draw_orthonormal(const Philox& random, size_t matrices, size_t rows, size_t columns) {
  std::vector<double> values = draw_normals(random, matrices * rows * columns);
  const size_t count = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<double> lines(count * length);  // rows, or columns
  for (size_t matrix = 0; matrix < matrices; ++matrix) {
    double* const first = values.data() + matrix * rows * columns;
    const auto at = [&](size_t line, size_t k) -> double& {
      return rows <= columns ? first[line * columns + k] : first[k * columns + line];
    };
    for (size_t i = 0; i < lines.size(); ++i) lines[i] = at(i / length, i % length);
    orthonormalise(lines, count, length);
    for (size_t i = 0; i < lines.size(); ++i) at(i / length, i % length) = lines[i];
  }
  return values;
}

}  // namespace comera
