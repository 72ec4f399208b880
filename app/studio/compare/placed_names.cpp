#include "app/studio/compare/placed_names.h"

#include <algorithm>

namespace comera::studio {
namespace {

bool overlap(const Box& a, const Box& b) { return a.x0 < b.x1 && b.x0 < a.x1 && a.y0 < b.y1 && b.y0 < a.y1; }

bool crossed(const Box& box, const std::vector<Point>& line) {
  constexpr float kNear = 2;
  for (size_t i = 1; i < line.size(); ++i) {
    const Point a = line[i - 1], b = line[i];
    if (overlap(box, {std::min(a.x, b.x) - kNear, std::min(a.y, b.y) - kNear, std::max(a.x, b.x) + kNear, std::max(a.y, b.y) + kNear}))
      return true;
  }
  return false;
}

}  // namespace

void place_names(std::vector<PlacedName>& names, const std::vector<Point>& line, Box inside, float away) {
  std::vector<Box> taken;
  for (PlacedName& name : names) {
    const Point p = name.point;
    const float w = name.size.x, h = name.size.y;
    const Point corners[] = {{p.x + away, p.y - h / 2},        {p.x - away - w, p.y - h / 2}, {p.x - w / 2, p.y - away - h},
                             {p.x - w / 2, p.y + away},        {p.x + away, p.y - away - h},  {p.x + away, p.y + away},
                             {p.x - away - w, p.y - away - h}, {p.x - away - w, p.y + away}};
    for (const bool allow_line : {false, true}) {
      for (const Point corner : corners) {
        const Box box{corner.x, corner.y, corner.x + w, corner.y + h};
        if (box.x0 < inside.x0 || box.x1 > inside.x1 || box.y0 < inside.y0 || box.y1 > inside.y1) continue;
        if (std::any_of(taken.begin(), taken.end(), [&](const Box& other) { return overlap(other, box); })) continue;
        const bool through = crossed(box, line);
        if (through && !allow_line) continue;
        name.place = through ? PlacedName::on_ground : PlacedName::beside;
        name.box = box;
        break;
      }
      if (name.place != PlacedName::nowhere) break;
    }
    if (name.place != PlacedName::nowhere) taken.push_back(name.box);
  }
}

}  // namespace comera::studio
