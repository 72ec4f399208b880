#include "core/data/text_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"

namespace comera {
namespace {

using Json = nlohmann::ordered_json;

struct Columns {
  const char *first, *second;  // second = nullptr: one sentence
};
// In this order: QNLI's "sentence" stands beside a "question".
constexpr Columns kTexts[] = {{"sentence1", "sentence2"}, {"question", "sentence"}, {"question1", "question2"},
                              {"premise", "hypothesis"},  {"sentence", nullptr},    {"text", nullptr}};
constexpr const char* kLabels[] = {"gold_label", "label"};

std::vector<std::string_view> split_tabs(std::string_view line) {
  std::vector<std::string_view> cells;
  for (size_t start = 0;;) {
    const size_t tab = line.find('\t', start);
    cells.push_back(line.substr(start, tab - start));
    if (tab == std::string_view::npos) return cells;
    start = tab + 1;
  }
}

// The text of a JSON string or whole number; false for anything else.
bool text_of(const Json& value, std::string& out) {
  if (value.is_string())
    out = value.get<std::string>();
  else if (value.is_number_integer())
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

TextLayout::TextLayout(const std::string& name, std::string_view bytes) {
  check_is_text(name, bytes);
  if (bytes.starts_with("\xEF\xBB\xBF")) first_row_ = 3;  // byte order mark
  const std::string_view first_line = line_at(bytes, first_row_);
  std::vector<std::string> columns;
  json_ = first_line.starts_with("{");
  if (json_) {
    const Json row = Json::parse(first_line, nullptr, false);
    if (!row.is_object())
      throw Error(ErrorCode::config, name + ":1: not a JSON object", "the line cannot be parsed",
                  "one JSON object a line, or a TSV with a header line");
    for (const auto& item : row.items()) columns.push_back(item.key());
  } else {
    for (std::string_view cell : split_tabs(first_line)) columns.emplace_back(cell);
    columns_ = columns.size();
    first_row_ = std::min(bytes.size(), bytes.find('\n'));
    if (first_row_ < bytes.size()) ++first_row_;
  }
  find_columns(name, columns);
}

void TextLayout::find_columns(const std::string& name, const std::vector<std::string>& columns) {
  const auto at = [&](const char* column) {
    return static_cast<size_t>(std::find(columns.begin(), columns.end(), column) - columns.begin());
  };
  const auto has = [&](const char* column) { return at(column) < columns.size(); };
  const Columns* texts =
      std::find_if(std::begin(kTexts), std::end(kTexts), [&](const Columns& c) { return has(c.first) && (!c.second || has(c.second)); });
  if (texts == std::end(kTexts)) {
    std::string seen;
    for (const std::string& column : columns) seen += (seen.empty() ? "" : ", ") + column.substr(0, 20);
    throw Error(ErrorCode::config, name + ":1: no columns to read", (json_ ? "the keys are: " : "the header has: ") + seen.substr(0, 120),
                "needed are sentence1 and sentence2 (or question and sentence), or sentence, and gold_label or label");
  }
  pair_ = texts->second != nullptr;
  first_key_ = texts->first, first_at_ = at(texts->first);
  if (pair_) second_key_ = texts->second, second_at_ = at(texts->second);
  for (const char* label : kLabels) {
    if (labelled_ || !has(label)) continue;
    labelled_ = true;
    label_key_ = label, label_at_ = at(label);
  }
}

bool TextLayout::parse(std::string_view line, TextFields& out, std::string& why) const {
  return json_ ? parse_json_line(line, out, why) : parse_tsv(line, out, why);
}

bool TextLayout::parse_tsv(std::string_view line, TextFields& out, std::string& why) const {
  const std::vector<std::string_view> cells = split_tabs(line);
  if (cells.size() != columns_) {
    why = "it has " + std::to_string(cells.size()) + " columns, the header has " + std::to_string(columns_);
    return false;
  }
  out.first = cells[first_at_];
  out.second = pair_ ? cells[second_at_] : std::string_view();
  out.label = labelled_ ? cells[label_at_] : std::string_view();
  return true;
}

bool TextLayout::parse_json_line(std::string_view line, TextFields& out, std::string& why) const {
  const Json row = Json::parse(line, nullptr, false);
  if (!row.is_object()) {
    why = "it is not a JSON object";
    return false;
  }
  const auto take = [&](const std::string& key, std::string& to) {
    const auto found = row.find(key);
    if (found != row.end() && text_of(*found, to)) return true;
    why = found == row.end() ? "it has no key \"" + key + "\"" : "\"" + key + "\" is neither a text nor a whole number";
    return false;
  };
  out.second.clear();
  out.label.clear();
  return take(first_key_, out.first) && (!pair_ || take(second_key_, out.second)) && (!labelled_ || take(label_key_, out.label));
}

}  // namespace comera
