// What the window reads out of a store, on a thread of its own. Also run under the thread sanitizer, without the window.
#include "app/studio/shown_run/store_client.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <thread>

#include "core/session/session.h"
#include "core/store/sqlite.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;

class StoreClientTest : public testing::Test {
 protected:
  StoreClientTest() {
    setenv("COMERA_ASSETS", COMERA_SOURCE_DIR "/assets", 0);
    folder_ = fs::temp_directory_path() / ("comera-studio-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
    store_ = (folder_ / "runs.db").string();
  }
  ~StoreClientTest() override { fs::remove_all(folder_); }

  template <class Condition>
  static bool within(double seconds, Condition condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    while (std::chrono::steady_clock::now() < end) {
      if (condition()) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return condition();
  }

  // A short run with an edit; returns its last snapshot.
  std::shared_ptr<const Snapshot> train() {
    SessionStart start;
    start.config = load_config("demo", {"train.threads=1", "train.steps=30", "train.eval_every=10", "method.comera.late_after=20",
                                        "train.max_steps_per_s=0", "data.train_rows=512", "data.validation_rows=64"});
    start.store = store_;
    Session session(std::move(start));
    session.post(EditCommand{"method.comera.target", "0.4"});
    EXPECT_TRUE(session.wait(60));
    session.join();
    return session.latest();
  }

  fs::path folder_;
  std::string store_;
};

TEST_F(StoreClientTest, NoStoreIsNoError) {
  StoreClient client(store_, {});
  ASSERT_TRUE(within(10, [&] { return client.runs()->loaded; }));
  EXPECT_TRUE(client.runs()->missing);
  EXPECT_TRUE(client.runs()->problem.empty());
  EXPECT_FALSE(fs::exists(store_)) << "looking must not create it";
}

TEST_F(StoreClientTest, ADamagedStoreIsAMessage) {
  std::ofstream(store_) << "this is no database, but it is long enough to be looked at as one";
  StoreClient client(store_, {});
  ASSERT_TRUE(within(10, [&] { return client.runs()->loaded; }));
  EXPECT_FALSE(client.runs()->problem.empty());
}

TEST_F(StoreClientTest, AStoredRunIsShownAsItWas) {
  const auto last = train();
  ASSERT_EQ(last->phase, Phase::finished) << last->message;
  std::atomic<int> woken = 0;
  StoreClient client(store_, [&] { ++woken; });
  ASSERT_TRUE(within(10, [&] { return client.runs()->rows.size() == 1; }));
  EXPECT_TRUE(within(10, [&] { return woken > 0; }));
  EXPECT_EQ(client.runs()->rows[0].id, last->run);

  const auto load = [&] {
    const uint64_t request = client.load(last->run);
    EXPECT_TRUE(within(10, [&] { return client.loaded() && client.loaded()->request == request; }));
    return client.loaded();
  };
  const auto whole = load();
  ASSERT_TRUE(whole->view) << whole->problem;
  const RunView& view = *whole->view;
  EXPECT_FALSE(view.live);
  EXPECT_EQ(view.snapshot->phase, Phase::finished);
  EXPECT_EQ(view.snapshot->step, 30);
  EXPECT_TRUE(view.snapshot->late);
  EXPECT_EQ(view.metric("train_loss").size(), 30u);
  EXPECT_EQ(view.metric("val_accuracy").size(), 3u);
  EXPECT_DOUBLE_EQ(view.snapshot->last.results.ce, last->last.results.ce);
  EXPECT_DOUBLE_EQ(view.snapshot->eval.accuracy, last->eval.accuracy);
  EXPECT_NEAR(view.snapshot->size.entries, last->size.entries, 1e-9);
  EXPECT_NEAR(view.snapshot->size.compression, last->size.compression, 1e-9);
  EXPECT_EQ(view.snapshot->memory_now.bytes, last->memory_now.bytes);
  EXPECT_EQ(view.config.method.comera.target, 0.4) << "edits are in force";
  EXPECT_NEAR(view.target_base_entries(*view.snapshot) * 0.4, last->target_entries, 1);
  ASSERT_EQ(view.snapshot->ranks.size(), last->ranks.size());
  for (const LayerRanks& layer : last->ranks) {
    const auto same = std::find_if(view.snapshot->ranks.begin(), view.snapshot->ranks.end(),
                                   [&](const LayerRanks& other) { return other.name == layer.name; });
    ASSERT_NE(same, view.snapshot->ranks.end()) << layer.name;
    EXPECT_EQ(same->live, layer.live);
    EXPECT_EQ(same->initial, layer.initial);
  }

  const uint64_t request = client.load("no-such-run");
  EXPECT_TRUE(within(10, [&] { return client.loaded()->request == request; }));
  EXPECT_FALSE(client.loaded()->view);
  EXPECT_FALSE(client.loaded()->problem.empty());
}

// An idle window looks every two seconds: a list of thousands must not be read each time.
TEST_F(StoreClientTest, TheListIsReadAgainOnlyWhenTheStoreChanged) {
  train();
  StoreClient client(store_, {});
  ASSERT_TRUE(within(10, [&] { return client.runs()->rows.size() == 1; }));
  const auto look = [&] {
    client.refresh(0);
    for (int i = 0; i < 2; ++i) {  // the second answer comes after the look at the list
      const uint64_t request = client.load("no-such-run");
      ASSERT_TRUE(within(10, [&] { return client.loaded() && client.loaded()->request == request; }));
    }
  };
  for (const char* file : {"", "-wal"})  // a moment ago counts as now
    if (fs::exists(store_ + file)) fs::last_write_time(store_ + file, fs::file_time_type::clock::now() - std::chrono::hours(1));
  look();
  const int reads = client.list_reads();
  const auto list = client.runs();
  for (int i = 0; i < 3; ++i) look();
  EXPECT_EQ(client.list_reads(), reads);
  EXPECT_EQ(client.runs(), list);
  Database(store_, Database::Mode::write).run("UPDATE runs SET id = 'r-other1'");
  look();
  EXPECT_GT(client.list_reads(), reads);
  EXPECT_EQ(client.runs()->rows[0].id, "r-other1");
  fs::remove(store_);
  look();
  EXPECT_TRUE(client.runs()->missing);
}

TEST_F(StoreClientTest, AChangeOfNotesAloneIsInTheList) {
  const auto last = train();
  StoreClient client(store_, {});
  ASSERT_TRUE(within(10, [&] { return client.runs()->rows.size() == 1; }));
  client.change({.kind = RunChange::notes, .runs = {last->run}, .text = "a note"});
  EXPECT_TRUE(within(10, [&] { return client.runs()->rows[0].notes == "a note"; }));
}

// The thread is busy with a change when it is asked twice: the second question does not take from the first.
TEST_F(StoreClientTest, WhatWasToBeWatchedIsStillRead) {
  const auto last = train();
  StoreClient client(store_, {});
  std::vector<WatchedRun> answers;
  const auto answered = [&] {
    return within(10, [&] {
      for (WatchedRun& answer : client.watched()) answers.push_back(std::move(answer));
      return !answers.empty();
    });
  };
  const auto ask_while_busy = [&](const WatchRequest& first) {
    answers.clear();
    Database other(store_, Database::Mode::write);
    {
      const Transaction writing(other);
      client.change({.kind = RunChange::notes, .runs = {last->run}, .text = "a note"});
      client.watch({first});
      client.watch({{.run = last->run}});
    }
    return answered();
  };
  ASSERT_TRUE(ask_while_busy({.run = last->run, .whole = true}));
  ASSERT_TRUE(answers[0].view) << answers[0].problem;
  Database(store_, Database::Mode::write).run("UPDATE runs SET status = 'stopped'");
  ASSERT_TRUE(ask_while_busy({.run = last->run, .refresh = true}));
  ASSERT_TRUE(answers[0].latest) << answers[0].problem;
  EXPECT_EQ(answers[0].latest->phase, Phase::stopped);
}

TEST_F(StoreClientTest, ARunThatIsBeingReadIsGivenUpForAnotherOne) {
  const auto last = train();
  const std::string steps = "1500000";  // far more than are read until the other one is asked for
  {
    Database db(store_, Database::Mode::write);
    db.run("WITH RECURSIVE count(n) AS (SELECT 31 UNION ALL SELECT n + 1 FROM count WHERE n < " + steps +
           ") INSERT INTO metrics SELECT 1, (SELECT metric FROM metric_names WHERE name = 'train_loss'), n, 1.0 / n FROM count");
    db.run("INSERT INTO steps VALUES(1, " + steps + ", 0)");
  }
  std::atomic<StoreClient*> reads = nullptr;
  std::mutex mutex;
  std::map<uint64_t, std::shared_ptr<const LoadedRun>> answers;
  StoreClient client(store_, [&] {
    const std::lock_guard lock(mutex);
    if (StoreClient* from = reads; from && from->loaded()) answers[from->loaded()->request] = from->loaded();
  });
  reads = &client;
  const uint64_t first = client.load(last->run);
  ASSERT_TRUE(within(60, [&] { return client.progress() > 0; }));
  const uint64_t second = client.load("no-such-run");
  ASSERT_TRUE(within(60, [&] {
    const std::lock_guard lock(mutex);
    return answers.contains(second);
  }));
  ASSERT_TRUE(answers.contains(first));
  EXPECT_FALSE(answers[first]->view) << "it was read to its end";
}

}  // namespace
}  // namespace comera::studio
