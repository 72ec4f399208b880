// A machine of gpu/gpu_ops.h on the CPU: the kernels' own bodies and launch shapes, without a GPU. Products are the
// BLAS's, with the arguments cuBLAS would get.
#pragma once
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/ops/device.h"
#include "gpu/gpu_ops.h"
#include "gpu/scratch.h"
#include "tests/gpu/emulated_strip.h"
#include "tests/gpu/fibers.h"

namespace comera::test {

// Device memory. Where it is `closed`, nobody can touch it but while a machine works on it: an op or a layer that looks at
// it from the host ends the program. (Closing costs a system call an op, so only some tests ask for it.)
class EmulatedMemory {
 public:
  explicit EmulatedMemory(bool closed);
  ~EmulatedMemory();
  EmulatedMemory(const EmulatedMemory&) = delete;
  void* allocate(int64_t bytes);  // filled with NaN
  void release(void* data);

  // Access for the life of the object.
  class Open {
   public:
    explicit Open(EmulatedMemory& memory) : memory_(memory) { memory_.protect(false); }
    ~Open() { memory_.protect(true); }
    Open(const Open&) = delete;

   private:
    EmulatedMemory& memory_;
  };

 private:
  void protect(bool on);
  const bool closed_;
  char* base_ = nullptr;
  size_t used_ = 0;
  std::map<void*, size_t> sizes_;                  // of what is held
  std::map<size_t, std::vector<void*>> released_;  // by size
};

struct EmulatedShape {
  int threads = 0;          // of a block; 0 = as many as the launch asks for
  bool descending = false;  // order of the threads between barriers
  int64_t most_blocks = 0;  // 0 = as many as the launch asks for; fewer make the blocks take items in turn
  bool gemm_and = true;     // whether a product can be had with the vectors that hang on it
  bool fp8 = true;          // whether the library has kernels for E4M3
};

class EmulatedMachine {
 public:
  explicit EmulatedMachine(EmulatedShape shape, bool closed) : shape_(shape), memory_(closed) {}
  EmulatedMemory& memory() { return memory_; }
  int64_t launches = 0;  // of kernels, since the start
  // Most working memory that an op has really taken since it was lent, and what the machine had to take by itself.
  int64_t taken() const { return taken_.most(); }
  int64_t own_bytes = 0;
  int64_t fused = 0;         // products with what hangs on them, since the start
  int64_t fp8_products = 0;  // products of E4M3, since the start
  int64_t strips = 0;        // matrices of products in TF32 that threads made, since the start
  // The device is lost at this many launches: nothing works from then on. Below 0: never.
  int64_t lost_at = -1;
  void check_alive() const {
    if (lost_at >= 0 && launches >= lost_at) throw Error(ErrorCode::device, op_ + " failed on the emulated device", "it is lost", "");
  }

  void dry_run(bool dry) { dry_ = dry; }
  void plan_workspace(Products how) {
    planned_products_ = how;
    planned_.forget();
  }
  void use(Products how) { products_ = how; }
  Products products() const { return dry_ ? planned_products_ : products_; }
  int64_t workspace_bytes() const { return planned_.most(); }
  void lend_workspace(void* data, int64_t bytes);
  void end_loan(const void* data);
  void begin(const char* op, const Shape& shape);
  template <class Body>
  void launch(gpu::LaunchShape shape, const Body& body);
  template <class T>
  T* scratch(int64_t count) {
    return static_cast<T*>(scratch_bytes(count * static_cast<int64_t>(sizeof(T))));
  }
  void copy(void* to, const void* from, int64_t bytes) {
    if (!dry_) move(to, from, bytes);
  }
  void move(void* to, const void* from, int64_t bytes);  // by the device, also between it and the host
  template <class T>
  void gemm(const gpu::ColumnGemm<T>& product);
  bool gemm(const gpu::Fp8Gemm& product);
  template <class T>
  bool gemm_and(const gpu::ColumnGemm<T>& product);
  void sort(int* keys, int* order, const int* keys_in, const int* order_in, int64_t count, int bits);
  void read(void* host, const void* device, int64_t bytes) { move(host, device, bytes); }

 private:
  friend class EmulatedGroup;
  void* scratch_bytes(int64_t bytes);

  const EmulatedShape shape_;
  std::string op_;
  bool dry_ = false;
  Products products_ = Products::fp32, planned_products_ = Products::fp32;
  gpu::Scratch planned_, taken_;
  char* lent_ = nullptr;
  int64_t lent_bytes_ = 0;
  EmulatedMemory memory_;
  std::vector<void*> scratch_;
  std::vector<char> shared_, slots_;
  Fibers fibers_;
};

// See gpu/group.h.
class EmulatedGroup {
 public:
  EmulatedGroup(EmulatedMachine& machine, int thread, int threads, int64_t block, int64_t blocks)
      : machine_(machine), thread_(thread), threads_(threads), block_(block), blocks_(blocks) {}
  int thread() const { return thread_; }
  int threads() const { return threads_; }
  int64_t block() const { return block_; }
  int64_t blocks() const { return blocks_; }
  void sync() {
    if (threads_ > 1) machine_.fibers_.barrier();
  }
  template <class T, class Combine>
  T reduce(T value, const Combine& combine) {
    if (threads_ == 1) return value;
    T* slots = reinterpret_cast<T*>(machine_.slots_.data());
    slots[thread_] = value;
    sync();
    T all = slots[0];
    for (int i = 1; i < threads_; ++i) all = combine(all, slots[i]);
    sync();
    return all;
  }
  template <class T>
  T* shared() const {
    return reinterpret_cast<T*>(machine_.shared_.data());
  }
  template <int kColumns, bool kPaired>
  using Strip = EmulatedStrip<kColumns, kPaired>;
  using Rows = EmulatedRows;
  void note_strip() const { ++machine_.strips; }

 private:
  EmulatedMachine& machine_;
  int thread_, threads_;
  int64_t block_, blocks_;
};

// Bodies without barriers need no fibers.
template <class Body>
inline constexpr bool kHasBarriers = true;
template <class F>
inline constexpr bool kHasBarriers<gpu::Elements<F>> = false;

// Bodies whose warps have work of their own run in blocks of the size that they ask for.
template <class Body>
inline constexpr bool kAsLaunched = requires {
  Body::kAsLaunched;
};

template <class Body>
void EmulatedMachine::launch(gpu::LaunchShape shape, const Body& body) {
  static_assert(sizeof(Body) <= gpu::kBodyBytes);
  if (dry_) return;
  check_alive();
  if (shape.blocks > 0) ++launches;
  CHECK(shape.blocks >= 0 && shape.blocks <= gpu::kMostBlocks && shape.threads > 0 && shape.threads <= gpu::kBlock &&
            shape.threads % gpu::kWarp == 0 && shape.shared_bytes <= gpu::kSharedBytes,
        op_ << ": launch of " << shape.blocks << " blocks of " << shape.threads << " threads with " << shape.shared_bytes << " bytes");
  const int threads = shape_.threads > 0 && !kAsLaunched<Body> ? shape_.threads : shape.threads;
  const int64_t blocks = shape_.most_blocks > 0 ? std::min(shape_.most_blocks, shape.blocks) : shape.blocks;
  slots_.resize(static_cast<size_t>(threads) * sizeof(gpu::Two<double>));
  const EmulatedMemory::Open open(memory_);
  for (int64_t block = 0; block < blocks; ++block) {
    shared_.assign(static_cast<size_t>(shape.shared_bytes), '\xff');  // NaN: nothing may count on what is there
    const auto run = [&](int thread) {
      EmulatedGroup group(*this, thread, threads, block, blocks);
      body(group);
    };
    if (kHasBarriers<Body> && threads > 1)
      fibers_.run(threads, shape_.descending, run);
    else
      for (int i = 0; i < threads; ++i) run(shape_.descending ? threads - 1 - i : i);
  }
}

// The whole backend on the CPU, as a device.
class EmulatedDevice final : public Device {
 public:
  explicit EmulatedDevice(EmulatedShape shape = {}, bool closed = false) : machine_(shape, closed), ops_(machine_) {}
  std::string name() const override { return "CUDA ops on the CPU"; }
  Ops& ops() override { return ops_; }
  void* allocate(int64_t bytes) override {
    machine_.check_alive();
    return machine_.memory().allocate(bytes);
  }
  void release(void* data) noexcept override { machine_.memory().release(data); }
  void upload(void* device, const void* host, int64_t bytes) override { machine_.move(device, host, bytes); }
  void download(void* host, const void* device, int64_t bytes) override { machine_.move(host, device, bytes); }
  void synchronize() override {}
  void plan_workspace(Products how) override { machine_.plan_workspace(how); }
  int64_t workspace_bytes() const override { return machine_.workspace_bytes(); }
  void lend_workspace(void* data, int64_t bytes) override { machine_.lend_workspace(data, bytes); }
  void end_loan(const void* data) noexcept override { machine_.end_loan(data); }
  EmulatedMachine& machine() { return machine_; }
  int64_t free_bytes() const override { return free; }
  void set_products(Products how) override {
    products = how;
    machine_.use(how);
  }

  int64_t free = -1;
  Products products = Products::fp32;

 private:
  EmulatedMachine machine_;
  gpu::GpuOps<EmulatedMachine> ops_;
};

}  // namespace comera::test
