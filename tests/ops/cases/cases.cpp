#include "tests/ops/cases/cases.h"

#include <cmath>

namespace comera::test {

Runner::~Runner() {
  for (void* memory : memory_) device_.release(memory);
}

Tensor Runner::place(const void* data, Shape shape, DType dtype) {
  Tensor tensor(nullptr, shape, dtype);
  memory_.push_back(device_.allocate(std::max<int64_t>(tensor.bytes(), 1)));
  device_.upload(memory_.back(), data, tensor.bytes());
  return Tensor(memory_.back(), shape, dtype);
}

std::vector<double> Runner::values(const Output& output) {
  const Tensor& t = output.tensor;
  std::vector<char> bytes(static_cast<size_t>(t.bytes()));
  device_.download(bytes.data(), t.raw(), t.bytes());
  device_.synchronize();
  std::vector<double> out;
  const auto read = [&](auto type) {
    using T = decltype(type);
    const T* from = reinterpret_cast<const T*>(bytes.data());
    out.assign(from, from + bytes.size() / sizeof(T));
  };
  if (t.dtype() == DType::f64 || output.doubles)
    read(double{});
  else if (t.dtype() == DType::f32)
    read(float{});
  else if (t.dtype() == DType::i32)
    read(int{});
  else if (t.dtype() == DType::bf16)
    read(static_cast<unsigned short>(0));
  else
    read(static_cast<unsigned char>(0));
  return out;
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& family : {image_cases(), pointwise_cases(), row_cases(), table_cases(), training_cases()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

std::vector<Refusal> all_refusals() {
  std::vector<Refusal> all;
  for (const auto& family : {image_refusals(), pointwise_refusals(), row_refusals(), table_refusals(), training_refusals()})
    all.insert(all.end(), family.begin(), family.end());
  return all;
}

std::vector<std::shared_ptr<KeptCall>> calls_of(const Case& test, Runner& runner) {
  std::vector<std::shared_ptr<KeptCall>> calls;
  KeptOps ops([&](std::shared_ptr<KeptCall> call) { calls.push_back(std::move(call)); });
  runner.use(&ops);
  test.run(runner);
  runner.use(nullptr);
  return calls;
}

void compare_with_cpu(const Case& test, Device& device, double slack) {
  SCOPED_TRACE(test.name + " on " + device.name());
  const auto cpu = open_cpu_device(1);
  Runner expected(*cpu), found(device);
  test.run(expected);
  test.run(found);
  ASSERT_EQ(expected.outputs().size(), found.outputs().size());
  ASSERT_FALSE(expected.outputs().empty());
  for (size_t i = 0; i < expected.outputs().size(); ++i) {
    const std::vector<double> want = expected.values(expected.outputs()[i]), got = found.values(found.outputs()[i]);
    const bool bytes = expected.outputs()[i].tensor.dtype() == DType::u8 && !expected.outputs()[i].doubles;
    const double near = expected.outputs()[i].near * (bytes ? 1 : slack);
    ASSERT_EQ(want.size(), got.size());
    for (size_t j = 0; j < want.size(); ++j) {
      const bool same = std::isnan(want[j]) || std::isinf(want[j])
                            ? std::isnan(want[j]) == std::isnan(got[j]) && !std::isfinite(got[j])
                            : std::abs(want[j] - got[j]) <= near * (bytes ? 1 : std::max(1.0, std::abs(want[j])));
      ASSERT_TRUE(same) << "output " << i << " " << expected.outputs()[i].tensor.shape().text() << ", element " << j << ": CPU " << want[j]
                        << ", here " << got[j];
    }
  }
}

}  // namespace comera::test
