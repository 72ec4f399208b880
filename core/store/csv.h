// Reads RFC 4180 text: quoted fields with commas, quotes and line breaks; LF or CRLF; an UTF-8 mark is skipped.
#pragma once
#include <cstdint>
#include <istream>
#include <string>
#include <vector>

namespace comera {

class CsvReader {
 public:
  explicit CsvReader(std::istream& in);
  // The next record into `fields`; false at the end. Throws Error(config) for a quote that never ends.
  bool next(std::vector<std::string>& fields);
  int64_t line() const { return line_; }  // where the last record began, from 1

 private:
  std::istream& in_;
  int64_t line_ = 0, at_line_ = 1;
};

}  // namespace comera
