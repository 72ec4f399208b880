#include "core/data/labels.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "core/base/error.h"

namespace comera {
namespace {

// A label column that holds anything else (an id, a score) is told from classes by this bound.
constexpr int64_t kMostClasses = 65536;
constexpr size_t kMostNames = 1000;  // a column with more of them is no label

const std::vector<std::string> kMnli = {"entailment", "neutral", "contradiction"};
const std::vector<std::string> kQnli = {"entailment", "not_entailment"};

int32_t index_of(const std::vector<std::string>& names, std::string_view text) {
  const auto found = std::find(names.begin(), names.end(), text);
  return found == names.end() ? -1 : static_cast<int32_t>(found - names.begin());
}

std::string quoted(std::string_view text) {
  constexpr size_t kShown = 40;
  std::string out = "'";
  out.append(text.substr(0, kShown)).append(text.size() > kShown ? "...'" : "'");
  return out;
}

bool has_sign(std::string_view text) { return text.starts_with('-') || text.starts_with('+'); }

std::optional<int64_t> whole_number(std::string_view text) {
  int64_t number = 0;
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Labels::Labels(std::vector<std::string> names, int64_t classes, bool glue)
    : own_names_(std::move(names)),
      fixed_classes_(classes),
      glue_(glue),
      own_are_numbers_(!own_names_.empty() &&
                       std::ranges::all_of(own_names_, [](const std::string& name) { return whole_number(name).has_value(); })) {}

int32_t Labels::number_of(std::string_view text, std::string& why) {
  const auto refused = [&](const std::string& because) {
    why = "the label is " + (text.empty() ? "empty" : quoted(text) + because);
    return -1;
  };
  if (const auto known = learned_.find(text); known != learned_.end()) return known->second;
  if (text.empty()) return refused("");
  const std::optional<int64_t> number = own_are_numbers_ ? std::nullopt : whole_number(text);
  (!number ? words_ : has_sign(text) ? signed_numbers_ : numbers_) = true;
  if (words_ && (numbers_ || signed_numbers_)) return refused(std::string(", but other lines have ") + (number ? "names" : "numbers"));
  const bool named = words_ || signed_numbers_;
  if (named && !own_names_.empty() && index_of(own_names_, text) < 0) return refused(", neither in the training data nor in labels.txt");
  const int64_t bound = fixed_classes_ > 0 ? fixed_classes_ : !own_names_.empty() ? static_cast<int64_t>(own_names_.size()) : kMostClasses;
  if (!named && *number >= bound) return refused(", outside 0.." + std::to_string(bound - 1));
  if (named && learned_.size() >= kMostNames) {
    why = "the column has more than " + std::to_string(kMostNames) + " different labels";
    return -1;
  }
  return learned_.emplace(text, static_cast<int32_t>(learned_.size())).first->second;
}

std::vector<std::string> Labels::learned_names() const {
  if (!words_ && !signed_numbers_) return {};
  for (const auto& names : {kMnli, kQnli})
    if (glue_ && (fixed_classes_ == 0 || fixed_classes_ >= static_cast<int64_t>(names.size())) &&
        std::ranges::all_of(learned_, [&](const auto& one) { return index_of(names, one.first) >= 0; }))
      return names;
  std::vector<std::string> names;
  for (const auto& [name, number] : learned_) names.push_back(name);
  if (signed_numbers_) std::ranges::sort(names, {}, [](const std::string& name) { return std::pair(whole_number(name), name); });
  return names;
}

std::vector<int32_t> Labels::order() const {
  const LabelTexts kind = texts();
  const std::vector<std::string> names = own_names_.empty() ? learned_names() : own_names_;
  std::vector<int32_t> order(learned_.size());
  for (const auto& [name, number] : learned_)
    order[static_cast<size_t>(number)] = kind == LabelTexts::numbers ? static_cast<int32_t>(*whole_number(name)) : index_of(names, name);
  return order;
}

LabelTexts Labels::texts() const {
  if (numbers_ && !signed_numbers_) return LabelTexts::numbers;
  if (!words_ && !signed_numbers_) return LabelTexts::none;
  const std::vector<std::string> names = learned_names();
  return !own_names_.empty() || names == kMnli || names == kQnli ? LabelTexts::known_names : LabelTexts::learned_names;
}

int64_t Labels::classes() const {
  if (fixed_classes_ > 0) return fixed_classes_;
  const auto names_known = static_cast<int64_t>(names().size());
  if (names_known > 0) return names_known;
  const std::vector<int32_t> numbers = order();
  return numbers.empty() ? 0 : *std::ranges::max_element(numbers) + 1;
}

std::vector<std::string> Labels::names() const {
  std::vector<std::string> names = own_names_.empty() ? learned_names() : own_names_;
  if (fixed_classes_ > 0 && static_cast<int64_t>(names.size()) != fixed_classes_) names.clear();
  return names;
}

void refuse_reordered_classes(const std::vector<std::string>& of_model, const std::vector<std::string>& of_data) {
  for (size_t i = 0; i < of_data.size(); ++i) {
    if (i < of_model.size() && of_model[i] == of_data[i]) continue;
    const int32_t other = index_of(of_model, of_data[i]);
    if (other < 0) continue;
    throw Error(ErrorCode::config, "the classes of the data are in another order than the model's",
                quoted(std::string_view(of_data[i])) + " is class " + std::to_string(other) + " of the model and class " +
                    std::to_string(i) + " of the data",
                "write labels.txt next to the data file with all of the model's classes, one name a line, in its order");
  }
}

void refuse_one_class(const std::vector<std::string>& names) {
  if (names.size() == 1)
    throw Error(ErrorCode::config, "the data have one class", "every label is " + quoted(std::string_view(names[0])),
                "add rows of other classes, or name another label column");
}

std::vector<std::string> read_label_names(const std::string& path) {
  std::vector<std::string> names;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!line.empty()) names.push_back(line);
  }
  return names;
}

}  // namespace comera
