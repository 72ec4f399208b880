// Forks of the list under the run they come from, as a tree whose lines are drawn in front of their names.
#pragma once
#include <cstdint>
#include <vector>

#include "core/store/run_types.h"

namespace comera::studio {

struct Branch {
  int depth = 0;       // how many runs it is forked from, one from the other; 0: it stands by itself
  bool last = true;    // of the forks of its parent
  uint32_t rails = 0;  // bit n: the line of depth n, above its own, goes on below
};

// Puts forks below their parents where those are among `rows`; those of one parent, and the rest, keep their order.
// A branch for each row.
std::vector<Branch> arrange_by_lineage(std::vector<const RunRow*>& rows);

}  // namespace comera::studio
