#include "core/cpu/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <thread>
#include <vector>

#include "core/base/error.h"

namespace comera {
namespace {

// Regions of a step follow each other within microseconds, or behind serial work of some tens of them: a futex wake-up (5-50 us) between
// them would cost more than many of the regions. After this long without work a thread sleeps and leaves its core to others.
constexpr std::chrono::microseconds kSpin{100};

void pause() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

// Returns when `value` is no longer `old`: spins briefly, then sleeps on it.
uint32_t wait_while(const std::atomic<uint32_t>& value, uint32_t old) {
  const auto until = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 64; ++i) {
      const uint32_t now = value.load(std::memory_order_acquire);
      if (now != old) return now;
      pause();
    }
  } while (std::chrono::steady_clock::now() < until);
  value.wait(old, std::memory_order_acquire);
  return value.load(std::memory_order_acquire);
}

// On a cache line of its own, so that spinning disturbs nobody else.
struct alignas(64) Counter {
  std::atomic<uint32_t> value{0};
};

}  // namespace

// Piece w of a region belongs to worker w, so that a thread finds in its cache what it wrote in the region before. A worker whose core is
// busy with another program delays nobody: the calling thread takes each piece that no worker has begun. Which thread computes a piece
// changes no result.
struct ThreadPool::State {
  struct alignas(64) Worker {
    std::atomic<uint32_t> ticket{0};   // raised once for every region that it takes part in; it sleeps on it
    std::atomic<uint64_t> region{0};   // number of the newest of these
    std::atomic<uint64_t> claimed{0};  // number of the newest region of which its piece was begun
  };

  // Written by the calling thread before it raises a worker's ticket; read by a thread that has claimed a piece.
  Task task{};
  int64_t count = 0, pieces = 0;
  std::atomic<bool> stop{false};  // read by late workers at any time

  uint64_t region = 0;          // number of the region, from 1
  Counter running;              // pieces of workers that are not done
  std::vector<Worker> workers;  // the first is the calling thread's
  std::vector<std::thread> threads;

  struct Free {
    void operator()(void* data) const { ::operator delete (data, std::align_val_t{64}); }
  };
  std::unique_ptr<void, Free> scratch;
  int64_t scratch_bytes = 0;

  explicit State(size_t threads) : workers(threads) {}

  void run_piece(int64_t piece) const { task.call(task.object, count * piece / pieces, count * (piece + 1) / pieces); }

  // Whether the calling thread may compute the piece. A worker that comes late finds the number of its region, or a later one.
  bool claim(size_t worker, uint64_t number) {
    std::atomic<uint64_t>& claimed = workers[worker].claimed;
    uint64_t before = claimed.load(std::memory_order_relaxed);
    return before < number && claimed.compare_exchange_strong(before, number, std::memory_order_acq_rel);
  }

  void raise(size_t worker) {
    std::atomic<uint32_t>& ticket = workers[worker].ticket;
    ticket.store(ticket.load(std::memory_order_relaxed) + 1, std::memory_order_release);
    ticket.notify_one();
  }

  void work(size_t worker) {
    for (uint32_t seen = 0;;) {
      seen = wait_while(workers[worker].ticket, seen);
      if (stop) return;
      if (!claim(worker, workers[worker].region.load(std::memory_order_acquire))) continue;
      run_piece(static_cast<int64_t>(worker));
      if (running.value.fetch_sub(1, std::memory_order_acq_rel) == 1) running.value.notify_one();
    }
  }

  void join() {
    stop = true;
    for (size_t worker = 1; worker <= threads.size(); ++worker) raise(worker);
    for (std::thread& thread : threads) thread.join();
  }
};

int ThreadPool::threads_for(int threads) {
  return threads > 0 ? threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

ThreadPool::ThreadPool(int threads) : threads_(threads_for(threads)) {
  const auto count = static_cast<size_t>(threads_);
  state_ = std::make_unique<State>(count);
  State* state = state_.get();
  try {
    for (size_t worker = 1; worker < count; ++worker) state->threads.emplace_back([state, worker] { state->work(worker); });
  } catch (const std::exception& error) {
    state->join();
    throw Error(ErrorCode::device, "could not start " + std::to_string(threads_) + " threads", error.what(), "ask for fewer threads");
  }
}

ThreadPool::~ThreadPool() {
  if (state_) state_->join();
}

void ThreadPool::run(int64_t count, int64_t grain, Task task) {
  State& state = *state_;
  const int64_t pieces = std::min<int64_t>(threads_, count / std::max<int64_t>(grain, 1));
  if (pieces <= 1) return task.call(task.object, 0, count);
  state.task = task;
  state.count = count;
  state.pieces = pieces;
  state.running.value.store(static_cast<uint32_t>(pieces - 1), std::memory_order_relaxed);
  const uint64_t number = ++state.region;
  for (int64_t worker = 1; worker < pieces; ++worker) {
    state.workers[static_cast<size_t>(worker)].region.store(number, std::memory_order_release);
    state.raise(static_cast<size_t>(worker));
  }
  state.run_piece(0);
  for (int64_t worker = pieces - 1; worker > 0; --worker) {
    if (!state.claim(static_cast<size_t>(worker), number)) continue;
    state.run_piece(worker);
    state.running.value.fetch_sub(1, std::memory_order_acq_rel);
  }
  for (uint32_t left = state.running.value.load(std::memory_order_acquire); left != 0;) left = wait_while(state.running.value, left);
}

void* ThreadPool::scratch(int64_t bytes) {
  State& state = *state_;
  if (bytes > state.scratch_bytes) {
    state.scratch.reset();  // first, so that old and new are never held together
    state.scratch_bytes = 0;
    void* data = ::operator new (static_cast<size_t>(bytes), std::align_val_t{64}, std::nothrow);
    if (!data)
      throw Error(ErrorCode::memory, "could not take " + std::to_string(bytes) + " bytes of working memory", "the system refused",
                  "use a smaller batch or close other programs");
    state.scratch.reset(data);
    state.scratch_bytes = bytes;
  }
  return state.scratch.get();
}

int64_t ThreadPool::scratch_bytes() const { return state_->scratch_bytes; }

}  // namespace comera
