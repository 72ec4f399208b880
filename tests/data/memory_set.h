// Sets that live in memory, for tests of what stands on top of Dataset.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/error.h"
#include "core/data/dataset.h"

namespace comera::test {

// Row i has 2 + (7 i mod `longest`-1) tokens, no two rows the same ids.
class MemoryTexts : public Dataset {
 public:
  MemoryTexts(int64_t rows, int64_t longest) : longest_(longest) {
    info_.rows = rows;
    info_.classes = 3;
    info_.vocab_size = 1000 * (rows + 1);
    info_.unknown_token = 7;
    info_.cls_token = 1000;  // the first token of row 0
    info_.sep_token = 2001;  // the second one of row 1
    describe_texts(info_);
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override {
    std::vector<int32_t>&ids = out.ints["ids"], &segments = out.ints["segments"];
    const int64_t length = std::min(max_length, 2 + 7 * row % (longest_ - 1));
    ids.clear();
    for (int64_t i = 0; i < length; ++i) ids.push_back(static_cast<int32_t>(1000 * (row + 1) + i));
    segments.assign(ids.size(), 0);
    segments.back() = 1;
    out.ints["labels"] = {static_cast<int32_t>(row % 3)};
  }

 private:
  int64_t longest_;
  DatasetInfo info_;
};

// Image i of `features` pixels has the values i*features, i*features + 1, ...
class MemoryImages : public Dataset {
 public:
  MemoryImages(int64_t rows, int64_t features) {
    info_.rows = rows;
    info_.classes = 3;
    info_.height = 1;
    info_.width = features;
    describe_images(info_);
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t, Columns& out) const override {
    std::vector<float>& pixels = out.reals["pixels"];
    pixels.clear();
    for (int64_t i = 0; i < info_.width; ++i) pixels.push_back(static_cast<float>(row * info_.width + i));
    out.ints["labels"] = {static_cast<int32_t>(row % 3)};
  }

 private:
  DatasetInfo info_;
};

}  // namespace comera::test
