// Curves of metrics in one look, for every panel that draws some.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "app/studio/figure.h"
#include "app/studio/run_view.h"
#include "app/studio/theme.h"
#include "app/studio/widgets.h"

namespace comera::studio {

// How curves are looked at; shared by all plots, so that they stay aligned.
struct PlotView {
  double x_low = 0, x_high = 100;             // what is visible
  double last_step = 0;                       // newest one of the run
  bool follow = true;                         // the head of the run stays visible; ends when the user moves the view
  float smoothing = 0.95f;                    // weight of the past; 0 = raw
  bool log_scale = false;                     // of losses
  bool outliers = true;                       // false: the highest and lowest percent do not stretch the axis
  double cursor = -1;                         // step under the mouse in any plot, of the last frame; -1 = none
  double replay = -1;                         // step of the timeline's cursor; -1 = at the head
  double hovered = -1;                        // the same, of this frame so far
  double clicked = -1;                        // where a plot was clicked in this frame; -1 = nowhere
  double grain = 1;                           // the smallest distance along x that counts: 1 step
  const char* unit = "step";                  // what x counts
  std::map<const Curve*, Smoothed> smoothed;  // computed once for each curve, then only what is new
  size_t to_smooth = kSmoothedAFrame;         // points that this frame may still smooth
  bool smoothing_left = false;                // of some curve: more frames are needed
  // In a frame's first look at them: a new budget.
  void begin_frame();
  const Curve& smooth(const Curve& curve);  // within the budget
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
  float raw_alpha = 0.28f;  // of the raw curve behind a smooth one
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
  std::string empty = "No points yet";  // what to say before there are any
  const char* unit = "";
  bool from_zero = false;
  bool can_log = false;
  bool legend = true;     // the names of the lines, where there are several
  std::string note = {};  // under the title
};

// What the tile shows, as a figure: the points of the visible steps, raw and smoothed.
Figure figure_of(PlotView& view, const PlotTile& tile, std::string note);

// One card with title, value and plot.
void plot_tile(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size);
// The same without the card.
void plot_lines(PlotView& view, const PlotTile& tile, const std::vector<Mark>& marks, ImVec2 size);
// A dashed line through pixels, which neither Dear ImGui nor ImPlot has.
void draw_dashed(ImDrawList* list, const std::vector<ImVec2>& points, ImU32 color, float weight);
// Inside of a plot over steps: where the timeline's cursor is.
void draw_replay_line(const PlotView& view);
// Before the tiles of a frame: follows the head of the run.
void follow_head(PlotView& view, double last_step);

}  // namespace comera::studio
