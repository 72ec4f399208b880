#include "app/studio/compare/parallel_axes.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <set>

namespace comera::studio {
namespace {

constexpr float kNowhere = std::numeric_limits<float>::quiet_NaN();
constexpr double kLogRange = 20;  // largest / smallest value from which the scale is logarithmic

// False if it is not a number.
bool number_of(const std::string& text, double& value) {
  char* end = nullptr;
  value = std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0' && std::isfinite(value);
}

// Sets places and end labels for numbers; false if all are equal.
bool place_numbers(const std::vector<double>& values, const std::vector<std::string>& texts, ParallelAxis& axis) {
  size_t low = values.size(), high = values.size();
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    if (low == values.size() || values[i] < values[low]) low = i;
    if (high == values.size() || values[i] > values[high]) high = i;
  }
  if (low == values.size() || values[low] == values[high]) return false;
  const double a = values[low], b = values[high];
  const bool logarithmic = a > 0 && b / a >= kLogRange;
  for (const double value : values) {
    const double place = logarithmic ? std::log(value / a) / std::log(b / a) : (value - a) / (b - a);
    axis.places.push_back(std::isfinite(value) ? static_cast<float>(place) : kNowhere);
  }
  axis.texts = texts;
  axis.low = texts[low];
  axis.high = texts[high];
  return true;
}

// Sets places for words. A single word is enough if other runs lack the setting, but not if it is unused in them.
bool place_words(const std::vector<std::string>& words, ParallelAxis& axis) {
  std::set<std::string> kinds(words.begin(), words.end());
  kinds.erase("");
  if (kinds.size() < 2 && std::find(axis.unused.begin(), axis.unused.end(), true) != axis.unused.end()) return false;
  for (const std::string& word : words) {
    const auto index = static_cast<float>(std::distance(kinds.begin(), kinds.find(word)));
    axis.places.push_back(word.empty() ? kNowhere : (index + 0.5f) / static_cast<float>(kinds.size()));
  }
  axis.texts = words;
  return true;
}

}  // namespace

std::vector<ParallelAxis> parallel_axes(const Compare& compare) {
  std::vector<ParallelAxis> axes;
  for (const SettingRow& row : settings_of(compare.runs)) {
    if (row.same || row.path == "name") continue;
    const size_t dot = row.path.rfind('.');
    ParallelAxis axis{.id = row.path, .title = row.path.substr(dot + 1), .group = dot == std::string::npos ? "" : row.path.substr(0, dot)};
    axis.setting = true;
    std::vector<std::string> texts;
    std::vector<double> values;
    bool numbers = true;
    for (size_t i = 0; i < row.values.size(); ++i) {
      axis.unused.push_back(has_no_use_of(*compare.runs[i], row.path));
      const std::string text = axis.unused.back() ? "" : row.values[i];  // the default of an unused setting has no meaning
      double value = kNowhere;
      if (!text.empty() && !number_of(text, value)) numbers = false;
      texts.push_back(unquoted(text));
      values.push_back(text.empty() ? kNowhere : value);
    }
    // An axis needs at least two different values.
    if (numbers ? !place_numbers(values, texts, axis) : !place_words(texts, axis)) continue;
    axes.push_back(std::move(axis));
  }
  static const std::set<std::string> kResults = {"best_accuracy", "val_loss", "whole", "compression", "peak", "step_ms"};
  for (const Quantity& quantity : results()) {
    if (!kResults.contains(quantity.id)) continue;
    ParallelAxis axis{.id = quantity.id, .title = quantity.title, .group = quantity.how.empty() ? "result" : quantity.how};
    std::vector<double> values;
    std::vector<std::string> texts;
    for (const auto& run : compare.runs) {
      values.push_back(run->read() ? quantity.value(*run) : kNowhere);
      texts.push_back(std::isfinite(values.back()) ? quantity.text(values.back()) : "");
      axis.unused.push_back(false);
    }
    if (place_numbers(values, texts, axis)) axes.push_back(std::move(axis));
  }
  return axes;
}

void fade_unbrushed(Compare& compare) {
  for (const auto& run : compare.runs) run->faded = false;
  if (compare.brushes.empty()) return;
  for (const ParallelAxis& axis : parallel_axes(compare)) {
    const auto brush = compare.brushes.find(axis.id);
    if (brush == compare.brushes.end()) continue;
    for (size_t i = 0; i < compare.runs.size(); ++i) {
      const float place = axis.places[i];
      if (!(place >= brush->second.first && place <= brush->second.second)) compare.runs[i]->faded = true;
    }
  }
}

}  // namespace comera::studio
