// Many small products, and many small copies of matrices, each as one kernel.
#pragma once
#include "gpu/entry_list.h"

namespace comera::gpu {

// c (m, n) = alpha op(a) op(b) + beta c, matrices by rows.
template <class T>
struct ProductEntry {
  T* c;
  const T *a, *b;
  int64_t m, n, k, ldc, lda, ldb, first;
  T alpha, beta;
  bool ta, tb;
};

// A piece is a square tile of a c. What it needs of a and b comes through shared memory, kSide terms at a time; the sums
// lie there too, each always the same thread's, and grow in the order of the terms whatever the launch.
template <class T>
struct SmallProducts {
  static constexpr int kSide = 32, kLine = kSide + 1;  // one more, so that a column is not all in one memory bank
  static constexpr int64_t kSharedBytes = (2 * kSide * kLine + kSide * kSide) * static_cast<int64_t>(sizeof(T));
  EntryList<ProductEntry<T>, 256> list;

  static int64_t tiles(int64_t m, int64_t n) { return pieces_of(m, kSide) * pieces_of(n, kSide); }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    T *tile_a = g.template shared<T>(), *tile_b = tile_a + kSide * kLine, *sums = tile_b + kSide * kLine;
    for (int64_t piece = g.block(); piece < list.pieces; piece += g.blocks()) {
      const ProductEntry<T>& p = list.of(piece);
      const int64_t across = pieces_of(p.n, kSide), row = (piece - p.first) / across * kSide, column = (piece - p.first) % across * kSide;
      for (int i = g.thread(); i < kSide * kSide; i += g.threads()) sums[i] = 0;
      for (int64_t term = 0; term < p.k; term += kSide) {
        // Neighbouring threads take what lies side by side.
        for (int i = g.thread(); i < kSide * kSide; i += g.threads()) {
          const int slow = i / kSide, fast = i % kSide;
          const int64_t r = row + (p.ta ? fast : slow), ka = term + (p.ta ? slow : fast);
          tile_a[p.ta ? fast * kLine + slow : slow * kLine + fast] =
              r < p.m && ka < p.k ? p.a[p.ta ? ka * p.lda + r : r * p.lda + ka] : T(0);
          const int64_t c = column + (p.tb ? slow : fast), kb = term + (p.tb ? fast : slow);
          tile_b[p.tb ? fast * kLine + slow : slow * kLine + fast] =
              c < p.n && kb < p.k ? p.b[p.tb ? c * p.ldb + kb : kb * p.ldb + c] : T(0);
        }
        g.sync();
        for (int i = g.thread(); i < kSide * kSide; i += g.threads()) {
          const T *left = tile_a + i / kSide * kLine, *right = tile_b + i % kSide;
          T sum = 0;
          for (int j = 0; j < kSide; ++j) sum += left[j] * right[j * kLine];
          sums[i] += sum;
        }
        g.sync();
      }
      for (int i = g.thread(); i < kSide * kSide; i += g.threads()) {
        const int64_t r = row + i / kSide, c = column + i % kSide;
        if (r >= p.m || c >= p.n) continue;
        T& out = p.c[r * p.ldc + c];
        out = p.beta == T(0) ? p.alpha * sums[i] : p.alpha * sums[i] + p.beta * out;
      }
    }
  }
};

template <class T>
struct CopyEntry {
  T* to;
  const T* from;
  int64_t cols, to_ld, from_ld, count, first;
};

template <class T>
struct SmallCopies {
  EntryList<CopyEntry<T>, 512> list;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    each_piece(g, list, [&](const CopyEntry<T>& p, const Range& of) {
      const MatIndex to{p.cols, p.to_ld}, from{p.cols, p.from_ld};
      for (int64_t i = of.begin + g.thread(); i < of.end; i += g.threads()) p.to[to(i)] = p.from[from(i)];
    });
  }
};

template <class M>
void GpuOps<M>::do_gemms(std::span<const Product> all) {
  if (dry) return;
  begin("gemm", shape_of_list(all, [](const Product& p) { return p.c.rows * p.c.cols; }));
  by_float_type(all[0].c.tensor, [&](auto type) {
    using T = decltype(type);
    launch_lists(machine_, SmallProducts<T>{}, all, kBlock, SmallProducts<T>::kSharedBytes, [](const Product& p) {
      const int64_t k = p.transpose_a ? p.a.rows : p.a.cols;
      return std::pair{ProductEntry<T>{p.c.data<T>(), p.a.data<T>(), p.b.data<T>(), p.c.rows, p.c.cols, k, p.c.ld, p.a.ld, p.b.ld, 0,
                                       static_cast<T>(p.alpha), static_cast<T>(p.beta), p.transpose_a, p.transpose_b},
                       SmallProducts<T>::tiles(p.c.rows, p.c.cols)};
    });
  });
}

template <class M>
void GpuOps<M>::do_copies(std::span<const Copying> all) {
  begin("copy", shape_of_list(all, [](const Copying& p) { return p.x.rows * p.x.cols; }));
  by_float_type(all[0].x.tensor, [&](auto type) {
    using T = decltype(type);
    launch_lists(machine_, SmallCopies<T>{}, all, kBlock, 0, [](const Copying& p) {
      const int64_t count = p.x.rows * p.x.cols;
      return std::pair{CopyEntry<T>{p.y.data<T>(), p.x.data<T>(), p.x.cols, p.y.ld, p.x.ld, count, 0}, pieces_of(count, kListPiece)};
    });
  });
}

}  // namespace comera::gpu
