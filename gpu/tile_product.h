// Products of small matrices in a block's shared memory: exactly, or with operands that the caller has rounded to TF32
// (tf32_of) on the tensor cores (Group::multiply_tf32). Every thread of the block comes here; what is read must be there (sync)
// before, and what is written is there after the next sync. An element of c is always the same warp's. Of two products without
// a sync between them the `second` begins with the other half of the block, so that small ones are made side by side.
#pragma once
#include "gpu/group.h"

namespace comera::gpu {

// A matrix by rows that lie `ld` apart, or by columns when `turned`. Memory is aligned to 16 bytes, ld a multiple of 4.
template <class T>
struct Tile {
  const T* at;
  int ld;
  bool turned = false;

  KERNEL Tile transposed() const { return {at, ld, !turned}; }
};

// tile (height, width), by rows `tile_ld` apart, = as(four neighbours) of a matrix (rows, columns) in memory, whose rows lie `ld` apart;
// beyond the matrix it is as(0). width is a multiple of 4. `by_four`: the matrix's rows begin at multiples of 16 bytes.
template <class T, class Group, class As>
KERNEL void load_tile(const Group& g, T* tile, int tile_ld, int height, int width, const T* from, int64_t ld, int rows, int columns,
                      bool by_four, const As& as) {
  const int fours = width / 4;
  for (int e = g.thread(); e < height * fours; e += g.threads()) {
    const int r = e / fours, c = e % fours * 4;
    Four<T> four = {};
    if (r < rows && c < columns) four = read_four(from + r * ld, c, columns, by_four && c + 4 <= columns);
    four_at(tile + r * tile_ld + c) = as(four);
  }
}

// c (m, n) = a b, or += where `add`: m even, n and k multiples of 4. A thread takes two rows and four columns at a time and
// reads four terms at once where they lie side by side. The columns are neighbours where b's lie so, else n / 4 apart: then
// neighbouring threads read neighbouring lines, which is what keeps them out of each other's memory banks.
template <bool a_turned, bool b_turned, class T, class Group>
KERNEL void multiply_patches(const Group& g, T* c, int ldc, bool add, const T* a, int lda, const T* b, int ldb, int m, int n, int k,
                             bool second) {
  const int across = n / 4, patches = m / 2 * across;
  for (int patch = second ? (g.thread() + g.threads() / 2) % g.threads() : g.thread(); patch < patches; patch += g.threads()) {
    const int row = patch / across * 2, column = b_turned ? patch % across : patch % across * 4, step = b_turned ? across : 1;
    T sum[2][4] = {};
    for (int j = 0; j < k; j += 4) {
      Four<T> x[2], y[4];  // x[i]: terms of a's row; y[i]: terms of b's column, or columns of b's term
      for (int i = 0; i < 2; ++i)
        if constexpr (a_turned)
          for (int t = 0; t < 4; ++t) x[i].v[t] = a[(j + t) * lda + row + i];
        else
          x[i] = four_at(a + (row + i) * lda + j);
      for (int i = 0; i < 4; ++i) y[i] = four_at(b_turned ? b + (column + i * step) * ldb + j : b + (j + i) * ldb + column);
      for (int i = 0; i < 2; ++i)
        for (int t = 0; t < 4; ++t)
          for (int l = 0; l < 4; ++l) sum[i][l] += x[i].v[t] * (b_turned ? y[l].v[t] : y[t].v[l]);
    }
    for (int i = 0; i < 2; ++i)
      for (int l = 0; l < 4; ++l) {
        T& out = c[(row + i) * ldc + column + l * step];
        out = add ? out + sum[i][l] : sum[i][l];
      }
  }
}

template <class T, class Group>
KERNEL void multiply_exactly(const Group& g, T* c, int ldc, bool add, const Tile<T>& a, const Tile<T>& b, int m, int n, int k,
                             bool second) {
  if (a.turned)
    b.turned ? multiply_patches<true, true>(g, c, ldc, add, a.at, a.ld, b.at, b.ld, m, n, k, second)
             : multiply_patches<true, false>(g, c, ldc, add, a.at, a.ld, b.at, b.ld, m, n, k, second);
  else
    b.turned ? multiply_patches<false, true>(g, c, ldc, add, a.at, a.ld, b.at, b.ld, m, n, k, second)
             : multiply_patches<false, false>(g, c, ldc, add, a.at, a.ld, b.at, b.ld, m, n, k, second);
}

inline constexpr int kTf32Side = 16, kTf32Terms = 8;  // m and n are multiples of the first, k of the second

// As above; `tf32` is of float only.
template <class T, class Group>
KERNEL void multiply_tiles(Group& g, bool tf32, T* c, int ldc, bool add, const Tile<T>& a, const Tile<T>& b, int m, int n, int k,
                           bool second = false) {
  if constexpr (sizeof(T) == sizeof(float))
    if (tf32) return g.multiply_tf32(c, ldc, add, a, b, m, n, k, second);
  multiply_exactly(g, c, ldc, add, a, b, m, n, k, second);
}

}  // namespace comera::gpu
