#include "core/cpu/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

#include "core/cpu/philox_words.h"

namespace comera {
namespace {

TEST(ThreadPool, EveryIndexOnce) {
  for (int threads : {1, 2, 3, 5}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t count : {0, 1, 2, 7, 100, 1001})
      for (int64_t grain : {1, 3, 50, 5000}) {
        std::vector<int> seen(static_cast<size_t>(count), 0);
        std::atomic<int> pieces{0};
        pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          ++pieces;
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], 1);
        EXPECT_LE(pieces, count == 0 ? 0 : std::max<int64_t>(1, std::min<int64_t>(threads, count / grain)));
      }
  }
}

TEST(ThreadPool, ZeroIsEveryCore) { EXPECT_GE(ThreadPool(0).threads(), 1); }

TEST(ThreadPool, PiecesAreFixed) {
  ThreadPool pool(3);
  const auto split = [&] {
    std::vector<int64_t> owner(1000);
    pool.parallel_for(1000, 1, [&](int64_t begin, int64_t end) { for (int64_t i = begin; i < end; ++i) owner[static_cast<size_t>(i)] = begin; });
    return owner;
  };
  const std::vector<int64_t> first = split();
  for (int i = 0; i < 50; ++i) ASSERT_EQ(split(), first);
}

TEST(ThreadPool, SmallWorkStaysOnTheCallingThread) {
  ThreadPool pool(4);
  std::thread::id ran;
  pool.parallel_for(100, 100, [&](int64_t, int64_t) { ran = std::this_thread::get_id(); });
  EXPECT_EQ(ran, std::this_thread::get_id());
}

TEST(ThreadPool, Stress) {
  ThreadPool pool(4);
  int64_t plain[4096];  // written by one region, read by the next on other threads
  for (int round = 0; round < 3000; ++round) {
    const int64_t count = 4 + round * 37 % 4093;
    pool.parallel_for(count, 1, [&](int64_t begin, int64_t end) { for (int64_t i = begin; i < end; ++i) plain[i] = i + round; });
    std::atomic<int64_t> sum{0};
    pool.parallel_for(count, 2, [&](int64_t begin, int64_t end) {
      int64_t own = 0;
      for (int64_t i = begin; i < end; ++i) own += plain[count - 1 - i];
      sum += own;
    });
    ASSERT_EQ(sum, count * (count - 1) / 2 + count * round);
    if (round % 500 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));  // until the workers sleep
  }
}

TEST(ThreadPool, ManyPools) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(3);
    std::atomic<int64_t> sum{0};
    if (i % 2) pool.parallel_for(10, 1, [&](int64_t begin, int64_t end) { sum += end - begin; });
    EXPECT_EQ(sum, i % 2 ? 10 : 0);
  }
}

TEST(ThreadPool, ScratchOnlyGrows) {
  ThreadPool pool(2);
  auto* first = pool.scratch_of<double>(1000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 64, 0u);
  EXPECT_EQ(pool.scratch_of<float>(100), static_cast<void*>(first));
  EXPECT_EQ(pool.scratch_bytes(), 8000);
  pool.scratch(100000);
  EXPECT_EQ(pool.scratch_bytes(), 100000);
}

TEST(PhiloxWords, AreTheStreamsWords) {
  for (uint64_t seed : {0ull, 0x123456789abcdefull})
    for (uint64_t first : {0ull, 1ull, 2ull, 3ull, 4ull, 4095ull, (1ull << 34) - 5, (1ull << 40) + 1})
      for (int64_t count : {1, 2, 3, 5, 127, 128, 129, 1000}) {
        const Philox stream{seed, 77, 0xdeadbeef};
        std::vector<uint32_t> buffer(static_cast<size_t>(philox_room(count)));
        const uint32_t* words = philox_words(stream, first, count, buffer.data());
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(words[i], stream.word(first + static_cast<uint64_t>(i))) << first << " " << i;
      }
}

}  // namespace
}  // namespace comera
