// Threads of a block as fibers: one after another on the calling thread, each until its next barrier. So a barrier that
// is missing shows as a result that depends on the order, and one that not all reach is found.
#pragma once
#include <ucontext.h>

#include <functional>
#include <memory>
#include <vector>

namespace comera::test {

class Fibers {
 public:
  Fibers() = default;
  ~Fibers();
  Fibers(const Fibers&) = delete;

  // Runs body(thread) for thread < count, in ascending or descending order between barriers. Throws Error when some
  // end while others wait at a barrier. Bodies must not throw.
  void run(int count, bool descending, const std::function<void(int)>& body);
  // Called inside a body.
  void barrier();

 private:
  struct Fiber {
    ucontext_t context;
    void* stack = nullptr;
    bool done = true;
    void* fake_stack = nullptr;  // of the address sanitizer
  };
  static void entry();
  void switch_to(Fiber& fiber);
  void switch_back(bool for_good);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  ucontext_t caller_;
  const void* caller_stack_ = nullptr;
  size_t caller_stack_bytes_ = 0;
  const std::function<void(int)>* body_ = nullptr;
  int now_ = 0;
};

}  // namespace comera::test
