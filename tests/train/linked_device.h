// A recording device that is linked to those of the other processes, which are threads here. Messages are calls as those of ops are: kept
// in a capture, made in their turn, and only between memory that is the devices'. They arrive as late as they may, when they are finished,
// and until then nothing may write what is sent nor what is received, which holds no numbers meanwhile.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "core/comm/process_threads.h"
#include "core/ops/device_link.h"
#include "tests/ops/cases/recording_device.h"

namespace comera::test {

struct LinkedMessage {
  int process;
  Tensor data;
};
struct LinkedMessages {                                     // under way
  std::vector<std::pair<LinkedMessage, std::string>> sent;  // with their bytes
  std::vector<LinkedMessage> received;
  int64_t calls_before = 0;
};

class LinkedDevice final : public RecordingDevice, public LinkableDevice {
 public:
  // `others`: of this process. `end`: what it says of itself.
  explicit LinkedDevice(Communicator& others, LinkEnd end = {}) : others_(static_cast<ThreadCommunicator&>(others)), end_(std::move(end)) {
    if (end_.device.empty()) end_ = {"threads 1.0", "device " + std::to_string(others.process())};
  }
  int64_t delivered_bytes = 0;  // to others, also by replayed calls
  int64_t calls_meanwhile = 0;  // op by op, while messages were under way
  int64_t fails_at = -1;        // the call of start() that ends with an error; below 0: none

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
  static constexpr char kNoNumber = '\xff';
  static std::string bytes_of(const LinkedMessage& message) {
    if (message.data.bytes() == 0) return "";
    return {static_cast<const char*>(message.data.raw()), static_cast<size_t>(message.data.bytes())};
  }

  class Start final : public KeptCall {
   public:
    Start(LinkedDevice& device, std::span<const DeviceLink::Piece> sent, std::span<const DeviceLink::Piece> received) : device_(device) {
      const auto add = [](std::span<const DeviceLink::Piece> pieces, std::vector<LinkedMessage>& to) {
        for (const auto& [process, data, bytes] : pieces) to.push_back({process, Tensor(data, {bytes}, DType::u8)});
      };
      add(sent, sent_);
      add(received, received_);
    }
    const char* op() const override { return "Start"; }
    const char* name() const override { return "messages begin"; }
    bool never_captured() const override { return false; }
    std::shared_ptr<KeptCall> copy() const override { return std::make_shared<Start>(*this); }
    void each_tensor(const std::function<void(const ArgumentTensor&)>& visit) override {
      for (LinkedMessage& message : sent_) visit({message.data, nullptr, Role::in, 0});
      for (LinkedMessage& message : received_) visit({message.data, nullptr, Role::out, 0});
    }
    void make(Ops&) const override {
      CHECK(!device_.under_way_, "messages begin before others were finished");
      LinkedMessages& now = device_.under_way_.emplace();
      now.calls_before = device_.eager_calls;
      for (const LinkedMessage& message : sent_) now.sent.push_back({message, bytes_of(message)});
      now.received = received_;
      for (const LinkedMessage& message : received_)
        if (message.data.bytes() > 0) std::memset(message.data.raw(), kNoNumber, static_cast<size_t>(message.data.bytes()));
    }

   private:
    LinkedDevice& device_;
    std::vector<LinkedMessage> sent_, received_;
  };

  class Finish final : public KeptCall {
   public:
    explicit Finish(LinkedDevice& device) : device_(device) {}
    const char* op() const override { return "Finish"; }
    const char* name() const override { return "messages arrive"; }
    bool never_captured() const override { return false; }
    std::shared_ptr<KeptCall> copy() const override { return std::make_shared<Finish>(*this); }
    void each_tensor(const std::function<void(const ArgumentTensor&)>&) override {}
    void make(Ops&) const override {
      CHECK(device_.under_way_, "messages that did not begin are finished");
      LinkedMessages& now = *device_.under_way_;
      for (const auto& sent : now.sent) CHECK(bytes_of(sent.first) == sent.second, "what is sent was written meanwhile");
      for (const LinkedMessage& message : now.received) {
        const std::string bytes = bytes_of(message);
        CHECK(std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == kNoNumber; }), "what is received was written meanwhile");
      }
      ThreadCommunicator& others = device_.others_;
      others.threads().meet(others.process(), {&now, kMessages}, [&](const auto& given) {
        for (int p = 0; p < others.processes(); ++p) {
          CHECK(given[static_cast<size_t>(p)].bytes == kMessages, "process " << p << " calls something else");
          if (p != others.process())
            take(now, others.process(), p, *static_cast<const LinkedMessages*>(given[static_cast<size_t>(p)].data));
        }
      });
      for (const auto& [message, bytes] : now.sent) device_.delivered_bytes += message.data.bytes();
      device_.calls_meanwhile += std::max<int64_t>(0, device_.eager_calls - now.calls_before - 1);
      device_.under_way_.reset();
    }

   private:
    static constexpr int64_t kMessages = -1;  // no size that a message of the communicator has

    // What the other has for this process, in its order.
    static void take(LinkedMessages& now, int me, int p, const LinkedMessages& other) {
      auto next = now.received.begin();
      for (const auto& sent : other.sent) {
        const LinkedMessage& message = sent.first;
        const std::string& bytes = sent.second;
        if (message.process != me) continue;
        next = std::find_if(next, now.received.end(), [p](const LinkedMessage& place) { return place.process == p; });
        CHECK(next != now.received.end(), "process " << p << " sends what nobody receives");
        CHECK(next->data.bytes() == message.data.bytes(),
              "pieces of " << message.data.bytes() << " and " << next->data.bytes() << " bytes");
        if (!bytes.empty()) std::memcpy(next->data.raw(), bytes.data(), bytes.size());
        ++next;
      }
      CHECK(std::none_of(next, now.received.end(), [p](const LinkedMessage& place) { return place.process == p; }),
            "a piece does not come");
    }

    LinkedDevice& device_;
  };

  class Link final : public DeviceLink {
   public:
    explicit Link(LinkedDevice& device) : device_(device) {}

   private:
    void do_start(std::span<const Piece> sent, std::span<const Piece> received) override {
      if (calls_++ == device_.fails_at) throw Error(ErrorCode::device, "a message is lost", "the cable is cut", "mend it");
      device_.RecordingDevice::take(std::make_shared<Start>(device_, sent, received));
    }
    void finish() override { device_.RecordingDevice::take(std::make_shared<Finish>(device_)); }
    LinkedDevice& device_;
    int64_t calls_ = 0;
  };

  ThreadCommunicator& others_;
  LinkEnd end_;
  std::unique_ptr<Link> link_;
  std::optional<LinkedMessages> under_way_;
};

}  // namespace comera::test
