// Products on tensor cores whose results stay in registers. A strip is a matrix (rows, kColumns) of floats that belongs to a block: on a
// GPU 16 rows to a warp, so the block has rows / 16 warps; in tests (tests/gpu/emulated_strip.h) some rows to a thread. Every thread of the
// block calls each function; operands lie in shared memory as StripLayout says, rounded by tf32_of, and the caller syncs before and after.
//
//     Strip<kColumns, kPaired> s(g, rows)   kColumns a multiple of 16
//     s.clear()
//     s.dots<kTerms, kLine>(a, b)           s = a b^T: a (rows, kTerms), b (kColumns, kTerms), row stride kLine; 8 divides kTerms
//     s.add<kLine>(w, b)                    s += w b: w a strip (rows, k) of rounded entries, b (k, kColumns)
//     s.each_four(body, others...)          body(row, column, slot, four, fours of the others...) for four neighbours of a row
//     s.each_pair(body, others...)          where kPaired: body(row, column, above, below, ...), entries (row, column), (row + 1, column)
//     s.fold(into, combine, term)           into[slot] = combine of it and of term(entry, slot) for all entries of the row
//
// A thread holds four neighbours of a row, so one draw of Philox serves them and memory is accessed by 16 bytes. kPaired: it holds rows in
// pairs as well. StripRows has a number for each row that the thread shares in, by slot; each_row(body(row, slot)) visits each row once.
#pragma once
#include "core/base/hd.h"
#include "core/ops/small_floats.h"
#include "gpu/group.h"

namespace comera::gpu {

struct StripLayout {
  // Column of a strip in place `at` < 8 of a piece of eight columns: two pieces share sixteen columns, four neighbours to a lane.
  HD static constexpr int column(int piece, int at) { return 16 * (piece / 2) + 4 * (at / 2) + 2 * (piece % 2) + at % 2; }
  // Where entry (row, column) of an operand is in its row of shared memory, whose stride is 4 more than a multiple of 32. Every second
  // eight rows have bits of the column flipped: so the 32 entries that a warp reads at once, of eight rows or of four, lie in 32 banks.
  HD static constexpr int place(int row, int column) { return column ^ flip(row); }
  HD static constexpr int flip(int row) { return row & 8 ? 10 : 0; }
  // Stores neighbours from a column on that is a multiple of 4.
  KERNEL static void put(float* tile, int line, int row, int column, const Four<float>& x) {
    const bool flipped = flip(row) != 0;
    four_at(tile + row * line + (flipped ? column ^ 8 : column)) = flipped ? Four<float>{{x.v[2], x.v[3], x.v[0], x.v[1]}} : x;
  }
};

// tile (kRows, kWidth) of an operand, row stride kWidth + 4, = rows of a matrix, rounded; 0 behind its `rows` rows and `columns` columns.
// `step` from row to row, `fours`: of_fours(). All loads of a thread are on their way at once, where the block has kThreads.
template <int kRows, int kWidth, int kThreads, class Group>
KERNEL void load_operand(const Group& g, float* tile, const float* from, int64_t step, int rows, int columns, bool fours) {
  constexpr int kAcross = kWidth / 4, kFours = kRows * kAcross, kTurns = kFours / kThreads;
  for (int start = g.thread(); start < kFours; start += kTurns * g.threads()) {
    Four<float> read[kTurns];
    for (int turn = 0; turn < kTurns; ++turn) {
      const int e = start + turn * g.threads(), row = e / kAcross, column = e % kAcross * 4;
      read[turn] = {};
      if (e < kFours && row < rows && column < columns) read[turn] = read_four(from + row * step, column, columns, fours);
    }
    for (int turn = 0; turn < kTurns; ++turn) {
      const int e = start + turn * g.threads();
      for (float& x : read[turn].v) x = tf32_of(x);
      if (e < kFours) StripLayout::put(tile, kWidth + 4, e / kAcross, e % kAcross * 4, read[turn]);
    }
  }
}

// The same of the transpose: row i of the tile is column i of a matrix (terms, columns).
template <int kRows, int kWidth, int kThreads, class Group>
KERNEL void load_transposed(const Group& g, float* tile, const float* from, int64_t step, int terms, int64_t columns, bool fours) {
  constexpr int kAcross = kRows / 4, kFours = kWidth * kAcross, kTurns = kFours / kThreads;
  for (int start = g.thread(); start < kFours; start += kTurns * g.threads()) {
    Four<float> read[kTurns];
    for (int turn = 0; turn < kTurns; ++turn) {
      const int e = start + turn * g.threads(), term = e / kAcross, column = e % kAcross * 4;
      read[turn] = {};
      if (e < kFours && term < terms && column < columns) read[turn] = read_four(from + term * step, column, columns, fours);
    }
    for (int turn = 0; turn < kTurns; ++turn) {
      const int e = start + turn * g.threads(), term = e / kAcross;
      for (int l = 0; l < 4 && e < kFours; ++l) {
        const int row = e % kAcross * 4 + l;
        tile[row * (kWidth + 4) + StripLayout::place(row, term)] = tf32_of(read[turn].v[l]);
      }
    }
  }
}

}  // namespace comera::gpu
