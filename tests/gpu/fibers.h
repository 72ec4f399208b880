// Threads of a block as fibers: one after another on the calling thread, each until its next barrier. So a barrier that
// is missing shows as a result that depends on the order, and one that not all reach is found.
#pragma once
#include <setjmp.h>

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
    jmp_buf place;  // where it goes on
    void* stack = nullptr;
    bool begun = false;  // `place` is set
    bool done = true;
  };
  static void entry();
  void switch_to(Fiber& fiber);
  void switch_back();

  std::vector<std::unique_ptr<Fiber>> fibers_;
  jmp_buf caller_;
  const std::function<void(int)>* body_ = nullptr;
  int now_ = 0;
};

}  // namespace comera::test
