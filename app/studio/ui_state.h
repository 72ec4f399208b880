// State of the window, passed whole to panels. Thread: the drawing thread only.
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
#include "app/studio/run_queue.h"
#include "app/studio/runs/evaluating.h"
#include "app/studio/runs/run_table.h"
#include "app/studio/saved_layouts.h"
#include "app/studio/shown_run/checkpoint_values.h"
#include "app/studio/shown_run/following.h"
#include "app/studio/shown_run/live_run.h"
#include "app/studio/shown_run/play_clock.h"
#include "app/studio/shown_run/rank_history.h"
#include "app/studio/shown_run/replaced_courses.h"
#include "app/studio/shown_run/reproducing.h"
#include "app/studio/shown_run/samples.h"
#include "app/studio/shown_run/step_times.h"
#include "app/studio/shown_run/store_client.h"
#include "app/studio/theme.h"
#include "app/studio/window_place.h"

namespace comera::studio {

struct UiState;

struct Settings {
  ThemeKind theme = ThemeKind::dark;
  bool theme_of_desktop = false;  // follows the desktop theme
  float monitor_scale = 1;        // of the display
  float user_scale = 1;           // changed by Ctrl +/-
  std::string store = "";         // database of runs that the user chose; "" = the default one
  bool size_target_hint = true;   // shows new users the size target slider (newcomer.h)
  double interrupted_told = 0;    // newest heartbeat of the interrupted runs that the user has dealt with (interrupted.h)
  float line_width = 1;           // of curves, as a factor of the default width; also in exported figures
  bool line_markers = true;       // on curves of compared runs; also in exported figures
  int max_fps = 60;               // at most, per second
  int training_fps = 10;          // the same while a run trains without user input
  double gui_share = 0.5;         // fraction of a core that drawing may use
  bool desktop_dialogs = true;    // choose files in the desktop's own dialog if there is one
  bool follow_newest = false;     // show a run when another program starts it in the store
  AlertRules alerts;
  KeyBindings keys;
  std::vector<MeasuredStep> measured;  // step times, for forecasts
  double autosave_minutes = 0;         // between checkpoints of runs that are trained here; 0 = as in their config
  float scale() const { return monitor_scale * user_scale; }
  // Shortest time in seconds between frames, if making a frame takes `frame_s`. `shared`: the processor that draws also trains, so at most
  // 20 frames a second.
  double shortest_frame(bool shared, double frame_s = 0) const {
    return std::max(1.0 / std::min(std::max(1, max_fps), shared ? 20 : 1000), frame_s / std::clamp(gui_share, 0.01, 1.0));
  }
};

struct Offer {  // a button of a toast; pressing it removes the toast
  std::string label;
  std::function<void(UiState&)> act;
};
inline constexpr double kUntilDismissed = 1e300;
inline constexpr size_t kToastsShown = 3;  // the newest ones are shown
struct Toast {
  Level level = Level::info;
  std::string text;
  double until = 0;  // errors stay until they are dismissed
  std::string id = "";
  std::vector<Offer> offers = {};
};

// A run that did not fit into memory, and the search for remedies.
struct NoRoom {
  const RunView* of = nullptr;  // the run
  std::unique_ptr<Background<RunConfig, std::shared_ptr<const MemoryMisfit>>> finder;
  uint64_t number = 0;
};

// State of quitting (closing.h).
struct Closing {
  double since = 0;                   // when the wait began; 0 = not waiting
  bool insisted = false;              // the user closed the window a second time
  bool at_once = false;               // quit without waiting for the run and other work
  bool gave_up = false;               // the unfinished work was dropped
  bool accepts_loss = false;          // the user accepted that some results are not saved
  std::vector<std::string> problems;  // errors since the request to quit
};

// A control that is being dragged: it shows its own value until it is released.
struct Drag {
  double value = 0;
  double next_post = 0;  // earliest time of the next edit
  bool posted = false;   // at least one edit was posted
};

enum class Loop { off, selection, all };

enum class RanksView { now, over_steps, drops };

// Steps first..last, both included; none when `first` is negative.
struct StepRange {
  int64_t first = -1, last = -1;
  bool any() const { return first >= 0; }
  bool has(int64_t step) const { return any() && step >= first && step <= last; }
};

// Summary of a range of steps (timeline.h).
struct RangeSummary {
  StepRange range;
  int64_t steps = 0;                                                                 // recorded steps
  double seconds = 0;                                                                // training time
  double loss_first = 0, loss_last = 0, loss_mean = 0, loss_low = 0, loss_high = 0;  // NaN if no loss was recorded
  double ranks_fell = 0;
  int checkpoints = 0, edits = 0, alerts = 0;
};

// The replay cursor of the shown run (timeline.h).
struct Timeline {
  std::shared_ptr<Replay> replay;            // the stored run at the cursor; null until it is read
  std::shared_ptr<const Snapshot> snapshot;  // at the cursor; null = at the newest step
  RunConfig config;                          // in force at the cursor
  int64_t wanted = -1;                       // step to go to as soon as the run is read; -1 = none
  const RunView* view = nullptr;             // the run that the cursor belongs to
  bool playing = false;
  Loop loop = Loop::off;
  double speed = 1;      // factor of the speed of the training
  double time = 0;       // seconds played since the current step
  bool by_time = false;  // axis: recorded time instead of steps
  PlayClock clock;
  bool clock_left = false;  // the clock lacks some steps yet: more frames are needed
  StepRange selection;
  int64_t anchor = -1;   // step where the user began to drag a selection
  RangeSummary summary;  // of the selection
  size_t summary_points = 0;
  uint64_t summary_rewrites = 0;
};

// The diagram of tensor trains; the selected layer is UiState::selected_layer.
struct TTView {
  float zoom = 1;                   // size of a unit of the diagram, in lines of text
  ImVec2 corner;                    // upper left corner of the visible part, in units
  ImVec2 canvas;                    // screen position of the visible part, in pixels
  bool fit = true;                  // fit the width in the next frame
  bool fit_all = false;             // ... and the height
  bool moved = false;               // the user moved or zoomed the view; until then it is fitted to every size
  ImVec2 fitted;                    // canvas size of the last fit
  int64_t bond = 0, core = 0;       // selected bond or core of the selected layer, from 1; 0 = none
  std::set<std::string> collapsed;  // collapsed groups of layers
  const RunView* view = nullptr;    // the run that this state belongs to
  std::string search;
  std::string inspected;           // bond or core whose values were requested: LAYER.BOND, LAYER/CORE
  const LiveRun* asked = nullptr;  // the session that received the request
  // The same for past steps, read from checkpoints.
  std::unique_ptr<Background<CheckpointQuestion, CheckpointValues>> past;
  CheckpointQuestion past_question;
  std::string shown_layer;  // the selected layer when it was last scrolled into view
};

// State of the profile panel.
struct ProfileView {
  std::vector<double> frame_ms;    // of the newest frames, oldest first
  std::vector<double> frame_at;    // when each frame was drawn, in seconds of the window's clock
  int steps = 20;                  // number of steps to profile on request
  const RunView* asked = nullptr;  // the run that was asked to profile `asked_steps` steps after step `asked_after`
  int64_t asked_after = 0, asked_steps = 0;
  StepTimeSummary times;  // of the first `points` points of `curve`; recomputed when these change
  const Curve* curve = nullptr;
  size_t points = 0;
  uint64_t rewrites = 0;
  void add_frame(double ms, double at);
  double frame_share() const;  // share of the time since the oldest frame that was spent on making frames; 0 = not known
};

// What to do with a run once it is read. play: show it from its first step; reopen: it was shown in the last session; follow: it is the
// newest run.
enum class LoadFor { show, play, again, resume, fork, past, retry, reopen, follow };

// The change for a retry of a failed run.
enum class Retry { half_batch, on_cpu };

// How to resume or fork a stored run.
struct ResumeWith {
  int64_t at_step = -1;                // use the checkpoint at or before this step; -1 = the last
  int64_t extend = 0;                  // number of steps beyond the planned end
  std::vector<std::string> sets = {};  // path=value
  std::string store = {};              // database of the run; "" = the open one
  std::string device = {};             // device to train on; "" = as in its config
  bool ask = false;                    // fork: open the form first, so that settings can be changed
  bool behind = false;                 // resume: the page and the stored run that is shown stay
};

// Filter of the log panel.
struct LogView {
  int level = 0;  // 0 all, 1 warnings and errors, 2 errors
  TextFilter filter;
  bool follow = true;  // keep the newest line visible; in a replay, the line at the cursor
  bool later = true;   // in a replay: also show lines after the cursor, dimmed
};

struct MenuKey {          // the Alt key, which activates the menu bar
  bool held = false;      // Alt is down and no other key was pressed
  unsigned int from = 0;  // id of the window that had the keyboard when Alt was pressed
  unsigned int back = 0;  // id of the window that gets the keyboard back; 0 = the bar was not activated by Alt
};

struct UiState {
  UiState();  // out of line, like ~UiState: inline they would be compiled in every file that includes this one
  ~UiState();

  Settings settings;
  std::string store_path;              // "" = nothing is stored
  std::unique_ptr<StoreClient> store;  // null: there is no list of runs
  std::function<std::unique_ptr<RunLink>(SessionStart)> open_session = start_session;
  SessionStart last_start;          // the request that started the newest session
  std::string dense_twin_of;        // id of the run whose dense twin is `live`; both are compared at its end; "" = `live` is not a twin
  std::unique_ptr<RunQueue> queue;  // null: no runs are trained one after another
  std::vector<std::string> sets;    // path=value for every run that is started here
  std::function<void()> wake;       // requests a frame; callable from any thread

  std::unique_ptr<LiveRun> live;                 // the run that trains in this window
  std::vector<std::unique_ptr<LiveRun>> ending;  // replaced runs that still write their last checkpoint
  std::shared_ptr<RunView> stored;               // a run read from the store
  bool show_stored = false;                      // `stored` is shown, else `live`
  std::shared_ptr<const RunList> runs = std::make_shared<const RunList>();

  std::string layout = "start";       // page that fills the window: start, new, train or compare
  std::string arrangement = "train";  // arrangement of the panels on the page `train`: train, analyse or replay (frame.h), or a saved one
  bool rebuild_layout = true;         // dock the panels again as the arrangement specifies
  std::string built_layout;           // arrangement and size class that the panels are docked for
  ImGuiID panels_dock = 0;            // the dock space; 0 = never shown
  std::vector<SavedLayout> layouts;   // saved by the user (saved_layouts.h)
  std::map<std::string, bool> closed_panels;
  std::string front_panel;  // id of the panel to bring to the front of its tabs; "" = leave them
  WindowPlace place;        // of the window on the screen
  Reopening reopening;
  Following following;

  // Pending request to the store.
  uint64_t load_request = 0;
  LoadFor load_for = LoadFor::show;
  int64_t show_at = -1;  // step to show; -1 = the last
  ResumeWith resume_with;
  Retry retry = Retry::half_batch;

  // Start page.
  std::string preset = "demo", selected_run;
  RunTable run_table;

  Compare compare;
  NewRun form;
  Dialogs dialogs;
  std::array<std::string, 4> last_folders;  // last folder per BrowseFor; "" = none yet
  NoRoom no_room;
  std::unique_ptr<Reproducing> reproducing;  // null: no reproduction
  EvaluateView evaluate;
  bool find = false;  // move the keyboard to the search field of the active panel or page
  DesktopTheme desktop_theme;
  std::string renderer;  // name of the OpenGL renderer; "" without a display
  MenuKey menu_key;

  // Train page.
  Timeline timeline;
  PlotView plots;
  MetricsGrid metrics;
  int curves_drawn = -1;  // the last frame that drew the curves of the shown run
  ReplacedCourses replaced;
  TTView tt;
  ProfileView profile;
  Exports exports;
  std::string selected_layer;
  int memory_view = 0;    // 0 by purpose, 1 by layer, 2 over steps, 3 within one step
  int memory_counts = 1;  // by layer: 0 values, 1 with gradients and moments, 2 everything that a step needs
  int memory_scope = 1;   // over steps: 0 training, 1 with the rest of the process, 2 with all processes
  bool ranks_as_share = false;
  RanksView ranks_view = RanksView::now;
  RankOrder rank_order = RankOrder::depth;
  std::map<std::string, Drag> drags;  // by setting path
  int target_unit = 0;                // 0 share, 1 MiB, 2 compression
  bool target_beyond = false;         // the slider reaches beyond the size at the start
  LogView log;
  SamplesView samples;

  std::vector<Toast> toasts;                      // newest last
  std::vector<LogLine> window_log;                // warnings and errors of the window
  std::shared_ptr<LogFile> log_file;              // null: no log file
  std::shared_ptr<const RunList> interrupted_of;  // the list that was last searched for interrupted runs
  bool tells_interrupted = false;                 // the window is interactive: report interrupted runs
  double ending_since = 0;                        // when a pause or stop was requested that waits for the end of the step; 0 = none
  bool close_requested = false;                   // the user wants to quit
  Closing closing;
  bool quit = false;         // end the frame loop
  bool full_screen = false;  // requested state
  double frame_ms = 0;       // time to make the last frame
  int64_t process_bytes = 0;
  double next_process_look = 0;

  const RunView& shown() const;
  // The snapshot that panels show: that of the cursor in a replay, else the newest one of the shown run.
  const Snapshot& snapshot() const;
  const RunConfig& config() const;
  bool replaying() const { return timeline.snapshot != nullptr; }
  bool has_run() const { return live || stored; }
  // A stored run is shown that can be resumed.
  bool resumable() const;
  // Another run is shown while this window trains one.
  bool hides_live() const { return show_stored && stored && live && !live->view().ended(); }
  // The shown run if it takes commands; else null.
  LiveRun* commanded() const;
  // The same for edits of settings, which are not possible in a replay.
  LiveRun* editable() const { return replaying() ? nullptr : commanded(); }
  bool training() const;                                                                          // a session has not ended yet
  bool busy() const;                                                                              // data changes without input
  bool opening() const { return !has_run() && (load_request != 0 || !reopening.shown.empty()); }  // a run is being read
};

}  // namespace comera::studio
