#include "app/studio/runs/run_table.h"

#include <algorithm>
#include <cmath>

#include "app/studio/runs/run_fields.h"

namespace comera::studio {
namespace {

// Runs without a value come last in both sort directions.
void sort_rows(std::vector<const RunRow*>& rows, const RunField& field, bool descending) {
  struct Keyed {
    const RunRow* row;
    double number = 0;
    std::string text;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(rows.size());
  for (const RunRow* row : rows)
    keyed.push_back({row, field.number ? field.number(*row) : 0, field.number ? std::string() : field.text(*row)});
  std::stable_sort(keyed.begin(), keyed.end(), [&](const Keyed& a, const Keyed& b) {
    if (field.number) {
      const bool known_a = std::isfinite(a.number), known_b = std::isfinite(b.number);
      if (known_a != known_b) return known_a;
      return known_a && (descending ? a.number > b.number : a.number < b.number);
    }
    if (a.text.empty() != b.text.empty()) return b.text.empty();
    return descending ? a.text > b.text : a.text < b.text;
  });
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = keyed[i].row;
}

}  // namespace

bool RunTable::column_shown(const std::string& id) const {
  const RunField* field = find_run_field(id);
  return field && field->width > 0 && field->shown != toggled_columns.contains(id);
}

void update(RunTable& table, const std::shared_ptr<const RunList>& list) {
  const std::string wanted = table.sort + (table.descending ? "-" : "+") + (table.archived ? "a" : "r") + (table.lineage ? "l" : "f") +
                             (table.hide_short ? "h " : "s ") + table.baseline + " " + table.filter;
  if (table.list == list && table.worked_out == wanted) return;
  if (table.worked_out.empty() || table.worked_out != wanted) table.parsed = RunFilter(table.filter);
  table.list = list;
  table.worked_out = wanted;
  table.rows.clear();
  table.short_runs = 0;
  const bool hides = table.hide_short && !table.parsed.asks_for_short();
  for (const RunRow& row : table.archived ? list->archived : list->rows) {
    const bool brief = is_short(row);
    table.short_runs += brief;
    if (!(hides && brief) && table.parsed.fits(row, list->settings)) table.rows.push_back(&row);
  }
  if (const RunField* field = find_run_field(table.sort)) sort_rows(table.rows, *field, table.descending);
  table.branches = table.lineage ? arrange_by_lineage(table.rows) : std::vector<Branch>();
  table.baseline_row = nullptr;
  for (const std::vector<RunRow>* rows : {&list->rows, &list->archived})
    for (const RunRow& row : *rows)
      if (!table.baseline.empty() && row.id == table.baseline) table.baseline_row = &row;
  std::set<std::string> still;
  for (const RunRow* row : table.rows)
    if (table.selected.contains(row->id)) still.insert(row->id);
  table.selected = std::move(still);
}

void select_run(RunTable& table, const std::string& id, bool more, bool range) {
  const auto place = [&](const std::string& of) {
    return std::find_if(table.rows.begin(), table.rows.end(), [&](const RunRow* row) { return row->id == of; });
  };
  auto from = place(table.anchor), to = place(id);
  if (range && from != table.rows.end() && to != table.rows.end()) {
    if (!more) table.selected.clear();
    if (to < from) std::swap(from, to);
    for (auto row = from; row <= to; ++row) table.selected.insert((*row)->id);
    return;  // keeps the anchor for the next range
  }
  table.anchor = id;
  if (more) {
    if (!table.selected.erase(id)) table.selected.insert(id);
    return;
  }
  table.selected = {id};
}

void select_all(RunTable& table) {
  for (const RunRow* row : table.rows) table.selected.insert(row->id);
}

std::vector<const RunRow*> selected_rows(const RunTable& table) {
  std::vector<const RunRow*> rows;
  for (const RunRow* row : table.rows)
    if (table.selected.contains(row->id)) rows.push_back(row);
  return rows;
}

}  // namespace comera::studio
