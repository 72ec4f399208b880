// The table of actions, and keys that act through it.
#include "app/studio/action_table.h"

#include <map>
#include <set>

#include "app/studio/actions.h"
#include "tests/store/support.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

TEST(ActionTable, IdsAndKeysAreUnique) {
  for (const Phase phase : {Phase::idle, Phase::running, Phase::paused, Phase::finished})
    for (const Layout& layout : layouts()) {
      Stage stage;
      if (phase != Phase::idle) stage.begin_run(phase);
      choose_layout(stage.ui, layout.name);
      EXPECT_STREQ(chosen_layout(stage.ui), layout.name);
      std::set<std::string> ids;
      std::map<std::pair<KeyScope, ImGuiKeyChord>, std::string> keys;
      for (const Action& action : actions(stage.ui)) {
        EXPECT_TRUE(ids.insert(action.id).second) << action.id;
        EXPECT_FALSE(action.title.empty()) << action.id;
        EXPECT_TRUE(action.act) << action.id;
        if (action.keys == 0) continue;
        EXPECT_TRUE(keys.emplace(std::pair(action.scope, action.keys), action.id).second)
            << key_text(action.keys) << " means " << keys[std::pair(action.scope, action.keys)] << " and " << action.id;
        EXPECT_FALSE(key_text(action.keys).empty()) << action.id;
      }
      EXPECT_GT(keys.size(), 15u);
    }
}

TEST(ActionTable, KeysHaveNames) {
  EXPECT_EQ(key_text(0), "");
  EXPECT_EQ(key_text(ImGuiMod_Ctrl | ImGuiKey_S), "Ctrl+S");
  EXPECT_EQ(key_text(ImGuiMod_Shift | ImGuiKey_F5), "Shift+F5");
  EXPECT_EQ(key_text(ImGuiMod_Ctrl | ImGuiKey_Equal), "Ctrl+=");
  EXPECT_EQ(key_text(ImGuiMod_Shift | ImGuiKey_Slash), "?");
}

TEST(ActionTable, KeysCommandTheRun) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  stage.press(ImGuiKey_F5);
  ASSERT_EQ(stage.script->posted.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<PauseCommand>(stage.script->posted[0]));
  stage.press(ImGuiMod_Shift | ImGuiKey_F5);
  EXPECT_TRUE(std::holds_alternative<StopCommand>(stage.script->posted.back()));
}

TEST(ActionTable, AForkIsPutBesideItsParent) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  EXPECT_NE(action_of(stage.ui, "run.compare-parent").why_not, "");
  stage.script->records.events.push_back({0, 0, "start", 0, R"({"parent": "r-older", "fork_step": 20})"});
  for (const char* run : {"r-a", "r-b"}) pick_run(stage.ui.compare, run);
  stage.frames();
  const Action action = action_of(stage.ui, "run.compare-parent");
  ASSERT_EQ(action.why_not, "");
  action.act(stage.ui);
  EXPECT_EQ(stage.ui.layout, "compare");
  ASSERT_EQ(stage.ui.compare.runs.size(), 2u);
  EXPECT_EQ(stage.ui.compare.baseline_run()->wanted, "r-older");
  EXPECT_EQ(stage.ui.compare.runs[1]->wanted, stage.ui.shown().snapshot->run);
}

TEST(ActionTable, WhatCannotBeDoneSaysWhyAndDoesNothing) {
  Stage stage;
  stage.frames();
  for (const char* id : {"run.step", "run.checkpoint", "run.stop", "run.drop", "timeline.play"})
    EXPECT_FALSE(action_of(stage.ui, id).why_not.empty()) << id;
  stage.press(ImGuiKey_F10);
  stage.press(ImGuiMod_Ctrl | ImGuiKey_S);
  stage.press(ImGuiMod_Shift | ImGuiKey_F5);
  EXPECT_TRUE(stage.script->posted.empty());
}

// States of the window in which actions are called, by name.
const std::map<std::string, std::function<void(Stage&)>>& window_states() {
  static const auto kStates = [] {
    std::map<std::string, std::function<void(Stage&)>> states;
    states["empty"] = [](Stage&) {};
    for (const Phase phase : {Phase::preparing, Phase::running, Phase::pausing, Phase::paused, Phase::stopping, Phase::finished,
                              Phase::stopped, Phase::interrupted, Phase::failed, Phase::diverged})
      states[name_of(phase)] = [phase](Stage& stage) { stage.begin_run(phase, 20); };
    states["no_steps"] = [](Stage& stage) { stage.begin_run(Phase::running, 0); };
    states["past"] = [](Stage& stage) {
      stage.begin_run(Phase::running, 20);
      stage.ui.timeline.snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 10));
    };
    const auto stored = [](Stage& stage) {
      stage.ui.stored = std::make_shared<RunView>();
      stage.ui.stored->snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::stopped, 20));
      stage.ui.show_stored = true;
    };
    states["stored"] = stored;
    states["stored_in_front"] = [stored](Stage& stage) {
      stage.begin_run(Phase::running, 20);
      stored(stage);
    };
    states["read_only"] = [](Stage& stage) {
      RunList list;
      list.loaded = true;
      list.read_only = "the file may not be written";
      stage.ui.runs = std::make_shared<const RunList>(list);
      stage.ui.store_path = "there-is-no-such-store";
    };
    states["compared"] = [](Stage& stage) {
      for (const char* run : {"r-a", "r-b"}) pick_run(stage.ui.compare, run);
    };
    return states;
  }();
  return kStates;
}

std::vector<std::string> names_of_states() {
  std::vector<std::string> names;
  for (const auto& [name, state] : window_states()) names.push_back(name);
  return names;
}

class EveryAction : public testing::TestWithParam<std::string> {};

TEST_P(EveryAction, CanBeCalled) {
  const std::string& name = GetParam();
  Stage stage;
  UiState& ui = stage.ui;
  std::set<std::string> called;
  for (const std::string page : {"start", "new", "train", "compare"}) {
    // Elsewhere a run shows little of its state.
    if (page != "train" && name != "empty" && name != "running" && !(page == "compare" && name == "compared")) continue;
    const auto reset = [&] {
      ui.live.reset();
      ui.ending.clear();
      ui.stored.reset();
      ui.show_stored = ui.close_requested = ui.quit = ui.exports.open = ui.full_screen = false;
      ui.timeline = {};
      ui.compare = {};
      ui.dialogs.open = Dialog::none;
      ui.toasts.clear();
      window_states().at(name)(stage);
      ui.layout = page;
      stage.script->posted.clear();
    };
    reset();
    for (const Action& listed : actions(ui)) {
      if (!called.insert(page + listed.id + (listed.why_not.empty() ? "" : " not")).second) continue;
      reset();
      const Action action = action_of(ui, listed.id);
      SCOPED_TRACE(page + " " + action.id);
      if (action.why_not.empty()) {
        perform(ui, action.id);
        if (page == "train") stage.frames(1);
        continue;
      }
      action.act(ui);
      EXPECT_TRUE(stage.script->posted.empty());
      EXPECT_FALSE(ui.close_requested || ui.timeline.playing);
      EXPECT_EQ(ui.dialogs.open, Dialog::none);
      EXPECT_EQ(ui.layout, page);
      const std::string error = test::error_of([&] { perform(ui, action.id); });
      EXPECT_TRUE(test::has(error, {test::code(ErrorCode::usage) + "cannot do '" + action.id + "'|" + action.why_not + "|", "--help"}));
      EXPECT_TRUE(stage.script->posted.empty());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(States, EveryAction, testing::ValuesIn(names_of_states()), [](const auto& info) { return info.param; });

TEST(ActionTable, AnUnknownActionIsAnError) {
  Stage stage;
  EXPECT_TRUE(test::has(test::error_of([&] { perform(stage.ui, "run.stpe"); }), {test::code(ErrorCode::usage), "run.stpe"}));
}

TEST(ActionTable, KeysSwitchLayoutsAndScale) {
  Stage stage;
  stage.frames();
  for (const auto& [key, name] : {std::pair(ImGuiKey_1, "train"),
                                  {ImGuiKey_2, "analyse"},
                                  {ImGuiKey_3, "compare"},
                                  {ImGuiKey_4, "replay"},
                                  {ImGuiKey_N, "new"},
                                  {ImGuiKey_R, "start"}}) {
    stage.press(ImGuiMod_Ctrl | key);
    EXPECT_STREQ(chosen_layout(stage.ui), name);
  }
  stage.press(ImGuiMod_Ctrl | ImGuiKey_Equal);
  EXPECT_FLOAT_EQ(stage.ui.settings.user_scale, 1.1f);
  stage.press(ImGuiMod_Ctrl | ImGuiKey_0);
  EXPECT_FLOAT_EQ(stage.ui.settings.user_scale, 1);
}

// Train, Analyse and Replay are the same panels in other places.
TEST(Layouts, ArrangeThePanelsAndStayAsTheyWereLeft) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  const auto place = [](const char* name) {
    const ImGuiWindow* window = ImGui::FindWindowByName(name);
    return window && window->DockNode ? window->DockNode->ID : 0;
  };
  const char *ranks = "Ranks###ranks", *tt = "Tensor trains###tt", *metrics = "Metrics###metrics", *controls = "Live controls###controls";
  EXPECT_EQ(place(metrics), place(tt)) << "tabs";
  EXPECT_NE(place(ranks), place(metrics));
  choose_layout(stage.ui, "analyse");
  stage.frames();
  EXPECT_EQ(place(metrics), place(ranks));
  EXPECT_NE(place(tt), place(ranks)) << "beside each other";
  EXPECT_NE(place(controls), place(ranks));
  choose_layout(stage.ui, "replay");
  stage.frames();
  EXPECT_NE(place(metrics), place(ranks));
  EXPECT_NE(place(tt), place(ranks));
  // Somebody moves a panel: choosing what is chosen already, or coming back from a page, changes nothing.
  const char* profile = "Profile###profile";
  ASSERT_EQ(place(profile), place(metrics));
  ImGui::DockContextQueueDock(ImGui::GetCurrentContext(), nullptr, ImGui::DockBuilderGetNode(place(tt)), ImGui::FindWindowByName(profile),
                              ImGuiDir_None, 0, false);
  stage.frames();
  ASSERT_EQ(place(profile), place(tt));
  choose_layout(stage.ui, "start");
  stage.frames();
  choose_layout(stage.ui, "replay");
  stage.frames();
  EXPECT_EQ(place(profile), place(tt));
  stage.ui.rebuild_layout = true;  // Reset layout
  stage.frames();
  EXPECT_EQ(place(profile), place(metrics));
}

TEST(ActionTable, CtrlTabGoesFromPanelToPanel) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  ImGui::FocusWindow(ImGui::FindWindowByName("Metrics###metrics"));
  stage.frames(2);
  std::set<std::string> visited;
  for (int i = 0; i < 3; ++i) {
    stage.press(ImGuiMod_Ctrl | ImGuiKey_Tab);
    const ImGuiWindow* front = ImGui::GetCurrentContext()->NavWindow;
    ASSERT_NE(front, nullptr);
    visited.insert(front->RootWindow->Name);
  }
  EXPECT_GE(visited.size(), 2u);
}

TEST(ActionTable, APictureNeedsAWindow) {
  Stage stage;
  stage.frames();
  stage.press(ImGuiKey_F12);
  EXPECT_EQ(stage.ui.exports.screenshot_in, 0);
  ASSERT_EQ(stage.ui.toasts.size(), 1u) << "it says why not";
  stage.ui.exports.can_read_pixels = true;
  stage.press(ImGuiKey_F12);
  EXPECT_GT(stage.ui.exports.screenshot_in, 0);
  EXPECT_TRUE(stage.ui.busy()) << "frames are drawn till it is taken";
  EXPECT_EQ(key_text(ImGuiKey_F12), "F12");
}

// Letters go to the text field that has the keyboard; keys that make no character act all the same.
TEST(ActionTable, LettersAreTextWhileSomebodyTypes) {
  Stage stage;
  stage.ui.store = std::make_unique<StoreClient>("there-is-no-such-store", std::function<void()>{});  // the run has a past
  stage.ui.store_path = "there-is-no-such-store";
  stage.begin_run(Phase::running);
  char text[32] = "";
  bool focus = true;
  stage.extra = [&] {
    ImGui::Begin("writing");
    if (std::exchange(focus, false)) ImGui::SetKeyboardFocusHere();
    ImGui::InputText("##text", text, sizeof text);
    ImGui::End();
  };
  stage.frames();
  stage.ui.timeline.playing = true;  // `L`, back to the newest step, ends this
  stage.ui.timeline.wanted = 5;
  ASSERT_TRUE(ImGui::GetIO().WantTextInput);
  stage.press(ImGuiKey_L, 'l');
  EXPECT_TRUE(stage.ui.timeline.playing);
  EXPECT_STREQ(text, "l");
  stage.press(ImGuiKey_F5);
  EXPECT_EQ(stage.script->posted.size(), 1u);
  ImGui::ClearActiveID();
  stage.frames();
  stage.press(ImGuiKey_L, 'l');
  EXPECT_EQ(stage.ui.timeline.wanted, -1) << "without a text field the key acts";
}

// What waits for an answer stays, and comes back when there is room; what was wrong is in the log too.
TEST(Toasts, ErrorsAreNotLost) {
  Stage stage;
  for (const char* text : {"a", "b", "c", "d", "b"}) toast(stage.ui, Level::error, text);
  for (int i = 0; i < 5; ++i) toast(stage.ui, Level::info, "passing " + std::to_string(i));
  stage.frames();
  std::string errors;
  for (const Toast& one : stage.ui.toasts)
    if (one.level == Level::error) errors += one.text;
  EXPECT_EQ(errors, "acdb") << "each once, the newest last";
  EXPECT_EQ(stage.ui.toasts.size(), 5u) << "of what goes by itself the newest";
  EXPECT_EQ(stage.ui.window_log.size(), 5u);
  stage.ui.layout = "train";
  stage.ui.front_panel = "log";
  stage.frames(3);
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
}

TEST(Toasts, OfThoseThatPassTheNewestAreKept) {
  Stage stage;
  for (int i = 1; i <= 5; ++i) toast(stage.ui, Level::info, "passing " + std::to_string(i));
  ASSERT_EQ(stage.ui.toasts.size(), kToastsShown);
  EXPECT_EQ(stage.ui.toasts.front().text, "passing 3");
  EXPECT_EQ(stage.ui.toasts.back().text, "passing 5");
}

// A dialog in front has all keys.
TEST(ActionTable, NoKeyActsBehindADialog) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.ui.close_requested = true;
  stage.frames();
  stage.press(ImGuiKey_F5);
  stage.press(ImGuiMod_Ctrl | ImGuiKey_R);
  EXPECT_TRUE(stage.script->posted.empty());
  EXPECT_EQ(stage.ui.layout, "train");
}

}  // namespace
}  // namespace comera::studio
