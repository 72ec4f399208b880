// A picture made of shapes: painted on the screen, into a frame buffer, or written as SVG, the same each time. Measures
// are units of the drawing, y downwards.
#pragma once
#include <imgui.h>

#include <string>
#include <vector>

namespace comera::studio {

struct Shape {
  enum Kind { line, polygon, rect, circle, text };
  enum Anchor { left, middle, right };
  Kind kind = line;
  std::vector<ImVec2> points = {};  // rect: two corners; circle, text: one
  ImU32 color = 0;
  float width = 0;       // of a line; of an outline, 0 = filled; text: its height
  float radius = 0;      // of a circle, of a rect's corners
  float dash = 0;        // length of the dashes of a line, 0 = whole
  Anchor anchor = left;  // text: `points` is on its left, middle or right; always its middle in height
  bool bold = false;
  int clip = -1;  // index of Drawing::clips
  std::string words = {};
};

struct Drawing {
  ImVec2 size;
  float unit = 1;        // pixels of a unit where nothing else is said
  ImU32 background = 0;  // 0 = none
  std::string title;     // for those who cannot see it
  std::vector<Shape> shapes;
  std::vector<ImVec4> clips;  // x0, y0, x1, y1

  void move(ImVec2 by);  // all that is in it
  void line(std::vector<ImVec2> points, ImU32 color, float width, int clip = -1, float dash = 0);
  void polygon(std::vector<ImVec2> points, ImU32 color, int clip = -1);
  void rect(ImVec2 from, ImVec2 to, ImU32 color, float radius = 0, float outline = 0, int clip = -1);
  void circle(ImVec2 center, float radius, ImU32 color, int clip = -1);
  void text(ImVec2 at, float height, ImU32 color, std::string words, Shape::Anchor anchor = Shape::left, bool bold = false);
};

// Well-formed XML, UTF-8; what is no character of XML is left out.
std::string to_svg(const Drawing& drawing);

// Times `scale`, its corner at `origin`. Text that would be less than `least_text` pixels high is left out.
void paint(const Drawing& drawing, ImDrawList& list, ImVec2 origin, float scale, float least_text = 0);

// The points of a dashed line, dash by dash.
std::vector<std::pair<ImVec2, ImVec2>> dashes(const std::vector<ImVec2>& points, float dash, float gap);

}  // namespace comera::studio
