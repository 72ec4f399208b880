// Ranges for the time line of NVIDIA's profilers: one an op, from its call to the next op's, and one for each launch of a
// captured step. NVTX is header-only and does nothing without a profiler; without its headers there are no ranges.
#pragma once
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define COMERA_NVTX 1
#else
#define COMERA_NVTX 0
#endif

namespace comera::gpu {

class Ranges {
 public:
  Ranges() = default;
  ~Ranges() { end(); }
  Ranges(const Ranges&) = delete;

  // Ends the range before it. `name` must be a literal.
  void next(const char* name) {
    end();
#if COMERA_NVTX
    nvtxRangePushA(name);
#endif
    open_ = true;
  }
  void end() {
#if COMERA_NVTX
    if (open_) nvtxRangePop();
#endif
    open_ = false;
  }

 private:
  bool open_ = false;
};

}  // namespace comera::gpu
