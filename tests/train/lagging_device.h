// A device whose results come late, as a GPU's do: another device, and a mailbox that keeps what was sent until it is
// received. What nobody has received yet cannot be read by mistake: the slot holds bytes of 0xff, which are no numbers. It
// counts when the host waits, and can be lost at any step.
#pragma once
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ops/device.h"

namespace comera::test {

class LaggingDevice final : public Device {
 public:
  explicit LaggingDevice(int lag = 2, std::unique_ptr<Device> device = open_cpu_device(1)) : device_(std::move(device)), lag_(lag) {}

  int64_t waits = 0;                   // downloads and synchronisations: each waits for all work
  std::vector<int64_t> newer;          // a received slot: how many steps had been sent behind it
  int64_t lost_at = -1;                // from this many steps sent on nothing works; below 0: never
  ErrorCode loss = ErrorCode::device;  // what is said then
  Device& inner() { return *device_; }

  std::string name() const override { return device_->name(); }
  int lag() const override { return lag_; }
  Ops& ops() override { return device_->ops(); }
  void* allocate(int64_t bytes) override {
    check_alive();
    return device_->allocate(bytes);
  }
  void release(void* data) noexcept override { device_->release(data); }
  int64_t free_bytes() const override { return device_->free_bytes(); }
  int64_t total_bytes() const override { return device_->total_bytes(); }
  void upload(void* device, const void* host, int64_t bytes) override {
    check_alive();
    device_->upload(device, host, bytes);
  }
  void download(void* host, const void* device, int64_t bytes) override {
    check_alive();
    ++waits;
    device_->download(host, device, bytes);
  }
  void synchronize() override {
    check_alive();
    ++waits;
    device_->synchronize();
  }
  std::unique_ptr<Mailbox> mailbox(int slots, int64_t slot_bytes) override {
    return std::make_unique<Late>(*this, static_cast<size_t>(slots), static_cast<size_t>(slot_bytes));
  }
  bool captures() const override { return device_->captures(); }
  void begin_capture() override { device_->begin_capture(); }
  std::unique_ptr<CapturedProgram> end_capture() override { return device_->end_capture(); }
  void abandon_capture() noexcept override { device_->abandon_capture(); }

 private:
  void check_alive() const {
    if (lost_at >= 0 && sent_ >= lost_at) throw Error(loss, "a copy failed on the device", "it is lost", "");
  }

  class Late final : public Mailbox {
   public:
    Late(LaggingDevice& device, size_t slots, size_t bytes)
        : device_(device), seen_(slots, std::vector<char>(bytes, '\xff')), sent_(seen_), number_(slots, -1) {}
    void send(int slot, int64_t at, const void* device, int64_t bytes) override {
      device_.check_alive();
      const auto index = static_cast<size_t>(slot);
      if (at == 0) {
        CHECK(number_[index] < 0, "slot " << slot << " is sent again before it was received");
        number_[index] = device_.sent_++;
        std::fill(seen_[index].begin(), seen_[index].end(), '\xff');
      }
      device_.device_->download(sent_[index].data() + at, device, bytes);
    }
    const char* receive(int slot) override {
      device_.check_alive();
      const auto index = static_cast<size_t>(slot);
      CHECK(number_[index] >= 0, "slot " << slot << " is received and was not sent");
      device_.newer.push_back(device_.sent_ - 1 - std::exchange(number_[index], -1));
      seen_[index] = sent_[index];
      return seen_[index].data();
    }

   private:
    LaggingDevice& device_;
    std::vector<std::vector<char>> seen_, sent_;
    std::vector<int64_t> number_;  // which step is in the slot; below 0: none, or received
  };

  const std::unique_ptr<Device> device_;
  const int lag_;
  int64_t sent_ = 0;  // steps
};

}  // namespace comera::test
