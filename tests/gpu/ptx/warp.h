// Runs kernels of PTX on the CPU, as a GPU would: warps of 32 lanes that part at branches and meet again, barriers, shared
// memory, lanes that exchange. What a GPU may do silently wrong ends the launch with a Fault: memory that is not there or not
// aligned, two threads that use the same shared memory without a barrier between, a barrier that not all come to.
#pragma once
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/gpu/ptx/program.h"

namespace comera::ptx {

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Launch {
  int64_t blocks = 1;
  int threads = 1;
  int64_t dynamic_shared_bytes = 0;
  const char* params = nullptr;  // as the kernel lays them out
};

// Whether [address, address + bytes) may be touched by a kernel.
using Allowed = bool (*)(uintptr_t address, int64_t bytes);

// All blocks, one after another. Throws Fault.
void run(Program& program, const Kernel& kernel, const Launch& launch, Allowed allowed);

class Block;

class Warp {
 public:
  Warp(const Kernel& kernel, Block& block, int first_thread);
  template <class T>
  T* row(int at) {
    return reinterpret_cast<T*>(file_ + at);
  }
  uint32_t& bits(int at) { return *reinterpret_cast<uint32_t*>(file_ + at); }

  void begin(int64_t block, int64_t blocks, int threads);
  // Until every lane has left or waits at a barrier.
  void run();
  bool left() const { return here_ == 0; }
  bool waits() const { return at_barrier_ == here_; }
  void pass_barrier();

  // Addresses of `lanes` in the instruction's space, into pointers of this machine; notes what is done there.
  void reach(const Instruction& i, uint32_t lanes, uint64_t* addresses, int64_t bytes, bool writes, bool atomic);
  [[noreturn]] void fault(const Instruction& i, int lane, const std::string& what) const;
  void lanes_waited() { lanes_waited_ = true; }
  uint32_t lanes_here() const { return here_; }
  Block& block() { return block_; }

 private:
  const Kernel& kernel_;
  Block& block_;
  const int first_thread_;
  std::unique_ptr<char[]> storage_;
  char* file_;
  std::vector<char> local_;
  uint32_t here_ = 0, at_barrier_ = 0, parked_ = 0;  // parked: they wait for other lanes of the warp
  bool lanes_waited_ = false;                        // for each other, since the last barrier
  std::array<int, kLanes> next_{};                   // instruction of each lane
};

}  // namespace comera::ptx
