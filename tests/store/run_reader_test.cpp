// Finding and reading runs: truthful status, names that are near, ranks in force at a step, free queries, many runs.
#include "core/store/run_reader.h"

#include <cmath>

#include "core/store/process.h"
#include "core/store/run_ops.h"
#include "core/store/schema.h"
#include "tests/store/support.h"

namespace comera {
namespace {

using test::error_of;
using test::Folder;
using test::has;
using test::make_run;

TEST(RunReader, StatusIsComputed) {
  Folder folder;
  make_run(folder.store(), "a");
  std::filesystem::remove(folder.store() + "-writers");  // of an older version: its process counts
  const double now = now_s();
  struct Case {
    const char* what;
    std::string status;
    double heartbeat;
    int64_t pid;
    std::string boot, expected;
  };
  const Case cases[] = {
      {"alive", "running", now, own_pid(), boot_id(), "running"},
      {"heart stopped", "running", now - 11, own_pid(), boot_id(), "interrupted"},
      {"process gone", "running", now, 4'000'000, boot_id(), "interrupted"},
      {"machine restarted", "running", now, own_pid(), "another boot", "interrupted"},
      {"clock set back", "running", now + 3600, own_pid(), boot_id(), "interrupted"},
      {"ended", "diverged", now, own_pid(), boot_id(), "diverged"},
  };
  for (const Case& c : cases) {
    const auto db = open_store(folder.store(), StoreAccess::write);
    Statement(*db, "UPDATE runs SET status = ?, heartbeat = ?, pid = ?, boot_id = ?").bind(c.status, c.heartbeat, c.pid, c.boot).run();
    EXPECT_EQ(RunReader(folder.store()).runs().at(0).status, c.expected) << c.what;
  }
}

TEST(RunReader, FindsByIdNameAndBeginning) {
  Folder folder;
  const std::string a = make_run(folder.store(), "mnli-r30"), b = make_run(folder.store(), "mnli-r10"),
                    c = make_run(folder.store(), "twin"), d = make_run(folder.store(), "twin");
  RunReader reader(folder.store());
  EXPECT_EQ(reader.find(a).name, "mnli-r30");
  EXPECT_EQ(reader.find("mnli-r10").id, b);
  EXPECT_EQ(reader.find("mnli-r3").id, a);
  EXPECT_EQ(reader.find(a.substr(2)).id, a);  // without "r-"
  EXPECT_TRUE(has(error_of([&] { reader.find("mnli"); }), {test::code(ErrorCode::not_found), "fits 2 runs", a, b, "mnli-r10"}));
  EXPECT_TRUE(has(error_of([&] { reader.find("twin"); }), {test::code(ErrorCode::not_found), "fits 2 runs", c, d}));
  EXPECT_TRUE(has(error_of([&] { reader.find("mnil-r30"); }), {test::code(ErrorCode::not_found), "did you mean", "mnli-r30"}));
  EXPECT_TRUE(has(error_of([&] { reader.find(""); }), {test::code(ErrorCode::not_found)}));
  Folder single;
  make_run(single.store(), "only");
  EXPECT_TRUE(has(error_of([&] { RunReader(single.store()).find(""); }), {test::code(ErrorCode::not_found)})) << "not even of one";
  for (const auto& call :
       std::vector<std::function<void()>>{[&] { reader.run("r-zzzzzz"); }, [&] { reader.config("r-zzzzzz"); },
                                          [&] { reader.metric("r-zzzzzz", "loss"); }, [&] { reader.events("r-zzzzzz"); }})
    EXPECT_TRUE(has(error_of(call), {test::code(ErrorCode::not_found), "r-zzzzzz"}));
}

TEST(RunReader, MetricsAroundAndAt) {
  Folder folder;
  const std::string id = make_run(folder.store(), "a", 100);
  RunReader reader(folder.store());
  const auto points = reader.metric_around(id, "loss", 50, 2);
  ASSERT_EQ(points.size(), 5u);
  EXPECT_EQ(points[0].step, 48);
  EXPECT_EQ(points[2].value, 0.02);
  EXPECT_NEAR(points[2].wall_time, now_s(), 60);
  EXPECT_EQ(reader.metrics_at(id, 4), (NamedValues{{"loss", 0.25}}));
  EXPECT_TRUE(reader.metrics_at(id, 1000).empty());
  EXPECT_TRUE(reader.metric(id, "no such").steps.empty());
  EXPECT_EQ(reader.metric(id, "loss", 98).steps, (std::vector<int64_t>{99, 100}));
  int64_t visits = 0;
  reader.each_metric(id, [&](int64_t step, double, const std::string& name, double) {
    EXPECT_EQ(step, ++visits);
    EXPECT_EQ(name, "loss");
  });
  EXPECT_EQ(visits, 100);
}

TEST(RunReader, RanksInForceAtAStep) {
  Folder folder;
  RunWriter writer(folder.store(), test::start_of("a"), test::quick());
  for (const auto& [step, bond, rank] : std::vector<std::tuple<int64_t, int64_t, int64_t>>{{0, 1, 30}, {0, 2, 30}, {10, 1, 22}, {20, 2, 0}})
    writer.rank(step, "q", bond, rank);
  ASSERT_TRUE(writer.flush());
  RunReader reader(folder.store());
  const auto at = [&](int64_t step) {
    std::string text;
    for (const LayerRank& row : reader.ranks_at(writer.run_id(), step))
      text += row.layer + std::to_string(row.bond) + "=" + std::to_string(row.rank) + "@" + std::to_string(row.since_step) + " ";
    return text;
  };
  EXPECT_EQ(at(-1), "");
  EXPECT_EQ(at(9), "q1=30@0 q2=30@0 ");
  EXPECT_EQ(at(10), "q1=22@10 q2=30@0 ");
  EXPECT_EQ(at(99), "q1=22@10 q2=0@20 ");
}

TEST(RunReader, ThousandsOfRunsList) {
  Folder folder;
  {
    const auto db = open_store(folder.store(), StoreAccess::create);
    Transaction transaction(*db);
    RunStart start = test::start_of("run");
    start.config = R"({"x":")" + std::string(4000, 'c') + "\"}";
    for (int i = 0; i < 5000; ++i) insert_run(*db, "r-" + std::to_string(100'000 + i), start, 1e9 + i);
    transaction.commit();
  }
  const auto begin = std::chrono::steady_clock::now();
  RunReader reader(folder.store());
  const auto opened = std::chrono::steady_clock::now();
  const auto runs = reader.runs();
  const auto end = std::chrono::steady_clock::now();
  EXPECT_EQ(runs.size(), 5000u);
  EXPECT_EQ(runs[0].id, "r-104999");  // newest first
  using Ms = std::chrono::duration<double, std::milli>;
  RecordProperty("list_ms", std::to_string(Ms(end - opened).count()));
  std::printf("5,000 runs: opened in %.1f ms, listed in %.1f ms\n", Ms(opened - begin).count(), Ms(end - opened).count());
  // Why it is fast: an index has all that is asked for, in its order, and the configs, most of the file, are not read.
  const auto plan =
      reader.query(std::string("EXPLAIN QUERY PLAN SELECT created, ") + kListColumns + " FROM runs ORDER BY created DESC, run DESC").rows;
  ASSERT_EQ(plan.size(), 1u);
  EXPECT_TRUE(has(plan[0].back().text, {"COVERING INDEX runs_list"})) << plan[0].back().text;
}

TEST(Query, ReadsAndNothingElse) {
  Folder folder;
  const std::string id = make_run(folder.store(), "a");
  const QueryTable table =
      query_store(folder.store(), "SELECT id, step, 1.5 AS half, NULL AS none, x'0aff' AS bytes, 9e999 AS big FROM runs; -- end");
  EXPECT_EQ(table.columns, (std::vector<std::string>{"id", "step", "half", "none", "bytes", "big"}));
  ASSERT_EQ(table.rows.size(), 1u);
  EXPECT_EQ(table.rows[0][0].text, id);
  EXPECT_EQ(table.rows[0][2].text, "1.5");
  EXPECT_EQ(table.rows[0][3].type, QueryTable::Cell::null);
  EXPECT_EQ(table.rows[0][4].text, "0aff");
  EXPECT_TRUE(has(query_to_json(table), {"\"half\": 1.5", "\"none\": null", "\"big\": \"inf\"", "\"step\": 0"}));
  EXPECT_EQ(query_store(folder.store(), "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10) SELECT i FROM n", 3)
                .rows.size(),
            3u);
  EXPECT_TRUE(query_store(folder.store(), "VALUES (1), (2)", 1).cut);
  EXPECT_FALSE(query_store(folder.store(), "VALUES (1), (2)", 2).cut);
  EXPECT_EQ(query_store(folder.store(), "SELECT avg(value) FROM run_metrics WHERE metric = 'loss'").rows.size(), 1u);
  for (const char* sql : {"DELETE FROM runs", "UPDATE runs SET name = 'x'", "DROP TABLE runs", "PRAGMA user_version = 5",
                          "PRAGMA journal_mode", "ATTACH 'x.db' AS x", "VACUUM INTO 'copy.db'", "SELECT load_extension('x')",
                          "SELECT 1; SELECT 2", "SELECT 1; DELETE FROM runs", "CREATE TABLE x(a)", "BEGIN", "REINDEX", "", "  -- nothing",
                          "SELEC 1", "SELECT * FROM nowhere", "INSERT INTO runs(id) VALUES('x') RETURNING id"})
    EXPECT_TRUE(has(error_of([&] { query_store(folder.store(), sql); }), {test::code(ErrorCode::usage), "cannot run this query"})) << sql;
  EXPECT_EQ(RunReader(folder.store()).runs().size(), 1u);
}

TEST(ConfigDiff, OnlyWhatDiffers) {
  const std::string a = R"({"name":"a","train":{"batch":32,"lr":0.1,"old":true},"shape":[1,2]})";
  const std::string b = R"({"name":"b","train":{"batch":32,"lr":0.2},"shape":[1,3],"extra":{"x":null}})";
  std::string text;
  for (const auto& d : diff_configs(a, b)) text += d.path + ":" + d.a + "|" + d.b + " ";
  EXPECT_EQ(text, "name:\"a\"|\"b\" train.lr:0.1|0.2 train.old:true| shape:[1,2]|[1,3] extra.x:|null ");
  EXPECT_TRUE(diff_configs(a, a).empty());
  EXPECT_EQ(diff_configs(a, a, false).size(), 5u);
  EXPECT_TRUE(has(error_of([&] { diff_configs(a, "{"); }), {test::code(ErrorCode::config)}));
}

}  // namespace
}  // namespace comera
