// Differences between runs of the list and the baseline.
#pragma once
#include <string>

#include "app/studio/compare/compared_run.h"
#include "app/studio/runs/run_fields.h"
#include "app/studio/runs/run_table.h"

namespace comera::studio {

// Field of the difference: the sort column if one direction counts as better; else accuracy, or validation loss if the baseline has no
// accuracy.
const RunField& judged_field(const RunTable& table, const RunRow& baseline);

struct RunDifference {
  Delta delta;
  const char* incomparable = nullptr;  // why the values are not comparable; null = comparable, as far as the list shows
};
RunDifference difference_to(const RunField& field, const RunRow& row, const RunRow& baseline);
// Difference between a run and the baseline as text; "" = no baseline.
std::string difference_text(const RunTable& table, const RunRow& row);
// Tooltip of an incomparable difference.
inline constexpr const char* kIncomparable = "This value is not comparable with the baseline.";

}  // namespace comera::studio
