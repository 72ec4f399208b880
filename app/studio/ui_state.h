// State of the window, passed whole to panels. Thread: the one that draws.
#pragma once
#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "app/studio/alerts.h"
#include "app/studio/background.h"
#include "app/studio/compare/compare.h"
#include "app/studio/desktop_theme.h"
#include "app/studio/dialogs.h"
#include "app/studio/form/new_run.h"
#include "app/studio/key_bindings.h"
#include "app/studio/log_file.h"
#include "app/studio/parts/export.h"
#include "app/studio/parts/metrics_grid.h"
#include "app/studio/parts/plots.h"
#include "app/studio/parts/text_filter.h"
#include "app/studio/reopening.h"
#include "app/studio/runs/run_table.h"
#include "app/studio/saved_layouts.h"
#include "app/studio/shown_run/checkpoint_values.h"
#include "app/studio/shown_run/following.h"
#include "app/studio/shown_run/live_run.h"
#include "app/studio/shown_run/play_clock.h"
#include "app/studio/shown_run/rank_history.h"
#include "app/studio/shown_run/replaced_courses.h"
#include "app/studio/shown_run/reproducing.h"
#include "app/studio/shown_run/step_times.h"
#include "app/studio/shown_run/store_client.h"
#include "app/studio/theme.h"
#include "app/studio/window_place.h"

namespace comera::studio {

struct UiState;

struct Settings {
  ThemeKind theme = ThemeKind::dark;
  bool theme_of_desktop = false;  // it follows what the desktop says
  float monitor_scale = 1;        // of the display
  float user_scale = 1;           // Ctrl +/-
  std::string store = "";         // database of runs that was chosen; "" = the usual one
  bool size_target_hint = true;   // a newcomer is shown what to drag (newcomer.h)
  double interrupted_told = 0;    // last sign of life of the interrupted runs that were dealt with (interrupted.h)
  float line_width = 1;           // of curves, times the usual one; of figures that are written too
  bool line_markers = true;       // on curves of compared runs; in figures that are written too
  int max_fps = 60;               // frames a second at most
  int training_fps = 10;          // the same while a run trains and nobody does anything
  double gui_share = 0.5;         // of a core that drawing may take
  bool desktop_dialogs = true;    // files are chosen in the desktop's own dialog, where there is one
  bool follow_newest = false;     // a run that another program begins in the store is shown
  AlertRules alerts;
  KeyBindings keys;
  std::vector<MeasuredStep> measured;  // steps, for forecasts
  double autosave_minutes = 0;         // between checkpoints of runs that are trained here; 0 = as their config says
  float scale() const { return monitor_scale * user_scale; }
  // Seconds from one frame to the next, when a frame takes `frame_s` to make. `shared`: the processor that draws them trains as
  // well, and a third of them will do.
  double shortest_frame(bool shared, double frame_s = 0) const {
    return std::max(1.0 / std::min(std::max(1, max_fps), shared ? 20 : 1000), frame_s / std::clamp(gui_share, 0.01, 1.0));
  }
};

struct Offer {  // a button of a toast; the toast goes with it
  std::string label;
  std::function<void(UiState&)> act;
};
inline constexpr double kUntilDismissed = 1e300;
inline constexpr size_t kToastsShown = 3;  // the newest ones
struct Toast {
  Level level = Level::info;
  std::string text;
  double until = 0;  // errors stay until they are dismissed
  std::string id = "";
  std::vector<Offer> offers = {};
};

// A run that did not fit into memory, and remedies.
struct NoRoom {
  const RunView* of = nullptr;  // the run
  std::unique_ptr<Background<RunConfig, std::shared_ptr<const MemoryMisfit>>> finder;
  uint64_t number = 0;
};

// Progress of quitting (closing.h).
struct Closing {
  double since = 0;                   // the wait began; 0 = not yet
  bool insisted = false;              // the window was asked to close once more
  bool at_once = false;               // without waiting for the run and for unfinished work
  bool gave_up = false;               // the unfinished work
  bool accepts_loss = false;          // what was not saved is known
  std::vector<std::string> problems;  // errors since quitting was asked for
};

// A control that is being moved: its own value is shown until it is let go.
struct Drag {
  double value = 0;
  double next_post = 0;  // earliest time of the next edit
  bool posted = false;   // some edit of it was
};

enum class Loop { off, selection, all };

enum class RanksView { now, over_steps, drops };

// Steps first..last, both included; none when `first` is negative.
struct StepRange {
  int64_t first = -1, last = -1;
  bool any() const { return first >= 0; }
  bool has(int64_t step) const { return any() && step >= first && step <= last; }
};

// Summary of some steps of a run (timeline.h).
struct RangeSummary {
  StepRange range;
  int64_t steps = 0;                                                                 // recorded ones
  double seconds = 0;                                                                // of training
  double loss_first = 0, loss_last = 0, loss_mean = 0, loss_low = 0, loss_high = 0;  // NaN when there is none
  double ranks_fell = 0;
  int checkpoints = 0, edits = 0, alerts = 0;
};

// The cursor over the past of the shown run (timeline.h).
struct Timeline {
  std::shared_ptr<Replay> replay;            // what it moves through; null until it is read
  std::shared_ptr<const Snapshot> snapshot;  // at the cursor; null = at the newest step
  RunConfig config;                          // in force there
  int64_t wanted = -1;                       // a step to go to as soon as it is read
  const RunView* view = nullptr;             // which run it is of
  bool playing = false;
  Loop loop = Loop::off;
  double speed = 1;      // times the speed the run had
  double time = 0;       // played, and not enough for a step yet
  bool by_time = false;  // the axis: recorded time, not steps
  PlayClock clock;
  bool clock_left = false;  // not all steps are in it yet: more frames are needed
  StepRange selection;
  int64_t anchor = -1;   // where the selection that is being drawn began
  RangeSummary summary;  // of the selection
  size_t summary_points = 0;
  uint64_t summary_rewrites = 0;
};

// The diagram of tensor trains; which layer is chosen is UiState::selected_layer.
struct TTView {
  float zoom = 1;                   // units of the diagram are lines of text times this
  ImVec2 corner;                    // of what is visible, in units
  ImVec2 canvas;                    // where on the screen that is
  bool fit = true;                  // make it fit the width in the next frame
  bool fit_all = false;             // ... the height too
  bool moved = false;               // by hand since; till then it fits every size
  ImVec2 fitted;                    // size that it fits
  int64_t bond = 0, core = 0;       // chosen ones of the chosen layer, from 1; 0 = none
  std::set<std::string> collapsed;  // groups of layers
  const RunView* view = nullptr;    // the run that this is of
  std::string search;
  std::string inspected;           // bond or core whose values were asked for: LAYER.BOND, LAYER/CORE
  const LiveRun* asked = nullptr;  // the session that was asked
  // The same of the past, out of checkpoints.
  std::unique_ptr<Background<CheckpointQuestion, CheckpointValues>> past;
  CheckpointQuestion past_question;
  std::string shown_layer;  // the chosen one when it was last brought into view
};

// State of the profile panel.
struct ProfileView {
  std::vector<double> frame_ms;    // of the newest frames, oldest first
  std::vector<double> frame_at;    // seconds of the window's clock at which each was there
  int steps = 20;                  // to time when asked
  const RunView* asked = nullptr;  // the run that was asked, after this step, to time so many
  int64_t asked_after = 0, asked_steps = 0;
  StepTimeSummary times;  // of `points` points of `curve`; computed anew only when they change
  const Curve* curve = nullptr;
  size_t points = 0;
  uint64_t rewrites = 0;
  void add_frame(double ms, double at);
  double frame_share() const;  // of the time since the oldest one that making them took; 0 = not known
};

// What to do with a run that is being read. play: from its first step; reopen: it was shown when the window was closed; follow: it is the newest.
enum class LoadFor { show, play, again, resume, fork, past, retry, reopen, follow };

// The change when a failed run is retried.
enum class Retry { half_batch, on_cpu };

// How to resume or fork a stored run.
struct ResumeWith {
  int64_t at_step = -1;                // from the checkpoint at or before it; -1 = the last
  int64_t extend = 0;                  // steps more than planned
  std::vector<std::string> sets = {};  // path=value
  std::string store = {};              // database that it is in; "" = the one that is open
  std::string device = {};             // to compute on; "" = as its config says
  bool ask = false;                    // of a fork: in the form, where its settings can be changed first
};

// The lines of the log panel that are shown.
struct LogView {
  int level = 0;  // 0 all, 1 warnings and errors, 2 errors
  TextFilter filter;
  bool follow = true;  // the newest line stays in sight; of the past, that at the cursor
  bool later = true;   // of the past: lines that come after the cursor are shown too, dimmed
};

struct MenuKey {          // Alt, which leads to the menu bar
  bool held = false;      // alone, so far
  unsigned int from = 0;  // id of the window that had the keyboard when it went down
  unsigned int back = 0;  // id of the window that gets it back; 0 = the bar does not have it from Alt
};

struct UiState {
  UiState();  // not inline, nor is ~UiState: they would be compiled wherever this file is read
  ~UiState();

  Settings settings;
  std::string store_path;              // "" = nothing is stored
  std::unique_ptr<StoreClient> store;  // null: no list of runs
  std::function<std::unique_ptr<RunLink>(SessionStart)> open_session = start_session;
  SessionStart last_start;        // what the newest session was asked to do
  std::string dense_twin_of;      // the run whose dense twin is `live`, to be compared at its end; "" = it is none
  std::vector<std::string> sets;  // path=value for every run that is started here
  std::function<void()> wake;     // draws a frame soon; from any thread

  std::unique_ptr<LiveRun> live;                 // the run in front
  std::vector<std::unique_ptr<LiveRun>> ending;  // were replaced, still writing their last checkpoint
  std::shared_ptr<RunView> stored;               // a run out of the store
  bool show_stored = false;                      // which of the two is shown
  std::shared_ptr<const RunList> runs = std::make_shared<const RunList>();

  std::string layout = "start";       // what fills the window: start, new, train or compare
  std::string arrangement = "train";  // of the panels in the train layout: train, analyse or replay (frame.h), or a saved one
  bool rebuild_layout = true;         // dock the panels as the arrangement says
  std::string built_layout;           // what they are docked as now
  ImGuiID panels_dock = 0;            // where they are docked; 0 = they were not shown yet
  std::vector<SavedLayout> layouts;   // that somebody made (saved_layouts.h)
  std::map<std::string, bool> closed_panels;
  std::string front_panel;  // id of the one to bring to the front of its tabs; "" = as they are
  WindowPlace place;        // of the window on the screen
  Reopening reopening;
  Following following;

  // Requests to the store that are under way.
  uint64_t load_request = 0;
  LoadFor load_for = LoadFor::show;
  int64_t show_at = -1;  // step; -1 = the last
  ResumeWith resume_with;
  Retry retry = Retry::half_batch;

  // Start screen.
  std::string preset = "demo", selected_run;
  RunTable run_table;

  Compare compare;
  NewRun form;
  Dialogs dialogs;
  std::array<std::string, 3> last_folders;  // where files were chosen last, by BrowseFor; "" = nowhere yet
  NoRoom no_room;
  std::unique_ptr<Reproducing> reproducing;  // null: no steps are computed again
  bool find = false;                         // the search field of what is in front wants the keyboard
  DesktopTheme desktop_theme;
  std::string renderer;  // what draws, for people; "" without a display
  MenuKey menu_key;

  // Train screen.
  Timeline timeline;
  PlotView plots;
  MetricsGrid metrics;
  ReplacedCourses replaced;
  TTView tt;
  ProfileView profile;
  Exports exports;
  std::string selected_layer;
  int memory_view = 0;    // 0 by purpose, 1 by layer, 2 over the steps, 3 within one step
  int memory_counts = 1;  // by layer: 0 values, 1 with gradients and moments, 2 all that a step takes
  int memory_scope = 1;   // over the steps: 0 what training holds, 1 with the rest of the process, 2 with all processes
  bool ranks_as_share = false;
  RanksView ranks_view = RanksView::now;
  RankOrder rank_order = RankOrder::depth;
  std::map<std::string, Drag> drags;  // by setting
  int target_unit = 0;                // 0 share, 1 MiB, 2 compression
  bool target_beyond = false;         // its slider goes above the size at the start
  LogView log;

  std::vector<Toast> toasts;                      // newest last
  std::vector<LogLine> window_log;                // warnings and errors of the window
  std::shared_ptr<LogFile> log_file;              // null: no log file
  std::shared_ptr<const RunList> interrupted_of;  // the list in which interrupted runs were looked for
  bool tells_interrupted = false;                 // the window is interactive
  double ending_since = 0;                        // a pause or the end was asked for and waits for the step; 0 = no
  bool close_requested = false;                   // the user wants to quit
  Closing closing;
  bool quit = false;         // the frame loop ends
  bool full_screen = false;  // wanted
  double frame_ms = 0;       // time the last frame took to make
  int64_t process_bytes = 0;
  double next_process_look = 0;

  const RunView& shown() const;
  // The snapshot that panels show: the newest one of the shown run, or the one at the cursor.
  const Snapshot& snapshot() const;
  const RunConfig& config() const;
  bool replaying() const { return timeline.snapshot != nullptr; }
  bool has_run() const { return live || stored; }
  // A stored run is shown that can resume.
  bool resumable() const;
  // Another run is shown than the one that trains here.
  bool hides_live() const { return show_stored && stored && live && !live->view().ended(); }
  // The shown run can be commanded.
  LiveRun* commanded() const;
  // The same for settings, which cannot change during replay.
  LiveRun* editable() const { return replaying() ? nullptr : commanded(); }
  bool training() const;                                                                          // a session is not at its end yet
  bool busy() const;                                                                              // what is shown changes by itself
  bool opening() const { return !has_run() && (load_request != 0 || !reopening.shown.empty()); }  // a run is being read
};

}  // namespace comera::studio
