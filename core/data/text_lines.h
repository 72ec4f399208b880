// The two layouts of text sets: a TSV with a header line (GLUE), and one JSON object a line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace comera {

struct TextFields {  // one row as it stands in the file
  std::string first, second, label;
};

// Finds the columns by name. Immutable after construction; any thread may parse.
//   two sentences: sentence1+sentence2, question+sentence, question1+question2, premise+hypothesis
//   one sentence:  sentence, text
//   label:         gold_label, label (may be missing: a test file)
class TextLayout {
 public:
  // `bytes` is the whole file `name`. Throws Error(config) when it is binary or none of the columns is there.
  TextLayout(const std::string& name, std::string_view bytes);

  bool json() const { return json_; }
  bool pair() const { return pair_; }
  bool labelled() const { return labelled_; }
  size_t first_row() const { return first_row_; }  // offset of the first line that is a row

  // False and one line in `why` when `line` (without its newline) is no such row.
  bool parse(std::string_view line, TextFields& out, std::string& why) const;

 private:
  void find_columns(const std::string& name, const std::vector<std::string>& columns);
  bool parse_tsv(std::string_view line, TextFields& out, std::string& why) const;
  bool parse_json_line(std::string_view line, TextFields& out, std::string& why) const;

  bool json_ = false, pair_ = false, labelled_ = false;
  size_t first_row_ = 0;
  size_t columns_ = 0;                                  // TSV: how many a line must have
  size_t first_at_ = 0, second_at_ = 0, label_at_ = 0;  // TSV
  std::string first_key_, second_key_, label_key_;      // JSON
};

// The line of `bytes` that starts at `offset`, without "\n" or "\r\n".
std::string_view line_at(std::string_view bytes, size_t offset);
// 1-based number of the line that starts at `offset`.
int64_t line_number(std::string_view bytes, size_t offset);

}  // namespace comera
