#include "app/figure/figure.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <utility>

#include "app/figure/colors.h"
#include "app/format.h"

namespace comera {
namespace {

constexpr float kText = 12, kTitle = 16, kLineWidth = 1.6f;
constexpr size_t kMostPoints = 4000;  // of a line in a drawing, several per pixel column

// Keeps the first, smallest, largest and last point of each interval, so no spike is lost.
std::vector<size_t> kept_points(const std::vector<double>& x, const std::vector<double>& y, size_t begin, size_t end) {
  std::vector<size_t> out;
  const size_t columns = kMostPoints / 4;
  if (end - begin <= kMostPoints) {
    for (size_t i = begin; i < end; ++i) out.push_back(i);
    return out;
  }
  const double low = x[begin], step = (x[end - 1] - low) / static_cast<double>(columns);
  for (size_t i = begin; i < end;) {
    const double border = low + step * (std::floor((x[i] - low) / step) + 1);
    size_t least = i, most = i, last = i;
    for (; last < end && (x[last] < border || last == i); ++last) {
      if (!(y[last] >= y[least])) least = last;
      if (!(y[last] <= y[most])) most = last;
    }
    std::vector<size_t> some{i, least, most, last - 1};
    std::sort(some.begin(), some.end());
    some.erase(std::unique(some.begin(), some.end()), some.end());
    out.insert(out.end(), some.begin(), some.end());
    i = last;
  }
  return out;
}

// For a line whose x is not monotonic, where pixel columns cannot be used.
std::vector<size_t> every_point(size_t count) {
  std::vector<size_t> out;
  for (size_t i = 0; i < count; i += 1 + count / (5 * kMostPoints)) out.push_back(i);
  return out;
}

struct Range {
  double low = 1e300, high = -1e300;
  bool log_scale = false;
  void take(double value) {
    if (!std::isfinite(value) || (log_scale && value <= 0)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return low > high; }
  double share(double value) const {
    if (log_scale) return std::log(std::max(value, 1e-300) / low) / std::log(high / low);
    return (value - low) / (high - low);
  }
};

Range y_range(const Figure& figure, double x_low, double x_high) {
  Range range{.log_scale = figure.log_scale};
  for (const FigureLine& line : figure.lines)
    for (size_t i = 0; i < line.x.size(); ++i)
      if (line.x[i] >= x_low && line.x[i] <= x_high) {
        range.take(line.y[i]);
        if (i < line.base.size()) range.take(line.base[i]);
      }
  for (const FigureBar& bar : figure.bars) range.take(bar.value);
  if (figure.threshold > 0) range.take(figure.threshold);
  if (range.empty()) return {.low = 0, .high = 1};
  if (range.log_scale) {
    range.high = std::max(range.high, range.low * 1.01);
    const double room = std::pow(range.high / range.low, 0.05);
    range.low /= room;
    range.high *= room;
    return range;
  }
  if (figure.from_zero || !figure.bars.empty()) range.low = std::min(range.low, 0.0);
  double room = (range.high - range.low) * 0.06;
  if (!(room > 0)) room = std::max(std::abs(range.high) * 0.05, 1e-6);
  range.high += room;
  if (range.low != 0) range.low -= room;
  return range;
}

// The plotting area with its axes; maps values to positions.
struct Plane {
  Point from, to;
  Range x, y;
  Point at(double vx, double vy) const {
    const double px = from.x + (to.x - from.x) * x.share(vx), py = to.y - (to.y - from.y) * y.share(vy);
    return {static_cast<float>(std::clamp(px, -1e5, 1e5)), static_cast<float>(std::clamp(py, -1e5, 1e5))};
  }
};

// `weight`: factor of the default width.
void draw_line(Drawing& out, const Plane& plane, const FigureLine& line, float weight, int clip) {
  const auto first = std::lower_bound(line.x.begin(), line.x.end(), plane.x.low) - line.x.begin();
  const auto last = std::upper_bound(line.x.begin(), line.x.end(), plane.x.high) - line.x.begin();
  // One more point on each side, so that the line reaches the edge.
  const bool in_order = line.steps.empty();
  const auto begin = in_order ? static_cast<size_t>(std::max<long>(0, first - 1)) : 0;
  const size_t end = in_order ? std::min(line.x.size(), static_cast<size_t>(last) + 1) : line.x.size();
  if (begin >= end) return;
  std::vector<Point> points, under;
  const auto flush = [&] {
    if (!line.base.empty()) {
      points.insert(points.end(), under.rbegin(), under.rend());
      out.polygon(std::exchange(points, {}), line.color, clip);
      under.clear();
    } else if (points.size() == 1) {
      out.circle(points[0], 2, line.color, clip);
      points.clear();
    } else {
      out.line(std::exchange(points, {}), line.color, (line.dashed ? 1.2f : kLineWidth) * weight, clip, line.dashed ? 5.0f : 0.0f);
    }
  };
  double held = NAN, held_base = NAN;
  for (const size_t i : in_order ? kept_points(line.x, line.y, begin, end) : every_point(end)) {
    if (!std::isfinite(line.y[i])) {
      flush();
      held = NAN;
      continue;
    }
    if (line.stairs && std::isfinite(held)) {
      points.push_back(plane.at(line.x[i], held));
      if (!line.base.empty()) under.push_back(plane.at(line.x[i], held_base));
    }
    points.push_back(plane.at(line.x[i], line.y[i]));
    held = line.y[i];
    if (!line.base.empty()) {
      held_base = line.base[i];
      under.push_back(plane.at(line.x[i], held_base));
    }
  }
  flush();
  const float radius = marker_radius(kLineWidth * weight, kText);
  for (const size_t i : in_order ? marked_points(line.x, line.y, plane.x.low, plane.x.high, line.marker) : marked_points(end, line.marker))
    if (std::isfinite(line.y[i])) add_marker(out, line.marker, plane.at(line.x[i], line.y[i]), radius, line.color, clip);
}

// The legend: as many rows as needed; a name longer than a row is cut.
struct LegendEntry {
  const FigureLine* line;
  std::string label;
  Point at;  // centre of the sample
};
constexpr float kLegendTop = 61, kLegendRow = 16, kLegendSign = 13;  // y of the first row, row height, width of a sample

std::vector<LegendEntry> legend_of(const Figure& figure, float left, float right) {
  std::vector<LegendEntry> out;
  if (figure.lines.size() < 2) return out;
  constexpr float kChar = kText * 0.56f;
  const auto most = static_cast<size_t>(std::max(8.0f, (right - left - kLegendSign) / kChar));
  float x = left, y = kLegendTop;
  for (const FigureLine& line : figure.lines) {
    if (line.label.empty()) continue;
    const std::string label = line.label.size() <= most ? line.label : line.label.substr(0, most - 3) + "...";
    const float width = kLegendSign + static_cast<float>(label.size()) * kChar;
    if (x > left && x + width > right) {
      x = left;
      y += kLegendRow;
    }
    out.push_back({&line, label, {x + 4, y}});
    x += width + 19;
  }
  return out;
}

void draw_bars(Drawing& out, const Plane& plane, const Figure& figure, int clip) {
  const bool named = !figure.bars.front().label.empty();
  const auto count = static_cast<double>(figure.bars.size());
  for (size_t i = 0; i < figure.bars.size(); ++i) {
    const FigureBar& bar = figure.bars[i];
    const double from = named ? static_cast<double>(i) + 0.12 : bar.from, to = named ? static_cast<double>(i) + 0.88 : bar.to;
    const Point top = plane.at(from, bar.value), low = plane.at(to, std::max(0.0, plane.y.low));
    out.rect({top.x + (named ? 0 : 0.5f), std::min(top.y, low.y)}, {low.x - (named ? 0 : 0.5f), std::max(top.y, low.y)}, bar.color, 1, 0,
             clip);
    if (!named) continue;
    const float middle = plane.at(static_cast<double>(i) + 0.5, 0).x, room = (plane.to.x - plane.from.x) / static_cast<float>(count);
    // Labels alternate between two rows, so that neighbours do not overlap.
    const float y = plane.to.y + 12 + (room < 70 && i % 2 == 1 ? 14.0f : 0.0f);
    out.text({middle, y}, kText - 1, theme().dim, bar.label, Anchor::middle);
    out.text({middle, top.y - 8}, kText - 1, theme().text, axis_number(std::round(bar.value * 1000) / 1000), Anchor::middle);
  }
}

}  // namespace

std::vector<double> ticks(double low, double high, int count, bool log_scale) {
  std::vector<double> out;
  if (!(high > low) || count < 1 || (log_scale && low <= 0)) return out;
  if (log_scale && std::log10(high / low) >= 1) {
    const int stride = std::max(1, static_cast<int>(std::log10(high / low)) / count);
    for (int power = static_cast<int>(std::floor(std::log10(low))); power <= static_cast<int>(std::ceil(std::log10(high))); power += stride)
      for (const double part : stride > 1 || std::log10(high / low) > 3 ? std::vector<double>{1} : std::vector<double>{1, 2, 5})
        if (const double value = part * std::pow(10.0, power); value >= low && value <= high) out.push_back(value);
    return out;
  }
  const double rough = (high - low) / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  const double step = power * (rough / power > 5 ? 10 : rough / power > 2 ? 5 : rough / power > 1 ? 2 : 1);
  for (double value = std::ceil(low / step - 1e-9) * step; value <= high + step * 1e-9; value += step)
    out.push_back(std::abs(value) < step * 1e-9 ? 0 : value);
  return out;
}

Drawing draw_figure(const Figure& figure, Point size) {
  const Theme& t = theme();
  Drawing out;
  out.size = size;
  out.background = t.card;
  out.title = figure.title + (figure.note.empty() ? "" : ", " + figure.note);
  out.text({20, 22}, kTitle, t.text, figure.title + (figure.unit.empty() ? "" : "  (" + figure.unit + ")"), Anchor::left, true);
  out.text({20, 42}, kText, t.dim, figure.note);
  Plane plane;
  plane.to = {size.x - 22, size.y - 46};
  const std::vector<LegendEntry> legend = legend_of(figure, 64, plane.to.x);
  plane.from = {64, (legend.empty() ? kLegendTop : legend.back().at.y) + 15};
  const bool named = !figure.bars.empty() && !figure.bars.front().label.empty();
  plane.x.low = figure.x_low;
  plane.x.high = figure.x_high;
  if (!(plane.x.high > plane.x.low)) {
    plane.x = {};
    for (const FigureLine& line : figure.lines)
      for (const double x : line.x) plane.x.take(x);
    for (const FigureBar& bar : figure.bars)
      for (const double x : {bar.from, bar.to}) plane.x.take(x);
    if (named) plane.x = {.low = 0, .high = static_cast<double>(figure.bars.size())};
    if (!(plane.x.high > plane.x.low))
      plane.x = {.low = plane.x.empty() ? 0 : plane.x.low - 1, .high = plane.x.empty() ? 1 : plane.x.high + 1};
  }
  plane.y = y_range(figure, plane.x.low, plane.x.high);
  // The axes.
  for (const double value : ticks(plane.y.low, plane.y.high, 6, figure.log_scale)) {
    const float y = plane.at(plane.x.low, value).y;
    out.line({{plane.from.x, y}, {plane.to.x, y}}, t.grid, 1);
    out.text({plane.from.x - 8, y}, kText, t.dim, axis_number(value), Anchor::right);
  }
  if (!named)
    for (const double value : ticks(plane.x.low, plane.x.high, 8, false)) {
      const float x = plane.at(value, plane.y.low).x;
      out.line({{x, plane.from.y}, {x, plane.to.y}}, t.grid, 1);
      out.text({x, plane.to.y + 13}, kText, t.dim, axis_number(value), Anchor::middle);
    }
  out.text({(plane.from.x + plane.to.x) / 2, size.y - 13}, kText, t.dim, figure.x_title, Anchor::middle);
  // The data, clipped to the plotting area.
  out.clips.push_back({plane.from.x, plane.from.y, plane.to.x, plane.to.y});
  for (const FigureLine& line : figure.lines) draw_line(out, plane, line, figure.line_width, 0);
  if (!figure.bars.empty()) draw_bars(out, plane, figure, 0);
  if (figure.threshold > 0)
    out.line({plane.at(plane.x.low, figure.threshold), plane.at(plane.x.high, figure.threshold)}, t.warning, 1.2f, 0, 5);
  out.line({{plane.from.x, plane.from.y}, {plane.from.x, plane.to.y}, {plane.to.x, plane.to.y}}, t.dim, 1);
  for (const LegendEntry& entry : legend) {
    add_marker(out, entry.line->marker == Marker::none ? Marker::circle : entry.line->marker, entry.at, 4, entry.line->color);
    out.text({entry.at.x - 4 + kLegendSign, entry.at.y}, kText, t.dim, entry.label);
  }
  return out;
}

// ---- tables ----------------------------------------------------------------------------------------------------------

std::string csv_number(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

std::string csv_text(const std::vector<std::vector<std::string>>& rows) {
  std::string out;
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i) out += ',';
      if (row[i].find_first_of(",\"\r\n") == std::string::npos) {
        out += row[i];
        continue;
      }
      out += '"';
      for (const char c : row[i]) out += c == '"' ? std::string("\"\"") : std::string(1, c);
      out += '"';
    }
    out += '\n';
  }
  return out;
}

std::string figure_csv(const Figure& figure) {
  std::vector<std::vector<std::string>> rows;
  if (!figure.bars.empty()) {
    const bool named = !figure.bars.front().label.empty();
    const std::string value = figure.title + (figure.unit.empty() ? "" : " (" + figure.unit + ")");
    rows.push_back(named ? std::vector<std::string>{figure.x_title, value}
                         : std::vector<std::string>{figure.x_title + " from", "to", value});
    for (const FigureBar& bar : figure.bars)
      rows.push_back(named ? std::vector<std::string>{bar.label, csv_number(bar.value)}
                           : std::vector<std::string>{csv_number(bar.from), csv_number(bar.to), csv_number(bar.value)});
    return csv_text(rows);
  }
  std::vector<const FigureLine*> lines;
  for (const FigureLine& line : figure.lines)
    if (!line.no_data) lines.push_back(&line);
  const bool stepped = std::any_of(lines.begin(), lines.end(), [](const FigureLine* line) { return !line->steps.empty(); });
  if (stepped) {
    rows.push_back({"step", figure.x_title});
    for (const FigureLine* line : lines) rows[0].push_back(line->label + (figure.unit.empty() ? "" : " (" + figure.unit + ")"));
    for (size_t k = 0; k < lines.size(); ++k)
      for (size_t i = 0; i < lines[k]->x.size() && i < lines[k]->steps.size(); ++i) {
        rows.push_back({csv_number(lines[k]->steps[i]), csv_number(lines[k]->x[i])});
        rows.back().resize(lines.size() + 2);
        rows.back()[k + 2] = csv_number(lines[k]->y[i]);
      }
    return csv_text(rows);
  }
  struct Column {
    const FigureLine& line;
    const char* what;
    const std::vector<double>* edge;  // edge of a band; null = `y`, or the height of an area
    double at(size_t i) const {
      if (edge) return (*edge)[i];
      return line.base.empty() ? line.y[i] : line.y[i] - line.base[i];  // the value of an area is the distance of its edges
    }
  };
  std::vector<Column> columns;
  for (const FigureLine* line : lines) {
    if (line->band) columns.push_back({*line, ": from", &line->base});
    columns.push_back({*line, line->band ? ": to" : "", line->band ? &line->y : nullptr});
  }
  rows.push_back({figure.x_title});
  std::map<double, std::vector<std::string>> by_x;
  for (size_t k = 0; k < columns.size(); ++k) {
    const FigureLine& line = columns[k].line;
    rows[0].push_back(line.label + columns[k].what + (figure.unit.empty() ? "" : " (" + figure.unit + ")"));
    for (size_t i = 0; i < line.x.size(); ++i) {
      const double x = line.x[i];
      if (figure.x_high > figure.x_low && (x < figure.x_low || x > figure.x_high)) continue;
      std::vector<std::string>& row = by_x[x];
      row.resize(columns.size());
      row[k] = csv_number(columns[k].at(i));
    }
  }
  for (auto& [x, values] : by_x) {
    values.insert(values.begin(), csv_number(x));
    rows.push_back(std::move(values));
  }
  return csv_text(rows);
}

}  // namespace comera
