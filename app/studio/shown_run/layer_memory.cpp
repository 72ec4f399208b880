#include "app/studio/shown_run/layer_memory.h"

#include <algorithm>
#include <cmath>

#include "app/figure/tt_layout.h"

namespace comera::studio {
namespace {

double product(const std::vector<int64_t>& modes) {
  double out = 1;
  for (const int64_t mode : modes) out *= static_cast<double>(mode);
  return out;
}

// The largest aspect ratio of the tiles `sizes[begin..end)` in a row of this length.
double worst_ratio(const std::vector<double>& sizes, size_t begin, size_t end, double side) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += sizes[i];
  const double depth = sum / side;
  double worst = 1;
  for (size_t i = begin; i < end; ++i) {
    const double length = sizes[i] / depth;
    if (length > 0) worst = std::max({worst, length / depth, depth / length});
  }
  return worst;
}

}  // namespace

ModelMemory memory_by_layer(const Snapshot& s) {
  ModelMemory out;
  out.rest = s.memory_now;
  const double bytes = s.size.entries > 0 ? s.size.bytes / s.size.entries : 0;
  double cores = 0, ranks = 0;
  for (const LayerRanks& layer : s.ranks) {
    if (!has_shape(layer)) continue;
    cores += static_cast<double>(layer_entries(layer, layer.held));
    for (const int64_t held : layer.held) ranks += static_cast<double>(held);
  }
  if (s.memory_now.total() == 0 || bytes <= 0 || cores <= 0) return out;
  out.known = true;
  const double dense_values = static_cast<double>(s.memory_now[Purpose::dense_weight]) / bytes, all = cores + ranks + dense_values;
  const auto share = [&](Purpose purpose, double values) { return static_cast<double>(s.memory_now[purpose]) * values / all; };
  const auto whole = [](double value) { return static_cast<int64_t>(std::llround(value)); };
  for (const LayerRanks& layer : s.ranks) {
    if (!has_shape(layer)) continue;
    LayerMemory row{layer.name, {}};
    double rank_values = 0;
    for (const int64_t held : layer.held) rank_values += static_cast<double>(held);
    const auto core_values = static_cast<double>(layer_entries(layer, layer.held));
    row.bytes[Purpose::tt_core] = whole(core_values * bytes);
    row.bytes[Purpose::rank_vector] = whole(rank_values * bytes);
    row.bytes[Purpose::gradient] = whole(share(Purpose::gradient, core_values + rank_values));
    row.bytes[Purpose::optimizer] = whole(share(Purpose::optimizer, core_values + rank_values));
    const double dense = product(layer.in_modes) * product(layer.out_modes);
    row.dense_values = dense * bytes;
    row.dense = row.dense_values + share(Purpose::gradient, dense) + share(Purpose::optimizer, dense);
    for (int i = 0; i < kPurposes; ++i)
      out.rest.bytes[static_cast<size_t>(i)] =
          std::max<int64_t>(0, out.rest.bytes[static_cast<size_t>(i)] - row.bytes.bytes[static_cast<size_t>(i)]);
    out.layers.push_back(std::move(row));
    out.dense += out.layers.back().dense;
  }
  out.dense += static_cast<double>(out.rest.total());
  return out;
}

std::vector<Tile> squarify(const std::vector<double>& sizes, Tile into) {
  std::vector<Tile> out(sizes.size());
  double total = 0;
  for (const double size : sizes) total += size;
  if (!(total > 0) || into.width <= 0 || into.height <= 0) return out;
  std::vector<double> areas;
  for (const double size : sizes) areas.push_back(size / total * static_cast<double>(into.width) * static_cast<double>(into.height));
  double x = into.x, y = into.y, width = into.width, height = into.height;
  for (size_t begin = 0; begin < areas.size() && areas[begin] > 0;) {
    // A row along the shorter side takes tiles while its worst aspect ratio improves.
    const double side = std::min(width, height);
    if (side <= 0) break;
    size_t end = begin + 1;
    while (end < areas.size() && areas[end] > 0 && worst_ratio(areas, begin, end + 1, side) <= worst_ratio(areas, begin, end, side)) ++end;
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += areas[i];
    const double depth = sum / side;
    const bool across = width < height;  // the row is at the top, else at the left
    double along = across ? x : y;
    for (size_t i = begin; i < end; ++i) {
      const double length = areas[i] / depth;
      const auto f = [](double value) { return static_cast<float>(value); };
      out[i] = across ? Tile{f(along), f(y), f(length), f(depth)} : Tile{f(x), f(along), f(depth), f(length)};
      along += length;
    }
    if (across) {
      y += depth;
      height -= depth;
    } else {
      x += depth;
      width -= depth;
    }
    begin = end;
  }
  return out;
}

}  // namespace comera::studio
