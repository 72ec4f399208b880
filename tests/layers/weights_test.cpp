// Weights in bf16 and int8: rounding at random has the right mean, and keeps steps that rounding to nearest would drop.
#include "core/layers/weights.h"

#include "core/ops/small_floats.h"
#include "tests/optim/harness.h"

namespace comera::test {
namespace {

TEST(Bf16AtRandom, IsOneOfTheTwoNeighbours) {
  for (const float x : {1.0f, 1.001f, -3.3f, 1e-30f, -0.0f, 6e4f, 1.17e-38f, 1e-41f}) {
    const uint16_t nearest = bf16_of(x);
    bool exact = from_bf16(nearest) == x;
    for (const uint32_t word : {0u, 1u << 16, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
      const float rounded = from_bf16(bf16_at_random(x, word));
      const float down = from_bf16(bf16_at_random(x, 0)), up = from_bf16(bf16_at_random(x, 0xffffffffu));
      EXPECT_TRUE(rounded == down || rounded == up) << x << " by " << word;
      EXPECT_LE(std::fabs(down), std::fabs(x));
      EXPECT_GE(std::fabs(up), std::fabs(x));
      if (exact) {
        EXPECT_EQ(rounded, x);
      }
    }
  }
  EXPECT_TRUE(std::isnan(from_bf16(bf16_at_random(NAN, 5))));
  EXPECT_EQ(from_bf16(bf16_at_random(INFINITY, 0xffffffffu)), INFINITY);
}

struct Coded {
  explicit Coded(int64_t count, WeightFormat format = WeightFormat::bf16) : rig(DType::f32) {
    Param& made = params.add("w", {count, 1}, ParamKind::weight, ParamGroup::rest, {});
    made.format = format;
    params.allocate(rig.memory, DType::f32);
    param = params.find("w");
  }
  // Stores what `change` makes of the numbers, by the words of step t.
  void step(uint64_t t, const std::function<void(Ops&, const Tensor&)>& change) {
    rig.begin(t);
    Ctx ctx = rig.ctx();
    rig.run([&] {
      const Tensor numbers = numbers_of(ctx, *param);
      change(ctx.ops, numbers);
      keep_numbers(ctx, *param, numbers);
    });
  }
  Values values() { return to_host(*rig.device, *param); }

  Rig rig;
  ParamSet params;
  Param* param = nullptr;
};

TEST(StoredWeights, TakeTwoBytesAnEntry) {
  Coded coded(1000);
  EXPECT_EQ(coded.param->value.bytes(), 2000);
  EXPECT_EQ(coded.param->value.dtype(), DType::bf16);
}

// 4,000 entries at 1 + 0.3 of the distance to the next: the mean of a binomial, within five standard deviations.
TEST(StoredWeights, AreRightInTheMean) {
  constexpr int64_t kCount = 4000;
  constexpr double kGap = 1.0 / 128, kShare = 0.3;
  Coded coded(kCount);
  coded.step(1, [](Ops& ops, const Tensor& w) { ops.fill(w, 1 + kShare * kGap); });
  double up = 0;
  for (const double value : coded.values()) {
    EXPECT_TRUE(value == 1 || value == 1 + kGap) << value;
    up += value > 1 ? 1 : 0;
  }
  EXPECT_NEAR(up / kCount, kShare, 5 * std::sqrt(kShare * (1 - kShare) / kCount));
}

// Steps of a hundredth of the distance: rounded to nearest, 200 of them would leave 1. The mean of 20,000 entries has a standard deviation
// of about 1e-4.
TEST(StoredWeights, SmallStepsCount) {
  constexpr double kGap = 1.0 / 128, kStep = kGap / 100;
  constexpr int64_t kCount = 20'000;
  Coded coded(kCount);
  coded.step(1, [](Ops& ops, const Tensor& w) { ops.fill(w, 1); });
  EXPECT_EQ(from_bf16(bf16_of(static_cast<float>(1 + kStep))), 1);
  for (uint64_t t = 2; t <= 201; ++t) coded.step(t, [](Ops& ops, const Tensor& w) { ops.scale(w, w, 1 + kStep); });
  double mean = 0;
  for (const double value : coded.values()) mean += value / kCount;
  EXPECT_NEAR(mean, std::pow(1 + kStep, 200), 5e-4);
}

TEST(StoredWeights, InInt8TakeAByteAnEntryAndTwoNumbersAGroup) {
  ParamSet params;
  params.add("w", {30, 50}, ParamKind::weight, ParamGroup::rest, {}).format = WeightFormat::int8;
  for (const auto& [dtype, bytes] : {std::pair{DType::f32, 1536 + 2 * 64}, {DType::f64, 1536 + 2 * 64}}) {  // 6 groups; each aligned to 64
    EXPECT_EQ(params.planned(dtype)[Purpose::dense_weight], bytes);
    params.describe(dtype);
    EXPECT_EQ(params.find("w")->value.bytes(), 1500);
    EXPECT_EQ(params.find("w")->scale.shape(), (Shape{6}));
    EXPECT_EQ(params.find("w")->zero.dtype(), dtype);
  }
}

// The host codes initial values as the device codes those of a step that changes nothing.
TEST(StoredWeights, InInt8GoToTheHostAndBack) {
  Coded coded(1000, WeightFormat::int8);
  const Values numbers = random_values(1000, 3, 0.02);
  from_host(*coded.rig.device, *coded.param, numbers);
  const Values first = coded.values(), codes = to_host(*coded.rig.device, coded.param->value),
               scale = to_host(*coded.rig.device, coded.param->scale);
  for (size_t i = 0; i < numbers.size(); ++i) EXPECT_LE(std::fabs(first[i] - numbers[i]), 0.5001 * scale[i / 256]) << i;
  coded.step(1, [](Ops&, const Tensor&) {});
  EXPECT_EQ(to_host(*coded.rig.device, coded.param->value), codes);
}

// Entry 0 of a group sets its range to 0..2; the others move by a hundredth of the distance between two codes, 200 times.
TEST(StoredWeights, InInt8SmallStepsCount) {
  constexpr double kGap = 2.0 / 255, kStep = kGap / 100;
  constexpr size_t kCount = 20'480, kGroup = 256;
  Coded coded(kCount, WeightFormat::int8);
  Values start(kCount, 100 * kGap), change(kCount, kStep);
  for (size_t i = 0; i < kCount; i += kGroup) start[i] = 2, change[i] = 0;
  from_host(*coded.rig.device, *coded.param, start);
  const Buffer memory(coded.rig.memory, static_cast<int64_t>(kCount * sizeof(float)), Purpose::data);
  const Tensor step(memory.data(), coded.param->shape, DType::f32);
  from_host(*coded.rig.device, step, change);
  for (uint64_t t = 1; t <= 200; ++t) coded.step(t, [&](Ops& ops, const Tensor& w) { ops.add(w, w, step); });
  const Values values = coded.values();
  double mean = 0;
  for (size_t i = 0; i < kCount; ++i) mean += i % kGroup ? values[i] / static_cast<double>(kCount - kCount / kGroup) : 0;
  // A step's rounding has a standard deviation of 0.1 gaps: that of the mean of 20,400 entries after 200 steps is 0.01 gaps.
  EXPECT_NEAR(mean, 102 * kGap, 0.05 * kGap);
}

}  // namespace
}  // namespace comera::test
