// A device: its memory, its ops, and programs captured from its ops. Opened by name; the linker picks the CUDA backend
// or its stub. One thread: the trainer's.
#pragma once
#include <memory>
#include <string>

#include "core/base/error.h"
#include "core/ops/ops.h"
#include "core/tensor/memory.h"

namespace comera {

// Op calls that a device has kept, to be repeated as a whole (a CUDA graph). It holds addresses, shapes and plain
// arguments, so what changes from launch to launch has to lie in device memory before the launch. It may be destroyed
// after the memory it works on, but not after its device.
class CapturedProgram {
 public:
  virtual ~CapturedProgram() = default;
  // Runs the program behind all work issued before; like an op it may return before it is done. Throws Error(device).
  virtual void launch() = 0;
};

// What the device hands to the host without the host waiting for it: slots in memory of the host, which the device fills
// behind the work that was issued before. The memory is not among what a run plans and takes.
class Mailbox {
 public:
  virtual ~Mailbox() = default;  // waits for what is under way
  // Copies `bytes` of the device to place `at` of the slot, as they are behind all work issued so far. May return before
  // that; never inside of a capture. Throws Error(device).
  virtual void send(int slot, int64_t at, const void* device, int64_t bytes) = 0;
  // The slot, as soon as all that was sent to it is there: work issued behind that is not waited for. Throws Error(device).
  virtual const char* receive(int slot) = 0;
};

// How products of f32 are computed: what is multiplied is rounded first, sums stay f32, and so does what is stored. Bits
// behind the point: tf32 10, bf16 7, fp8 3 (E4M3, each tensor scaled so that its largest entry is 448; small products are
// left to tf32). Under each of the three those inside attention are tf32, and lists of products in one kernel fp32.
enum class Products : unsigned char { fp32, tf32, bf16, fp8 };
inline constexpr const char* kProductNames[] = {"fp32", "tf32", "bf16", "fp8"};
inline const char* name_of(Products how) { return kProductNames[static_cast<size_t>(how)]; }
Products products_of(const std::string& name);  // a bug when it is none of the names

// An address that allocate() returned is the device's own: the host reads and writes there by upload and download only.
class Device : public Allocator {
 public:
  virtual std::string name() const = 0;  // "CPU, 2 threads"
  // The library of matrix products, with what its choice of algorithms depends on; another one may round otherwise.
  virtual std::string blas() const { return ""; }
  virtual Ops& ops() = 0;
  // Behind all work issued before. `host` may change or go as soon as the call returns.
  virtual void upload(void* device, const void* host, int64_t bytes) = 0;
  // The same of many parts of one block, each `at` bytes behind its start and in that order: at once where that is faster. What
  // lies between the parts may be anything then.
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
  // How many steps may be issued whose results the host has not read, so that the device is never without work; 0 where
  // ops are done when they return.
  virtual int lag() const { return 0; }
  // For a profile: tells the time of the device's own work.
  virtual std::unique_ptr<WorkClock> work_clock() { return std::make_unique<HostClock>(); }
  // Bytes that can still be taken; below 0: as many as the machine's memory has.
  virtual int64_t free_bytes() const { return -1; }
  // Bytes of its own memory, taken or not; below 0: it has none.
  virtual int64_t total_bytes() const { return -1; }
  // For the products from now on; what has been captured stays as it is. Throws Error(device) where it is not known.
  virtual void set_products(Products how) {
    if (how != Products::fp32)
      throw Error(ErrorCode::device, name() + " does not compute products in " + name_of(how), "only CUDA devices do",
                  "use --set train.matmul=fp32, or --device cuda:0");
  }

  // Working memory of the ops and of the libraries behind them. In dry runs the device notes how much their calls need, op
  // after op in the same memory; whoever plans takes that much and lends it. Where nothing, or too little, is lent, the
  // device takes what is missing by itself.
  virtual void plan_workspace(Products how) {}           // forgets what was noted; products of the dry calls from now on
  virtual int64_t workspace_bytes() const { return 0; }  // needed by the dry calls since then
  virtual void lend_workspace(void* data, int64_t bytes) {}
  virtual void end_loan(const void* data) noexcept {}  // before that memory goes; another's loan stays

  // Capture. From begin_capture() to end_capture() the ops called on this thread are kept and do not run; other threads
  // do not notice. In between there is no upload, download, synchronize, allocate, release or launch, and no op that is
  // said to be never captured; what libraries load or choose at the first use of an op must have happened before, in a
  // run of the same calls. The workspace must stay where it is as long as a program lives.
  virtual bool captures() const { return false; }  // false: the calls below are bugs
  virtual void begin_capture() { CHECK(false, name() << " does not capture"); }
  // The program since begin_capture(), ready to launch; nothing of it has run. Throws Error(device) or Error(memory).
  virtual std::unique_ptr<CapturedProgram> end_capture() {
    CHECK(false, name() << " does not capture");
    return nullptr;
  }
  // Instead of end_capture() when the calls in between have thrown: forgets them.
  virtual void abandon_capture() noexcept {}
};

// "cpu", "cuda:0", or "auto" (the CPU, as long as CUDA is unproven). threads 0 = every core. Throws Error(device).
std::unique_ptr<Device> open_device(const std::string& name, int threads = 0);

struct CudaStatus {
  bool built = false;  // nvcc was there when this program was built
  std::string reason;  // why there is no device, or what to know of those there are, for people
  std::vector<std::string> devices;
  std::vector<std::string> never_run;  // what of it no device has run yet (gpu/never_run.h)
  std::string toolkit;                 // that it was built with: "nvcc 13.0.88", "nvcc 13.0.88 from PyPI"
};
CudaStatus cuda_status();                              // gpu/
std::unique_ptr<Device> open_cuda_device(int index);   // gpu/, throws Error(device)
std::unique_ptr<Device> open_cpu_device(int threads);  // core/cpu
std::string blas_name();                               // core/cpu: library and kernel in use

}  // namespace comera
