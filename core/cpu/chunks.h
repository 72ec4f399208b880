// Loops over elements in chunks of a fixed size: a thread takes whole chunks, so every element goes through the
// same instructions whatever the number of threads.
#pragma once
#include <algorithm>

#include "core/base/rng.h"
#include "core/base/rounding.h"
#include "core/cpu/philox_words.h"
#include "core/cpu/thread_pool.h"
#include "core/ops/ops.h"
#include "core/ops/pointwise_math.h"

namespace comera {

inline constexpr int64_t kChunk = 4096;

// body(begin, end) with end - begin <= kChunk, over [0, count).
template <class Body>
void for_chunks(ThreadPool& pool, int64_t count, const Body& body) {
  pool.parallel_for(ceil_div(count, kChunk), 4, [&](int64_t first, int64_t last) {
    for (int64_t chunk = first; chunk < last; ++chunk) body(chunk * kChunk, std::min(count, (chunk + 1) * kChunk));
  });
}

// The mask of one dropout site: factors by element index. Off when the probability is 0; then nothing is read.
class DropoutSite {
 public:
  // `count`: elements of the mask. The mask of part p of a batch continues where the mask of part p - 1 ends.
  DropoutSite(Dropout dropout, const Tensor& step, int64_t count) : on_(dropout.probability > 0), probability_(dropout.probability) {
    if (!on_) return;
    const StepScalars& scalars = *static_cast<const StepScalars*>(step.raw());
    stream_ = {scalars.seed, static_cast<uint32_t>(scalars.step), dropout.site};
    before_ = scalars.part * static_cast<uint64_t>(count);
  }
  bool on() const { return on_; }

  template <class T>
  DropoutMask<T> mask() const {
    return DropoutMask<T>(probability_);
  }

  // Calls body(offset, count, draws) in pieces that cover [0, count): draws[i] belongs to element first + offset + i.
  template <class Body>
  void each_draws(uint64_t first, int64_t count, const Body& body) const {
    constexpr int64_t kDraws = 2048;
    alignas(64) uint16_t buffer[philox_halves_room(kDraws)];
    for (int64_t done = 0; done < count; done += kDraws) {
      const int64_t now = std::min(kDraws, count - done);
      body(done, now, philox_halves(stream_, before_ + first + static_cast<uint64_t>(done), now, buffer));
    }
  }

  // y[i] = x[i] * factor of element first + i. y may be x.
  template <class T>
  void apply(T* y, const T* x, uint64_t first, int64_t count) const {
    each_draws(first, count, [&](int64_t offset, int64_t now, const uint16_t* draws) {
      const DropoutMask<T> mask = this->mask<T>();  // here, where it lives in registers: a store to y cannot change it
      T* to = y + offset;
      const T* from = x + offset;
#pragma GCC ivdep
      for (int64_t i = 0; i < now; ++i) to[i] = mask.apply(from[i], draws[i]);
    });
  }

 private:
  bool on_;
  double probability_;
  Philox stream_;
  uint64_t before_ = 0;  // elements of earlier parts
};

}  // namespace comera
