// How well a model does on a data set.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace comera {

struct Score {
  double loss = 0, accuracy = 0;  // means over the examples
  int64_t examples = 0;           // rows with a label
  // Scores that only some tasks have, "auc": metric val_auc of core/config/metrics.cpp.
  std::vector<std::pair<std::string, double>> more = {};
};

}  // namespace comera
