// Images whose pixels are shifted and divided: (pixel - mean) / std.
#pragma once
#include <memory>
#include <utility>

#include "core/data/dataset.h"

namespace comera {

class ScaledPixels final : public Dataset {
 public:
  ScaledPixels(std::unique_ptr<const Dataset> data, double mean, double std)
      : data_(std::move(data)), mean_(static_cast<float>(mean)), factor_(static_cast<float>(1 / std)) {}
  const DatasetInfo& info() const override { return data_->info(); }
  void read(int64_t row, int64_t max_length, Columns& out) const override {
    data_->read(row, max_length, out);
    for (float& pixel : out.reals.at("pixels")) pixel = (pixel - mean_) * factor_;
  }
  std::string shown(int64_t row, int64_t max_length) const override { return data_->shown(row, max_length); }
  void check_unchanged() const override { data_->check_unchanged(); }

 private:
  const std::unique_ptr<const Dataset> data_;
  const float mean_, factor_;
};

}  // namespace comera
