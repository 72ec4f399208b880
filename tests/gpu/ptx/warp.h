// Runs kernels of PTX on the CPU, as a GPU would: warps of 32 lanes that part at branches and meet again, barriers, shared
// memory, lanes that exchange. What a GPU may do silently wrong ends the launch with a Fault: memory that is not there or not
// aligned, two threads that use the same shared memory without a barrier between, two blocks of which one uses what the other
// writes, a barrier that not all come to.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
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
  bool watch = true;             // fault on races between threads and between blocks
};

// Whether [address, address + bytes) may be touched by a kernel.
using Allowed = bool (*)(uintptr_t address, int64_t bytes);

// What launches ask of a GPU. An instruction is counted once for a warp, whatever number of its lanes take part.
struct Counts {
  int64_t launches = 0, blocks = 0, warps = 0;
  int64_t instructions = 0;
  int64_t longest = 0;        // instructions of the longest warp of each launch: what no further processor makes shorter
  int64_t sectors = 0;        // pieces of 32 bytes that are read or written in global memory, as each instruction asks for them
  int64_t sectors_least = 0;  // as many would hold the bytes
  int64_t bank_passes = 0;    // accesses to shared memory, one for each time that it must be asked
  int64_t bank_accesses = 0;  // instructions that do so
  int64_t shared = 0;         // bytes of shared memory of a block, the most
};

// All blocks, one after another. Throws Fault.
void run(Program& program, const Kernel& kernel, const Launch& launch, Allowed allowed, Counts* counts = nullptr);

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
  int64_t instructions() const { return instructions_; }

 private:
  void count(Counts& counts, bool shared, uint32_t lanes, const uint64_t* addresses, int64_t bytes) const;

  const Kernel& kernel_;
  Block& block_;
  const int first_thread_;
  std::unique_ptr<char[]> storage_;
  char* file_;
  std::vector<char> local_;
  uint32_t here_ = 0, at_barrier_ = 0, parked_ = 0;  // parked: they wait for other lanes of the warp
  bool lanes_waited_ = false;                        // for each other, since the last barrier
  int64_t instructions_ = 0;                         // that were run
  std::array<int, kLanes> next_{};                   // instruction of each lane
};

}  // namespace comera::ptx
