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

// Piece w of a region belongs to worker w, so that a thread finds in its cache what it wrote in the region before. A piece has several
// parts. A thread that has finished its own takes parts that the others have not begun, so a slow or busy core delays the region by one
// part at most.
struct ThreadPool::State {
  struct alignas(64) Worker {
    std::atomic<uint32_t> ticket{0};  // raised once for every region that it takes part in; it sleeps on it
    std::atomic<uint64_t> region{0};  // number of the newest of these
    std::atomic<uint64_t> left{0};    // Left, the parts of its piece that no thread has begun
  };

  // Written by the calling thread before it raises a worker's ticket; read by a thread that has claimed a part.
  Task task{};
  int64_t count = 0, pieces = 0, parts = 0;  // parts: of a piece
  std::atomic<bool> stop{false};             // read by late workers at any time

  uint64_t region = 0;          // number of the region, from 1
  Counter running;              // parts that are not done
  std::vector<Worker> workers;  // the first is the calling thread's
  std::vector<std::thread> threads;

  struct Free {
    void operator()(void* data) const { ::operator delete (data, std::align_val_t{64}); }
  };
  std::unique_ptr<void, Free> scratch;
  int64_t scratch_bytes = 0;

  explicit State(size_t threads) : workers(threads) {}

  void run_part(int64_t worker, int64_t piece, int64_t part) const {
    const int64_t first = count * piece / pieces, size = count * (piece + 1) / pieces - first;
    task.call(task.object, worker, first + size * part / parts, first + size * (part + 1) / parts);
  }

  // Parts [first, end) of a piece that no thread has begun, and the number of their region, in one word.
  struct Left {
    uint64_t number, first, end;
    static constexpr uint64_t kMost = 16;  // first and end are smaller
    explicit Left(uint64_t word) : number(word / (kMost * kMost)), first(word / kMost % kMost), end(word % kMost) {}
    static uint64_t word(uint64_t number, uint64_t first, uint64_t end) { return (number * kMost + first) * kMost + end; }
  };

  // Takes the first or the last part that no thread has begun; -1: none is left. A late worker finds the number of another region.
  int64_t claim(size_t piece, uint64_t number, bool from_front) {
    std::atomic<uint64_t>& left = workers[piece].left;
    for (uint64_t word = left.load(std::memory_order_relaxed);;) {
      const Left now(word);
      if (now.number != number || now.first == now.end) return -1;
      const uint64_t rest = from_front ? Left::word(number, now.first + 1, now.end) : Left::word(number, now.first, now.end - 1);
      if (left.compare_exchange_weak(word, rest, std::memory_order_acq_rel, std::memory_order_relaxed))
        return static_cast<int64_t>(from_front ? now.first : now.end - 1);
    }
  }

  // The worker's own piece from the front, then the others' from the back.
  void take_parts(size_t worker, uint64_t number) {
    uint32_t done = 0;
    for (size_t i = 0; i < workers.size(); ++i) {
      const size_t piece = (worker + i) % workers.size();
      for (int64_t part = claim(piece, number, i == 0); part >= 0; part = claim(piece, number, i == 0), ++done)
        run_part(static_cast<int64_t>(worker), static_cast<int64_t>(piece), part);
    }
    if (done > 0 && running.value.fetch_sub(done, std::memory_order_acq_rel) == done) running.value.notify_one();
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
      take_parts(worker, workers[worker].region.load(std::memory_order_acquire));
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

int64_t ThreadPool::workers_for(int64_t count, int64_t grain) const {
  return std::max<int64_t>(1, std::min<int64_t>(threads_, count / std::max<int64_t>(grain, 1)));
}

void ThreadPool::run(int64_t count, int64_t grain, Task task) {
  constexpr int64_t kParts = 8;  // of a piece, where its size allows
  static_assert(kParts < State::Left::kMost);
  State& state = *state_;
  const int64_t pieces = workers_for(count, grain);
  if (pieces == 1) return task.call(task.object, 0, 0, count);
  state.task = task;
  state.count = count;
  state.pieces = pieces;
  state.parts = std::clamp<int64_t>(count / pieces / std::max<int64_t>(grain, 1), 1, kParts);
  state.running.value.store(static_cast<uint32_t>(pieces * state.parts), std::memory_order_relaxed);
  const uint64_t number = ++state.region;
  for (size_t piece = 0; piece < static_cast<size_t>(pieces); ++piece)
    state.workers[piece].left.store(State::Left::word(number, 0, static_cast<uint64_t>(state.parts)), std::memory_order_release);
  for (size_t worker = 1; worker < static_cast<size_t>(pieces); ++worker) {
    state.workers[worker].region.store(number, std::memory_order_release);
    state.raise(worker);
  }
  state.take_parts(0, number);
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
