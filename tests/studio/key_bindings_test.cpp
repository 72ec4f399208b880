// Keys that somebody changes: on the page of the settings, and as they are kept.
#include "app/studio/key_bindings.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/preferences.h"
#include "core/base/json.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

constexpr ImGuiKeyChord kCtrl = ImGuiMod_Ctrl, kShift = ImGuiMod_Shift, kAlt = ImGuiMod_Alt;

TEST(KeyText, ReadsBack) {
  for (int key = ImGuiKey_NamedKey_BEGIN; key < ImGuiKey_GamepadStart; ++key) {
    if (key >= ImGuiKey_LeftCtrl && key <= ImGuiKey_RightSuper) continue;  // only together with others
    for (const ImGuiKeyChord mods : {0, kCtrl, kCtrl | kShift, kAlt | kShift, kCtrl | kShift | kAlt})
      EXPECT_EQ(keys_of_text(key_text(mods | key)), mods | key) << key_text(mods | key);
  }
  EXPECT_EQ(keys_of_text(""), 0);
  EXPECT_EQ(keys_of_text("?"), kShift | ImGuiKey_Slash);
  for (const char* text : {"Ctrl+", "Ctrl", "Hyper+S", "Ctrl+NoSuchKey", "F99", "+"}) EXPECT_FALSE(keys_of_text(text)) << text;
}

TEST(KeyBindings, SwapAndReset) {
  KeyBindings keys;
  EXPECT_EQ(keys.of("run.step"), ImGuiKey_F10);
  EXPECT_EQ(keys.holder("run.step", kCtrl | ImGuiKey_S), "run.checkpoint");
  EXPECT_EQ(keys.holder("run.checkpoint", kCtrl | ImGuiKey_S), "") << "its own";
  EXPECT_EQ(keys.holder("timeline.play", kCtrl | ImGuiKey_S), "") << "in another place";
  EXPECT_EQ(keys.shadowed("timeline.play", kCtrl | ImGuiKey_S), "run.checkpoint");
  keys.swap("run.step", "run.checkpoint");
  EXPECT_EQ(keys.of("run.step"), kCtrl | ImGuiKey_S);
  EXPECT_EQ(keys.of("run.checkpoint"), ImGuiKey_F10);
  keys.reset("run.step");
  EXPECT_EQ(keys.of("run.step"), ImGuiKey_F10);
  EXPECT_EQ(keys.of("run.checkpoint"), kCtrl | ImGuiKey_S) << "who had them gets its own back";
  EXPECT_FALSE(keys.any_changed());
  // Its own may be taken: then it has none.
  keys.swap("run.step", "run.checkpoint");
  keys.bind("run.step", kCtrl | ImGuiKey_G);
  keys.bind("run.drop", kCtrl | ImGuiKey_S);
  keys.reset("run.step");
  EXPECT_EQ(keys.of("run.step"), ImGuiKey_F10);
  EXPECT_EQ(keys.of("run.checkpoint"), 0);
  EXPECT_EQ(keys.of("run.drop"), kCtrl | ImGuiKey_S);
}

TEST(KeyBindings, WhatIsKeptIsMadeSound) {
  KeyBindings keys;
  keys.restore({{"run.step", "Ctrl+S"},        // takes the keys of run.checkpoint, which has none then
                {"run.drop", "Ctrl+G"},        // the later one in the table of ...
                {"view.find", "Ctrl+G"},       // ... two that want the same
                {"run.stop", "no key"},        // is as shipped
                {"file.quit", "Esc"},          // refused
                {"no.such.action", "Ctrl+H"},  // of another version
                {"timeline.play", ""}});       // none
  EXPECT_EQ(keys.of("run.step"), kCtrl | ImGuiKey_S);
  EXPECT_EQ(keys.of("run.checkpoint"), 0);
  EXPECT_EQ(keys.of("run.drop"), kCtrl | ImGuiKey_G);
  EXPECT_EQ(keys.of("view.find"), kCtrl | ImGuiKey_F);
  EXPECT_EQ(keys.of("run.stop"), kShift | ImGuiKey_F5);
  EXPECT_EQ(keys.of("file.quit"), kCtrl | ImGuiKey_Q);
  EXPECT_EQ(keys.of("timeline.play"), 0);
  KeyBindings again;
  again.restore(keys.stored());
  EXPECT_EQ(again.stored(), keys.stored());
}

class KeyPage : public Clicked {
 protected:
  KeyPage() {
    stage_.begin_run(Phase::running);
    frame();
    change_keys(ui());
    frame();
  }
  // Looks for the action, presses its key on the page, then `keys`.
  void give(const std::string& id, ImGuiKeyChord keys) {
    show(id);
    click("key:" + id);
    EXPECT_EQ(ui().dialogs.key_change.action, id);
    frame();
    stage_.press(keys);
  }
  void show(const std::string& id) {
    for (const Action& action : actions(ui()))
      if (action.id == id) ui().dialogs.key_change.search = action.title;
  }
  ImGuiKeyChord keys(const std::string& id) { return ui().settings.keys.of(id); }
  void leave() {
    stage_.press(ImGuiKey_Escape);
    ASSERT_EQ(ui().dialogs.open, Dialog::none);
  }
};

TEST_F(KeyPage, NewKeysActAndOldOnesDoNot) {
  give("run.step", kCtrl | ImGuiKey_G);
  EXPECT_EQ(keys("run.step"), kCtrl | ImGuiKey_G);
  EXPECT_TRUE(sees("says:Ctrl+G now runs: Train one step."));
  EXPECT_TRUE(stage_.script->posted.empty()) << "nothing acts behind the dialog";
  leave();
  stage_.press(ImGuiKey_F10);
  EXPECT_TRUE(stage_.script->posted.empty());
  stage_.press(kCtrl | ImGuiKey_G);
  ASSERT_EQ(stage_.script->posted.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<StepCommand>(stage_.script->posted[0]));
  // Menus, palette and the list of keys are made from the table; tooltips ask by id.
  const std::vector<Action> all = actions(ui());
  const auto step = std::find_if(all.begin(), all.end(), [](const Action& action) { return action.id == "run.step"; });
  ASSERT_NE(step, all.end());
  EXPECT_EQ(step->keys, kCtrl | ImGuiKey_G);
  EXPECT_EQ(with_key(ui().settings.keys, "One step", "run.step"), "One step (Ctrl+G)");
  EXPECT_EQ(with_key(ui().settings.keys, "Stop", "run.drop"), "Stop");
}

TEST_F(KeyPage, KeysOfAnotherActionAreSwappedOnlyWhenAsked) {
  give("run.step", kCtrl | ImGuiKey_S);
  EXPECT_EQ(keys("run.step"), ImGuiKey_F10) << "asked first";
  EXPECT_TRUE(sees("says:Ctrl+S is already assigned to: Checkpoint."));
  click("leave");
  EXPECT_FALSE(ui().settings.keys.any_changed());
  give("run.step", kCtrl | ImGuiKey_S);
  click("swap");
  EXPECT_EQ(keys("run.step"), kCtrl | ImGuiKey_S);
  EXPECT_EQ(keys("run.checkpoint"), ImGuiKey_F10);
  leave();
  stage_.press(ImGuiKey_F10);
  ASSERT_EQ(stage_.script->posted.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<CheckpointCommand>(stage_.script->posted[0]));
}

TEST_F(KeyPage, SomeKeysAreRefused) {
  show("run.step");
  click("key:run.step");
  frame();
  stage_.press(ImGuiKey_Escape);
  EXPECT_EQ(ui().dialogs.open, Dialog::settings) << "Esc only ends the wait for keys";
  EXPECT_TRUE(ui().dialogs.key_change.action.empty());
  for (const ImGuiKeyChord refused : {ImGuiKeyChord(ImGuiKey_Enter), ImGuiKeyChord(ImGuiKey_Space), kCtrl | ImGuiKey_Tab}) {
    give("run.step", refused);
    EXPECT_EQ(keys("run.step"), ImGuiKey_F10) << key_text(refused);
    EXPECT_FALSE(ui().dialogs.key_change.went_well) << key_text(refused);
    EXPECT_EQ(ui().dialogs.open, Dialog::settings);
  }
  give("timeline.axis", kShift | ImGuiKey_Space);
  EXPECT_EQ(keys("timeline.axis"), kShift | ImGuiKey_Space) << "the timeline has such keys";
  // A click ends the wait.
  show("run.step");
  click("key:run.step");
  ASSERT_EQ(ui().dialogs.key_change.action, "run.step");
  click("key:run.step");
  EXPECT_TRUE(ui().dialogs.key_change.action.empty());
  EXPECT_EQ(keys("run.step"), ImGuiKey_F10);
}

TEST_F(KeyPage, OneOrAllBecomeAsShipped) {
  give("run.step", kCtrl | ImGuiKey_G);
  give("run.stop", kCtrl | ImGuiKey_H);
  show("run.checkpoint");
  click("no-key:run.checkpoint");
  EXPECT_EQ(keys("run.checkpoint"), 0);
  show("run.step");
  click("reset-key:run.step");
  EXPECT_EQ(keys("run.step"), ImGuiKey_F10);
  EXPECT_EQ(keys("run.stop"), kCtrl | ImGuiKey_H);
  EXPECT_FALSE(sees("reset-key:run.step")) << "it is as shipped";
  click("reset-keys");
  EXPECT_FALSE(ui().settings.keys.any_changed());
  EXPECT_EQ(keys("run.checkpoint"), kCtrl | ImGuiKey_S);
}

TEST_F(KeyPage, WhatIsElsewhereTooIsSaid) {
  give("timeline.axis", kCtrl | ImGuiKey_S);
  EXPECT_EQ(keys("timeline.axis"), kCtrl | ImGuiKey_S);
  EXPECT_NE(ui().dialogs.key_change.told.find("Checkpoint"), std::string::npos) << ui().dialogs.key_change.told;
}

TEST_F(KeyPage, TheFormComesBeforeTheWindow) {
  give("run.start_form", ImGuiKey_F8);
  EXPECT_EQ(keys("run.toggle"), ImGuiKey_F5);
  leave();
  ui().layout = "new";
  const auto works = [&](const std::string& id) {
    for (const Action& action : actions(ui()))
      if (action.id == id) return action.keys;
    return ImGuiKeyChord(-1);
  };
  EXPECT_EQ(works("run.start_form"), ImGuiKey_F8);
  EXPECT_EQ(works("run.toggle"), ImGuiKey_F5) << "they are two now";
  ui().settings.keys.reset_all();
  EXPECT_EQ(works("run.start_form"), ImGuiKey_F5);
  EXPECT_EQ(works("run.toggle"), 0) << "hidden by the form";
  ui().layout = "train";
  EXPECT_EQ(works("run.start_form"), 0);
  EXPECT_EQ(works("run.toggle"), ImGuiKey_F5);
}

TEST_F(KeyPage, AreKeptWithTheSettings) {
  const test::Folder folder;
  give("run.step", kCtrl | ImGuiKey_G);
  ui().settings.keys.bind("run.stop", 0);
  const std::string file = folder.file("studio.json");
  save_preferences(ui(), file);
  UiState later;
  load_preferences(later, file);
  EXPECT_EQ(later.settings.keys.stored(), ui().settings.keys.stored());
  EXPECT_FALSE(later.rebuild_layout) << "the layout was kept too";
  // They outlive a change of the window's layout.
  Json json = read_json_file(file);
  json["version"] = 1;
  test::write_text(file, json.dump());
  UiState newer;
  load_preferences(newer, file);
  EXPECT_TRUE(newer.rebuild_layout);
  EXPECT_EQ(newer.settings.keys.of("run.step"), kCtrl | ImGuiKey_G);
  EXPECT_EQ(newer.settings.keys.of("run.stop"), 0);
}

TEST(KeyBindings, OfABrokenFileAreAsShipped) {
  Stage stage;
  const test::Folder folder;
  const std::string file = folder.file("studio.json");
  for (const char* text : {"{\"keys\": {\"run.step\": \"Ctrl+G\"", "[]", "", R"({"keys": 3})", R"({"keys": ["Ctrl+G"]})",
                           R"({"keys": {"run.step": 7, "run.stop": null, "file.quit": ["Ctrl+G"]}})"}) {
    test::write_text(file, text);
    UiState ui;
    load_preferences(ui, file);
    EXPECT_FALSE(ui.settings.keys.any_changed()) << text;
  }
  // One bad entry does not take the others with it.
  test::write_text(file, R"({"keys": {"run.step": 7, "run.stop": "Ctrl+G"}, "max_fps": 30})");
  UiState ui;
  load_preferences(ui, file);
  EXPECT_EQ(ui.settings.keys.of("run.stop"), kCtrl | ImGuiKey_G);
  EXPECT_EQ(ui.settings.max_fps, 30);
}

// Also where the text is so large that hardly a word fits into a line.
TEST(KeyPages, NothingIsCutAtAnyScale) {
  for (const float scale : {1.0f, 1.5f, 2.0f, 3.0f})
    for (const bool by_user : {false, true}) {
      Stage stage(by_user ? ImVec2(960, 600) : ImVec2(960 * scale, 600 * scale), scale);
      const auto cut = [&] {
        stage.frames();
        std::vector<std::string> found = stage.overflowing();
        std::erase_if(found, [](const std::string& one) { return one.find("###dialog") == std::string::npos; });
        return found;
      };
      const std::string where = std::to_string(scale) + (by_user ? " by the user" : " by the monitor");
      stage.begin_run(Phase::running);
      open_dialog(stage.ui, Dialog::keys);
      EXPECT_EQ(cut(), std::vector<std::string>{}) << "keys at " << where;
      change_keys(stage.ui);
      stage.ui.dialogs.key_change.wants = "run.step";  // with the question that makes the page longest
      stage.ui.dialogs.key_change.other = "run.checkpoint";
      stage.ui.dialogs.key_change.told = "Ctrl+S is already: Checkpoint.";
      EXPECT_EQ(cut(), std::vector<std::string>{}) << "page at " << where;
    }
}

}  // namespace
}  // namespace comera::studio
