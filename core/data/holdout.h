// A set of which every n-th row is held out for validation: row n - 1, 2 n - 1, ...
#pragma once
#include <cmath>
#include <memory>
#include <utility>

#include "core/base/error.h"
#include "core/data/dataset.h"

namespace comera {

class Holdout final : public Dataset {
 public:
  // The rows that are held out, or all others. `share` of the rows above 0, at most 1/2: n is the whole number next to 1 / share. Throws
  // Error(config) where a part has no row.
  Holdout(std::shared_ptr<const Dataset> data, double share, bool held_out)
      : data_(std::move(data)), every_(std::llround(1 / share)), held_out_(held_out), info_(data_->info()) {
    CHECK(every_ >= 2, "a share of " << share << " held out");
    const int64_t rows = info_.rows, held = held_of(rows, share);
    if (held == 0)
      throw Error(ErrorCode::config, "too few rows to hold out for validation", info_.name + " has " + std::to_string(rows) + " rows",
                  "set data.holdout=0, or a larger share");
    info_.rows = held_out ? held : rows - held;
    info_.fingerprint += (held_out ? "/held out of " : "/but held out of ") + std::to_string(every_);
  }
  // How many rows of so many are held out.
  static int64_t held_of(int64_t rows, double share) { return share > 0 ? rows / std::llround(1 / share) : 0; }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override { data_->read(place(row), max_length, out); }
  int64_t tokens(int64_t row, int64_t max_length) const override { return data_->tokens(place(row), max_length); }
  std::string shown(int64_t row, int64_t max_length) const override { return data_->shown(place(row), max_length); }
  void check_unchanged() const override { data_->check_unchanged(); }

 private:
  int64_t place(int64_t row) const { return held_out_ ? (row + 1) * every_ - 1 : row + row / (every_ - 1); }

  std::shared_ptr<const Dataset> data_;
  const int64_t every_;
  const bool held_out_;
  DatasetInfo info_;
};

}  // namespace comera
