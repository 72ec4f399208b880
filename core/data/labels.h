// From the label column of a file to class numbers.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"

namespace comera {

// Learns from the labels it is shown whether a file has class numbers (0, 1, ...), names, or signed numbers (-1, 0, 1), which count as
// names. Thread: its owner's.
class Labels {
 public:
  // `names`: the set's own class names by number (labels.txt, or of the training file), or empty: then names become classes, up to 1,000.
  // `classes`: how many classes there must be, or 0 to take the largest number seen + 1. `glue`: where all names are MNLI's (entailment 0,
  // neutral 1, contradiction 2) or QNLI's (entailment 0, not_entailment 1), they have these numbers.
  Labels(std::vector<std::string> names, int64_t classes, bool glue = false);

  // Number of a label text, for order(). On a text that cannot be a label returns -1 and sets `why` (one line).
  int32_t number_of(std::string_view text, std::string& why);

  // After all labels: the class of each number that number_of() gave. Class numbers are taken as they are. Names are looked up in the set's
  // own, or have GLUE's order, or are in alphabetical order; numbers with a sign are in ascending order.
  std::vector<int32_t> order() const;
  // Number of classes, and names where they are known.
  int64_t classes() const;
  std::vector<std::string> names() const;
  LabelTexts texts() const;

 private:
  std::vector<std::string> learned_names() const;  // by class
  const std::vector<std::string> own_names_;
  const int64_t fixed_classes_;
  const bool glue_, own_are_numbers_;
  std::map<std::string, int32_t, std::less<>> learned_;            // by text: in order of appearance
  bool numbers_ = false, signed_numbers_ = false, words_ = false;  // what was seen so far
};

// Output i of a model is class i of its training data. Throws Error(config) where a class of the data has another number in the model, so
// that each would be taken for another. Names that only one of them has are allowed.
void refuse_reordered_classes(const std::vector<std::string>& of_model, const std::vector<std::string>& of_data);

// Throws Error(config) for data in which every label has one name: there is nothing to learn.
void refuse_one_class(const std::vector<std::string>& names);

// The lines of labels.txt; empty when there is no such file.
std::vector<std::string> read_label_names(const std::string& path);

}  // namespace comera
