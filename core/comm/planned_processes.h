// Processes that a plan counts with: nothing is sent.
#pragma once
#include "core/base/error.h"
#include "core/comm/communicator.h"

namespace comera {

class PlannedProcesses final : public Communicator {
 public:
  // One of `processes` (at least 2), each on a machine of its own.
  explicit PlannedProcesses(int processes) : processes_(processes) {}
  int process() const override { return 0; }
  int processes() const override { return processes_; }
  int process_here() const override { return 0; }
  int processes_here() const override { return 1; }
  bool plans() const override { return true; }
  [[noreturn]] void abort(const std::string& why) override { throw Error(ErrorCode::other, why); }

 private:
  void do_trade(const void*, void*, int64_t) override { CHECK(false, "a plan sends nothing"); }
  void do_gather(const void*, void*, int64_t) override { CHECK(false, "a plan sends nothing"); }
  void do_spread(void*, int64_t) override { CHECK(false, "a plan sends nothing"); }
  std::vector<std::string> trade_texts(const std::string&) override { CHECK(false, "a plan sends nothing"); }

  const int processes_;
};

}  // namespace comera
