// The diagram of tensor trains as a drawing: the panel shows it; the window and the command line export it.
#pragma once
#include <string>

#include "app/figure/drawing.h"
#include "app/figure/tt_layout.h"

namespace comera {

struct TTLook {
  std::string layer;           // selected layer; "" = none
  int64_t bond = 0, core = 0;  // selected bond or core of that layer, from 1; 0 = none
  TTHit hovered;
  double top = -1e30, bottom = 1e30;  // draw only rows between these y
};

Drawing tt_drawing(const TTLayout& layout, const TTLook& look);
// The same on a page of its own with a background and a heading: run, step, size.
Drawing tt_picture(const Snapshot& snapshot, const TTLayout& layout);

// "12 × 8 × 30": rank, mode or modes, rank.
std::string core_label(const TTCore& core);

}  // namespace comera
