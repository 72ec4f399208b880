// Lists of small calls as one kernel. The list travels with the launch, which a captured step keeps as it was: no table in
// memory can go stale, and a new plan, which captures anew, makes new lists. Its entries are one run of pieces, which
// blocks take in turn.
#pragma once
#include <utility>

#include "gpu/gpu_ops.h"

namespace comera::gpu {

inline constexpr int64_t kListPiece = 4 * kBlock;  // elements, where a piece is some elements

// An Entry has `first`, the number of its first piece.
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
    int low = 0, high = count;  // low.first <= piece, and high.first is larger
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

inline constexpr int64_t kListBlocks = 2048;  // as many as fill a device: what bodies compute before their first piece is made once a block

// f(entry, its elements of the piece) for every piece of a block, where an entry has `count` elements and a piece is
// kListPiece of them; the threads of the block share a piece.
template <class Group, class List, class F>
KERNEL void each_piece(const Group& g, const List& list, const F& f) {
  for (int64_t piece = g.block(); piece < list.pieces; piece += g.blocks()) {
    const auto& entry = list.of(piece);
    const int64_t begin = (piece - entry.first) * kListPiece, rest = entry.count - begin;
    f(entry, Range{begin, begin + (rest < kListPiece ? rest : kListPiece)});
  }
}

// Launches the body, whose `list` is empty, as often as a list of all items takes: once for those of most models.
// entry_of(item) is its entry, with `first` to be filled in, and its number of pieces.
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

// What an error names of a list: how many entries and how many elements.
template <class Items, class Count>
Shape shape_of_list(const Items& all, const Count& count) {
  int64_t elements = 0;
  for (const auto& item : all) elements += count(item);
  return {static_cast<int64_t>(all.size()), elements};
}

}  // namespace comera::gpu
