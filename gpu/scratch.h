// Offsets of the ops' working memory, which all ops use in turn, and the largest use. A dry run only counts, so the size is
// known before the memory is taken.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/rounding.h"

namespace comera::gpu {

class Scratch {
 public:
  void begin() { used_ = 0; }  // begins an op
  // Offset of the op's next piece.
  int64_t take(int64_t bytes) {
    const int64_t at = used_;
    used_ += size_of(bytes);
    most_ = std::max(most_, used_);
    return at;
  }
  // A piece at the end of the memory, in addition to the op's other pieces: records that both must fit.
  void note(int64_t bytes) { most_ = std::max(most_, used_ + size_of(bytes)); }
  int64_t used() const { return used_; }
  int64_t most() const { return most_; }  // since the last forget()
  void forget() { most_ = 0; }
  static int64_t size_of(int64_t bytes) { return round_up(std::max<int64_t>(bytes, 1), kAlignment); }
  // Address in a dry run: must not be dereferenced.
  static void* nowhere() { return reinterpret_cast<void*>(kAlignment); }

 private:
  static constexpr int64_t kAlignment = 256;
  int64_t used_ = 0, most_ = 0;
};

}  // namespace comera::gpu
