// Rows of the list of runs as a string of digits: those of the ids r-1, r-2, ...
#pragma once
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "app/studio/parts/named_items.h"
#include "app/studio/runs/run_filter.h"
#include "app/studio/shown_run/store_client.h"

namespace comera::studio {

// Rows that a valid filter accepts.
inline std::string fitting_rows(const RunList& list, const std::string& text) {
  const RunFilter filter(text);
  EXPECT_EQ(filter.problem(), "") << text;
  std::string ids;
  for (const RunRow& row : list.rows)
    if (filter.fits(row, list.settings)) ids += row.id.substr(2);
  return ids;
}

// Rows on the screen, from top to bottom.
inline std::string rows_on_screen(const std::vector<NamedItem>& items) {
  std::map<float, std::string> rows;
  for (const NamedItem& item : items)
    if (item.name.starts_with("run:r-")) rows[item.low.y] = item.name.substr(6);
  std::string ids;
  for (const auto& [y, id] : rows) ids += id;
  return ids;
}

}  // namespace comera::studio
