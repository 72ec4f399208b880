#include "app/figure/raster.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "app/figure/glyphs.h"
#include "core/base/error.h"

namespace comera {
namespace {

float share(float value) { return std::clamp(value, 0.0f, 1.0f); }

// Clip rectangle of a shape in whole pixels: x0 <= x < x1.
struct Pixels {
  int x0 = 0, y0 = 0, x1 = 0, y1 = 0;
  Pixels with(const Pixels& other) const {
    return {std::max(x0, other.x0), std::max(y0, other.y0), std::min(x1, other.x1), std::min(y1, other.y1)};
  }
};

// Pixels that a box with anti-aliased edges touches.
Pixels around(float x0, float y0, float x1, float y1) {
  const auto limit = [](float value) { return std::clamp(value, -1.0f, 2 * kLargestSide); };
  return {static_cast<int>(std::floor(limit(x0))) - 1, static_cast<int>(std::floor(limit(y0))) - 1,
          static_cast<int>(std::ceil(limit(x1))) + 1, static_cast<int>(std::ceil(limit(y1))) + 1};
}

// Coverage of a pixel, approximated from the distance of its centre to the shape's edge.
class Canvas {
 public:
  explicit Canvas(const Drawing& drawing, float scale) : drawing_(drawing), scale_(scale) {
    picture_.width = std::max(1, static_cast<int>(std::lround(drawing.size.x * scale)));
    picture_.height = std::max(1, static_cast<int>(std::lround(drawing.size.y * scale)));
    const size_t pixels = static_cast<size_t>(picture_.width) * static_cast<size_t>(picture_.height);
    picture_.rgb.assign(pixels * 3, 255);
    cover_.assign(pixels, 0);
    all_ = clip_ = {0, 0, picture_.width, picture_.height};
    if (drawing.background) box({0, 0}, {static_cast<float>(picture_.width), static_cast<float>(picture_.height)}, drawing.background);
    for (const DrawnShape& shape : drawing.shapes) draw(shape);
  }
  Picture take() { return std::move(picture_); }

 private:
  Point place(Point at) const { return {at.x * scale_, at.y * scale_}; }
  static int edge(float at) { return static_cast<int>(std::lround(std::clamp(at, -1.0f, 2 * kLargestSide))); }  // nearest pixel edge
  static float pixel(int at) { return static_cast<float>(at) + 0.5f; }                                          // centre of a pixel

  void draw(const DrawnShape& shape) {
    clip_ = all_;
    if (shape.clip >= 0) {
      const Box& box = drawing_.clips[static_cast<size_t>(shape.clip)];
      const Point from = place({box.x0, box.y0}), to = place({box.x1, box.y1});
      clip_ = all_.with({edge(from.x), edge(from.y), edge(to.x), edge(to.y)});
    }
    std::vector<Point> points;
    for (const Point& point : shape.points) points.push_back(place(point));
    for (const Point& point : points)
      if (!std::isfinite(point.x) || !std::isfinite(point.y)) return;
    const float width = std::max(1.0f, shape.width * scale_);
    switch (shape.kind) {
      case DrawnShape::line:
        return line(shape, points, width);
      case DrawnShape::polygon:
        return polygon(points, shape.color);
      case DrawnShape::rect:
        if (shape.width > 0 || shape.radius > 0)
          return rounded(points[0], points[1], shape.radius * scale_, shape.width > 0 ? width : 0, shape.color);
        return box(points[0], points[1], shape.color);
      case DrawnShape::circle:
        return circle(points[0], shape.radius * scale_, shape.color);
      case DrawnShape::text:
        return text(shape, points[0]);
    }
  }

  void blend(int x, int y, float cover, Color color) {
    const float alpha = cover * static_cast<float>(alpha_of(color)) / 255;
    uint8_t* at = picture_.rgb.data() + 3 * (static_cast<size_t>(y) * static_cast<size_t>(picture_.width) + static_cast<size_t>(x));
    const unsigned parts[3] = {red_of(color), green_of(color), blue_of(color)};
    for (int i = 0; i < 3; ++i)
      at[i] =
          static_cast<uint8_t>(std::lround(static_cast<float>(at[i]) + (static_cast<float>(parts[i]) - static_cast<float>(at[i])) * alpha));
  }

  // `inside(x, y)`: coverage of that pixel.
  template <class Inside>
  void each(const Pixels& where, Color color, Inside inside) {
    const Pixels in = where.with(clip_);
    for (int y = in.y0; y < in.y1; ++y)
      for (int x = in.x0; x < in.x1; ++x)
        if (const float cover = inside(pixel(x), pixel(y)); cover > 0) blend(x, y, cover, color);
  }

  // Edges are snapped to pixels, so that adjacent boxes leave no seam.
  void box(Point from, Point to, Color color) {
    const Pixels in = Pixels{edge(from.x), edge(from.y), edge(to.x), edge(to.y)}.with(clip_);
    for (int y = in.y0; y < in.y1; ++y)
      for (int x = in.x0; x < in.x1; ++x) blend(x, y, 1, color);
  }

  void rounded(Point from, Point to, float radius, float outline, Color color) {
    const float half_x = std::max(0.0f, (to.x - from.x) / 2), half_y = std::max(0.0f, (to.y - from.y) / 2);
    const float mid_x = (from.x + to.x) / 2, mid_y = (from.y + to.y) / 2;
    radius = std::min({radius, half_x, half_y});
    each(around(from.x - outline, from.y - outline, to.x + outline, to.y + outline), color, [&](float x, float y) {
      const float dx = std::abs(x - mid_x) - half_x + radius, dy = std::abs(y - mid_y) - half_y + radius;
      const float edge = std::hypot(std::max(dx, 0.0f), std::max(dy, 0.0f)) + std::min(std::max(dx, dy), 0.0f) - radius;
      return outline > 0 ? share(outline / 2 + 0.5f - std::abs(edge)) : share(0.5f - edge);
    });
  }

  void circle(Point center, float radius, Color color) {
    each(around(center.x - radius, center.y - radius, center.x + radius, center.y + radius), color,
         [&](float x, float y) { return share(radius + 0.5f - std::hypot(x - center.x, y - center.y)); });
  }

  // A horizontal or vertical line is snapped to whole pixels.
  static void sharpen(Point& from, Point& to, float width) {
    const auto on = [&](float at) { return static_cast<int>(std::lround(width)) % 2 == 1 ? std::floor(at) + 0.5f : std::round(at); };
    if (from.x == to.x) from.x = to.x = on(from.x);
    if (from.y == to.y) from.y = to.y = on(from.y);
  }

  // A line covers a pixel once, also at its joints, so that translucent lines show no joints.
  void line(const DrawnShape& shape, const std::vector<Point>& points, float width) {
    touched_ = {all_.x1, all_.y1, 0, 0};
    if (shape.dash > 0) {
      for (const auto& [from, to] : dashes(shape.points, shape.dash, shape.dash * kGapOfDash)) {
        Point a = place(from), b = place(to);
        sharpen(a, b, width);
        stroke(a, b, width, false);
      }
    } else if (points.size() == 2) {
      Point a = points[0], b = points[1];
      sharpen(a, b, width);
      stroke(a, b, width, false);
    } else {
      for (size_t i = 1; i < points.size(); ++i) stroke(points[i - 1], points[i], width, true);
    }
    for (int y = touched_.y0; y < touched_.y1; ++y)
      for (int x = touched_.x0; x < touched_.x1; ++x) {
        uint8_t& cover = cover_[static_cast<size_t>(y) * static_cast<size_t>(picture_.width) + static_cast<size_t>(x)];
        if (cover) blend(x, y, static_cast<float>(cover) / 255, shape.color);
        cover = 0;
      }
  }

  void stroke(Point from, Point to, float width, bool round_ends) {
    const float dx = to.x - from.x, dy = to.y - from.y, length = std::hypot(dx, dy), half = width / 2;
    if (length == 0 && !round_ends) return;
    const float ux = length > 0 ? dx / length : 1, uy = length > 0 ? dy / length : 0;
    const Pixels in =
        around(std::min(from.x, to.x) - half, std::min(from.y, to.y) - half, std::max(from.x, to.x) + half, std::max(from.y, to.y) + half)
            .with(clip_);
    if (in.x0 >= in.x1 || in.y0 >= in.y1) return;
    touched_ = {std::min(touched_.x0, in.x0), std::min(touched_.y0, in.y0), std::max(touched_.x1, in.x1), std::max(touched_.y1, in.y1)};
    for (int y = in.y0; y < in.y1; ++y)
      for (int x = in.x0; x < in.x1; ++x) {
        const float px = pixel(x) - from.x, py = pixel(y) - from.y, along = px * ux + py * uy, beside = std::abs(py * ux - px * uy);
        float cover = 0;
        if (round_ends)
          cover = share(half + 0.5f - std::hypot(beside, along < 0 ? along : std::max(0.0f, along - length)));
        else
          cover = share(half + 0.5f - beside) * share(along + 0.5f) * share(length - along + 0.5f);
        uint8_t& at = cover_[static_cast<size_t>(y) * static_cast<size_t>(picture_.width) + static_cast<size_t>(x)];
        at = std::max(at, static_cast<uint8_t>(std::lround(cover * 255)));
      }
  }

  // Scanline fill: several sample lines per row, exact coverage along each line.
  void polygon(const std::vector<Point>& points, Color color) {
    constexpr int kLines = 4;
    float low = points[0].y, high = points[0].y;
    for (const Point& point : points) {
      low = std::min(low, point.y);
      high = std::max(high, point.y);
    }
    const Pixels in = around(0, low, static_cast<float>(picture_.width), high).with(clip_);
    std::vector<float> cover(static_cast<size_t>(picture_.width)), crossings;
    for (int y = in.y0; y < in.y1; ++y) {
      std::fill(cover.begin(), cover.end(), 0.0f);
      for (int part = 0; part < kLines; ++part) {
        const float at = static_cast<float>(y) + (static_cast<float>(part) + 0.5f) / kLines;
        crossings.clear();
        for (size_t i = 0; i < points.size(); ++i) {
          const Point &a = points[i], &b = points[(i + 1) % points.size()];
          if ((a.y <= at) != (b.y <= at)) crossings.push_back(a.x + (b.x - a.x) * (at - a.y) / (b.y - a.y));
        }
        std::sort(crossings.begin(), crossings.end());
        for (size_t i = 0; i + 1 < crossings.size(); i += 2) {
          const float from = std::max(crossings[i], static_cast<float>(in.x0)), to = std::min(crossings[i + 1], static_cast<float>(in.x1));
          for (int x = static_cast<int>(std::floor(from)); static_cast<float>(x) < to; ++x)
            cover[static_cast<size_t>(x)] +=
                std::max(0.0f, std::min(to, static_cast<float>(x + 1)) - std::max(from, static_cast<float>(x))) / kLines;
        }
      }
      for (int x = in.x0; x < in.x1; ++x)
        if (const float of = cover[static_cast<size_t>(x)]; of > 0) blend(x, y, share(of), color);
    }
  }

  void text(const DrawnShape& shape, Point at) {
    const float size = shape.width * scale_;
    if (size < 1) return;
    if (!glyphs_) glyphs_ = std::make_unique<Glyphs>();
    const float length = shape.anchor == Anchor::left ? 0 : glyphs_->width(shape.words, size, shape.bold);
    const float x = at.x - (shape.anchor == Anchor::middle ? length / 2 : length), base = std::round(at.y + size * kBaseline);
    glyphs_->draw(shape.words, size, shape.bold, x, [&](const Glyph& glyph) {
      const Pixels in = Pixels{glyph.left, static_cast<int>(base) - glyph.top, glyph.left + glyph.width,
                               static_cast<int>(base) - glyph.top + glyph.height}
                            .with(clip_);
      for (int y = in.y0; y < in.y1; ++y)
        for (int column = in.x0; column < in.x1; ++column) {
          const uint8_t cover = glyph.rows[(y - static_cast<int>(base) + glyph.top) * glyph.pitch + column - glyph.left];
          if (cover) blend(column, y, static_cast<float>(cover) / 255, shape.color);
        }
    });
  }

  const Drawing& drawing_;
  const float scale_;
  Picture picture_;
  std::vector<uint8_t> cover_;  // coverage by the current line
  Pixels all_, clip_, touched_;
  std::unique_ptr<Glyphs> glyphs_;
};

}  // namespace

Picture raster(const Drawing& drawing, float scale) {
  if (!makes_pictures())
    throw Error(ErrorCode::device, "this build makes no PNG", "FreeType or the font of its pictures was not there when it was built",
                "write SVG instead, or install libfreetype-dev and fonts-inter and build it again");
  return Canvas(drawing, std::min(scale, kLargestSide / std::max({drawing.size.x, drawing.size.y, 1.0f}))).take();
}

}  // namespace comera
