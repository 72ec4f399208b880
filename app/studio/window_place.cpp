#include "app/studio/window_place.h"

#include <algorithm>
#include <climits>
#include <cstdint>

namespace comera::studio {

bool lies_on(const WindowPlace& place, std::span<const ScreenArea> screens) {
  if (!place.known()) return false;
  int64_t seen = 0;  // visible area in pixels
  bool edge = false;
  int left = INT_MAX, right = INT_MIN, top = INT_MAX, bottom = INT_MIN;  // bounds of all monitors
  const int middle = place.x + place.width / 2;
  for (const ScreenArea& screen : screens) {
    const int64_t width = std::min(place.x + place.width, screen.x + screen.width) - std::max(place.x, screen.x);
    const int64_t height = std::min(place.y + place.height, screen.y + screen.height) - std::max(place.y, screen.y);
    if (width > 0 && height > 0) seen += width * height;
    left = std::min(left, screen.x);
    right = std::max(right, screen.x + screen.width);
    top = std::min(top, screen.y);
    bottom = std::max(bottom, screen.y + screen.height);
    edge |= middle >= screen.x && middle < screen.x + screen.width && place.y >= screen.y && place.y < screen.y + screen.height;
  }
  const bool fits = !screens.empty() && place.width <= right - left && place.height <= bottom - top;
  return fits && edge && 2 * seen > static_cast<int64_t>(place.width) * place.height;
}

}  // namespace comera::studio
