// What can still be read of a damaged store, copied into a new one.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace comera {

struct Salvaged {
  std::string path;               // of the new store
  int64_t runs = 0, rows = 0;     // in it; rows of all tables
  std::vector<std::string> gaps;  // a line for each run and table of which rows are lost
};

// Reads each run's part of each table from its beginning and from its end, up to what SQLite cannot read, and writes
// the rows into a new store, `into`; "" = one beside the damaged one: FILE.salvaged.db, or with a number. The damaged one
// is not touched. A run whose row in the list is lost gets a new one there. Throws Error(not_found) when there is no file,
// Error(usage) when `into` is there already, Error(storage) when the file cannot be read at all, is no store of ours, or
// the new one cannot be written; then there is no new one.
Salvaged salvage_store(const std::string& path, const std::string& into = "");

}  // namespace comera
