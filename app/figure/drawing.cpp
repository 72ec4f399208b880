#include "app/figure/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace comera {

void Drawing::move(Point by) {
  for (DrawnShape& shape : shapes)
    for (Point& point : shape.points) point = {point.x + by.x, point.y + by.y};
  for (Box& clip : clips) clip = {clip.x0 + by.x, clip.y0 + by.y, clip.x1 + by.x, clip.y1 + by.y};
}

void Drawing::line(std::vector<Point> points, Color color, float width, int clip, float dash) {
  if (points.size() < 2) return;
  DrawnShape shape{.kind = DrawnShape::line, .points = std::move(points), .color = color, .width = width, .dash = dash, .clip = clip};
  shapes.push_back(std::move(shape));
}

void Drawing::polygon(std::vector<Point> points, Color color, int clip) {
  if (points.size() < 3) return;
  shapes.push_back({.kind = DrawnShape::polygon, .points = std::move(points), .color = color, .clip = clip});
}

void Drawing::rect(Point from, Point to, Color color, float radius, float outline, int clip) {
  shapes.push_back({.kind = DrawnShape::rect, .points = {from, to}, .color = color, .width = outline, .radius = radius, .clip = clip});
}

void Drawing::circle(Point center, float radius, Color color, int clip) {
  shapes.push_back({.kind = DrawnShape::circle, .points = {center}, .color = color, .radius = radius, .clip = clip});
}

void Drawing::text(Point at, float height, Color color, std::string words, Anchor anchor, bool bold) {
  shapes.push_back({.kind = DrawnShape::text,
                    .points = {at},
                    .color = color,
                    .width = height,
                    .anchor = anchor,
                    .bold = bold,
                    .words = std::move(words)});
}

std::vector<std::pair<Point, Point>> dashes(const std::vector<Point>& points, float dash, float gap) {
  std::vector<std::pair<Point, Point>> out;
  if (!(dash > 0) || !(gap > 0)) return out;
  float left = dash;
  bool on = true;
  for (size_t i = 1; i < points.size(); ++i) {
    Point from = points[i - 1];
    const Point to = points[i];
    float length = std::hypot(to.x - from.x, to.y - from.y);
    while (length > 0) {
      const float part = std::min(left, length), share = part / length;
      const Point end(from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share);
      if (on) out.emplace_back(from, end);
      from = end;
      length -= part;
      left -= part;
      if (left <= 0) {
        on = !on;
        left = on ? dash : gap;
      }
    }
  }
  return out;
}

// ---- SVG -------------------------------------------------------------------------------------------------------------

namespace {

std::string number(float value) {
  if (!std::isfinite(value)) return "0";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(value));
  std::string out = text;
  while (out.back() == '0') out.pop_back();
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t')
      out += c;
  }
  return out;
}

// name="#rrggbb", and the opacity if it is not 1.
std::string paint_of(const char* name, Color color) {
  char text[96];
  std::snprintf(text, sizeof text, " %s=\"#%02x%02x%02x\"", name, static_cast<unsigned>(red_of(color)),
                static_cast<unsigned>(green_of(color)), static_cast<unsigned>(blue_of(color)));
  std::string out = text;
  const auto alpha = static_cast<float>(alpha_of(color)) / 255;
  if (alpha < 1) out += " " + std::string(name) + "-opacity=\"" + number(alpha) + "\"";
  return out;
}

std::string attribute(const char* name, float value) { return " " + std::string(name) + "=\"" + number(value) + "\""; }

std::string points_of(const DrawnShape& shape) {
  std::string out = " points=\"";
  for (size_t i = 0; i < shape.points.size(); ++i) out += (i ? " " : "") + number(shape.points[i].x) + "," + number(shape.points[i].y);
  return out + "\"";
}

std::string svg_of(const DrawnShape& shape) {
  const std::string clip = shape.clip < 0 ? "" : " clip-path=\"url(#clip" + std::to_string(shape.clip) + ")\"";
  const Point at = shape.points.front();
  const std::string filled_or_not = shape.width > 0
                                        ? " fill=\"none\"" + paint_of("stroke", shape.color) + attribute("stroke-width", shape.width)
                                        : paint_of("fill", shape.color);
  switch (shape.kind) {
    case DrawnShape::line: {
      std::string dash;
      if (shape.dash > 0) dash = " stroke-dasharray=\"" + number(shape.dash) + " " + number(shape.dash * kGapOfDash) + "\"";
      return "<polyline" + points_of(shape) + " fill=\"none\"" + paint_of("stroke", shape.color) + attribute("stroke-width", shape.width) +
             " stroke-linejoin=\"round\"" + dash + clip + "/>\n";
    }
    case DrawnShape::polygon:
      return "<polygon" + points_of(shape) + paint_of("fill", shape.color) + clip + "/>\n";
    case DrawnShape::rect:
      return "<rect" + attribute("x", at.x) + attribute("y", at.y) + attribute("width", std::max(0.0f, shape.points[1].x - at.x)) +
             attribute("height", std::max(0.0f, shape.points[1].y - at.y)) + (shape.radius > 0 ? attribute("rx", shape.radius) : "") +
             filled_or_not + clip + "/>\n";
    case DrawnShape::circle:
      return "<circle" + attribute("cx", at.x) + attribute("cy", at.y) + attribute("r", shape.radius) + filled_or_not + clip + "/>\n";
    case DrawnShape::text: {
      const char* anchor = shape.anchor == Anchor::middle ? "middle" : shape.anchor == Anchor::right ? "end" : "start";
      return "<text" + attribute("x", at.x) + attribute("y", at.y + shape.width * 0.35f) + attribute("font-size", shape.width) +
             paint_of("fill", shape.color) + " text-anchor=\"" + anchor + "\"" + (shape.bold ? " font-weight=\"600\"" : "") + clip + ">" +
             escaped(shape.words) + "</text>\n";
    }
  }
  return "";
}

}  // namespace

std::string to_svg(const Drawing& drawing) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"" +
                    attribute("width", drawing.size.x * drawing.unit) + attribute("height", drawing.size.y * drawing.unit) +
                    " viewBox=\"0 0 " + number(drawing.size.x) + " " + number(drawing.size.y) +
                    "\" font-family=\"Inter, Helvetica, Arial, sans-serif\">\n<title>" + escaped(drawing.title) + "</title>\n";
  for (size_t i = 0; i < drawing.clips.size(); ++i) {
    const Box& clip = drawing.clips[i];
    out += "<clipPath id=\"clip" + std::to_string(i) + "\"><rect" + attribute("x", clip.x0) + attribute("y", clip.y0) +
           attribute("width", std::max(0.0f, clip.x1 - clip.x0)) + attribute("height", std::max(0.0f, clip.y1 - clip.y0)) +
           "/></clipPath>\n";
  }
  if (drawing.background) out += "<rect width=\"100%\" height=\"100%\"" + paint_of("fill", drawing.background) + "/>\n";
  for (const DrawnShape& shape : drawing.shapes) out += svg_of(shape);
  return out + "</svg>\n";
}

}  // namespace comera
