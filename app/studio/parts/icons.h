// Icons that are drawn from lines.
#pragma once
#include <imgui.h>

namespace comera::studio {

enum class Icon {
  none,
  play,
  pause,
  step,
  step_back,
  forward,
  to_mark,
  rewind,
  loop,
  fork,
  stop,
  save,
  check,
  cross,
  warning,
  dot,
  ring,
  clock,
  home,
  chart,
  search,
  sun,
  moon,
  plus,
  more,
  star,
  star_empty
};
// Drawn from lines, so it is sharp at every scale.
void draw_icon(ImDrawList* list, Icon icon, ImVec2 center, float size, ImU32 color);

}  // namespace comera::studio
