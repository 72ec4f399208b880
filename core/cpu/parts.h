// Many small tensors as one sequence of elements, so that a list is one parallel region.
#pragma once
#include <algorithm>
#include <span>

#include "core/cpu/thread_pool.h"

namespace comera {

// body(item, begin, end) over the elements [0, count(item)) of every item; a thread takes a range of the whole sequence,
// which may begin and end inside an item.
template <class Item, class Count, class Body>
void for_parts(ThreadPool& pool, std::span<const Item> items, int64_t grain, const Count& count, const Body& body) {
  int64_t total = 0;
  for (const Item& item : items) total += count(item);
  pool.parallel_for(total, grain, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // of the item, in the run
    for (const Item& item : items) {
      const int64_t size = count(item), from = std::max<int64_t>(begin - first, 0), to = std::min(end - first, size);
      if (from < to) body(item, from, to);
      first += size;
      if (first >= end) break;
    }
  });
}

}  // namespace comera
