// Lists of small calls as one kernel. The list is passed in the kernel's arguments, which a captured step keeps: no table in
// memory can go stale, and a new plan captures again with new lists. The work of all entries is one sequence of pieces, over
// which blocks stride.
#pragma once
#include <utility>

#include "gpu/gpu_ops.h"

namespace comera::gpu {

inline constexpr int64_t kListPiece = 4 * kBlock;  // elements of a piece, for element-wise bodies

// Entry::first is the number of its first piece.
template <class Entry, int kMost>
struct EntryList {
  int count = 0;
  int64_t pieces = 0;
  Entry all[kMost] = {};

  bool full() const { return count == kMost; }
  void add(Entry entry, int64_t its_pieces) {
    entry.first = pieces;
    all[count++] = entry;
    pieces += its_pieces;
  }
  // The entry that the piece belongs to.
  KERNEL const Entry& of(int64_t piece) const {
    int low = 0, high = count;  // all[low].first <= piece < all[high].first
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (all[middle].first <= piece)
        low = middle;
      else
        high = middle;
    }
    return all[low];
  }
};

inline constexpr int64_t kListBlocks = 2048;  // enough to fill a device; bodies compute constants once a block

// f(entry, range of its elements) for every piece of a block, where a piece is kListPiece of the entry's `count` elements; the
// threads of the block share a piece.
template <class Group, class List, class F>
KERNEL void each_piece(const Group& g, const List& list, const F& f) {
  for (int64_t piece = g.block(); piece < list.pieces; piece += g.blocks()) {
    const auto& entry = list.of(piece);
    const int64_t begin = (piece - entry.first) * kListPiece, rest = entry.count - begin;
    f(entry, Range{begin, begin + (rest < kListPiece ? rest : kListPiece)});
  }
}
// f(entry, i) for every fourth element of the pieces.
template <class Group, class List, class F>
KERNEL void each_four_of_list(const Group& g, const List& list, const F& f) {
  each_piece(g, list,
             [&](const auto& entry, const Range& of) { each_four(g, of.end - of.begin, [&](int64_t i) { f(entry, of.begin + i); }); });
}

// Launches the body for all items; once in most models, more often where they exceed its list, which must be empty.
// entry_of(item) is {entry, pieces}; `first` is filled in here.
template <class Machine, class Body, class Items, class EntryOf>
void launch_lists(Machine& machine, Body body, const Items& all, int threads, int64_t shared_bytes, const EntryOf& entry_of) {
  const auto launch = [&] {
    machine.launch({std::min(body.list.pieces, kListBlocks), threads, shared_bytes}, body);
    body.list = {};
  };
  for (const auto& item : all) {
    const auto [entry, pieces] = entry_of(item);
    if (pieces == 0) continue;
    if (body.list.full()) launch();
    body.list.add(entry, pieces);
  }
  launch();
}

// Shape of a list in messages: entries, elements.
template <class Items, class Count>
Shape shape_of_list(const Items& all, const Count& count) {
  int64_t elements = 0;
  for (const auto& item : all) elements += count(item);
  return {static_cast<int64_t>(all.size()), elements};
}

}  // namespace comera::gpu
