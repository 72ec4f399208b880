// comera-studio: the window. Parses the arguments, then runs the frame loop, takes one picture, or tests itself.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <thread>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/closing.h"
#include "app/studio/compare/tabs.h"
#include "app/studio/frame.h"
#include "app/studio/panels.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/preferences.h"
#include "app/studio/whole_file.h"
#include "app/studio/window.h"
#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/session/folder_run.h"
#include "core/session/version.h"
#include "core/store/process.h"

namespace comera::studio {
namespace {

volatile std::sig_atomic_t g_signal = 0;
extern "C" void on_signal(int number) {
  if (g_signal != 0) std::_Exit(128 + number);  // second signal: quit at once; the store marks the run as interrupted
  g_signal = number;
}

struct Arguments {
  bool demo = false, smoke_test = false, probe = false;
  double grace = 30;
  std::string store, screenshot, layout, panel, export_to, tab, items, size, theme, frame_times;
  std::vector<std::string> files, runs, compare;
  int64_t step = -1;
  float scale = 0;
  std::vector<std::string> sets, actions;
  bool compares() const { return !compare.empty() || runs.size() > 1 || layout == "compare"; }
  bool names_a_run() const { return demo || !runs.empty() || !compare.empty(); }
};

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void read_size(const std::string& text, WindowOptions& options) {
  char rest = 0;
  if (std::sscanf(text.c_str(), "%dx%d%c", &options.width, &options.height, &rest) != 2 || options.width < 320 || options.height < 200 ||
      options.width > 8192 || options.height > 8192)
    throw Error(ErrorCode::usage, "--size " + text + " is not a size", "", "for example --size 1600x900");
}

// Runs the demo unattended: waits for live curves, then stops it. Shows that the program works on this machine.
int smoke_test(Window& window, UiState& ui) {
  constexpr size_t kPoints = 50;
  const auto begin = Clock::now();
  double first_point = -1;
  bool stopped = false;
  int frames = 0;
  window.run([&] {
    ++frames;
    if (!ui.live) {
      ui.quit = true;
      return;
    }
    const RunView& view = ui.live->view();
    const Curve& loss = view.metric("train_loss");
    if (first_point < 0 && !loss.empty()) first_point = seconds_since(begin);
    if (!stopped && loss.size() >= kPoints && frames >= 10) {
      stopped = true;
      ui.live->stop(false);
    }
    if (view.ended() || seconds_since(begin) > 120) ui.quit = true;
  });
  if (!ui.live || ui.live->view().snapshot->phase != Phase::stopped || ui.live->view().metric("train_loss").size() < kPoints) {
    std::string why = "the demo did not start";
    if (ui.live)
      why = "the run is " + std::string(name_of(ui.live->view().snapshot->phase)) + " at step " +
            std::to_string(ui.live->view().snapshot->step);
    if (!ui.toasts.empty()) why = ui.toasts.front().text;
    throw Error(ErrorCode::other, "the smoke test failed", why);
  }
  std::printf("smoke test: %zu points, the first one after %.2f s, %d frames\n", ui.live->view().metric("train_loss").size(), first_point,
              frames);
  return 0;
}

// Opens the runs and pages that the arguments name, instead of those of the last session.
void open_named(UiState& ui, const Arguments& arguments) {
  for (const std::string& file : arguments.files)
    if (const std::optional<std::string> folder = folder_named(file))
      open_form_from_folder(ui, *folder);
    else
      ui.dialogs.dropped.push_back(std::filesystem::absolute(file).string());
  if (arguments.names_a_run()) forget_shown(ui);
  choose_layout(ui, arguments.layout);
  if (!arguments.compares()) {
    if (!arguments.runs.empty()) open_run(ui, arguments.runs.front(), arguments.step);
    return;
  }
  while (arguments.names_a_run() && !ui.compare.runs.empty()) unpick_run(ui.compare, ui.compare.runs.back()->wanted);
  for (const std::vector<std::string>* runs : {&arguments.compare, &arguments.runs})
    for (const std::string& run : *runs) pick_run(ui.compare, run);
  if (!arguments.tab.empty()) ui.compare.tab = arguments.tab;
  ui.compare.cursor = static_cast<double>(arguments.step);
  choose_layout(ui, arguments.layout.empty() ? "compare" : arguments.layout);
}

void do_actions(UiState& ui, const Arguments& arguments) {
  for (const std::string& id : arguments.actions) perform(ui, id);
}

// All runs to show were read, or reading failed.
bool all_opened(const UiState& ui) {
  return ui.load_request == 0 && ui.reopening.shown.empty() && (!ui.store || ui.runs->loaded) &&
         (ui.layout != "compare" || all_read(ui.compare));
}

// Exports every chart of a panel into a folder, with the code of the export dialog.
void export_panel(Window& window, UiState& ui, const Arguments& arguments) {
  Exports& e = ui.exports;
  e.folder = arguments.export_to;
  e.csv = e.svg = e.png = true;
  open_export(ui, arguments.panel.empty() ? "metrics" : arguments.panel);
  const bool any = std::exchange(e.open, false);
  e.chart = static_cast<int>(e.titles.size());  // all of them
  if (any) export_charts(ui);
  while (e.busy()) {
    window.draw();
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  for (const Toast& toast : ui.toasts)
    if (toast.level == Level::error || !any) throw Error(ErrorCode::storage, "the charts were not written", toast.text);
}

// Draws frames until the content of the picture is there, then a few more until the layout settles.
int screenshot(Window& window, UiState& ui, const Arguments& arguments) {
  if (arguments.demo) {
    if (!start_preset(ui, ui.preset))
      throw Error(ErrorCode::config, "the run did not start", ui.toasts.empty() ? "" : ui.toasts.front().text);
    ui.live->step(std::max<int64_t>(1, arguments.step));
  }
  open_named(ui, arguments);
  const bool shows = !arguments.compares() && !arguments.runs.empty();
  const auto begin = Clock::now();
  bool acted = false;
  for (int settled = 0; settled < 10;) {
    if (!arguments.panel.empty()) ui.front_panel = arguments.panel;
    window.draw();
    if (seconds_since(begin) > 600)
      throw Error(ErrorCode::other, "the picture was not taken", "the run did not reach the step within ten minutes");
    const bool list = !ui.store || ui.runs->loaded;
    const bool loaded = shows ? ui.load_request == 0 : ui.layout != "compare" || all_read(ui.compare);
    const bool trained =
        !arguments.demo || ui.live->view().ended() || (ui.live->view().snapshot->phase == Phase::paused && !ui.live->waits<StepCommand>());
    const NewRun& form = ui.form;
    const bool planned = ui.layout != "new" || form.all_looked() || !form.problem.empty();
    const bool smoothed = !ui.plots.smoothing_left && !ui.compare.plots.smoothing_left;
    const bool written = ui.samples.number == 0;
    settled = list && loaded && trained && planned && smoothed && written && !ui.desktop_theme.asking() ? settled + 1 : 0;
    if (loaded) choose_layout(ui, arguments.layout);  // showing a run may have changed the layout
    if (settled == 5 && !std::exchange(acted, true)) do_actions(ui, arguments);
    if (settled == 0) std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
  if (shows && !ui.stored) throw Error(ErrorCode::not_found, "the run cannot be shown", ui.toasts.empty() ? "" : ui.toasts.front().text);
  for (const auto& run : ui.compare.runs)
    if (!run->problem.empty()) throw Error(ErrorCode::not_found, "a run cannot be compared", run->problem);
  write_png(window.capture(), arguments.screenshot);
  if (!arguments.export_to.empty()) export_panel(window, ui, arguments);
  if (ui.live) ui.live->stop(false);
  return 0;
}

// For tests: writes names and places of the items on the screen, after each frame in which they changed.
class ItemsFile {
 public:
  explicit ItemsFile(std::string path) : path_(std::move(path)) {
    if (!path_.empty()) collect_items(&items_);
  }
  ~ItemsFile() { collect_items(nullptr); }
  ItemsFile(const ItemsFile&) = delete;
  void write() {
    if (items_.empty()) return;  // no frame was drawn
    name_typing();
    std::ostringstream text;
    for (NamedItem& item : std::exchange(items_, {})) {
      std::replace(item.name.begin(), item.name.end(), '\n', ' ');
      const ImVec2 size(item.high.x - item.low.x, item.high.y - item.low.y);
      text << item.low.x << ' ' << item.low.y << ' ' << size.x << ' ' << size.y << ' ' << item.name << '\n';
    }
    if (text.str() == written_) return;
    written_ = text.str();
    std::ofstream(path_ + ".new") << written_;
    std::filesystem::rename(path_ + ".new", path_);  // atomic: readers see whole frames only
  }

 private:
  const std::string path_;
  std::vector<NamedItem> items_;
  std::string written_;
};

// Like "Checkpoint and quit", without asking: the run writes its state, exports and changes of the store finish, then the window closes.
void end_after_signal(UiState& ui, Clock::time_point since, double grace) {
  if (ui.live && !ui.live->view().ended() && !ui.live->stopping()) ui.live->stop(true);
  if (ui.reproducing) ui.reproducing->give_up();
  if (ui.evaluate.work) ui.evaluate.work->give_up();
  ui.close_requested = true;
  const std::vector<std::string> work = unfinished_work(ui);
  if (!ui.training() && work.empty()) {
    ui.quit = true;
    const std::string unsaved = ui.live ? ui.live->view().snapshot->store_problem : "";
    if (!unsaved.empty()) std::cerr << "part of the run is not saved: " << unsaved << "\n";
    for (const std::string& problem : ui.closing.problems) std::cerr << problem << "\n";
  } else if (seconds_since(since) > grace) {
    if (ui.training()) std::cerr << "the run did not end within " << grace << " s: quitting without its last checkpoint\n";
    for (const std::string& one : work) std::cerr << "not finished within " << grace << " s: " << one << "\n";
    ui.quit = ui.closing.at_once = true;
  }
}

// One line per frame, for measurements of the window.
std::function<void(const FrameTime&)> frame_log(const UiState& ui, const std::string& path) {
  const std::shared_ptr<std::FILE> file(std::fopen(path.c_str(), "w"), [](std::FILE* f) { f ? std::fclose(f) : 0; });
  if (!file) throw Error(ErrorCode::storage, "cannot write " + path, "the folder may be missing or read-only", "choose another path");
  std::fprintf(file.get(), "begin_s,make_ms,draw_ms,show_ms,points,runs\n");
  return [&ui, file](const FrameTime& time) {
    std::fprintf(file.get(), "%.6f,%.3f,%.3f,%.3f,%zu,%zu\n", time.begin, time.make_ms, time.draw_ms, time.show_ms,
                 ui.shown().metric("train_loss").size(), ui.runs->rows.size());
    std::fflush(file.get());
  };
}

int interactive(Window& window, UiState& ui, const Arguments& arguments) {
  ui.tells_interrupted = true;
  ui.dialogs.may_use_desktop = true;
  ItemsFile items(arguments.items);
  if (!arguments.frame_times.empty()) window.on_frame = frame_log(ui, arguments.frame_times);
  if (arguments.demo) start_preset(ui, "demo");
  open_named(ui, arguments);
  if (!arguments.panel.empty()) ui.front_panel = arguments.panel;
  std::optional<Clock::time_point> signalled;
  bool acted = false;
  window.run([&] {
    items.write();
    if (!acted && all_opened(ui)) {
      acted = true;
      do_actions(ui, arguments);
    }
    if (g_signal == 0) return;
    if (!signalled) signalled = Clock::now();
    end_after_signal(ui, *signalled, arguments.grace);
  });
  const int code = g_signal != 0 ? 128 + g_signal : 0;
  if (ui.closing.at_once) {  // skips destructors, which would wait for the run; the store marks it as interrupted
    remove_unfinished_files();
    window.remember();
    std::_Exit(code);
  }
  // Likewise while steps are timed or a folder is computed; work that writes to the store finishes first.
  if (ui.form.measuring || (ui.form.fit.worker && ui.form.fit.worker->busy())) {
    ui.live.reset();
    ui.ending.clear();
    ui.store.reset();
    window.remember();
    std::_Exit(code);
  }
  return code;
}

// Null without a home folder.
std::shared_ptr<LogFile> log_of_window() try {
  auto log = std::make_shared<LogFile>(paths::studio_log());
  log->write(Level::info, "window", version_text("comera-studio") + " is opened, process " + std::to_string(own_pid()));
  return log;
} catch (const Error&) {
  return nullptr;
}

int run(int argc, char** argv, std::shared_ptr<LogFile>& log) {
  Arguments arguments;
  CLI::App app{"The window of CoMERA Studio.\n\nExamples:\n  comera-studio\n  comera-studio --demo\n  comera-studio reviews.csv"};
  app.name("comera-studio");
  app.set_version_flag("--version", version_text("comera-studio") + ", Dear ImGui " + IMGUI_VERSION);
  app.add_option(
      "file,--open", arguments.files,
      "opened as if dropped onto the window: a database, config, data set, model or curves; hf:FOLDER: a new run from that folder");
  app.add_flag("--demo", arguments.demo, "start the demo at once");
  app.add_option("--store", arguments.store, "database of runs (default: $COMERA_STORE or the user's data folder)");
  app.add_option("--set", arguments.sets, "path=value of a setting, for every run that this window starts")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--grace", arguments.grace, "seconds to write the last checkpoint and finish exports after Ctrl-C or SIGTERM (30)")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--probe", arguments.probe, "only check whether a window can open: exit with 0, or with 4 and the reason");
  app.add_flag("--smoke-test", arguments.smoke_test, "train the demo for some steps without storing it, and exit with 0 on success");
  app.add_option("--screenshot", arguments.screenshot, "write a picture of the window to this PNG file and exit");
  app.add_option("--layout", arguments.layout, "layout to show: start, new, train, analyse, compare or replay");
  app.add_option("--panel", arguments.panel, "active panel of the train layout, for example tt or profile");
  app.add_option("--export", arguments.export_to, "with --screenshot: write the charts of the panel to this folder as CSV, SVG and PNG");
  app.add_option("--action", arguments.actions, "run this action first: help.keys, file.settings, ...")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--run", arguments.runs, "stored run to show; several are compared")->take_all()->allow_extra_args(false);
  app.add_option("--compare", arguments.compare, "stored runs to compare, the first is the baseline: A,B")->delimiter(',');
  app.add_option("--tab", arguments.tab, "tab of the comparison to show: curves, table, config, ranks, memory, phases, pareto or parallel");
  app.add_option("--step", arguments.step, "step to show; with --demo: steps to train before the picture");
  app.add_option("--items", arguments.items, "for tests: list the items on the screen in this file, one per line: X Y WIDTH HEIGHT NAME");
  app.add_option("--size", arguments.size, "size of the window in points, WIDTHxHEIGHT (default: the last size, at first 1600x900)");
  app.add_option("--scale", arguments.scale, "pixels per point (default: of the monitor)")->check(CLI::Range(0.5, 4.0));
  app.add_option("--theme", arguments.theme, "dark, light, contrast or desktop")
      ->check(CLI::IsMember({"dark", "light", "contrast", "desktop"}));
  app.add_option("--frame-times", arguments.frame_times,
                 "write one line of CSV per frame: start, milliseconds, points of the loss, runs in the list");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : (app.exit(error), static_cast<int>(ErrorCode::usage));
  }
  const auto known = layouts();
  if (!arguments.layout.empty() &&
      std::none_of(known.begin(), known.end(), [&](const Layout& layout) { return layout.name == arguments.layout; }))
    throw Error(ErrorCode::usage, "no layout '" + arguments.layout + "'", "", "start, new, train, analyse, compare or replay");
  const auto tabs = compare_tabs();
  if (!arguments.tab.empty() && std::none_of(tabs.begin(), tabs.end(), [&](const CompareTab& tab) { return arguments.tab == tab.id; }))
    throw Error(ErrorCode::usage, "no tab '" + arguments.tab + "'", "", "curves, table, config, ranks, memory, phases, pareto or parallel");

  UiState ui;
  const std::vector<Action> can = actions(ui);
  for (const std::string& id : arguments.actions)
    if (std::none_of(can.begin(), can.end(), [&](const Action& action) { return action.id == id; })) {
      std::vector<std::string> ids;
      for (const Action& action : can) ids.push_back(action.id);
      const std::string near = nearest_name(id, ids);
      throw Error(ErrorCode::usage, "no action '" + id + "'", "", near.empty() ? "for example help.keys" : "did you mean " + near + "?");
    }

  if (!arguments.panel.empty() &&
      std::none_of(panels().begin(), panels().end(), [&](const Panel& panel) { return panel.id == arguments.panel; }))
    throw Error(ErrorCode::usage, "no panel '" + arguments.panel + "'", "", "for example tt");

  const bool alone = arguments.probe || arguments.smoke_test || !arguments.screenshot.empty();  // unattended
  ui.sets = arguments.sets;
  // Unattended runs are stored only if --store names a database.
  if (!alone || !arguments.store.empty()) ui.store_path = arguments.store.empty() ? paths::runs_database() : arguments.store;
  WindowOptions options;
  if (!arguments.size.empty()) read_size(arguments.size, options);
  options.scale = arguments.scale > 0 || arguments.screenshot.empty() ? arguments.scale : 1;
  options.visible = arguments.screenshot.empty() && !arguments.probe;
  options.remember = !alone;
  options.in_its_place = arguments.size.empty();
  if (alone && arguments.theme.empty()) arguments.theme = "dark";
  // Without --store and $COMERA_STORE, the database that the user chose in the window applies.
  const char* variable = std::getenv("COMERA_STORE");
  if (!alone && arguments.store.empty() && !(variable && *variable))
    if (std::string chosen = chosen_store(preferences_file()); !chosen.empty()) ui.store_path = std::move(chosen);
  // A software renderer (llvmpipe) would take all cores, also from training. Set before other threads start: setenv is not thread-safe.
  setenv("LP_NUM_THREADS", std::to_string(std::max(1u, std::thread::hardware_concurrency() / 2)).c_str(), 0);
  if (!alone) log = ui.log_file = log_of_window();
  // Reading the list of runs begins before the window opens, so that the first frame can show it.
  if (!arguments.smoke_test && !arguments.probe)
    ui.store = std::make_unique<StoreClient>(!ui.store_path.empty()     ? ui.store_path
                                             : !arguments.store.empty() ? arguments.store
                                                                        : paths::runs_database(),
                                             Window::wake);
  Window window(options, ui);
  if (arguments.probe) return 0;
  ui.wake = Window::wake;
  if (const auto kind = theme_of_name(arguments.theme))
    set_theme(ui, *kind);
  else if (!arguments.theme.empty())
    follow_desktop_theme(ui);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
  return arguments.smoke_test ? (start_preset(ui, "demo"), smoke_test(window, ui))
         : alone              ? screenshot(window, ui, arguments)
                              : interactive(window, ui, arguments);
}

int guarded(int argc, char** argv) {
  std::shared_ptr<LogFile> log;
  try {
    return run(argc, argv, log);
  } catch (const Error& error) {
    if (log) log->write(Level::error, "window", std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()));
    std::cerr << "error: " << error.what() << "\n";
    if (!error.why().empty()) std::cerr << "  why: " << error.why() << "\n";
    if (!error.hint().empty()) std::cerr << "  try: " << error.hint() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    if (log) log->write(Level::error, "window", error.what());
    std::cerr << "error: " << error.what() << "\n  try: please report this\n";
    return 1;
  }
}

}  // namespace
}  // namespace comera::studio

int main(int argc, char** argv) { return comera::studio::guarded(argc, argv); }
