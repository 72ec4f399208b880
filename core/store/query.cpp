#include "core/store/query.h"

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/store/export.h"
#include "core/store/run_ops.h"
#include "core/store/sqlite.h"

namespace comera {
namespace {

QueryTable::Value cell_of(const Statement& row, int column) {
  using Cell = QueryTable::Cell;
  switch (row.type(column)) {
    case 1:
      return {Cell::integer, row.text(column)};
    case 2:
      return {Cell::real, number_text(row.real(column))};
    case 3:
      return {Cell::text, row.text(column)};
    case 4:
      break;
    default:
      return {};
  }
  static constexpr char kHex[] = "0123456789abcdef";
  std::string hex;
  for (unsigned char c : row.text(column)) hex += {kHex[c >> 4], kHex[c & 15]};
  return {Cell::blob, hex};
}

Json json_of_cell(const QueryTable::Value& value) {
  using Cell = QueryTable::Cell;
  if (value.type == Cell::null) return nullptr;
  if (value.type == Cell::integer) return std::strtoll(value.text.c_str(), nullptr, 10);
  if (value.type == Cell::real) return json_of(std::strtod(value.text.c_str(), nullptr));
  return value.text;
}

}  // namespace

QueryTable query_store(const std::string& store, const std::string& sql, int64_t max_rows) {
  Database db(store, Database::Mode::read);
  db.only_reads();
  if (const auto why = why_not_one_read(db, sql))
    throw Error(ErrorCode::usage, "cannot run this query", *why,
                "one SELECT on the tables runs, metrics, ranks, memory, events, checkpoints or the view run_metrics");
  Statement statement(db, sql);
  QueryTable table;
  for (int i = 0; i < statement.columns(); ++i) table.columns.push_back(statement.name(i));
  while (statement.step()) {
    if (static_cast<int64_t>(table.rows.size()) >= max_rows) {
      table.cut = true;
      break;
    }
    auto& row = table.rows.emplace_back();
    for (int i = 0; i < statement.columns(); ++i) row.push_back(cell_of(statement, i));
  }
  return table;
}

std::string query_to_json(const QueryTable& table) {
  Json rows = Json::array();
  for (const auto& row : table.rows) {
    Json object = Json::object();
    for (size_t i = 0; i < row.size(); ++i) object[table.columns[i]] = json_of_cell(row[i]);
    rows.push_back(std::move(object));
  }
  return rows.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace comera
