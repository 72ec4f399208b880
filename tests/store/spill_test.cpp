// Files of rows that the store did not take: whole or not at all, and in their order.
#include "core/store/spill.h"

#include <nlohmann/json.hpp>

#include "core/store/process.h"
#include "core/store/schema.h"
#include "tests/store/support.h"

namespace comera {
namespace {
using test::Folder;

std::vector<RunOp> metrics(int64_t from, int64_t to, double value, MetricNames& names) {
  std::vector<RunOp> ops;
  for (int64_t step = from; step <= to; ++step) ops.push_back(MetricsOp{step, 1.0, {{names.index("loss"), value}}});
  return ops;
}

TEST(Spill, WhatIsNotTakenWholeIsCutBack) {
  Folder folder;
  const test::Variable state("XDG_STATE_HOME", "/dev/null"), temporary("TMPDIR", "/dev/null");
  test::SmallDisk disk(folder.file("disk"));
  if (!disk.mounted()) GTEST_SKIP() << "needs the right to mount a small tmpfs";
  const std::string store = folder.file("disk/runs.db"), id = test::make_run(store, "a", 1);
  MetricNames names;
  Spill spill(store, id, test::start_of("a"), now_s());
  ASSERT_TRUE(spill.append(metrics(2, 10, 1.0, names), names));
  ASSERT_EQ(spill_files(store), std::vector<std::string>{spill.paths()});
  const auto bytes = std::filesystem::file_size(spill.paths());
  disk.fill();
  EXPECT_FALSE(spill.append(metrics(11, 5000, 1.0, names), names));
  EXPECT_TRUE(test::has(spill.problem(), {"cannot write " + spill.paths(), "No space left", "/dev/null"})) << "every place that was tried";
  EXPECT_EQ(std::filesystem::file_size(spill.paths()), bytes);
  disk.empty();
  EXPECT_TRUE(spill.append(metrics(11, 5000, 2.0, names), names));
  EXPECT_EQ(spill.problem(), "");
  EXPECT_EQ(spill_files(store).size(), 1u) << "into the same file";
  const auto db = open_store(store, StoreAccess::write);
  Transaction transaction(*db);
  spill.merge_into(*db);
  transaction.commit();
  spill.remove();
  EXPECT_FALSE(spill.exists());
  const Series loss = RunReader(store).metric(id, "loss");
  EXPECT_EQ(loss.steps.size(), 5000u);
  EXPECT_EQ(loss.values.back(), 2.0);
}

TEST(Spill, ALaterFileWaitsForAnEarlierOneOfItsRun) {
  Folder folder;
  const std::string id = test::make_run(folder.store(), "a", 1), other = test::make_run(folder.store(), "b", 1);
  MetricNames names;
  {
    Spill held(folder.store(), id, test::start_of("a"), now_s());  // of a writer that lives
    ASSERT_TRUE(held.append(metrics(2, 10, 1.0, names), names));
    {
      Spill later(folder.store(), id, test::start_of("a"), now_s()), of_another(folder.store(), other, test::start_of("b"), now_s());
      std::vector<RunOp> ops = metrics(5, 8, 2.0, names);
      ops.insert(ops.begin(), TruncateOp{4});
      ASSERT_TRUE(later.append(ops, names));
      ASSERT_TRUE(of_another.append(metrics(2, 3, 1.0, names), names));
    }
    const RunReader reader(folder.store());
    EXPECT_EQ(spill_files(folder.store()).size(), 2u);
    EXPECT_EQ(reader.metric(id, "loss").steps.size(), 1u);
    EXPECT_EQ(reader.metric(other, "loss").steps.size(), 3u) << "runs do not wait for each other";
  }
  const Series loss = RunReader(folder.store()).metric(id, "loss");
  EXPECT_EQ(loss.steps, (std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(loss.values.back(), 2.0);
  EXPECT_TRUE(spill_files(folder.store()).empty());
}

// All rows of a store, as text.
std::string contents(const std::string& store) {
  std::string text;
  for (const char* table : {"runs", "metric_names", "metrics", "steps", "ranks", "memory", "events", "checkpoints"})
    text += query_to_json(query_store(store, std::string("SELECT * FROM ") + table));
  return text;
}

TEST(RunOps, DoingAListTwiceIsAsDoingItOnce) {
  Folder once, twice;
  std::string text[2];
  for (const Folder* folder : {&once, &twice}) {
    const auto db = open_store(folder->store(), StoreAccess::create);
    Transaction transaction(*db);
    MetricNames names;
    const int64_t run = insert_run(*db, "r-aaaaaa", test::start_of("a"), 1000);
    RunTables(*db, run).apply(EventOp{{0, 0, "start", 1, "{}"}}, names);
    std::vector<RunOp> ops = metrics(1, 10, 1.0, names);
    ops.push_back(RankOp{{3, "fc0", 1, 8}});
    ops.push_back(MemoryOp{{4, "data", 100}});
    ops.push_back(EventOp{{1, 9, "edit", 2, R"({"path":"x"})"}});
    ops.push_back(EventOp{{2, 5, "edit", 2, R"({"path":"y"})"}});
    ops.push_back(ForgetEditsOp{"y", 4});
    ops.push_back(CheckpointOp{{2, "p", 1, "periodic", 3}});
    ops.push_back(CheckpointOp{{8, "checkpoints/r-aaaaaa/q", 1, "periodic", 3}});
    ops.push_back(ForgetCheckpointOp{2});
    RunSummary summary;
    summary.step = 10;
    ops.push_back(SummaryOp{summary});
    RunStart start = test::start_of("aside");
    start.parent = "r-aaaaaa";
    ops.push_back(SetAsideOp{"r-bbbbbb", "stopped", "", {6, start, "{}", {6, "first", 1, "start", 4}}});
    ops.push_back(TruncateOp{6});
    for (RunOp& op : metrics(7, 9, 2.0, names)) ops.push_back(std::move(op));
    ops.push_back(FinishOp{"finished", ""});
    RunTables tables(*db, run);
    for (int i = 0; i < (folder == &twice ? 2 : 1); ++i)
      for (const RunOp& op : ops) tables.apply(op, names);
    transaction.commit();
    text[folder == &twice] = contents(folder->store());
  }
  EXPECT_EQ(text[0], text[1]);
  const RunReader reader(twice.store());
  EXPECT_EQ(reader.metric("r-aaaaaa", "loss").steps.back(), 9);
  EXPECT_EQ(reader.metric("r-bbbbbb", "loss").steps, (std::vector<int64_t>{7, 8, 9, 10}));
}

}  // namespace
}  // namespace comera
