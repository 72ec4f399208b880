#include "app/studio/shown_run/eta.h"

#include <algorithm>
#include <cmath>

namespace comera::studio {

Eta estimate_eta(const PlayClock& clock, int64_t steps_left) {
  constexpr int64_t kBlocks = 10, kMostInBlock = 20;  // blocks, and most steps per block
  const std::vector<double>& done = clock.seconds().y();
  const auto known = static_cast<int64_t>(done.size()) - 1;  // steps with known time
  const int64_t in_block = std::min(kMostInBlock, known / kBlocks);
  if (steps_left <= 0 || in_block < 1) return {};
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < kBlocks; ++i) {
    const auto end = static_cast<size_t>(known - i * in_block);
    const double seconds = done[end] - done[end - static_cast<size_t>(in_block)];
    sum += seconds;
    squares += seconds * seconds;
  }
  const double mean = sum / kBlocks, variance = std::max(0.0, (squares - sum * mean) / (kBlocks - 1));
  const double blocks_left = static_cast<double>(steps_left) / static_cast<double>(in_block);
  return {mean * blocks_left, std::sqrt(variance * (blocks_left + blocks_left * blocks_left / kBlocks))};
}

}  // namespace comera::studio
