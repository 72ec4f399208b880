// Fields of a stored run: columns, sort order and filter words of the list are made from this table.
#pragma once
#include <span>
#include <string>

#include "core/store/run_types.h"

namespace comera::studio {

// The tag that shows as a star.
inline constexpr const char* kStar = "star";
bool has_tag(const RunRow& row, const std::string& tag);  // or is told by it (all_tags())
bool can_resume(const RunRow& row);

struct RunField {
  const char* id;                      // in a filter, and of the column
  const char* title;                   // of the column
  const char* help;                    // with its unit in a filter
  float width;                         // of the column, in em; 0 = it is no column
  bool shown;                          // at first
  double (*number)(const RunRow&);     // NaN = not known; null: a text
  std::string (*text)(const RunRow&);  // as people read it; "" = not known
};
std::span<const RunField> run_fields();
const RunField* find_run_field(const std::string& id);  // null when there is none

}  // namespace comera::studio
