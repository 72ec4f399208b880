#include "core/base/csv.h"

#include <algorithm>

#include "core/base/error.h"

namespace comera {

bool CsvScan::ends(char byte) {
  if (state_ == State::quoted) {
    if (byte == '"') state_ = State::quote;
    return false;
  }
  if (byte == '"' && state_ != State::plain) {
    state_ = State::quoted;
    return false;
  }
  state_ = byte == separator_ || byte == '\n' ? State::begin : State::plain;
  return byte == '\n';
}

bool csv_cells(std::string_view record, char separator, std::vector<std::string>& cells, std::string& why) {
  const bool quotes = separator != '\t';
  cells.clear();
  for (size_t at = 0;;) {
    std::string cell;
    if (quotes && at < record.size() && record[at] == '"') {
      for (++at;; ++at) {
        if (at >= record.size()) {
          why = "a quoted cell has no end";
          return false;
        }
        if (record[at] == '"' && (at + 1 >= record.size() || record[at + 1] != '"')) break;
        if (record[at] == '"') ++at;
        cell += record[at];
      }
      ++at;
      if (at < record.size() && record[at] != separator) {
        why = "text follows the quote that ends cell " + std::to_string(cells.size() + 1);
        return false;
      }
    } else {
      const size_t end = std::min(record.size(), record.find(separator, at));
      cell = record.substr(at, end - at);
      at = end;
    }
    cells.push_back(std::move(cell));
    if (at >= record.size()) return true;
    ++at;
  }
}

CsvReader::CsvReader(std::istream& in) : in_(in) {
  for (int byte : {0xEF, 0xBB, 0xBF}) {
    if (in_.peek() != byte) break;
    in_.get();
  }
}

bool CsvReader::next(std::vector<std::string>& fields) {
  fields.assign(1, "");
  line_ = at_line_;
  if (in_.peek() == std::istream::traits_type::eof()) return false;
  record_.clear();
  CsvScan scan(',');
  bool ended = false;
  for (int c; !ended && (c = in_.get()) != std::istream::traits_type::eof();) {
    if (c == '\n') ++at_line_;
    ended = scan.ends(static_cast<char>(c));
    if (!ended) record_ += static_cast<char>(c);
  }
  if (scan.quoted())
    throw Error(ErrorCode::config, "the CSV is not complete", "the quote of line " + std::to_string(line_) + " never ends",
                "check the file");
  if (record_.ends_with('\r')) record_.pop_back();
  if (std::string why; !csv_cells(record_, ',', fields, why))
    throw Error(ErrorCode::config, "line " + std::to_string(line_) + " is not a record of a CSV", why, "put quotes around the whole cell");
  return true;
}

}  // namespace comera
