// Curves of metrics in one look, for every panel that draws some.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/figure/figure.h"
#include "app/studio/parts/widgets.h"
#include "app/studio/shown_run/run_view.h"
#include "app/studio/theme.h"

namespace comera::studio {

// Settings of a single plot.
struct PlotLook {
  std::optional<bool> log_scale, outliers;  // else as all plots
  bool locked = false;                      // its y axis stays from `low` to `high`
  double low = 0, high = 1;
  double shown_low = 0, shown_high = 1;  // of the last frame
  // Drawn over a metric it has been zoomed: what of it is visible, and over which metric ("" = all of it, over any).
  struct Zoom {
    std::string over;
    double x_low = 0, x_high = 1, y_low = 0, y_high = 1;
  } zoom;
};

// View settings shared by all plots, so that they stay aligned.
struct PlotView {
  double x_low = 0, x_high = 100;  // what is visible
  double last_step = 0;            // newest one of the run
  double furthest = 0;             // the last one of what stands behind its lines, which may be further
  bool follow = true;              // the head of the run stays visible; ends when the user moves the view
  float smoothing = 0.95f;         // weight of the past; 0 = raw
  Smoothing smoothing_kind = Smoothing::ema;
  bool log_scale = false;                          // of losses
  bool outliers = true;                            // false: the highest and lowest percent do not stretch the axis
  double cursor = -1;                              // step under the mouse in any plot, of the last frame; -1 = none
  double replay = -1;                              // step of the timeline's cursor; -1 = at the head
  double selection_low = -1, selection_high = -1;  // steps that are selected in the timeline; -1 = none
  double hovered = -1;                             // the same, of this frame so far
  double clicked = -1;                             // where a plot was clicked in this frame; -1 = nowhere
  int hovered_owner = -1;                          // PlotLine::owner of the line under the mouse, of this frame so far; -1 = none
  double menu_at = -1;                             // step at which a plot's menu was opened; -1 = at none
  double grain = 1;                                // the smallest distance along x that counts: 1 step
  const char* unit = "step";                       // what x counts
  StepAxis axis = {};                              // where x stands on the screen; the range stays in what x counts
  const char* axis_unit = "step";                  // of what is written under the plots
  bool clock = false;                              // that is the time of day
  float line_width = 1;                            // times the usual one
  bool markers = true;                             // on lines that have one
  std::string over_title;                          // of the metric that lines are drawn over; "" = they are over the axis
  std::map<std::string, PlotLook> looks;           // by id of the plot
  std::map<const Curve*, Smoothed> smoothed;       // computed once for each curve, then only what is new
  std::map<const Curve*, PerSecond> rates;         // the same
  size_t to_smooth = kSmoothedAFrame;              // points that this frame may still compute for both
  bool smoothing_left = false;                     // of some curve: more frames are needed
  // In a frame's first look at them: a new budget.
  void begin_frame();
  const Curve& smooth(const Curve& curve);   // within the budget
  const Curve& per_second(const Curve& ms);  // the same
  void forget_curves();                      // what was computed is known by their addresses, which are others now
  // Some milliseconds of one core.
  static constexpr size_t kSmoothedAFrame = 500'000;
};

struct PlotLine {
  const Curve* curve = nullptr;
  const char* label = "";
  ImU32 color = 0;
  bool smooth = false;  // the smoothed curve in front of a faint raw one
  bool points = false;  // few values: each gets a dot
  double scale = 1;     // y is multiplied by it
  bool hold = false;    // the last value holds to the end of the run
  StepAxis axis = {};   // where its steps stand
  bool dashed = false;
  Marker marker = Marker::none;  // a few on the line; with `points` one at each value
  float raw_alpha = 0.28f;       // of the raw curve behind a smooth one
  const Curve* low = nullptr;    // with `high`: a band around it, of the same steps
  const Curve* high = nullptr;
  const char* band = "";        // what the band is: "lowest to highest"
  const char* middle = "";      // and the line in it: "mean"
  int owner = -1;               // whose it is, for PlotView::hovered_owner; -1 = nobody's
  float weight = 1;             // times that of all lines
  bool fits = true;             // the y axis shows all of it; else what does not flatten the others
  bool named = true;            // beside the title
  const Curve* over = nullptr;  // drawn over this metric, at the same steps, and not over the axis (plot_over.h)
};

struct PlotTile {
  const char* id = "";
  const char* title = "";
  const char* help = nullptr;
  std::string value = {};  // the latest one, large, beside the title
  std::vector<PlotLine> lines = {};
  const Curve* target = nullptr;  // drawn dashed, e.g. the size target
  double target_scale = 1;
  double target_value = 0;              // a constant target; 0 = none
  double ghost_step = -1;               // step of the last change of the target: the previous value continues faintly; -1 = never
  std::string empty = "No points yet";  // what to say before there are any
  const char* unit = "";
  bool from_zero = false;
  bool can_log = false;
  bool extra = false;                             // only where it is asked for
  bool legend = true;                             // the names of the lines, where there are several
  std::string note = {};                          // under the title
  std::function<void()> menu = {};                // more items for its menu
  std::function<void()> corner = {};              // draws what is in the lower right corner of its card
  const std::vector<PlotLine>* fitted = nullptr;  // lines that its y axis fits; null = its own
};

// How a plot is looked at, and whether that is for all or for it alone.
bool log_scale_of(const PlotView& view, const PlotTile& tile);
bool outliers_of(const PlotView& view, const PlotTile& tile);
const Curve& smoothed_of(PlotView& view, const Curve& curve);
// Smoothing, logarithm, outliers, lock and fit for all plots; begins on the line where the cursor is and takes more lines
// where it must.
void plot_toolbar(PlotView& view);
// Every plot shows everything again, and follows the head.
void fit_plots(PlotView& view);

// The tile as a figure: points of the visible steps, raw and smoothed.
Figure figure_of(PlotView& view, const PlotTile& tile, std::string note);

// The values of its lines at a step, as text for the clipboard: the number of one line, else a line of text for each with
// its name. Those that have none there are left out.
std::string values_text(const PlotTile& tile, double step);

// One card with title, value and plot.
void plot_tile(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size);
// The same without the card.
void plot_lines(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size);
// Of a line, in pixels.
float line_weight(const PlotView& view);
// Once a frame, before anything that is drawn over the steps: follows the head of the run.
void follow_head(PlotView& view, double last_step);

}  // namespace comera::studio
