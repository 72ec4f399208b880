// Whoever watches a run and does not ask for a long time: what waits for it stays bounded, and nothing is lost.
#include <nlohmann/json.hpp>

#include "core/session/session.h"
#include "core/store/run_reader.h"
#include "tests/session/support.h"

namespace comera {
namespace {

using test::Folder;

// What was told, with the steps that were left out taken from the store.
std::map<int64_t, std::map<std::string, double>> completed(const Records& records, const RunReader& reader, const std::string& run) {
  std::map<int64_t, std::map<std::string, double>> all = by_step(records.metrics);
  for (const std::string& name : reader.metric_names(run)) {
    Series series;
    reader.metric(run, name, records.left_out.first - 1, records.left_out.last, series);
    for (size_t i = 0; i < series.steps.size(); ++i) all[series.steps[i]][name] = series.values[i];
  }
  return all;
}

TEST(Session, WhatNobodyAsksForIsBoundedAndNotLost) {
  Folder folder;
  SessionStart start = start_in(folder);
  start.most_waiting = 300;  // some 20 steps
  Session session(start);
  ASSERT_TRUE(session.wait(60));
  session.join();
  const std::string run = session.latest()->run;
  const Records waited = session.drain();
  EXPECT_LE(waited.points(), start.most_waiting);
  ASSERT_TRUE(waited.left_out.any());
  EXPECT_EQ(waited.left_out.first, 1);
  ASSERT_LT(waited.left_out.last, 81);
  EXPECT_FALSE(session.drain().left_out.any()) << "told once";

  const RunReader reader(folder.store());
  std::map<int64_t, std::map<std::string, double>> stored;
  reader.each_metric(run, [&](int64_t step, double, const std::string& name, double value) { stored[step][name] = value; });
  EXPECT_EQ(completed(waited, reader, run), stored);
  for (const auto& [name, series] : waited.metrics)
    if (!series.steps.empty() && name.starts_with("train")) {
      EXPECT_EQ(series.steps.front(), waited.left_out.last + 1) << name;
    }
  // What is told once is whole.
  const std::vector<EventRow> events = reader.events(run);
  ASSERT_EQ(waited.events.size(), events.size());
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(waited.events[i].body, events[i].body) << events[i].kind;
  EXPECT_EQ(waited.ranks.size(), reader.rank_history(run).size());
  EXPECT_EQ(waited.memory.size(), reader.memory(run).size());
}

// Whoever asks now and then gets everything as before.
TEST(Session, NothingIsLeftOutOfARunThatIsWatched) {
  Folder folder;
  Session session(start_in(folder));
  Records told;
  while (!session.wait(0.01)) told.append(session.drain());
  told.append(session.drain());
  EXPECT_FALSE(told.left_out.any());
  EXPECT_EQ(told.metrics.at("train_loss").steps.size(), 80u);
}

}  // namespace
}  // namespace comera
