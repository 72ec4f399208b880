// The diagram of tensor trains as a drawing: what the panel shows is what is exported.
#pragma once
#include <string>

#include "app/studio/drawing.h"
#include "app/studio/tt_layout.h"

namespace comera::studio {

struct TTLook {
  std::string layer;           // selected; "" = none
  int64_t bond = 0, core = 0;  // of it, from 1; 0 = none
  TTHit hovered;
  double top = -1e30, bottom = 1e30;  // only rows between these y are drawn
};

Drawing tt_drawing(const TTLayout& layout, const TTLook& look);

// "12 × 8 × 30": rank, mode or modes, rank.
std::string core_label(const TTCore& core);

}  // namespace comera::studio
