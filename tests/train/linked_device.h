// A recording device that is linked to those of the other processes, which are threads here. Messages are calls as those of ops are: kept
// in a capture, made in their turn, and only between memory that is the devices'.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/comm/process_threads.h"
#include "core/ops/device_link.h"
#include "tests/ops/cases/recording_device.h"

namespace comera::test {

class LinkedDevice final : public RecordingDevice, public LinkableDevice {
 public:
  // `others`: of this process. `end`: what it says of itself.
  explicit LinkedDevice(Communicator& others, LinkEnd end = {}) : others_(static_cast<ThreadCommunicator&>(others)), end_(std::move(end)) {
    if (end_.device.empty()) end_ = {"threads 1.0", "device " + std::to_string(others.process())};
  }
  int64_t delivered_bytes = 0;  // to others, also by replayed calls
  int64_t fails_at = -1;        // the call of exchange() that ends with an error; below 0: none

  LinkEnd link_end() const override { return end_; }
  std::string new_link() override { return "a link\nof process " + std::to_string(others_.process()); }
  void join_link(const std::string& made, int process, int processes) override {
    EXPECT_EQ(made, "a link\nof process 0");
    EXPECT_EQ(process, others_.process());
    EXPECT_EQ(processes, others_.processes());
    link_ = std::make_unique<Link>(*this);
  }
  DeviceLink* link() override { return link_.get(); }

 private:
  struct Message {
    int process;
    Tensor data;
  };

  class Exchange final : public KeptCall {
   public:
    Exchange(LinkedDevice& device, std::span<const DeviceLink::Piece> sent, std::span<const DeviceLink::Piece> received) : device_(device) {
      const auto add = [](std::span<const DeviceLink::Piece> pieces, std::vector<Message>& to) {
        for (const auto& [process, data, bytes] : pieces) to.push_back({process, Tensor(data, {bytes}, DType::u8)});
      };
      add(sent, sent_);
      add(received, received_);
    }
    const char* op() const override { return "Exchange"; }
    const char* name() const override { return "exchange"; }
    bool never_captured() const override { return false; }
    std::shared_ptr<KeptCall> copy() const override { return std::make_shared<Exchange>(*this); }
    void each_tensor(const std::function<void(const ArgumentTensor&)>& visit) override {
      for (Message& message : sent_) visit({message.data, nullptr, Role::in, 0});
      for (Message& message : received_) visit({message.data, nullptr, Role::out, 0});
    }
    void make(Ops&) const override {
      ThreadCommunicator& others = device_.others_;
      others.threads().meet(others.process(), {this, kExchange}, [&](const auto& given) {
        for (int p = 0; p < others.processes(); ++p) {
          CHECK(given[static_cast<size_t>(p)].bytes == kExchange, "process " << p << " calls something else");
          if (p != others.process()) take(others.process(), p, *static_cast<const Exchange*>(given[static_cast<size_t>(p)].data));
        }
      });
      for (const Message& message : sent_) device_.delivered_bytes += message.data.bytes();
    }

   private:
    static constexpr int64_t kExchange = -1;  // no size that a message of the communicator has

    // What the other has for this process, in its order.
    void take(int me, int p, const Exchange& other) const {
      auto next = received_.begin();
      for (const Message& message : other.sent_) {
        if (message.process != me) continue;
        next = std::find_if(next, received_.end(), [p](const Message& place) { return place.process == p; });
        CHECK(next != received_.end(), "process " << p << " sends what nobody receives");
        CHECK(next->data.bytes() == message.data.bytes(),
              "pieces of " << message.data.bytes() << " and " << next->data.bytes() << " bytes");
        if (message.data.bytes() > 0) std::memcpy(next->data.raw(), message.data.raw(), static_cast<size_t>(message.data.bytes()));
        ++next;
      }
      CHECK(std::none_of(next, received_.end(), [p](const Message& place) { return place.process == p; }), "a piece does not come");
    }

    LinkedDevice& device_;
    std::vector<Message> sent_, received_;
  };

  class Link final : public DeviceLink {
   public:
    explicit Link(LinkedDevice& device) : device_(device) {}

   private:
    void do_exchange(std::span<const Piece> sent, std::span<const Piece> received) override {
      if (calls_++ == device_.fails_at) throw Error(ErrorCode::device, "a message is lost", "the cable is cut", "mend it");
      device_.RecordingDevice::take(std::make_shared<Exchange>(device_, sent, received));
    }
    LinkedDevice& device_;
    int64_t calls_ = 0;
  };

  ThreadCommunicator& others_;
  LinkEnd end_;
  std::unique_ptr<Link> link_;
};

}  // namespace comera::test
