// The register tile of products with short sides, in floats: sum[r][v] += a(r, p) * b(p, v) over p. Each file that includes it has its own,
// since tests compile one of them for another processor.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#if defined(__FMA__)
#include <immintrin.h>
#endif

namespace comera {
namespace {

#if defined(__AVX512F__)
constexpr int kLanes = 16;      // floats of a register
constexpr int kMaxVectors = 4;  // registers side by side
constexpr int kMaxRows = 8;
constexpr int rows_of(int vectors) { return vectors < 4 ? 8 : 6; }  // tile + panel within 32 registers, no spill
#else
constexpr int kLanes = 8;
constexpr int kMaxVectors = 2;
constexpr int kMaxRows = 6;
constexpr int rows_of(int) { return 6; }  // within 16 registers
#endif
#if defined(__FMA__)
constexpr bool kUsable = true;
#else
constexpr bool kUsable = false;
#endif

typedef float Vector __attribute__((vector_size(4 * kLanes)));

Vector load(const float* x) {
  Vector v;
  __builtin_memcpy(&v, x, sizeof v);
  return v;
}
void store(float* x, Vector v) { __builtin_memcpy(x, &v, sizeof v); }
// a * b + sum with one rounding at any optimisation level, as in OpenBLAS, which computes the same products for other shapes.
Vector multiply_add(float a, Vector b, Vector sum) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(_mm512_set1_ps(a), b, sum);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(_mm256_set1_ps(a), b, sum);
#else
  return a * b + sum;
#endif
}

constexpr int64_t kPanel = kLanes * kMaxVectors;

struct Tile {
  const float* a;
  int64_t a_row, a_step;  // a(r, p) = a[r * a_row + p * a_step]
  const float* b;
  int64_t b_step;  // b(p, v) = the vector at b[p * b_step + v * kLanes]
  int64_t k;
};

// out (kRows x kVectors vectors, row step ldo) = products, or += when `add`.
template <int kRows, int kVectors>
void multiply(const Tile& tile, float* out, int64_t ldo, bool add) {
  Vector sum[kRows][kVectors] = {};
  const float *a = tile.a, *b = tile.b;
  const int64_t a_row = tile.a_row, a_step = tile.a_step, b_step = tile.b_step;
  for (int64_t p = tile.k; p > 0; --p, a += a_step, b += b_step) {
    Vector from[kVectors];
    for (int v = 0; v < kVectors; ++v) from[v] = load(b + v * kLanes);
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) sum[r][v] = multiply_add(a[r * a_row], from[v], sum[r][v]);
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      float* to = out + r * ldo + v * kLanes;
      store(to, add ? load(to) + sum[r][v] : sum[r][v]);
    }
}

using Multiply = void (*)(const Tile&, float*, int64_t, bool);

struct Table {
  Multiply at[kMaxVectors + 1][kMaxRows + 1] = {};
};
template <int kVectors, int... kRow>
constexpr void fill_rows(Table& table, std::integer_sequence<int, kRow...>) {
  ((table.at[kVectors][kRow + 1] = multiply<kRow + 1, kVectors>), ...);
}
template <int... kVector>
constexpr Table table_of(std::integer_sequence<int, kVector...>) {
  Table table;
  (fill_rows<kVector + 1>(table, std::make_integer_sequence<int, rows_of(kVector + 1)>{}), ...);
  return table;
}
constexpr Table kTable = table_of(std::make_integer_sequence<int, kMaxVectors>{});

// A matrix of m rows whose columns are whole vectors.
// out (m, vectors) = sum over p < k of a(i, p) b(p), or += where `add`.
[[maybe_unused]] void product(Tile tile, int64_t m, int64_t vectors, float* out, int64_t ldo, bool add) {
  const float *a = tile.a, *b = tile.b;
  for (int64_t v = 0; v < vectors; v += kMaxVectors) {
    const auto width = static_cast<int>(std::min<int64_t>(kMaxVectors, vectors - v));
    const int64_t step = rows_of(width);
    tile.b = b + v * kLanes;
    for (int64_t row = 0; row < m; row += step) {
      tile.a = a + row * tile.a_row;
      kTable.at[width][std::min(step, m - row)](tile, out + row * ldo + v * kLanes, ldo, add);
    }
  }
}

// ---- packing -----------------------------------------------------------------------------------------------------
// The short operand: element (p, j) at data[p * p_step + j * j_step].
template <class T>
struct ShortOf {
  const T* data;
  int64_t p_step, j_step;
};
using Short = ShortOf<float>;

// to (depth x width) = x's elements (p, j), j < count, and zeros.
template <class T>
void pack(T* to, int64_t width, const ShortOf<T>& x, int64_t p0, int64_t depth, int64_t j0, int64_t count) {
  const T* from = x.data + p0 * x.p_step + j0 * x.j_step;
  if (x.j_step == 1) {
    for (int64_t p = 0; p < depth; ++p, to += width, from += x.p_step) {
      for (int64_t j = 0; j < count; ++j) to[j] = from[j];
      for (int64_t j = count; j < width; ++j) to[j] = 0;
    }
    return;
  }
  constexpr int64_t kBlock = 16;  // along p, so that a line that was fetched is used up while it is there
  for (int64_t first = 0; first < depth; first += kBlock) {
    const int64_t last = std::min(depth, first + kBlock);
    for (int64_t j = 0; j < count; ++j)
      for (int64_t p = first; p < last; ++p) to[p * width + j] = from[p * x.p_step + j * x.j_step];
    for (int64_t p = first; p < last; ++p)
      for (int64_t j = count; j < width; ++j) to[p * width + j] = 0;
  }
}

}  // namespace
}  // namespace comera
