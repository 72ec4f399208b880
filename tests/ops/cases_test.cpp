// What the table of cases (cases/cases.h) shows of every op without a GPU; tests/gpu compares the cases on GPUs.
#include "tests/ops/cases/cases.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/ops/cases/recording_device.h"

namespace comera::test {
namespace {

// A few calls of every op. Their tensors have two elements at least, but some in lists, and those of ops that have none without such a one.
class CallsOfEachOp {
 public:
  CallsOfEachOp() : device_(open_cpu_device(1)) {
    std::map<std::string, std::vector<std::shared_ptr<KeptCall>>> others;
    for (const Case& test : all_cases()) {
      runners_.push_back(std::make_unique<Runner>(*device_));
      for (const auto& call : calls_of(test, *runners_.back())) {
        if (is_plain(*call, 2) && calls[call->op()].size() < kMost) calls[call->op()].push_back(call);
        if (is_plain(*call, 1) && others[call->op()].size() < kMost) others[call->op()].push_back(call);
      }
    }
    calls.merge(others);  // takes those of ops that are not there
  }
  std::map<std::string, std::vector<std::shared_ptr<KeptCall>>> calls;

 private:
  static constexpr size_t kMost = 4;
  static bool is_plain(KeptCall& call, int64_t least) {
    bool small = false, list = false;
    call.each_tensor([&](const ArgumentTensor& t) {
      small |= t.tensor && t.tensor.count() < least;
      list |= t.item > 0;
    });
    return list || !small;
  }
  const std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<Runner>> runners_;  // they own the tensors
};

const CallsOfEachOp& examples() {
  static const CallsOfEachOp all;
  return all;
}

// The text with which a call is refused; empty: it is not. Nothing is computed.
std::string refusal(const KeptCall& call, bool dry) {
  KeptOps ops([](const auto&) {});
  ops.dry = dry;
  try {
    call.make(ops);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

::testing::AssertionResult is_refused(const KeptCall& call, bool dry, const std::string& says) {
  const std::string text = refusal(call, dry);
  if (text.find(call.name() + std::string(": ")) == std::string::npos)
    return ::testing::AssertionFailure() << call.op() << (text.empty() ? " is not refused" : " is not named: " + text);
  if (text.find(says) == std::string::npos) return ::testing::AssertionFailure() << text;
  return ::testing::AssertionSuccess();
}

// A copy of the call with its tensor number `number` changed.
template <class Change>
std::shared_ptr<KeptCall> changed(const KeptCall& call, size_t number, const Change& change) {
  std::shared_ptr<KeptCall> copy = call.copy();
  size_t at = 0;
  copy->each_tensor([&](const ArgumentTensor& t) {
    if (at++ == number) change(t);
  });
  return copy;
}

std::shared_ptr<KeptCall> without_memory(const KeptCall& call) {
  std::shared_ptr<KeptCall> copy = call.copy();
  copy->each_tensor([](const ArgumentTensor& t) {
    if (t.tensor) t.tensor = Tensor(nullptr, t.tensor.shape(), t.tensor.dtype());
  });
  return copy;
}

// At made-up addresses far from each other; what was at one address still is.
std::shared_ptr<KeptCall> far_apart(const KeptCall& call) {
  std::shared_ptr<KeptCall> copy = call.copy();
  std::map<void*, uintptr_t> places;
  copy->each_tensor([&](const ArgumentTensor& t) {
    if (!t.tensor) return;
    uintptr_t& place = places[t.tensor.raw()];
    if (place == 0) place = uintptr_t{places.size()} << 32;
    t.tensor = Tensor(reinterpret_cast<void*>(place), t.tensor.shape(), t.tensor.dtype());
  });
  return copy;
}

struct Argument {
  Tensor tensor;
  bool whole;  // no columns of a matrix
  Role role;
  int item;
  bool writes() const { return role == Role::out || role == Role::inout || role == Role::in_place; }
};
std::vector<Argument> arguments_of(KeptCall& call) {
  std::vector<Argument> all;
  call.each_tensor([&](const ArgumentTensor& t) {
    all.push_back({t.tensor, !t.mat || (t.mat->offset == 0 && t.mat->ld == t.mat->cols), t.role, t.item});
  });
  return all;
}

TEST(Cases, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Case& test : all_cases()) EXPECT_TRUE(names.insert(test.name).second) << test.name;
}

TEST(Cases, EveryOpHasOne) {
#define COMERA_HAS_CASE(Op) EXPECT_EQ(examples().calls.count(#Op), 1u) << #Op << ": add a row in tests/ops/cases";
  COMERA_OPS(COMERA_HAS_CASE)
#undef COMERA_HAS_CASE
}

TEST(Cases, DryCallsTouchNothingAndCountTheSameWork) {
  for (const auto& [op, calls] : examples().calls)
    for (const auto& call : calls) {
      CpuOps dry(1);
      KeptOps real([](const auto&) {});
      dry.dry = true;
      without_memory(*call)->make(dry);
      call->make(real);
      EXPECT_GT(real.work.other_bytes + real.work.gemm_bytes, 0) << op;
      EXPECT_EQ(dry.work.gemm_flops, real.work.gemm_flops) << op;
      EXPECT_EQ(dry.work.gemm_bytes, real.work.gemm_bytes) << op;
      EXPECT_EQ(dry.work.other_bytes, real.work.other_bytes) << op;
    }
}

TEST(Cases, ADryTensorInARealCallIsRefused) {
  for (const auto& [op, calls] : examples().calls) EXPECT_TRUE(is_refused(*without_memory(*calls[0]), false, "of a dry run")) << op;
}

TEST(Cases, AnotherTypeIsRefused) {
  for (const auto& [op, calls] : examples().calls)
    for (const auto& call : calls) {
      const auto dry = without_memory(*call);
      const std::vector<Argument> arguments = arguments_of(*dry);
      for (size_t i = 0; i < arguments.size(); ++i) {
        const Tensor& t = arguments[i].tensor;
        const bool is_float = t.dtype() == DType::f32 || t.dtype() == DType::f64;
        if (!t || arguments[i].role == Role::step) continue;
        const auto wrong =
            changed(*dry, i, [&](const ArgumentTensor& a) { a.tensor = Tensor(nullptr, t.shape(), is_float ? DType::i32 : DType::f32); });
        EXPECT_TRUE(is_refused(*wrong, true, "")) << op << ", tensor " << i << " " << t.shape().text();
      }
    }
}

// Tensors of any shape: the sizes that must fit them are read on the device, or there are none.
const std::set<std::pair<std::string, size_t>> kAnyShape = {
    {"AdafactorUpdate", 0}, {"AdafactorUpdate", 1}, {"AddPart", 1},        {"ClipGradients", 0}, {"LazyRefresh", 0},
    {"Normal", 0},          {"Orthonormal", 0},     {"RankObjective", 1},  {"SampleRows", 2},    {"ScaleByCeWeight", 0},
    {"SumOfSquares", 1},    {"WeightDecay", 0},     {"WeightGradients", 0}};

TEST(Cases, AnotherShapeIsRefused) {
  for (const auto& [op, calls] : examples().calls)
    for (const auto& call : calls) {
      const auto dry = without_memory(*call);
      const std::vector<Argument> arguments = arguments_of(*dry);
      for (size_t i = 0; i < arguments.size(); ++i) {
        const Tensor& t = arguments[i].tensor;
        if (!t || arguments[i].role == Role::step || kAnyShape.count({op, i}) == 1) continue;
        bool refused = false;  // with one more along some axis: others may be free, such as the rows of a table
        for (int longer = 0; longer < t.shape().rank(); ++longer) {
          Shape shape;
          for (int axis = 0; axis < t.shape().rank(); ++axis) shape.push_back(t.size(axis) + (axis == longer));
          const auto wrong = changed(*dry, i, [&](const ArgumentTensor& a) {
            if (a.mat)
              a.mat->cols = longer == 0 ? a.mat->cols + 1 : a.mat->ld + 1;
            else
              a.tensor = Tensor(nullptr, shape, t.dtype());
          });
          refused = refused || is_refused(*wrong, true, "");
        }
        EXPECT_TRUE(refused) << op << ", tensor " << i << " " << t.shape().text();
      }
    }
}

// Each output at the address of each other tensor of its call: refused, but where an op works in place. A norm whose gradient of y holds a
// product refuses one of those places itself.
TEST(Cases, OutputsThatOverlapAreRefused) {
  for (const auto& [op, calls] : examples().calls)
    for (const auto& near : calls) {
      const auto call = far_apart(*near);
      const std::vector<Argument> arguments = arguments_of(*call);
      for (size_t i = 0; i < arguments.size(); ++i)
        for (size_t j = 0; j < arguments.size(); ++j) {
          const Argument &y = arguments[i], &x = arguments[j];
          if (i == j || !y.writes() || !y.tensor || !x.tensor || y.item != x.item || !y.whole || !x.whole ||
              y.tensor.raw() == x.tensor.raw())
            continue;
          if (x.role == Role::step || y.tensor.count() == 0 || x.tensor.count() == 0) continue;
          const auto at = [&](int64_t offset) {
            return changed(*call, i, [&](const ArgumentTensor& a) {
              a.tensor = Tensor(static_cast<char*>(x.tensor.raw()) + offset, y.tensor.shape(), y.tensor.dtype());
            });
          };
          const std::string why = refusal(*at(0), false);
          if (y.role == Role::in_place && !x.writes() && y.tensor.bytes() == x.tensor.bytes())
            EXPECT_TRUE(why.empty() || is_refused(*at(0), false, "dsum over the sum, with a product"))
                << why << ": " << op << ", tensors " << i << " and " << j;
          else
            EXPECT_TRUE(is_refused(*at(0), false, " overlaps ")) << op << ", tensors " << i << " and " << j;
          if (x.tensor.count() < 2) continue;
          EXPECT_TRUE(is_refused(*at(static_cast<int64_t>(size_of(x.tensor.dtype()))), false, " overlaps "))
              << op << ", tensors " << i << " and " << j;
        }
    }
}

// Kept, moved to the memory of a device and launched later, a call does the same: it names all its tensors.
TEST(Cases, ARecordedCallEqualsTheCpu) {
  for (const Case& test : all_cases()) {
    const auto cpu = open_cpu_device(1);
    RecordingDevice recording;
    Runner expected(*cpu), found(recording);
    for (const auto& call : calls_of(test, expected)) call->make(cpu->ops());
    const auto calls = calls_of(test, found);
    const bool captured = std::none_of(calls.begin(), calls.end(), [](const auto& call) { return call->never_captured(); });
    if (captured) recording.begin_capture();
    for (const auto& call : calls) call->make(recording.ops());
    if (captured) recording.end_capture()->launch();
    for (size_t i = 0; i < expected.outputs().size(); ++i) {
      const std::vector<double> want = expected.values(expected.outputs()[i]), got = found.values(found.outputs()[i]);
      ASSERT_EQ(want.size(), got.size());
      EXPECT_TRUE(want.empty() || std::memcmp(want.data(), got.data(), want.size() * sizeof(double)) == 0) << test.name << ", output " << i;
    }
  }
}

}  // namespace
}  // namespace comera::test
