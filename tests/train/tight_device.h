// A device with memory of its own, as a GPU's, of which the test says how much there is; also while a run trains on another
// thread. It can say that more is free than it has: then an allocation fails that was expected to fit.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <new>
#include <string>

#include "core/ops/device.h"

namespace comera::test {

struct Room {
  std::atomic<int64_t> bytes = int64_t{1} << 30;  // that it has
  std::atomic<int64_t> taken = 0;
  std::atomic<bool> honest = true;               // says what is free; else as if nothing were taken of much
  std::atomic<bool> by_system = false;           // what does not fit is refused by std::bad_alloc, not by the device's own error
  std::atomic<int64_t> downloads = 0;            // so far
  std::atomic<int64_t> last_download = 1 << 30;  // the host has no memory for more of them
  void fill() { bytes = taken.load(); }          // nothing is free any more
};

class TightDevice final : public Device {
 public:
  explicit TightDevice(std::shared_ptr<Room> room) : room_(std::move(room)) {}

  std::string name() const override { return device_->name(); }
  Ops& ops() override { return device_->ops(); }
  void* allocate(int64_t bytes) override {
    if (room_->taken + bytes > room_->bytes) {
      if (room_->by_system) throw std::bad_alloc();
      throw Error(ErrorCode::memory, "could not take " + std::to_string(bytes) + " bytes of memory", "the device refused", "");
    }
    void* data = device_->allocate(bytes);
    sizes_[data] = bytes;
    room_->taken += bytes;
    return data;
  }
  void release(void* data) noexcept override {
    const auto found = sizes_.find(data);
    if (found != sizes_.end()) {
      room_->taken -= found->second;
      sizes_.erase(found);
    }
    device_->release(data);
  }
  void upload(void* device, const void* host, int64_t bytes) override { device_->upload(device, host, bytes); }
  void download(void* host, const void* device, int64_t bytes) override {
    if (++room_->downloads > room_->last_download) throw std::bad_alloc();
    device_->download(host, device, bytes);
  }
  void synchronize() override { device_->synchronize(); }
  int64_t free_bytes() const override { return room_->honest ? room_->bytes - room_->taken : int64_t{1} << 40; }
  int64_t total_bytes() const override { return room_->honest ? room_->bytes.load() : int64_t{1} << 40; }

 private:
  const std::unique_ptr<Device> device_ = open_cpu_device(1);
  const std::shared_ptr<Room> room_;
  std::map<void*, int64_t> sizes_;
};

}  // namespace comera::test
