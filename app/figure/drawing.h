// A picture made of shapes: painted on the screen, into a frame buffer, or written as SVG, the same each time. Measures
// are units of the drawing, y downwards. Knows of no window: the command line draws with it too.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "app/figure/colors.h"

namespace comera {

struct Point {
  float x = 0, y = 0;
  constexpr Point() = default;
  constexpr Point(float at_x, float at_y) : x(at_x), y(at_y) {}
  // A point of another library.
  template <class Other>
  requires requires(const Other& other) { static_cast<float>(other.x + other.y); }
  constexpr Point(const Other& other) : x(other.x), y(other.y) {}
};

struct Box {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

enum class Anchor { left, middle, right };  // what of a text stands at its point; always its middle in height

struct DrawnShape {
  enum Kind { line, polygon, rect, circle, text };
  Kind kind = line;
  std::vector<Point> points = {};  // rect: two corners; circle, text: one
  Color color = 0;
  float width = 0;   // of a line; of an outline, 0 = filled; text: its height
  float radius = 0;  // of a circle, of a rect's corners
  float dash = 0;    // length of the dashes of a line, 0 = whole
  Anchor anchor = Anchor::left;
  bool bold = false;
  int clip = -1;  // index of Drawing::clips
  std::string words = {};
};

inline constexpr float kGapOfDash = 0.75f;  // times the length of a dash

struct Drawing {
  Point size;
  float unit = 1;        // pixels of a unit where nothing else is said
  Color background = 0;  // 0 = none
  std::string title;     // for those who cannot see it
  std::vector<DrawnShape> shapes;
  std::vector<Box> clips;

  void move(Point by);  // all that is in it
  void line(std::vector<Point> points, Color color, float width, int clip = -1, float dash = 0);
  void polygon(std::vector<Point> points, Color color, int clip = -1);
  void rect(Point from, Point to, Color color, float radius = 0, float outline = 0, int clip = -1);
  void circle(Point center, float radius, Color color, int clip = -1);
  void text(Point at, float height, Color color, std::string words, Anchor anchor = Anchor::left, bool bold = false);
};

// Well-formed XML, UTF-8; what is no character of XML is left out.
std::string to_svg(const Drawing& drawing);

// The points of a dashed line, dash by dash.
std::vector<std::pair<Point, Point>> dashes(const std::vector<Point>& points, float dash, float gap);

}  // namespace comera
