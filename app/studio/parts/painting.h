// Paints a drawing into an ImGui draw list.
#pragma once
#include <imgui.h>

#include "app/figure/drawing.h"

namespace comera::studio {

// Scaled by `scale`, with its corner at `origin`. Leaves out text lower than `least_text` pixels.
void paint(const Drawing& drawing, ImDrawList& list, ImVec2 origin, float scale, float least_text = 0);

// Width of a text of this height.
float drawn_width(const std::string& text, float height);

}  // namespace comera::studio
