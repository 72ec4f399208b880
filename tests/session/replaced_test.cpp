// A run that is sent back to an earlier step and goes on another way: the way it went before is a run of its own.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/session/reproduce.h"
#include "core/store/run_admin.h"
#include "core/store/run_reader.h"
#include "core/store/schema.h"
#include "tests/session/support.h"

namespace comera {
namespace {
namespace fs = std::filesystem;

void run(SessionStart start) {
  Session session(std::move(start));
  ASSERT_TRUE(session.wait(120));
  ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message << ": " << session.latest()->error_why;
}

SessionStart back_to(const test::Folder& folder, int64_t step, std::vector<std::string> sets = {}) {
  SessionStart start;
  start.store = folder.store();
  start.resume_run = "small";
  start.at_step = step;
  start.sets = std::move(sets);
  return start;
}

std::string kept_run(const test::Folder& folder) {
  const RunReader reader(folder.store());
  for (const RunRow& row : reader.runs())
    if (row.name == "small-replaced") return row.id;
  return "";
}

bool identical(const test::Folder& folder, const std::string& id) {
  const Reproduction again = reproduce_run(folder.store(), id);
  EXPECT_GT(again.values, 0);
  return again.identical;
}

TEST(Replaced, WhatCameAfterTheStepBecomesARunOfItsOwn) {
  const test::Folder folder;
  run(start_in(folder));
  const RunReader reader(folder.store());
  const std::string id = reader.find("small").id;
  const Series before = reader.metric(id, "train_loss");
  const auto ranks_before = reader.ranks_at(id, 80);
  open_store(folder.store(), StoreAccess::write)
      ->run("UPDATE events SET body = json_set(body, '$.program', 'an earlier one') WHERE kind = 'start'");
  run(back_to(folder, 60, {"train.lr_core=5e-4"}));  // from the checkpoint of step 50

  const std::string kept = kept_run(folder);
  ASSERT_NE(kept, "");
  const RunRow row = reader.run(kept);
  EXPECT_EQ(computed_with(reader, kept, 60).program, "an earlier one") << "which computed those steps";
  EXPECT_EQ(row.parent, id);
  EXPECT_EQ(row.fork_step, 50);
  EXPECT_EQ(row.status, "finished") << "as it was";
  EXPECT_EQ(row.tags, std::vector<std::string>{std::string(kReplaced)});
  EXPECT_EQ(row.summary.step, 80);
  const Series old = reader.metric(kept, "train_loss");
  ASSERT_EQ(old.steps.size(), 30u);
  EXPECT_EQ(old.steps.front(), 51);
  EXPECT_TRUE(std::equal(old.values.begin(), old.values.end(), before.values.begin() + 50));
  const auto ranks_kept = reader.ranks_at(kept, 80);
  ASSERT_EQ(ranks_kept.size(), ranks_before.size()) << "those that did not change after the step too";
  for (size_t i = 0; i < ranks_kept.size(); ++i) EXPECT_EQ(ranks_kept[i].rank, ranks_before[i].rank) << ranks_kept[i].layer;
  EXPECT_FALSE(reader.ranks_at(kept, 50).empty());
  EXPECT_FALSE(reader.memory(kept).empty());

  // The run itself has one course, and says which one it left.
  const Series now = reader.metric(id, "train_loss");
  ASSERT_EQ(now.steps.size(), 80u);
  EXPECT_NE(now.values.back(), before.values.back());
  const auto events = reader.events(id);
  const auto resumed = std::find_if(events.begin(), events.end(), [](const EventRow& event) { return event.kind == "resume"; });
  ASSERT_NE(resumed, events.end());
  EXPECT_EQ(parse_valid_json(resumed->body).value("replaced", ""), kept);

  // Each has its own checkpoints, of which every one is there.
  for (const std::string& of : {id, kept}) {
    const auto checkpoints = reader.checkpoints(of);
    ASSERT_FALSE(checkpoints.empty());
    for (const CheckpointRow& checkpoint : checkpoints) {
      EXPECT_TRUE(fs::exists(checkpoint.path)) << checkpoint.path;
      EXPECT_EQ(fs::path(checkpoint.path).parent_path().filename(), of);
    }
  }
  EXPECT_EQ(reader.checkpoints(kept).front().step, 50);
  EXPECT_TRUE(identical(folder, kept)) << "it can be computed again from where it was left";
  EXPECT_TRUE(identical(folder, id));
  RunAdmin(folder.store()).purge(kept, "small-replaced");
  EXPECT_FALSE(fs::exists(fs::path(reader.checkpoints(id).front().path).parent_path().parent_path() / kept));
  EXPECT_TRUE(identical(folder, id)) << "nothing of the run goes with it";
}

TEST(Replaced, ItCanBeExtendedAndGoesOnBitForBit) {
  const test::Folder folder;
  run(start_in(folder));
  run(back_to(folder, 25));
  const std::string kept = kept_run(folder);
  ASSERT_NE(kept, "");
  SessionStart start = back_to(folder, -1);
  start.resume_run = kept;
  start.extend = 10;
  run(start);
  SessionStart other = back_to(folder, -1);
  other.extend = 10;
  run(other);
  const RunReader reader(folder.store());
  const Series a = reader.metric(kept, "train_loss"), b = reader.metric(reader.find("small").id, "train_loss");
  EXPECT_EQ(a.values.back(), b.values.back()) << "nothing was changed, so both went the same way";
  EXPECT_EQ(a.steps.back(), 90);
}

TEST(Replaced, StepsThatComeOutTheSameAreNotKeptTwice) {
  for (const int64_t at : {40, 1000}) {  // no step before its last one
    const test::Folder folder;
    SessionStart start = start_in(folder);
    {
      start.paused = true;
      Session session(start);
      session.post(StepCommand{40});
      ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 40 && s.phase == Phase::paused; }));
      session.post(StopCommand{false});  // its last checkpoint is that of step 25
      ASSERT_TRUE(session.wait(60));
    }
    run(back_to(folder, at));
    EXPECT_EQ(kept_run(folder), "");
    EXPECT_EQ(RunReader(folder.store()).runs(true).size(), 1u);
  }
}

TEST(Replaced, OneThatWentBackTwiceKeepsBothWays) {
  const test::Folder folder;
  SessionStart start = start_in(folder);
  start.config.train.keep_checkpoints = 10;
  run(start);
  run(back_to(folder, 50, {"train.lr_core=5e-4"}));
  run(back_to(folder, 25, {"train.lr_core=1e-4"}));
  const RunReader reader(folder.store());
  std::vector<std::pair<int64_t, int64_t>> steps;
  std::vector<std::string> ids;
  for (const RunRow& row : reader.runs()) {
    if (row.name != "small-replaced") continue;
    steps.emplace_back(row.fork_step, row.summary.step);
    ids.push_back(row.id);
  }
  std::sort(steps.begin(), steps.end());
  EXPECT_EQ(steps, (std::vector<std::pair<int64_t, int64_t>>{{25, 80}, {50, 80}}));
  for (const std::string& of : ids) EXPECT_TRUE(identical(folder, of)) << of;
}

}  // namespace
}  // namespace comera
