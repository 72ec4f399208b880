// One table of cases for every op. From a case follow its calls without memory, with other types and shapes, with outputs that overlap, and
// recorded and replayed (tests/ops/cases_test.cpp); and on the emulated GPU in several shapes and on a real GPU where there is one, with
// what the CPU gives within its tolerance (tests/gpu/ops_test.cpp).
//
// To add a case: a row in X_cases.cpp, a function that takes its tensors from the runner and calls the ops. It does not read what they
// gave. Refusals stand beside the cases (tests/ops/checks_test.cpp).
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/ops/device.h"
#include "tests/ops/cases/kept.h"
#include "tests/ops/host.h"

namespace comera::test {

// Gives a case its tensors on one device, and collects what came out.
class Runner {
 public:
  explicit Runner(Device& device) : device_(device) {}
  ~Runner();
  Runner(const Runner&) = delete;
  Ops& ops() { return other_ops_ ? *other_ops_ : device_.ops(); }
  void use(Ops* ops) { other_ops_ = ops; }  // instead of the device's; null: those

  // A tensor with these values.
  template <class T>
  Tensor in(const Array<T>& values) {
    return place(values.v.data(), values.shape, dtype_of<T>);
  }
  // The same, looked at in the end: the largest difference from the CPU may be `near`.
  template <class T>
  Tensor out(const Array<T>& values, double near = tolerance<T>(1e-5, 1e-12)) {
    const Tensor tensor = in(values);
    outputs_.push_back({tensor, near});
    return tensor;
  }
  // An output that must be written everywhere.
  template <class T>
  Tensor out(Shape shape, double near = tolerance<T>(1e-5, 1e-12)) {
    return out(Array<T>(shape, T(7)), near);
  }
  Tensor scalars(const StepScalars& scalars) { return place(&scalars, Shape{int64_t{sizeof(scalars)}}, DType::u8); }
  Tensor results(const StepResults& results, double near = 1e-5) {
    const Tensor tensor = place(&results, Shape{int64_t{sizeof(results)}}, DType::u8);
    outputs_.push_back({tensor, near, true});
    return tensor;
  }

  struct Output {
    Tensor tensor;
    double near;
    bool doubles = false;  // a block of results
  };
  const std::vector<Output>& outputs() const { return outputs_; }
  std::vector<double> values(const Output& output);

 private:
  Tensor place(const void* data, Shape shape, DType dtype);
  Device& device_;
  Ops* other_ops_ = nullptr;
  std::vector<void*> memory_;
  std::vector<Output> outputs_;
};

struct Case {
  std::string name;
  std::function<void(Runner&)> run;
};

// Numbers of elements at the edges of warps and blocks.
inline constexpr int64_t kSizes[] = {1, 31, 32, 33, 1023, 1024, 1025};

// One a family.
std::vector<Case> image_cases();
std::vector<Case> pointwise_cases();
std::vector<Case> row_cases();
std::vector<Case> table_cases();
std::vector<Case> training_cases();

std::vector<Case> all_cases();

// A wrong call that breaks a rule of check() beyond types, shapes and overlaps, which follow from the cases; and a part of the message.
struct Refusal {
  const char* what;
  std::function<void(Ops&)> call;
  const char* says;
};

std::vector<Refusal> image_refusals();
std::vector<Refusal> pointwise_refusals();
std::vector<Refusal> row_refusals();
std::vector<Refusal> table_refusals();
std::vector<Refusal> training_refusals();

std::vector<Refusal> all_refusals();
// The calls that the case makes, none of them made. The runner owns their tensors.
std::vector<std::shared_ptr<KeptCall>> calls_of(const Case& test, Runner& runner);
// Runs the case on the CPU and on `device` and compares. `slack`: factor on the tolerances.
void compare_with_cpu(const Case& test, Device& device, double slack = 1);

// A StepScalars as in the middle of a run.
inline StepScalars some_scalars() {
  StepScalars s;
  s.seed = 11;
  s.step = 6;
  s.optimizer_step = 5;
  s.learning_rate[0] = 1e-3, s.learning_rate[1] = 2e-3, s.learning_rate[2] = 3e-3;
  s.weight_decay = 0.01;
  return s;
}

// Both float types of a case written for one.
template <class F>
void add_case(std::vector<Case>& cases, const std::string& name, const F& run) {
  cases.push_back({name + "_f32", [run](Runner& r) { run(r, float{}); }});
  cases.push_back({name + "_f64", [run](Runner& r) { run(r, double{}); }});
}

}  // namespace comera::test
