// A device: its memory, its ops, and later its captured graphs. Opened by name; the linker picks the CUDA backend
// or its stub. One thread: the trainer's.
#pragma once
#include <memory>
#include <string>

#include "core/ops/ops.h"
#include "core/tensor/memory.h"

namespace comera {

class Device : public Allocator {
 public:
  virtual std::string name() const = 0;  // "CPU, 2 threads"
  virtual Ops& ops() = 0;
  virtual void upload(void* device, const void* host, int64_t bytes) = 0;
  virtual void download(void* host, const void* device, int64_t bytes) = 0;
  virtual void synchronize() = 0;  // all work done
};

// "cpu", "cuda:0", or "auto" (CUDA where there is one, else CPU). threads 0 = every core. Throws Error(device).
std::unique_ptr<Device> open_device(const std::string& name, int threads = 0);

struct CudaStatus {
  bool built = false;            // nvcc was there when this program was built
  std::string reason;            // why there is no device, for people
  std::vector<std::string> devices;
};
CudaStatus cuda_status();                              // gpu/
std::unique_ptr<Device> open_cuda_device(int index);   // gpu/, throws Error(device)
std::unique_ptr<Device> open_cpu_device(int threads);  // core/cpu
std::string blas_name();                               // core/cpu: library and kernel in use

}  // namespace comera
