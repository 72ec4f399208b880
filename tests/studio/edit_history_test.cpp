// Edits that are taken back and made again: what is sent, and what menus say of it.
#include "app/studio/shown_run/edit_history.h"

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

// The session did what was posted last: it is an event, as of every edit.
void done(Stage& stage) {
  const EditCommand edit = std::get<EditCommand>(stage.script->posted.back());
  stage.say([&](Snapshot& s) {
    s.last_ticket = stage.script->tickets;
    s.last_ticket_step = ++s.step;
    s.last_refusal.clear();
  });
  stage.script->records.events.push_back(
      {0, stage.script->snapshot->step, "edit", 0, R"({"path": ")" + edit.path + R"(", "value": ")" + edit.value + "\"}"});
  stage.frames(2);
}

const EditCommand& last(const Stage& stage) { return std::get<EditCommand>(stage.script->posted.back()); }

TEST(EditHistory, ARefusedValueLeavesTheOtherEditsOfItsSetting) {
  EditHistory history;
  for (const char* to : {"2", "3"}) history.made({"train.lr", to, "train.lr", "1"}, false);
  history.refused("train.lr", "3");
  ASSERT_TRUE(history.undo());
  EXPECT_EQ(history.undo()->to, "2");
  history.refused("train.wd", "2");
  EXPECT_TRUE(history.undo()) << "another setting";
  history.refused("train.lr", "2");
  EXPECT_FALSE(history.undo());
}

TEST(EditHistory, KeysTakeAnEditBackAndMakeItAgain) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  const double before = stage.ui.config().train.lr_rank;
  EXPECT_EQ(action_of(stage.ui, "run.undo").why_not, "There is no edit to undo");
  stage.press(ImGuiMod_Ctrl | ImGuiKey_Z);
  EXPECT_TRUE(stage.script->posted.empty());
  stage.ui.live->edit("train.lr_rank", "0.5");
  done(stage);
  ASSERT_EQ(stage.ui.config().train.lr_rank, 0.5);
  EXPECT_EQ(action_of(stage.ui, "run.undo").title, "Undo lr_rank 0.001 -> 0.5");
  stage.press(ImGuiMod_Ctrl | ImGuiKey_Z);
  EXPECT_EQ(last(stage).path, "train.lr_rank");
  EXPECT_EQ(std::stod(last(stage).value), before);
  EXPECT_EQ(stage.ui.live->edits().at("train.lr_rank").stage, EditState::pending) << "it waits for a step, as every edit";
  done(stage);
  EXPECT_EQ(stage.ui.config().train.lr_rank, before);
  EXPECT_FALSE(action_of(stage.ui, "run.undo").why_not.empty());
  EXPECT_EQ(action_of(stage.ui, "run.redo").title, "Redo lr_rank 0.001 -> 0.5");
  stage.press(ImGuiMod_Ctrl | ImGuiKey_Y);
  EXPECT_EQ(last(stage).value, "0.5");
  done(stage);
  EXPECT_EQ(stage.ui.config().train.lr_rank, 0.5);
  EXPECT_EQ(stage.ui.shown().edits.size(), 3u) << "each of them is an event";
  stage.press(ImGuiMod_Ctrl | ImGuiKey_Z);
  done(stage);
  stage.ui.live->edit("method.comera.threshold", "0.05");
  done(stage);
  EXPECT_FALSE(action_of(stage.ui, "run.redo").why_not.empty()) << "a new edit ends what could be made again";
}

// The session did what was posted last, and its step: another stage is an event of its own.
void switched(Stage& stage) {
  const EditCommand edit = std::get<EditCommand>(stage.script->posted.back());
  ASSERT_EQ(edit.path, "stage");
  stage.say([&](Snapshot& s) {
    s.last_ticket = stage.script->tickets;
    s.last_ticket_step = s.step + 1;
    s.last_refusal.clear();
  });
  stage.frames(2);
  EXPECT_TRUE(stage.ui.live->switches_stage()) << "until its step";
  stage.say([&](Snapshot& s) {
    ++s.step;
    s.late = edit.value == "late";
  });
  stage.script->records.events.push_back(
      {0, stage.script->snapshot->step, "stage", 0, R"({"stage": ")" + edit.value + R"(", "reason": "command", "entries": 1000})"});
  stage.frames(2);
}

TEST(EditHistory, ASwitchOfTheStageIsTakenBack) {
  Stage stage;
  stage.begin_run(Phase::running, 400);
  stage.frames();
  ASSERT_FALSE(stage.ui.snapshot().late);
  stage.ui.live->edit("stage", "late");
  switched(stage);
  EXPECT_TRUE(stage.ui.snapshot().late);
  EXPECT_EQ(stage.ui.shown().marks.back().kind, Mark::late_stage);
  EXPECT_EQ(action_of(stage.ui, "run.undo").title, "Undo stage early -> late");
  stage.press(ImGuiMod_Ctrl | ImGuiKey_Z);
  EXPECT_EQ(last(stage).path, "stage");
  EXPECT_EQ(last(stage).value, "early");
  switched(stage);
  EXPECT_FALSE(stage.ui.live->switches_stage());
  EXPECT_EQ(stage.ui.shown().marks.back().kind, Mark::early_stage);
  EXPECT_EQ(stage.ui.shown().marks.back().text, "early stage again");
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  stage.press(ImGuiMod_Ctrl | ImGuiKey_Y);
  EXPECT_EQ(last(stage).value, "late");
  switched(stage);
  EXPECT_EQ(stage.ui.shown().marks.back().kind, Mark::late_stage);
  EXPECT_EQ(stage.ui.shown().late_entries, 1000);
}

// A slider posts many values on its way: they are one change.
TEST(EditHistory, WhatASliderPassesIsOneChange) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  LiveRun& run = *stage.ui.live;
  run.edit("method.comera.loss_target", "0.7");
  done(stage);
  run.edit("method.comera.loss_target", "0.6", true);
  done(stage);
  run.edit("method.comera.loss_target", "0.5", true);
  done(stage);
  const size_t posted = stage.script->posted.size();
  run.edit("method.comera.loss_target", "0.5", true);
  EXPECT_EQ(stage.script->posted.size(), posted) << "let go where it stood: nothing new";
  EXPECT_EQ(text_of(*run.history().undo()), "loss_target 0.8 -> 0.5");
  undo_edit(stage.ui);
  EXPECT_EQ(last(stage).value, "0.8");
  EXPECT_EQ(run.history().undo(), nullptr);
  // Two changes one after the other, before the first one is in force.
  done(stage);
  run.edit("method.comera.loss_target", "0.4");
  run.edit("method.comera.loss_target", "0.3");
  EXPECT_EQ(text_of(*run.history().undo()), "loss_target 0.4 -> 0.3");
}

// One size target unsets the others, so it is taken back by setting the one that was in force.
TEST(EditHistory, ATargetInAnotherUnitIsTakenBackAsWhole) {
  RunConfig config;
  const Snapshot s = a_snapshot(Phase::running, 900);
  const EditChange change = inverse_of(config, s, "method.comera.target_mib", "2");
  EXPECT_EQ(change.back_path, "method.comera.target");
  EXPECT_EQ(change.back, "0.8");
  EXPECT_EQ(text_of(change), "target 0.8 -> target_mib 2");
  RunConfig after = config;
  RankOverrides overrides;
  apply_edit(after, overrides, change.path, change.to);
  ASSERT_EQ(after.method.comera.target, 0);
  apply_edit(after, overrides, change.back_path, change.back);
  EXPECT_EQ(after.method.comera.target, config.method.comera.target);
  EXPECT_EQ(after.method.comera.target_mib, 0);
}

TEST(EditHistory, CapsAndWeightsAndWhatIsNoChange) {
  RunConfig config;
  const Snapshot s = a_snapshot(Phase::running, 900);  // bond 2 is capped at 14
  EXPECT_EQ(inverse_of(config, s, "rank.cap.enc0.attn.q.2", "10").back, "14");
  EXPECT_EQ(inverse_of(config, s, "rank.cap.enc0.attn.q.1", "10").back, "null");
  EXPECT_EQ(inverse_of(config, s, "rank.weight.enc1.attn.q", "0").back, "null");
  EXPECT_EQ(text_of(inverse_of(config, s, "rank.cap.enc0.attn.q.1", "10")), "cap of enc0.attn.q.1 none -> 10");
  EXPECT_EQ(inverse_of(config, s, "rank.cap.enc0.attn.q.2", "14").back_path, "");
  EXPECT_EQ(inverse_of(config, s, "method.comera.target", "0.8").back_path, "") << "it is so already";
  EXPECT_EQ(inverse_of(config, s, "method.comera.target", "70").back_path, "") << "it will be refused";
  EXPECT_EQ(inverse_of(config, s, "method.comera.hold_at_target", "false").back, "true");
}

TEST(EditHistory, WhatWasRefusedCannotBeTakenBack) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  stage.ui.live->edit("rank.cap.enc0.attn.q.1", "10");
  stage.say([&](Snapshot& s) {
    s.last_ticket = stage.script->tickets;
    s.last_refusal = "no";
  });
  stage.frames(2);
  EXPECT_EQ(stage.ui.live->history().undo(), nullptr);
}

TEST(EditHistory, NothingIsChangedWhileThePastIsShown) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  stage.ui.live->edit("train.lr_rank", "0.5");
  done(stage);
  stage.ui.timeline.snapshot = stage.script->snapshot;
  const size_t posted = stage.script->posted.size();
  EXPECT_EQ(action_of(stage.ui, "run.undo").why_not, "Not during replay");
  undo_edit(stage.ui);
  EXPECT_EQ(stage.script->posted.size(), posted);
}

}  // namespace
}  // namespace comera::studio
