// How the runs of the list stand to the one that is pinned as their baseline.
#pragma once
#include <string>

#include "app/studio/compare/compared_run.h"
#include "app/studio/runs/run_fields.h"
#include "app/studio/runs/run_table.h"

namespace comera::studio {

// What the difference is of: what the list is sorted by, where one direction of that is better; else the accuracy, and the
// evaluation loss where the baseline has none.
const RunField& judged_field(const RunTable& table, const RunRow& baseline);

struct RunDifference {
  Delta delta;
  const char* incomparable = nullptr;  // why the two values do not mean the same; null = they do, as far as the list tells
};
RunDifference difference_to(const RunField& field, const RunRow& row, const RunRow& baseline);
// How a run stands to the pinned one, in words; "" = none is pinned.
std::string difference_text(const RunTable& table, const RunRow& row);
// What a difference that is incomparable means by that.
inline constexpr const char* kIncomparable = "This value is not comparable with the baseline.";

}  // namespace comera::studio
