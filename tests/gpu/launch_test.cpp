// Shapes of launches, and index arithmetic with counts beyond 32 bits: by looking at single threads, since no memory
// holds that many elements.
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "core/ops/permute_axes.h"
#include "gpu/attention.h"
#include "gpu/column_sums.h"
#include "gpu/linalg.h"
#include "gpu/permute.h"
#include "gpu/pointwise.h"
#include "gpu/tables.h"
#include "tests/gpu/fibers.h"
#include "tests/ops/cases/cases.h"

namespace comera::test {
namespace {

using namespace gpu;

// One thread of a grid.
struct OneThread {
  LaunchShape shape;
  int64_t block_;
  int thread_;
  int thread() const { return thread_; }
  int threads() const { return shape.threads; }
  int64_t block() const { return block_; }
  int64_t blocks() const { return shape.blocks; }
};

struct Record {
  std::vector<int64_t>* seen;
  void operator()(int64_t i) const { seen->push_back(i); }
};

std::vector<int64_t> seen_by(int64_t count, int64_t block, int thread) {
  std::vector<int64_t> seen;
  OneThread group{over_elements(count), block, thread};
  Elements<Record>{count, {&seen}}(group);
  return seen;
}

TEST(Launch, EveryElementOnce) {
  for (int64_t n : kSizes) {
    const LaunchShape shape = over_elements(n);
    std::vector<int64_t> all;
    for (int64_t block = 0; block < shape.blocks; ++block)
      for (int thread = 0; thread < shape.threads; ++thread)
        for (int64_t i : seen_by(n, block, thread)) all.push_back(i);
    EXPECT_EQ(static_cast<int64_t>(all.size()), n);
    EXPECT_EQ(static_cast<int64_t>(std::set<int64_t>(all.begin(), all.end()).size()), n);
    EXPECT_EQ(*std::max_element(all.begin(), all.end()), n - 1);
  }
}

TEST(Launch, ShapesAtTheEdges) {
  EXPECT_EQ(over_elements(0).blocks, 0);
  for (const auto& [count, blocks] :
       std::vector<std::pair<int64_t, int64_t>>{{1, 1}, {255, 1}, {256, 1}, {257, 2}, {1023, 4}, {1024, 4}, {1025, 5}})
    EXPECT_EQ(over_elements(count).blocks, blocks) << count;
  for (const auto& [width, threads] :
       std::vector<std::pair<int64_t, int>>{{0, 32}, {1, 32}, {31, 32}, {32, 32}, {33, 64}, {255, 256}, {1025, 256}})
    EXPECT_EQ(over_items(7, width).threads, threads) << width;
  EXPECT_EQ(over_items(7, 1).blocks, 7);
  EXPECT_EQ(over_items(int64_t{1} << 40, 1).blocks, kMostBlocks);
}

TEST(Launch, CountsBeyond32Bits) {
  const int64_t count = (int64_t{1} << 33) + 5, stride = kMostBlocks * kBlock;
  EXPECT_EQ(over_elements(count).blocks, kMostBlocks);
  for (const auto& [block, thread] :
       std::vector<std::pair<int64_t, int>>{{0, 0}, {0, 4}, {0, 5}, {17, 31}, {kMostBlocks - 1, kBlock - 1}}) {
    const std::vector<int64_t> seen = seen_by(count, block, thread);
    const int64_t first = block * kBlock + thread;
    ASSERT_EQ(static_cast<int64_t>(seen.size()), ceil_div(count - first, stride));
    for (size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], first + static_cast<int64_t>(i) * stride);
  }
  EXPECT_EQ(seen_by(count, 0, 4).back(), count - 1);
}

TEST(Launch, IndicesBeyond32Bits) {
  // (2^20, 2, 2^13) -> (2^13, 2^20, 2): 2^34 elements.
  const Shape x{1 << 20, 2, 1 << 13}, y{1 << 13, 1 << 20, 2};
  const PermuteAxes axes(y, x, {2, 0, 1});
  ASSERT_EQ(axes.count(), int64_t{1} << 34);
  for (int64_t i : {int64_t{0}, (int64_t{1} << 32) + 12345, (int64_t{1} << 34) - 1}) {
    const int64_t c = i % 2, b = i / 2 % (1 << 20), a = i / 2 / (1 << 20);  // y[a, b, c] = x[b, c, a]
    EXPECT_EQ(axes.offsets(i).y, i);
    EXPECT_EQ(axes.offsets(i).x, (b * 2 + c) * (1 << 13) + a);
  }
  const MatIndex at{3, 1 << 20};
  EXPECT_EQ(at(3 * int64_t{5000} + 2), (int64_t{5000} << 20) + 2);
  const int starts[] = {0, 2000000000}, lengths[] = {5, 7};
  const Tensor q(nullptr, {int64_t{2000000010}, 64}, DType::f32);
  const Pairs pairs(q, q, q,
                    {Tensor(const_cast<int*>(starts), {2}, DType::i32), Tensor(const_cast<int*>(lengths), {2}, DType::i32), 100000}, 4);
  const Pair last(pairs, 7);
  EXPECT_EQ(last.at, int64_t{2000000000} * 64 + 3 * 16);
  EXPECT_EQ(last.lse_at, 3 * int64_t{2000000010} + 2000000000);
  EXPECT_EQ(last.probs_at, 7 * int64_t{10000000000});
}

TEST(Launch, PiecesCoverEverythingOnce) {
  for (int64_t count : {int64_t{0}, int64_t{1}, int64_t{33}, int64_t{1025}, (int64_t{1} << 40) + 7})
    for (int64_t pieces : {1, 7, 128}) {
      int64_t at = 3;
      for (int64_t piece = 0; piece < pieces; ++piece) {
        const Range range = Range{3, 3 + count}.piece(piece, pieces);
        ASSERT_EQ(range.begin, at);
        at = range.end;
      }
      ASSERT_EQ(at, 3 + count);
    }
}

TEST(Launch, ATournamentPairsEveryTwoRowsOnceASweep) {
  for (int64_t rows : {1, 2, 3, 8, 31}) {
    std::set<std::pair<int64_t, int64_t>> met;
    int64_t meetings = 0;
    for (Round round{rows, 0}; round.round < round.seats() - 1; ++round.round) {
      std::set<int64_t> busy;
      for (int64_t pair = 0; pair < round.pairs(); ++pair) {
        const int64_t a = round.left(pair), b = round.right(pair);
        ASSERT_TRUE(a != b && busy.insert(a).second && busy.insert(b).second);
        if (a >= rows || b >= rows) continue;
        met.insert(std::minmax(a, b));
        ++meetings;
      }
    }
    EXPECT_EQ(meetings, rows * (rows - 1) / 2);
    EXPECT_EQ(static_cast<int64_t>(met.size()), meetings);
  }
}

TEST(Launch, TilesOfAttentionFitABlock) {
  for (int64_t width : {1, 32, 64, 100, 128, 256, 768}) {
    const TileSize size = tile_size<float, AttentionBackwardKV<float>>(width, 128);
    EXPECT_LE(size.shared_bytes, kSharedBytes);
    EXPECT_GE(size.padded, width);
    EXPECT_EQ(size.padded % 4, 0);
    // Rows without a sequence are cleared there, too, which takes a number a thread.
    const int threads = over_items(1, int64_t{size.side} * std::max(size.side, size.padded)).threads;
    EXPECT_GE(size.shared_bytes, threads * static_cast<int64_t>(sizeof(float)));
  }
  EXPECT_EQ((tile_size<float, AttentionBackwardKV<float>>(64, 128).side), 32);
  // All scores of a row, of the published models.
  EXPECT_EQ((tile_size<float, AttentionForward<float>>(64, 128).chunk), 128);
  EXPECT_EQ((tile_size<float, AttentionBackwardQ<float>>(64, 128).chunk), 128);
  EXPECT_LE((tile_size<float, AttentionBackwardQ<float>>(64, 512).shared_bytes), kSharedBytes);
  EXPECT_LT((tile_size<double, AttentionForward<double>>(64, 170).chunk), 170) << "a case of ops_test";
  EXPECT_THROW((tile_size<double, AttentionBackwardKV<double>>(5000, 128)), Error);
}

template <int kWidth>
void strips_fit() {
  for (const int64_t count :
       {StripForward<kWidth>::shared_count(), StripBackwardQ<kWidth>::shared_count(), StripBackwardKV<kWidth>::shared_count()})
    EXPECT_LE(count * static_cast<int64_t>(sizeof(float)), kSharedBytes) << kWidth;
}

TEST(Launch, StripsOfAttentionFitABlock) {
  strips_fit<32>();
  strips_fit<64>();
  strips_fit<128>();
}

// ---- the emulation itself ---------------------------------------------------------------------------------------------

TEST(Fibers, BarriersSplitABodyIntoTurns) {
  Fibers fibers;
  for (bool descending : {false, true}) {
    std::vector<int> order;
    fibers.run(3, descending, [&](int thread) {
      order.push_back(thread);
      fibers.barrier();
      order.push_back(10 + thread);
    });
    EXPECT_EQ(order, descending ? (std::vector<int>{2, 1, 0, 12, 11, 10}) : (std::vector<int>{0, 1, 2, 10, 11, 12}));
  }
}

TEST(Fibers, ABarrierThatNotAllReachIsFound) {
  Fibers fibers;
  EXPECT_THROW(fibers.run(4, false,
                          [&](int thread) {
                            if (thread != 2) fibers.barrier();
                          }),
               Error);
  int ran = 0;
  fibers.run(4, false, [&](int) { ++ran; });  // usable after that
  EXPECT_EQ(ran, 4);
}

}  // namespace
}  // namespace comera::test
