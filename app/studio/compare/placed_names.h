// Names next to points, placed so that they cover no other name and no line. Plain geometry, in pixels.
#pragma once
#include <vector>

#include "app/figure/drawing.h"

namespace comera::studio {

struct PlacedName {
  Point point, size;  // size: of the name
  enum Place { beside, on_ground, nowhere };
  Place place = nowhere;  // on_ground: a line crosses it, so it needs a background
  Box box = {};
};

// Places each name within `inside`, `away` from its point. `line`: a polyline of horizontal and vertical segments. A name that would cover
// another name everywhere stays `nowhere`.
void place_names(std::vector<PlacedName>& names, const std::vector<Point>& line, Box inside, float away);

}  // namespace comera::studio
