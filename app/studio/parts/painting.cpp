#include "app/studio/parts/painting.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "app/studio/theme.h"

namespace comera::studio {

static_assert(rgba(1, 2, 3, 4) == IM_COL32(1, 2, 3, 4), "colours of drawings are those of ImGui");

float drawn_width(const std::string& text, float height) {
  return fonts().text->CalcTextSizeA(height, FLT_MAX, 0, text.data(), text.data() + text.size()).x;
}

void paint(const Drawing& drawing, ImDrawList& list, ImVec2 origin, float scale, float least_text) {
  const auto place = [&](Point at) { return ImVec2(origin.x + at.x * scale, origin.y + at.y * scale); };
  if (drawing.background) list.AddRectFilled(origin, place(drawing.size), drawing.background);
  std::vector<ImVec2> points;
  for (const DrawnShape& shape : drawing.shapes) {
    if (shape.clip >= 0) {
      const Box& clip = drawing.clips[static_cast<size_t>(shape.clip)];
      list.PushClipRect(place({clip.x0, clip.y0}), place({clip.x1, clip.y1}), true);
    }
    points.clear();
    for (const Point& point : shape.points) points.push_back(place(point));
    const float width = std::max(1.0f, shape.width * scale);
    const auto count = static_cast<int>(points.size());
    switch (shape.kind) {
      case DrawnShape::line:
        if (shape.dash > 0)
          for (const auto& [from, to] : dashes(shape.points, shape.dash, shape.dash * kGapOfDash))
            list.AddLine(place(from), place(to), shape.color, width);
        else
          list.AddPolyline(points.data(), count, shape.color, width);
        break;
      case DrawnShape::polygon:
        list.AddConcavePolyFilled(points.data(), count, shape.color);
        break;
      case DrawnShape::rect:
        if (shape.width > 0)
          list.AddRect(points[0], points[1], shape.color, shape.radius * scale, width);
        else
          list.AddRectFilled(points[0], points[1], shape.color, shape.radius * scale);
        break;
      case DrawnShape::circle:
        list.AddCircleFilled(points[0], shape.radius * scale, shape.color);
        break;
      case DrawnShape::text: {
        const float size = shape.width * scale;
        if (size < std::max(1.0f, least_text)) break;
        ImFont* font = shape.bold ? fonts().bold : fonts().text;
        const char *begin = shape.words.data(), *end = begin + shape.words.size();
        const float length = shape.anchor == Anchor::left ? 0 : font->CalcTextSizeA(size, FLT_MAX, 0, begin, end).x;
        const float x = points[0].x - (shape.anchor == Anchor::middle ? length / 2 : length);
        list.AddText(font, size, {std::round(x), std::round(points[0].y - size / 2)}, shape.color, begin, end);
        break;
      }
    }
    if (shape.clip >= 0) list.PopClipRect();
  }
}

}  // namespace comera::studio
