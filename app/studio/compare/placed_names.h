// Names beside points, where they cover no other name and no line goes through them. Plain geometry, in pixels.
#pragma once
#include <vector>

#include "app/figure/drawing.h"

namespace comera::studio {

struct PlacedName {
  Point point, size;  // of the name
  enum Place { beside, on_ground, nowhere };
  Place place = nowhere;  // on_ground: a line goes through it, so it needs a ground
  Box box = {};
};

// Places each inside of `inside`, `away` from its point. `line`: its parts are upright or level. Those that would cover another
// name everywhere stay `nowhere`.
void place_names(std::vector<PlacedName>& names, const std::vector<Point>& line, Box inside, float away);

}  // namespace comera::studio
