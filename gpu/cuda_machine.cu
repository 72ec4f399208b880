#include "gpu/cuda_machine.h"

#include <algorithm>

#include "gpu/cublas_lt.h"

namespace comera::gpu {
namespace {

constexpr int64_t kAlignment = 256, kFirstScratch = int64_t{4} << 20;

std::string mib(size_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

void* allocate(int64_t bytes, const char* purpose) {
  CHECK(bytes >= 0, bytes << " bytes asked for");
  void* data = nullptr;
  const cudaError_t error = cudaMalloc(&data, static_cast<size_t>(std::max<int64_t>(bytes, 1)));
  if (error == cudaSuccess) return data;
  if (error != cudaErrorMemoryAllocation) cuda_failed(error, std::string("taking memory for ") + purpose);
  cudaGetLastError();
  size_t free = 0, total = 0;
  cudaMemGetInfo(&free, &total);
  throw Error(ErrorCode::memory, "could not take " + mib(static_cast<size_t>(bytes)) + " of GPU memory for " + purpose,
              mib(free) + " of " + mib(total) + " are free", "use a smaller batch or a smaller model");
}

CudaMachine::CudaMachine(int device) {
  CUDA_CHECK(cudaSetDevice(device), "opening");
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  try {
    cublas_ = std::make_unique<CublasLt>();
  } catch (...) {
    cudaStreamDestroy(stream_);
    throw;
  }
}

CudaMachine::~CudaMachine() {
  cudaStreamSynchronize(stream_);
  for (const Block& block : scratch_) cudaFree(block.data);
  cublas_.reset();
  cudaStreamDestroy(stream_);
}

int64_t CudaMachine::held_bytes() const {
  int64_t bytes = CublasLt::kWorkspaceBytes;
  for (const Block& block : scratch_) bytes += block.bytes;
  return bytes;
}

void* CudaMachine::scratch_bytes(int64_t bytes) {
  const int64_t size = (std::max<int64_t>(bytes, 1) + kAlignment - 1) / kAlignment * kAlignment;
  asked_ += size;
  if (scratch_.empty() || scratch_used_ + size > scratch_.back().bytes) {
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    CUDA_CHECK(cudaStreamIsCapturing(stream_, &capture), now());
    CHECK(capture == cudaStreamCaptureStatusNone, now() << " needs more working memory inside a captured step than before it");
    const int64_t room = std::max({kFirstScratch, scratch_.empty() ? 0 : 2 * scratch_.back().bytes, asked_, most_asked_});
    scratch_.push_back({allocate(room, "working memory"), room});
    scratch_used_ = 0;
  }
  void* data = static_cast<char*>(scratch_.back().data) + scratch_used_;
  scratch_used_ += size;
  return data;
}

void CudaMachine::copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0) CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream_), now());
}

void CudaMachine::read(void* host, const void* device, int64_t bytes) {
  if (bytes > 0) CUDA_CHECK(cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream_), now());
  CUDA_CHECK(cudaStreamSynchronize(stream_), now() + " or an op before it");
}

}  // namespace comera::gpu
