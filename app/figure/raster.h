// Pixels of a drawing, made on the processor: the window's PNG and that of `comera export` are the same bytes, and neither
// needs a display.
#pragma once
#include "app/figure/drawing.h"
#include "app/figure/png.h"

namespace comera {

inline constexpr float kLargestSide = 8192;  // pixels of a picture

// False where FreeType or the font of drawings was not there when this program was built: no text could be drawn.
bool makes_pictures();

// `scale` pixels for each unit of the drawing, fewer where a side would be longer than kLargestSide. What is behind a
// drawing without a background is white. Throws Error(device) where makes_pictures() is false.
Picture raster(const Drawing& drawing, float scale);

}  // namespace comera
