// Products on tensor cores whose results stay in registers. A strip is a matrix (rows, kColumns) of floats that belongs to a block: on a
// GPU 16 rows to a warp, so the block has rows / 16 warps; in tests (tests/gpu/emulated_strip.h) some rows to a thread. Every thread of the
// block calls each function; operands lie in shared memory, rounded by tf32_of, and the caller syncs before and after.
//
//     Strip<kColumns, kPaired> s(g, rows)        kColumns a multiple of 16
//     s.clear()
//     s.dots<kTerms, kLine>(a, b)                s = a b^T: a (rows, kTerms), b (kColumns, kTerms), row stride kLine; kTerms a multiple of
//     8 s.add<kLine>(w, b)                         s += w b: w a strip (rows, k) of rounded entries, b (k, kColumns) s.each_four(body,
//     others...)               body(row, column, slot, four, fours of the others...) for four neighbours of a row s.each_pair(body,
//     others...)               where kPaired: body(row, column, above, below, ...): entries (row, column), (row + 1, column) s.fold(into,
//     combine, term)                into[slot] = combine of it and of term(entry, slot) for all entries of the row
//
// A thread holds four neighbours of a row, so one draw of Philox serves them and memory is accessed by 16 bytes. kPaired: it holds rows in
// pairs as well. StripRows has a number for each row that the thread shares in, by slot; each_row(body(row, slot)) visits each row once.
#pragma once
#include "core/base/hd.h"
#include "gpu/group.h"

namespace comera::gpu {

// Layout of mma.m16n8k8, with rows and columns assigned to its lanes as strips need them. Lane l = 4 `eighth` + `quarter`.
struct StripLane {
  // Column of a strip in place `at` < 8 of a piece of eight columns: two pieces share sixteen columns, four neighbours to a lane.
  HD static constexpr int column(int piece, int at) { return 16 * (piece / 2) + 4 * (at / 2) + 2 * (piece % 2) + at % 2; }
};

}  // namespace comera::gpu
