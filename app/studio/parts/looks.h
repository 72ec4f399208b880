// How phases of a run, marks of its timeline and purposes of memory look: title, colour and sign.
#pragma once
#include <imgui.h>

#include "app/studio/parts/icons.h"
#include "app/studio/shown_run/run_view.h"
#include "core/session/snapshot.h"

namespace comera::studio {

struct PhaseLook {
  const char* text;
  ImU32 color;
  Icon icon;
};
PhaseLook look_of(Phase phase);
ImU32 color_of(Mark::Kind kind);
// Sign of a mark, within `r` of a point; each kind has its own shape. Tall signs extend to 1.6 r.
void draw_mark_sign(ImDrawList* list, Mark::Kind kind, ImVec2 at, float r);

// Title and colour of a memory purpose.
struct PurposeLook {
  const char* title;
  const char* help;
  ImU32 color;
};
PurposeLook look_of(Purpose purpose);
// A small coloured square, e.g. of a legend.
void color_mark(ImU32 color);
// Memory by purpose as a stacked bar; `full` bytes fill its width.
void purpose_bar(const MemoryByPurpose& memory, double full, float height);

}  // namespace comera::studio
