// Many small tensors as one sequence, so that a list is one parallel region.
#pragma once
#include <algorithm>
#include <span>

#include "core/base/rounding.h"
#include "core/cpu/thread_pool.h"

namespace comera {

struct Units {
  int64_t count;  // of an item, such as its rows
  int64_t cost;   // of one unit, at least 1, in the measure of `grain`
};

// body(item, begin, end) over the units [0, count) of every item; a thread takes a range of the whole sequence, which may begin and end
// inside an item, but not inside a unit.
template <class Item, class UnitsOf, class Body>
void for_units(ThreadPool& pool, std::span<const Item> items, int64_t grain, const UnitsOf& units_of, const Body& body) {
  int64_t total = 0;
  for (const Item& item : items) {
    const Units units = units_of(item);
    total += units.count * units.cost;
  }
  pool.parallel_for(total, grain, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // of the item, in the sequence
    for (const Item& item : items) {
      const Units units = units_of(item);
      const int64_t size = units.count * units.cost, from = std::max<int64_t>(begin - first, 0), to = std::min(end - first, size);
      const int64_t begin_unit = ceil_div(from, units.cost), end_unit = ceil_div(to, units.cost);
      if (from < to && begin_unit < end_unit) body(item, begin_unit, end_unit);
      first += size;
      if (first >= end) break;
    }
  });
}

// The same over elements, count(item) of an item.
template <class Item, class Count, class Body>
void for_parts(ThreadPool& pool, std::span<const Item> items, int64_t grain, const Count& count, const Body& body) {
  for_units(
      pool, items, grain,
      [&](const Item& item) {
        return Units{count(item), 1};
      },
      body);
}

}  // namespace comera
