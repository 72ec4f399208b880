#include "core/data/prefetch.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/data/memory_set.h"
#include "tests/data/support.h"

namespace comera {
namespace {

using test::MemoryTexts;

TEST(Prefetcher, GivesMakeBatchsBatchesInOrder) {
  const MemoryTexts data(53, 20);
  for (bool pack : {false, true})
    for (int64_t start : {0, 16, 200}) {
      const BatchOptions options{.batch_size = 8, .length = 12, .pack = pack, .seed = 4};
      Prefetcher loader(data, options, start);
      Batch expected;
      int64_t cursor = start;
      for (int i = 0; i < 100; ++i, cursor = expected.next_cursor) {
        make_batch(data, options, cursor, expected);
        const Batch& got = loader.next();
        ASSERT_EQ(got.cursor, expected.cursor);
        ASSERT_EQ(got.next_cursor, expected.next_cursor);
        ASSERT_EQ(got.rows, expected.rows);
        ASSERT_EQ(got.ints.at("ids"), expected.ints.at("ids"));
        ASSERT_EQ(got.ints.at("lengths"), expected.ints.at("lengths"));
      }
    }
}

// Knows the tokens of its rows, and counts those that are read.
class Counted : public MemoryTexts {
 public:
  Counted() : MemoryTexts(53, 20) {}
  void read(int64_t row, int64_t max_length, Columns& out) const override {
    ++reads;
    MemoryTexts::read(row, max_length, out);
  }
  int64_t tokens(int64_t row, int64_t max_length) const override {
    Columns columns;
    MemoryTexts::read(row, max_length, columns);
    return static_cast<int64_t>(columns.ints.at("ids").size());
  }
  mutable std::atomic<int64_t> reads = 0;
};

// A part of others is left out as it would have been made, in every place of an epoch, and none of its rows is read.
TEST(Prefetcher, KnowsWhereAPackedPartEndsWithoutItsRows) {
  const Counted data;
  for (const auto& [size, budget] : {std::pair<int64_t, int64_t>{8, 0}, {8, 30}, {3, 60}, {60, 1000}})
    for (const int64_t part : {0, 1}) {
      const BatchOptions options{.batch_size = size, .parts = 2, .length = 12, .pack = true, .token_budget = budget, .seed = 4};
      for (int64_t cursor = 0; cursor < 120; ++cursor) {
        Batch batch;
        make_batch(data, options, cursor, batch, part);
        data.reads = 0;
        ASSERT_EQ(cursor_behind(data, options, cursor, part), batch.next_cursor) << size << ", " << budget << ", " << cursor;
        ASSERT_EQ(data.reads, 0);
      }
    }
}

// Lets the loading thread read as many rows as it is told to, and says how many it has asked for.
class Gated : public MemoryTexts {
 public:
  explicit Gated(int64_t open) : MemoryTexts(53, 20), open_(open) {}
  void read(int64_t row, int64_t max_length, Columns& out) const override {
    std::unique_lock lock(mutex_);
    ++asked_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return asked_ <= open_; });
    lock.unlock();
    MemoryTexts::read(row, max_length, out);
  }
  void open(int64_t rows) const {
    const std::lock_guard lock(mutex_);
    open_ = rows;
    changed_.notify_all();
  }
  void wait_until_asked(int64_t rows) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return asked_ >= rows; });
  }
  int64_t asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable int64_t asked_ = 0, open_;
};

TEST(Prefetcher, ABatchStaysUntilTheNextCall) {
  const Gated data(8);
  const BatchOptions options{.batch_size = 8, .length = 12, .seed = 4};
  Prefetcher loader(data, options, 0);
  const Batch& batch = loader.next();
  const std::vector<int32_t> ids = batch.ints.at("ids");
  data.open(15);
  data.wait_until_asked(16);  // 7 of 8 rows of the batch after it are made
  EXPECT_EQ(batch.ints.at("ids"), ids);
  data.open(1000);
  EXPECT_NE(loader.next().ints.at("ids"), ids);
}

TEST(Prefetcher, EndOfAnEvaluation) {
  const MemoryTexts data(10, 20);
  const BatchOptions options{.batch_size = 8, .length = 12, .shuffle = false, .drop_last = false};
  Prefetcher loader(data, options, 0);
  EXPECT_EQ(loader.next().sequences, 8);
  EXPECT_EQ(loader.next().sequences, 2);
  EXPECT_EQ(loader.next().sequences, 0);
  EXPECT_EQ(loader.next().sequences, 0);
}

TEST(Prefetcher, DestroyedAtAnyMomentItEndsWithTheBatchInTheMaking) {
  const BatchOptions options{.batch_size = 8, .length = 12};
  for (int64_t taken = 0; taken < 3; ++taken)
    for (int64_t made = 0; made < 8; ++made) {  // rows of the batch that nobody asks for
      const Gated data(8 * taken + made);
      std::thread opener;
      {
        Prefetcher loader(data, options, 0);
        for (int64_t i = 0; i < taken; ++i) ASSERT_EQ(loader.next().sequences, 8);
        data.wait_until_asked(8 * taken + made + 1);
        opener = std::thread([&] { data.open(1000); });
      }
      opener.join();
      EXPECT_EQ(data.asked(), 8 * (taken + 1)) << "the batch in the making, and no other one";
    }
}

class BreaksAtRow : public MemoryTexts {
 public:
  BreaksAtRow() : MemoryTexts(20, 20) {}
  void read(int64_t row, int64_t max_length, Columns& out) const override {
    if (row == 13) throw Error(ErrorCode::config, "f.tsv:15: broken", "why", "hint");
    MemoryTexts::read(row, max_length, out);
  }
};

TEST(Prefetcher, ErrorsOfTheThreadReachTheCaller) {
  const BreaksAtRow data;
  const BatchOptions options{.batch_size = 5, .length = 12, .shuffle = false, .drop_last = false};
  Prefetcher loader(data, options, 0);
  EXPECT_EQ(loader.next().sequences, 5);
  EXPECT_EQ(loader.next().sequences, 5);
  for (int i = 0; i < 2; ++i) test::expect_told(test::caught([&] { loader.next(); }), ErrorCode::config, "f.tsv:15: broken", "why");
  Prefetcher unused(data, options, 10);  // fails with nobody asking: destruction is quiet
}

}  // namespace
}  // namespace comera
