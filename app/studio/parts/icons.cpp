#include "app/studio/parts/icons.h"

#include <algorithm>
#include <cmath>

namespace comera::studio {

void draw_icon(ImDrawList* list, Icon icon, ImVec2 c, float size, ImU32 color) {
  const float r = size * 0.5f, line = std::max(1.0f, size * 0.11f);
  const auto at = [&](float x, float y) { return ImVec2(c.x + x * r, c.y + y * r); };
  const auto poly = [&](std::initializer_list<ImVec2> points, float width = 0) {
    list->AddPolyline(points.begin(), static_cast<int>(points.size()), color, width > 0 ? width : line);
  };
  switch (icon) {
    case Icon::none:
      break;
    case Icon::play:
      list->AddTriangleFilled(at(-0.6f, -0.85f), at(-0.6f, 0.85f), at(0.9f, 0), color);
      break;
    case Icon::pause:
      list->AddRectFilled(at(-0.7f, -0.8f), at(-0.18f, 0.8f), color, size * 0.06f);
      list->AddRectFilled(at(0.18f, -0.8f), at(0.7f, 0.8f), color, size * 0.06f);
      break;
    case Icon::step:
      list->AddTriangleFilled(at(-0.85f, -0.8f), at(-0.85f, 0.8f), at(0.45f, 0), color);
      list->AddRectFilled(at(0.5f, -0.8f), at(0.85f, 0.8f), color);
      break;
    case Icon::step_back:
      list->AddTriangleFilled(at(0.85f, 0.8f), at(0.85f, -0.8f), at(-0.45f, 0), color);
      list->AddRectFilled(at(-0.85f, -0.8f), at(-0.5f, 0.8f), color);
      break;
    case Icon::forward:
      list->AddTriangleFilled(at(-0.95f, -0.75f), at(-0.95f, 0.75f), at(0, 0), color);
      list->AddTriangleFilled(at(0, -0.75f), at(0, 0.75f), at(0.95f, 0), color);
      break;
    case Icon::to_mark:  // arrow to a flag
      list->AddTriangleFilled(at(-0.95f, -0.7f), at(-0.95f, 0.7f), at(0, 0), color);
      poly({at(0.3f, 0.9f), at(0.3f, -0.9f)});
      list->AddRectFilled(at(0.3f, -0.9f), at(0.95f, -0.15f), color);
      break;
    case Icon::rewind:
      list->AddTriangleFilled(at(0.95f, 0.75f), at(0.95f, -0.75f), at(0, 0), color);
      list->AddTriangleFilled(at(0, 0.75f), at(0, -0.75f), at(-0.95f, 0), color);
      break;
    case Icon::loop:
      list->PathArcTo(c, r * 0.75f, -0.6f, 4.6f, 24);
      list->PathStroke(color, line * 1.2f);
      list->AddTriangleFilled(at(0.15f, -0.35f), at(1.0f, -0.35f), at(0.75f, -1.0f), color);
      break;
    case Icon::fork:
      poly({at(-0.5f, -0.5f), at(-0.5f, 0.6f)});
      poly({at(-0.5f, 0.35f), at(0.55f, -0.1f), at(0.55f, -0.5f)});
      for (const ImVec2 dot : {at(-0.5f, -0.7f), at(-0.5f, 0.7f), at(0.55f, -0.7f)}) list->AddCircleFilled(dot, line * 1.7f, color);
      break;
    case Icon::stop:
      list->AddRectFilled(at(-0.7f, -0.7f), at(0.7f, 0.7f), color, size * 0.1f);
      break;
    case Icon::save:  // arrow into a tray
      poly({at(0, -0.9f), at(0, 0.3f)});
      poly({at(-0.45f, -0.12f), at(0, 0.35f), at(0.45f, -0.12f)});
      poly({at(-0.85f, 0.3f), at(-0.85f, 0.85f), at(0.85f, 0.85f), at(0.85f, 0.3f)});
      break;
    case Icon::check:
      poly({at(-0.75f, 0.05f), at(-0.2f, 0.6f), at(0.8f, -0.6f)}, line * 1.2f);
      break;
    case Icon::cross:
      poly({at(-0.6f, -0.6f), at(0.6f, 0.6f)}, line * 1.2f);
      poly({at(0.6f, -0.6f), at(-0.6f, 0.6f)}, line * 1.2f);
      break;
    case Icon::warning:
      list->AddTriangle(at(0, -0.85f), at(-0.95f, 0.75f), at(0.95f, 0.75f), color, line);
      poly({at(0, -0.3f), at(0, 0.25f)});
      list->AddCircleFilled(at(0, 0.5f), line * 0.7f, color);
      break;
    case Icon::dot:
      list->AddCircleFilled(c, r * 0.62f, color);
      break;
    case Icon::ring:
      list->AddCircle(c, r * 0.7f, color, 0, line);
      break;
    case Icon::clock:
      list->AddCircle(c, r * 0.85f, color, 0, line);
      poly({at(0, -0.5f), at(0, 0), at(0.38f, 0.2f)});
      break;
    case Icon::home:
      poly({at(-0.95f, -0.02f), at(0, -0.85f), at(0.95f, -0.02f)});
      poly({at(-0.65f, -0.2f), at(-0.65f, 0.8f), at(0.65f, 0.8f), at(0.65f, -0.2f)});
      break;
    case Icon::chart:
      poly({at(-0.85f, -0.85f), at(-0.85f, 0.8f), at(0.9f, 0.8f)});
      poly({at(-0.5f, -0.45f), at(-0.1f, 0.25f), at(0.3f, 0.0f), at(0.85f, 0.4f)});
      break;
    case Icon::search:
      list->AddCircle(at(-0.15f, -0.15f), r * 0.6f, color, 0, line);
      poly({at(0.3f, 0.3f), at(0.85f, 0.85f)});
      break;
    case Icon::sun:
      list->AddCircleFilled(c, r * 0.4f, color);
      for (int i = 0; i < 8; ++i) {
        const float a = static_cast<float>(i) * 0.7853982f;
        poly({at(std::cos(a) * 0.65f, std::sin(a) * 0.65f), at(std::cos(a) * 0.95f, std::sin(a) * 0.95f)});
      }
      break;
    case Icon::moon:
      list->PathArcTo(c, r * 0.85f, -1.2f, 2.75f, 24);
      list->PathArcTo(at(-0.28f, -0.28f), r * 0.62f, 2.2f, -0.65f, 24);
      list->PathFillConcave(color);
      break;
    case Icon::plus:
      poly({at(-0.75f, 0), at(0.75f, 0)}, line * 1.2f);
      poly({at(0, -0.75f), at(0, 0.75f)}, line * 1.2f);
      break;
    case Icon::more:
      for (const float x : {-0.7f, 0.0f, 0.7f}) list->AddCircleFilled(at(x, 0), line * 1.3f, color);
      break;
    case Icon::star:
    case Icon::star_empty: {
      ImVec2 points[10];
      for (int i = 0; i < 10; ++i) {
        const float angle = static_cast<float>(i) * IM_PI / 5 - IM_PI / 2, out = i % 2 == 0 ? 1.0f : 0.45f;
        points[i] = at(std::cos(angle) * out, std::sin(angle) * out);
      }
      if (icon == Icon::star)
        list->AddConcavePolyFilled(points, 10, color);
      else
        list->AddPolyline(points, 10, color, line, ImDrawFlags_Closed);
      break;
    }
  }
}

}  // namespace comera::studio
