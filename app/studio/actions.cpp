#include "app/studio/actions.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/format.h"
#include "app/studio/interrupted.h"
#include "app/studio/kept_views.h"
#include "app/studio/newcomer.h"
#include "app/studio/panels.h"
#include "app/studio/preferences.h"
#include "app/studio/runs/run_actions.h"
#include "app/studio/runs/run_fields.h"
#include "app/studio/shown_run/timeline.h"
#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/paths.h"
#include "core/config/config.h"
#include "core/train/system_memory.h"

namespace comera::studio {

UiState::UiState() = default;
UiState::~UiState() = default;

const RunView& UiState::shown() const {
  static const RunView kNothing;
  if (show_stored && stored) return *stored;
  if (live) return live->view();
  return stored ? *stored : kNothing;
}

const Snapshot& UiState::snapshot() const { return timeline.snapshot ? *timeline.snapshot : *shown().snapshot; }

const RunConfig& UiState::config() const { return timeline.snapshot ? timeline.config : shown().config; }

LiveRun* UiState::commanded() const { return live && (!show_stored || !stored) && !live->view().ended() ? live.get() : nullptr; }

bool UiState::resumable() const {
  const RunView& view = shown();
  const Snapshot& s = *view.snapshot;
  // A run whose data could not be read has a checkpoint of its last step, so resuming it repeats no step.
  const bool kept = s.phase == Phase::failed && s.step > 0 && s.last_checkpoint_step == s.step;
  if (!has_run() || (s.phase != Phase::stopped && s.phase != Phase::interrupted && !kept)) return false;
  if (!view.live) return true;
  if (!store || view.store.empty() || s.run.empty()) return false;
  // Another window may have trained it on since it stopped here.
  const RunRow* row = view.store == store_path ? find_row(*runs, s.run) : nullptr;
  return !row || row->summary.step <= s.step || can_resume(*row);
}

bool UiState::training() const { return (live && !live->view().ended()) || !ending.empty(); }

bool UiState::busy() const {
  if (!ending.empty() || load_request != 0 || reproducing || evaluate.work || timeline.playing || exports.busy() || dialogs.desktop)
    return true;
  if (plots.smoothing_left || compare.plots.smoothing_left || timeline.clock_left) return true;
  if (queue && live && live->view().ended()) return true;  // its next run begins when the thread of this one has ended
  return live && !live->view().ended() && (live->pending() || live->view().snapshot->phase != Phase::paused);
}

namespace {

// Retires the live run: it stops with a checkpoint and is kept until its thread has ended.
void put_aside(UiState& ui) {
  if (!ui.live) return;
  if (!ui.live->view().ended() && !ui.live->stopping()) {
    ui.live->stop(true);
    const std::string& name = ui.live->view().snapshot->name;
    Toast told{Level::info, (name.empty() ? "The previous run" : name) + " stops with a checkpoint. Resume it from the list of runs",
               ImGui::GetTime() + 10, "put-aside"};
    if (const RunView& view = ui.live->view(); !view.store.empty() && !ui.live->run().empty())
      told.offers = {{"Resume", [id = ui.live->run(), store = view.store](UiState& state) { resume_run(state, id, {.store = store}); }}};
    add_toast(ui, std::move(told));
  }
  ui.ending.push_back(std::move(ui.live));
}

void bring_forward(UiState& ui, std::unique_ptr<LiveRun> run, bool behind) {
  put_aside(ui);
  ui.live = std::move(run);
  if (!behind) {
    ui.show_stored = false;
    show_layout(ui, "train");
  }
  if (ui.show_stored) return;
  ui.drags.clear();
  reset_timeline(ui);
}

// Uses the open database unless the resumed or forked run is in another one.
bool start(UiState& ui, SessionStart start, std::shared_ptr<RunView> base = nullptr, bool behind = false) {
  try {
    if (start.store.empty()) start.store = ui.store_path;
    if (is_recorded(start.store)) {
      toast(ui, Level::error, kWhyRecorded);
      return false;
    }
    if (const std::string why = no_writing(ui); !why.empty() && start.store == ui.store_path) {
      toast(ui, Level::error, why);
      return false;
    }
    if (!start.store.empty()) start.store = paths::ensure_folder_of(start.store);
    ui.last_start = start;
    ui.last_start.folder.weights.reset();  // their memory, which training has use for
    ui.dense_twin_of.clear();
    std::erase_if(ui.toasts,
                  [](const Toast& one) { return one.id == kDemoFinished; });  // lies over what the new run shows; the menu offers the same
    const RunConfig config = start.config;
    const std::string store = start.store;
    bring_forward(ui, std::make_unique<LiveRun>(ui.open_session(std::move(start)), config, std::move(base), store), behind);
    return true;
  } catch (const Error& error) {
    toast(ui, Level::error,
          std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()) + (error.hint().empty() ? "" : ". " + error.hint()));
  }
  return false;
}

// The run failed to start because its GPU is not available.
bool lacks_device(const RunView& view) {
  const Snapshot& s = *view.snapshot;
  return s.phase == Phase::failed && s.error_code == static_cast<int>(ErrorCode::device) && view.config.train.device.starts_with("cuda");
}

// Shows the run if this window trains it, or reports that it still writes its checkpoint: two sessions must not write one run.
bool is_here(UiState& ui, const std::string& id) {
  if (ui.live && !ui.live->view().ended() && ui.live->run() == id) {
    show_live(ui);
    return true;
  }
  const auto same = [&](const std::unique_ptr<LiveRun>& run) { return run->run() == id; };
  if (std::none_of(ui.ending.begin(), ui.ending.end(), same)) return false;
  toast(ui, Level::info, "This run is still writing its last checkpoint. Resume it when that is done");
  return true;
}

void start_once_more(UiState& ui, const Replay& run, const std::string& store) {
  if (!run.config_problem().empty()) return toast(ui, Level::error, "This run cannot be started again: " + run.config_problem());
  SessionStart session;
  session.store = store;
  session.config = run.config();
  TrainConfig& train = session.config.train;
  if (ui.retry == Retry::half_batch && train.batch < 2) return toast(ui, Level::error, "The batch size of this run is already 1");
  if (ui.retry == Retry::half_batch) train.batch /= 2;
  if (ui.retry == Retry::on_cpu) train.device = "cpu";
  if (const RunRow& row = run.row(); !row.parent.empty()) {  // a fork: first weights from the parent, settings of its own
    session.fork_run = row.parent;
    session.at_step = row.fork_step;
    for (const FieldEntry& entry : fields_list(fields_of(session.config))) session.sets.push_back(entry.path + "=" + entry.value);
  } else {
    session.folder = run.folder();
  }
  start(ui, std::move(session));
}

void bring_forward(UiState& ui, const LoadedRun& answer) {
  ui.stored = answer.view;
  ui.show_stored = true;
  reset_timeline(ui);
  take_past(ui, answer.replay);
}

// Appends new rows to the shown run. If they do not continue the known rows, reads the whole run again.
void take_new(UiState& ui, const LoadedRun& answer) {
  const std::string run = answer.view ? answer.view->snapshot->run : answer.more->row.id;
  if (!ui.show_stored || !ui.stored || ui.stored->snapshot->run != run) return;
  if (answer.more && take_more(ui, std::move(*answer.more))) return;
  if (answer.more) {
    ui.load_request = ui.store->load(run, ui.stored->store);
    return;
  }
  const size_t replaced = ui.stored->replaced.size();
  take_again(ui, answer.view, answer.replay);
  if (answer.view->replaced.size() <= replaced) return;
  const RunView::Replaced& last = answer.view->replaced.back();
  const std::string& name = answer.view->snapshot->name;
  Toast told{Level::info,
             (name.empty() ? run : name) + " was rolled back to step " + thousands(static_cast<double>(last.step)) +
                 "; the later steps are kept as " + last.run,
             ImGui::GetTime() + 10, "replaced"};
  told.offers = {{"Show them", [id = last.run](UiState& state) { open_run(state, id); }}};
  add_toast(ui, std::move(told));
}

void take_loaded(UiState& ui, const LoadedRun& answer) {
  if (ui.load_for == LoadFor::reopen) {
    if (answer.view && !ui.has_run()) bring_forward(ui, answer);
    forget_shown(ui);
  } else if (ui.load_for == LoadFor::follow) {
    if (answer.view && !ui.replaying()) bring_forward(ui, answer);
  } else if (!answer.view && !answer.more) {
    ui.timeline.wanted = -1;
    toast(ui, Level::error, answer.problem);
    if (answer.damaged)
      ui.toasts.back().offers = {{"Salvage ...", [](UiState& state) { open_dialog(state, Dialog::salvage); }}, {"Dismiss", {}}};
  } else if (ui.load_for == LoadFor::past) {
    take_past(ui, answer.replay);
  } else if (ui.load_for == LoadFor::again) {
    take_new(ui, answer);
  } else if (ui.load_for == LoadFor::resume && !answer.view->config_problem.empty()) {
    toast(ui, Level::error, "This run cannot be resumed: " + answer.view->config_problem);
  } else if (ui.load_for == LoadFor::resume) {
    if (is_here(ui, answer.view->snapshot->run)) return;
    SessionStart session;
    session.config = answer.view->config;
    session.store = answer.view->store;
    session.resume_run = answer.view->snapshot->run;
    session.at_step = ui.resume_with.at_step;
    session.extend = ui.resume_with.extend;
    session.sets = ui.resume_with.sets;
    session.device = ui.resume_with.device;
    start(ui, std::move(session), answer.view, ui.resume_with.behind);
  } else if (ui.load_for == LoadFor::fork && ui.resume_with.ask) {
    if (!answer.view->config_problem.empty()) return toast(ui, Level::error, "This run cannot be forked: " + answer.view->config_problem);
    open_form_fork(ui, *answer.view, ui.resume_with.at_step < 0 ? answer.view->snapshot->step : ui.resume_with.at_step);
  } else if (ui.load_for == LoadFor::fork) {
    SessionStart session;
    session.store = answer.view->store;
    session.fork_run = answer.view->snapshot->run;
    session.at_step = ui.resume_with.at_step;
    session.extend = ui.resume_with.extend;
    session.sets = ui.resume_with.sets;
    session.config = answer.view->config_at(session.at_step < 0 ? answer.view->snapshot->step : session.at_step);
    std::vector<std::string> of_configs = session.sets;
    std::erase_if(of_configs, only_of_runs);
    try {
      set_config(session.config, of_configs);
    } catch (const Error& error) {
      return toast(ui, Level::error, error.what());
    }
    start(ui, std::move(session));
  } else if (ui.load_for == LoadFor::retry) {
    start_once_more(ui, *answer.replay, answer.view->store);
  } else {
    bring_forward(ui, answer);
    if (ui.load_for == LoadFor::play)
      play_from_start(ui);
    else if (ui.show_at >= 0)
      seek(ui, ui.show_at);
    show_layout(ui, "train");
  }
}

// Copies log lines of the runs into the log file, except rank drops, which are in the database. If writing fails, the log panel shows why.
void keep_log(UiState& ui) {
  const auto keep = [&](LiveRun& run) {
    for (const LogLine& line : run.take_lines()) {
      if (!ui.log_file || line.place == LogLine::ranks) continue;
      const std::string& name = run.view().snapshot->name;
      ui.log_file->write(line.level, (name.empty() ? "a run" : name) + (run.run().empty() ? "" : " " + run.run()),
                         "step " + thousands(static_cast<double>(line.step)) + ": " + line.text);
    }
  };
  if (ui.live) keep(*ui.live);
  for (auto& run : ui.ending) keep(*run);
  if (const std::string why = ui.log_file ? ui.log_file->take_problem() : ""; !why.empty())
    ui.window_log.push_back({Level::warning, -1, "The log file cannot be written: " + why});
}

// Another process may train the shown stored run, or may have resumed it from an earlier step.
void read_again_when_it_changed(UiState& ui) {
  constexpr double kEvery = 5;  // seconds
  if (!ui.show_stored || !ui.stored || ui.load_request != 0 || !ui.timeline.replay) return;
  ui.store->refresh(kEvery);
  const RunRow& known = ui.timeline.replay->row();
  const RunRow* row = find_row(*ui.runs, known.id);
  if (!row || (row->status == known.status && row->summary.step == known.summary.step)) return;
  if (row->heartbeat < known.heartbeat) return;  // the list is older than the shown run
  ui.load_request = ui.store->load_more(row->id, ui.stored->store, ui.timeline.replay->place());
  ui.load_for = LoadFor::again;
}

}  // namespace

void autosave(UiState& ui) {
  const double minutes = ui.settings.autosave_minutes;
  if (ui.queue && ui.queue->live == ui.live.get()) return;  // a run with an edit is none of the queue any more
  if (!ui.live || ui.live->view().ended() || minutes <= 0 || ui.live->view().config.train.checkpoint_minutes == minutes) return;
  ui.live->edit("train.checkpoint_minutes", csv_number(minutes));
}

void undo_edit(UiState& ui) {
  if (LiveRun* run = ui.editable()) run->undo();
}

void redo_edit(UiState& ui) {
  if (LiveRun* run = ui.editable()) run->redo();
}

void start_on_cpu(UiState& ui) {
  SessionStart again = ui.last_start;
  if (!again.resume_run.empty())
    return resume_run(ui, again.resume_run,
                      {.at_step = again.at_step, .extend = again.extend, .sets = again.sets, .store = again.store, .device = "cpu"});
  again.device = "cpu";
  if (again.fork_run.empty()) again.config.train.device = "cpu";
  start(ui, std::move(again));
}

const std::string& device_of_start(const UiState& ui) {
  return ui.last_start.device.empty() ? ui.last_start.config.train.device : ui.last_start.device;
}

const char* no_half_batch(const UiState& ui) {
  if (!ui.last_start.resume_run.empty()) return "A resumed run keeps its batch size: fork it to change that";
  return ui.last_start.config.train.batch < 2 ? "The batch size is already 1" : nullptr;
}

void start_with_half_batch(UiState& ui) {
  if (no_half_batch(ui)) return;
  SessionStart again = ui.last_start;
  again.config.train.batch /= 2;
  if (!again.fork_run.empty()) {  // the fork takes its other settings from its parent
    std::erase_if(again.sets, [](const std::string& set) { return set.starts_with("train.batch="); });
    again.sets.push_back("train.batch=" + std::to_string(again.config.train.batch));
  }
  start(ui, std::move(again));
}

std::string no_writing(const UiState& ui) {
  if (is_recorded(ui.store_path)) return std::string(kWhyRecorded) + ". Open another database to train";
  if (ui.store_path.empty() || ui.runs->read_only.empty() || (ui.store && ui.store->path() != ui.store_path)) return "";
  return "The database is read-only: " + ui.runs->read_only + ". Open another one to train";
}

void ask_for_cpu(UiState& ui, const std::string& device, const std::string& why, std::function<void(UiState&)> on_cpu) {
  open_dialog(ui, Dialog::no_device);
  ui.dialogs.no_device = {device, why, std::move(on_cpu)};
}

bool start_preset(UiState& ui, const std::string& name) {
  RunConfig config;
  try {
    config = load_config(name, ui.sets);
  } catch (const Error& error) {
    toast(ui, Level::error, std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()));
    return false;
  }
  return start_config(ui, config);
}

bool start_config(UiState& ui, const RunConfig& config, FolderStart folder, std::vector<std::string> sets, int processes) {
  SessionStart session;
  session.config = config;
  session.folder = std::move(folder);
  session.sets = std::move(sets);
  session.processes = processes;
  return start(ui, std::move(session));
}

bool start_run(UiState& ui, SessionStart session, bool behind) { return start(ui, std::move(session), nullptr, behind); }

const char* no_fork(const UiState& ui, int64_t step) {
  const RunView& view = ui.shown();
  if (!ui.has_run() || view.snapshot->step == 0) return "No steps yet";
  if (view.store.empty() || view.snapshot->run.empty()) return "This run is not stored";
  if (is_recorded(view.store)) return kWhyRecorded;
  if (step < 0) return "There is no checkpoint before this step; a fork from the step itself computes the steps again";
  const bool newest = !ui.replaying() && step > view.snapshot->last_checkpoint_step;
  if (view.live && !view.ended() && newest) return "The newest steps are not stored yet: move the cursor back";
  return nullptr;
}

namespace {

bool fork_shown_at(UiState& ui, int64_t step) {
  const RunView& view = ui.shown();
  if (!view.config_problem.empty()) {
    toast(ui, Level::error, "This run cannot be forked: " + view.config_problem);
    return false;
  }
  if (no_fork(ui, step)) return false;
  if (view.config.train.steps > 0 && step >= view.snapshot->total_steps) {  // it would have none to train
    open_form_fork(ui, view, step);
    toast(ui, Level::info, "The run ended at this step: choose how many steps the fork trains");
    return true;
  }
  SessionStart session;
  session.store = view.store;
  session.fork_run = view.snapshot->run;
  session.at_step = step;
  session.config = view.config_at(session.at_step);
  return start(ui, std::move(session));
}

}  // namespace

void fork_shown_with(UiState& ui) {
  const int64_t step = ui.snapshot().step;
  const RunView& view = ui.shown();
  if (!view.config_problem.empty()) return toast(ui, Level::error, "This run cannot be forked: " + view.config_problem);
  if (!no_fork(ui, step)) open_form_fork(ui, view, step);
}

const char* no_going_back(const UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& newest = *view.snapshot;
  if (const char* why = no_fork(ui, newest.step == 0 ? 0 : ui.snapshot().last_checkpoint_step)) return why;
  if (!view.ended() && newest.phase != Phase::interrupted) return "The run is training: stop it first";
  return ui.snapshot().last_checkpoint_step >= newest.step ? "The run already ends at its last checkpoint: move the cursor back" : nullptr;
}

void go_back_shown(UiState& ui) {
  if (no_going_back(ui)) return;
  resume_run(ui, ui.shown().snapshot->run, {.at_step = ui.snapshot().last_checkpoint_step, .store = ui.shown().store});
}

bool fork_shown(UiState& ui) { return fork_shown_at(ui, ui.snapshot().step); }

bool fork_shown_checkpoint(UiState& ui) { return fork_shown_at(ui, ui.snapshot().last_checkpoint_step); }

void compare_runs(UiState& ui, const std::vector<std::string>& runs) {
  while (!ui.compare.runs.empty()) unpick_run(ui.compare, ui.compare.runs.back()->wanted);
  for (const std::string& run : runs) pick_run(ui.compare, run);
  if (!runs.empty()) set_baseline(ui.compare, runs.front());
  show_layout(ui, "compare");
}

void compare_with_parent(UiState& ui) {
  const RunView& view = ui.shown();
  if (view.parent.empty()) return;
  compare_runs(ui, {view.parent, view.snapshot->run});
}

void open_store(UiState& ui, const std::string& path) {
  if (!ui.store) return;
  ui.store->open(path);
  ui.store_path = path;
  ui.settings.store = path == paths::runs_database() ? "" : path;
  ui.load_request = 0;
  ui.selected_run.clear();
  ui.run_table.selected.clear();
  ui.compare = {};
  ui.reopening = {};
  ui.following = {};
  ui.runs = ui.store->runs();
  show_layout(ui, "start");
}

const std::vector<std::string>& presets() {
  static const std::vector<std::string> kNames = preset_names();  // installed files, which do not change
  return kNames;
}

void open_run(UiState& ui, const std::string& id, int64_t step) {
  ui.selected_run = id;
  if (ui.live && ui.live->view().snapshot->run == id && step < 0) {  // the live run is newer than the stored one
    show_live(ui);
    return;
  }
  if (!ui.store) return;
  ui.load_request = ui.store->load(id);
  ui.load_for = LoadFor::show;
  ui.show_at = step;
}

void reopen_run(UiState& ui, const std::string& id) {
  ui.load_request = ui.store->load(id);
  ui.load_for = LoadFor::reopen;
}

void show_newest(UiState& ui, const std::string& id) {
  ui.load_request = ui.store->load(id);
  ui.load_for = LoadFor::follow;
}

void resume_run(UiState& ui, const std::string& id, const ResumeWith& with) {
  if (!ui.store || is_here(ui, id)) return;
  ui.load_request = ui.store->load(id, with.store);
  ui.load_for = LoadFor::resume;
  ui.resume_with = with;
}

void fork_run(UiState& ui, const std::string& id, const ResumeWith& with) {
  if (!ui.store) return;
  ui.load_request = ui.store->load(id, with.store);
  ui.load_for = LoadFor::fork;
  ui.resume_with = with;
}

void retry_run(UiState& ui, const std::string& id, Retry how, const std::string& store) {
  if (!ui.store) return;
  ui.load_request = ui.store->load(id, store);
  ui.load_for = LoadFor::retry;
  ui.retry = how;
}

void start_or_pause(UiState& ui) {
  if (ui.commanded() || ui.training())
    toggle_pause(ui);
  else if (ui.resumable())
    resume_shown(ui);
  else if (offered_steps(ui) > 0)
    extend_shown(ui);
  else
    start_preset(ui, ui.preset);
}

void show_live(UiState& ui) {
  ui.show_stored = false;
  reset_timeline(ui);
  show_layout(ui, "train");
}

void resume_shown(UiState& ui) { resume_run(ui, ui.shown().snapshot->run, {.store = ui.shown().store}); }

int64_t half_of_steps(int64_t steps) {
  const double half = static_cast<double>(std::max<int64_t>(1, steps)) / 2;
  const double unit = std::max(1.0, std::pow(10, std::floor(std::log10(std::max(1.0, half))) - 1));  // two significant digits
  return std::max<int64_t>(1, std::llround(std::round(half / unit) * unit));
}

int64_t offered_steps(const UiState& ui) {
  const RunView& view = ui.shown();
  const Snapshot& s = *view.snapshot;
  if (!ui.has_run() || !ui.store || s.phase != Phase::finished || s.run.empty() || view.store.empty() || is_recorded(view.store)) return 0;
  return half_of_steps(s.total_steps);
}

void extend_shown(UiState& ui) {
  const RunView& view = ui.shown();
  if (const int64_t steps = offered_steps(ui); steps > 0) resume_run(ui, view.snapshot->run, {.extend = steps, .store = view.store});
}

void replay_run(UiState& ui, const std::string& id) {
  open_run(ui, id, 0);  // shows the first recorded step
  ui.arrangement = "replay";
}

void roll_back_shown(UiState& ui) {
  const Snapshot& s = *ui.shown().snapshot;
  resume_run(ui, s.run, {.at_step = s.last_checkpoint_step, .store = ui.shown().store});
}

void fork_shown_slower(UiState& ui) {
  const Snapshot& s = *ui.shown().snapshot;
  const TrainConfig& train = ui.shown().config.train;
  ResumeWith with{.at_step = s.last_checkpoint_step, .store = ui.shown().store};
  for (const auto& [name, rate] :
       {std::pair{"lr_core", train.lr_core}, {"lr_rank", train.lr_rank}, {"lr_rank_late", train.lr_rank_late}, {"lr", train.lr}}) {
    char text[64];
    std::snprintf(text, sizeof text, "train.%s=%.9g", name, rate / 2);
    with.sets.emplace_back(text);
  }
  fork_run(ui, s.run, with);
}

void show_layout(UiState& ui, const std::string& name) { ui.layout = name; }

void reset_layout(UiState& ui) {
  ui.rebuild_layout = true;
  ui.closed_panels.clear();
  Json before;
  save_views(ui, before);
  if (!reset_views(ui)) return;
  Toast told{Level::info, "Plots and views are at their defaults", ImGui::GetTime() + 10, "views"};
  told.offers = {{"Undo", [before](UiState& state) { load_views(state, before); }}};
  add_toast(ui, std::move(told));
}

void use_shipped_settings(UiState& ui) {
  reset_settings(ui);
  apply_theme(ui.settings.theme, ui.settings.scale());
  autosave(ui);
}

void show_panel(UiState& ui, const std::string& id) {
  show_layout(ui, "train");
  ui.closed_panels[id] = false;
  ui.front_panel = id;
}

void toggle_pause(UiState& ui) {
  LiveRun* run = ui.commanded();
  if (!run) return;
  if (run->view().snapshot->phase == Phase::paused)
    run->resume();
  else
    run->pause();
}

void stop_run(UiState& ui, bool checkpoint) {
  if (LiveRun* run = ui.commanded(); run && !run->stopping()) run->stop(checkpoint);
}

void run_to_step(UiState& ui, int64_t step) {
  LiveRun* run = ui.commanded();
  if (!run) return;
  const int64_t now = run->view().snapshot->step;
  if (step > now) return run->step(step - now);
  toast(ui, Level::warning,
        "Step " + thousands(static_cast<double>(step)) + " is already done: the run is at step " + thousands(static_cast<double>(now)));
}

namespace {

void use_theme(UiState& ui, ThemeKind kind) {
  ui.settings.theme = kind;
  apply_theme(kind, ui.settings.scale());
}

// Applies the theme that the desktop reported, if the window still follows it.
void take_desktop_theme(UiState& ui) {
  const auto kind = ui.desktop_theme.answer();
  if (!kind || !ui.settings.theme_of_desktop || *kind == ui.settings.theme) return;
  use_theme(ui, *kind);
  if (ui.wake) ui.wake();
}

}  // namespace

void set_theme(UiState& ui, ThemeKind kind) {
  ui.settings.theme_of_desktop = false;
  use_theme(ui, kind);
}

void follow_desktop_theme(UiState& ui) {
  ui.settings.theme_of_desktop = true;
  ui.desktop_theme.ask();
}

void set_user_scale(UiState& ui, float scale) {
  ui.settings.user_scale = std::clamp(scale, 0.75f, 3.0f);
  apply_theme(ui.settings.theme, ui.settings.scale());
}

void toast(UiState& ui, Level level, const std::string& text) {
  if (level == Level::warning || level == Level::error) ui.window_log.push_back({level, -1, text});
  add_toast(ui, {level, text, level == Level::error ? kUntilDismissed : ImGui::GetTime() + 5});
}

void add_toast(UiState& ui, Toast toast) {
  if (ui.log_file) ui.log_file->write(toast.level, "window", toast.text);
  if (toast.level == Level::error && ui.close_requested) ui.closing.problems.push_back(toast.text);
  // Too many toasts: the oldest one with a time limit is removed. Toasts without one stay in the list and are shown again when there is
  // room.
  const auto passing = std::find_if(ui.toasts.begin(), ui.toasts.end(), [](const Toast& one) { return one.until < kUntilDismissed; });
  if (ui.toasts.size() >= kToastsShown && passing != ui.toasts.end()) ui.toasts.erase(passing);
  const auto same = [&](const Toast& one) { return one.text == toast.text && one.until >= kUntilDismissed; };
  std::erase_if(ui.toasts, same);  // repeated message: keep the newest
  ui.toasts.push_back(std::move(toast));
}

void tick(UiState& ui) {
  if (ui.live) {
    const Phase before = ui.live->view().snapshot->phase;
    ui.live->poll(&ui.settings.alerts);
    const Snapshot& s = *ui.live->view().snapshot;
    for (const LogLine& alert : ui.live->take_alerts())
      toast(ui, Level::warning,
            (ui.show_stored ? s.name + ", step " : "Step ") + thousands(static_cast<double>(alert.step)) + ": " + alert.text);
    if (before == Phase::preparing && (s.phase == Phase::running || s.phase == Phase::paused)) autosave(ui);
    if (s.phase != before && ui.store) ui.store->refresh(0);
    if (s.phase != before && s.phase == Phase::finished) offer_dense_twin(ui);
    if (s.phase != before && lacks_device(ui.live->view())) {
      ask_for_cpu(ui, ui.live->view().config.train.device, s.message + (s.error_why.empty() ? "" : ": " + s.error_why), start_on_cpu);
    }
    const bool over_curves = ui.layout == "train" && ui.curves_drawn >= ImGui::GetFrameCount() - 1;  // the message is shown there
    if (s.phase != before && (s.phase == Phase::failed || s.phase == Phase::diverged) && !over_curves)
      toast(ui, Level::error, failure_text(s));
  }
  for (auto& run : ui.ending) run->poll();
  keep_log(ui);
  std::erase_if(ui.ending, [](const auto& run) { return run->done(); });
  if (ui.store) {
    ui.runs = ui.store->runs();
    if (ui.layout != "train") ui.store->refresh(2);
    const auto answer = ui.store->loaded();
    if (answer && ui.load_request != 0 && answer->request == ui.load_request) {
      ui.load_request = 0;
      take_loaded(ui, *answer);
    }
    read_again_when_it_changed(ui);
    tick_reopening(ui);
    tick_following(ui);
  }
  if (ui.tells_interrupted) tick_interrupted(ui);
  tick_runs(ui);
  tick_exports(ui);
  tick_dense_twin(ui);
  tick_queue(ui);
  if (compare_shown(ui)) tick_compare(ui);
  tick_form(ui);
  tick_dialogs(ui);
  take_desktop_theme(ui);
  tick_reproducing(ui);
  tick_evaluating(ui);
  advance_timeline(ui, ImGui::GetIO().DeltaTime);
  tick_replaced(ui);
  std::erase_if(ui.toasts, [](const Toast& toast) { return ImGui::GetTime() > toast.until; });
  if (ImGui::GetTime() >= ui.next_process_look) {
    ui.process_bytes = resident_bytes();
    ui.next_process_look = ImGui::GetTime() + 1;
  }
}

}  // namespace comera::studio
