// What a view of a run keeps of its records: what was taken back goes, what came back is said.
#include "app/studio/shown_run/run_view.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace comera::studio {
namespace {

// A resumed run takes back what came after the checkpoint it goes on from.
TEST(RunViewTest, AResumeTakesBackWhatCameLater) {
  RunView view;
  Snapshot s;
  s.step = 50;
  Records records;
  for (int64_t step = 1; step <= 50; ++step) records.add(step, {{"train_loss", 1}});
  records.add(50, {{"val_loss", 0.5}});
  records.ranks = {{0, "a", 1, 30}, {0, "a", 2, 30}, {20, "a", 1, 25}, {40, "a", 2, 10}};
  records.events = {{0, 0, "start", 0, "{}"},
                    {1, 25, "checkpoint", 0, "{}"},
                    {2, 41, "edit", 0, R"({"path": "train.lr_rank", "value": "0.5"})"},
                    {3, 45, "stage", 0, R"({"reason": "command", "entries": 7})"}};
  view.take(std::make_shared<const Snapshot>(s), records);
  EXPECT_EQ(view.drops.size(), 2u);
  EXPECT_EQ(view.rank_drops.size(), 2u);
  EXPECT_EQ(view.config.train.lr_rank, 0.5);
  EXPECT_EQ(view.marks.size(), 4u);
  EXPECT_EQ(view.metric("val_loss").size(), 1u);
  s.step = 26;
  Records again;
  again.events = {{4, 25, "resume", 0, R"({"from_step": 25})"}};
  again.add(26, {{"train_loss", 1}});
  view.take(std::make_shared<const Snapshot>(s), again);
  ASSERT_EQ(view.drops.size(), 1u) << "what fell later did not happen";
  EXPECT_EQ(view.drops[0].step, 20);
  EXPECT_EQ(view.rank_drops.size(), 1u);
  EXPECT_NE(view.config.train.lr_rank, 0.5);
  EXPECT_EQ(view.late_entries, 0);
  EXPECT_EQ(view.metric("train_loss").size(), 26u);
  EXPECT_TRUE(view.metric("val_loss").empty()) << "a score of a step that was taken back";
  ASSERT_EQ(view.marks.size(), 3u);  // start, checkpoint, resume
  EXPECT_EQ(view.marks.back().kind, Mark::segment);
  EXPECT_EQ(view.edits.size(), 0u);
}

// There may be more than one late stage: what a share is of is the size at the begin of that one.
TEST(RunViewTest, EachLateStageHasTheSizeThatItBeganWith) {
  RunView view;
  Snapshot s;
  s.step = 90;
  s.late = true;
  s.size.entries = 10;
  Records records;
  for (int64_t step = 1; step <= 90; ++step) records.add(step, {{"entries", 1000 - step}, {"target_entries", step < 20 ? 0 : 50}});
  records.events = {{0, 0, "start", 0, "{}"},
                    {1, 20, "stage", 0, R"({"stage": "late", "reason": "command", "entries": 800})"},
                    {2, 40, "stage", 0, R"({"stage": "early", "reason": "command", "entries": 500})"},
                    {3, 50, "stage", 0, R"({"stage": "early", "reason": "command", "stays": true})"},
                    {4, 70, "stage", 0, R"({"stage": "late", "reason": "command"})"},  // asked for in advance: it goes on
                    {5, 60, "stage", 0, R"({"stage": "late", "reason": "command"})"}};
  view.take(std::make_shared<const Snapshot>(s), records);
  EXPECT_EQ(view.late_entries, 940) << "its event does not say it: as it was then";
  const auto base = [&](int64_t step, bool late) {
    Snapshot at = s;
    at.step = step;
    at.late = late;
    return view.target_base_entries(at);
  };
  EXPECT_EQ(base(30, true), 800);
  EXPECT_EQ(base(45, false), 10) << "as large as it is";
  EXPECT_EQ(base(80, true), 940);
  std::vector<Mark::Kind> kinds;
  for (const Mark& mark : view.marks) kinds.push_back(mark.kind);
  EXPECT_EQ(kinds, (std::vector<Mark::Kind>{Mark::segment, Mark::late_stage, Mark::early_stage, Mark::late_stage, Mark::late_stage}));
  EXPECT_TRUE(std::any_of(view.log.begin(), view.log.end(),
                          [](const LogLine& line) { return line.text == "the stage switch was undone: the stage stays early"; }));
}

// Lines stand by their step, however late they are told.
TEST(RunViewTest, TheLogIsByStep) {
  RunView view;
  Snapshot s;
  s.step = 50;
  s.phase = Phase::running;
  Records records;
  records.ranks = {{0, "a", 1, 30}, {20, "a", 1, 25}};
  records.events = {{0, 0, "start", 0, "{}"},
                    {1, 80, "edit", 0, R"({"path": "train.lr_rank", "value": "0.5"})"},
                    {2, 20, "checkpoint", 0, "{}"},
                    {3, 20, "edit", 0, R"({"path": "train.lr_core", "value": "0.1"})"},
                    {4, 20, "resume", 0, R"({"from_step": 20})"}};
  view.take(std::make_shared<const Snapshot>(s), records);
  std::vector<std::string> first;
  for (const LogLine& line : view.log) first.push_back(std::to_string(line.step) + " " + line.text.substr(0, line.text.find(' ')));
  EXPECT_EQ(first, (std::vector<std::string>{"0 the", "20 train.lr_core", "20 a", "20 checkpoint", "20 resumed", "50 running",
                                             "80 train.lr_rank"}));
  s.step = 60;
  s.phase = Phase::finished;
  view.take(std::make_shared<const Snapshot>(s), {});
  EXPECT_EQ(std::count_if(view.log.begin(), view.log.end(), [](const LogLine& line) { return line.text == "running"; }), 0)
      << "of a stored run only what it is now";
}

// An edit says what was before, where there was something.
TEST(RunViewTest, AnEditIsToldWithTheValueBefore) {
  RunView view;
  Snapshot s;
  s.step = 9;
  Records records;
  records.events = {{0, 3, "edit", 0, R"({"path": "train.lr_rank", "old": 0.001, "new": 0.5, "value": "0.5"})"},
                    {1, 5, "edit", 0, R"({"path": "rank.cap.fc0.1", "old": null, "new": 8, "value": "8"})"},
                    {2, 7, "edit", 0, R"({"path": "method.comera.target", "value": "0.2"})"}};
  view.take(std::make_shared<const Snapshot>(s), records);
  ASSERT_EQ(view.marks.size(), 3u);
  EXPECT_EQ(view.marks[0].text, "train.lr_rank: 0.001 -> 0.5");
  EXPECT_EQ(view.marks[1].text, "rank.cap.fc0.1 = 8");
  EXPECT_EQ(view.marks[2].text, "method.comera.target = 0.2") << "of a store that was written before";
}

// What may be cut off at the end of a line are the bonds, not how far the ranks fell.
TEST(RunViewTest, TheSumOfRanksStandsBeforeTheBonds) {
  RunView view;
  Snapshot s;
  s.step = 20;
  Records records;
  records.ranks = {{0, "a", 1, 30}, {0, "b", 2, 20}, {20, "a", 1, 28}, {20, "b", 2, 19}};
  view.take(std::make_shared<const Snapshot>(s), records);
  ASSERT_FALSE(view.log.empty());
  EXPECT_EQ(view.log.back().text, "ranks fell by 3, sum 47: a bond 1: 30 -> 28, b bond 2: 20 -> 19");
}

// Ranks that come back are a mark and a line of the log, not a fall.
TEST(RunViewTest, ARegrowthIsAMarkAndALineOfTheLog) {
  RunView view;
  Snapshot s;
  s.step = 31;
  Records records;
  for (int64_t step = 1; step <= 31; ++step) records.add(step, {{"train_loss", 1}});
  records.ranks = {{0, "a", 1, 30}, {20, "a", 1, 12}, {31, "a", 1, 24}};
  records.events = {{0, 31, "regrowth", 0, R"({"reason": "target", "live_before": 13108.0, "live_after": 32275.0})"}};
  view.take(std::make_shared<const Snapshot>(s), records);
  EXPECT_EQ(view.drops.size(), 1u) << "what grew did not fall";
  EXPECT_EQ(view.rank_drops.size(), 1u);
  ASSERT_EQ(view.marks.size(), 1u);
  EXPECT_EQ(view.marks[0].kind, Mark::growth);
  EXPECT_EQ(view.marks[0].text, "ranks grew: 13,108 -> 32,275 live entries");
  EXPECT_TRUE(std::any_of(view.log.begin(), view.log.end(), [&](const LogLine& line) { return line.text == view.marks[0].text; }));
}

}  // namespace
}  // namespace comera::studio
