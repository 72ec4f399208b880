// What the library for Parquet (core/data/parquet) gives to the program, which opens it when it meets such a file: no other part sees a
// header of Arrow, and what goes wrong there comes back as text.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace comera {

struct ParquetColumn {
  std::string name;
  std::string type;      // as Arrow names it: "int64", "list<element: string>"
  bool is_text = false;  // can be written as text; not bytes, nor what has parts
};

// Thread: one at a time.
class ParquetRows {
 public:
  virtual ~ParquetRows() = default;
  virtual const std::vector<ParquetColumn>& columns() const = 0;
  virtual int64_t rows() const = 0;  // that the file says it has
  // The next row: a cell for each column that is text, in their order; empty where there is no value. False at the end, and where the file
  // cannot be read further: then `error` has one line.
  virtual bool next(std::vector<std::string>& cells, std::string& error) = 0;
};

// Exported by the library. The second gives null and one line in `error` where the file cannot be opened.
using ParquetLibrary = const char*();
using ParquetOpen = ParquetRows*(const std::string& path, std::string& error);
inline constexpr const char* kParquetLibrary = "comera_parquet_library";
inline constexpr const char* kParquetOpen = "comera_parquet_open";

}  // namespace comera
