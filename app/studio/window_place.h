// Position of the window, restored in the next session.
#pragma once
#include <span>

namespace comera::studio {

// Content area of the window in screen coordinates; for a maximised window, the area before it was maximised.
struct WindowPlace {
  int x = 0, y = 0, width = 0, height = 0;
  bool maximised = false;
  bool known() const { return width > 0 && height > 0; }
};

struct ScreenArea {  // area of a monitor
  int x = 0, y = 0, width = 0, height = 0;
};

// Whether the window can be seen and moved at this place: most of it and its upper edge lie on the current monitors, and it is not larger
// than all of them together.
bool lies_on(const WindowPlace& place, std::span<const ScreenArea> screens);

}  // namespace comera::studio
