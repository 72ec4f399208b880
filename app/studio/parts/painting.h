// A drawing on the screen, or into a frame buffer.
#pragma once
#include <imgui.h>

#include "app/figure/drawing.h"

namespace comera::studio {

// Times `scale`, its corner at `origin`. Text that would be less than `least_text` pixels high is left out.
void paint(const Drawing& drawing, ImDrawList& list, ImVec2 origin, float scale, float least_text = 0);

// How wide a text is drawn that is `height` high.
float drawn_width(const std::string& text, float height);

}  // namespace comera::studio
