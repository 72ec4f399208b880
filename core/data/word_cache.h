// Ids of words that were met before, while one long text is encoded: most words of a text are repeats.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/data/token_table.h"

namespace comera {

class WordCache {
 public:
  // A text of `bytes`; a short one is not worth it.
  explicit WordCache(size_t bytes) : used_(bytes >= 4096) {}

  // Appends the ids of `word` to `ids`: those that are known, else what encode(word, ids) appends.
  template <class Encode>
  void encode(std::string_view word, std::vector<int32_t>& ids, const Encode& encode) {
    if (!used_ || word.size() > kLongest) return encode(word, ids);
    if (const auto found = places_.find(word); found != places_.end()) {
      const auto begin = pool_.begin() + static_cast<std::ptrdiff_t>(found->second.begin);
      ids.insert(ids.end(), begin, begin + found->second.count);
      return;
    }
    const size_t before = ids.size();
    encode(word, ids);
    if (places_.size() >= kMost) return;
    places_.emplace(word, Place{pool_.size(), static_cast<std::ptrdiff_t>(ids.size() - before)});
    pool_.insert(pool_.end(), ids.begin() + static_cast<std::ptrdiff_t>(before), ids.end());
  }

 private:
  static constexpr size_t kLongest = 32, kMost = 1 << 16;  // bytes; words
  struct Place {
    size_t begin;
    std::ptrdiff_t count;
  };
  const bool used_;
  std::unordered_map<std::string, Place, TextHash, std::equal_to<>> places_;
  std::vector<int32_t> pool_;
};

}  // namespace comera
