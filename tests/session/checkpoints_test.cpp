// Which checkpoints of a run are left, and where the last one goes when its folder does not take it.
#include <filesystem>

#include "core/session/reproduce.h"
#include "core/store/schema.h"
#include "core/train/checkpoint.h"
#include "tests/session/support.h"

namespace comera {
namespace {
namespace fs = std::filesystem;
using test::Folder;
using test::has;
using Steps = std::vector<int64_t>;

// As the store lists them; each of them is there, and no other file is.
Steps left(const Folder& folder, const std::string& run) {
  const RunReader reader(folder.store());
  Steps steps;
  for (const CheckpointRow& row : reader.checkpoints(run)) {
    steps.push_back(row.step);
    EXPECT_TRUE(fs::exists(row.path)) << row.path;
    EXPECT_EQ(static_cast<int64_t>(fs::file_size(row.path)), row.bytes);
  }
  const auto files = fs::directory_iterator(folder.file("checkpoints/" + run));
  EXPECT_EQ(static_cast<size_t>(std::distance(files, fs::directory_iterator())), steps.size());
  return steps;
}

std::shared_ptr<const Snapshot> finish(SessionStart start) {
  Session session(std::move(start));
  EXPECT_TRUE(session.wait(60));
  session.join();
  EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  return session.latest();
}

TEST(Checkpoints, TheNewestAndTheBestOneAreLeftAndTheStartOfAFork) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.config.method.comera.late_after = start.config.method.comera.prune_every = 0;
  start.config.train.checkpoint_every = 10;
  start.config.train.keep_checkpoints = 2;
  // Nothing is learned from then on, so step 20 has the best score.
  for (const char* rate : {"train.lr", "train.lr_core", "train.lr_rank"})
    start.changes.push_back(parse_change(std::string(rate) + "=0", 21));
  const auto whole = finish(start);
  ASSERT_EQ(whole->best_step, 20);
  EXPECT_EQ(left(folder, whole->run), (Steps{20, 70, 80}));
  Steps written;
  for (const EventRow& event : RunReader(folder.store()).events(whole->run))
    if (event.kind == "checkpoint") written.push_back(event.step);
  EXPECT_EQ(written, (Steps{10, 20, 30, 40, 50, 60, 70, 80})) << "each once, also where the last step is a periodic one";
  EXPECT_EQ(RunReader(folder.store()).checkpoints(whole->run).back().kind, "final");

  SessionStart again;
  again.store = folder.store();
  again.fork_run = whole->run;
  again.at_step = 25;
  again.sets = {"train.lr=2e-3", "train.lr_core=2e-3", "train.lr_rank=5e-2"};
  const auto fork = finish(again);
  ASSERT_GT(fork->best_step, 30);
  Steps expected = {25, 70, 80};
  if (fork->best_step <= 60) expected.insert(expected.begin() + 1, fork->best_step);
  EXPECT_EQ(left(folder, fork->run), expected);
}

TEST(Checkpoints, OfTheBestScoreWhereItIsAskedFor) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.config.method.comera.late_after = start.config.method.comera.prune_every = 0;
  start.config.train.checkpoint_every = 0;
  start.config.train.checkpoint_best = true;
  start.config.train.keep_checkpoints = 1;
  for (const char* rate : {"train.lr", "train.lr_core", "train.lr_rank"})
    start.changes.push_back(parse_change(std::string(rate) + "=0", 21));
  const auto whole = finish(start);
  ASSERT_EQ(whole->best_step, 20);
  EXPECT_EQ(left(folder, whole->run), (Steps{20, 80}));
  EXPECT_EQ(RunReader(folder.store()).checkpoints(whole->run).front().kind, "best");
}

TEST(Checkpoints, WithoutAScoreNoneIsTheBest) {
  Folder folder;
  SessionStart start = start_in(folder, 40);
  start.config.train.eval_every = 0;
  start.config.train.checkpoint_every = 10;
  start.config.train.keep_checkpoints = 1;
  start.paused = true;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  session.post(StepCommand{35});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 35 && s.phase == Phase::paused; }));
  ASSERT_TRUE(test::wait_for([&] { return RunReader(folder.store()).checkpoints(session.latest()->run).size() == 1; }));
  EXPECT_EQ(left(folder, session.latest()->run), Steps{30});
}

// Those of steps that are taken back are not counted with the new ones.
TEST(Checkpoints, OfARunThatGoesBackThoseOfLaterStepsAreForgotten) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.config.train.eval_every = 0;
  start.config.train.keep_checkpoints = 100;
  const auto whole = finish(start);
  SessionStart again;
  again.store = folder.store();
  again.resume_run = whole->run;
  again.at_step = 25;
  again.sets = {"train.keep_checkpoints=2"};
  again.paused = true;
  Session session(again);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  session.post(StepCommand{30});
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 55 && s.phase == Phase::paused; }));
  session.post(StopCommand{false});
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(left(folder, whole->run), (Steps{25, 50}));
}

TEST(Checkpoints, OldOnesStayUntilTheStoreHasTheNewOne) {
  Folder folder;
  SessionStart start = start_in(folder, 100);
  start.config.train.checkpoint_every = start.config.train.eval_every = 0;
  start.config.train.keep_checkpoints = 1;
  start.paused = true;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  const auto checkpoint_at = [&](int64_t step) {
    session.post(StepCommand{step - session.latest()->step});
    ASSERT_TRUE(until(session, [&](const Snapshot& s) { return s.step == step && s.phase == Phase::paused; }));
    ASSERT_TRUE(until_done(session, session.post(CheckpointCommand{})));
  };
  checkpoint_at(10);
  {
    const auto other = open_store(folder.store(), StoreAccess::write);
    const Transaction lock(*other);  // so the writer cannot store what it is given
    checkpoint_at(20);
    EXPECT_TRUE(fs::exists(folder.file("checkpoints/" + session.latest()->run + "/step-000000010.safetensors")));
  }
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.store_problem.empty(); }));
  EXPECT_EQ(left(folder, session.latest()->run), (Steps{10, 20}));
  checkpoint_at(30);
  ASSERT_TRUE(test::wait_for([&] { return RunReader(folder.store()).checkpoints(session.latest()->run).size() == 1; }));
  EXPECT_EQ(left(folder, session.latest()->run), Steps{30});
}

// A folder that takes no file stands for a disk that is full.
TEST(Checkpoints, TheLastOneGoesToTheStateFolderAndComesBackAtTheNextStart) {
  Folder folder;
  const test::RescuePlaces places(folder);
  SessionStart start = start_in(folder, 40);
  finish(start);
  const std::string expected = load_stored_run(folder.store(), "small").checkpoints.at(40);
  start.config.name = "moved";
  start.checkpoint_folder = folder.file("a file");
  test::write_text(start.checkpoint_folder, "");
  const auto last = finish(start);
  const std::string place = folder.file("state/comera/rescued/checkpoints/" + last->run), file = place + "/step-000000040.safetensors";
  EXPECT_TRUE(has(last->store_problem, {"the checkpoint of step 40 is kept in " + file}));
  EXPECT_FALSE(has(last->store_problem, {"step 25"})) << "a later one made up for it";
  EXPECT_EQ(last->last_checkpoint_step, 40);
  EXPECT_EQ(first_file_difference(file, expected), "");
  ASSERT_EQ(std::distance(fs::directory_iterator(place), fs::directory_iterator()), 1) << "the last one only";

  const RunReader reader(folder.store());  // the next start of anything
  ASSERT_EQ(reader.checkpoints(last->run).size(), 1u);
  EXPECT_EQ(reader.checkpoints(last->run)[0].path, folder.file("checkpoints/" + last->run + "/step-000000040.safetensors"));
  EXPECT_FALSE(fs::exists(folder.file("state/comera/rescued")));
  EXPECT_EQ(left(folder, last->run), Steps{40});
  EXPECT_TRUE(reproduce_run(folder.store(), "moved").identical);
  SessionStart again;
  again.store = folder.store();
  again.resume_run = "moved";
  again.extend = 5;
  EXPECT_EQ(finish(again)->step, 45);
}

TEST(Checkpoints, WithoutAnyPlaceTheRunEndsAndSaysSo) {
  Folder folder;
  const test::Variable state("XDG_STATE_HOME", "/dev/null"), temporary("TMPDIR", "/dev/null");
  SessionStart start = start_in(folder, 10);
  start.checkpoint_folder = folder.file("a file");
  test::write_text(start.checkpoint_folder, "");
  const auto last = finish(start);
  EXPECT_TRUE(has(last->store_problem, {"the checkpoint of step 10 was not written"}));
  EXPECT_EQ(last->last_checkpoint_step, -1);
  EXPECT_TRUE(RunReader(folder.store()).checkpoints(last->run).empty());
}

}  // namespace
}  // namespace comera
