// A picture as a list of shapes that looks the same on the screen, in a frame buffer and as SVG. Lengths are in units of the drawing, y
// points down. Independent of the window, so the command line uses it too.
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
  // Converts to a point of another library.
  template <class Other>
  requires requires(const Other& other) { static_cast<float>(other.x + other.y); }
  constexpr Point(const Other& other) : x(other.x), y(other.y) {}
};

struct Box {
  float x0 = 0, y0 = 0, x1 = 0, y1 = 0;
};

enum class Anchor { left, middle, right };  // horizontal position of the point within a text; vertically it is the middle

struct DrawnShape {
  enum Kind { line, polygon, rect, circle, text };
  Kind kind = line;
  std::vector<Point> points = {};  // rect: two corners; circle: its centre; text: its anchor
  Color color = 0;
  float width = 0;   // of a line or outline (0 = filled); text: its height
  float radius = 0;  // of a circle, or of the corners of a rect
  float dash = 0;    // length of a dash, 0 = solid
  Anchor anchor = Anchor::left;
  bool bold = false;
  int clip = -1;  // index into Drawing::clips
  std::string words = {};
};

inline constexpr float kGapOfDash = 0.75f;  // gap / length of a dash

struct Drawing {
  Point size;
  float unit = 1;        // default pixels per unit
  Color background = 0;  // 0 = none
  std::string title;     // alternative text
  std::vector<DrawnShape> shapes;
  std::vector<Box> clips;

  void move(Point by);  // moves all shapes
  void line(std::vector<Point> points, Color color, float width, int clip = -1, float dash = 0);
  void polygon(std::vector<Point> points, Color color, int clip = -1);
  void rect(Point from, Point to, Color color, float radius = 0, float outline = 0, int clip = -1);
  void circle(Point center, float radius, Color color, int clip = -1);
  void text(Point at, float height, Color color, std::string words, Anchor anchor = Anchor::left, bool bold = false);
};

// Well-formed XML in UTF-8; characters that XML does not allow are left out.
std::string to_svg(const Drawing& drawing);

// Splits a dashed line into its dashes.
std::vector<std::pair<Point, Point>> dashes(const std::vector<Point>& points, float dash, float gap);

}  // namespace comera
