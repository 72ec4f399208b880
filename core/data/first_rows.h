// The first rows of a set, as a set: for quick runs and learning curves.
#pragma once
#include <algorithm>
#include <memory>
#include <utility>

#include "core/data/dataset.h"

namespace comera {

class FirstRows final : public Dataset {
 public:
  // `rows` 0 = all.
  FirstRows(std::shared_ptr<const Dataset> data, int64_t rows) : data_(std::move(data)), info_(data_->info()) {
    if (rows > 0 && rows < info_.rows) {
      info_.rows = rows;
      info_.fingerprint += "/" + std::to_string(rows);
    }
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override { data_->read(row, max_length, out); }
  int64_t tokens(int64_t row, int64_t max_length) const override { return data_->tokens(row, max_length); }
  std::string shown(int64_t row, int64_t max_length) const override { return data_->shown(row, max_length); }
  void check_unchanged() const override { data_->check_unchanged(); }

 private:
  std::shared_ptr<const Dataset> data_;
  DatasetInfo info_;
};

}  // namespace comera
