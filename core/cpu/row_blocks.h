// Sums over rows in blocks that depend on the number of rows only: the same result for any number of threads, and
// rounding that grows with the length of a block plus their number instead of with the number of rows.
#pragma once
#include <algorithm>

#include "core/base/rounding.h"
#include "core/cpu/thread_pool.h"

namespace comera {

struct RowBlocks {
  int64_t rows, size, count;  // block i is rows [i * size, min(rows, (i + 1) * size))

  explicit RowBlocks(int64_t rows) : rows(rows), size(std::max<int64_t>(32, ceil_div(rows, 128))), count(ceil_div(rows, size)) {}
  int64_t begin(int64_t block) const { return block * size; }
  int64_t end(int64_t block) const { return std::min(rows, (block + 1) * size); }
};

// sum (width) = sum of the partial sums (count, width), in order.
template <class T>
void add_partials(ThreadPool& pool, const T* partials, int64_t count, int64_t stride, int64_t width, T* sum) {
  constexpr int64_t kColumns = 256;
  pool.parallel_for(ceil_div(width, kColumns), std::max<int64_t>(1, 64 / std::max<int64_t>(count, 1)), [&](int64_t first, int64_t last) {
    const int64_t begin = first * kColumns, end = std::min(width, last * kColumns);
    std::fill(sum + begin, sum + end, T(0));
    for (int64_t block = 0; block < count; ++block) {
      const T* partial = partials + block * stride;
#pragma GCC ivdep
      for (int64_t j = begin; j < end; ++j) sum[j] += partial[j];
    }
  });
}

// Partial sums (blocks, width): body(partial, begin, end) adds the rows of a block to `partial`, which starts at 0.
// They lie in the pool's scratch.
template <class T, class Body>
T* partial_sums(ThreadPool& pool, const RowBlocks& blocks, int64_t width, const Body& body) {
  T* partials = pool.scratch_of<T>(std::max<int64_t>(blocks.count * width, 1));
  pool.parallel_for(blocks.count, (int64_t{1} << 14) / std::max<int64_t>(blocks.size * width, 1) + 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      T* partial = partials + block * width;
      std::fill(partial, partial + width, T(0));
      body(partial, blocks.begin(block), blocks.end(block));
    }
  });
  return partials;
}

}  // namespace comera
