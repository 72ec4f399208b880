#include "core/data/text_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/json.h"

namespace comera {
namespace {

using Json = nlohmann::ordered_json;

struct TextColumns {
  const char *first, *second;  // second = nullptr: one sentence
  bool with_label = false;     // only where there is a label, too
};
// In this order: QNLI's "sentence" stands beside a "question". Functions without labels are read for their code alone.
constexpr TextColumns kTexts[] = {{"sentence1", "sentence2"}, {"question", "sentence"},    {"question1", "question2"},
                                  {"premise", "hypothesis"},  {"docstring", "code", true}, {"sentence", nullptr},
                                  {"text", nullptr}};
constexpr const char* kLabels[] = {"gold_label", "label"};

// The end of a row of a CSV file: a line end outside of quotes.
size_t end_of_record(std::string_view bytes, size_t offset, char separator) {
  CsvScan scan(separator);
  for (size_t at = offset; at < bytes.size(); ++at)
    if (scan.ends(bytes[at])) return at;
  return std::string_view::npos;
}

// The text of a JSON string, number or truth value; false for anything else.
bool text_of(const Json& value, std::string& out) {
  if (value.is_string())
    out = value.get<std::string>();
  else if (value.is_number() || value.is_boolean())
    out = value.dump();
  else
    return false;
  return true;
}

void check_is_text(const std::string& name, std::string_view bytes) {
  if (bytes.starts_with("\x1f\x8b"))
    throw Error(ErrorCode::config, name + " is compressed", "it starts as a gzip file", "unpack it with gunzip");
  const size_t zero = bytes.find('\0');
  if (zero != std::string_view::npos)
    throw Error(ErrorCode::config, name + ":" + std::to_string(line_number(bytes, zero)) + ": not a text file",
                "there is a zero byte at offset " + std::to_string(zero), "name a TSV or JSONL file, or get it again if it was one");
}

}  // namespace

std::string_view line_at(std::string_view bytes, size_t offset) {
  std::string_view line = bytes.substr(offset, bytes.find('\n', offset) - offset);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

int64_t line_number(std::string_view bytes, size_t offset) {
  const auto begin = bytes.begin();
  return 1 + std::count(begin, begin + static_cast<std::ptrdiff_t>(std::min(offset, bytes.size())), '\n');
}

TextLayout::TextLayout(const std::string& name, std::string_view bytes, const ColumnNames& wanted, bool labels)
    : TextLayout(name, bytes, nullptr) {
  find_columns(name, wanted, labels);
}

TextLayout::TextLayout(const std::string& name, std::string_view bytes, std::nullptr_t) {
  check_is_text(name, bytes);
  if (bytes.starts_with("\xEF\xBB\xBF")) first_row_ = 3;  // byte order mark
  const std::string_view first_line = line_at(bytes, first_row_);
  json_ = first_line.starts_with("{");
  if (json_) {
    const Json row = try_parse_json(first_line);
    if (!row.is_object())
      throw Error(ErrorCode::config, name + ":1: not a JSON object", "the line cannot be parsed",
                  "one JSON object a line, or a TSV with a header line");
    for (const auto& item : row.items()) names_.push_back(item.key());
  } else {
    const bool commas = first_line.find('\t') == std::string_view::npos && first_line.find_first_of(",;") != std::string_view::npos;
    if (name.ends_with(".csv") || (commas && !name.ends_with(".tsv")))  // what comes in from stdin has no ending
      separator_ = first_line.find(',') == std::string_view::npos && first_line.find(';') != std::string_view::npos ? ';' : ',';
    size_t next = 0;
    std::string why;
    if (!csv_cells(row_at(bytes, first_row_, next), separator_, names_, why))
      throw Error(ErrorCode::config, name + ":1: not a header line", why, "the first line must have the names of the columns");
    first_row_ = next;
  }
}

void TextLayout::find_columns(const std::string& name, const ColumnNames& wanted, bool labels) {
  const auto at = [&](const std::string& column) {
    return static_cast<size_t>(std::find(names_.begin(), names_.end(), column) - names_.begin());
  };
  const auto has = [&](const std::string& column) { return at(column) < names_.size(); };
  const auto missing = [&](const std::string& what, const std::string& hint) {
    std::string seen;
    for (const std::string& column : names_) seen += (seen.empty() ? "" : ", ") + column.substr(0, 20);
    throw Error(ErrorCode::config, name + ":1: " + what, (json_ ? "the keys are: " : "the header has: ") + seen.substr(0, 120), hint);
  };
  const std::string label = labels ? wanted.label : "";
  for (const std::string& column : {wanted.first, wanted.second, label})
    if (!column.empty() && !has(column)) missing("no column '" + column + "'", "name a column that is there");
  if (!wanted.second.empty() && wanted.first.empty()) missing("a second text column without a first one", "set data.text_column, too");
  first_key_ = wanted.first, second_key_ = wanted.second, label_key_ = label;
  if (first_key_.empty()) {
    const bool has_label = std::any_of(std::begin(kLabels), std::end(kLabels), has);
    const TextColumns* texts = std::find_if(std::begin(kTexts), std::end(kTexts), [&](const TextColumns& c) {
      return has(c.first) && (!c.second || has(c.second)) && (!c.with_label || has_label);
    });
    if (texts == std::end(kTexts))
      missing("no columns to read",
              "comera data suggest FILE finds them; or set data.text_column and data.label_column, or name them sentence1 and sentence2 "
              "(or question and sentence), or sentence, and "
              "gold_label or label");
    first_key_ = texts->first, second_key_ = texts->second ? texts->second : "";
  }
  for (const char* label : kLabels)
    if (label_key_.empty() && has(label)) label_key_ = label;
  if (!labels) label_key_.clear();
  for (const std::string& used : {first_key_, second_key_, label_key_})
    if (!used.empty() && std::count(names_.begin(), names_.end(), used) > 1) missing("two columns are named '" + used + "'", "rename one");
  pair_ = !second_key_.empty();
  labelled_ = !label_key_.empty();
  first_at_ = at(first_key_), second_at_ = at(second_key_), label_at_ = at(label_key_);
}

std::string_view TextLayout::row_at(std::string_view bytes, size_t offset, size_t& next) const {
  const size_t end = separator_ == '\t' || json_ ? bytes.find('\n', offset) : end_of_record(bytes, offset, separator_);
  next = end == std::string_view::npos ? bytes.size() : end + 1;
  std::string_view row = bytes.substr(offset, end == std::string_view::npos ? end : end - offset);
  if (row.ends_with('\r')) row.remove_suffix(1);
  return row;
}

bool TextLayout::parse(std::string_view row, TextFields& out, std::string& why) const {
  return json_ ? parse_json_line(row, out, why) : parse_cells(row, out, why);
}

bool TextLayout::parse_cells(std::string_view row, TextFields& out, std::string& why) const {
  std::vector<std::string> cells;
  if (!csv_cells(row, separator_, cells, why)) return false;
  if (cells.size() != names_.size()) {
    why = "it has " + std::to_string(cells.size()) + " columns, the header has " + std::to_string(names_.size());
    return false;
  }
  out.first = cells[first_at_];
  out.second = pair_ ? cells[second_at_] : std::string();
  out.label = labelled_ ? cells[label_at_] : std::string();
  return true;
}

bool TextLayout::parse_json_line(std::string_view line, TextFields& out, std::string& why) const {
  const Json row = try_parse_json(line);
  if (!row.is_object()) {
    why = "it is not a JSON object";
    return false;
  }
  const auto take = [&](const std::string& key, std::string& to) {
    const auto found = row.find(key);
    if (found != row.end() && text_of(*found, to)) return true;
    why = found == row.end() ? "it has no key \"" + key + "\"" : "\"" + key + "\" is neither a text nor a number";
    return false;
  };
  out.second.clear();
  out.label.clear();
  return take(first_key_, out.first) && (!pair_ || take(second_key_, out.second)) && (!labelled_ || take(label_key_, out.label));
}

}  // namespace comera
