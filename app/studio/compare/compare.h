// Two to eight runs side by side: the runs, the baseline, view settings. The thread of StoreClient reads the runs
// (run_watch.h); the tabs (tabs.h) draw them.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/studio/compare/compared_run.h"
#include "app/studio/compare/run_groups.h"
#include "app/studio/compare/run_watch.h"
#include "app/studio/parts/plots.h"
#include "app/studio/parts/text_filter.h"

namespace comera::studio {

struct UiState;

struct Compare {
  std::vector<std::shared_ptr<ComparedRun>> runs;  // in the order they were picked
  std::map<std::string, int> slots;                // slots of runs by id, which they get again
  std::string baseline;                            // `wanted` of that run; another word = the first one
  std::string tab;                                 // id of the tab to bring to the front; "" = as it is
  std::string front_tab;                           // the active tab; "" = none was shown yet

  XAxis axis = XAxis::step;
  std::string over;    // a metric as the x axis instead, at the same steps; "" = none
  double cursor = -1;  // on that axis, of all runs; -1 = each at its newest step
  PlotView plots;
  std::set<std::string> toggled_metrics;  // curves that are shown but would not be, or the other way round
  bool by_run = false;                    // one plot a run instead of all runs in one
  std::string group_by;                   // grouping of runs (run_groups.h): one curve per group, with a band
  GroupMiddle group_middle = GroupMiddle::mean;
  GroupBand group_band = GroupBand::extremes;
  std::map<std::string, GroupCurve> group_curves;
  int drawn_frame = -1;  // when it was on the screen last

  bool all_settings = false;     // also those that do not differ
  TextFilter setting_filter;     // of their paths and values
  TextFilter result_filter;      // of the names of results and metrics
  bool wants_filter = false;     // the filter box of the active tab takes the focus
  std::string ranks_a, ranks_b;  // `wanted` of the two runs; "" = chosen by itself
  bool memory_at_peak = true, pareto_log = true;
  std::map<std::string, std::pair<float, float>> brushes;  // parallel coordinates: range of an axis, 0..1 from its lower end

  std::string hovered;      // `wanted` of the run whose name or curve is under the mouse, of this frame so far
  std::string highlighted;  // the same of the last frame: it stands out, the others are dimmed; "" = none

  std::vector<WatchRequest> asked;  // of the store, last
  double next_refresh = 0;

  const ComparedRun* find(const std::string& wanted) const;  // null = not picked
  const ComparedRun* baseline_run() const;                   // null when there is no run
  bool full() const { return runs.size() >= kMostCompared; }
};

// Ticks a run, or unticks it. More than kMostCompared are not taken.
void pick_run(Compare& compare, const std::string& run);
void unpick_run(Compare& compare, const std::string& run);
void set_baseline(Compare& compare, const std::string& run);
void next_baseline(Compare& compare);
// Sets the chosen colour of a run; a compared run with the same colour gets the previous one.
void choose_slot(Compare& compare, const std::string& run, int slot);
// To a place on the axis; beyond the ends, or below 0: each run at its newest step.
void move_cursor(Compare& compare, double to);
void set_axis(Compare& compare, XAxis axis);   // the cursor stays where the baseline is
double last_position(const Compare& compare);  // of the longest run

// Before the tabs of a frame: highlights the run that was under the mouse.
void highlight_hovered(Compare& compare);

// Takes read runs and requests missing ones. Once per frame while the page is shown.
void tick_compare(UiState& ui);
void take_watched(Compare& compare, WatchedRun answer);
// All requested runs are read, or unreadable.
bool all_read(const Compare& compare);

// The name of a run without the words that all of them begin with, and with its id where another one has the same name.
std::string label_of(const Compare& compare, const ComparedRun& run);

}  // namespace comera::studio
