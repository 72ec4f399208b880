// Copies between host and device without waiting: pinned host memory, and events, which mark progress of a stream. Included
// by .cu files only.
#pragma once
#include <cuda_runtime.h>

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "core/ops/device.h"
#include "gpu/check.h"
#include "gpu/staging.h"

namespace comera::gpu {

class Event {
 public:
  // Blocking wait: leaves the cores to the loader.
  explicit Event(unsigned flags = cudaEventBlockingSync | cudaEventDisableTiming) {
    CUDA_CHECK(cudaEventCreateWithFlags(&event_, flags), "making an event");
  }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  void record(cudaStream_t stream) { CUDA_CHECK(cudaEventRecord(event_, stream), "an op before a mark"); }
  // Returns at once if it was never recorded.
  void wait(const char* what) const { CUDA_CHECK(cudaEventSynchronize(event_), what); }
  void wait_quietly() const noexcept { cudaEventSynchronize(event_); }
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

class PinnedMemory {
 public:
  explicit PinnedMemory(int64_t bytes) {
    const cudaError_t error = cudaHostAlloc(&data_, static_cast<size_t>(bytes), cudaHostAllocDefault);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      throw Error(ErrorCode::memory, "could not take " + std::to_string(bytes >> 10) + " KiB of the host's memory for copies to the GPU",
                  "the driver refused to pin it", "end other programs that use memory");
    }
    CUDA_CHECK(error, "taking memory of the host for copies");
  }
  ~PinnedMemory() { cudaFreeHost(data_); }
  PinnedMemory(const PinnedMemory&) = delete;
  char* data() const { return static_cast<char*>(data_); }

 private:
  void* data_ = nullptr;
};

// See Mailbox. Each slot has an event, recorded after the last copy into it.
class PinnedMailbox final : public Mailbox {
 public:
  PinnedMailbox(cudaStream_t stream, int slots, int64_t slot_bytes)
      : stream_(stream), slot_bytes_(slot_bytes), memory_(slots * slot_bytes), sent_(static_cast<size_t>(slots)) {}
  ~PinnedMailbox() override {
    for (const Event& event : sent_) event.wait_quietly();  // the device may still write there
  }
  void send(int slot, int64_t at, const void* device, int64_t bytes) override {
    CHECK(at + bytes <= slot_bytes_, bytes << " bytes at " << at << " of a slot of " << slot_bytes_);
    CUDA_CHECK(
        cudaMemcpyAsync(memory_.data() + slot * slot_bytes_ + at, device, static_cast<size_t>(bytes), cudaMemcpyDeviceToHost, stream_),
        "sending results");
    sent_[static_cast<size_t>(slot)].record(stream_);
  }
  const char* receive(int slot) override {
    sent_[static_cast<size_t>(slot)].wait("a step, or one before it,");
    return memory_.data() + slot * slot_bytes_;
  }

 private:
  const cudaStream_t stream_;
  const int64_t slot_bytes_;
  const PinnedMemory memory_;
  std::vector<Event> sent_;
};

// The Lane of Staging (staging.h).
class UploadLane {
 public:
  explicit UploadLane(cudaStream_t stream) : stream_(stream), memory_(Staging<UploadLane>::kParts * kPartBytes) {}
  ~UploadLane() { cudaStreamSynchronize(stream_); }
  char* memory() const { return memory_.data(); }
  void copy(void* to, const void* from, int64_t bytes) {
    CUDA_CHECK(cudaMemcpyAsync(to, from, static_cast<size_t>(bytes), cudaMemcpyHostToDevice, stream_), "an upload");
  }
  void mark(int part) { arrived_[part].record(stream_); }
  void wait(int part) const { arrived_[part].wait("an upload, or an op before it,"); }

  static constexpr int64_t kPartBytes = int64_t{2} << 20;  // holds the batch of a step in most runs

 private:
  const cudaStream_t stream_;
  const PinnedMemory memory_;
  Event arrived_[Staging<UploadLane>::kParts];
};

// See WorkClock: one event a mark, reused after clear().
class EventClock final : public WorkClock {
 public:
  explicit EventClock(cudaStream_t stream) : stream_(stream) {}
  void mark() override {
    if (used_ == events_.size()) events_.emplace_back(cudaEventBlockingSync);
    events_[used_++].record(stream_);
  }
  double ms(size_t mark, size_t later) override {
    events_[later].wait("a step that is profiled, or one before it,");
    float ms = 0;
    CUDA_CHECK(cudaEventElapsedTime(&ms, events_[mark].get(), events_[later].get()), "asking for the time between two ops");
    return static_cast<double>(ms);
  }
  void clear() override { used_ = 0; }

 private:
  const cudaStream_t stream_;
  std::deque<Event> events_;
  size_t used_ = 0;
};

}  // namespace comera::gpu
