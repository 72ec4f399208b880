// From the label column of a file to class numbers.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace comera {

// Learns from the labels it is shown whether a file has numbers or names. Thread: its owner's.
class Labels {
 public:
  // `names`: the set's own class names by number (labels.txt, or of the training file), or empty. `classes`: how many classes there must
  // be, or 0 to take the largest number seen + 1. `learns`: names that are not known become classes, up to 1,000.
  Labels(std::vector<std::string> names, int64_t classes, bool learns = false);

  // Class number of a label text. Numbers are taken as they are; names are looked up in the set's names, else they
  // are MNLI's (entailment 0, neutral 1, contradiction 2) or QNLI's (entailment 0, not_entailment 1).
  // On a text that cannot be a label returns -1 and sets `why` (one line).
  int32_t number_of(std::string_view text, std::string& why);

  // After all labels: the class of each number that number_of() gave, where names were learned: in alphabetical order. Else empty.
  std::vector<int32_t> order() const;
  // Number of classes, and names where they are known.
  int64_t classes() const;
  std::vector<std::string> names() const;

 private:
  int32_t from_name(std::string_view text, std::string& why);
  const std::vector<std::string> own_names_;
  const int64_t fixed_classes_;
  const bool learns_;
  std::map<std::string, int32_t, std::less<>> learned_;  // by name: in order of appearance
  bool numbers_ = false, words_ = false;                 // what was seen so far
  bool neutral_or_contradiction_ = false, not_entailment_ = false;
  int64_t largest_ = -1;
};

// The lines of labels.txt; empty when there is no such file.
std::vector<std::string> read_label_names(const std::string& path);

}  // namespace comera
