// The CUDA device: its memory, its stream, its ops.
#include "core/ops/device.h"
#include "gpu/cuda_machine.h"

namespace comera {
namespace gpu {
namespace {

// Goes when the tests have passed on a device.
constexpr const char* kUnproven = "the CUDA ops have never run on a device, only their emulation on the CPU is tested";

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int index, std::string name) : name_(std::move(name)), machine_(index), ops_(machine_) {}

  std::string name() const override { return name_; }
  Ops& ops() override { return ops_; }

  void* allocate(int64_t bytes) override { return gpu::allocate(bytes, "tensors"); }
  void release(void* data) noexcept override {
    cudaStreamSynchronize(machine_.stream());  // kernels may still use it
    cudaFree(data);
  }
  // From pageable memory, which CUDA copies away before it returns.
  void upload(void* device, const void* host, int64_t bytes) override {
    if (bytes > 0)
      CUDA_CHECK(cudaMemcpyAsync(device, host, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, machine_.stream()), "an upload");
  }
  void download(void* host, const void* device, int64_t bytes) override {
    if (bytes > 0) machine_.read(host, device, bytes);
  }
  void synchronize() override { CUDA_CHECK(cudaStreamSynchronize(machine_.stream()), machine_.now() + " or an op before it"); }

 private:
  const std::string name_;
  CudaMachine machine_;
  GpuOps<CudaMachine> ops_;
};

}  // namespace
}  // namespace gpu

CudaStatus cuda_status() {
  CudaStatus status;
  status.built = true;
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    status.reason = cudaGetErrorString(error);  // "no CUDA-capable device is detected", "driver version is insufficient ..."
    return status;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, i) != cudaSuccess) break;  // devices are named by their place
    status.devices.push_back(properties.name);
  }
  status.reason = status.devices.empty() ? "no CUDA device was found" : gpu::kUnproven;
  return status;
}

std::unique_ptr<Device> open_cuda_device(int index) {
  const CudaStatus status = cuda_status();
  const int count = static_cast<int>(status.devices.size());
  if (count == 0) throw Error(ErrorCode::device, "no CUDA device can be used", status.reason, "use --device cpu");
  if (index < 0 || index >= count)
    throw Error(ErrorCode::device, "there is no device cuda:" + std::to_string(index), "this machine has " + std::to_string(count),
                "use cuda:0" + (count > 1 ? " to cuda:" + std::to_string(count - 1) : ""));
  return std::make_unique<gpu::CudaDevice>(index, "cuda:" + std::to_string(index) + ", " + status.devices[static_cast<size_t>(index)]);
}

}  // namespace comera
