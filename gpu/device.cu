// The CUDA device: its memory, its stream, its ops.
#include "core/ops/device.h"

#include <cstdio>

#include "gpu/cuda_machine.h"
#include "gpu/nccl.h"
#include "gpu/pinned.h"

namespace comera {
namespace gpu {
namespace {

// A CUDA graph of the calls between begin and end of a capture.
class CudaProgram final : public CapturedProgram {
 public:
  CudaProgram(cudaGraph_t graph, CudaMachine& machine) : machine_(machine) {
    const cudaError_t error = cudaGraphInstantiate(&graph_, graph, 0);
    cudaGraphDestroy(graph);
    CUDA_CHECK(error, "making a captured step ready");
  }
  ~CudaProgram() override { cudaGraphExecDestroy(graph_); }  // a running graph is freed when it has ended
  CudaProgram(const CudaProgram&) = delete;

  void launch() override {
    machine_.ranges().next("captured step");
    CUDA_CHECK(cudaGraphLaunch(graph_, machine_.stream()), "a captured step, or one before it,");
    machine_.ranges().end();
  }

 private:
  cudaGraphExec_t graph_ = nullptr;
  CudaMachine& machine_;
};

// With two steps in flight the device has the next one queued while the host prepares another.
constexpr int kLag = 2;

class CudaDevice final : public Device, public LinkableDevice {
 public:
  // compute_capability: 90 is 9.0
  CudaDevice(int index, std::string name, int compute_capability)
      : name_(std::move(name)),
        compute_capability_(compute_capability),
        machine_(index),
        ops_(machine_),
        lane_(machine_.stream()),
        uploads_(lane_, UploadLane::kPartBytes) {}

  std::string name() const override { return name_; }
  std::string blas() const override {
    int processors = 0;
    CUDA_CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, machine_.index()), "asking for the multiprocessors");
    return machine_.blas() + " on " + std::to_string(processors) + " multiprocessors";
  }
  Ops& ops() override { return ops_; }

  void* allocate(int64_t bytes) override {
    machine_.here();
    return gpu::allocate(bytes, "tensors");
  }
  void release(void* data) noexcept override {
    cudaStreamSynchronize(machine_.stream());  // kernels may still use it
    cudaFree(data);
  }
  void upload(void* device, const void* host, int64_t bytes) override { uploads_.upload(device, host, bytes); }
  void upload_parts(void* block, std::span<const Part> parts) override { uploads_.upload_parts(block, parts); }
  void download(void* host, const void* device, int64_t bytes) override {
    if (bytes > 0) machine_.read(host, device, bytes);
  }
  void synchronize() override {
    machine_.ranges().end();
    CUDA_CHECK(cudaStreamSynchronize(machine_.stream()), machine_.now() + " or an op before it");
  }
  std::unique_ptr<Mailbox> mailbox(int slots, int64_t slot_bytes) override {
    machine_.here();
    return std::make_unique<PinnedMailbox>(machine_.stream(), slots, slot_bytes);
  }
  int lag() const override { return kLag; }
  std::unique_ptr<WorkClock> work_clock() override {
    machine_.here();
    return std::make_unique<EventClock>(machine_.stream());
  }
  int64_t free_bytes() const override {
    size_t free = 0, total = 0;
    machine_.here();
    CUDA_CHECK(cudaMemGetInfo(&free, &total), "asking for the free memory");
    return static_cast<int64_t>(free);
  }
  void set_products(Products how) override {
    if (how == Products::fp8 && compute_capability_ < kFp8Capability)
      throw Error(ErrorCode::device, name_ + " does not compute products in fp8",
                  "its compute capability is " + std::to_string(compute_capability_ / 10) + "." + std::to_string(compute_capability_ % 10) +
                      ", E4M3 needs 8.9",
                  "use --set train.matmul=bf16 or tf32");
    machine_.use(how);
  }
  int64_t total_bytes() const override {
    size_t free = 0, total = 0;
    machine_.here();
    CUDA_CHECK(cudaMemGetInfo(&free, &total), "asking for the memory of the device");
    return static_cast<int64_t>(total);
  }

  void plan_workspace(Products how) override { machine_.plan_workspace(how); }
  int64_t workspace_bytes() const override { return machine_.workspace_bytes(); }
  void lend_workspace(void* data, int64_t bytes) override { machine_.lend_workspace(data, bytes); }
  void end_loan(const void* data) noexcept override { machine_.end_loan(data); }

  bool captures() const override { return true; }
  // Thread-local: other threads may call CUDA meanwhile.
  void begin_capture() override {
    machine_.here();
    CUDA_CHECK(cudaStreamBeginCapture(machine_.stream(), cudaStreamCaptureModeThreadLocal), "beginning to capture a step");
  }
  std::unique_ptr<CapturedProgram> end_capture() override {
    cudaGraph_t graph = nullptr;
    CUDA_CHECK(cudaStreamEndCapture(machine_.stream(), &graph), "capturing a step up to " + machine_.now());
    return std::make_unique<CudaProgram>(graph, machine_);
  }
  void abandon_capture() noexcept override {
    cudaGraph_t graph = nullptr;
    if (cudaStreamEndCapture(machine_.stream(), &graph) == cudaSuccess && graph) cudaGraphDestroy(graph);
    cudaGetLastError();  // clears the error of the aborted capture
  }

  LinkEnd link_end() const override {
    const NcclStatus nccl = nccl_status();
    if (!nccl.here) return {};
    cudaDeviceProp properties;
    CUDA_CHECK(cudaGetDeviceProperties(&properties, machine_.index()), "asking for the name of the device among all");
    std::string uuid;
    for (const char byte : properties.uuid.bytes) {
      char text[3];
      std::snprintf(text, sizeof text, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
      uuid += text;
    }
    return {"NCCL " + nccl.version, uuid};
  }
  std::string new_link() override { return new_nccl_link(); }
  void join_link(const std::string& made, int process, int processes) override {
    machine_.here();
    link_ = join_nccl(made, process, processes, machine_.stream());
  }
  DeviceLink* link() override { return link_.get(); }

 private:
  static constexpr int kFp8Capability = 89;
  const std::string name_;
  const int compute_capability_;
  CudaMachine machine_;
  GpuOps<CudaMachine> ops_;
  UploadLane lane_;
  Staging<UploadLane> uploads_;
  std::unique_ptr<DeviceLink> link_;
};

}  // namespace
}  // namespace gpu

CudaStatus cuda_status() {
  CudaStatus status;
  status.built = true;
  status.toolkit = COMERA_CUDA_TOOLKIT;
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
  if (status.devices.empty()) status.reason = "no CUDA device was found";
  return status;
}

std::unique_ptr<Device> open_cuda_device(int index) {
  const CudaStatus status = cuda_status();
  const int count = static_cast<int>(status.devices.size());
  if (count == 0) throw Error(ErrorCode::device, "no CUDA device can be used", status.reason, "use --device cpu");
  if (index < 0 || index >= count)
    throw Error(ErrorCode::device, "there is no device cuda:" + std::to_string(index), "this machine has " + std::to_string(count),
                "use cuda:0" + (count > 1 ? " to cuda:" + std::to_string(count - 1) : ""));
  int major = 0, minor = 0;
  CUDA_CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index), "asking for the compute capability");
  CUDA_CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index), "asking for the compute capability");
  return std::make_unique<gpu::CudaDevice>(index, "cuda:" + std::to_string(index) + ", " + status.devices[static_cast<size_t>(index)],
                                           10 * major + minor);
}

}  // namespace comera
