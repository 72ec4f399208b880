#include "app/studio/action_table.h"

#include <imgui_internal.h>

#include <algorithm>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/dueling.h"
#include "app/studio/frame.h"
#include "app/studio/newcomer.h"
#include "app/studio/panels.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/parts/texts.h"
#include "app/studio/runs/evaluating.h"
#include "app/studio/runs/run_actions.h"
#include "app/studio/saved_layouts.h"
#include "app/studio/shown_run/timeline.h"
#include "app/studio/sweeping.h"
#include "core/base/error.h"

namespace comera::studio {
namespace {

constexpr ImGuiKeyChord kCtrl = ImGuiMod_Ctrl, kShift = ImGuiMod_Shift;

void toggle_view(UiState& ui, RanksView view) { ui.ranks_view = ui.ranks_view == view ? RanksView::now : view; }

void add_file(std::vector<Action>& all) {
  const auto add = [&](const char* id, const char* title, ImGuiKeyChord keys, std::function<void(UiState&)> act, bool line = false) {
    all.push_back({.id = id, .menu = Menu::file, .title = title, .keys = keys, .act = std::move(act), .line_before = line});
  };
  const auto browse = [](BrowseFor what) { return [what](UiState& ui) { open_browser(ui, what); }; };
  add("file.demo", "Run the demo", 0, [](UiState& ui) { start_preset(ui, "demo"); });
  add("file.open_store", "Open database ...", kCtrl | ImGuiKey_O, browse(BrowseFor::store), true);
  add("file.open_config", "Open config ...", kCtrl | kShift | ImGuiKey_O, browse(BrowseFor::config));
  add("file.export", "Export charts ...", kCtrl | ImGuiKey_E, export_front, true);
  add(
      "file.quit", "Quit", kCtrl | ImGuiKey_Q, [](UiState& ui) { ui.close_requested = true; }, true);
}

void add_tools(std::vector<Action>& all) {
  const auto add = [&](const char* id, const char* title, ImGuiKeyChord keys, std::function<void(UiState&)> act, bool line = false) {
    all.push_back({.id = id, .menu = Menu::tools, .title = title, .keys = keys, .act = std::move(act), .line_before = line});
  };
  const auto dialog = [](Dialog which) { return [which](UiState& ui) { open_dialog(ui, which); }; };
  add("help.palette", "Command palette", kCtrl | ImGuiKey_P, dialog(Dialog::palette));
  add("view.screenshot", "Screenshot", ImGuiKey_F12, take_screenshot);
  add("file.settings", "Settings", kCtrl | ImGuiKey_Comma, dialog(Dialog::settings), true);
  add("help.change_keys", "Change keys ...", 0, change_keys);
}

void add_help(std::vector<Action>& all) {
  const auto add = [&](const char* id, const char* title, ImGuiKeyChord keys, Dialog dialog) {
    all.push_back({.id = id, .menu = Menu::help, .title = title, .keys = keys, .act = [dialog](UiState& ui) { open_dialog(ui, dialog); }});
  };
  add("help.keys", "Keys", kShift | ImGuiKey_Slash, Dialog::keys);
  add("help.about", "About CoMERA Studio", 0, Dialog::about);
}

// Actions that continue from the timeline's cursor: resume, fork, roll back, reproduce.
void add_ways_on(const UiState& ui, std::vector<Action>& all) {
  const auto add = [&](const char* id, std::string title, std::function<void(UiState&)> act, const char* why, std::string about,
                       bool line = false) {
    all.push_back({.id = id,
                   .menu = Menu::run,
                   .title = std::move(title),
                   .act = std::move(act),
                   .why_not = why ? why : "",
                   .about = std::move(about),
                   .line_before = line});
  };
  const auto text = [](int64_t step) { return thousands(static_cast<double>(step)); };
  const int64_t at = cursor_step(ui), checkpoint = ui.snapshot().last_checkpoint_step;
  const std::string stops = ui.training() ? " The live run stops with a checkpoint first and can be resumed." : "";
  add(
      "run.fork", "Fork from step " + text(at), [](UiState& state) { fork_shown(state); }, no_fork(ui, at),
      "A new run that continues from here with the settings of this step" +
          (checkpoint >= 0 && checkpoint < at ? ". The steps since checkpoint " + text(checkpoint) + " are computed again first."
                                              : std::string(".")) +
          stops,
      true);
  add(
      "run.fork_checkpoint", checkpoint < 0 ? "Fork from previous checkpoint" : "Fork from checkpoint " + text(checkpoint),
      [](UiState& state) { fork_shown_checkpoint(state); }, no_fork(ui, checkpoint),
      "A new run from the last checkpoint before the cursor. It starts at once." + stops);
  add("run.fork_with", "Fork from step " + text(at) + " with other settings ...", fork_shown_with, no_fork(ui, at),
      "Opens the form of a new run with the settings of this step, to change some before the fork starts.");
  add("run.back", checkpoint < 0 ? "Roll back to previous checkpoint" : "Roll back to checkpoint " + text(checkpoint), go_back_shown,
      no_going_back(ui), "Resumes this run from that checkpoint. The later steps are kept as a discarded branch, drawn behind the curves.");
  const ReproduceQuestion question = steps_to_reproduce(ui);
  const char* why = no_reproducing(ui);
  add("run.reproduce", why ? std::string("Reproduce steps") : "Reproduce steps " + text(question.first) + " to " + text(question.last),
      reproduce_shown, why,
      std::string(ui.timeline.selection.any() ? "Computes the selected steps"
                                              : "Computes the steps from the last checkpoint to the cursor") +
          " again from the event log and compares every stored value, bit for bit." +
          (ui.training() ? " The live run continues, more slowly." : ""));
  add("run.reproduce_all", "Reproduce the whole run", reproduce_whole, why,
      "Computes all steps again and compares every stored value, bit for bit.");
  add("run.evaluate", "Evaluate ...", evaluate_shown, no_evaluation(ui), "Loss and scores of a checkpoint on data of your choice.");
}

void add_folder(const UiState& ui, std::vector<Action>& all) {
  const bool there = ui.layout == "new" && folder_of(ui.form) && has_trains(ui.form);
  const char* why = there ? no_fit(ui.form) : "Only in the form of a run of tensor trains from a model folder";
  all.push_back({.id = "run.fit_folder",
                 .menu = Menu::run,
                 .title = "Compute the folder's tensor trains",
                 .act = fit_folder,
                 .why_not = why ? why : "",
                 .about = "Size and error of each matrix of the folder as a tensor train."});
}

void add_sweep(const UiState& ui, std::vector<Action>& all) {
  const auto add = [&](Action action) {
    action.menu = Menu::run;
    all.push_back(std::move(action));
  };
  add({.id = "sweep.start",
       .title = "Start the sweep in the form",
       .act = start_sweep,
       .why_not = no_sweep(ui),
       .about = "Trains every combination of the values of the settings that vary, one run after another, and compares them."});
  const char* no_stop = !trains_queue(ui, kSweepNoun) ? "No sweep is training" : ui.queue->stopping ? "The sweep is stopping" : "";
  add({.id = "sweep.stop", .title = "Stop the sweep with checkpoint", .act = stop_queue, .why_not = no_stop});
  add({.id = "sweep.save", .title = "Save the file of the sweep in the form", .act = save_sweep, .why_not = no_sweep_file(ui)});
  add({.id = "sweep.compare",
       .title = "Compare the runs of the sweep in the form",
       .act = compare_sweep,
       .why_not = no_sweep_comparison(ui)});
}

void add_run(const UiState& ui, std::vector<Action>& all) {
  const auto add = [&](Action action) {
    action.menu = Menu::run;
    all.push_back(std::move(action));
  };
  const LiveRun* run = ui.commanded();
  const std::string why = run ? "" : ui.training() ? "The live run is not shown" : "No run is training";
  const bool form = ui.layout == "new";
  add({.id = "run.start_form",
       .title = "Start the run in the form",
       .keys = ImGuiKey_F5,
       .act = start_form,
       .why_not = !form           ? "Only in the form of a new run"
                  : ui.form.ready ? no_writing(ui)
                                  : "The settings are still being read",
       .scope = KeyScope::form});
  add({.id = "duel.start",
       .title = "Start the duel in the form",
       .keys = kCtrl | ImGuiKey_F5,
       .act = start_duel,
       .why_not = no_duel(ui),
       .about = "Trains the same network under the ticked methods, one run after another, and compares them.",
       .scope = KeyScope::form});
  const char* no_stop = !trains_queue(ui, kDuelNoun) ? "No duel is training" : ui.queue->stopping ? "The duel is stopping" : "";
  add({.id = "duel.stop", .title = "Stop the duel with checkpoint", .act = stop_queue, .why_not = no_stop});
  add_folder(ui, all);
  add_sweep(ui, all);
  const bool paused = run && run->view().snapshot->phase == Phase::paused;
  const bool trains = run || ui.training();
  const int64_t more = offered_steps(ui);
  add({.id = "run.toggle",
       .title = trains           ? (paused ? "Resume" : "Pause")
                : ui.resumable() ? "Resume the shown run"
                : more > 0       ? "Extend the shown run by " + counted(more, "step")
                                 : "Start " + ui.preset,
       .keys = ImGuiKey_F5,
       .act = start_or_pause,
       .why_not = trains ? why : no_writing(ui)});
  const EditHistory* history = ui.editable() ? &ui.editable()->history() : nullptr;
  const auto edit = [&](const char* id, const char* what, ImGuiKey key, const EditChange* change, void (*act)(UiState&), bool line) {
    add({.id = id,
         .title = change ? std::string(what) + " " + text_of(*change) : std::string(what) + " edit",
         .keys = kCtrl | key,
         .act = act,
         .why_not = change                  ? ""
                    : history               ? "There is no edit to " + std::string(key == ImGuiKey_Z ? "undo" : "redo")
                    : ui.replaying() && run ? "Not during replay"
                                            : why,
         .line_before = line});
  };
  const auto command = [](void (*act)(LiveRun & of)) {
    return [act](UiState& state) {
      if (LiveRun* of = state.commanded()) act(*of);
    };
  };
  add({.id = "run.step", .title = "Train one step", .keys = ImGuiKey_F10, .act = command([](LiveRun& of) { of.step(1); }), .why_not = why});
  add({.id = "run.to",
       .title = "Train to a step ...",
       .keys = kCtrl | ImGuiKey_F10,
       .act = [](UiState& state) { open_dialog(state, Dialog::run_to); },
       .why_not = why});
  add({.id = "run.to_event",
       .title = "Train to the next event",
       .keys = kShift | ImGuiKey_F10,
       .act = command([](LiveRun& of) { of.run_to_event(); }),
       .why_not = why});
  add({.id = "run.checkpoint",
       .title = "Checkpoint",
       .keys = kCtrl | ImGuiKey_S,
       .act = command([](LiveRun& of) { of.checkpoint(); }),
       .why_not = why});
  add({.id = "run.stop",
       .title = "Stop with checkpoint",
       .keys = kShift | ImGuiKey_F5,
       .act = [](UiState& state) { stop_run(state, true); },
       .why_not = why,
       .line_before = true});
  add({.id = "run.drop", .title = "Stop without checkpoint", .act = [](UiState& state) { stop_run(state, false); }, .why_not = why});
  edit("run.undo", "Undo", ImGuiKey_Z, history ? history->undo() : nullptr, undo_edit, true);
  edit("run.redo", "Redo", ImGuiKey_Y, history ? history->redo() : nullptr, redo_edit, false);
  add_ways_on(ui, all);
  const RunView& shown = ui.shown();
  add({.id = "run.compare-parent",
       .title = "Compare with parent",
       .act = compare_with_parent,
       .why_not = shown.parent.empty() || shown.snapshot->run.empty() ? "The shown run is not a fork"
                  : ui.store && ui.store->path() != shown.store       ? "This run is in another database"
                                                                      : "",
       .line_before = true});
  const char* no_twin = no_dense_twin(ui);
  add({.id = "run.dense_twin",
       .title = "Train its dense twin and compare",
       .act = train_dense_twin,
       .why_not = no_twin ? no_twin : no_writing(ui),
       .about = "The same model with dense matrices under AdamW, on the same data for as many steps."});
}

// Actions on the selected runs of the list.
void add_runs(const UiState& ui, std::vector<Action>& all) {
  const bool front = ui.layout == "start", some = front && !ui.run_table.selected.empty();
  const std::string no = no_writing(ui);
  const auto add = [&](const char* id, const char* title, ImGuiKeyChord keys, std::function<void(UiState&)> act, bool line = false,
                       bool writes = true) {
    all.push_back({.id = id,
                   .menu = Menu::run,
                   .title = title,
                   .keys = keys,
                   .act = std::move(act),
                   .why_not = !writes || no.empty() ? (some    ? ""
                                                       : front ? "Select a run in the list first"
                                                               : "Only in the list of runs")
                                                    : no,
                   .line_before = line,
                   .scope = KeyScope::runs});
  };
  const auto ids = [](const UiState& state) {
    std::vector<std::string> chosen;
    for (const RunRow* row : chosen_runs(state)) chosen.push_back(row->id);
    return chosen;
  };
  add(
      "runs.edit", "Selected runs: name, tags and notes", ImGuiKey_F2, [](UiState& state) { open_dialog(state, Dialog::edit_runs); }, true);
  add("runs.star", "Selected runs: star", ImGuiKey_S, [](UiState& state) { toggle_star(state, chosen_runs(state)); });
  add(
      "runs.compare", "Selected runs: compare", ImGuiKey_Space, [](UiState& state) { toggle_compared(state, chosen_runs(state)); }, false,
      false);
  add("runs.archive", "Selected runs: archive", ImGuiKey_Delete, [ids](UiState& state) {
    if (state.run_table.archived)
      restore_runs(state, ids(state));
    else
      archive_runs(state, ids(state));
  });
  add("runs.purge", "Selected runs: purge ...", 0, [](UiState& state) { open_dialog(state, Dialog::purge_runs); });
  add("runs.select_all", "Select all runs in the list", kCtrl | ImGuiKey_A, [](UiState& state) { select_all(state.run_table); });
  all.back().why_not = front ? "" : "Only in the list of runs";
}

void add_view(const UiState& ui, std::vector<Action>& all) {
  const auto add = [&](Action action) {
    action.menu = Menu::view;
    all.push_back(std::move(action));
  };
  const auto inside = [&](const char* id, const char* title, ImGuiKeyChord keys, KeyScope scope, bool can, const char* why,
                          std::function<void(UiState&)> act) {
    add({.id = id, .title = title, .keys = keys, .act = std::move(act), .why_not = can ? "" : why, .scope = scope});
  };
  const bool compares = ui.compare.runs.size() >= 2;
  inside("compare.baseline", "Comparison: next baseline", ImGuiKey_B, KeyScope::compare, compares, "No runs are compared",
         [](UiState& state) { next_baseline(state.compare); });
  inside("compare.newest", "Comparison: cursor to the end", ImGuiKey_L, KeyScope::compare, compares, "No runs are compared",
         [](UiState& state) { move_cursor(state.compare, -1); });
  inside("compare.by_run", "Comparison: one plot per run", 0, KeyScope::compare, compares, "No runs are compared",
         [](UiState& state) { state.compare.by_run = !state.compare.by_run; });
  all.back().checked = ui.compare.by_run;
  inside("compare.seeds", "Comparison: group by seed", 0, KeyScope::compare, compares, "No runs are compared",
         [](UiState& state) { state.compare.group_by = state.compare.group_by == kBySeed ? "" : kBySeed; });
  all.back().checked = ui.compare.group_by == kBySeed;
  inside("compare.group", "Comparison: next grouping", 0, KeyScope::compare, compares, "No runs are compared",
         [](UiState& state) { choose_next_group(state.compare); });
  all.back().about = "By seed, by each setting that differs, by tag";
  inside("plots.fit", "Plots: fit", 0, KeyScope::window, true, "",
         [](UiState& state) { fit_plots(state.layout == "compare" ? state.compare.plots : state.plots); });
  inside("diagram.fit", "Diagram: fit the width", ImGuiKey_F, KeyScope::diagram, ui.has_run(), "No run yet",
         [](UiState& state) { state.tt.fit = true; });
  inside("diagram.fit_all", "Diagram: fit everything", kShift | ImGuiKey_F, KeyScope::diagram, ui.has_run(), "No run yet",
         [](UiState& state) { state.tt.fit_all = true; });
  add({.id = "memory.by_layer",
       .title = "Memory: by layer",
       .act = [](UiState& state) { state.memory_view = state.memory_view == 1 ? 0 : 1; },
       .checked = ui.memory_view == 1});
  add({.id = "memory.in_step",
       .title = "Memory: in a step",
       .act = [](UiState& state) { state.memory_view = state.memory_view == 3 ? 0 : 3; },
       .checked = ui.memory_view == 3});
  add({.id = "form.methods",
       .title = "New run: memory of all methods",
       .act =
           [](UiState& state) {
             state.form.methods.shown = !state.form.methods.shown;
             if (state.form.methods.shown) open_form(state);
           },
       .checked = ui.form.methods.shown});
  add({.id = "form.sweep",
       .title = "New run: sweep",
       .act =
           [](UiState& state) {
             state.form.sweep.shown = !state.form.sweep.shown;
             if (state.form.sweep.shown) open_form(state);
           },
       .checked = ui.form.sweep.shown});
  const bool sweeps = ui.layout == "new" && shows_sweep(ui.form);
  add({.id = "sweep.vary_changed",
       .title = "New run: vary the changed settings in the sweep",
       .act = [](UiState& state) { vary_changed(state.form); },
       .why_not = !sweeps                   ? "Only in the form of a new run, with its sweep shown"
                  : ui.form.changed.empty() ? "No setting is changed"
                                            : ""});
  const bool choosing = ui.layout == "new" && ui.form.methods.shown && !ui.form.fork;
  const auto choose = [&](const char* id, const char* title, bool all_of_them) {
    add({.id = id,
         .title = title,
         .act = [all_of_them](UiState& state) { choose_all_for_duel(state.form.duel, all_of_them); },
         .why_not = choosing ? "" : "Only in the form of a new run, in Memory of all methods"});
  };
  choose("duel.all", "New run: all methods into the duel", true);
  choose("duel.none", "New run: no method into the duel", false);
  add({.id = "ranks.over_steps",
       .title = "Ranks: over time",
       .act = [](UiState& state) { toggle_view(state, RanksView::over_steps); },
       .checked = ui.ranks_view == RanksView::over_steps});
  add({.id = "ranks.drops",
       .title = "Ranks: drops, newest first",
       .act = [](UiState& state) { toggle_view(state, RanksView::drops); },
       .checked = ui.ranks_view == RanksView::drops});
  add({.id = "ranks.order", .title = "Ranks: next order (depth, size, drop)", .act = [](UiState& state) {
         state.rank_order = static_cast<RankOrder>((static_cast<int>(state.rank_order) + 1) % kRankOrders);
       }});
  const auto theme_row = [&](const char* id, const char* title, ThemeKind kind, bool line) {
    add({.id = id,
         .title = title,
         .act = [kind](UiState& state) { set_theme(state, kind); },
         .checked = ui.settings.theme == kind && !ui.settings.theme_of_desktop,
         .line_before = line});
  };
  theme_row("theme.dark", "Dark theme", ThemeKind::dark, true);
  theme_row("theme.light", "Light theme", ThemeKind::light, false);
  theme_row("theme.contrast", "High contrast theme", ThemeKind::contrast, false);
  add({.id = "theme.desktop",
       .title = "Desktop theme",
       .act = follow_desktop_theme,
       .about = "Follows the desktop: dark, light or high contrast; read again whenever this window gets the focus. Dark if the desktop "
                "reports no theme.",
       .checked = ui.settings.theme_of_desktop});
  const auto scale = [&](const char* id, const char* title, ImGuiKey key, float factor, bool line) {
    add({.id = id,
         .title = title,
         .keys = kCtrl | key,
         .act = [factor](UiState& state) { set_user_scale(state, factor > 0 ? state.settings.user_scale * factor : 1); },
         .line_before = line});
  };
  add({.id = "view.follow_newest",
       .title = "Follow the newest run",
       .act = [](UiState& state) { state.settings.follow_newest = !state.settings.follow_newest; },
       .about = "Shows a run of another program as soon as it starts. During replay or in the form of a new run, only a message appears.",
       .checked = ui.settings.follow_newest,
       .line_before = true});
  add({.id = "view.find",
       .title = "Search in the active panel",
       .keys = kCtrl | ImGuiKey_F,
       .act = [](UiState& state) { state.find = true; },
       .line_before = true});
  scale("scale.larger", "Larger text", ImGuiKey_Equal, 1.1f, true);
  scale("scale.smaller", "Smaller text", ImGuiKey_Minus, 1 / 1.1f, false);
  scale("scale.normal", "Normal text", ImGuiKey_0, 0, false);
}

void add_window(const UiState& ui, std::vector<Action>& all) {
  const auto add = [&](Action action) {
    action.menu = Menu::window;
    all.push_back(std::move(action));
  };
  for (const Layout& layout : layouts())
    add({.id = std::string("layout.") + layout.name,
         .title = std::string("Show ") + layout.title,
         .keys = layout.keys,
         .act = [name = layout.name](UiState& state) { choose_layout(state, name); },
         .checked = chosen_layout(ui) == layout.name});
  for (const SavedLayout& layout : ui.layouts)
    add({.id = "layout.saved." + layout.name,
         .title = "Show " + layout.name,
         .act = [name = layout.name](UiState& state) { choose_saved_layout(state, name); },
         .checked = ui.layout == "train" && ui.arrangement == arrangement_of(layout.name)});
  add({.id = "layout.save",
       .title = "Save layout as ...",
       .act = [](UiState& state) { open_dialog(state, Dialog::layouts); },
       .about = "Saves open panels and their places under a name. Rename and delete saved layouts there too.",
       .line_before = !ui.layouts.empty()});
  bool first = true;
  for (const Panel& panel : panels()) {
    const auto closed = ui.closed_panels.find(panel.id);
    const bool open = closed == ui.closed_panels.end() || !closed->second;
    add({.id = std::string("panel.") + panel.id,
         .title = std::string(panel.title) + " panel",
         .act = [id = panel.id, open](UiState& state) { state.closed_panels[id] = open; },
         .checked = open,
         .line_before = std::exchange(first, false)});
  }
  add({.id = "view.reset",
       .title = "Reset layout",
       .act = reset_layout,
       .about = saved_layout(ui, ui.arrangement)
                    ? "Panels as saved in this layout; plots and views at their defaults."
                    : "Panels, plots and views at their defaults: axes, smoothing, filters, the view of each panel."});
  add({.id = "view.full_screen",
       .title = "Full screen",
       .keys = ImGuiKey_F11,
       .act = [](UiState& state) { state.full_screen = !state.full_screen; },
       .checked = ui.full_screen,
       .line_before = true});
}

void add_timeline(const UiState& ui, std::vector<Action>& all) {
  const char* no = no_past(ui);
  const std::string why = no ? no : "";
  const auto add = [&](const char* id, const char* title, ImGuiKeyChord keys, std::function<void(UiState&)> act,
                       KeyScope scope = KeyScope::timeline) {
    all.push_back({.id = id,
                   .menu = Menu::timeline,
                   .title = title,
                   .keys = keys,
                   .act = std::move(act),
                   .why_not = why,
                   .scope = scope,
                   .repeats = keys != ImGuiKey_Space});
  };
  const auto move = [](int64_t steps) { return [steps](UiState& state) { move_cursor(state, steps); }; };
  const auto mark = [](int way, bool checkpoints) { return [=](UiState& state) { seek_mark(state, way, checkpoints); }; };
  const auto speed = [](double factor) { return [factor](UiState& state) { change_speed(state, factor); }; };
  add("timeline.play", ui.timeline.playing ? "Pause replay" : "Play replay", ImGuiKey_Space, toggle_play);
  add("timeline.live", "To the newest step", ImGuiKey_L, follow_run, KeyScope::window);
  add("timeline.checkpoint_back", "Previous checkpoint", ImGuiKey_LeftBracket, mark(-1, true), KeyScope::window);
  add("timeline.checkpoint_on", "Next checkpoint", ImGuiKey_RightBracket, mark(1, true), KeyScope::window);
  add("timeline.back", "One step back", ImGuiKey_LeftArrow, move(-1));
  add("timeline.on", "One step forward", ImGuiKey_RightArrow, move(1));
  add("timeline.back10", "Ten steps back", kShift | ImGuiKey_LeftArrow, move(-10));
  add("timeline.on10", "Ten steps forward", kShift | ImGuiKey_RightArrow, move(10));
  add("timeline.event_back", "Previous event", kCtrl | ImGuiKey_LeftArrow, mark(-1, false));
  add("timeline.event_on", "Next event", kCtrl | ImGuiKey_RightArrow, mark(1, false));
  add("timeline.first", "First step", ImGuiKey_Home, [](UiState& state) { seek(state, first_step(state.shown())); });
  add("timeline.last", "Last step", ImGuiKey_End, follow_run);
  add("timeline.slower", "Halve replay speed", ImGuiKey_Comma, speed(0.5));
  add("timeline.faster", "Double replay speed", ImGuiKey_Period, speed(2));
  add("timeline.speed", "Original replay speed", ImGuiKey_1, speed(0));
  static constexpr const char* kLoops[] = {"Loop: whole run", "Loop: off", "Loop: selection"};
  const Timeline& t = ui.timeline;
  add("timeline.loop", kLoops[t.loop == Loop::off ? 0 : t.loop == Loop::selection || !t.selection.any() ? 1 : 2], ImGuiKey_R, next_loop);
  add("timeline.axis", t.by_time ? "Axis: steps" : "Axis: recorded time", ImGuiKey_T,
      [](UiState& state) { state.timeline.by_time = !state.timeline.by_time; });
  add("timeline.select_from", "Start selection here", ImGuiKey_I, [](UiState& state) { select_from(state); });
  add("timeline.select_to", "End selection here", ImGuiKey_O, [](UiState& state) { select_to(state); });
  add("timeline.drop_selection", "Clear selection", ImGuiKey_Escape, drop_selection);
  if (!t.selection.any()) all.back().why_not = "No selection: Shift+drag in the timeline";
}

// The user's keys of an action in this state of the window. Keys of the form act only while it is shown, and override equal keys of
// actions of the window then.
ImGuiKeyChord keys_now(const UiState& ui, const std::string& id, ImGuiKeyChord shipped, KeyScope scope) {
  const KeyBindings& bound = ui.settings.keys;
  const ImGuiKeyChord keys = bound.of(id, shipped);
  const bool form = ui.layout == "new";
  if (scope == KeyScope::form) return form ? keys : 0;
  if (scope != KeyScope::window || !form || keys == 0) return keys;
  const std::vector<ShippedKeys>& all = shipped_keys();
  const bool overridden = std::any_of(all.begin(), all.end(), [&](const ShippedKeys& other) {
    return other.scope == KeyScope::form && bound.of(other.id, other.keys) == keys;
  });
  return overridden ? 0 : keys;
}

}  // namespace

const char* title_of(Menu menu) {
  constexpr const char* kTitles[kMenus] = {"File", "Run", "View", "Window", "Tools", "Help", "Timeline"};
  return kTitles[static_cast<size_t>(menu)];
}

std::vector<Action> actions(const UiState& ui) {
  std::vector<Action> all;
  all.reserve(64);
  add_file(all);
  add_run(ui, all);
  add_runs(ui, all);
  add_view(ui, all);
  add_window(ui, all);
  add_tools(all);
  add_help(all);
  add_timeline(ui, all);
  for (Action& action : all) {
    action.shipped_keys = action.keys;
    action.keys = keys_now(ui, action.id, action.shipped_keys, action.scope);
    if (!action.why_not.empty()) action.act = [](UiState&) {};
  }
  return all;
}

void perform(UiState& ui, const std::string& id) {
  for (const Action& action : actions(ui)) {
    if (action.id != id) continue;
    if (!action.why_not.empty())
      throw Error(ErrorCode::usage, "cannot do '" + id + "'", action.why_not,
                  "add an option that it needs, such as --demo, --run or --layout: comera-studio --help");
    return action.act(ui);
  }
  throw Error(ErrorCode::usage, "no action '" + id + "'", "it is not in the list of actions", "press Ctrl+P for the list");
}

namespace {

void draw_item(UiState& ui, const Action& action) {
  const bool can = action.why_not.empty();
  const std::string label = whole_label(action.title) + "###" + action.id;
  if (ImGui::MenuItem(label.c_str(), key_text(action.keys).c_str(), action.checked.value_or(false), can)) action.act(ui);
  name_item(action.id);
  const std::string& told = can ? action.about : action.why_not;
  if (!told.empty() && ImGui::IsItemHovered(ImGuiHoveredFlags_AllowWhenDisabled | ImGuiHoveredFlags_DelayShort) && ImGui::BeginTooltip()) {
    ImGui::PushTextWrapPos(em(26));
    ImGui::TextUnformatted(told.c_str());
    ImGui::PopTextWrapPos();
    ImGui::EndTooltip();
  }
}

}  // namespace

void draw_menu(UiState& ui, Menu menu) {
  bool first = true;
  for (const Action& action : actions(ui)) {
    if (action.menu != menu) continue;
    if (action.line_before && !first) ImGui::Separator();
    first = false;
    draw_item(ui, action);
  }
  if (menu != Menu::view) return;
  ImGui::Separator();
  for (const SavedLayout& layout : std::vector(ui.layouts)) draw_action(ui, ("layout.saved." + layout.name).c_str());
  draw_action(ui, "layout.save");
  draw_action(ui, "view.reset");  // next to the panels in the menu Window, where users expect it
  if (!ImGui::BeginMenu(title_of(Menu::timeline))) return;
  draw_menu(ui, Menu::timeline);
  ImGui::EndMenu();
}

void draw_action(UiState& ui, const char* id) {
  for (const Action& action : actions(ui))
    if (action.id == id) draw_item(ui, action);
}

void handle_keys(UiState& ui, KeyScope scope) {
  if (ImGui::GetTopMostPopupModal()) return;
  // Loops over the fixed keys: each call of actions() makes the whole table, and this function runs several times a frame.
  for (const ShippedKeys& one : shipped_keys()) {
    const bool here = one.scope == scope || (scope == KeyScope::window && one.scope == KeyScope::form);
    const ImGuiKeyChord keys = here ? keys_now(ui, one.id, one.keys, one.scope) : 0;
    if (keys == 0) continue;
    ImGuiInputFlags flags = scope == KeyScope::window ? ImGuiInputFlags_RouteGlobal : ImGuiInputFlags_RouteFocused;
    if (one.repeats) flags |= ImGuiInputFlags_Repeat;
    if (!ImGui::Shortcut(keys, flags)) continue;
    for (const Action& action : actions(ui))
      if (action.id == one.id) action.act(ui);
  }
  // The key with the question mark depends on the keyboard layout, so the typed character is checked.
  const ImGuiIO& io = ImGui::GetIO();
  if (scope == KeyScope::window && !io.WantTextInput && ui.dialogs.open == Dialog::none && io.InputQueueCharacters.contains('?') &&
      ui.settings.keys.of("help.keys") == (kShift | ImGuiKey_Slash))
    open_dialog(ui, Dialog::keys);
}

}  // namespace comera::studio
