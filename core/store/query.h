// Free read-only queries on the documented tables (schema.h), for `comera query` and the window's query box.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace comera {

// Every cell as text, with what it was.
struct QueryTable {
  enum class Cell : unsigned char { null, integer, real, text, blob };
  struct Value {
    Cell type = Cell::null;
    std::string text;  // "" for null, lower-case hex for a blob
  };
  std::vector<std::string> columns;
  std::vector<std::vector<Value>> rows;
  bool cut = false;  // there were more than max_rows
};

// One SELECT (or WITH ... SELECT, VALUES) through a connection of its own. Works on stores of any version. Throws
// Error(usage) for anything that would do more than read, or is no SQL; Error(not_found), Error(storage) as a reader.
QueryTable query_store(const std::string& store, const std::string& sql, int64_t max_rows = 100'000);

// A JSON array of objects; NULL is null, infinities are the texts "inf", "-inf".
std::string query_to_json(const QueryTable& table);

}  // namespace comera
