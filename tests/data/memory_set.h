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
    info_.text = true;
    info_.rows = rows;
    info_.classes = 3;
    info_.vocab_size = 1000 * (rows + 1);
    info_.unknown_token = 7;
    info_.cls_token = 1000;  // the first token of row 0
    info_.sep_token = 2001;  // the second one of row 1
  }
  const DatasetInfo& info() const override { return info_; }
  void text_row(int64_t row, int64_t max_length, TextRow& out) const override {
    const int64_t length = std::min(max_length, 2 + 7 * row % (longest_ - 1));
    out.ids.clear();
    for (int64_t i = 0; i < length; ++i) out.ids.push_back(static_cast<int32_t>(1000 * (row + 1) + i));
    out.segments.assign(out.ids.size(), 0);
    out.segments.back() = 1;
    out.label = static_cast<int32_t>(row % 3);
  }
  void image_row(int64_t, ImageRow&) const override { throw Error(ErrorCode::config, "texts"); }

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
  }
  const DatasetInfo& info() const override { return info_; }
  void text_row(int64_t, int64_t, TextRow&) const override { throw Error(ErrorCode::config, "images"); }
  void image_row(int64_t row, ImageRow& out) const override {
    out.pixels.clear();
    for (int64_t i = 0; i < info_.width; ++i) out.pixels.push_back(static_cast<float>(row * info_.width + i));
    out.label = static_cast<int32_t>(row % 3);
  }

 private:
  DatasetInfo info_;
};

}  // namespace comera::test
