// Runs for which there is not enough memory: what does not fit is told before it is taken, and what goes wrong all the same
// leaves a record.
#include "core/session/session.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/session/replay.h"
#include "core/session/reproduce.h"
#include "tests/session/support.h"
#include "tests/train/lagging_device.h"
#include "tests/train/tight_device.h"

namespace comera {
namespace {

using test::Folder;
using test::has;
using test::Room;

SessionStart start_in_room(const Folder& folder, const std::shared_ptr<Room>& room, int64_t steps = 90) {
  SessionStart start = start_in(folder, steps);
  start.config.method.comera.loss_target = 5;  // the size is always further from its target
  start.config.train.keep_checkpoints = 100;
  start.open = [room](const std::string&, int) { return std::make_unique<test::TightDevice>(room); };
  start.paused = true;
  return start;
}

bool paused_at(Session& session, int64_t step) {
  return until(session, [&](const Snapshot& s) { return s.phase == Phase::paused && s.step == step; });
}

bool go_to(Session& session, int64_t step) {
  if (!until(session, [](const Snapshot& s) { return s.phase == Phase::paused; })) return false;
  session.post(StepCommand{step - session.latest()->step});
  return paused_at(session, step);
}

std::vector<EventRow> events_of(const Folder& folder, const std::string& run, const std::string& kind) {
  std::vector<EventRow> events = RunReader(folder.store()).events(RunReader(folder.store()).find(run).id);
  std::erase_if(events, [&](const EventRow& event) { return event.kind != kind; });
  return events;
}

// By the target with somebody there: the edit is refused, and the run waits for what that person decides.
TEST(Memory, AnEditWhoseRanksHaveNoRoomIsRefusedAndTheRunPauses) {
  Folder folder;
  const auto room = std::make_shared<Room>();
  {
    SessionStart start = start_in_room(folder, room, 100'000);
    start.config.method.comera.target = 0.4;
    start.attended = true;
    Session session(start);
    ASSERT_TRUE(go_to(session, 60));
    ASSERT_LE(session.latest()->size.entries, session.latest()->target_entries) << "the test wants the target reached";
    room->fill();
    const auto before = session.latest();
    ASSERT_TRUE(until_done(session, session.post(EditCommand{"method.comera.target", "0.7"})));
    EXPECT_TRUE(has(session.latest()->last_refusal, {"cannot change method.comera.target", "MiB more are needed, 0.0 MiB are free"}))
        << session.latest()->last_refusal;
    EXPECT_EQ(session.latest()->phase, Phase::paused);
    const Records told = session.drain();
    ASSERT_EQ(told.events.back().kind, "alert");
    EXPECT_EQ(told.events.back().step, 60);
    EXPECT_TRUE(has(told.events.back().body, {"\"kind\":\"memory\"", "method.comera.target stays as it is", "\"need\":", "\"free\":0"}));
    EXPECT_EQ(session.latest()->memory_now.bytes, before->memory_now.bytes) << "nothing was taken";
    ASSERT_TRUE(go_to(session, 65)) << "it goes on";
    EXPECT_EQ(session.latest()->size.held_entries, before->size.held_entries);

    ASSERT_TRUE(go_to(session, 75));
    room->fill();
    session.post(ResumeCommand{});
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step > 76; }));
    ASSERT_TRUE(until_done(session, session.post(EditCommand{"rank.cap.fc0.1", "30"})));
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; })) << "while it trains as well";
    EXPECT_NE(session.latest()->last_refusal, "");

    room->bytes = int64_t{1} << 30;
    const int64_t step = session.latest()->step;
    ASSERT_TRUE(until_done(session, session.post(EditCommand{"method.comera.target", "0.7"})));
    EXPECT_EQ(session.latest()->last_refusal, "");
    ASSERT_TRUE(go_to(session, step + 3));
    EXPECT_GT(session.latest()->size.entries, before->size.entries);

    // There was room when the edit was made, and is none when the step begins.
    ASSERT_TRUE(until_done(session, session.post(EditCommand{"method.comera.target", "0.9"})));
    EXPECT_EQ(session.latest()->last_refusal, "");
    room->fill();
    const int64_t held = session.latest()->size.held_entries;
    session.post(ResumeCommand{});
    ASSERT_TRUE(paused_at(session, step + 4)) << "it takes the edit back and waits";
    EXPECT_LE(session.latest()->size.held_entries, held);
    session.post(StopCommand{});
    ASSERT_TRUE(session.wait(60));
    ASSERT_EQ(session.latest()->phase, Phase::stopped) << session.latest()->message;
  }
  EXPECT_EQ(events_of(folder, "small", "alert").size(), 3u);
  EXPECT_EQ(events_of(folder, "small", "edit").size(), 3u) << "what was refused was not made, and the last one there and back";
  EXPECT_EQ(events_of(folder, "small", "regrowth").size(), 1u);
  const Reproduction again = reproduce_run(folder.store(), "small");  // where there is memory enough
  EXPECT_TRUE(again.identical) << again.what << " at step " << again.step;
  EXPECT_TRUE(again.weights_compared);
}

// As the command line trains, with edits given for their steps: nobody could resume it, so it does not wait.
TEST(Memory, WithoutAnybodyThereARunGoesOnWithTheRanksItHas) {
  Folder folder;
  const auto room = std::make_shared<Room>();
  SessionStart plain = start_in_room(folder, std::make_shared<Room>());
  plain.config.name = "plain";
  plain.paused = false;
  {
    Session session(plain);
    ASSERT_TRUE(session.wait(60));
  }
  SessionStart start = start_in_room(folder, room);
  start.changes = {parse_change("method.comera.target=0.7", 61), parse_change("rank.cap.fc0.1=30", 70)};
  {
    Session session(start);
    ASSERT_TRUE(go_to(session, 60));
    room->fill();
    session.post(ResumeCommand{});
    ASSERT_TRUE(session.wait(60)) << "it hangs";
    ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  }
  std::vector<int64_t> alerts, edits;
  for (const EventRow& event : events_of(folder, "small", "alert")) {
    alerts.push_back(event.step);
    EXPECT_TRUE(has(event.body, {"is taken back", "MiB more are needed"})) << event.body;
  }
  for (const EventRow& event : events_of(folder, "small", "edit")) edits.push_back(event.step);
  std::sort(edits.begin(), edits.end());
  EXPECT_EQ(alerts, (std::vector<int64_t>{61, 70}));
  EXPECT_EQ(edits, (std::vector<int64_t>{61, 61, 70, 70})) << "there and back";
  EXPECT_TRUE(events_of(folder, "small", "regrowth").empty());
  const std::string end = load_stored_run(folder.store(), "small").checkpoints.at(90);
  EXPECT_EQ(first_file_difference(load_stored_run(folder.store(), "plain").checkpoints.at(90), end), "") << "as if nobody had asked";
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
  // From before all of it, on a machine with more memory: what was taken back is taken back again.
  const std::string copy = folder.file("end.safetensors");
  std::filesystem::copy_file(end, copy);
  SessionStart again;
  again.store = folder.store();
  again.resume_run = "small";
  again.at_step = 50;
  Session session(again);
  ASSERT_TRUE(session.wait(60));
  ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  EXPECT_EQ(first_file_difference(copy, load_stored_run(folder.store(), "small").checkpoints.at(90)), "");
  EXPECT_TRUE(events_of(folder, "small", "regrowth").empty());
}

// What is refused leaves no trace in what is decided: not even that it was asked for.
TEST(Memory, ARefusalChangesNothingWhereResultsComeLate) {
  Folder folder;
  const auto room = std::make_shared<Room>();
  SessionStart start = start_in_room(folder, room, 80);
  start.config.method.comera.hold_at_target = false;  // else lag decides, and there is none where it is computed again
  start.open = [room](const std::string&, int) {
    return std::make_unique<test::LaggingDevice>(2, std::make_unique<test::TightDevice>(room));
  };
  start.changes = {parse_change("method.comera.target=0.9", 65)};
  {
    Session session(start);
    ASSERT_TRUE(go_to(session, 62));
    room->fill();
    ASSERT_TRUE(until_done(session, session.post(EditCommand{"rank.cap.fc0.1", "30"})));
    EXPECT_NE(session.latest()->last_refusal, "");
    session.post(ResumeCommand{});
    ASSERT_TRUE(session.wait(60));
    ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  }
  EXPECT_EQ(events_of(folder, "small", "alert").size(), 2u);
  EXPECT_TRUE(events_of(folder, "small", "regrowth").empty());
  const Reproduction again = reproduce_run(folder.store(), "small");
  EXPECT_TRUE(again.identical) << again.what << " at step " << again.step;
  EXPECT_TRUE(again.weights_compared);
}

int64_t stored_bytes(const Folder& folder, const std::string& run, int64_t step) {
  int64_t sum = 0;
  for (const MemoryRow& row : RunReader(folder.store()).memory(run))
    if (row.step == step) sum += row.bytes;
  return sum;
}

// It never began, and is in the list all the same: why, with which settings, and what takes how much.
TEST(Memory, ARunThatDoesNotFitIsKept) {
  Folder folder;
  const auto room = std::make_shared<Room>();
  room->bytes = 100'000;
  SessionStart start = start_in_room(folder, room, 30);
  start.tags = {"large"};
  start.changes = {parse_change("train.lr_core=0.001", 20)};
  std::shared_ptr<const Snapshot> failed;
  {
    Session session(start);
    ASSERT_TRUE(session.wait(60));
    failed = session.latest();
  }
  ASSERT_EQ(failed->phase, Phase::failed);
  EXPECT_EQ(failed->error_code, static_cast<int>(ErrorCode::memory));
  EXPECT_TRUE(has(failed->message, {"the run needs ", " MiB are free"})) << failed->message;
  EXPECT_EQ(failed->memory_peak.total(), 0) << "nothing was taken";
  ASSERT_NE(failed->run, "");
  const RunReader reader(folder.store());
  const RunRow row = reader.run(failed->run);
  EXPECT_TRUE(failed_for_memory(row)) << row.status << " " << row.message;
  EXPECT_EQ(row.message, "out of memory: " + failed->message);
  EXPECT_EQ(row.name, "small");
  EXPECT_EQ(row.tags, std::vector<std::string>{"large"});
  EXPECT_EQ(row.summary.step, 0);
  EXPECT_EQ(row.summary.total_steps, 30);
  EXPECT_TRUE(std::isnan(row.summary.peak_bytes)) << "it took none";
  EXPECT_TRUE(has(reader.config(row.id), {"\"batch\":32"}));
  EXPECT_GT(failed->memory_planned.total(), room->bytes);
  EXPECT_EQ(stored_bytes(folder, row.id, 0), failed->memory_planned.total());
  const std::vector<EventRow> alerts = events_of(folder, row.id, "alert");
  ASSERT_EQ(alerts.size(), 1u);
  EXPECT_TRUE(has(alerts[0].body, {"\"kind\":\"memory\"", "\"free\":100000", "\"need\":" + std::to_string(failed->memory_planned.total()),
                                   "\"activation\":" + std::to_string(failed->memory_planned[Purpose::activation])}))
      << alerts[0].body;
  const Replay replay(folder.store(), row.id);
  EXPECT_EQ(replay.latest()->phase, Phase::failed);
  EXPECT_EQ(replay.latest()->error_code, static_cast<int>(ErrorCode::memory));
  EXPECT_EQ(replay.latest()->memory_planned.bytes, failed->memory_planned.bytes);

  // Where there is room it is trained as it was meant, with the change of step 20.
  SessionStart again;
  again.store = folder.store();
  again.resume_run = row.id;
  Session session(again);
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  EXPECT_EQ(session.latest()->last.learning_rate[0], 0.001);
}

TEST(Memory, AForkThatDoesNotFitIsKeptToo) {
  Folder folder;
  const auto room = std::make_shared<Room>();
  SessionStart start = start_in_room(folder, room, 30);
  start.paused = false;
  {
    Session session(start);
    ASSERT_TRUE(session.wait(60));
    ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
    room->bytes = session.latest()->memory_planned.total();
  }
  SessionStart fork;
  fork.store = folder.store();
  fork.fork_run = "small";
  fork.at_step = 25;
  fork.open = start.open;
  fork.sets = {"train.batch=128", "rank.cap.fc0.1=4"};
  Session session(fork);
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->error_code, static_cast<int>(ErrorCode::memory)) << session.latest()->message;
  const RunReader reader(folder.store());
  const RunRow row = reader.find("small-fork");
  EXPECT_TRUE(failed_for_memory(row));
  EXPECT_EQ(row.parent, reader.find("small").id);
  EXPECT_EQ(row.fork_step, 25);
  EXPECT_TRUE(has(reader.config(row.id), {"\"batch\":128"}));
  EXPECT_EQ(stored_bytes(folder, row.id, 0), session.latest()->memory_planned.total());
  EXPECT_TRUE(reader.checkpoints(row.id).empty());
}

// Neither a store that cannot be written nor none at all hides why the run did not begin.
TEST(Memory, WithoutAStoreARunThatDoesNotFitSaysSo) {
  for (const bool none : {true, false}) {
    Folder folder;
    const auto room = std::make_shared<Room>();
    room->bytes = 100'000;
    SessionStart start = start_in_room(folder, room);
    start.store = none ? "" : folder.path();  // no file
    Session session(start);
    ASSERT_TRUE(session.wait(60));
    EXPECT_EQ(session.latest()->phase, Phase::failed);
    EXPECT_EQ(session.latest()->error_code, static_cast<int>(ErrorCode::memory)) << session.latest()->message;
    EXPECT_EQ(session.latest()->run, "");
  }
}

// What a run that failed left behind: why, what it needs, and checkpoints from which it ends as one that did not fail.
void expect_record(const Folder& folder, const Snapshot& failed, const std::string& why, const std::string& whole) {
  EXPECT_EQ(failed.phase, Phase::failed) << name_of(failed.phase);
  EXPECT_EQ(failed.error_code, static_cast<int>(ErrorCode::memory));
  EXPECT_TRUE(has(failed.message, {why})) << failed.message;
  const RunRow row = RunReader(folder.store()).run(failed.run);
  EXPECT_TRUE(failed_for_memory(row)) << row.status << " " << row.message;
  const std::vector<EventRow> alerts = events_of(folder, row.id, "alert");
  ASSERT_EQ(alerts.size(), 1u);
  EXPECT_TRUE(has(alerts[0].body, {"\"kind\":\"memory\"", why, "\"need\":", "\"in_use\":", "\"free\":", "\"planned\":{"}))
      << alerts[0].body;
  EXPECT_GT(stored_bytes(folder, row.id, alerts[0].step), 0);
  ASSERT_FALSE(load_stored_run(folder.store(), row.id).checkpoints.empty());
  SessionStart again;
  again.store = folder.store();
  again.resume_run = row.id;
  Session session(again);
  ASSERT_TRUE(session.wait(60));
  ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  const auto last = [&](const std::string& run) { return load_stored_run(folder.store(), run).checkpoints.rbegin()->second; };
  EXPECT_EQ(first_file_difference(last(whole), last(row.id)), "");
}

void train_whole(SessionStart start) {
  start.config.name = "whole";
  start.open = open_device;
  start.paused = false;
  Session session(start);
  ASSERT_TRUE(session.wait(60));
  ASSERT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
}

TEST(Memory, ACutThatTheSystemRefusesLeavesARecord) {
  for (const bool by_system : {false, true}) {
    Folder folder;
    const auto room = std::make_shared<Room>();
    const SessionStart start = start_in_room(folder, room, 80);
    train_whole(start);
    Session session(start);
    ASSERT_TRUE(go_to(session, 26));
    ASSERT_EQ(session.latest()->last_checkpoint_step, 25);
    room->by_system = by_system;
    room->honest = false;
    room->bytes = 0;
    session.post(ResumeCommand{});
    ASSERT_TRUE(session.wait(60));
    ASSERT_FALSE(events_of(folder, "whole", "truncation").empty()) << "the test wants a cut";
    expect_record(folder, *session.latest(), by_system ? "out of memory" : "could not take", "whole");
  }
}

// More was said to be free than there was.
TEST(Memory, AGrowthThatTheDeviceRefusesLeavesARecord) {
  Folder folder;
  const auto room = std::make_shared<Room>();
  SessionStart start = start_in_room(folder, room);
  start.changes = {parse_change("method.comera.target=0.7", 61)};
  train_whole(start);
  Session session(start);
  ASSERT_TRUE(go_to(session, 60));
  room->honest = false;
  room->fill();
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->step, 60);
  EXPECT_TRUE(events_of(folder, "small", "regrowth").empty());
  ASSERT_EQ(events_of(folder, "whole", "regrowth").size(), 1u);
  expect_record(folder, *session.latest(), "could not take", "whole");
  EXPECT_EQ(events_of(folder, "small", "regrowth").size(), 1u) << "resumed where there is room it grows";
}

TEST(Memory, AScoreForWhichTheHostHasNoMemoryLeavesARecord) {
  Folder folder;
  const auto room = std::make_shared<Room>();
  SessionStart start = start_in_room(folder, room, 40);
  start.config.train.checkpoint_every = 15;
  train_whole(start);
  {
    SessionStart unscored = start;
    unscored.config.name = "unscored";
    unscored.config.train.eval_every = 0;
    Session session(unscored);
    ASSERT_TRUE(go_to(session, 20));
    room->last_download = room->downloads.load();
    session.post(StopCommand{false});
    ASSERT_TRUE(session.wait(60));
  }
  room->downloads = 0;
  start.config.train.eval_every = 20;
  Session session(start);
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->last.step, 20) << "the step is told";
  EXPECT_EQ(session.latest()->eval.step, 0) << "its score is what failed";
  expect_record(folder, *session.latest(), "out of memory", "whole");
}

// Training needs no more for that: it goes on, it is said, and the next checkpoint may find what it needs.
TEST(Memory, ACheckpointForWhichTheHostHasNoMemoryIsLeftOut) {
  Folder folder;
  const auto room = std::make_shared<Room>();
  const SessionStart start = start_in_room(folder, room, 80);
  train_whole(start);
  Session session(start);
  ASSERT_TRUE(go_to(session, 30));
  room->last_download = room->downloads.load();
  ASSERT_TRUE(until_done(session, session.post(CheckpointCommand{})));
  EXPECT_EQ(session.latest()->last_checkpoint_step, 25);
  room->last_download = 1 << 30;
  ASSERT_TRUE(until(session, [](const Snapshot& s) { return !s.store_problem.empty(); }));
  EXPECT_TRUE(has(session.latest()->store_problem, {"the checkpoint of step 30 was not written", "out of memory"}));
  const std::map<int64_t, std::string> before = load_stored_run(folder.store(), "small").checkpoints,
                                       whole = load_stored_run(folder.store(), "whole").checkpoints;
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(first_file_difference(whole.at(25), before.at(25)), "");
  session.post(ResumeCommand{});
  ASSERT_TRUE(session.wait(60));
  EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  EXPECT_EQ(session.latest()->store_problem, "");
  EXPECT_EQ(first_file_difference(whole.at(80), load_stored_run(folder.store(), "small").checkpoints.at(80)), "");
  const std::vector<EventRow> alerts = events_of(folder, "small", "alert");
  ASSERT_EQ(alerts.size(), 1u);
  EXPECT_TRUE(has(alerts[0].body, {"\"kind\":\"checkpoint\"", "out of memory"}));
}

// A checkpoint between the edit and the step, and less memory where the run goes on.
TEST(Memory, AGrowthThatAResumedRunHasNoRoomForEndsItWithItsCheckpoint) {
  Folder folder;
  {
    Session session(start_in_room(folder, std::make_shared<Room>()));
    ASSERT_TRUE(go_to(session, 60));
    ASSERT_TRUE(until_done(session, session.post(EditCommand{"method.comera.target", "0.7"})));
    session.post(StopCommand{});
    ASSERT_TRUE(session.wait(60));
  }
  SessionStart again;
  again.store = folder.store();
  again.resume_run = "small";
  const auto resume = [&](const std::shared_ptr<Room>& room) {
    again.open = [room](const std::string&, int) { return std::make_unique<test::TightDevice>(room); };
    again.paused = true;
    auto session = std::make_unique<Session>(again);
    EXPECT_TRUE(paused_at(*session, 60));
    room->fill();
    session->post(ResumeCommand{});
    EXPECT_TRUE(session->wait(60));
    return session->latest();
  };
  const auto failed = resume(std::make_shared<Room>());
  EXPECT_EQ(failed->phase, Phase::failed);
  EXPECT_EQ(failed->error_code, static_cast<int>(ErrorCode::memory));
  EXPECT_TRUE(has(failed->message, {"no room for the ranks", "step 61"})) << failed->message;
  EXPECT_TRUE(has(failed->error_hint, {"--set method.comera.target"}));
  EXPECT_EQ(load_stored_run(folder.store(), "small").checkpoints.count(60), 1u);
  again.sets = {"method.comera.target=0.3"};
  const auto finished = resume(std::make_shared<Room>());
  EXPECT_EQ(finished->phase, Phase::finished) << finished->message;
}

// Ranks that were cut before the checkpoint need no room when the run is resumed or forked.
TEST(Memory, AResumedRunTakesTheMemoryOfItsPresentRanks) {
  Folder folder;
  int64_t first = 0, cut = 0;
  {
    Session session(start_in_room(folder, std::make_shared<Room>()));
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
    first = session.latest()->memory_now.total();
    ASSERT_TRUE(go_to(session, 80));
    cut = session.latest()->memory_now.total();
    session.post(StopCommand{});
    ASSERT_TRUE(session.wait(60));
  }
  ASSERT_LT(cut, first) << "no rank was cut";
  const auto in_room = [&](SessionStart start) {
    const auto room = std::make_shared<Room>();
    room->bytes = cut;
    start.store = folder.store();
    start.open = [room](const std::string&, int) { return std::make_unique<test::TightDevice>(room); };
    Session session(start);
    EXPECT_TRUE(session.wait(60));
    EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message << ": " << session.latest()->error_why;
    EXPECT_LE(session.latest()->memory_peak.total(), cut);
    for (const LayerRanks& layer : session.latest()->ranks) EXPECT_GE(layer.initial[0], layer.held[0]);
    EXPECT_GT(session.latest()->ranks.at(0).initial[0], session.latest()->ranks.at(0).held[0]) << "the ranks of its start";
  };
  SessionStart resume, fork;
  resume.resume_run = fork.fork_run = "small";
  in_room(resume);
  fork.at_step = 80;
  in_room(fork);
  EXPECT_TRUE(reproduce_run(folder.store(), "small").identical);
}

}  // namespace
}  // namespace comera
