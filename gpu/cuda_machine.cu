#include "gpu/cuda_machine.h"

#include <algorithm>

#include "gpu/cublas_lt.h"

namespace comera::gpu {
namespace {

constexpr int64_t kFirstScratch = int64_t{4} << 20;

}  // namespace

void* allocate(int64_t bytes, const char* purpose) {
  CHECK(bytes >= 0, bytes << " bytes asked for");
  void* data = nullptr;
  CUDA_CHECK(cudaMalloc(&data, static_cast<size_t>(std::max<int64_t>(bytes, 1))),
             "taking " + std::to_string(bytes >> 20) + " MiB for " + purpose);
  return data;
}

CudaMachine::CudaMachine(int device) : device_(device) {
  here();
  CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "making a stream");
  try {
    cublas_ = std::make_unique<CublasLt>(kProductBytes);
  } catch (...) {
    cudaStreamDestroy(stream_);
    throw;
  }
}

CudaMachine::~CudaMachine() {
  cudaStreamSynchronize(stream_);
  for (void* data : own_) cudaFree(data);
  cublas_.reset();
  cudaStreamDestroy(stream_);
}

void CudaMachine::lend_workspace(void* data, int64_t bytes) {
  lent_ = static_cast<char*>(data);
  lent_bytes_ = bytes;
}

void CudaMachine::end_loan(const void* data) {
  if (data == lent_) lent_ = nullptr;
}

void* CudaMachine::own(int64_t bytes, const char* purpose) {
  cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
  CUDA_CHECK(cudaStreamIsCapturing(stream_, &capture), now());
  CHECK(capture == cudaStreamCaptureStatusNone, now() << " needs more working memory inside a captured step than before it");
  own_.push_back(allocate(bytes, purpose));
  return own_.back();
}

void* CudaMachine::scratch_bytes(int64_t bytes) {
  const int64_t at = scratch_.take(bytes), end = at + Scratch::size_of(bytes);
  if (dry_) return Scratch::nowhere();
  if (lent_ && end <= lent_bytes_) return lent_ + at;
  if (end > own_scratch_bytes_) {
    own_scratch_bytes_ = std::max({kFirstScratch, 2 * own_scratch_bytes_, end, scratch_.most()});
    own_scratch_ = static_cast<char*>(own(own_scratch_bytes_, "working memory"));
  }
  return own_scratch_ + at;
}

void CudaMachine::plan_workspace(Products how) {
  planned_products_ = how;
  scratch_.forget();
  cublas_->forget();
}

void* CudaMachine::product_workspace(int64_t bytes) {
  if (bytes == 0) return nullptr;
  const int64_t size = Scratch::size_of(bytes);
  if (lent_ && scratch_.used() + size <= lent_bytes_) return lent_ + lent_bytes_ - size;
  if (!own_product_workspace_) own_product_workspace_ = own(kProductBytes, "products");
  return own_product_workspace_;
}

void CudaMachine::copy(void* to, const void* from, int64_t bytes) {
  if (bytes > 0 && !dry_) CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyDeviceToDevice, stream_), now());
}

void CudaMachine::read(void* host, const void* device, int64_t bytes) {
  if (bytes > 0) CUDA_CHECK(cudaMemcpyAsync(host, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream_), now());
  CUDA_CHECK(cudaStreamSynchronize(stream_), now() + " or an op before it");
}

}  // namespace comera::gpu
