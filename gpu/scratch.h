// Working memory of ops, one op after another in the same memory: what each takes, and the most that one took. In a dry
// run nothing else is done, so the most is known before the memory is.
#pragma once
#include <algorithm>
#include <cstdint>

#include "core/base/pieces.h"

namespace comera::gpu {

class Scratch {
 public:
  void begin() { used_ = 0; }  // of an op
  // Where in the memory the op's next piece lies.
  int64_t take(int64_t bytes) {
    const int64_t at = used_;
    used_ += size_of(bytes);
    most_ = std::max(most_, used_);
    return at;
  }
  int64_t most() const { return most_; }  // since forget()
  void forget() { most_ = 0; }
  static int64_t size_of(int64_t bytes) { return whole_pieces(std::max<int64_t>(bytes, 1), kAlignment); }
  // What a dry run gives: an address that nobody may use.
  static void* nowhere() { return reinterpret_cast<void*>(kAlignment); }

 private:
  static constexpr int64_t kAlignment = 256;
  int64_t used_ = 0, most_ = 0;
};

}  // namespace comera::gpu
