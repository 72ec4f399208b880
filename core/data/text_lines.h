// The layouts of text sets: a TSV (GLUE) or CSV with a header line, and one JSON object a line.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace comera {

struct TextFields {  // one row as it stands in the file
  std::string first, second, label;
};

// Columns, or keys, that are asked for by name; "" = found by the names below.
struct ColumnNames {
  std::string first, second, label;
  bool operator==(const ColumnNames&) const = default;
  bool any() const { return !first.empty() || !second.empty() || !label.empty(); }
};

// Finds the columns by name. A CSV file (.csv) is one of RFC 4180: cells may stand in quotes and then have commas, line ends and doubled
// quotes; its separator is a semicolon where the header has no comma. So is one of another ending than .tsv whose header has a comma or
// semicolon and no tab. Immutable after construction; any thread may parse.
//   two sentences: sentence1+sentence2, question+sentence, question1+question2, premise+hypothesis, with a label docstring+code
//   one sentence:  sentence, text
//   label:         gold_label, label (may be missing: a test file)
class TextLayout {
 public:
  // `bytes` is the whole file `name`. Throws Error(config) when it is binary or a column that is asked for, or all of the usual ones, are
  // not there. Without `labels` a label column is not read.
  TextLayout(const std::string& name, std::string_view bytes, const ColumnNames& wanted = {}, bool labels = true);
  // The columns that a file would be read with, by the usual names or, where there are none, by its first rows: the text is the column with
  // the most words a row, the label one with few different values that come again. What is not found stays empty. Throws Error(config)
  // where the file is binary or has no header.
  static ColumnNames guess(const std::string& name, std::string_view bytes);
  // All of them, whatever they are named; of JSON those of the first row. Throws as guess().
  static std::vector<std::string> columns_of(const std::string& name, std::string_view bytes);

  bool json() const { return json_; }
  bool pair() const { return pair_; }
  bool labelled() const { return labelled_; }
  size_t first_row() const { return first_row_; }  // offset of the first line that is a row
  const std::vector<std::string>& columns() const { return names_; }
  const std::string& text_column() const { return first_key_; }  // of a pair the first one
  ColumnNames reads() const { return {first_key_, second_key_, label_key_}; }

  // The row that starts at `offset`, without its line end; `next` is where the next one starts.
  std::string_view row_at(std::string_view bytes, size_t offset, size_t& next) const;
  // False and one line in `why` when `row` is no such row.
  bool parse(std::string_view row, TextFields& out, std::string& why) const;

 private:
  TextLayout(const std::string& name, std::string_view bytes, std::nullptr_t);  // the header alone
  bool cells_of(std::string_view row, std::vector<std::string>& cells) const;   // of all columns; false where the row is not right
  void find_columns(const std::string& name, const ColumnNames& wanted, bool labels);
  bool parse_cells(std::string_view row, TextFields& out, std::string& why) const;
  bool parse_json_line(std::string_view line, TextFields& out, std::string& why) const;

  bool json_ = false, pair_ = false, labelled_ = false;
  char separator_ = '\t';  // of cells; in a CSV file cells may be quoted
  size_t first_row_ = 0;
  std::vector<std::string> names_;                      // of the columns, of JSON those of the first row
  size_t first_at_ = 0, second_at_ = 0, label_at_ = 0;  // TSV, CSV
  std::string first_key_, second_key_, label_key_;      // JSON
};

// The line of `bytes` that starts at `offset`, without "\n" or "\r\n".
std::string_view line_at(std::string_view bytes, size_t offset);
// 1-based number of the line that starts at `offset`.
int64_t line_number(std::string_view bytes, size_t offset);

}  // namespace comera
