// Comparison of two to eight runs: the runs, the baseline, view settings. StoreClient's thread reads the runs (run_watch.h); the tabs
// (tabs.h) draw them.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "app/studio/compare/compared_run.h"
#include "app/studio/compare/pareto_points.h"
#include "app/studio/compare/run_groups.h"
#include "app/studio/compare/run_watch.h"
#include "app/studio/parts/plots.h"
#include "app/studio/parts/text_filter.h"

namespace comera::studio {

struct UiState;

struct Compare {
  std::vector<std::shared_ptr<ComparedRun>> runs;  // in the order of selection
  std::map<std::string, int> slots;                // slots by run id; a run that is compared again gets its old slot
  std::string baseline;                            // `wanted` of the baseline; if no run matches, the first run
  std::string tab;                                 // id of the tab to bring to the front; "" = leave them
  std::string front_tab;                           // id of the active tab; "" = none shown yet

  XAxis axis = XAxis::step;
  std::string over;    // a metric that replaces the x axis, at the same steps; "" = none
  double cursor = -1;  // position on the axis, for all runs; -1 = each run at its newest step
  PlotView plots;
  std::set<std::string> toggled_metrics;  // metrics whose visibility differs from the default
  bool by_run = false;                    // one plot per run instead of all runs in one plot
  std::string group_by;                   // grouping of runs (run_groups.h): one curve per group, with a band
  GroupMiddle group_middle = GroupMiddle::mean;
  GroupBand group_band = GroupBand::extremes;
  std::map<std::string, GroupCurve> group_curves;
  int drawn_frame = -1;  // number of the frame that last drew the page

  bool all_settings = false;     // also show settings that do not differ
  TextFilter setting_filter;     // matches paths and values
  TextFilter result_filter;      // matches the names of results and metrics
  bool wants_filter = false;     // move the focus to the filter box of the active tab
  std::string ranks_a, ranks_b;  // `wanted` of the two runs; "" = chosen automatically
  bool memory_at_peak = true, pareto_log = true;
  ParetoCost pareto_cost = ParetoCost::size;
  std::map<std::string, std::pair<float, float>> brushes;  // parallel coordinates: selected range per axis, 0..1 from its lower end

  std::string hovered;       // `wanted` of the run whose name or curve is under the mouse in this frame
  std::string export_asked;  // title of the plot whose menu asked for an export in this frame
  std::string highlighted;   // the same from the last frame: this run is emphasised, the others are dimmed; "" = none

  std::vector<WatchRequest> asked;  // the last requests to the store
  double next_refresh = 0;

  const ComparedRun* find(const std::string& wanted) const;  // null = not compared
  const ComparedRun* baseline_run() const;                   // null = no runs
  bool full() const { return runs.size() >= kMostCompared; }
};

// Add a run to the comparison, or remove it. Runs beyond kMostCompared are ignored.
void pick_run(Compare& compare, const std::string& run);
void unpick_run(Compare& compare, const std::string& run);
void set_baseline(Compare& compare, const std::string& run);
void next_baseline(Compare& compare);
// Sets the colour that the user chose for a run; a compared run that has this colour gets the run's previous one.
void choose_slot(Compare& compare, const std::string& run, int slot);
// Moves the cursor to a position on the axis; below 0 or beyond the end, each run is shown at its newest step.
void move_cursor(Compare& compare, double to);
void set_axis(Compare& compare, XAxis axis);   // the cursor stays at the same step of the baseline
double last_position(const Compare& compare);  // end of the longest run

// Called before the tabs of a frame: highlights the run that was under the mouse.
void highlight_hovered(Compare& compare);

// Takes runs that were read and requests missing ones. Called once a frame while the page is shown.
void tick_compare(UiState& ui);
void take_watched(Compare& compare, WatchedRun answer);
// True if every compared run was read or is unreadable.
bool all_read(const Compare& compare);

// Name of a run without the prefix that all names share, and with its id if another run has the same name.
std::string label_of(const Compare& compare, const ComparedRun& run);

}  // namespace comera::studio
