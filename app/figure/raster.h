// Rasterises a drawing on the CPU without a display. The PNG of the window and of `comera export` are the same bytes.
#pragma once
#include "app/figure/drawing.h"
#include "app/figure/png.h"

namespace comera {

inline constexpr float kLargestSide = 8192;  // largest width or height of a picture, pixels

// False if FreeType or the fonts were missing at build time, so that text cannot be drawn.
bool makes_pictures();

// `scale`: pixels per unit of the drawing, fewer if a side would exceed kLargestSide. A drawing without a background is painted on white.
// Throws Error(device) if makes_pictures() is false.
Picture raster(const Drawing& drawing, float scale);

}  // namespace comera
