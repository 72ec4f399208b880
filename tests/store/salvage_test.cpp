// What is left of a damaged store.
#include "core/store/salvage.h"

#include <algorithm>

#include "core/store/schema.h"
#include "tests/store/support.h"

namespace comera {
namespace {

using test::Folder;

constexpr int64_t kSteps = 4000;

void make_runs(const std::string& store) {
  for (const char* name : {"a", "b"}) {
    RunWriter writer(store, test::start_of(name), test::quick());
    for (int64_t step = 1; step <= kSteps; ++step) writer.metrics(step, {{"loss", 1.0 / static_cast<double>(step)}, {"lr", 1e-3}});
    writer.event(7, "stage", R"({"stage": "late"})");
    writer.finish("finished");
  }
  open_store(store, StoreAccess::write)->text("PRAGMA wal_checkpoint(TRUNCATE)");
}

// Overwrites a page with rows of a curve, from the middle of the file on.
void damage(const std::string& store) {
  constexpr size_t kPage = 4096;
  constexpr char kLeafOfIndex = 10;  // what tables in the order of their key are made of
  std::string bytes = test::read_text(store);
  size_t page = bytes.size() / kPage / 2;
  while (bytes.at(page * kPage) != kLeafOfIndex) ++page;
  bytes.replace(page * kPage, kPage, kPage, '\xff');
  test::write_text(store, bytes);
}

TEST(Salvage, ReadsWhatIsBeforeAndBehindTheDamage) {
  Folder folder;
  make_runs(folder.store());
  const Salvaged whole = salvage_store(folder.store());
  EXPECT_EQ(whole.gaps, std::vector<std::string>{}) << "nothing is lost of a sound one";
  EXPECT_EQ(whole.runs, 2);
  EXPECT_EQ(fault_of(folder.store()), StoreFault::none);
  damage(folder.store());
  const std::string before = test::read_text(folder.store());
  ASSERT_FALSE(check_store(folder.store()).empty());
  const Salvaged saved = salvage_store(folder.store());
  EXPECT_EQ(test::read_text(folder.store()), before) << "the damaged one is not touched";
  EXPECT_NE(saved.path, whole.path) << "and no other file is overwritten";
  EXPECT_EQ(saved.runs, 2);
  ASSERT_EQ(saved.gaps.size(), 1u);
  EXPECT_LT(saved.rows, whole.rows);
  EXPECT_GT(saved.rows, whole.rows - 600) << "one page of rows";
  EXPECT_TRUE(check_store(saved.path).empty());
  const RunReader reader(saved.path);
  for (const RunRow& run : reader.runs()) {
    EXPECT_EQ(run.status, "finished");
    EXPECT_EQ(reader.events(run.id).size(), 1u);
    for (const char* name : {"loss", "lr"}) {
      const Series curve = reader.metric(run.id, name);
      ASSERT_FALSE(curve.steps.empty());
      EXPECT_EQ(curve.steps.front(), 1);
      EXPECT_EQ(curve.steps.back(), kSteps);
    }
  }
}

// How many of the first curve come before what cannot be read; kSteps = all.
int64_t readable(const std::string& store) {
  int64_t rows = 0;
  try {
    Database db(store, Database::Mode::read);
    Statement curve(db, "SELECT value FROM metrics WHERE run = 1 AND metric = 1 ORDER BY step");
    while (curve.step()) ++rows;
  } catch (const DatabaseError&) {
  }
  return rows;
}

TEST(Salvage, OfADamagedCurveOnePageIsLost) {
  Folder folder;
  make_runs(folder.store());
  const std::string whole = test::read_text(folder.store());
  constexpr size_t kPage = 4096;
  int64_t before = 0;
  for (size_t page = 1; page < whole.size() / kPage && (before < kSteps / 4 || before > kSteps / 2); ++page) {
    std::string bytes = whole;
    bytes.replace(page * kPage, kPage, kPage, '\xff');
    test::write_text(folder.store(), bytes);
    before = readable(folder.store());
  }
  ASSERT_GE(before, kSteps / 4) << "no page is in the middle of the curve";
  ASSERT_LE(before, kSteps / 2);
  const Salvaged saved = salvage_store(folder.store());
  const RunReader reader(saved.path);
  const std::string id = reader.find("a").id;
  const Series loss = reader.metric(id, "loss"), lr = reader.metric(id, "lr");
  const auto gap = std::adjacent_find(loss.steps.begin(), loss.steps.end(), [](int64_t a, int64_t b) { return b != a + 1; });
  ASSERT_NE(gap, loss.steps.end());
  EXPECT_GE(*gap, before);
  EXPECT_GT(static_cast<int64_t>(loss.steps.size()), kSteps - 600) << "one page of rows";
  EXPECT_EQ(loss.steps.back(), kSteps) << "those behind it";
  EXPECT_EQ(static_cast<int64_t>(lr.steps.size()), kSteps) << "and the other curve, which lies behind it";
  ASSERT_EQ(saved.gaps.size(), 1u);
  EXPECT_TRUE(test::has(saved.gaps[0], {"run " + id + ", metrics: ", "rows could be read, others not"}));
}

TEST(Salvage, ARunWhoseRowIsLostIsListedAnew) {
  Folder folder;
  make_runs(folder.store());
  open_store(folder.store(), StoreAccess::write)->run("DELETE FROM runs WHERE name = 'a'");
  const Salvaged saved = salvage_store(folder.store());
  const RunReader reader(saved.path);
  ASSERT_EQ(reader.runs().size(), 2u);
  const RunRow lost = reader.find("r-salvaged-1");
  EXPECT_EQ(lost.status, "interrupted");
  EXPECT_EQ(lost.summary.step, kSteps);
  EXPECT_EQ(reader.metric(lost.id, "loss").steps.size(), static_cast<size_t>(kSteps));
  // Also where no run that is listed comes after it.
  open_store(folder.store(), StoreAccess::write)->run("DELETE FROM runs");
  EXPECT_EQ(RunReader(salvage_store(folder.store()).path).runs().size(), 2u);
}

TEST(Salvage, IntoAFileThatIsNamedButOverNone) {
  Folder folder;
  make_runs(folder.store());
  EXPECT_EQ(salvage_store(folder.store(), folder.file("copy.db")).path, folder.file("copy.db"));
  EXPECT_EQ(RunReader(folder.file("copy.db")).runs().size(), 2u);
  test::write_text(folder.file("mine"), "mine");
  EXPECT_TRUE(test::has(test::error_of([&] { salvage_store(folder.store(), folder.file("mine")); }),
                        {test::code(ErrorCode::usage), "there already"}));
  EXPECT_EQ(test::read_text(folder.file("mine")), "mine");
  EXPECT_TRUE(test::has(test::error_of([&] { salvage_store(folder.file("none.db")); }), {test::code(ErrorCode::not_found)}));
  EXPECT_FALSE(std::filesystem::exists(folder.file("none.db.salvaged.db")));
}

TEST(Salvage, WhatIsNoStoreIsRefusedAndLeavesNothing) {
  Folder folder;
  test::write_text(folder.store(), std::string(8192, 'x'));
  EXPECT_EQ(fault_of(folder.store()), StoreFault::foreign);
  EXPECT_TRUE(test::has(test::error_of([&] { salvage_store(folder.store()); }), {test::code(ErrorCode::storage), "cannot salvage"}));
  Folder newer;
  make_runs(newer.store());
  open_store(newer.store(), StoreAccess::write)->run("PRAGMA user_version = 99");
  EXPECT_EQ(fault_of(newer.store()), StoreFault::none) << "it is read as it is";
  EXPECT_TRUE(test::has(test::error_of([&] { salvage_store(newer.store()); }), {"newer version"}));
  for (const Folder* one : {&folder, &newer}) EXPECT_FALSE(std::filesystem::exists(one->store() + ".salvaged.db"));
}

}  // namespace
}  // namespace comera
