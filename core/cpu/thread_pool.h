// Worker threads of one CpuOps. Where a region is split depends on the work and the thread count only; which thread takes
// a part depends on timing and changes no result, so results repeat bit for bit.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

namespace comera {

class ThreadPool {
 public:
  static int threads_for(int threads);  // 0 = every core
  explicit ThreadPool(int threads);     // as many; the calling thread is one of them
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // A reference to a callable without allocation.
  struct Task {
    void (*call)(const void*, int64_t worker, int64_t begin, int64_t end);
    const void* object;
  };

  // Splits [0, count) into contiguous parts of at least `grain` and calls body(begin, end) for each. Runs inline when one
  // part is enough. The body must not throw and must not call back in.
  template <class Body>
  void parallel_for(int64_t count, int64_t grain, const Body& body) {
    parallel_for_workers(count, grain, [&](int64_t, int64_t begin, int64_t end) { body(begin, end); });
  }
  // The same with body(worker, begin, end): no two calls with one worker, below workers_for(count, grain), overlap in time.
  template <class Body>
  void parallel_for_workers(int64_t count, int64_t grain, const Body& body) {
    if (count <= 0) return;
    if (threads_ == 1 || count <= grain) return body(int64_t{0}, int64_t{0}, count);
    run(count, grain,
        {[](const void* object, int64_t worker, int64_t begin, int64_t end) { (*static_cast<const Body*>(object))(worker, begin, end); },
         &body});
  }
  int64_t workers_for(int64_t count, int64_t grain) const;  // at least 1

  // Working memory of the op that runs, 64-byte aligned: one block that only grows, so a steady step allocates
  // nothing. A later call takes the same bytes again. Called between regions, never inside one.
  void* scratch(int64_t bytes);
  template <class T>
  T* scratch_of(int64_t count) { return static_cast<T*>(scratch(count * static_cast<int64_t>(sizeof(T)))); }
  int64_t scratch_bytes() const;  // what the block has grown to

 private:
  void run(int64_t count, int64_t grain, Task task);
  struct State;
  std::unique_ptr<State> state_;
  int threads_ = 1;
};

}  // namespace comera
