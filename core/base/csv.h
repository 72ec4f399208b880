// Cells of CSV text (RFC 4180): quoted cells have commas, line ends and doubled quotes; LF or CRLF.
#pragma once
#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

namespace comera {

// Finds where a record ends; it is given the bytes of the text one after another.
class CsvScan {
 public:
  explicit CsvScan(char separator) : separator_(separator) {}
  // Whether `byte` is the line end of the record; the next byte then begins another one.
  bool ends(char byte);
  bool quoted() const { return state_ == State::quoted; }  // the quote of a cell is open

 private:
  enum class State : unsigned char {
    begin,
    plain,
    quoted,
    quote
  };  // of a cell; `quote`: one inside of quotes, which ends them or is doubled
  const char separator_;
  State state_ = State::begin;
};

// The cells of a record, which has no line end. With tabs between them quotes have no meaning. False and one line in `why` where quotes
// do not fit.
bool csv_cells(std::string_view record, char separator, std::vector<std::string>& cells, std::string& why);

// The records of a stream, commas between cells; a UTF-8 mark is skipped.
class CsvReader {
 public:
  explicit CsvReader(std::istream& in);
  // The next record into `fields`; false at the end. Throws Error(config) for a quote that never ends, or text behind one that ends a cell.
  bool next(std::vector<std::string>& fields);
  int64_t line() const { return line_; }  // where the last record began, from 1

 private:
  std::istream& in_;
  std::string record_;
  int64_t line_ = 0, at_line_ = 1;
};

}  // namespace comera
