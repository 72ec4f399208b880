// The keyboard alone: a session from the first screen to its end, every panel and every dialog, and not one mouse event.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/frame.h"
#include "app/studio/panels.h"
#include "app/studio/parts/named_items.h"
#include "core/base/json.h"
#include "core/store/run_reader.h"
#include "core/store/run_writer.h"
#include "tests/store/support.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

constexpr const char* kTarget = "method.comera.target";

class Keyboard : public StoreStage {
 protected:
  Keyboard() {
    collect_items(&items_);
    ui().store_path = store_;
    ui().store = std::make_unique<StoreClient>(store_, [] {});
    ui().open_session = start_session;
    ui().sets = {"train.threads=1", "train.eval_every=50", "method.comera.late_after=5", "train.max_steps_per_s=0"};
  }
  ~Keyboard() override {
    EXPECT_FALSE(ImGui::IsMousePosValid()) << "nobody touched the mouse";
    collect_items(nullptr);
  }

  void frames(int count = 1) {
    for (int i = 0; i < count; ++i) {
      items_.clear();
      stage_->frames(1);
    }
  }
  void press(ImGuiKeyChord keys, unsigned character = 0) {
    stage_->press(keys, character);
    frames(2);
  }
  static const ImGuiContext& context() { return *ImGui::GetCurrentContext(); }

  // What has the keyboard, by its name; its ids are hashes of it.
  std::string focused() const {
    const ImGuiWindow* window = context().NavWindow;
    if (!window || context().NavId == 0 || !context().NavCursorVisible) return "";  // what is not shown cannot be pressed
    const ImRect rect = ImGui::WindowRectRelToAbs(const_cast<ImGuiWindow*>(window), window->NavRectRel[context().NavLayer]);
    const ImVec2 middle = rect.GetCenter();
    const NamedItem* best = nullptr;
    const auto area = [](const NamedItem& item) { return (item.high.x - item.low.x) * (item.high.y - item.low.y); };
    for (const NamedItem& item : items_)
      if (!item.name.starts_with("says:") && !item.name.starts_with("tip:") && ImRect(item.low, item.high).Contains(middle) &&
          std::abs(item.high.x - item.low.x - rect.GetWidth()) < 2 && (!best || area(item) < area(*best)))
        best = &item;
    return best ? best->name : "";
  }
  static std::string window() {
    const ImGuiWindow* root = context().NavWindow ? context().NavWindow->RootWindow : nullptr;
    return root ? root->Name : "";
  }

  // Ctrl stays down and Tab is pressed until this window is chosen; false: it never is.
  bool to_window(const std::string& name) {
    ImGuiIO& io = ImGui::GetIO();
    io.AddKeyEvent(ImGuiMod_Ctrl, true);
    frames(1);
    bool found = false;
    reached_.clear();
    for (int i = 0; i < 40 && !found; ++i) {
      for (const bool down : {true, false}) {
        io.AddKeyEvent(ImGuiKey_Tab, down);
        frames(2);
      }
      const ImGuiWindow* target = context().NavWindowingTarget;
      if (target) reached_.push_back(target->Name);
      found = target && target->Name == name;
    }
    io.AddKeyEvent(ImGuiMod_Ctrl, false);
    frames(4);
    return found && window() == name;
  }

  // Tab until this has the keyboard; false: it never gets it.
  bool to(const std::string& name) {
    passed_.clear();
    for (int i = 0; i < 120; ++i) {
      if (focused().starts_with(name)) return true;
      press(ImGuiKey_Tab);
      passed_.push_back(focused());
    }
    return false;
  }
  std::string passed() const { return Json(passed_).dump() + " in " + window() + ", windows " + Json(reached_).dump(); }

  void find_action(const std::string& title) {  // in the palette
    press(ImGuiMod_Ctrl | ImGuiKey_P);
    ASSERT_EQ(ui().dialogs.open, Dialog::palette) << title;
    stage_->type(title);
    press(ImGuiKey_Enter);
    ASSERT_NE(ui().dialogs.open, Dialog::palette) << title << " was not found, or cannot act";
  }
  const Snapshot& newest() { return *ui().live->view().snapshot; }
  bool reaches(Phase phase) {
    return until([&] { return ui().live && newest().phase == phase; });
  }

  std::vector<NamedItem> items_;
  std::vector<std::string> passed_, reached_;
};

TEST_F(Keyboard, ASessionWithoutAMouse) {
  frames(4);
  ASSERT_TRUE(to("Run the demo")) << passed();
  press(ImGuiKey_Enter);
  ASSERT_TRUE(reaches(Phase::running)) << (ui().toasts.empty() ? std::string("no toast") : ui().toasts[0].text) << " "
                                       << (ui().live ? name_of(newest().phase) : "no run") << " at " << (ui().live ? newest().step : -1);
  ASSERT_TRUE(until([&] { return newest().late; }));

  // The size target: a press takes the slider, arrows move it.
  ASSERT_TRUE(to_window("Live controls###controls")) << passed();
  ASSERT_TRUE(to(kTarget)) << passed();
  ASSERT_EQ(focused(), kTarget);
  const double before = ui().config().method.comera.target;
  press(ImGuiKey_Enter);
  for (int i = 0; i < 5; ++i) press(ImGuiKey_LeftArrow);
  press(ImGuiKey_Enter);
  ASSERT_TRUE(until([&] { return ui().config().method.comera.target < before; })) << before;
  // And the field beside it.
  ASSERT_TRUE(to(std::string(kTarget) + ":value")) << passed();
  press(ImGuiMod_Ctrl | ImGuiKey_A);
  stage_->type("0.4");
  press(ImGuiKey_Enter);
  ASSERT_TRUE(until([&] { return ui().config().method.comera.target == 0.4; }));

  press(ImGuiKey_F5);
  ASSERT_TRUE(reaches(Phase::paused));
  const int64_t step = newest().step;
  press(ImGuiKey_F10);
  ASSERT_TRUE(until([&] { return newest().phase == Phase::paused && newest().step == step + 1; }));
  press(ImGuiMod_Ctrl | ImGuiKey_S);
  ASSERT_TRUE(until([&] { return newest().last_checkpoint_step == step + 1; }));

  // Into every panel and out again, from wherever Tab has led in it; the bars too.
  std::vector<std::string> windows;
  for (const Panel& panel : panels()) windows.push_back(window_name(panel));
  windows.insert(windows.end(), {"##transport", "##timeline", "##status"});
  for (const std::string& name : windows) {
    EXPECT_TRUE(to_window(name)) << name << ": " << passed();
    for (int i = 0; i < 7; ++i) press(ImGuiKey_Tab);
    EXPECT_EQ(window(), name) << "Tab stays in it";
    EXPECT_NE(context().NavId, 0u) << "and something has the keyboard in " << name;
  }

  // Replay: a step back in the timeline, on the spot or from a panel; and to the newest step again.
  ASSERT_TRUE(to_window("##timeline"));
  press(ImGuiMod_Shift | ImGuiKey_LeftArrow);
  ASSERT_TRUE(until([&] { return ui().replaying(); }));
  EXPECT_EQ(ui().snapshot().step, step - 9);
  ASSERT_TRUE(to_window("Metrics###metrics"));
  press(ImGuiKey_L, 'l');
  EXPECT_FALSE(ui().replaying());
  press(ImGuiKey_LeftBracket, '[');
  ASSERT_TRUE(to_window("##timeline"));
  press(ImGuiKey_LeftArrow);
  ASSERT_TRUE(until([&] { return ui().replaying(); }));

  // A run from there; the one before ends with its checkpoint.
  const std::string parent = newest().run;
  const int64_t at = ui().snapshot().step;
  find_action("Fork from step");
  ASSERT_TRUE(until([&] { return ui().live && !newest().run.empty() && newest().run != parent; }));
  ASSERT_TRUE(until([&] { return newest().phase == Phase::running && newest().step > at; }));

  // Quitting asks; the answer is a press.
  const std::string child = newest().run;
  press(ImGuiMod_Ctrl | ImGuiKey_Q);
  ASSERT_TRUE(to("Checkpoint and quit")) << passed();
  press(ImGuiKey_Enter);
  ASSERT_TRUE(until([&] { return ui().quit; }));
  ui().live.reset();
  const RunReader reader(store_);
  EXPECT_EQ(reader.run(child).status, "stopped");
  EXPECT_EQ(reader.run(child).parent, parent);
  EXPECT_EQ(reader.run(child).fork_step, at);
  EXPECT_EQ(reader.run(parent).status, "stopped");
}

// Each dialog takes the keyboard, keeps it among its own controls, and gives it back with Esc, also out of a text field.
TEST_F(Keyboard, EveryDialogOpensAndCloses) {
  stage_->begin_run(Phase::paused);
  frames(4);
  ASSERT_TRUE(to_window("Live controls###controls"));
  const std::string home = window();
  const auto closes = [&](const char* name) {
    const ImGuiWindow* modal = ImGui::GetTopMostPopupModal();
    ASSERT_NE(modal, nullptr) << name;
    for (int i = 0; i < 5; ++i) press(ImGuiKey_Tab);
    EXPECT_EQ(context().NavWindow ? context().NavWindow->RootWindow : nullptr, modal) << name << " keeps the keyboard";
    for (int i = 0; i < 3 && ImGui::GetTopMostPopupModal(); ++i) press(ImGuiKey_Escape);
    EXPECT_EQ(ImGui::GetTopMostPopupModal(), nullptr) << name;
    EXPECT_EQ(window(), home) << "after " << name << " the keyboard is where it was";
  };
  const std::pair<const char*, ImGuiKeyChord> keys[] = {
      {"palette", ImGuiMod_Ctrl | ImGuiKey_P},      {"keys", ImGuiMod_Shift | ImGuiKey_Slash}, {"browser", ImGuiMod_Ctrl | ImGuiKey_O},
      {"settings", ImGuiMod_Ctrl | ImGuiKey_Comma}, {"run to", ImGuiMod_Ctrl | ImGuiKey_F10},  {"export", ImGuiMod_Ctrl | ImGuiKey_E},
      {"quit", ImGuiMod_Ctrl | ImGuiKey_Q}};
  for (const auto& [name, chord] : keys) {
    press(chord);
    closes(name);
  }
  for (const char* title : {"About CoMERA Studio", "Change keys"}) {
    find_action(title);
    closes(title);
  }
  for (const Dialog dialog : {Dialog::edit_runs, Dialog::purge_runs, Dialog::no_device, Dialog::salvage}) {  // of lists and of troubles
    open_dialog(ui(), dialog);
    frames(3);
    if (ui().dialogs.open == dialog) closes(("dialog " + std::to_string(static_cast<int>(dialog))).c_str());
  }
}

// Alt leads to the menus and back; so does Esc. With another key it is no way there.
TEST_F(Keyboard, AltLeadsToTheMenus) {
  stage_->begin_run(Phase::paused);
  frames(4);
  ASSERT_TRUE(to_window("Live controls###controls"));
  const std::string home = window(), bar = "##MainMenuBar";
  const auto alt = [&](ImGuiKey with = ImGuiKey_None) {
    ImGuiIO& io = ImGui::GetIO();
    for (const bool down : {true, false}) {
      io.AddKeyEvent(ImGuiKey_LeftAlt, down);
      io.AddKeyEvent(ImGuiMod_Alt, down);
      frames(2);
      if (!down || with == ImGuiKey_None) continue;
      for (const bool other : {true, false}) {
        io.AddKeyEvent(with, other);
        frames(1);
      }
    }
    frames(2);
  };
  alt();
  EXPECT_EQ(window(), bar);
  EXPECT_NE(context().NavId, 0u);
  EXPECT_TRUE(context().NavCursorVisible);
  alt();
  EXPECT_EQ(window(), home);
  alt();
  press(ImGuiKey_Escape);
  EXPECT_EQ(window(), home);
  alt(ImGuiKey_F7);
  EXPECT_EQ(window(), home);
  // The second menu, its first entry that is there; closing it leads back.
  alt();
  press(ImGuiKey_RightArrow);
  press(ImGuiKey_DownArrow);
  EXPECT_EQ(context().OpenPopupStack.Size, 1);
  press(ImGuiKey_Escape);
  EXPECT_EQ(context().OpenPopupStack.Size, 0);
  EXPECT_EQ(window(), home);
}

// The Menu key opens the menu of what has the keyboard: of a run in the list.
TEST_F(Keyboard, TheMenuKeyOpensMenus) {
  { const RunWriter kept(store_, test::start_of("kept"), test::quick()); }
  ASSERT_TRUE(until([&] { return ui().store->runs()->rows.size() == 1; }));
  const auto offered = [&] {
    return std::any_of(items_.begin(), items_.end(), [](const NamedItem& item) { return item.name == "baseline"; });
  };
  frames(3);
  ImGuiWindow* table = nullptr;
  for (ImGuiWindow* one : context().Windows)
    if (one->WasActive && std::string(one->Name).find("/runs_") != std::string::npos) table = one;
  ASSERT_NE(table, nullptr);
  ImGui::FocusWindow(table);
  for (int i = 0; i < 5 && !offered(); ++i) {
    press(ImGuiKey_DownArrow);
    press(ImGuiKey_Menu);
  }
  ASSERT_TRUE(offered());
  press(ImGuiKey_Escape);
  EXPECT_EQ(context().OpenPopupStack.Size, 0);
}

// The pages without panels: Tab comes by what can be pressed.
TEST_F(Keyboard, ThePages) {
  frames(4);
  for (const char* name : {"Run the demo", "Settings ..."}) EXPECT_TRUE(to(name)) << passed();
  press(ImGuiMod_Ctrl | ImGuiKey_N);
  ASSERT_TRUE(until([&] { return ui().form.all_looked() || !ui().form.problem.empty(); }));
  frames(3);
  EXPECT_TRUE(to("start-run")) << passed();
  press(ImGuiMod_Ctrl | ImGuiKey_3);
  EXPECT_EQ(ui().layout, "compare");
  press(ImGuiMod_Ctrl | ImGuiKey_R);
  EXPECT_EQ(ui().layout, "start");
}

}  // namespace
}  // namespace comera::studio
