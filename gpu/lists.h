// Many small products, and many small copies of matrices, each as one kernel.
#pragma once
#include "gpu/entry_list.h"
#include "gpu/tile_product.h"

namespace comera::gpu {

// c (m, n) = alpha op(a) op(b) + beta c, row-major. four_*: rows are aligned to 16 bytes.
template <class T>
struct ProductEntry {
  T* c;
  const T *a, *b;
  int64_t m, n, k, ldc, lda, ldb, first;
  T alpha, beta;
  bool ta, tb, four_a, four_b, four_c;
};

// A piece is a square tile of a c. Its parts of a and b pass through shared memory in their own layout, kTerms terms at a time.
// The sums lie there too, each owned by one thread, and are added in the order of the terms for any launch shape.
template <class T>
struct SmallProducts {
  static constexpr int kSide = 32, kTerms = 64, kThreads = 128;         // one thread a patch of the tile
  static constexpr int kSideLine = kSide + 4, kTermsLine = kTerms + 4;  // 4 more floats: a column must not lie in one memory bank
  static constexpr int kOperand = kTerms * kSideLine;                   // the larger of the two layouts
  static constexpr int64_t kSharedBytes = (2 * kOperand + kSide * kSideLine) * static_cast<int64_t>(sizeof(T));
  EntryList<ProductEntry<T>, 295> list;

  static int64_t tiles(int64_t m, int64_t n) { return ceil_div(m, kSide) * ceil_div(n, kSide); }

  // Loads `terms` terms from `term` on, of `count` rows of op(a) (or columns of op(b)) from `at` on: with terms contiguous in a line if
  // they are in memory (`of_terms`).
  template <class Group>
  KERNEL static void load(const Group& g, T* tile, const T* x, int64_t ld, bool of_terms, bool by_four, int64_t at, int count, int64_t term,
                          int terms) {
    const auto as_it_is = [](const Four<T>& four) { return four; };
    const T* from = of_terms ? x + at * ld + term : x + term * ld + at;
    if (!of_terms)
      load_tile(g, tile, kSideLine, round_up(terms, 4), kSide, from, ld, terms, count, by_four, as_it_is);
    else if (terms > kTerms / 2)
      load_tile(g, tile, kTermsLine, round_up(count, 4), kTerms, from, ld, count, terms, by_four, as_it_is);
    else
      load_tile(g, tile, kTermsLine, round_up(count, 4), kTerms / 2, from, ld, count, terms, by_four, as_it_is);
  }
  HD static int at_most(int64_t left, int most) { return left < most ? static_cast<int>(left) : most; }

  // Tile `tile` of a c: where it is, and what it has.
  struct Place {
    int64_t row, column;
    int rows, columns;
    HD Place(const ProductEntry<T>& p, int64_t tile)
        : row(tile / ceil_div(p.n, kSide) * kSide),
          column(tile % ceil_div(p.n, kSide) * kSide),
          rows(at_most(p.m - row, kSide)),
          columns(at_most(p.n - column, kSide)) {}
  };
  // The sums of a tile = op(a) op(b), or += if `add`.
  template <class Group>
  KERNEL static void multiply(Group& g, const ProductEntry<T>& p, const Place& at, bool add) {
    T *tile_a = g.template shared<T>(), *tile_b = tile_a + kOperand, *sums = tile_b + kOperand;
    const Tile<T> a{tile_a, p.ta ? kSideLine : kTermsLine, p.ta}, b{tile_b, p.tb ? kTermsLine : kSideLine, p.tb};
    int64_t term = 0;
    do {  // once for an empty sum, too
      const int terms = at_most(p.k - term, kTerms);
      load(g, tile_a, p.a, p.lda, !p.ta, p.four_a, at.row, at.rows, term, terms);
      load(g, tile_b, p.b, p.ldb, p.tb, p.four_b, at.column, at.columns, term, terms);
      g.sync();
      multiply_tiles(g, sums, kSideLine, add || term > 0, a, b, round_up(at.rows, 2), round_up(at.columns, 4), round_up(terms, 4), false);
      g.sync();
    } while ((term += kTerms) < p.k);
  }
  // c = alpha sums + beta c in the tile.
  template <class Group>
  KERNEL static void write(const Group& g, const ProductEntry<T>& p, const Place& at) {
    const T* sums = g.template shared<T>() + 2 * kOperand;
    const int fours = ceil_div(at.columns, 4);
    for (int e = g.thread(); e < at.rows * fours; e += g.threads()) {
      const int r = e / fours, c = e % fours * 4;
      const bool whole = p.four_c && c + 4 <= at.columns;
      T* out = p.c + (at.row + r) * p.ldc + at.column;
      Four<T> four = four_at(sums + r * kSideLine + c), old = {};
      if (p.beta != T(0)) old = read_four(out, c, at.columns, whole);
      for (int l = 0; l < 4; ++l) four.v[l] = p.beta == T(0) ? p.alpha * four.v[l] : p.alpha * four.v[l] + p.beta * old.v[l];
      write_four(out, c, at.columns, whole, four);
    }
  }

  template <class Group>
  KERNEL void operator()(Group& g) const {
    for (int64_t piece = g.block(); piece < list.pieces; piece += g.blocks()) {
      const ProductEntry<T>& p = list.of(piece);
      const Place at(p, piece - p.first);
      multiply(g, p, at, false);
      write(g, p, at);
    }
  }
};

template <class T>
struct CopyEntry {
  T* to;
  const T* from;
  int64_t cols, to_ld, from_ld, count, first;
  bool by_four;  // four neighbours are in one row, and aligned, in both
};

template <class T>
struct SmallCopies {
  EntryList<CopyEntry<T>, 448> list;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    each_piece(g, list, [&](const CopyEntry<T>& p, const Range& of) {
      const MatIndex to{p.cols, p.to_ld}, from{p.cols, p.from_ld};
      if (p.by_four)
        return each_four(g, of.end - of.begin,
                         [&](int64_t i) { store_four(p.to + to(of.begin + i), four_at(p.from + from(of.begin + i))); });
      for (int64_t first = of.begin + g.thread(); first < of.end; first += 4 * g.threads()) {  // four reads before four writes
        T values[4] = {};
        for (int l = 0; l < 4; ++l)
          if (const int64_t i = first + l * g.threads(); i < of.end) values[l] = p.from[from(i)];
        for (int l = 0; l < 4; ++l)
          if (const int64_t i = first + l * g.threads(); i < of.end) p.to[to(i)] = values[l];
      }
    });
  }
};

template <class M>
void GpuOps<M>::body(const op::Gemms& args) {
  if (dry) return;
  begin(args, shape_of_list(args.all, [](const GemmArgs& p) { return p.c.rows * p.c.cols; }));
  by_float_type(args.all[0].c.tensor, [&](auto type) {
    using T = decltype(type);
    launch_lists(machine_, SmallProducts<T>{}, args.all, SmallProducts<T>::kThreads, SmallProducts<T>::kSharedBytes, [](const GemmArgs& p) {
      const auto by_four = [](const Mat& x) { return of_fours(x.ld, x.data<T>()); };
      const int64_t k = p.transpose_a ? p.a.rows : p.a.cols;
      return std::pair{ProductEntry<T>{p.c.data<T>(), p.a.data<T>(), p.b.data<T>(), p.c.rows, p.c.cols, k, p.c.ld, p.a.ld, p.b.ld, 0,
                                       static_cast<T>(p.alpha), static_cast<T>(p.beta), p.transpose_a, p.transpose_b, by_four(p.a),
                                       by_four(p.b), by_four(p.c)},
                       SmallProducts<T>::tiles(p.c.rows, p.c.cols)};
    });
  });
}

template <class M>
void GpuOps<M>::body(const op::Copies& args) {
  begin(args, shape_of_list(args.all, [](const CopyArgs& p) { return p.x.rows * p.x.cols; }));
  by_float_type(args.all[0].x.tensor, [&](auto type) {
    using T = decltype(type);
    launch_lists(machine_, SmallCopies<T>{}, args.all, kBlock, 0, [](const CopyArgs& p) {
      const int64_t count = p.x.rows * p.x.cols;
      return std::pair{CopyEntry<T>{p.y.data<T>(), p.x.data<T>(), p.x.cols, p.y.ld, p.x.ld, count, 0,
                                    p.x.cols % 4 == 0 && of_fours(p.y.ld, p.y.data<T>()) && of_fours(p.x.ld, p.x.data<T>())},
                       ceil_div(count, kListPiece)};
    });
  });
}

}  // namespace comera::gpu
