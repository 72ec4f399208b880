#include "app/studio/drawing.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/studio/theme.h"

namespace comera::studio {

void Drawing::move(ImVec2 by) {
  for (Shape& shape : shapes)
    for (ImVec2& point : shape.points) point = {point.x + by.x, point.y + by.y};
  for (ImVec4& clip : clips) clip = {clip.x + by.x, clip.y + by.y, clip.z + by.x, clip.w + by.y};
}

void Drawing::line(std::vector<ImVec2> points, ImU32 color, float width, int clip, float dash) {
  if (points.size() < 2) return;
  Shape shape{.kind = Shape::line, .points = std::move(points), .color = color, .width = width, .dash = dash, .clip = clip};
  shapes.push_back(std::move(shape));
}

void Drawing::polygon(std::vector<ImVec2> points, ImU32 color, int clip) {
  if (points.size() < 3) return;
  shapes.push_back({.kind = Shape::polygon, .points = std::move(points), .color = color, .clip = clip});
}

void Drawing::rect(ImVec2 from, ImVec2 to, ImU32 color, float radius, float outline, int clip) {
  shapes.push_back({.kind = Shape::rect, .points = {from, to}, .color = color, .width = outline, .radius = radius, .clip = clip});
}

void Drawing::circle(ImVec2 center, float radius, ImU32 color, int clip) {
  shapes.push_back({.kind = Shape::circle, .points = {center}, .color = color, .radius = radius, .clip = clip});
}

void Drawing::text(ImVec2 at, float height, ImU32 color, std::string words, Shape::Anchor anchor, bool bold) {
  shapes.push_back(
      {.kind = Shape::text, .points = {at}, .color = color, .width = height, .anchor = anchor, .bold = bold, .words = std::move(words)});
}

std::vector<std::pair<ImVec2, ImVec2>> dashes(const std::vector<ImVec2>& points, float dash, float gap) {
  std::vector<std::pair<ImVec2, ImVec2>> out;
  if (!(dash > 0) || !(gap > 0)) return out;
  float left = dash;
  bool on = true;
  for (size_t i = 1; i < points.size(); ++i) {
    ImVec2 from = points[i - 1];
    const ImVec2 to = points[i];
    float length = std::hypot(to.x - from.x, to.y - from.y);
    while (length > 0) {
      const float part = std::min(left, length), share = part / length;
      const ImVec2 end(from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share);
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

constexpr float kGapOfDash = 0.75f;

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

// name="#rrggbb", and its opacity where it has one.
std::string paint_of(const char* name, ImU32 color) {
  char text[96];
  std::snprintf(text, sizeof text, " %s=\"#%02x%02x%02x\"", name, static_cast<unsigned>(color >> IM_COL32_R_SHIFT & 0xff),
                static_cast<unsigned>(color >> IM_COL32_G_SHIFT & 0xff), static_cast<unsigned>(color >> IM_COL32_B_SHIFT & 0xff));
  std::string out = text;
  const auto alpha = static_cast<float>(color >> IM_COL32_A_SHIFT & 0xff) / 255;
  if (alpha < 1) out += " " + std::string(name) + "-opacity=\"" + number(alpha) + "\"";
  return out;
}

std::string attribute(const char* name, float value) { return " " + std::string(name) + "=\"" + number(value) + "\""; }

std::string points_of(const Shape& shape) {
  std::string out = " points=\"";
  for (size_t i = 0; i < shape.points.size(); ++i) out += (i ? " " : "") + number(shape.points[i].x) + "," + number(shape.points[i].y);
  return out + "\"";
}

std::string svg_of(const Shape& shape) {
  const std::string clip = shape.clip < 0 ? "" : " clip-path=\"url(#clip" + std::to_string(shape.clip) + ")\"";
  const ImVec2 at = shape.points.front();
  const std::string filled_or_not = shape.width > 0
                                        ? " fill=\"none\"" + paint_of("stroke", shape.color) + attribute("stroke-width", shape.width)
                                        : paint_of("fill", shape.color);
  switch (shape.kind) {
    case Shape::line: {
      std::string dash;
      if (shape.dash > 0) dash = " stroke-dasharray=\"" + number(shape.dash) + " " + number(shape.dash * kGapOfDash) + "\"";
      return "<polyline" + points_of(shape) + " fill=\"none\"" + paint_of("stroke", shape.color) + attribute("stroke-width", shape.width) +
             " stroke-linejoin=\"round\"" + dash + clip + "/>\n";
    }
    case Shape::polygon:
      return "<polygon" + points_of(shape) + paint_of("fill", shape.color) + clip + "/>\n";
    case Shape::rect:
      return "<rect" + attribute("x", at.x) + attribute("y", at.y) + attribute("width", std::max(0.0f, shape.points[1].x - at.x)) +
             attribute("height", std::max(0.0f, shape.points[1].y - at.y)) + (shape.radius > 0 ? attribute("rx", shape.radius) : "") +
             filled_or_not + clip + "/>\n";
    case Shape::circle:
      return "<circle" + attribute("cx", at.x) + attribute("cy", at.y) + attribute("r", shape.radius) + filled_or_not + clip + "/>\n";
    case Shape::text: {
      const char* anchor = shape.anchor == Shape::middle ? "middle" : shape.anchor == Shape::right ? "end" : "start";
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
    const ImVec4& clip = drawing.clips[i];
    out += "<clipPath id=\"clip" + std::to_string(i) + "\"><rect" + attribute("x", clip.x) + attribute("y", clip.y) +
           attribute("width", std::max(0.0f, clip.z - clip.x)) + attribute("height", std::max(0.0f, clip.w - clip.y)) + "/></clipPath>\n";
  }
  if (drawing.background) out += "<rect width=\"100%\" height=\"100%\"" + paint_of("fill", drawing.background) + "/>\n";
  for (const Shape& shape : drawing.shapes) out += svg_of(shape);
  return out + "</svg>\n";
}

// ---- pixels ----------------------------------------------------------------------------------------------------------

void paint(const Drawing& drawing, ImDrawList& list, ImVec2 origin, float scale, float least_text) {
  const auto place = [&](ImVec2 at) { return ImVec2(origin.x + at.x * scale, origin.y + at.y * scale); };
  if (drawing.background) list.AddRectFilled(origin, place(drawing.size), drawing.background);
  std::vector<ImVec2> points;
  for (const Shape& shape : drawing.shapes) {
    if (shape.clip >= 0) {
      const ImVec4& clip = drawing.clips[static_cast<size_t>(shape.clip)];
      list.PushClipRect(place({clip.x, clip.y}), place({clip.z, clip.w}), true);
    }
    points.clear();
    for (const ImVec2 point : shape.points) points.push_back(place(point));
    const float width = std::max(1.0f, shape.width * scale);
    const auto count = static_cast<int>(points.size());
    switch (shape.kind) {
      case Shape::line:
        if (shape.dash > 0)
          for (const auto& [from, to] : dashes(points, shape.dash * scale, shape.dash * scale * kGapOfDash))
            list.AddLine(from, to, shape.color, width);
        else
          list.AddPolyline(points.data(), count, shape.color, width);
        break;
      case Shape::polygon:
        list.AddConcavePolyFilled(points.data(), count, shape.color);
        break;
      case Shape::rect:
        if (shape.width > 0)
          list.AddRect(points[0], points[1], shape.color, shape.radius * scale, width);
        else
          list.AddRectFilled(points[0], points[1], shape.color, shape.radius * scale);
        break;
      case Shape::circle:
        list.AddCircleFilled(points[0], shape.radius * scale, shape.color);
        break;
      case Shape::text: {
        const float size = shape.width * scale;
        if (size < std::max(1.0f, least_text)) break;
        ImFont* font = shape.bold ? fonts().bold : fonts().text;
        const char *begin = shape.words.data(), *end = begin + shape.words.size();
        const float length = shape.anchor == Shape::left ? 0 : font->CalcTextSizeA(size, FLT_MAX, 0, begin, end).x;
        const float x = points[0].x - (shape.anchor == Shape::middle ? length / 2 : length);
        list.AddText(font, size, {std::round(x), std::round(points[0].y - size / 2)}, shape.color, begin, end);
        break;
      }
    }
    if (shape.clip >= 0) list.PopClipRect();
  }
}

}  // namespace comera::studio
