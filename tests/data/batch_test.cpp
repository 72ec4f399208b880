#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "core/data/dataset.h"
#include "core/data/order.h"
#include "tests/data/memory_set.h"
#include "tests/data/support.h"

namespace comera {
namespace {

using test::MemoryImages;
using test::MemoryTexts;

// All batches from `cursor` to the end (a set that is not shuffled) or to the end of epoch 0.
std::vector<Batch> batches(const Dataset& data, const BatchOptions& options, int64_t cursor = 0) {
  std::vector<Batch> out;
  for (Batch batch; make_batch(data, options, cursor, batch) && batch.epoch == 0; cursor = batch.next_cursor) out.push_back(batch);
  return out;
}

std::vector<int64_t> rows_of(const std::vector<Batch>& all) {
  std::vector<int64_t> rows;
  for (const Batch& batch : all) rows.insert(rows.end(), batch.rows.begin(), batch.rows.begin() + batch.sequences);
  return rows;
}

std::vector<int64_t> counting(int64_t rows) {
  std::vector<int64_t> out(static_cast<size_t>(rows));
  std::iota(out.begin(), out.end(), 0);
  return out;
}

void expect_equal(const Batch& a, const Batch& b) {
  EXPECT_EQ(a.sequences, b.sequences);
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.ints, b.ints);
  EXPECT_EQ(a.reals, b.reals);
  EXPECT_EQ(a.rows, b.rows);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.cursor, b.cursor);
  EXPECT_EQ(a.next_cursor, b.next_cursor);
}

// What dataset.h says of every batch: sequences are the set's rows, unused places are empty.
void expect_well_formed(const Dataset& data, const BatchOptions& options, int64_t capacity, const Batch& batch) {
  ASSERT_EQ(batch.ints.at("ids").size(), static_cast<size_t>(capacity));
  ASSERT_EQ(batch.ints.at("segments").size(), batch.ints.at("ids").size());
  ASSERT_EQ(batch.ints.at("positions").size(), batch.ints.at("ids").size());
  ASSERT_EQ(batch.ints.at("starts").size(), static_cast<size_t>(options.batch_size));
  std::vector<bool> used(batch.ints.at("ids").size());
  int64_t tokens = 0, end = 0;
  for (size_t s = 0; s < batch.ints.at("starts").size(); ++s) {
    if (static_cast<int64_t>(s) >= batch.sequences) {
      EXPECT_EQ(batch.ints.at("lengths")[s], 0);
      EXPECT_EQ(batch.ints.at("labels")[s], -1);
      EXPECT_EQ(batch.rows[s], -1);
      continue;
    }
    Columns row;
    data.read(batch.rows[s], options.length, row);
    ASSERT_EQ(batch.ints.at("lengths")[s], static_cast<int32_t>(row.ints.at("ids").size()));
    EXPECT_EQ(batch.ints.at("labels")[s], row.ints.at("labels").at(0));
    EXPECT_EQ(batch.ints.at("starts")[s], options.pack ? end : static_cast<int64_t>(s) * options.length);
    for (size_t i = 0; i < row.ints.at("ids").size(); ++i) {
      const size_t at = static_cast<size_t>(batch.ints.at("starts")[s]) + i;
      ASSERT_FALSE(used[at]);
      used[at] = true;
      EXPECT_EQ(batch.ints.at("ids")[at], row.ints.at("ids")[i]);
      EXPECT_EQ(batch.ints.at("segments")[at], row.ints.at("segments")[i]);
      EXPECT_EQ(batch.ints.at("positions")[at], static_cast<int32_t>(i));
    }
    tokens += batch.ints.at("lengths")[s];
    end = batch.ints.at("starts")[s] + batch.ints.at("lengths")[s];
  }
  EXPECT_EQ(batch.tokens, tokens);
  // Padding is of the tables' rows, and of one row no more than a share.
  std::map<int32_t, int64_t> padding;
  int64_t all = 0;
  for (size_t at = 0; at < used.size(); ++at)
    if (!used[at]) {
      ++all;
      ++padding[batch.ints.at("ids")[at]];
      EXPECT_GE(batch.ints.at("ids")[at], 0);
      EXPECT_LT(batch.ints.at("ids")[at], std::max<int64_t>(data.info().vocab_size, 1));
      EXPECT_EQ(batch.ints.at("positions")[at], static_cast<int32_t>(at % static_cast<size_t>(options.length)));
    }
  const int64_t rows = std::clamp<int64_t>(data.info().vocab_size, 1, 64);
  for (const auto& [id, count] : padding) EXPECT_LE(count, all / rows + capacity / rows + 1) << id;
}

TEST(Order, IsAPermutationForEverySize) {
  for (int64_t rows : {1, 2, 3, 4, 5, 15, 16, 17, 63, 64, 65, 1000, 4097}) {
    std::set<int64_t> seen;
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t row = shuffled_row(i, rows, 7, 3);
      ASSERT_TRUE(row >= 0 && row < rows);
      seen.insert(row);
    }
    EXPECT_EQ(static_cast<int64_t>(seen.size()), rows);
  }
}

TEST(Order, DependsOnSeedAndEpochOnly) {
  const auto order = [](uint64_t seed, int64_t epoch) {
    std::vector<int64_t> out;
    for (int64_t i = 0; i < 500; ++i) out.push_back(shuffled_row(i, 500, seed, epoch));
    return out;
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  EXPECT_NE(order(1, 0), order(2, 0));
  EXPECT_NE(order(1, 0), order(1, 1));
  EXPECT_NE(order(1, 0), counting(500));
}

// Over many epochs every row is about equally often at every place: chi-square with 49 degrees of freedom, whose
// mean is 49 and deviation 9.9; 110 is six deviations off. Seeds are fixed, so this never fails by chance.
TEST(Order, EveryPlaceGetsEveryRow) {
  constexpr int64_t kRows = 50, kEpochs = 5000;
  for (int64_t place : {0, 17, 49}) {
    std::vector<int> hits(kRows);
    for (int64_t epoch = 0; epoch < kEpochs; ++epoch) ++hits[static_cast<size_t>(shuffled_row(place, kRows, 11, epoch))];
    double chi = 0;
    for (int hit : hits) chi += (hit - 100.0) * (hit - 100.0) / 100.0;
    EXPECT_LT(chi, 110) << place;
  }
}

// Two neighbours in the order are as often falling as rising.
TEST(Order, NeighboursAreIndependent) {
  int rising = 0;
  for (int64_t i = 0; i + 1 < 10000; ++i) rising += shuffled_row(i, 10000, 5, 0) < shuffled_row(i + 1, 10000, 5, 0);
  EXPECT_NEAR(rising, 5000, 150);
}

TEST(Batch, PaddedAndPackedAreWellFormed) {
  const MemoryTexts data(53, 20);
  for (bool shuffle : {false, true})
    for (bool drop : {false, true}) {
      BatchOptions padded{.batch_size = 8, .length = 12, .shuffle = shuffle, .drop_last = drop, .seed = 3};
      for (const Batch& batch : batches(data, padded)) expect_well_formed(data, padded, 8 * 12, batch);
      BatchOptions packed = padded;
      packed.pack = true;
      for (const Batch& batch : batches(data, packed)) expect_well_formed(data, packed, 8 * 12 / 2, batch);
      packed.token_budget = 70;
      for (const Batch& batch : batches(data, packed)) expect_well_formed(data, packed, 70, batch);
    }
}

TEST(Batch, EveryRowOnceAnEpoch) {
  const MemoryTexts data(53, 20);
  for (bool pack : {false, true})
    for (bool shuffle : {false, true}) {
      const BatchOptions options{.batch_size = 8, .length = 12, .pack = pack, .shuffle = shuffle, .drop_last = false, .seed = 3};
      std::vector<int64_t> rows = rows_of(batches(data, options));
      EXPECT_EQ(std::is_sorted(rows.begin(), rows.end()), !shuffle);
      std::sort(rows.begin(), rows.end());
      EXPECT_EQ(rows, counting(53)) << pack << shuffle;
    }
}

TEST(Batch, PackedGivesTheSameRowsInTheSameOrder) {
  const MemoryTexts data(53, 20);
  BatchOptions options{.batch_size = 8, .length = 12, .drop_last = false, .seed = 9};
  const std::vector<int64_t> padded = rows_of(batches(data, options));
  options.pack = true;
  const auto packed = batches(data, options);
  EXPECT_EQ(rows_of(packed), padded);
  // A packed batch is as full as it can be: the next row would not have fitted.
  for (size_t i = 0; i + 1 < packed.size(); ++i)
    EXPECT_TRUE(packed[i].sequences == 8 || packed[i].tokens + packed[i + 1].ints.at("lengths")[0] > 48);
}

TEST(Batch, DropLastSkipsOnlyTheShortBatchOfAnEpoch) {
  const MemoryTexts data(53, 20);
  BatchOptions options{.batch_size = 8, .length = 12, .drop_last = true, .seed = 3};
  auto all = batches(data, options);
  EXPECT_EQ(all.size(), 6u);  // 48 of 53 rows
  Batch next;
  ASSERT_TRUE(make_batch(data, options, all.back().next_cursor, next));
  EXPECT_EQ(next.epoch, 1);
  EXPECT_EQ(next.cursor, 53);
  EXPECT_EQ(next.next_cursor, 61);
  EXPECT_EQ(next.sequences, 8);
  options.shuffle = false;
  EXPECT_EQ(batches(data, options).size(), 6u);
  options.drop_last = false;
  all = batches(data, options);
  EXPECT_EQ(all.size(), 7u);
  EXPECT_EQ(all.back().sequences, 5);
}

TEST(Batch, APackedBatchFilledToTheLastTokenIsNotShort) {
  const MemoryTexts data(6, 2);  // 2 tokens a row
  BatchOptions options{.batch_size = 8, .length = 2, .pack = true, .token_budget = 6, .shuffle = false, .drop_last = true};
  EXPECT_EQ(rows_of(batches(data, options)), counting(6));
  options.token_budget = 8;  // 4 rows, then 2: short
  EXPECT_EQ(rows_of(batches(data, options)), counting(4));
}

TEST(Batch, ASetSmallerThanABatchStillTrains) {
  const MemoryTexts data(3, 20);
  for (bool pack : {false, true}) {
    const BatchOptions options{.batch_size = 8, .length = 20, .pack = pack, .drop_last = true};
    Batch batch;
    int64_t cursor = 0;
    for (int64_t epoch = 0; epoch < 3; ++epoch, cursor = batch.next_cursor) {
      ASSERT_TRUE(make_batch(data, options, cursor, batch));
      EXPECT_EQ(batch.sequences, 3);
      EXPECT_EQ(batch.epoch, epoch);
    }
  }
}

TEST(Batch, ResumeGivesTheSameBatches) {
  const MemoryTexts data(53, 20);
  for (bool pack : {false, true}) {
    const BatchOptions options{.batch_size = 8, .length = 12, .pack = pack, .seed = 4};
    std::vector<Batch> run;
    int64_t cursor = 0;
    for (int i = 0; i < 30; ++i) {  // several epochs
      run.emplace_back();
      ASSERT_TRUE(make_batch(data, options, cursor, run.back()));
      cursor = run.back().next_cursor;
    }
    EXPECT_GT(run.back().epoch, 1);
    Batch dirty = run[3];  // what was in the batch before must not show
    for (size_t i = 0; i + 1 < run.size(); ++i) {
      ASSERT_TRUE(make_batch(data, options, run[i].next_cursor, dirty));
      expect_equal(dirty, run[i + 1]);
    }
  }
}

TEST(Batch, TokenDropoutReadsAShareOfTheTokensAsUnknown) {
  const MemoryTexts data(400, 20);
  BatchOptions options{.batch_size = 400, .length = 20, .drop_last = false, .seed = 4};
  Batch plain, dropped, again, later;
  make_batch(data, options, 0, plain);
  options.token_dropout = 0.3;
  make_batch(data, options, 0, dropped);
  make_batch(data, options, 0, again);
  expect_equal(dropped, again);
  make_batch(data, options, 400, later);  // the next epoch
  std::map<int64_t, int64_t> drops;       // by row: tokens dropped
  const auto count = [&](const Batch& batch) {
    int64_t tokens = 0, unknown = 0;
    for (int64_t s = 0; s < batch.sequences; ++s)
      for (int32_t i = 0; i < batch.ints.at("lengths")[static_cast<size_t>(s)]; ++i) {
        const int32_t id = batch.ints.at("ids")[static_cast<size_t>(batch.ints.at("starts")[static_cast<size_t>(s)] + i)];
        const int64_t row = batch.rows[static_cast<size_t>(s)];
        EXPECT_TRUE(id == 7 || id == 1000 * (row + 1) + i) << id;  // dropped, or what the set has there
        ++tokens;
        unknown += id == 7;
        drops[row] += id == 7 ? int64_t{1} << i : 0;
      }
    return static_cast<double>(unknown) / static_cast<double>(tokens);
  };
  EXPECT_EQ(count(plain), 0);
  drops.clear();
  EXPECT_NEAR(count(dropped), 0.3, 0.03);  // 4 standard deviations of some 4,200 draws
  const auto first = drops;
  drops.clear();
  EXPECT_NEAR(count(later), 0.3, 0.03);
  EXPECT_NE(drops, first);
  int64_t same = 0;  // rows are dropped independently of each other, and [CLS] (here: the first token of row 0) never
  for (const auto& [row, mask] : first) same += mask == first.at(0);
  EXPECT_LT(same, 100);
  EXPECT_EQ(first.at(0) & 1, 0);
  EXPECT_EQ(drops.at(0) & 1, 0);
}

TEST(Batch, TokenDropoutLeavesTheTokensThatPartSentences) {
  const MemoryTexts data(400, 20);
  Batch batch;
  make_batch(data, {.batch_size = 400, .length = 20, .token_dropout = 1, .drop_last = false, .seed = 4}, 0, batch);
  std::set<int32_t> left;
  for (int64_t s = 0; s < batch.sequences; ++s)
    for (int32_t i = 0; i < batch.ints.at("lengths")[static_cast<size_t>(s)]; ++i)
      left.insert(batch.ints.at("ids")[static_cast<size_t>(batch.ints.at("starts")[static_cast<size_t>(s)] + i)]);
  EXPECT_EQ(left, (std::set<int32_t>{7, data.info().cls_token, data.info().sep_token}));
}

// A text in pieces, 20 tokens each: token i of row r is (20 r + i) mod 50 + 1; 0 is the mask.
class MemoryPieces : public Dataset {
 public:
  MemoryPieces() {
    info_.rows = 300;
    info_.vocab_size = 51;
    info_.mask_token = 0;
    describe_stream(info_);
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t, Columns& out) const override {
    std::vector<int32_t>& ids = out.ints["ids"];
    ids.clear();
    for (int64_t i = 0; i < 20; ++i) ids.push_back(static_cast<int32_t>((20 * row + i) % 50 + 1));
    out.ints["labels"].assign(20, 3);
  }

 private:
  DatasetInfo info_;
};

TEST(Batch, MaskedTokensAreTheLabelsAndMostAreReadAsTheMask) {
  const MemoryPieces data;
  BatchOptions options{.batch_size = 300, .length = 20, .mask_share = 0.15, .drop_last = false, .seed = 4};
  Batch batch, again, later;
  make_batch(data, options, 0, batch);
  make_batch(data, options, 0, again);
  expect_equal(batch, again);
  make_batch(data, options, 300, later);  // the next epoch
  EXPECT_NE(batch.ints.at("labels"), later.ints.at("labels"));
  double masked = 0, as_mask = 0, as_it_is = 0;
  for (int64_t s = 0; s < 300; ++s)
    for (int64_t i = 0; i < 20; ++i) {
      const auto at = static_cast<size_t>(20 * s + i);
      const int32_t id = batch.ints.at("ids")[at], label = batch.ints.at("labels")[at];
      const auto whole = static_cast<int32_t>((20 * batch.rows[static_cast<size_t>(s)] + i) % 50 + 1);
      if (label < 0) {
        EXPECT_EQ(id, whole);
        continue;
      }
      EXPECT_EQ(label, whole);
      ++masked;
      as_mask += id == 0;
      as_it_is += id == whole;
    }
  EXPECT_NEAR(masked / 6000, 0.15, 0.02);  // 4 standard deviations of 6,000 draws
  EXPECT_NEAR(as_mask / masked, 0.8 + 0.1 / 51, 0.06);
  EXPECT_NEAR(as_it_is / masked, 0.1 + 0.1 / 51, 0.05);
}

TEST(Batch, EpochsAndSeedsDiffer) {
  const MemoryTexts data(64, 20);
  BatchOptions options{.batch_size = 64, .length = 12, .seed = 4};
  Batch a, b, c;
  make_batch(data, options, 0, a);
  make_batch(data, options, 64, b);
  options.seed = 5;
  make_batch(data, options, 0, c);
  EXPECT_NE(a.rows, b.rows);
  EXPECT_NE(a.rows, c.rows);
}

TEST(Batch, TheEndOfAnEvaluation) {
  const MemoryTexts data(5, 20);
  const BatchOptions options{.batch_size = 5, .length = 12, .shuffle = false, .drop_last = false};
  Batch batch;
  EXPECT_TRUE(make_batch(data, options, 0, batch));
  EXPECT_EQ(batch.next_cursor, 5);
  EXPECT_FALSE(make_batch(data, options, 5, batch));
  EXPECT_EQ(batch.sequences, 0);
  EXPECT_EQ(batch.ints.at("labels"), std::vector<int32_t>(5, -1));
}

TEST(Batch, OneLongSequenceAlwaysFits) {
  const MemoryTexts data(9, 40);
  const BatchOptions options{.batch_size = 4, .length = 40, .pack = true, .token_budget = 10, .shuffle = false, .drop_last = false};
  const auto all = batches(data, options);
  EXPECT_EQ(rows_of(all), counting(9));
  for (const Batch& batch : all) EXPECT_GE(batch.sequences, 1);
}

TEST(Batch, Images) {
  const MemoryImages data(11, 6);
  const BatchOptions options{.batch_size = 4, .drop_last = false, .seed = 2};
  const auto all = batches(data, options);
  std::vector<int64_t> rows = rows_of(all);
  std::sort(rows.begin(), rows.end());
  EXPECT_EQ(rows, counting(11));
  for (const Batch& batch : all) {
    ASSERT_EQ(batch.reals.at("pixels").size(), 24u);
    EXPECT_FALSE(batch.ints.contains("ids"));
    for (size_t s = 0; s < 4; ++s) {
      const bool used = static_cast<int64_t>(s) < batch.sequences;
      EXPECT_EQ(batch.ints.at("labels")[s], used ? batch.rows[s] % 3 : -1);
      for (size_t f = 0; f < 6; ++f)
        EXPECT_EQ(batch.reals.at("pixels")[s * 6 + f], used ? static_cast<float>(batch.rows[s] * 6 + static_cast<int64_t>(f)) : 0.0f);
    }
  }
}

}  // namespace
}  // namespace comera
