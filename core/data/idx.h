// Images in MNIST's IDX format: big-endian header, then bytes. NAME-images-idx3-ubyte and NAME-labels-idx1-ubyte,
// each plain or .gz.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "core/base/mapped_file.h"
#include "core/data/dataset.h"

namespace comera {

// A whole file's bytes: mapped when plain, unpacked into memory when it is gzip.
class IdxBytes {
 public:
  // Throws Error(config) for a damaged gzip file, Error(not_found) for none.
  explicit IdxBytes(const std::string& path);
  std::string_view bytes() const { return unpacked_.empty() ? file_.bytes() : std::string_view(unpacked_); }
  void check_unchanged() const {
    if (unpacked_.empty()) file_.check_unchanged(kChangedData);
  }

 private:
  const MappedFile file_;
  std::string unpacked_;
};

// Immutable after construction; any thread may read rows.
class IdxDataset final : public Dataset {
 public:
  // `path`: the images file; the labels file is found beside it by name (either packing); without one the set is
  // unlabelled. `classes`: 0 = the largest label + 1. labels.txt beside it names the classes.
  // Throws Error(config) for a wrong magic number, a length that is not what the header says, another number of
  // labels than images, or a label outside the classes.
  explicit IdxDataset(const std::string& path, int64_t classes = 0);

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override;
  void check_unchanged() const override {
    images_.check_unchanged();
    if (labels_) labels_->check_unchanged();
  }

 private:
  void read_labels(const std::string& path, int64_t classes);
  const IdxBytes images_;
  std::unique_ptr<const IdxBytes> labels_;  // null: unlabelled
  std::string_view pixels_, numbers_;       // (rows, height, width), (rows): behind the headers
  DatasetInfo info_;
};

// The labels file that belongs to an images file; "" when there is none.
std::string idx_labels_path(const std::string& images_path);

}  // namespace comera
