#include "core/data/prefetch.h"

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
        ASSERT_EQ(got.ids, expected.ids);
        ASSERT_EQ(got.lengths, expected.lengths);
      }
    }
}

TEST(Prefetcher, ABatchStaysUntilTheNextCall) {
  const MemoryTexts data(53, 20);
  const BatchOptions options{.batch_size = 8, .length = 12, .seed = 4};
  Prefetcher loader(data, options, 0);
  const Batch& batch = loader.next();
  const std::vector<int32_t> ids = batch.ids;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the loading thread makes the one after it meanwhile
  EXPECT_EQ(batch.ids, ids);
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

TEST(Prefetcher, DestroyedAtAnyMoment) {
  const MemoryTexts data(53, 20);
  const BatchOptions options{.batch_size = 8, .length = 12};
  for (int taken = 0; taken < 50; ++taken) {
    Prefetcher loader(data, options, 0);
    for (int i = 0; i < taken % 4; ++i) loader.next();
  }
}

class BreaksAtRow : public MemoryTexts {
 public:
  BreaksAtRow() : MemoryTexts(20, 20) {}
  void text_row(int64_t row, int64_t max_length, TextRow& out) const override {
    if (row == 13) throw Error(ErrorCode::config, "f.tsv:15: broken", "why", "hint");
    MemoryTexts::text_row(row, max_length, out);
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
