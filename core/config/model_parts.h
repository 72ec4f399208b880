// What the settings and checks of several models share.
#pragma once
#include <string>
#include <vector>

#include "core/base/fields.h"
#include "core/config/model.h"

namespace comera {

// Collects problems; hidden layers of one kind may have the same one, which is said once.
class Problems {
 public:
  void add(const std::string& path, const std::string& text, const std::string& hint);
  // A size that came by code, past the ranges of the fields.
  bool at_least(int64_t value, int64_t least, const std::string& path);
  const std::vector<Problem>& list() const { return list_; }

 private:
  std::vector<Problem> list_;
};

// The token table (rows, columns); if tied, the head's matrix, with the modes of a linear layer.
ModelMatrix token_table(int64_t rows, int64_t columns, bool tied);

// Of the setting keep_probabilities.
FieldInfo kept_probabilities();

// Of a feed-forward layer, behind `more`.
std::vector<Choice> activation_choices(std::vector<Choice> more = {});

}  // namespace comera
