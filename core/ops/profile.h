// Where a step's time goes. Ops run one after another, so an op lasts from its mark to the next op's: it includes what the layers do on
// the host until then, and on a device the wait for the host.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace comera {

// Marks in a device's stream of work, and the time between them.
class WorkClock {
 public:
  virtual ~WorkClock() = default;
  virtual void mark() = 0;                           // sets the next mark, from 0, behind all work issued so far
  virtual double ms(size_t mark, size_t later) = 0;  // between two marks; waits for the work before `later`
  virtual void clear() = 0;                          // drops all marks
};

// For devices whose ops are done when they return.
class HostClock final : public WorkClock {
 public:
  void mark() override { marks_.push_back(std::chrono::steady_clock::now()); }
  double ms(size_t mark, size_t later) override { return std::chrono::duration<double, std::milli>(marks_[later] - marks_[mark]).count(); }
  void clear() override { marks_.clear(); }

 private:
  std::vector<std::chrono::steady_clock::time_point> marks_;
};

class OpProfile {
 public:
  struct Entry {
    int64_t calls = 0;
    double ms = 0, gemm_flops = 0;
    double bytes = 0;  // read and written by other ops than matrix products
  };
  std::map<std::string, Entry> ops;

  // From here to leave() this clock times the ops. Work counted so far is not attributed to any op.
  void start(WorkClock& clock, double flops_so_far, double bytes_so_far) {
    clock_ = &clock;
    clock_->clear();
    flops_ = flops_so_far;
    bytes_ = bytes_so_far;
  }
  // An op begins; its work is in the totals already.
  void enter(const char* op, double flops_so_far, double bytes_so_far) {
    Entry& entry = ops[op];
    ++entry.calls;
    entry.gemm_flops += flops_so_far - std::exchange(flops_, flops_so_far);
    entry.bytes += bytes_so_far - std::exchange(bytes_, bytes_so_far);
    clock_->mark();
    entered_.push_back(&entry);
  }
  // Ends the last op and adds up the times, waiting for the device.
  void leave() {
    clock_->mark();
    for (size_t i = 0; i < entered_.size(); ++i) entered_[i]->ms += clock_->ms(i, i + 1);
    entered_.clear();
  }

 private:
  WorkClock* clock_ = nullptr;
  std::vector<Entry*> entered_;  // one for each mark
  double flops_ = 0, bytes_ = 0;
};

}  // namespace comera
