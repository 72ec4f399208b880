// A click log in Criteo's format as a packed file, which rows can be read from in any order: one pass over the text, plain or gzip, which
// may be larger than memory. The packed file stays in the cache folder and is made again when the text has another size or time.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/mapped_file.h"

namespace comera {

inline constexpr int kCriteoNumbers = 13, kCriteoCategories = 26;

struct CriteoRow {
  static constexpr int32_t kMissing = INT32_MIN;
  int32_t label;  // 0 or 1; -1: none
  int32_t numbers[kCriteoNumbers];
  uint32_t categories[kCriteoCategories];  // hashes of the values; 0: missing
};

// How often a value is there.
struct CriteoCount {
  uint32_t hash, count;
};

// Immutable after construction; any thread may read.
class CriteoPack {
 public:
  // label<tab>13 integers<tab>26 texts a line, each of which may be empty; without a label: a test file, whose labels may be in
  // NAME.labels.txt beside it, one a line. `progress` gets the share that is read, 0..1. Throws Error(config) for a line that is not so,
  // Error(storage) where neither the cache folder nor the folder of temporary files can be written to.
  explicit CriteoPack(const std::string& path, const std::function<void(double)>& progress = {});

  // Whether a file begins like one.
  static bool is(std::string_view bytes);

  int64_t rows() const { return rows_; }
  bool labelled() const { return labelled_; }
  const CriteoRow& row(int64_t i) const { return first_[i]; }
  // The values of a categorical column and how often they are there, by hash.
  const CriteoCount* begin(int column) const { return counts_ + starts_[column]; }
  const CriteoCount* end(int column) const { return counts_ + starts_[column + 1]; }
  const std::string& fingerprint() const { return fingerprint_; }  // sha256 (hex) of the text, and of the labels beside it

 private:
  bool open(const std::string& packed);

  std::unique_ptr<const MappedFile> file_;
  int64_t rows_ = 0;
  bool labelled_ = false;
  const CriteoRow* first_ = nullptr;
  const CriteoCount* counts_ = nullptr;
  int64_t starts_[kCriteoCategories + 1] = {};
  std::string fingerprint_;
};

}  // namespace comera
