// How a run begins: resumed, as a fork, or with changes that cannot be made; what it shows before its first own step.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/session/reproduce.h"
#include "core/session/stored_run.h"
#include "tests/session/support.h"

namespace comera {
namespace {
using test::Folder;
using test::has;

std::shared_ptr<const Snapshot> end_of(SessionStart start) {
  Session session(std::move(start));
  EXPECT_TRUE(session.wait(60));
  session.join();
  return session.latest();
}

SessionStart again(const Folder& folder, const char* name = "small") {
  SessionStart start;
  start.store = folder.store();
  start.resume_run = name;
  return start;
}

SessionStart fork_of(const Folder& folder, int64_t step) {
  SessionStart start;
  start.store = folder.store();
  start.fork_run = "small";
  start.at_step = step;
  return start;
}

// Trains to `step` and stops without a checkpoint.
void train_to(SessionStart start, int64_t step) {
  start.paused = true;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  session.post(StepCommand{step});
  ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.step == step && s.phase == Phase::paused; }));
  session.post(StopCommand{false});
  ASSERT_TRUE(session.wait(60));
}

TEST(Begin, ATimeThatIsOverStopsBeforeTheFirstStep) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.max_seconds = 1e-12;
  const auto last = end_of(start);
  EXPECT_EQ(last->phase, Phase::stopped);
  EXPECT_EQ(last->step, 0);
  EXPECT_EQ(last->last_checkpoint_step, 0);
}

TEST(Begin, AResumedRunShowsTheLastValuesOfItsCheckpoint) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.config.train.eval_every = 25;
  ASSERT_EQ(end_of(start)->phase, Phase::finished);
  const RunReader reader(folder.store());
  const std::string id = reader.find("small").id;
  const Series loss = reader.metric(id, "train_loss"), score = reader.metric(id, "val_loss");
  SessionStart back = again(folder);
  back.at_step = 50;
  back.paused = true;
  Session session(back);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  const auto shown = session.latest();
  EXPECT_EQ(shown->step, 50);
  EXPECT_EQ(shown->last.step, 50);
  EXPECT_EQ(shown->last.results.ce, loss.values[49]);
  EXPECT_EQ(shown->eval.step, 50);
  EXPECT_EQ(shown->eval.loss, score.values[1]);
}

TEST(Begin, ACheckpointWhoseFileIsGoneIsNotResumedFrom) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.config.train.keep_checkpoints = 100;
  ASSERT_EQ(end_of(start)->phase, Phase::finished);
  const RunReader reader(folder.store());
  const std::string id = reader.find("small").id;
  const Series loss = reader.metric(id, "train_loss");
  for (const CheckpointRow& row : reader.checkpoints(id))
    if (row.step > 50) std::filesystem::remove(row.path);
  ASSERT_EQ(end_of(again(folder))->phase, Phase::finished);
  const auto events = reader.events(id);
  const auto resumed = std::find_if(events.begin(), events.end(), [](const EventRow& event) { return event.kind == "resume"; });
  ASSERT_NE(resumed, events.end());
  EXPECT_EQ(resumed->step, 50);
  EXPECT_EQ(reader.metric(id, "train_loss").values, loss.values) << "the same steps came out the same";
}

// One that was killed before anything of it was stored.
TEST(Begin, ARunThatIsResumedFromItsStartReportsItsRanksAgain) {
  Folder folder;
  SessionStart start = start_in(folder, 10);
  start.config.train.checkpoint_every = 0;
  train_to(start, 5);
  const RunReader reader(folder.store());
  const std::string id = reader.find("small").id;
  const size_t bonds = reader.ranks_at(id, 0).size();
  ASSERT_GT(bonds, 0u);
  {
    Database db(folder.store(), Database::Mode::write);
    db.run("DELETE FROM ranks; DELETE FROM memory");
  }
  ASSERT_EQ(end_of(again(folder))->phase, Phase::finished);
  EXPECT_EQ(reader.ranks_at(id, 0).size(), bonds);
  EXPECT_FALSE(reader.memory(id).empty());
}

TEST(Begin, WhatIsChangedNowIsNotSetBackByAnOlderChangeFurtherOn) {
  Folder folder;
  SessionStart start = start_in(folder, 60);
  start.changes = {parse_change("train.lr_core=0.001", 50), parse_change("train.lr_rank=0.02", 50)};
  train_to(start, 30);
  SessionStart changed = again(folder);
  changed.sets = {"train.lr_core=0.0005"};
  const auto last = end_of(changed);
  ASSERT_EQ(last->phase, Phase::finished) << last->message;
  EXPECT_EQ(last->last.learning_rate[0], 0.0005);
  EXPECT_EQ(last->last.learning_rate[1], 0.02) << "the other one is made";
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
}

TEST(Begin, AChangeOfAStepThatIsDoneIsRefused) {
  Folder folder;
  ASSERT_EQ(end_of(start_in(folder, 60))->phase, Phase::finished);
  for (const int64_t step : {10, 60}) {
    SessionStart late = again(folder);
    late.extend = 10;
    late.changes = {parse_change("train.lr_core=0.001", step)};
    const auto refused = end_of(late);
    EXPECT_EQ(refused->error_code, static_cast<int>(ErrorCode::usage));
    EXPECT_TRUE(has(refused->message + ": " + refused->error_why, {"step " + std::to_string(step), "the next step is 61"}));
  }
  EXPECT_EQ(RunReader(folder.store()).find("small").status, "finished") << "the run is as it was";
}

// Steps that are computed again come out as they did: more of them follow, and the rates of a schedule change only there.
TEST(Begin, AnExtensionComesBehindTheStoredSteps) {
  for (const bool until_edit : {false, true}) {
    Folder folder;
    SessionStart start = start_in(folder, 30);
    start.config.train.schedule = "linear";
    start.config.train.checkpoint_every = until_edit ? 25 : 0;
    if (until_edit) {
      start.changes = {parse_change("train.steps=4e1", 27)};
      train_to(start, 30);  // its last checkpoint is that of step 25
    } else {
      ASSERT_EQ(end_of(start)->phase, Phase::finished);
      SessionStart longer = again(folder);
      longer.extend = 10;
      ASSERT_EQ(end_of(longer)->step, 40);
      std::filesystem::remove_all(folder.file("checkpoints"));
    }
    const RunReader reader(folder.store());
    const std::string id = reader.find("small").id;
    const std::vector<double> before = reader.metric(id, "train_loss").values;
    SessionStart more = again(folder);
    more.extend = 5;
    const auto last = end_of(more);
    ASSERT_EQ(last->phase, Phase::finished) << last->message;
    EXPECT_EQ(last->step, 45) << "5 more than the 40 that were planned at last";
    EXPECT_EQ(last->replaced, "");
    const std::vector<double> after = reader.metric(id, "train_loss").values;
    ASSERT_EQ(after.size(), 45u);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
    EXPECT_TRUE(reproduce_run(folder.store(), id).identical);
  }
}

TEST(Begin, ARunThatStoppedEarlyIsNotExtendedForNothing) {
  Folder folder;
  SessionStart start = start_in(folder, 60);
  start.config.train.eval_every = 5;
  start.config.train.patience = 2;
  for (const char* rate : {"train.lr", "train.lr_core", "train.lr_rank"})
    start.changes.push_back(parse_change(std::string(rate) + "=0", 11));
  const auto early = end_of(start);
  ASSERT_EQ(early->phase, Phase::finished);
  ASSERT_LT(early->step, 60);
  SessionStart more = again(folder);
  more.extend = 10;
  const auto refused = end_of(more);
  EXPECT_EQ(refused->error_code, static_cast<int>(ErrorCode::usage));
  EXPECT_TRUE(has(refused->error_why, {"stopped early", "2 evaluations"}));
  EXPECT_EQ(RunReader(folder.store()).find("small").summary.total_steps, 60) << "the run is as it was";
  SessionStart fork = fork_of(folder, early->step);
  fork.sets = {"train.steps=70"};
  EXPECT_TRUE(has(end_of(fork)->error_why, {"stopped early"}));
  more.sets = {"train.patience=0", "train.steps=90"};
  EXPECT_TRUE(has(end_of(more)->error_why, {"train.steps is given as well"}));
  more.sets = {"train.patience=0"};
  EXPECT_EQ(end_of(more)->step, 70);
}

TEST(Begin, AForkMayGoOnFurtherThanItsParent) {
  Folder folder;
  ASSERT_EQ(end_of(start_in(folder, 40))->phase, Phase::finished);
  SessionStart fork = fork_of(folder, 30);
  fork.extend = 5;
  const auto last = end_of(fork);
  EXPECT_EQ(last->phase, Phase::finished) << last->message;
  EXPECT_EQ(last->total_steps, 45);
  EXPECT_EQ(last->step, 45);
  SessionStart below = fork_of(folder, 20);
  below.fork_run = last->run;
  const auto refused = end_of(below);
  EXPECT_TRUE(has(refused->message + ": " + refused->error_why, {"has no step 20", "at step 30"}));
}

TEST(Begin, AForkThatIsStoppedBeforeItIsThereLeavesNothing) {
  Folder folder;
  SessionStart start = start_in(folder, 400);
  start.config.train.checkpoint_every = start.config.train.eval_every = 0;  // all of it is computed again
  ASSERT_EQ(end_of(start)->phase, Phase::finished);
  Session session(fork_of(folder, 399));
  session.post(StopCommand{true});
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->run, "");
  EXPECT_EQ(RunReader(folder.store()).runs(true).size(), 1u);
}

TEST(Begin, NoStepBehindTheEndCanBeForked) {
  Folder folder;
  ASSERT_EQ(end_of(start_in(folder, 30))->phase, Phase::finished);
  const auto refused = end_of(fork_of(folder, 31));
  EXPECT_EQ(refused->error_code, static_cast<int>(ErrorCode::not_found));
  EXPECT_TRUE(has(refused->message, {"no step 31"}));
  EXPECT_EQ(RunReader(folder.store()).runs(true).size(), 1u);
}

// A table that is rounded up, e.g. to a multiple of 64 tokens, is no sign of another tokenizer.
TEST(RunData, NeedsTheTokenizerOfItsModel) {
  RunConfig config;
  config.model.kind = "decoder";
  config.model.decoder.vocab = 320;
  EXPECT_NO_THROW(check_vocabulary(config)) << "bytes";
  config.model.decoder.vocab = 32000;
  EXPECT_THROW(check_vocabulary(config), Error);
  config.data.vocab = "tokenizer.json";
  EXPECT_NO_THROW(check_vocabulary(config));
}

// A click log is packed when it is read for the first time.
TEST(RunData, SaysHowFarAFileIsReadWhereThatTakesTime) {
  const Folder folder;
  const std::string before = std::getenv("XDG_CACHE_HOME") ? std::getenv("XDG_CACHE_HOME") : "";
  setenv("XDG_CACHE_HOME", folder.file("cache").c_str(), 1);
  RunConfig config;
  config.model.kind = "dlrm";
  config.model.task = "binary";
  config.model.classes = 2;
  config.model.dlrm.tables.assign(26, 4);
  config.data.set = folder.file("clicks.tsv");
  std::string log;
  for (int row = 0; row < 20; ++row) {
    log += std::to_string(row % 2);
    for (int column = 0; column < 39; ++column) log += "\t" + std::to_string(row % 3);
    log += "\n";
  }
  std::ofstream(config.data.set) << log;
  std::vector<double> shares;
  const auto note = [&](double share) { shares.push_back(share); };
  open_run_data(config, note);
  ASSERT_FALSE(shares.empty());
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
  shares.clear();
  open_run_data(config, note);
  EXPECT_EQ(shares, std::vector<double>{}) << "it is packed";
  before.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", before.c_str(), 1);
}

}  // namespace
}  // namespace comera
