#include "core/cpu/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>
#include <vector>

#include "core/cpu/parts.h"
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
        std::atomic<int64_t> parts{0}, shortest{count};
        pool.parallel_for(count, grain, [&](int64_t begin, int64_t end) {
          ++parts;
          for (int64_t before = shortest; end - begin < before && !shortest.compare_exchange_weak(before, end - begin);) {
          }
          for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(i)];
        });
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(seen[static_cast<size_t>(i)], 1);
        EXPECT_GE(shortest, std::min(count, grain));
        EXPECT_LE(parts, count == 0 ? 0 : std::max<int64_t>(1, count / grain));
        EXPECT_GE(parts, count == 0 ? 0 : pool.workers_for(count, grain));
      }
  }
}

TEST(ThreadPool, AWorkerHasOneCallAtATime) {
  ThreadPool pool(4);
  for (int64_t count : {1, 2, 3, 4, 9, 1000}) {
    std::array<std::atomic<int>, 4> busy = {};
    std::atomic<int64_t> sum{0};
    std::atomic<int> overlaps{0};
    pool.parallel_for_workers(count, 1, [&](int64_t worker, int64_t begin, int64_t end) {
      if (worker >= pool.workers_for(count, 1)) return;  // the sum says so
      overlaps += busy[static_cast<size_t>(worker)]++;
      sum += end - begin;
      --busy[static_cast<size_t>(worker)];
    });
    EXPECT_EQ(sum, count);
    EXPECT_EQ(overlaps, 0);
  }
}

TEST(ThreadPool, EveryUnitOfAListOnce) {
  const std::vector<Units> all = {{3, 100}, {0, 1}, {1, 7}, {50, 9}, {2, 1000}, {1, 1}};
  for (int threads : {1, 2, 5}) {
    ThreadPool pool(threads);
    for (int64_t grain : {1, 40, 700, 10'000}) {
      std::vector<std::vector<int>> seen;
      for (const Units& units : all) seen.emplace_back(static_cast<size_t>(units.count), 0);
      for_units(
          pool, std::span(all), grain, [](const Units& units) { return units; },
          [&](const Units& units, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) ++seen[static_cast<size_t>(&units - all.data())][static_cast<size_t>(i)];
          });
      for (size_t item = 0; item < all.size(); ++item) EXPECT_EQ(seen[item], std::vector<int>(seen[item].size(), 1)) << item;
    }
  }
}

TEST(ThreadPool, ZeroIsEveryCore) { EXPECT_GE(ThreadPool(0).threads(), 1); }

TEST(ThreadPool, PartsAreFixed) {
  ThreadPool pool(3);
  const auto split = [&] {
    std::vector<int64_t> owner(1000);
    pool.parallel_for(1000, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) owner[static_cast<size_t>(i)] = begin;
    });
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
    pool.parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) plain[i] = i + round;
    });
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
      for (int64_t count : {1, 2, 3, 5, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000}) {
        const Philox stream{seed, 77, 0xdeadbeef};
        std::vector<uint32_t> buffer(static_cast<size_t>(philox_room(count)));
        const uint32_t* words = philox_words(stream, first, count, buffer.data());
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(words[i], stream.word(first + static_cast<uint64_t>(i))) << first << " " << i;
        std::vector<uint16_t> room(static_cast<size_t>(philox_halves_room(count)));
        const uint16_t* halves = philox_halves(stream, first, count, room.data());
        for (int64_t i = 0; i < count; ++i) ASSERT_EQ(halves[i], stream.half(first + static_cast<uint64_t>(i))) << first << " " << i;
      }
}

// ---- a worker that does not run ---------------------------------------------------------------------------------------
std::atomic<bool> held, released;
void hold(int) {
  held = true;
  while (!released) ::usleep(100);
}

// As where another program has its core: a signal's handler holds the worker. The caller computes all pieces itself, also those of later
// regions, and the worker is back when it goes on.
TEST(ThreadPool, AWorkerThatDoesNotRunKeepsNobodyWaiting) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer holds signals back while a thread sleeps";
#endif
  ThreadPool pool(2);
  const pthread_t caller = pthread_self();
  std::atomic<pthread_t> worker = caller;
  const auto find_worker = [&] {
    for (worker = caller; worker == caller;)
      pool.parallel_for(2, 1, [&](int64_t begin, int64_t) {
        if (begin == 1)
          worker = pthread_self();
        else
          ::usleep(1000);  // or the caller would take both
      });
  };
  find_worker();
  held = released = false;
  struct sigaction action = {}, before = {};
  action.sa_handler = hold;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  ASSERT_EQ(pthread_kill(worker, SIGUSR1), 0);
  while (!held) ::usleep(100);
  std::array<int, 2> done = {};
  for (int region = 0; region < 100; ++region)
    pool.parallel_for(2, 1, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(pthread_self(), caller);
      for (int64_t i = begin; i < end; ++i) ++done[static_cast<size_t>(i)];
    });
  EXPECT_EQ(done, (std::array{100, 100}));
  released = true;
  const pthread_t other = worker;
  find_worker();
  EXPECT_EQ(worker.load(), other);
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace comera
