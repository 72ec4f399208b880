// A device: its memory, its ops, and programs captured from its ops. Opened by name; the linker picks the CUDA backend
// or its stub. One thread: the trainer's.
#pragma once
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/ops/ops.h"
#include "core/tensor/memory.h"

namespace comera {

// Captured op calls, replayed as a whole (a CUDA graph). It holds addresses, shapes and plain arguments, so values that change from launch
// to launch must be in device memory before the launch. It may outlive the memory it works on, but not its device.
class CapturedProgram {
 public:
  virtual ~CapturedProgram() = default;
  // Runs behind all work issued before; like an op it may return before it is done. Throws Error(device).
  virtual void launch() = 0;
};

// Results that the device copies to the host without stalling it: slots of host memory, filled behind the work issued before. This memory
// is not part of a run's plan.
class Mailbox {
 public:
  virtual ~Mailbox() = default;  // waits for copies under way
  // Copies `bytes` from the device to offset `at` of the slot, behind all work issued so far. May return earlier; never inside a capture.
  // Throws Error(device).
  virtual void send(int slot, int64_t at, const void* device, int64_t bytes) = 0;
  // Waits until all that was sent to the slot has arrived, not for later work. Throws Error(device).
  virtual const char* receive(int slot) = 0;
};

// Precision of f32 products: operands are rounded first; sums and results stay f32. Mantissa bits: tf32 10, bf16 7, fp8 3 (E4M3, each
// tensor scaled so that its largest entry is 448; small products take tf32). In all three modes attention uses tf32, and batched small
// products fp32. A CPU has fp32 and, where oneDNN and the processor have it, bf16, for products whose sides are all above 64.
enum class Products : unsigned char { fp32, tf32, bf16, fp8 };
inline constexpr const char* kProductNames[] = {"fp32", "tf32", "bf16", "fp8"};
inline const char* name_of(Products how) { return kProductNames[static_cast<size_t>(how)]; }
Products products_of(const std::string& name);  // fails a CHECK for other names

// An address that allocate() returned is the device's own: the host reads and writes there by upload and download only.
class Device : public Allocator {
 public:
  virtual std::string name() const = 0;  // "CPU, 2 threads"
  // Library of matrix products and all that its choice of algorithms depends on; another one may round differently.
  virtual std::string blas() const { return ""; }
  virtual Ops& ops() = 0;
  // Behind all work issued before. `host` may change or be freed as soon as the call returns.
  virtual void upload(void* device, const void* host, int64_t bytes) = 0;
  // Uploads many parts of one block, in ascending order of `at`, their offset in bytes; in one copy where that is faster. Bytes between the
  // parts are undefined afterwards.
  struct Part {
    int64_t at;
    const void* host;
    int64_t bytes;
  };
  virtual void upload_parts(void* block, std::span<const Part> parts) {
    for (const Part& part : parts) upload(static_cast<char*>(block) + part.at, part.host, part.bytes);
  }
  virtual void download(void* host, const void* device, int64_t bytes) = 0;
  virtual void synchronize() = 0;  // all work done
  virtual std::unique_ptr<Mailbox> mailbox(int slots, int64_t slot_bytes);
  // Steps that may be issued before the host reads their results, so that the device is never idle; 0 where ops are done when they return.
  virtual int lag() const { return 0; }
  // For a profile: times the device's own work.
  virtual std::unique_ptr<WorkClock> work_clock() { return std::make_unique<HostClock>(); }
  // Bytes that can still be allocated; below 0: the machine's memory is the limit.
  virtual int64_t free_bytes() const { return -1; }
  // Size of its own memory; below 0: it has none.
  virtual int64_t total_bytes() const { return -1; }
  // For products from now on; captured programs stay as they are. Throws Error(device) where unsupported.
  virtual void set_products(Products how) {
    if (how != Products::fp32)
      throw Error(ErrorCode::device, name() + " does not compute products in " + name_of(how), "only CUDA devices do",
                  "use --set train.matmul=fp32, or --device cuda:0");
  }

  // Working memory of the ops and of their libraries, shared by all ops in turn. A dry run records the largest need; the planner allocates
  // that much and lends it. The device allocates the rest itself where too little is lent.
  virtual void plan_workspace(Products how) {}           // forgets the recorded need; precision of the dry calls that follow
  virtual int64_t workspace_bytes() const { return 0; }  // need of the dry calls since then
  virtual void lend_workspace(void* data, int64_t bytes) {}
  virtual void end_loan(const void* data) noexcept {}  // before that memory is freed; keeps another loan

  // Capture. From begin_capture() to end_capture() ops called on this thread are recorded and do not run; other threads are not affected.
  // In between there is no upload, download, synchronize, allocate, release or launch, and no op that is never captured. Run the same calls
  // once before, since libraries load and choose at the first use of an op. The workspace must not move while a program lives.
  virtual bool captures() const { return false; }  // false: the calls below are bugs
  virtual void begin_capture() { CHECK(false, name() << " does not capture"); }
  // The program recorded since begin_capture(). Throws Error(device) or Error(memory).
  virtual std::unique_ptr<CapturedProgram> end_capture() {
    CHECK(false, name() << " does not capture");
    return nullptr;
  }
  // Instead of end_capture() after an exception: forgets the recorded calls.
  virtual void abandon_capture() noexcept {}
};

// "cpu", "cuda:0", or "auto" (the CPU). threads 0 = every core. Throws Error(device).
std::unique_ptr<Device> open_device(const std::string& name, int threads = 0);

struct CudaStatus {
  bool built = false;  // nvcc was there when this program was built
  std::string reason;  // for people: why there is no device, or a remark on those found
  std::vector<std::string> devices;
  std::string toolkit;  // of the build: "nvcc 13.0.88", "nvcc 13.0.88 from PyPI"
};
CudaStatus cuda_status();  // gpu/
// The device of a run that begins now: for "auto" the first GPU, if there is one; other names stay. A run stores the result and resumes
// there; a run that was stored with "auto" resumes on the CPU.
std::string device_to_begin_on(const std::string& name);
std::string device_to_begin_on(const std::string& name, const CudaStatus& status);
std::unique_ptr<Device> open_cuda_device(int index);   // gpu/, throws Error(device)
std::unique_ptr<Device> open_cpu_device(int threads);  // core/cpu
std::string blas_name();                               // core/cpu: library and kernel in use

// The library of products in bf16 on this machine's CPU.
struct OnednnStatus {
  bool here = false;
  std::string library, reason;  // reason: for people, where it is not
};
OnednnStatus onednn_status();  // core/cpu

}  // namespace comera
