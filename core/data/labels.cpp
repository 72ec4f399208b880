#include "core/data/labels.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <system_error>

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

}  // namespace

Labels::Labels(std::vector<std::string> names, int64_t classes, bool glue)
    : own_names_(std::move(names)), fixed_classes_(classes), glue_(glue) {}

int32_t Labels::from_name(std::string_view text, std::string& why) {
  if (!own_names_.empty()) {
    const int32_t own = index_of(own_names_, text);
    if (own < 0) why = "the label is " + quoted(text) + ", neither in the training data nor in labels.txt";
    return own;
  }
  const auto known = learned_.find(text);
  if (known != learned_.end()) return known->second;
  if (text.empty() || learned_.size() == kMostNames) {
    why = text.empty() ? "the label is empty" : "the column has more than " + std::to_string(kMostNames) + " different labels";
    return -1;
  }
  return learned_.emplace(text, static_cast<int32_t>(learned_.size())).first->second;
}

int32_t Labels::number_of(std::string_view text, std::string& why) {
  int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_number = error == std::errc() && end == text.data() + text.size();
  (is_number ? numbers_ : words_) = true;
  if (numbers_ && words_) {
    why = "the label is " + quoted(text) + ", but other lines have " + (is_number ? "names" : "numbers");
    return -1;
  }
  if (!is_number) {
    number = from_name(text, why);
    if (number < 0) return -1;
  }
  const int64_t bound = fixed_classes_ > 0 ? fixed_classes_ : !own_names_.empty() ? static_cast<int64_t>(own_names_.size()) : kMostClasses;
  if (number < 0 || number >= bound) {
    why = "the label is " + quoted(text) + ", outside 0.." + std::to_string(bound - 1);
    return -1;
  }
  largest_ = std::max(largest_, number);
  return static_cast<int32_t>(number);
}

std::vector<std::string> Labels::learned_names() const {
  for (const auto& names : {kMnli, kQnli})
    if (glue_ && !learned_.empty() && (fixed_classes_ == 0 || fixed_classes_ >= static_cast<int64_t>(names.size())) &&
        std::ranges::all_of(learned_, [&](const auto& one) { return index_of(names, one.first) >= 0; }))
      return names;
  std::vector<std::string> alphabetical;
  for (const auto& [name, number] : learned_) alphabetical.push_back(name);
  return alphabetical;
}

std::vector<int32_t> Labels::order() const {
  const std::vector<std::string> names = learned_names();
  std::vector<int32_t> order(learned_.size());
  for (const auto& [name, number] : learned_) order[static_cast<size_t>(number)] = index_of(names, name);
  return order;
}

LabelTexts Labels::texts() const {
  if (numbers_) return LabelTexts::numbers;
  if (!words_) return LabelTexts::none;
  const std::vector<std::string> names = learned_names();
  return !own_names_.empty() || names == kMnli || names == kQnli ? LabelTexts::known_names : LabelTexts::learned_names;
}

int64_t Labels::classes() const {
  if (fixed_classes_ > 0) return fixed_classes_;
  const auto names_known = static_cast<int64_t>(names().size());
  return names_known > 0 ? names_known : largest_ + 1;
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
