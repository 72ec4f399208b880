// `comera data check`: reads a whole set the way training does.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/data/datasets.h"

namespace comera {

struct DataReport {
  std::string path;  // the file that was read
  DatasetInfo info;
  std::vector<int64_t> class_rows;  // (classes) rows of each class
  // Texts: tokens a row with [CLS] and [SEP], before any cut.
  int64_t shortest = 0, median = 0, percentile_90 = 0, percentile_99 = 0, longest = 0;
  double unknown_share = 0;  // of the tokens, 0..1: a high share means the wrong vocabulary
};

// Throws the error of the first bad line or byte ("FILE:LINE: what", why, hint), otherwise counts.
DataReport check_dataset(const DataSpec& spec);

}  // namespace comera
