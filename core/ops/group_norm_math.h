// How norms over groups of channels split their sums: the rows of each example into pieces, by shapes alone. So sums have one order on
// every device, thread count and launch.
#pragma once
#include <algorithm>

#include "core/base/rounding.h"

namespace comera {

// A cell is one piece of one example's rows. x (T, C), T = examples times rows.
struct GroupCells {
  int64_t examples, rows, channels, groups, pieces, size;

  GroupCells(int64_t all_rows, int64_t channels, int64_t examples, int64_t groups)
      : examples(examples), rows(all_rows / examples), channels(channels), groups(groups) {
    constexpr int64_t kCells = 128, kLeastRows = 32;
    const int64_t wanted = std::clamp<int64_t>(ceil_div(kCells, examples), 1, std::max<int64_t>(1, rows / kLeastRows));
    size = std::max<int64_t>(1, ceil_div(rows, wanted));
    pieces = ceil_div(rows, size);
  }
  HD int64_t count() const { return examples * pieces; }
  HD int64_t example(int64_t cell) const { return cell / pieces; }
  HD int64_t begin(int64_t cell) const { return cell / pieces * rows + cell % pieces * size; }
  HD int64_t end(int64_t cell) const {
    const int64_t last = cell % pieces * size + size;
    return cell / pieces * rows + (last < rows ? last : rows);
  }
  HD int64_t in_group() const { return channels / groups; }
  HD int64_t group(int64_t channel) const { return channel / in_group(); }
  HD int64_t numbers() const { return rows * in_group(); }  // that a group of an example has
};

}  // namespace comera
