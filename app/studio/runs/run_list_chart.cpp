#include "app/studio/runs/run_list_chart.h"

#include <algorithm>
#include <cmath>

#include "app/format.h"
#include "app/studio/runs/run_fields.h"
#include "app/studio/ui_state.h"

namespace comera::studio {
namespace {

constexpr size_t kMostDrawn = 60;  // rows that fit on a page

constexpr const char* kTitle = "Runs";

Chart run_list_chart(const RunTable& table) {
  std::vector<const RunField*> fields;
  for (const RunField& field : run_fields())
    if (field.width > 0 && table.column_shown(field.id)) fields.push_back(&field);
  std::vector<std::vector<std::string>> shown(1), rows(1);
  for (const RunField* field : fields) {
    shown[0].emplace_back(field->title);
    rows[0].emplace_back(field->id);
  }
  for (const RunRow* row : table.rows) {
    rows.emplace_back();
    for (const RunField* field : fields) {
      const double number = field->number ? field->number(*row) : NAN;
      rows.back().push_back(!field->number ? field->text(*row) : std::isfinite(number) ? csv_number(number) : "");
    }
    if (shown.size() > kMostDrawn) continue;
    shown.emplace_back();
    for (const RunField* field : fields) shown.back().push_back(field->text(*row));
  }
  const size_t drawn = shown.size() - 1, all = table.rows.size();
  const std::string count = thousands(static_cast<double>(all)) + (all == 1 ? " run" : " runs");
  const std::string note = (drawn < all ? "the first " + std::to_string(drawn) + " of " + count : count) +
                           (table.filter.empty() ? "" : ", filtered by " + table.filter);
  Chart chart = table_chart("runs", kTitle, note, std::move(shown));
  chart.csv = [rows = std::move(rows)] { return csv_text(rows); };
  return chart;
}

}  // namespace

std::vector<ListedChart> run_list_charts(UiState& ui) {
  if (ui.run_table.rows.empty()) return {};
  return {{"runs", kTitle, [&ui] { return run_list_chart(ui.run_table); }}};
}

}  // namespace comera::studio
