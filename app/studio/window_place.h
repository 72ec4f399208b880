// Position of the window, restored at the next start.
#pragma once
#include <span>

namespace comera::studio {

// Of what is inside of its frame, in the coordinates of the screen; of a maximised one, as it was before.
struct WindowPlace {
  int x = 0, y = 0, width = 0, height = 0;
  bool maximised = false;
  bool known() const { return width > 0 && height > 0; }
};

struct ScreenArea {  // of a monitor
  int x = 0, y = 0, width = 0, height = 0;
};

// Whether it can be seen and moved there: most of it lies on the monitors that are there, its upper edge too, and it is not
// larger than all of them.
bool lies_on(const WindowPlace& place, std::span<const ScreenArea> screens);

}  // namespace comera::studio
