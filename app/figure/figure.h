// A chart independent of the screen: its points as CSV, and the chart as a drawing.
#pragma once
#include <string>
#include <vector>

#include "app/figure/marker.h"

namespace comera {

struct FigureLine {
  std::string label = {};
  Color color = 0;
  std::vector<double> x = {}, y = {};  // x ascending; a NaN in y is a gap
  std::vector<double> base = {};       // if not empty: an area from base to y
  bool band = false;                   // for areas: plot the values of both edges, not their distance
  bool stairs = false;                 // a step function: each value holds until the next point
  bool dashed = false;
  Marker marker = Marker::none;
  bool no_data = false;  // drawn but not in the table, for example a target
  // If not empty: the step of each point; x is then in any order and points are joined in the given order.
  std::vector<double> steps = {};
};

struct FigureBar {
  std::string label;  // of a category; "" = the bar covers `from` to `to` on a number axis
  double from = 0, to = 0, value = 0;
  Color color = 0;
};

struct Figure {
  std::string title = {}, note = {};  // note: run and step
  std::string unit = {}, x_title = "step";
  float line_width = 1;  // factor of the default width
  std::vector<FigureLine> lines = {};
  std::vector<FigureBar> bars = {};  // a figure has lines or bars
  double x_low = 0, x_high = 0;      // visible range of lines; both 0 = all
  double threshold = 0;              // bars: a dashed line across; 0 = none
  bool log_scale = false, from_zero = false;
};

// Lines: one row per x of any line, one column per line, two per band; if points have steps, one row per point, with step and x.
// Bars: one row per bar.
std::string figure_csv(const Figure& figure);
inline constexpr Point kPage = {900, 440};  // default size of a chart
Drawing draw_figure(const Figure& figure, Point size = kPage);

// About `count` round numbers within a range.
std::vector<double> ticks(double low, double high, int count, bool log_scale);

// A table as RFC 4180 text; a number as the shortest text that reads back as the same value.
std::string csv_text(const std::vector<std::vector<std::string>>& rows);
std::string csv_number(double value);

}  // namespace comera
