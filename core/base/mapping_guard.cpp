#include "core/base/mapping_guard.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace comera {
namespace {

// Read by the handler, which may take no lock and no memory.
struct Guarded {
  std::atomic<uintptr_t> begin{0}, end{0};  // begin 0: the place is free
  std::atomic<bool> cut{false};
};
std::array<Guarded, 1024> guarded;
std::mutex places;
struct sigaction earlier;  // what SIGBUS did before
uintptr_t page = 0;

Guarded* guard_of(uintptr_t address) {
  for (Guarded& one : guarded) {
    const uintptr_t begin = one.begin.load();
    if (begin != 0 && address >= begin && address < one.end.load()) return &one;
  }
  return nullptr;
}

// Puts pages of zeros from the one that could not be read to the end of the mapping, and lets the read go on.
void on_bus_error(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (Guarded* const mapping = guard_of(address)) {
    const uintptr_t from = address / page * page;
    if (::mmap(reinterpret_cast<void*>(from), mapping->end.load() - from, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        MAP_FAILED) {
      mapping->cut.store(true);
      return;
    }
  }
  if ((earlier.sa_flags & SA_SIGINFO) != 0 && earlier.sa_sigaction)
    earlier.sa_sigaction(signal, info, context);
  else if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN)
    earlier.sa_handler(signal);
  else
    ::sigaction(SIGBUS, &earlier, nullptr);  // the read is made again, and ends the program as without this handler
}

void install() {
  static std::once_flag once;
  std::call_once(once, [] {
    page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_sigaction = on_bus_error;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    ::sigemptyset(&action.sa_mask);
    ::sigaction(SIGBUS, &action, &earlier);
  });
}

}  // namespace

MappingGuard::MappingGuard(const char* begin, size_t size) {
  install();
  const std::lock_guard lock(places);
  for (size_t i = 0; i < guarded.size(); ++i) {
    if (guarded[i].begin.load() != 0) continue;
    place_ = static_cast<int>(i);
    guarded[i].cut.store(false);
    guarded[i].end.store(reinterpret_cast<uintptr_t>(begin) + size);
    guarded[i].begin.store(reinterpret_cast<uintptr_t>(begin));
    return;
  }
}

MappingGuard::~MappingGuard() {
  if (place_ >= 0) guarded[static_cast<size_t>(place_)].begin.store(0);
}

bool MappingGuard::cut() const { return place_ >= 0 && guarded[static_cast<size_t>(place_)].cut.load(); }

}  // namespace comera
