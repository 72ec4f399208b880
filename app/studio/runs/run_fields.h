// Fields of a stored run. Columns, sort order and filter words of the list come from this table.
#pragma once
#include <span>
#include <string>

#include "core/store/run_types.h"

namespace comera::studio {

// The tag that is shown as a star.
inline constexpr const char* kStar = "star";
bool has_tag(const RunRow& row, const std::string& tag);  // includes tags in all_tags()
bool can_resume(const RunRow& row);

struct RunField {
  const char* id;                      // name in filters, id of the column
  const char* title;                   // column header
  const char* help;                    // includes the unit for filters
  float width;                         // of the column, in em; 0 = not a column
  bool shown;                          // visible by default
  double (*number)(const RunRow&);     // NaN = not known; null: the field is text
  std::string (*text)(const RunRow&);  // for display; "" = not known
};
std::span<const RunField> run_fields();
const RunField* find_run_field(const std::string& id);  // null = no such field

}  // namespace comera::studio
