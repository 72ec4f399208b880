// Column sums of a matrix. Rows are split into pieces by their number alone: no atomics, and the same bits for any launch
// shape.
#pragma once
#include "gpu/gpu_ops.h"

namespace comera::gpu {

inline constexpr int64_t kRowsAPiece = 4, kMostRowPieces = 1024;  // many, since what is read at once has to fill a GPU's memory bus
inline int64_t row_pieces(int64_t rows) { return std::clamp<int64_t>(rows / kRowsAPiece, 1, kMostRowPieces); }

// partial (pieces, kSums, columns) = sums over the rows of a piece, where term(row, column, sums) adds to sums[kSums].
template <class T, class Term>
struct ColumnPartials {
  int64_t rows, columns, pieces;
  Term term;
  T* partial;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    const int64_t tiles = ceil_div(columns, g.threads());
    for (int64_t item = g.block(); item < tiles * pieces; item += g.blocks()) {
      const int64_t column = item % tiles * g.threads() + g.thread(), piece = item / tiles;
      if (column >= columns) continue;
      T sums[Term::kSums] = {};
      const Range range = Range{0, rows}.piece(piece, pieces);
      for (int64_t row = range.begin; row < range.end; ++row) term(row, column, sums);
      for (int i = 0; i < Term::kSums; ++i) partial[(piece * Term::kSums + i) * columns + column] = sums[i];
    }
  }
};

// Adds the pieces: element `column` of sum i comes from partial elements i * columns + column. A block adds kParts parts of the pieces for
// kAcross elements, then the parts.
template <class T, int kSums>
struct FoldColumns {
  static constexpr int kParts = 32, kAcross = 8;  // a warp reads whole sectors of 32 bytes
  static constexpr int64_t kSharedBytes = kParts * kAcross * static_cast<int64_t>(sizeof(T));
  T* sums[kSums];
  const T* partial;
  int64_t columns, pieces;
  template <class Group>
  KERNEL void operator()(Group& g) const {
    T* parts = g.template shared<T>();
    const int64_t stride = kSums * columns;
    for (int64_t item = g.block(); item < ceil_div(stride, kAcross); item += g.blocks()) {
      const int64_t first = item * kAcross;
      for (int i = g.thread(); i < kParts * kAcross; i += g.threads()) {
        const int64_t at = first + i % kAcross;
        const Range range = Range{0, pieces}.piece(i / kAcross, kParts);
        T total = 0;
        if (at < stride)
          for (int64_t piece = range.begin; piece < range.end; ++piece) total += partial[piece * stride + at];
        parts[i] = total;
      }
      g.sync();
      for (int c = g.thread(); c < kAcross; c += g.threads()) {
        const int64_t at = first + c;
        T total = parts[c];
        for (int part = 1; part < kParts; ++part) total += parts[part * kAcross + c];
        for (int i = 0; i < kSums; ++i)  // constant index: a computed one would put the body's arrays into local memory
          if (at / columns == i) sums[i][at % columns] = total;
      }
      g.sync();
    }
  }
};

// sums[i] (columns) from partial (pieces, kSums, columns).
template <class T, class Machine, int kSums>
void fold_columns(Machine& machine, int64_t columns, int64_t pieces, const T* partial, T* const (&sums)[kSums]) {
  using Fold = FoldColumns<T, kSums>;
  Fold fold{{}, partial, columns, pieces};
  std::copy(std::begin(sums), std::end(sums), fold.sums);
  machine.launch(over_items(ceil_div(kSums * columns, Fold::kAcross), kBlock, Fold::kSharedBytes), fold);
}

// sums[i] (columns) = sum over the rows of the i-th sum of `term`.
template <class T, class Machine, class Term>
void column_sums(Machine& machine, int64_t rows, int64_t columns, const Term& term, T* const (&sums)[Term::kSums]) {
  const int64_t pieces = row_pieces(rows);
  T* partial = machine.template scratch<T>(pieces * Term::kSums * columns);
  LaunchShape shape = over_items(ceil_div(columns, kBlock) * pieces, columns);
  machine.launch(shape, ColumnPartials<T, Term>{rows, columns, pieces, term, partial});
  fold_columns(machine, columns, pieces, partial, sums);
}

}  // namespace comera::gpu
