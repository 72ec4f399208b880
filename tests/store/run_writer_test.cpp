// What the writer records comes back, and nothing the disk does stops the caller or loses a row without a word.
#include "core/store/run_writer.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/store/process.h"
#include "core/store/schema.h"
#include "core/store/spill.h"
#include "tests/store/support.h"

namespace comera {
namespace {

using test::error_of;
using test::Folder;
using test::has;
using test::quick;
using test::RescuePlaces;
using test::SmallDisk;
using test::start_of;
using test::wait_for;

TEST(RunWriter, EverythingComesBack) {
  Folder folder;
  const double infinity = std::numeric_limits<double>::infinity(), before = now_s();
  RunWriter writer(folder.store(), start_of("first"), quick());
  const std::string id = writer.run_id();
  ASSERT_EQ(id.size(), 8u);
  EXPECT_EQ(id.substr(0, 2), "r-");
  const NamedValues step_1 = {{"loss", 0.1}, {"accuracy", 0.5}};
  writer.metrics(1, step_1);
  writer.metrics(2, NamedValues{{"loss", std::nan("")}, {"accuracy", infinity}, {"other", -infinity}});
  writer.metrics(2, NamedValues{{"other", 1e-300}});  // replaced
  writer.rank(0, "enc0.attn.q", 1, 30);
  writer.rank(2, "enc0.attn.q", 1, 21);
  writer.memory(0, "tt_core", 1234);
  writer.memory(2, "tt_core", 1000);
  writer.event(0, "start");
  writer.event(2, "edit", R"({"path":"train.lr_rank","value":"2e-3"})");
  writer.checkpoint(1, "x/step-1.safetensors", 10, "periodic");
  writer.checkpoint(2, "x/step-2.safetensors", 20, "best");
  writer.forget_checkpoint(1);
  RunSummary summary;
  summary.step = 1;
  writer.summary(summary);
  summary = {2, 100, "late", 0.25, 0.5, 0.75, 1e6, 4e6, 8e7, 20.5, 9e8, 12.5};
  writer.summary(summary);
  ASSERT_TRUE(writer.flush()) << writer.store_problem();
  EXPECT_GE(writer.saved_at(), before);

  RunReader reader(folder.store());
  RunRow row = reader.run(id);
  EXPECT_EQ(row.name, "first");
  EXPECT_EQ(row.status, "running");
  EXPECT_EQ(row.pid, ::getpid());
  EXPECT_GE(row.created, before);
  EXPECT_EQ(row.seed, 7);
  EXPECT_EQ(row.device, "CPU, 2 threads");
  EXPECT_EQ(row.data_fingerprint, "abc");
  EXPECT_EQ(row.tags, std::vector<std::string>{"good"});
  EXPECT_EQ(row.summary.step, 2);
  EXPECT_EQ(row.summary.total_steps, 100);
  EXPECT_EQ(row.summary.stage, "late");
  EXPECT_EQ(row.summary.train_loss, 0.25);
  EXPECT_EQ(row.summary.val_accuracy, 0.75);
  EXPECT_EQ(row.summary.dense_bytes, 8e7);
  EXPECT_EQ(row.summary.step_ms, 12.5);
  EXPECT_EQ(reader.config(id), start_of("first").config);

  EXPECT_EQ(reader.metric_names(id), (std::vector<std::string>{"loss", "accuracy", "other"}));
  const Series loss = reader.metric(id, "loss");
  ASSERT_EQ(loss.steps, (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(loss.values[0], 0.1);
  EXPECT_TRUE(std::isnan(loss.values[1]));
  EXPECT_EQ(reader.metric(id, "accuracy", 1).values, std::vector<double>{infinity});
  EXPECT_EQ(reader.metric(id, "other").values, std::vector<double>{1e-300});
  const Series times = reader.wall_times(id);
  ASSERT_EQ(times.steps, (std::vector<int64_t>{1, 2}));
  EXPECT_GE(times.values[1], times.values[0]);

  const auto ranks = reader.rank_history(id);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[1].rank, 21);
  EXPECT_EQ(reader.memory(id).at(1).bytes, 1000);
  const auto events = reader.events(id);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, "start");
  EXPECT_EQ(events[1].body, R"({"path":"train.lr_rank","value":"2e-3"})");
  EXPECT_EQ(reader.events(id, events[0].seq).size(), 1u);
  const auto checkpoints = reader.checkpoints(id);
  ASSERT_EQ(checkpoints.size(), 1u);
  EXPECT_EQ(checkpoints[0].kind, "best");

  writer.finish("failed", "out of memory");
  ASSERT_TRUE(writer.flush());
  row = reader.run(id);
  EXPECT_EQ(row.status, "failed");
  EXPECT_EQ(row.message, "out of memory");
}

TEST(RunWriter, WithoutFinishTheRunIsInterrupted) {
  Folder folder;
  std::string id;
  {
    RunWriter writer(folder.store(), start_of("a"), quick());
    id = writer.run_id();
    writer.metrics(1, NamedValues{{"loss", 1}});
  }
  RunReader reader(folder.store());
  EXPECT_EQ(reader.run(id).status, "interrupted");
  EXPECT_EQ(Database(folder.store(), Database::Mode::read).text("SELECT status FROM runs"), "interrupted");
  EXPECT_EQ(reader.metric(id, "loss").steps.size(), 1u);  // the destructor wrote what was left
}

TEST(RunWriter, HeartBeatsWhileIdleAndStopsAfterFinish) {
  Folder folder;
  RunWriter writer(folder.store(), start_of("a"), quick());
  RunReader reader(folder.store());
  const double first = reader.run(writer.run_id()).heartbeat;
  EXPECT_TRUE(wait_for([&] { return reader.run(writer.run_id()).heartbeat > first; }));
  writer.finish("finished");
  ASSERT_TRUE(writer.flush());
  const RunRow last = reader.run(writer.run_id());
  EXPECT_GT(last.active_s, 0);
  // The clock is another writer that beats as this one did.
  RunWriter clock(folder.store(), start_of("clock"), quick());
  for (int beat = 0; beat < 5; ++beat) {
    const double before = reader.run(clock.run_id()).heartbeat;
    ASSERT_TRUE(wait_for([&] { return reader.run(clock.run_id()).heartbeat > before; }));
  }
  EXPECT_EQ(reader.run(writer.run_id()).heartbeat, last.heartbeat);
}

TEST(RunWriter, ResumeReplacesWhatCameAfterItsStep) {
  Folder folder;
  std::string id;
  {
    RunWriter writer(folder.store(), start_of("a"), quick());
    id = writer.run_id();
    for (int64_t step = 1; step <= 10; ++step) {
      writer.metrics(step, NamedValues{{"loss", 1.0}, {"lr", 0.5}});
      writer.rank(step, "l", 1, 40 - step);
      writer.memory(step, "data", step);
      writer.event(step, "note");
      writer.checkpoint(step, "p", 1, "periodic");
    }
    RunSummary summary;
    summary.step = 10;
    writer.summary(summary);
  }
  RunWriter writer(folder.store(), id, quick());
  writer.truncate_after(6);
  writer.event(6, "resume");
  writer.metrics(7, NamedValues{{"loss", 2.0}});
  ASSERT_TRUE(writer.flush()) << writer.store_problem();
  RunReader reader(folder.store());
  EXPECT_EQ(reader.metric(id, "loss").values, (std::vector<double>{1, 1, 1, 1, 1, 1, 2}));
  EXPECT_EQ(reader.metric(id, "lr").steps.back(), 6);
  EXPECT_EQ(reader.wall_times(id).steps.back(), 7);
  EXPECT_EQ(reader.rank_history(id).back().step, 6);
  EXPECT_EQ(reader.memory(id).back().step, 6);
  EXPECT_EQ(reader.checkpoints(id).back().step, 6);
  const auto events = reader.events(id);
  EXPECT_EQ(events.back().kind, "resume");
  EXPECT_EQ(events.size(), 7u);
  EXPECT_EQ(reader.run(id).summary.step, 6);
  EXPECT_EQ(reader.run(id).status, "running");
}

TEST(RunWriter, EventsOfAResumeComeAfterThoseThatAreThere) {
  Folder folder;
  std::string id;
  {
    RunWriter writer(folder.store(), start_of("a"), quick());
    id = writer.run_id();
    writer.event(0, "start");
    writer.event(5, "note");
  }
  RunWriter writer(folder.store(), id, quick());
  writer.event(5, "resume");
  ASSERT_TRUE(writer.flush());
  std::vector<std::string> kinds;
  for (const EventRow& event : RunReader(folder.store()).events(id)) kinds.push_back(event.kind);
  EXPECT_EQ(kinds, (std::vector<std::string>{"start", "note", "resume"}));
}

TEST(RunWriter, EditsOfTheStepItselfAreNotForgotten) {
  Folder folder;
  RunWriter writer(folder.store(), start_of("a"), quick());
  for (const int64_t step : {4, 5, 6}) writer.event(step, "edit", R"({"path": "train.lr"})");
  writer.event(6, "edit", R"({"path": "train.batch"})");
  writer.forget_edits("train.lr", 5);
  ASSERT_TRUE(writer.flush());
  std::vector<std::pair<int64_t, std::string>> edits;
  for (const EventRow& event : RunReader(folder.store()).events(writer.run_id())) edits.emplace_back(event.step, event.body);
  EXPECT_EQ(edits, (std::vector<std::pair<int64_t, std::string>>{
                       {4, R"({"path": "train.lr"})"}, {5, R"({"path": "train.lr"})"}, {6, R"({"path": "train.batch"})"}}));
}

TEST(RunWriter, TheTimeOfAllWritersCountsUntilTheEnd) {
  Folder folder;
  const std::string id = test::make_run(folder.store(), "a");
  open_store(folder.store(), StoreAccess::write)->run("UPDATE runs SET active_s = 1000");
  RunWriter writer(folder.store(), id, quick());
  ASSERT_TRUE(writer.flush());
  const RunReader reader(folder.store());
  const double first = reader.run(id).active_s;
  EXPECT_GT(first, 1000);
  EXPECT_LT(first, 1900);
  ASSERT_TRUE(writer.flush());
  EXPECT_GT(reader.run(id).active_s, first);
  writer.finish("finished");
  ASSERT_TRUE(writer.flush());
  const double last = reader.run(id).active_s;
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(reader.run(id).active_s, last);
}

TEST(RunWriter, TheCourseOfAKilledRunIsSetAsideAsInterrupted) {
  Folder folder;
  const std::string id = test::make_run(folder.store(), "a", 5);
  open_store(folder.store(), StoreAccess::write)->run("UPDATE runs SET status = 'running', heartbeat = 0");  // as a kill leaves it
  RunWriter writer(folder.store(), id, quick());
  RunStart start = start_of("a-replaced");
  start.parent = id;
  start.fork_step = 2;
  writer.set_aside({2, start, "{}", {}});
  writer.truncate_after(2);
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(open_store(folder.store(), StoreAccess::read)->text("SELECT status FROM runs WHERE name = 'a-replaced'"), "interrupted");
}

TEST(RunWriter, OneWriterARun) {
  Folder folder;
  RunWriter writer(folder.store(), start_of("a"), quick());
  EXPECT_TRUE(has(error_of([&] { RunWriter(folder.store(), writer.run_id()); }), {test::code(ErrorCode::storage), "is being written"}));
  EXPECT_TRUE(has(error_of([&] { RunWriter(folder.store(), "r-nosuch"); }), {test::code(ErrorCode::not_found), "r-nosuch"}));
}

TEST(RunWriter, StopsWhenAnotherProgramContinuesTheRun) {
  Folder folder;
  RunWriter writer(folder.store(), start_of("a"), quick());
  writer.metrics(1, NamedValues{{"loss", 1}});
  ASSERT_TRUE(writer.flush());
  open_store(folder.store(), StoreAccess::write)->run("UPDATE runs SET owner = 'somebody else'");
  writer.metrics(2, NamedValues{{"loss", 1}});
  EXPECT_FALSE(writer.flush());
  EXPECT_TRUE(has(writer.store_problem(), {"another program", "records nothing more"}));
  EXPECT_EQ(RunReader(folder.store()).metric(writer.run_id(), "loss").steps.size(), 1u);
}

TEST(RunWriter, ManyThreadsMayCallAndReadersSeeWholeSteps) {
  Folder folder;
  RunWriter writer(folder.store(), start_of("a"), quick());
  const std::string id = writer.run_id();
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0}, reads{0};
  std::thread reader_thread([&] {
    RunReader reader(folder.store());
    while (!stop) {
      const Series a = reader.metric(id, "a");
      const NamedValues last = a.steps.empty() ? NamedValues{} : reader.metrics_at(id, a.steps.back());
      if (!a.steps.empty() && last.size() != 2) ++torn;
      ++reads;
    }
  });
  std::thread others([&] {
    for (int64_t i = 0; i < 500; ++i) writer.event(i, "alert");
  });
  for (int64_t step = 0; step < 2000; ++step) {
    writer.metrics(step, NamedValues{{"a", 1.0}, {"b", 2.0}});
    if (step % 100 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    writer.store_problem();
  }
  others.join();
  EXPECT_TRUE(writer.flush());
  stop = true;
  reader_thread.join();
  RunReader reader(folder.store());
  EXPECT_EQ(reader.metric(id, "b").steps.size(), 2000u);
  const auto events = reader.events(id);
  ASSERT_EQ(events.size(), 500u);
  for (int64_t i = 0; i < 500; ++i) EXPECT_EQ(events[static_cast<size_t>(i)].seq, i);
  EXPECT_EQ(torn, 0);
  EXPECT_GT(reads, 0);
}

// ---- a failing store ---------------------------------------------------------------------------------------------

TEST(RunWriter, LockedStoreHoldsRowsInMemoryAndCatchesUp) {
  Folder folder;
  RunWriter writer(folder.store(), start_of("a"), quick());
  ASSERT_TRUE(writer.flush());
  const auto other = open_store(folder.store(), StoreAccess::write);
  {
    Transaction lock(*other);
    for (int64_t step = 1; step <= 50; ++step) writer.metrics(step, NamedValues{{"loss", 1.0}});
    EXPECT_FALSE(writer.flush());
    EXPECT_TRUE(has(writer.store_problem(), {"locked", "training continues", "rows wait in memory"}));
  }
  EXPECT_TRUE(wait_for([&] { return writer.store_problem().empty(); }));
  EXPECT_TRUE(writer.flush());
  EXPECT_EQ(RunReader(folder.store()).metric(writer.run_id(), "loss").steps.size(), 50u);
  EXPECT_TRUE(spill_files(folder.store()).empty());
}

// Through a spill file, as the store cannot be written when it is asked for; merging twice is as once.
TEST(RunWriter, ACourseThatIsSetAsideBecomesARun) {
  Folder folder;
  std::string id, kept;
  {
    RunWriter writer(folder.store(), start_of("a"), quick());
    id = writer.run_id();
    writer.event(0, "start");
    writer.rank(0, "l", 1, 9);
    writer.rank(0, "l", 2, 8);
    writer.memory(0, "data", 5);
    for (int step = 1; step <= 10; ++step) writer.metrics(step, NamedValues{{"loss", 1.0 / step}});
    writer.rank(6, "l", 1, 7);
    writer.event(7, "edit", R"({"path":"x"})");
    writer.checkpoint(5, "checkpoints/" + id + "/step-5.safetensors", 2, "periodic");
    writer.checkpoint(10, "checkpoints/" + id + "/step-10.safetensors", 2, "final");
    RunSummary summary;
    summary.step = 10;
    summary.train_loss = 0.1;
    writer.summary(summary);
    writer.finish("failed", "why");
    ASSERT_TRUE(writer.flush());
  }
  {
    RunWriterOptions options = quick();
    options.spill_after_s = 0;
    RunWriter writer(folder.store(), id, options);
    kept = writer.spare_id();
    const auto other = open_store(folder.store(), StoreAccess::write);
    Transaction lock(*other);
    RunStart start = start_of("a-replaced");
    start.parent = id;
    start.fork_step = 5;
    start.tags = {std::string(kReplaced)};
    writer.set_aside({5, start, R"({"parent":"p"})", {5, "checkpoints/" + kept + "/step-5.safetensors", 2, "start", 1}});
    writer.truncate_after(5);
    EXPECT_FALSE(writer.flush());
    writer.metrics(6, NamedValues{{"loss", 6.0}});
    EXPECT_FALSE(writer.flush());
    ASSERT_TRUE(wait_for([&] { return spill_files(folder.store()).size() == 1; }));
    const std::string file = spill_files(folder.store())[0], spilled = test::read_text(file);
    EXPECT_TRUE(has(spilled, {"set_aside", kept}));
  }
  const RunReader reader(folder.store());
  const RunRow row = reader.run(kept);
  EXPECT_EQ(row.status, "failed");
  EXPECT_EQ(row.message, "why");
  EXPECT_EQ(row.summary.step, 10);
  EXPECT_EQ(row.summary.train_loss, 0.1);
  EXPECT_EQ(row.parent, id);
  EXPECT_EQ(reader.metric(kept, "loss").steps, (std::vector<int64_t>{6, 7, 8, 9, 10}));
  EXPECT_EQ(reader.metric(id, "loss").steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(reader.metric(id, "loss").values.back(), 6.0);
  const auto ranks = reader.ranks_at(kept, 5);
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].rank, 9) << "in force when it began";
  EXPECT_EQ(ranks[1].rank, 8);
  EXPECT_EQ(reader.ranks_at(kept, 6)[0].rank, 7);
  EXPECT_EQ(reader.ranks_at(id, 6)[0].rank, 9);
  EXPECT_EQ(reader.memory(kept).size(), 1u);
  const auto events = reader.events(kept);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].kind, "start");
  EXPECT_EQ(events[0].body, R"({"parent":"p"})");
  EXPECT_EQ(events[1].kind, "edit");
  const auto checkpoints = reader.checkpoints(kept);
  ASSERT_EQ(checkpoints.size(), 2u);
  EXPECT_EQ(checkpoints[1].path, "checkpoints/" + kept + "/step-10.safetensors");
  ASSERT_EQ(reader.checkpoints(id).size(), 1u);
  EXPECT_EQ(reader.checkpoints(id)[0].step, 5);
}

TEST(RunWriter, LongFailureSpillsToAFileThatIsMergedWhenItEnds) {
  Folder folder;
  RunWriterOptions options = quick();
  options.spill_after_s = 0;
  RunWriter writer(folder.store(), start_of("a"), options);
  const std::string id = writer.run_id();
  const auto other = open_store(folder.store(), StoreAccess::write);
  {
    Transaction lock(*other);
    writer.metrics(1, NamedValues{{"loss", std::nan("")}, {"a \"b\"", -INFINITY}});
    writer.rank(1, "l", 2, 9);
    writer.memory(1, "data", 5);
    writer.event(1, "edit", R"({"path":"x"})");
    writer.checkpoint(1, "p", 2, "best");
    RunSummary summary;
    summary.step = 1;
    summary.train_loss = 0.5;
    writer.summary(summary);
    EXPECT_FALSE(writer.flush());
    EXPECT_TRUE(wait_for([&] { return spill_files(folder.store()).size() == 1; }));
    writer.truncate_after(1);
    writer.metrics(2, NamedValues{{"loss", 2.0}});
    EXPECT_FALSE(writer.flush());
    EXPECT_TRUE(has(writer.store_problem(), {"rows are kept in", ".spill-" + id}));
    // Another program that opens the store leaves the file of a living writer alone.
    EXPECT_EQ(RunReader(folder.store()).runs().size(), 1u);
    EXPECT_EQ(spill_files(folder.store()).size(), 1u);
  }
  EXPECT_TRUE(wait_for([&] { return writer.store_problem().empty(); }));
  EXPECT_TRUE(writer.flush());
  EXPECT_TRUE(spill_files(folder.store()).empty());
  RunReader reader(folder.store());
  const Series loss = reader.metric(id, "loss");
  ASSERT_EQ(loss.steps, (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(std::isnan(loss.values[0]));
  EXPECT_EQ(reader.metric(id, "a \"b\"").values.at(0), -INFINITY);
  EXPECT_EQ(reader.ranks_at(id, 1).at(0).rank, 9);
  EXPECT_EQ(reader.memory(id).at(0).bytes, 5);
  EXPECT_EQ(reader.events(id).at(0).body, R"({"path":"x"})");
  EXPECT_EQ(reader.checkpoints(id).at(0).path, "p");
  EXPECT_EQ(reader.run(id).summary.train_loss, 0.5);
}

TEST(RunWriter, RowsSpillWhenTheyAreManyOrHaveWaitedLong) {
  Folder folder;
  for (const bool many : {true, false}) {
    const std::string store = folder.file(many ? "many.db" : "long.db");
    RunWriterOptions options = quick();
    if (many)
      options.ram_bytes = 10'000;
    else
      options.spill_after_s = 0.4;  // some retries
    RunWriter writer(store, start_of("a"), options);
    const auto other = open_store(store, StoreAccess::write);
    const Transaction lock(*other);
    writer.metrics(1, NamedValues{{"loss", 1.0}});
    EXPECT_FALSE(writer.flush());
    if (many) {
      EXPECT_TRUE(spill_files(store).empty()) << "one row may wait";
      for (int64_t step = 2; step <= 1000; ++step) writer.metrics(step, NamedValues{{"loss", 1.0}});
      EXPECT_FALSE(writer.flush());
      EXPECT_EQ(spill_files(store).size(), 1u);
    }
    EXPECT_TRUE(wait_for([&] { return spill_files(store).size() == 1; }));
  }
}

TEST(RunWriter, SpillOfAnEndedProgramIsMergedAtTheNextOpen) {
  Folder folder;
  std::string id;
  const auto other = open_store(folder.store(), StoreAccess::create);
  {
    auto writer = std::make_unique<RunWriter>(folder.store(), start_of("a"), quick());
    id = writer->run_id();
    Transaction lock(*other);
    for (int64_t step = 1; step <= 20; ++step) writer->metrics(step, NamedValues{{"loss", 1.0}});
    writer->finish("finished");
    writer.reset();  // the last chance: spills
  }
  const auto files = spill_files(folder.store());
  ASSERT_EQ(files.size(), 1u);
  const std::string spilled = test::read_text(files[0]);
  test::write_text(files[0], spilled + R"({"op":"metrics","step":21,"wall)");  // as a kill in the middle of a line leaves it
  RunReader reader(folder.store());
  EXPECT_EQ(reader.metric(id, "loss").steps.size(), 20u);
  EXPECT_EQ(reader.run(id).status, "finished");
  EXPECT_TRUE(spill_files(folder.store()).empty());
  EXPECT_FALSE(std::filesystem::exists(files[0] + ".damaged")) << "a line in halves is no damage: its row was never taken";
  // A file whose removal failed is not merged again: its truncations would undo what came later.
  open_store(folder.store(), StoreAccess::write)->run("DELETE FROM metrics");
  test::write_text(files[0], spilled);
  EXPECT_TRUE(RunReader(folder.store()).metric(id, "loss").steps.empty());
  EXPECT_TRUE(spill_files(folder.store()).empty());
}

TEST(RunWriter, DamagedSpillLinesAreKept) {
  Folder folder;
  open_store(folder.store(), StoreAccess::create);
  const std::string file = folder.store() + ".spill-r-aaaaaa-bbbbbbbb.jsonl";
  const std::string header =
      R"({"spill":1,"token":"t","run":"r-aaaaaa","created":5.0,"start":{"name":"n","config":"{}","seed":1,"device":"","data_fingerprint":"","parent":"",)"
      R"("fork_step":0,"total_steps":9,"tags":[]}})";
  test::write_text(file, header + "\n" + R"({"op":"rank","step":1,"layer":"l","bond":1,"rank":3})" + "\n{broken\n" +
                             R"({"op":"dance","step":1})" + "\n");
  RunReader reader(folder.store());
  EXPECT_EQ(reader.ranks_at("r-aaaaaa", 5).at(0).rank, 3);  // the run was made anew from the header
  EXPECT_TRUE(spill_files(folder.store()).empty());
  EXPECT_TRUE(std::filesystem::exists(file + ".damaged"));
}

TEST(RunWriter, DeletedStoreIsNoticedAndTheRunContinuesInANewOne) {
  Folder folder;
  RunWriterOptions options = quick();
  options.spill_after_s = 0;
  RunWriter writer(folder.store(), start_of("a"), options);
  const std::string id = writer.run_id();
  writer.metrics(1, NamedValues{{"loss", 1.0}});
  ASSERT_TRUE(writer.flush());
  for (const char* ending : {"", "-wal", "-shm"}) std::filesystem::remove(folder.store() + ending);
  writer.metrics(2, NamedValues{{"loss", 2.0}});
  EXPECT_FALSE(writer.flush());
  EXPECT_TRUE(has(writer.store_problem(), {"no database"}));
  EXPECT_FALSE(std::filesystem::exists(folder.store()));  // a deleted store does not come back by itself
  test::make_run(folder.store(), "another");
  EXPECT_TRUE(wait_for([&] { return writer.flush(); }));
  RunReader reader(folder.store());
  EXPECT_EQ(reader.metric(id, "loss").steps, std::vector<int64_t>{2});
  EXPECT_EQ(reader.run(id).name, "a");
  EXPECT_EQ(reader.run(id).status, "running");
}

TEST(RunWriter, MemoryIsBoundedWhenNothingCanBeWritten) {
  Folder folder;
  const std::string place = folder.file("sub");
  std::filesystem::create_directory(place);
  const test::Variable state("XDG_STATE_HOME", "/dev/null"), temporary("TMPDIR", "/dev/null");
  RunWriterOptions options = quick();
  options.spill_after_s = 0;
  options.ram_bytes = 10'000;
  options.hard_ram_bytes = 50'000;
  RunWriter writer(place + "/runs.db", start_of("a"), options);
  ASSERT_TRUE(writer.flush());
  std::filesystem::remove_all(place);  // neither the store nor a spill file beside it or elsewhere
  for (int64_t step = 0; step < 5000; ++step) writer.metrics(step, NamedValues{{"loss", 1.0}});
  writer.event(5000, "edit", R"({"path":"kept"})");
  EXPECT_FALSE(writer.flush());
  EXPECT_TRUE(wait_for([&] { return bool(has(writer.store_problem(), {"metric values were lost"})); }));
  EXPECT_TRUE(has(writer.store_problem(), {"cannot write " + place}));
  test::make_run(place + "/runs.db", "another");
  ASSERT_TRUE(wait_for([&] { return writer.flush(); })) << "what was lost is lost: the store works again";
  EXPECT_EQ(writer.store_problem(), "");
  const RunReader reader(place + "/runs.db");
  EXPECT_EQ(reader.runs().size(), 2u);
  const std::vector<EventRow> events = reader.events(writer.run_id());
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].body, R"({"path":"kept"})");
  EXPECT_EQ(events[1].kind, "alert");
  EXPECT_GT(events[1].seq, events[0].seq);
  const size_t kept = reader.metric(writer.run_id(), "loss").steps.size();
  EXPECT_LT(kept, 5000u);
  const Json alert = parse_valid_json(events[1].body);
  EXPECT_EQ(alert.at("kind"), "store");
  EXPECT_TRUE(has(alert.at("text"), {std::to_string(5000 - kept) + " metric values were lost", "steps 0 to "}));
  writer.metrics(5000, NamedValues{{"loss", 1.0}});
  EXPECT_TRUE(writer.flush());
  EXPECT_EQ(reader.events(writer.run_id()).size(), 2u) << "reported once";
}

TEST(RunWriter, DiskFull) {
  Folder folder;
  SmallDisk disk(folder.file("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "needs the right to mount a small tmpfs";
  const std::string store = folder.file("disk/runs.db");
  RunWriter writer(store, start_of("a"), quick());
  const std::string id = writer.run_id();
  writer.metrics(0, NamedValues{{"loss", 1.0}});
  ASSERT_TRUE(writer.flush());
  disk.fill();
  for (int64_t step = 1; step <= 20'000; ++step) writer.metrics(step, NamedValues{{"loss", 1.0}});
  EXPECT_FALSE(writer.flush());
  EXPECT_TRUE(has(writer.store_problem(), {"training continues"}));
  EXPECT_TRUE(writer.store_problem().find("full") != std::string::npos || writer.store_problem().find("I/O") != std::string::npos)
      << writer.store_problem();
  // What was saved is sound: the first value, and those behind it for which blocks of the write-ahead log were there already.
  const std::vector<int64_t> saved = RunReader(store).metric(id, "loss").steps;
  ASSERT_TRUE(!saved.empty() && saved.size() < 20'001u) << saved.size();
  EXPECT_EQ(saved.back(), static_cast<int64_t>(saved.size()) - 1);
  disk.empty();
  EXPECT_TRUE(wait_for([&] { return writer.flush(); })) << writer.store_problem();
  EXPECT_EQ(RunReader(store).metric(id, "loss").steps.size(), 20'001u);
}

// A summary that was given before the rows are taken back is of a step that is taken back, too.
TEST(RunWriter, ASummaryBeforeATruncationIsTakenBack) {
  Folder folder;
  RunWriterOptions options = quick();
  options.commit_s = 1000;  // all of it in one transaction
  RunWriter writer(folder.store(), start_of("a"), options);
  RunSummary summary;
  summary.step = 10;
  writer.summary(summary);
  writer.truncate_after(6);
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(RunReader(folder.store()).run(writer.run_id()).summary.step, 6);
  summary.step = 9;
  writer.truncate_after(6);
  writer.summary(summary);
  ASSERT_TRUE(writer.flush());
  EXPECT_EQ(RunReader(folder.store()).run(writer.run_id()).summary.step, 9) << "one that is given after it stays";
}

// ---- where there is no room beside the store --------------------------------------------------------------------

TEST(RunWriter, WhatAFullDiskDoesNotTakeGoesToTheStateFolderAndIsMergedAtTheNextOpen) {
  Folder folder;
  const RescuePlaces places(folder);
  SmallDisk disk(folder.file("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "needs the right to mount a small tmpfs";
  const std::string store = folder.file("disk/runs.db");
  std::string id;
  {
    RunWriter writer(store, start_of("a"), quick());
    id = writer.run_id();
    writer.metrics(0, NamedValues{{"loss", 1.0}});
    ASSERT_TRUE(writer.flush());
    disk.fill();
    for (int64_t step = 1; step <= 20'000; ++step) writer.metrics(step, NamedValues{{"loss", 1.0}});
    writer.event(20'000, "note");
    EXPECT_FALSE(writer.flush());
    EXPECT_TRUE(has(writer.store_problem(), {"rows wait in memory"})) << "the disk may have room again soon";
    writer.finish("finished");
    EXPECT_FALSE(writer.flush()) << "the store has it not";
    EXPECT_TRUE(has(writer.store_problem(), {"rows are kept in " + folder.file("state/comera/rescued/runs.db.spill-" + id)}));
    EXPECT_FALSE(has(writer.store_problem(), {"training continues"}));
  }
  ASSERT_EQ(spill_files(store).size(), 1u);
  EXPECT_TRUE(spill_files(folder.file("disk/other.db")).empty());
  {
    const std::string other = folder.file("runs.db");  // a store of the same name elsewhere does not take them
    test::make_run(other, "other");
    EXPECT_TRUE(spill_files(other).empty());
    EXPECT_EQ(RunReader(other).runs().size(), 1u);
  }
  EXPECT_EQ(RunReader(store).metric(id, "loss").steps.size(), 1u) << "still no room: they stay where they are";
  ASSERT_EQ(spill_files(store).size(), 1u);
  disk.empty();
  const RunReader reader(store);
  EXPECT_EQ(reader.metric(id, "loss").steps.size(), 20'001u);
  EXPECT_EQ(reader.run(id).status, "finished");
  EXPECT_EQ(reader.events(id).size(), 1u);
  EXPECT_TRUE(spill_files(store).empty());
  EXPECT_FALSE(std::filesystem::exists(folder.file("state/comera/rescued")));
}

TEST(RunWriter, RowsThatSpillIntoTwoFilesAreMergedInTheirOrder) {
  Folder folder;
  const RescuePlaces places(folder);
  SmallDisk disk(folder.file("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "needs the right to mount a small tmpfs";
  for (const bool by_its_writer : {true, false}) {
    const std::string store = folder.file("disk/runs-" + std::to_string(by_its_writer) + ".db");
    RunWriterOptions options = quick();
    options.spill_after_s = 0;
    auto writer = std::make_unique<RunWriter>(store, start_of("a"), options);
    const std::string id = writer->run_id();
    const auto other = open_store(store, StoreAccess::write);
    {
      Transaction lock(*other);
      for (int64_t step = 1; step <= 10; ++step) writer->metrics(step, NamedValues{{"loss", 1.0}});
      EXPECT_FALSE(writer->flush());
      ASSERT_EQ(spill_files(store).size(), 1u);
      EXPECT_EQ(std::filesystem::path(spill_files(store)[0]).parent_path(), folder.file("disk"));
      disk.fill();
      writer->truncate_after(5);
      for (int64_t step = 6; step <= 2000; ++step) writer->metrics(step, NamedValues{{"loss", 2.0}});
      EXPECT_FALSE(writer->flush());
      ASSERT_EQ(spill_files(store).size(), 2u) << writer->store_problem();
      EXPECT_TRUE(has(spill_files(store)[1], {"state/comera/rescued"})) << "begun later";
      EXPECT_TRUE(has(writer->store_problem(), {spill_files(store)[0] + " and " + spill_files(store)[1]}));
      if (!by_its_writer) writer.reset();
      disk.empty();
    }
    if (writer) {
      EXPECT_TRUE(wait_for([&] { return writer->flush(); })) << writer->store_problem();
    }
    const RunReader reader(store);
    const Series loss = reader.metric(id, "loss");
    ASSERT_EQ(loss.steps.size(), 2000u);
    EXPECT_EQ(loss.values[4], 1.0);
    EXPECT_EQ(loss.values[5], 2.0);
    EXPECT_TRUE(spill_files(store).empty());
  }
}

TEST(RunWriter, WithoutAStateFolderRowsGoToTheTemporaryFilesOfThisUserAlone) {
  Folder folder;
  const RescuePlaces places(folder);
  const test::Variable no_state("XDG_STATE_HOME", "/dev/null");
  const std::string place = folder.file("sub"), store = place + "/runs.db";
  std::filesystem::create_directory(place);
  std::string id;
  {
    RunWriter writer(store, start_of("a"), quick());
    id = writer.run_id();
    ASSERT_TRUE(writer.flush());
    std::filesystem::rename(place, folder.file("away"));
    writer.metrics(1, NamedValues{{"loss", 1.0}});
    writer.finish("finished");
    EXPECT_FALSE(writer.flush());
    EXPECT_TRUE(has(writer.store_problem(), {"rows are kept in " + folder.file("tmp/comera-rescued-")}));
  }
  std::filesystem::rename(folder.file("away"), place);
  const std::string rescue = folder.file("tmp/comera-rescued-" + std::to_string(::geteuid()));
  ::chmod(rescue.c_str(), 0777);  // where others can write, anybody may have put it
  EXPECT_TRUE(spill_files(store).empty());
  EXPECT_TRUE(RunReader(store).metric(id, "loss").steps.empty());
  ::chmod(rescue.c_str(), 0700);
  EXPECT_EQ(RunReader(store).metric(id, "loss").steps.size(), 1u);
  EXPECT_EQ(RunReader(store).run(id).status, "finished");
  EXPECT_FALSE(std::filesystem::exists(rescue));
}

TEST(RunWriter, ARescuedCheckpointIsMovedToTheOthersOfItsRun) {
  Folder folder;
  const RescuePlaces places(folder);
  const std::string rescue = folder.file("state/comera/rescued/checkpoints/");
  std::string id, lone;
  {
    RunWriter writer(folder.store(), start_of("a"), quick());
    id = writer.run_id();
    for (const std::string& place : {folder.file("mine/" + id), rescue + id}) std::filesystem::create_directories(place);
    test::write_text(folder.file("mine/" + id + "/step-1.safetensors"), "one");
    test::write_text(rescue + id + "/step-2.safetensors", "two");
    writer.checkpoint(1, folder.file("mine/" + id + "/step-1.safetensors"), 3, "periodic");
    writer.checkpoint(2, rescue + id + "/step-2.safetensors", 3, "final");
    ASSERT_TRUE(writer.flush());
    EXPECT_EQ(RunReader(folder.store()).checkpoints(id)[1].path, rescue + id + "/step-2.safetensors") << "its writer lives";
    writer.finish("finished");
  }
  {
    RunWriter writer(folder.store(), start_of("b"), quick());
    lone = writer.run_id();
    std::filesystem::create_directories(rescue + lone);
    test::write_text(rescue + lone + "/step-7.safetensors", "seven");
    writer.checkpoint(7, rescue + lone + "/step-7.safetensors", 5, "stop");
    writer.finish("stopped");
  }
  std::filesystem::create_directories(rescue + "r-others");  // of another store
  test::write_text(rescue + "r-others/step-3.safetensors", "three");
  const RunReader reader(folder.store());
  EXPECT_EQ(reader.checkpoints(id)[1].path, folder.file("mine/" + id + "/step-2.safetensors"));
  EXPECT_EQ(test::read_text(reader.checkpoints(id)[1].path), "two");
  EXPECT_EQ(reader.checkpoints(lone)[0].path, folder.file("checkpoints/" + lone + "/step-7.safetensors"));
  EXPECT_EQ(test::read_text(reader.checkpoints(lone)[0].path), "seven");
  EXPECT_FALSE(std::filesystem::exists(rescue + id));
  EXPECT_FALSE(std::filesystem::exists(rescue + lone));
  EXPECT_EQ(test::read_text(rescue + "r-others/step-3.safetensors"), "three");
}

// ---- killed programs ---------------------------------------------------------------------------------------------

TEST(RunWriter, KilledInTheMiddleIsInterruptedAndConsistent) {
  Folder folder;
  const pid_t child = ::fork();  // before this process has threads
  if (child == 0) {
    RunWriter writer(folder.store(), start_of("killed"), quick());
    for (int64_t step = 0;; ++step) {
      writer.metrics(step, NamedValues{{"a", 1.0}, {"b", 2.0}});
      if (step % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  EXPECT_TRUE(wait_for([&] {
    try {
      RunReader reader(folder.store());
      const auto runs = reader.runs();
      return !runs.empty() && runs[0].status == "running" && reader.metric(runs[0].id, "a").steps.size() > 1000;
    } catch (const Error&) {
      return false;
    }
  }));
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));

  RunReader reader(folder.store());
  const RunRow run = reader.runs().at(0);
  EXPECT_EQ(run.status, "interrupted");
  const Series a = reader.metric(run.id, "a"), b = reader.metric(run.id, "b");
  EXPECT_EQ(a.steps, b.steps);  // whole transactions only
  EXPECT_EQ(a.steps.back(), static_cast<int64_t>(a.steps.size()) - 1);
  EXPECT_TRUE(check_store(folder.store()).empty());
  RunWriter again(folder.store(), run.id, quick());  // and it can be resumed
  again.truncate_after(10);
  EXPECT_TRUE(again.flush());
  EXPECT_EQ(reader.metric(run.id, "b").steps.back(), 10);
}

// Dead, but its number is taken until its parent asks for it: what the kernel dropped says that it died.
TEST(RunWriter, AZombieIsInterruptedAtOnce) {
  Folder folder;
  const pid_t child = ::fork();  // before this process has threads
  if (child == 0) {
    RunWriter writer(folder.store(), start_of("zombie"), quick());
    for (;;) ::pause();
  }
  EXPECT_TRUE(wait_for([&] {
    try {
      const auto runs = RunReader(folder.store()).runs();
      return !runs.empty() && runs[0].status == "running";
    } catch (const Error&) {
      return false;
    }
  }));
  ::kill(child, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(::waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
  ASSERT_EQ(::kill(child, 0), 0) << "its number is still taken";
  const RunRow run = RunReader(folder.store()).runs().at(0);
  EXPECT_LT(now_s() - run.heartbeat, kHeartbeatFreshS) << "its heart stopped too long ago: the test shows nothing";
  EXPECT_EQ(run.status, "interrupted");
  {
    RunWriter again(folder.store(), run.id, quick());
    EXPECT_TRUE(again.flush());
    EXPECT_EQ(RunReader(folder.store()).run(run.id).status, "running") << "now this process writes it";
    again.finish("stopped");
  }
  int status = 0;
  ::waitpid(child, &status, 0);
}

TEST(RunWriter, ALivingWriterHoldsItsLockWhateverHappensToItsFiles) {
  Folder folder;
  const auto status = [&](const std::string& id) { return RunReader(folder.store()).run(id).status; };
  const std::string locks = folder.store() + "-writers";
  RunWriter a(folder.store(), start_of("a"), quick()), b(folder.store(), start_of("b"), quick());
  EXPECT_EQ(status(a.run_id()), "running");
  EXPECT_EQ(status(b.run_id()), "running");
  EXPECT_EQ(std::filesystem::file_size(locks), 24u) << "8 bytes a run, from run 0 on";
  b.finish("finished");
  ASSERT_TRUE(b.flush());
  const auto db = open_store(folder.store(), StoreAccess::write);
  Statement(*db, "UPDATE runs SET status = 'running' WHERE id = ?").bind(b.run_id()).run();
  EXPECT_EQ(status(b.run_id()), "interrupted") << "a run that has ended holds none";
  Statement(*db, "UPDATE runs SET pid = 1 WHERE id = ?").bind(b.run_id()).run();
  EXPECT_EQ(status(b.run_id()), "running") << "of a writer that takes none, as of an older version, the process counts";
  std::filesystem::remove(locks);
  EXPECT_EQ(status(a.run_id()), "running") << "without the file the process counts";
  {  // after a failure the store is opened again, and the lock is taken again
    Transaction lock(*db);
    a.metrics(1, NamedValues{{"loss", 1.0}});
    EXPECT_FALSE(a.flush());
  }
  EXPECT_TRUE(wait_for([&] { return a.flush(); }));
  EXPECT_TRUE(std::filesystem::exists(locks));
  EXPECT_EQ(status(a.run_id()), "running");
}

}  // namespace
}  // namespace comera
