#include "tests/gpu/fibers.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "core/base/error.h"

// The address sanitizer must be told of every change of stack.
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#else
static void __sanitizer_start_switch_fiber(void**, const void*, size_t) {}
static void __sanitizer_finish_switch_fiber(void*, const void**, size_t*) {}
#endif

namespace comera::test {
namespace {

constexpr size_t kStackBytes = 128 << 10;  // only what is touched is taken
Fibers* running = nullptr;                 // entry() takes no pointer

}  // namespace

Fibers::~Fibers() {
  for (const auto& fiber : fibers_) munmap(fiber->stack, kStackBytes);
}

void Fibers::entry() {
  Fibers& all = *running;
  __sanitizer_finish_switch_fiber(nullptr, &all.caller_stack_, &all.caller_stack_bytes_);
  (*all.body_)(all.now_);
  all.fibers_[static_cast<size_t>(all.now_)]->done = true;
  all.switch_back(true);
}

void Fibers::switch_to(Fiber& fiber) {
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&fake_stack, fiber.stack, kStackBytes);
  swapcontext(&caller_, &fiber.context);
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
}

void Fibers::switch_back(bool for_good) {
  Fiber& fiber = *fibers_[static_cast<size_t>(now_)];
  __sanitizer_start_switch_fiber(for_good ? nullptr : &fiber.fake_stack, caller_stack_, caller_stack_bytes_);
  swapcontext(&fiber.context, &caller_);
  __sanitizer_finish_switch_fiber(fiber.fake_stack, &caller_stack_, &caller_stack_bytes_);
}

void Fibers::barrier() { switch_back(false); }

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
    getcontext(&fiber.context);
    fiber.context.uc_stack = {fiber.stack, 0, kStackBytes};
    fiber.context.uc_link = nullptr;
    fiber.done = false;
    makecontext(&fiber.context, &Fibers::entry, 0);
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
