// Sizes of a model as they are reported: plain data.
#pragma once
#include <cstdint>
#include <vector>

namespace comera {

// Live entries of every bond: [layer][bond].
using LiveRanks = std::vector<std::vector<int64_t>>;

struct RankChange {
  int64_t layer = 0, bond = 0;  // bond counts from 0
  int64_t from = 0, to = 0;
};

// How large a model is when its bonds have these ranks.
struct ModelSize {
  double entries = 0;            // live TT entries S; without tensor trains all values
  double bytes = 0;              // the same in bytes
  double compression = 1;        // entries of the dense matrices they stand for / entries
  double model_entries = 0;      // all values, frozen ones too; live ranks only
  double model_compression = 1;  // dense model / that
  int64_t held_entries = 0;      // TT entries in memory: falls when ranks are cut

  double bytes_an_entry() const { return entries > 0 ? bytes / entries : 4; }  // f32 where nothing is known yet
  bool operator==(const ModelSize&) const = default;
};

}  // namespace comera
