// Where a step's time goes: ops run one after another, so an op lasts from its call to the next op's call (what the
// layers do in between is counted with the op before). Only on devices whose ops are done when they return.
#pragma once
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace comera {

struct OpProfile {
  struct Entry {
    int64_t calls = 0;
    double ms = 0, gemm_flops = 0;
  };
  std::map<std::string, Entry> ops;

  // `flops_so_far` with this op's own work already counted.
  void enter(const char* op, double flops_so_far) {
    const auto now = std::chrono::steady_clock::now();
    leave(now);
    current_ = &ops[op];
    ++current_->calls;
    current_->gemm_flops += flops_so_far - flops_;
    flops_ = flops_so_far;
    begin_ = now;
  }
  // Ends the last op, for example at the end of a step.
  void leave(std::chrono::steady_clock::time_point now = std::chrono::steady_clock::now()) {
    if (current_) current_->ms += std::chrono::duration<double, std::milli>(now - begin_).count();
    current_ = nullptr;
  }
  void start(double flops_so_far) { flops_ = flops_so_far; }

 private:
  Entry* current_ = nullptr;
  double flops_ = 0;
  std::chrono::steady_clock::time_point begin_{};
};

}  // namespace comera
