// What a chart shows, apart from the screen: its points for a CSV file, and the chart itself as a drawing.
#pragma once
#include <string>
#include <vector>

#include "app/figure/marker.h"

namespace comera {

struct FigureLine {
  std::string label = {};
  Color color = 0;
  std::vector<double> x = {}, y = {};  // by rising x; y may be NaN, which is a gap
  std::vector<double> base = {};       // not empty: an area from it to y
  bool band = false;                   // of an area: its edges count, and not how far they are apart
  bool stairs = false;                 // a value holds until the next point
  bool dashed = false;
  Marker marker = Marker::none;
  bool no_data = false;  // a target or the like: drawn, not in the table
  // Not empty: of each point, and x is in any order; the line goes from point to point as they come.
  std::vector<double> steps = {};
};

struct FigureBar {
  std::string label;  // of a category; "" = the bar stands on a number axis from `from` to `to`
  double from = 0, to = 0, value = 0;
  Color color = 0;
};

struct Figure {
  std::string title = {}, note = {};  // note: of which run, at which step
  std::string unit = {}, x_title = "step";
  float line_width = 1;  // times the usual one
  std::vector<FigureLine> lines = {};
  std::vector<FigureBar> bars = {};  // lines or bars
  double x_low = 0, x_high = 0;      // of lines: what is shown; both 0 = everything
  double threshold = 0;              // bars: a dashed line across; 0 = none
  bool log_scale = false, from_zero = false;
};

// Lines: a row for each x that any of them has, a column for each line, two for a band; where points have steps, a row for each of them,
// with step and x. Bars: a row for each.
std::string figure_csv(const Figure& figure);
inline constexpr Point kPage = {900, 440};  // the size of a chart where nothing else is said
Drawing draw_figure(const Figure& figure, Point size = kPage);

// Round numbers inside of a range, about `count` of them.
std::vector<double> ticks(double low, double high, int count, bool log_scale);

// A table as RFC 4180 text, and one of its numbers: shortest text that reads back as the same number.
std::string csv_text(const std::vector<std::vector<std::string>>& rows);
std::string csv_number(double value);

}  // namespace comera
