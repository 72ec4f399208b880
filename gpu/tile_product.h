// Products of small matrices in a block's shared memory. Every thread of the block must call; the caller syncs before and after. Of two
// products without a sync between them the `second` starts with the other half of the block, so small ones run in parallel.
#pragma once
#include "gpu/group.h"

namespace comera::gpu {

// Row-major with row stride `ld`, or column-major if `turned`. Aligned to 16 bytes, ld a multiple of 4.
template <class T>
struct Tile {
  const T* at;
  int ld;
  bool turned = false;

  KERNEL Tile transposed() const { return {at, ld, !turned}; }
};

// tile (height, width), row stride `tile_ld`, = as(four neighbours) of a matrix (rows, columns) in global memory, row stride `ld`; as(0)
// outside the matrix. width is a multiple of 4. `by_four`: the matrix's rows are aligned to 16 bytes.
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

// c (m, n) = a b, or += if `add`: m even, n and k multiples of 4. A thread computes two rows by four columns and reads four
// contiguous terms at once. Its columns are neighbours where b is row-major, else n / 4 apart: then neighbouring threads read
// neighbouring lines, without bank conflicts.
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
KERNEL void multiply_tiles(const Group& g, T* c, int ldc, bool add, const Tile<T>& a, const Tile<T>& b, int m, int n, int k,
                           bool second = false) {
  if (a.turned)
    b.turned ? multiply_patches<true, true>(g, c, ldc, add, a.at, a.ld, b.at, b.ld, m, n, k, second)
             : multiply_patches<true, false>(g, c, ldc, add, a.at, a.ld, b.at, b.ld, m, n, k, second);
  else
    b.turned ? multiply_patches<false, true>(g, c, ldc, add, a.at, a.ld, b.at, b.ld, m, n, k, second)
             : multiply_patches<false, false>(g, c, ldc, add, a.at, a.ld, b.at, b.ld, m, n, k, second);
}

}  // namespace comera::gpu
