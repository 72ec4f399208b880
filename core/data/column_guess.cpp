// Which columns of a text file have the text and the label.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/data/text_lines.h"

namespace comera {
namespace {

constexpr size_t kRows = 2000;               // that are looked at
constexpr size_t kMostGuessedClasses = 100;  // of a label that nobody named
constexpr size_t kRowsOfAClass = 5;          // at least, on average
constexpr size_t kRowsOfAGap = 20;           // at least
constexpr size_t kLongestLabel = 60;         // bytes
// Columns that hold a label more often than not.
constexpr std::array kUsualLabels = {"class",   "category", "target", "sentiment", "topic",    "intent",
                                     "section", "type",     "kind",   "genre",     "language", "lang"};

struct Column {
  std::map<std::string, size_t> values;  // how often each comes; not all of a column with very many
  double words = 0;                      // sum over rows
  size_t rows = 0, longest = 0;
  size_t gaps = 0;  // empty cells

  void add(const std::string& cell) {
    ++rows;
    longest = std::max(longest, cell.size());
    gaps += cell.empty() ? 1 : 0;
    bool inside = false;
    for (const char c : cell) {
      const bool space = c == ' ' || c == '\t' || c == '\n';
      words += !space && !inside;
      inside = !space;
    }
    if (values.size() <= kMostGuessedClasses || values.contains(cell)) ++values[cell];
  }
  // Few empty cells are mistakes in a label, and so are more where it is one by its name (`usual`).
  bool may_be_label(bool usual) const {
    const size_t classes = values.size() - (gaps > 0 ? 1 : 0);
    return (gaps <= rows / kRowsOfAGap || usual) && longest <= kLongestLabel && classes >= 2 && values.size() <= kMostGuessedClasses &&
           rows >= kRowsOfAClass * values.size();
  }
};

bool is_usual_label(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(kUsualLabels.begin(), kUsualLabels.end(), name) != kUsualLabels.end();
}

}  // namespace

bool TextLayout::cells_of(std::string_view row, std::vector<std::string>& cells) const {
  if (!json_) {
    std::string why;
    return csv_cells(row, separator_, cells, why) && cells.size() == names_.size();
  }
  const auto json = try_parse_json(row);
  if (!json.is_object()) return false;
  cells.clear();
  for (const std::string& name : names_) {
    const auto found = json.find(name);
    cells.push_back(found == json.end() ? "" : found->is_string() ? found->get<std::string>() : found->dump());
  }
  return true;
}

std::vector<std::string> TextLayout::columns_of(const std::string& name, std::string_view bytes) {
  return TextLayout(name, bytes, nullptr).names_;
}

ColumnNames TextLayout::guess(const std::string& name, std::string_view bytes) {
  TextLayout layout(name, bytes, nullptr);
  std::vector<Column> columns(layout.names_.size());
  std::vector<std::string> cells;
  size_t rows = 0;
  for (size_t at = layout.first_row_, next = 0; at < bytes.size() && rows < kRows; at = next, ++rows)
    if (layout.cells_of(layout.row_at(bytes, at, next), cells))
      for (size_t i = 0; i < columns.size(); ++i) columns[i].add(cells[i]);
  ColumnNames found;
  std::optional<size_t> label, text;
  try {
    layout.find_columns(name, {}, true);
    found = {layout.first_key_, layout.second_key_, layout.label_key_};
  } catch (const Error&) {  // none has a usual name
  }
  const auto named = [&](size_t i) { return layout.names_[i] == found.first || layout.names_[i] == found.second; };
  const auto better_label = [&](size_t a, size_t b) {
    const bool usual = is_usual_label(layout.names_[a]);
    return usual != is_usual_label(layout.names_[b]) ? usual : columns[a].values.size() < columns[b].values.size();
  };
  for (size_t i = 0; i < columns.size(); ++i)
    if (!named(i) && columns[i].may_be_label(is_usual_label(layout.names_[i])) && (!label || better_label(i, *label))) label = i;
  if (found.label.empty() && label) found.label = layout.names_[*label];
  if (!found.first.empty()) return found;
  for (size_t i = 0; i < columns.size(); ++i)
    if (layout.names_[i] != found.label && columns[i].rows > 0 && (!text || columns[i].words > columns[*text].words)) text = i;
  if (text) found.first = layout.names_[*text];
  return found;
}

}  // namespace comera
