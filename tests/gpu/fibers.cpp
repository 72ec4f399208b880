#include "tests/gpu/fibers.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <string>

#include "core/base/error.h"

namespace comera::test {
namespace {

constexpr size_t kStackBytes = 128 << 10;  // only what is touched is taken
Fibers* running = nullptr;                 // entry() takes no pointer

}  // namespace

Fibers::~Fibers() {
  for (const auto& fiber : fibers_) munmap(fiber->stack, kStackBytes);
}

// Begun once; then it waits for a body to run, runs it, and waits again.
void Fibers::entry() {
  for (;;) {
    Fibers& all = *running;
    (*all.body_)(all.now_);
    all.fibers_[static_cast<size_t>(all.now_)]->done = true;
    all.switch_back();
  }
}

// By jumps: swapcontext() would make a system call for the signal mask each time.
void Fibers::switch_to(Fiber& fiber) {
  if (_setjmp(caller_) != 0) return;
  if (fiber.begun) _longjmp(fiber.place, 1);
  fiber.begun = true;
  ucontext_t context;
  getcontext(&context);
  context.uc_stack = {fiber.stack, 0, kStackBytes};
  context.uc_link = nullptr;
  makecontext(&context, &Fibers::entry, 0);
  setcontext(&context);
}

void Fibers::switch_back() {
  if (_setjmp(fibers_[static_cast<size_t>(now_)]->place) == 0) _longjmp(caller_, 1);
}

void Fibers::barrier() { switch_back(); }

void Fibers::run(int count, bool descending, const std::function<void(int)>& body) {
  while (static_cast<int>(fibers_.size()) < count) {
    auto fiber = std::make_unique<Fiber>();
    fiber->stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(fiber->stack != MAP_FAILED, "no memory for the stack of a fiber");
    fibers_.push_back(std::move(fiber));
  }
  body_ = &body;
  running = this;
  for (int i = 0; i < count; ++i) {
    Fiber& fiber = *fibers_[static_cast<size_t>(i)];
    if (!fiber.done) fiber.begun = false;  // left behind at a barrier
    fiber.done = false;
  }
  for (int left = count; left > 0;) {
    const int before = left;
    for (int i = 0; i < count; ++i) {
      now_ = descending ? count - 1 - i : i;
      Fiber& fiber = *fibers_[static_cast<size_t>(now_)];
      if (fiber.done) continue;
      switch_to(fiber);
      left -= fiber.done;
    }
    CHECK(left == 0 || (left == before && left == count), left << " of " << count << " threads wait at a barrier, the others have ended");
  }
}

}  // namespace comera::test
