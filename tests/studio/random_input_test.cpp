// Somebody who clicks, types and drags at random, while real runs train underneath. Whatever is done: Dear ImGui has
// nothing to repair, a run goes only from phase to phase as runs do, and what it has computed is in the store.
//   COMERA_RANDOM_FRAMES  how long (15,000 frames; some 20 seconds)
//   COMERA_RANDOM_SEED    another course
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/parts/named_items.h"
#include "core/store/run_reader.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;

int64_t from_environment(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text && *text ? std::atoll(text) : otherwise;
}

// What was seen of one session.
struct WatchedCourse {
  std::vector<Phase> phases;
  std::string store, run;
  int64_t step = 0;  // the last one seen
  Ticket moves = 0;  // the last command that makes a paused run go on
  bool may_step = true, stop_asked = false, keeps = false;
  std::string message;

  // Phases in the order that a run goes through them; it may go to and fro among those of the middle.
  static int order(Phase phase) {
    switch (phase) {
      case Phase::idle:
        return 0;
      case Phase::preparing:
        return 1;
      case Phase::running:
      case Phase::pausing:
      case Phase::paused:
        return 2;
      case Phase::stopping:
        return 3;
      default:
        return 4;
    }
  }

  void see(const Snapshot& s) {
    const Phase before = phases.empty() ? Phase::idle : phases.back();
    EXPECT_GE(order(s.phase), order(before)) << name_of(before) << " -> " << name_of(s.phase) << " of " << s.run;
    if (has_ended(before)) {
      EXPECT_EQ(s.phase, before) << "an end is an end";
    }
    if (s.phase == Phase::stopped) {
      EXPECT_TRUE(stop_asked) << "nobody stopped " << s.run;
    }
    if (order(before) == 2 && order(s.phase) == 2) {
      EXPECT_GE(s.step, step) << "steps of " << s.run;
      if (before == Phase::paused && !may_step) {
        EXPECT_EQ(s.step, step) << "a paused run made a step";
      }
    }
    if (s.phase == Phase::paused && s.last_ticket >= moves) may_step = false;
    if (!has_ended(s.phase)) {
      EXPECT_EQ(s.error_code, 0) << s.message;
    }
    if (phases.empty() || s.phase != before) phases.push_back(s.phase);
    if (!s.run.empty()) run = s.run;
    step = s.step;
    message = s.message + ": " + s.error_why;
  }
};

// A real session that is watched.
class WatchedLink : public RunLink {
 public:
  WatchedLink(SessionStart start, std::shared_ptr<WatchedCourse> course)
      : link_(start_session(std::move(start))), course_(std::move(course)) {}
  ~WatchedLink() override {
    if (link_->ended()) course_->see(*link_->latest());
  }
  Ticket post(Command command) override {
    const bool moves = std::holds_alternative<ResumeCommand>(command) || std::holds_alternative<StepCommand>(command);
    if (const auto* stop = std::get_if<StopCommand>(&command)) {
      EXPECT_FALSE(course_->stop_asked) << "stopped twice";
      course_->stop_asked = true;
      course_->keeps = stop->checkpoint;
    }
    const Ticket ticket = link_->post(std::move(command));
    if (moves) {
      course_->moves = ticket;
      course_->may_step = true;
    }
    return ticket;
  }
  std::shared_ptr<const Snapshot> latest() const override {
    auto now = link_->latest();
    course_->see(*now);
    return now;
  }
  Records drain() override { return link_->drain(); }
  bool ended() override { return link_->ended(); }

 private:
  std::unique_ptr<RunLink> link_;
  std::shared_ptr<WatchedCourse> course_;
};

class Monkey {
 public:
  Monkey(Stage& stage, uint64_t seed) : stage_(stage), random_(seed) { collect_items(&items_); }
  ~Monkey() { collect_items(nullptr); }

  int64_t frames = 0;
  std::map<std::string, int> done;  // how often each kind of thing was done

  void act() {
    struct Kind {
      const char* name;
      int weight;
      void (Monkey::*act)();
    };
    static constexpr Kind kKinds[] = {{"click an item", 34, &Monkey::click_item},
                                      {"click anywhere", 12, &Monkey::click_anywhere},
                                      {"drag", 14, &Monkey::drag},
                                      {"shortcut", 18, &Monkey::shortcut},
                                      {"type", 8, &Monkey::type},
                                      {"key", 8, &Monkey::key},
                                      {"wheel", 4, &Monkey::wheel},
                                      {"close", 1, &Monkey::close},
                                      {"watch", 4, &Monkey::watch}};
    int all = 0;
    for (const Kind& kind : kKinds) all += kind.weight;
    int at = static_cast<int>(below(static_cast<size_t>(all)));
    for (const Kind& kind : kKinds)
      if ((at -= kind.weight) < 0) {
        ++done[kind.name];
        (this->*kind.act)();
        break;
      }
  }

  void frame(int count = 1) {
    for (int i = 0; i < count; ++i, ++frames) {
      items_.clear();
      stage_.frames(1);
    }
  }

 private:
  // Not the distributions of the standard library: they differ from one library to another.
  size_t below(size_t count) { return count == 0 ? 0 : static_cast<size_t>(random_() % count); }
  bool one_in(size_t count) { return below(count) == 0; }
  template <class T>
  const T& any(const std::vector<T>& of) {
    return of[below(of.size())];
  }

  ImVec2 anywhere() {
    const ImVec2 size = ImGui::GetIO().DisplaySize;
    return {size.x * static_cast<float>(below(1000)) / 1000, size.y * static_cast<float>(below(1000)) / 1000};
  }
  ImVec2 on_an_item() {
    if (items_.empty()) return anywhere();
    const NamedItem& item = any(items_);
    const auto part = static_cast<float>(below(100)) / 100;
    return {item.low.x + (item.high.x - item.low.x) * part, (item.low.y + item.high.y) / 2};
  }
  void to(ImVec2 place) {
    ImGui::GetIO().AddMousePosEvent(place.x, place.y);
    frame();
  }
  void press(int button, bool down) {
    ImGui::GetIO().AddMouseButtonEvent(button, down);
    frame();
  }
  void click(ImVec2 place, int button = 0) {
    to(place);
    for (int i = one_in(8) ? 2 : 1; i > 0; --i) {
      press(button, true);
      press(button, false);
    }
  }

  void click_item() { click(on_an_item()); }
  void click_anywhere() { click(anywhere(), one_in(4) ? 1 : 0); }
  void drag() {
    const ImVec2 from = one_in(3) ? anywhere() : on_an_item(), end = one_in(3) ? anywhere() : ImVec2(anywhere().x, from.y);
    to(from);
    press(0, true);
    for (int i = 1; i <= 4; ++i) {
      const float part = static_cast<float>(i) / 4;
      to({from.x + (end.x - from.x) * part, from.y + (end.y - from.y) * part});
    }
    press(0, false);
  }
  void chord(ImGuiKeyChord keys, unsigned character = 0) {
    ImGuiIO& io = ImGui::GetIO();
    for (const bool down : {true, false}) {
      for (const ImGuiKey mod : {ImGuiMod_Ctrl, ImGuiMod_Shift, ImGuiMod_Alt})
        if (keys & mod) io.AddKeyEvent(mod, down);
      io.AddKeyEvent(static_cast<ImGuiKey>(keys & ~ImGuiMod_Mask_), down);
      if (down && character != 0) io.AddInputCharacter(character);
      frame();
    }
  }
  void shortcut() {
    std::vector<ImGuiKeyChord> keys;
    for (const Action& action : actions(stage_.ui))
      if (action.keys != 0) keys.push_back(action.keys);
    chord(any(keys));
  }
  void type() {
    static const std::vector<std::string> kTexts = {"0.3",      "1e-3", "0",     "-1",   "nan",  "64",   "demo",      "step",
                                                    "late",     "?",    "l",     "f",    "b",    "1",    "999999999", "tt",
                                                    "\xc3\xa9", ",",    "start", "stop", "dark", "fork", "pareto",    "interrupted"};
    for (const char c : any(kTexts)) ImGui::GetIO().AddInputCharacter(static_cast<unsigned char>(c));
    frame(2);
  }
  void key() {
    static const std::vector<ImGuiKey> kKeys = {ImGuiKey_Escape,     ImGuiKey_Enter,   ImGuiKey_Tab,       ImGuiKey_Space,
                                                ImGuiKey_DownArrow,  ImGuiKey_UpArrow, ImGuiKey_LeftArrow, ImGuiKey_RightArrow,
                                                ImGuiKey_Backspace,  ImGuiKey_Delete,  ImGuiKey_PageDown,  ImGuiKey_Home,
                                                ImGuiKey_GraveAccent};
    chord(any(kKeys));
  }
  void wheel() {
    to(anywhere());
    ImGui::GetIO().AddMouseWheelEvent(0, static_cast<float>(below(7)) - 3);
    frame();
  }
  void close() {
    stage_.ui.closing.insisted = stage_.ui.close_requested;
    stage_.ui.close_requested = true;
    frame(3);
  }
  void watch() { frame(10); }

  Stage& stage_;
  std::mt19937_64 random_;
  std::vector<NamedItem> items_;
};

class RandomInput : public testing::Test {
 protected:
  RandomInput() {
    folder_ = fs::temp_directory_path() / ("comera-random-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    before_ = fs::current_path();
    fs::current_path(folder_);  // a path that is typed
    for (const char* name : {"HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"})
      setenv(name, (folder_ / name).c_str(), 1);
    unsetenv("COMERA_STORE");
  }
  ~RandomInput() override {
    fs::current_path(before_);
    fs::remove_all(folder_);
  }
  fs::path folder_, before_;
};

TEST_F(RandomInput, NothingBreaks) {
  const int64_t length = from_environment("COMERA_RANDOM_FRAMES", 15'000);
  const auto seed = static_cast<uint64_t>(from_environment("COMERA_RANDOM_SEED", 1));
  const std::string store = (folder_ / "runs.db").string();
  const RunConfig demo = load_config("demo", {"train.threads=1"});
  std::vector<std::shared_ptr<WatchedCourse>> courses;
  Stage stage;
  UiState& ui = stage.ui;
  ui.store_path = store;
  ui.store = std::make_unique<StoreClient>(store, std::function<void()>{});
  ui.sets = {"train.threads=1", "train.eval_every=50", "train.max_steps_per_s=0"};
  ui.tells_interrupted = true;
  ui.open_session = [&](SessionStart start) -> std::unique_ptr<RunLink> {
    // Whatever the form says, the model and the data are the demo's: no step is longer than a frame or two.
    start.config.model = demo.model;
    start.config.data = demo.data;
    start.config.train.threads = 1;
    start.config.train.batch = std::min<int64_t>(start.config.train.batch, 128);
    courses.push_back(std::make_shared<WatchedCourse>());
    courses.back()->store = start.store;  // another one may have been opened
    return std::make_unique<WatchedLink>(std::move(start), courses.back());
  };
  start_preset(ui, "demo");
  const auto check = [&] {
    EXPECT_LE(std::count_if(ui.toasts.begin(), ui.toasts.end(), [](const Toast& one) { return one.until < kUntilDismissed; }), 3);
    if (const LiveRun* run = ui.commanded()) {
      EXPECT_FALSE(has_ended(run->view().snapshot->phase));
    }
    if (ui.replaying()) {
      EXPECT_LE(ui.snapshot().step, ui.shown().snapshot->step) << "the past is not ahead";
    }
    EXPECT_LE(ui.compare.runs.size(), 8u);
  };
  int quits = 0;
  {
    Monkey monkey(stage, seed);
    while (monkey.frames < length && !HasFailure()) {
      monkey.act();
      check();
      if (!ui.quit) continue;
      // The program would end here: every run has, or was told to, unless it is not waited for.
      ++quits;
      EXPECT_TRUE(ui.closing.at_once || !ui.training()) << "quit while a run trains";
      ui.quit = ui.close_requested = false;
      ui.closing = {};
    }
    // Out of whatever is open; then a run trains on.
    ui.close_requested = false;
    for (int i = 0; i < 4; ++i) stage.press(ImGuiKey_Escape);
    if (!ui.live || ui.live->view().ended() || ui.live->stopping()) start_preset(ui, "demo");
    ASSERT_TRUE(ui.live) << (ui.toasts.empty() ? "" : ui.toasts.back().text);
    ASSERT_TRUE(stage.until([&] { return ui.live->view().snapshot->phase >= Phase::running; }));
    ui.live->edit("train.max_steps_per_s", "0");  // a random limit may allow one step in minutes
    const int64_t step = ui.live->view().snapshot->step;
    EXPECT_TRUE(stage.until([&] {
      // A pause takes effect only after the current step.
      if (ui.live->view().snapshot->phase == Phase::paused && !ui.live->pending()) ui.live->resume();
      return ui.live->view().snapshot->step >= step + 5 || ui.live->view().ended();
    })) << "training makes progress";
    EXPECT_FALSE(ui.live->view().snapshot->phase == Phase::failed) << ui.live->view().snapshot->message;
    for (const auto& [what, times] : monkey.done) std::printf("%5d  %s\n", times, what.c_str());
  }
  // Everybody ends, with all that was computed in the store.
  if (!ui.live->view().ended() && !ui.live->stopping()) ui.live->stop(true);
  ASSERT_TRUE(stage.until([&] { return !ui.training() && ui.live->ended(); }));
  std::map<std::string, std::shared_ptr<WatchedCourse>> last;  // of each run
  for (const auto& course : courses) {
    EXPECT_NE(course->phases.back(), Phase::failed) << course->message;
    if (!course->run.empty()) last[course->run] = course;
  }
  for (const auto& [id, course] : last) {
    const RunReader reader(course->store);
    const RunRow row = reader.run(id);
    EXPECT_EQ(row.status, name_of(course->phases.back())) << id;
    const Series loss = reader.metric(id, "train_loss");
    EXPECT_EQ(row.fork_step + static_cast<int64_t>(loss.steps.size()), course->step) << "every step of " << id << " once";
    if (!loss.steps.empty()) {
      EXPECT_EQ(loss.steps.back(), course->step);
    }
    if (course->phases.back() == Phase::stopped && course->keeps) {
      const std::vector<CheckpointRow> checkpoints = reader.checkpoints(id);
      ASSERT_FALSE(checkpoints.empty()) << id;
      EXPECT_EQ(checkpoints.back().step, course->step) << id;
      EXPECT_TRUE(fs::exists(checkpoints.back().path));
    }
  }
  std::printf("%zu sessions, %zu runs, %d times quit, the last run at step %lld\n", courses.size(), last.size(), quits,
              static_cast<long long>(courses.back()->step));
}

}  // namespace
}  // namespace comera::studio
