// Plots of metrics, shared by all panels.
#pragma once
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/figure/figure.h"
#include "app/studio/shown_run/run_view.h"
#include "app/studio/theme.h"

namespace comera::studio {

// Settings of a single plot.
struct PlotLook {
  std::optional<bool> log_scale, outliers;  // unset: as for all plots
  bool locked = false;                      // the y axis is fixed to `low`..`high`
  double low = 0, high = 1;
  double shown_low = 0, shown_high = 1;  // in the last frame
  // Zoom of a plot over a metric: the visible range, and that metric ("" = no zoom).
  struct Zoom {
    std::string over;
    double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  } zoom;
};

// View settings shared by all plots, so that they stay aligned.
struct PlotView {
  double x_low = 0, x_high = 100;  // visible range
  double last_step = 0;            // newest step of the run
  double furthest = 0;             // last step of the lines behind, which may be later
  bool follow = true;              // keep the newest step visible; the user ends this by moving the view
  float smoothing = 0.95f;         // weight of the past; 0 = off
  Smoothing smoothing_kind = Smoothing::ema;
  bool log_scale = false;                          // for losses
  bool outliers = true;                            // false: the lowest and the highest 1 % do not widen the y axis
  double cursor = -1;                              // step under the mouse in any plot, from the last frame; -1 = none
  double replay = -1;                              // step of the timeline's cursor; -1 = at the newest step
  double selection_low = -1, selection_high = -1;  // selected steps of the timeline; -1 = none
  double hovered = -1;                             // as `cursor`, for this frame so far
  double clicked = -1;                             // step that was clicked in this frame; -1 = none
  int hovered_owner = -1;                          // PlotLine::owner of the line under the mouse, in this frame so far; -1 = none
  double menu_at = -1;                             // step at which a plot's menu was opened; -1 = none
  double grain = 1;                                // smallest step of x: 1, or less for other units
  const char* unit = "step";                       // unit of x
  StepAxis axis = {};                              // maps x to the displayed axis; x_low and x_high are not mapped
  const char* axis_unit = "step";                  // unit of the displayed axis
  bool clock = false;                              // the displayed axis is the time of day
  float line_width = 1;                            // factor of the default width
  bool markers = true;                             // draw markers on lines that have one
  std::string over_title;                          // title of the metric that replaces the x axis; "" = none
  std::map<std::string, PlotLook> looks;           // by id of the plot
  std::map<const Curve*, Smoothed> smoothed;       // computed incrementally
  std::map<const Curve*, PerSecond> rates;         // likewise
  size_t to_smooth = kSmoothedAFrame;              // points that may still be computed in this frame, for both maps
  bool smoothing_left = false;                     // some curve is not complete: more frames are needed
  // Call at the beginning of a frame: renews the budget of points.
  void begin_frame();
  const Curve& smooth(const Curve& curve);   // computes within the budget
  const Curve& per_second(const Curve& ms);  // likewise
  void forget_curves();                      // the maps are by address: call when curves were replaced
  // Takes some milliseconds of one core.
  static constexpr size_t kSmoothedAFrame = 500'000;
};

struct PlotLine {
  const Curve* curve = nullptr;
  const char* label = "";
  ImU32 color = 0;
  bool smooth = false;  // draw the smoothed curve over a faint raw one
  bool points = false;  // few values: draw a dot at each
  double scale = 1;     // factor of y
  bool hold = false;    // extends the last value to the end of the run
  StepAxis axis = {};   // maps steps of this run to x
  bool dashed = false;
  Marker marker = Marker::none;  // drawn at a few points; with `points` at each value
  float raw_alpha = 0.28f;       // opacity of the raw curve behind a smoothed one
  const Curve* low = nullptr;    // with `high`: a band around the line, at the same steps
  const Curve* high = nullptr;
  const char* band = "";        // meaning of the band: "lowest to highest"
  const char* middle = "";      // meaning of the line in the band: "mean"
  int owner = -1;               // number of the run, for PlotView::hovered_owner; -1 = none
  float weight = 1;             // factor of the width of all lines
  bool fits = true;             // the y axis fits the whole line; false: only as far as others are not flattened
  bool named = true;            // has a name next to the title
  double end = INFINITY;        // last step of the run: behind it, the tooltip leaves the line out
  const Curve* over = nullptr;  // metric that replaces the x axis, at the same steps (plot_over.h)
};

struct PlotTile {
  const char* id = "";
  const char* title = "";
  const char* help = nullptr;
  std::string value = {};  // newest value, shown large next to the title
  std::vector<PlotLine> lines = {};
  const Curve* target = nullptr;  // drawn dashed, e.g. the size target
  double target_scale = 1;
  double target_value = 0;              // a constant target; 0 = none
  double ghost_step = -1;               // step at which the target last changed: the previous value continues faintly; -1 = never
  std::string empty = "No points yet";  // text without points
  const char* unit = "";
  bool from_zero = false;
  bool can_log = false;
  bool extra = false;                             // shown on request only
  bool legend = true;                             // show names of lines if there are several
  std::string note = {};                          // below the title
  std::function<void()> menu = {};                // more items for its menu
  std::function<void()> corner = {};              // draws into the lower right corner of the card
  const std::vector<PlotLine>* fitted = nullptr;  // lines that the y axis fits; null = `lines`
};

// Settings in effect: the plot's own, else those for all plots.
bool log_scale_of(const PlotView& view, const PlotTile& tile);
bool outliers_of(const PlotView& view, const PlotTile& tile);
const Curve& smoothed_of(PlotView& view, const Curve& curve);
// Controls for all plots: smoothing, log scale, outliers, lock and fit. Continues the current line, and wraps if there is not enough room.
void plot_toolbar(PlotView& view);
// Resets all plots to the whole run and follows the newest step.
void fit_plots(PlotView& view);

// The tile as a figure: the visible steps, raw and smoothed.
Figure figure_of(PlotView& view, const PlotTile& tile, std::string note);

// Values of the lines at a step, for the clipboard: a number for a single line, else one line of text each with its name. Lines without a
// value are left out.
std::string values_text(const PlotTile& tile, double step);

// A card with title, value and plot.
void plot_tile(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size);
// The same without the card.
void plot_lines(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size);
// Line width in pixels.
float line_weight(const PlotView& view);
// Called once a frame, before plots over the steps are drawn: keeps the newest step visible.
void follow_head(PlotView& view, double last_step);

}  // namespace comera::studio
