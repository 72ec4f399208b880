// Forks below the runs they come from, as a tree; its lines are drawn before the names.
#pragma once
#include <cstdint>
#include <vector>

#include "core/store/run_types.h"

namespace comera::studio {

struct Branch {
  int depth = 0;       // number of ancestors in the list; 0: a root
  bool last = true;    // last fork of its parent
  uint32_t rails = 0;  // bit n: the vertical line of depth n continues past this row
};

// Moves forks below their parents if these are in `rows`; otherwise keeps the order. Returns a branch per row.
std::vector<Branch> arrange_by_lineage(std::vector<const RunRow*>& rows);

}  // namespace comera::studio
