// The CPU as a device, and the opening of devices by name.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/rounding.h"
#include "core/cpu/blas.h"
#include "core/cpu/thread_pool.h"
#include "core/ops/device.h"

extern "C" {  // make_ops.cpp
comera::Ops* comera_cpu_ops_native(int threads);
comera::Ops* comera_cpu_ops_v3(int threads);
comera::Ops* comera_cpu_ops_v4(int threads);
}

namespace comera {
namespace {

// Compiled for a level of processors each. Rounding may differ between them: products and sums are fused and split as it suits
// the width of their registers.
struct Kernels {
  std::string level;  // COMERA_CPU_LEVEL of the environment takes those of this name
  bool run_here;
  Ops* (*make)(int threads);
};

std::vector<Kernels> all_kernels() {  // the best first
#ifdef COMERA_CPU_LEVELS
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"),
             v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return {{"v4", v4, comera_cpu_ops_v4}, {"v3", v3, comera_cpu_ops_v3}};
#else
  return {{"native", true, comera_cpu_ops_native}};
#endif
}

Kernels kernels_to_use() {
  const std::vector<Kernels> all = all_kernels();
  const char* wanted = std::getenv("COMERA_CPU_LEVEL");
  const bool any = !wanted || !*wanted;
  std::string known;
  for (const Kernels& kernels : all) {
    known += (known.empty() ? "" : ", ") + kernels.level;
    if (any ? !kernels.run_here : kernels.level != wanted) continue;
    if (kernels.run_here) return kernels;
    throw Error(ErrorCode::device, "this processor cannot run the kernels of COMERA_CPU_LEVEL=" + kernels.level,
                "they need the instructions of x86-64-" + kernels.level, "unset COMERA_CPU_LEVEL");
  }
  if (!any)
    throw Error(ErrorCode::device, "COMERA_CPU_LEVEL=" + std::string(wanted) + " is not known", "the kernels of this build are: " + known,
                "unset COMERA_CPU_LEVEL");
  throw Error(ErrorCode::device, "this processor cannot run the kernels of this program",
              "they need AVX2 and FMA, the instructions of x86-64-v3", "build CoMERA Studio on this machine: ./run.sh in its sources");
}

constexpr size_t kAlignment = 64;  // a cache line, and the widest register
constexpr size_t kHugePage = size_t{2} << 20;
constexpr int kMostThreads = 1024;

// Linux promises more than there is and ends the process later, so more than all memory is refused at once.
int64_t all_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<int64_t>(pages) * page : std::numeric_limits<int64_t>::max();
}

std::string in_words(int64_t bytes) {
  if (bytes < (int64_t{1} << 20)) return std::to_string(bytes) + " bytes";
  return std::to_string(bytes >> 20) + " MiB";
}

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(int threads) : CpuDevice(kernels_to_use(), ThreadPool::threads_for(threads)) {}

  std::string name() const override { return name_; }
  std::string blas() const override { return blas_name() + (ops_->rounded ? std::string(", ") + ops_->rounded->name : ""); }
  Ops& ops() override { return *ops_; }

  void* allocate(int64_t bytes) override {
    CHECK(bytes >= 0, bytes << " bytes asked for");
    // Large blocks begin on a huge page: the skinny products walk down columns, and with small pages every row of
    // such a walk is a page of its own.
    const bool large = bytes >= static_cast<int64_t>(kHugePage);
    const size_t alignment = large ? kHugePage : kAlignment;
    const size_t size = round_up(static_cast<size_t>(bytes > 0 ? bytes : 1), alignment);
    const bool possible = bytes <= all_memory();
    void* data = possible ? std::aligned_alloc(alignment, size) : nullptr;
    if (!data)
      throw Error(ErrorCode::memory, "could not take " + in_words(bytes) + " of memory",
                  possible ? "the system refused" : "this machine has " + in_words(all_memory()), "use a smaller batch or a smaller model");
    if (large) madvise(data, size, MADV_HUGEPAGE);  // a wish: without huge pages all still works
    return data;
  }
  void release(void* data) noexcept override { std::free(data); }

  void upload(void* device, const void* host, int64_t bytes) override {
    if (bytes > 0) std::memcpy(device, host, static_cast<size_t>(bytes));
  }
  void download(void* host, const void* device, int64_t bytes) override {
    if (bytes > 0) std::memcpy(host, device, static_cast<size_t>(bytes));
  }
  void synchronize() override {}  // every op has ended when its call returns

  void set_products(Products how) override {
    if (how == Products::fp32)
      ops_->rounded = nullptr;
    else if (how == Products::bf16)
      ops_->rounded = &open_rounded_products();
    else
      Device::set_products(how);
  }

  void plan_workspace(Products how) override {
    ops_->plans_rounded = how == Products::bf16;
    ops_->workspace.plan();
  }
  int64_t workspace_bytes() const override { return ops_->workspace.planned(); }
  void lend_workspace(void* data, int64_t bytes) override { ops_->workspace.lend(data, bytes); }
  void end_loan(const void* data) noexcept override { ops_->workspace.end_loan(data); }

 private:
  CpuDevice(const Kernels& kernels, int threads)
      : name_("CPU, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads")), ops_(kernels.make(threads)) {
    if (kernels.level != "native") name_ += ", x86-64-" + kernels.level;
  }

  std::string name_;
  std::unique_ptr<Ops> ops_;
};

// The N of "cuda:N" ("cuda" is 0).
std::optional<int> cuda_index(const std::string& name) {
  if (name == "cuda") return 0;
  if (name.rfind("cuda:", 0) != 0 || name.size() < 6 || name.size() > 8) return {};
  int index = 0;
  for (char digit : name.substr(5)) {
    if (digit < '0' || digit > '9') return {};
    index = 10 * index + (digit - '0');
  }
  return index;
}

}  // namespace

std::unique_ptr<Device> open_cpu_device(int threads) {
  if (threads < 0 || threads > kMostThreads)
    throw Error(ErrorCode::device, "cannot compute with " + std::to_string(threads) + " threads",
                "the number must be 0.." + std::to_string(kMostThreads), "0 takes one thread a core");
  return std::make_unique<CpuDevice>(threads);
}

std::unique_ptr<Device> open_device(const std::string& name, int threads) {
  if (name == "cpu") return open_cpu_device(threads);
  if (name == "auto") return open_cpu_device(threads);
  if (const std::optional<int> index = cuda_index(name)) return open_cuda_device(*index);
  throw Error(ErrorCode::device, "there is no device \"" + name + "\"", "devices are named cpu, cuda:0, cuda:1, ... or auto",
              "cuda:0 is the first GPU, auto takes it if there is one");
}

// The status is known once the driver is loaded, which a run on the CPU does not need.
std::string device_to_begin_on(const std::string& name) { return name == "auto" ? device_to_begin_on(name, cuda_status()) : name; }
std::string device_to_begin_on(const std::string& name, const CudaStatus& status) {
  return name == "auto" && !status.devices.empty() ? "cuda:0" : name;
}

std::string blas_name() { return std::string(COMERA_BLAS_NAME) + ", kernel " + blas::kernel_name(); }

}  // namespace comera
