// A drawing on the screen, or into a frame buffer.
#pragma once
#include <imgui.h>

#include "app/figure/drawing.h"

namespace comera::studio {

// Times `scale`, its corner at `origin`. Text that would be less than `least_text` pixels high is left out.
void paint(const Drawing& drawing, ImDrawList& list, ImVec2 origin, float scale, float least_text = 0);

}  // namespace comera::studio
