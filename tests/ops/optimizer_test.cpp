// Adam's three flavours against the formulas as published, and their identities.
#include "tests/ops/host.h"

namespace comera::test {
namespace {

template <class T>
class Adam : public ::testing::Test {};
TYPED_TEST_SUITE(Adam, FloatTypes);

constexpr AdamFlavour kFlavours[] = {AdamFlavour::torch, AdamFlavour::huggingface, AdamFlavour::bitsandbytes};

StepScalars scalars(uint64_t t, double rate, double decay = 0) {
  StepScalars step;
  step.optimizer_step = t;
  for (double& r : step.learning_rate) r = rate;
  step.weight_decay = decay;
  return step;
}

// One element, written as in METHODS.md 0.2.
struct Reference {
  double w, m = 0, v = 0;
  void step(AdamRule rule, double g, double t, double eta, double lam) {
    m = rule.beta1 * m + (1 - rule.beta1) * g;
    v = rule.beta2 * v + (1 - rule.beta2) * g * g;
    const double c1 = 1 - std::pow(rule.beta1, t), c2 = 1 - std::pow(rule.beta2, t);
    switch (rule.flavour) {
      case AdamFlavour::torch:
        w -= eta * lam * w;
        w -= eta / c1 * m / (std::sqrt(v) / std::sqrt(c2) + rule.eps);
        break;
      case AdamFlavour::huggingface:
        w -= eta * std::sqrt(c2) / c1 * m / (std::sqrt(v) + rule.eps);
        w -= eta * lam * w;
        break;
      case AdamFlavour::bitsandbytes:
        w -= eta * std::sqrt(c2) / c1 * m / (std::sqrt(v) + rule.eps * std::sqrt(c2));
        w *= 1 - eta * lam;
        break;
    }
  }
};

TYPED_TEST(Adam, FollowsThePublishedFormulas) {
  using T = TypeParam;
  CpuOps ops(2);
  const int64_t count = 40001;
  for (AdamFlavour flavour : kFlavours) {
    const AdamRule rule{flavour, 0.9, 0.999, 1e-2};  // an eps that is seen
    auto w = uniform<T>({count}, 1);
    Array<T> m({count}), v({count});
    std::vector<Reference> reference;
    for (T value : w.v) reference.push_back({static_cast<double>(value)});
    for (uint64_t t = 1; t <= 5; ++t) {
      const auto g = uniform<T>({count}, 10 + static_cast<uint32_t>(t));
      StepScalars step = scalars(t, 0.01, 0.1);
      ops.adam(w, g, m, v, rule, ParamGroup::core, block_tensor(step));
      for (int64_t i = 0; i < count; ++i)
        reference[static_cast<size_t>(i)].step(rule, static_cast<double>(g[i]), static_cast<double>(t), 0.01, 0.1);
    }
    double worst = 0;
    for (int64_t i = 0; i < count; ++i) worst = std::max(worst, std::abs(static_cast<double>(w[i]) - reference[static_cast<size_t>(i)].w));
    EXPECT_LT(worst, tolerance<T>(1e-6, 1e-14)) << static_cast<int>(flavour);
  }
}

TYPED_TEST(Adam, FirstUpdateIsTheSignOfTheGradient) {
  using T = TypeParam;
  CpuOps ops(1);
  const Array<T> g({4}, {T(3), T(-1e-3), T(40), T(-0.5)});
  for (AdamFlavour flavour : kFlavours) {
    Array<T> u({4}), m({4}), v({4});
    StepScalars step = scalars(1, 0.25, 0.3);
    ops.adam_update(u, g, m, v, {flavour, 0.9, 0.999, 0}, ParamGroup::core, block_tensor(step));
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(u[i], g[i] > 0 ? -0.25 : 0.25, tolerance<T>(1e-6, 1e-14));
  }
}

TYPED_TEST(Adam, TorchAndBitsandbytesAgreeWithoutDecay) {
  using T = TypeParam;
  CpuOps ops(1);
  Array<T> w[2], m[2], v[2];
  for (int k = 0; k < 2; ++k) {
    w[k] = uniform<T>({100}, 1);
    m[k] = v[k] = Array<T>({100});
    for (uint64_t t = 1; t <= 3; ++t) {
      StepScalars step = scalars(t, 0.1);
      ops.adam(w[k], uniform<T>({100}, static_cast<uint32_t>(t)), m[k], v[k], {k ? AdamFlavour::torch : AdamFlavour::bitsandbytes},
               ParamGroup::core, block_tensor(step));
    }
  }
  EXPECT_TRUE(same_bits(w[0], w[1]));
}

TYPED_TEST(Adam, UpdateIsTheStepWithoutDecay) {
  using T = TypeParam;
  CpuOps ops(1);
  for (AdamFlavour flavour : kFlavours) {
    const auto start = uniform<T>({50}, 1), g = uniform<T>({50}, 2);
    Array<T> w = start, u({50}), m({50}), v({50}), m2({50}), v2({50});
    StepScalars step = scalars(1, 0.01);
    ops.adam(w, g, m, v, {flavour}, ParamGroup::core, block_tensor(step));
    ops.adam_update(u, g, m2, v2, {flavour}, ParamGroup::core, block_tensor(step));
    EXPECT_TRUE(same_bits(m, m2) && same_bits(v, v2));
    for (int i = 0; i < 50; ++i) EXPECT_NEAR(w[i], start[i] + u[i], tolerance<T>(1e-7, 1e-15));
  }
}

TYPED_TEST(Adam, GroupsHaveTheirOwnRate) {
  using T = TypeParam;
  CpuOps ops(1);
  StepScalars step = scalars(1, 0, 0.5);
  step.learning_rate[0] = 0.1;
  step.learning_rate[1] = 0.2;
  step.learning_rate[2] = 0.4;
  for (int group = 0; group < 3; ++group) {
    Array<T> w({3}, T(2));
    ops.weight_decay(w, static_cast<ParamGroup>(group), block_tensor(step));
    EXPECT_NEAR(w[1], 2 * (1 - 0.5 * step.learning_rate[group]), 1e-6);
    Array<T> u({3}), m({3}), v({3});
    ops.adam_update(u, Array<T>({3}, T(1)), m, v, {}, static_cast<ParamGroup>(group), block_tensor(step));
    EXPECT_NEAR(u[0], -step.learning_rate[group], 1e-6);
  }
}

TYPED_TEST(Adam, SameBitsForAnyThreadCount) {
  using T = TypeParam;
  const auto g = uniform<T>({100003}, 2);
  StepScalars step = scalars(3, 0.01, 0.1);
  Array<T> w1 = uniform<T>({100003}, 1), m1({100003}), v1({100003});
  CpuOps one(1);
  one.adam(w1, g, m1, v1, {}, ParamGroup::core, block_tensor(step));
  for (int threads : {2, 3}) {
    CpuOps ops(threads);
    Array<T> w = uniform<T>({100003}, 1), m({100003}), v({100003});
    ops.adam(w, g, m, v, {}, ParamGroup::core, block_tensor(step));
    EXPECT_TRUE(same_bits(w, w1) && same_bits(m, m1) && same_bits(v, v1)) << threads;
  }
}

// Tensors of a list: of every size around a thread's share, of all groups, one of them empty.
constexpr int64_t kListed[] = {5, 0, 1, 16383, 16385, 255, 256, 257, 40000, 3, 4096};

template <class T>
struct Listed {
  std::vector<Array<T>> w, g, m, v;
  std::vector<Array<unsigned char>> m8, v8;
  std::vector<Array<float>> max_m, max_v;
  Listed() {
    uint32_t seed = 0;
    for (const int64_t count : kListed) {
      w.push_back(uniform<T>({count}, ++seed));
      g.push_back(uniform<T>({count}, ++seed));
      m.push_back(uniform<T>({count}, ++seed));
      v.push_back(uniform<T>({count}, ++seed, 0, 1));
      m8.emplace_back(Shape{count}, static_cast<unsigned char>(100));
      v8.emplace_back(Shape{count}, static_cast<unsigned char>(90));
      max_m.emplace_back(Shape{(count + 255) / 256}, 0.5f);
      max_v.emplace_back(Shape{(count + 255) / 256}, 0.25f);
    }
  }
  static ParamGroup group(size_t i) { return static_cast<ParamGroup>(i % 3); }
};

TYPED_TEST(Adam, AListIsEachOfItsTensorsBitForBit) {
  using T = TypeParam;
  StepScalars step = scalars(3, 0.01, 0.1);
  step.learning_rate[1] = 0.02;
  step.learning_rate[2] = 0.03;
  for (const AdamFlavour flavour : kFlavours)
    for (const int threads : {1, 2, 3}) {
      const AdamRule rule{flavour};
      CpuOps ops(threads);
      Listed<T> one, list;
      std::vector<AdamTensors> all;
      std::vector<Adam8bitTensors> all8;
      for (size_t i = 0; i < list.w.size(); ++i) {
        ops.adam(one.w[i], one.g[i], one.m[i], one.v[i], rule, one.group(i), block_tensor(step));
        ops.adam8bit(one.w[i], one.g[i], one.m8[i], one.v8[i], one.max_m[i], one.max_v[i], rule, one.group(i), block_tensor(step));
        all.push_back({list.w[i], list.g[i], list.m[i], list.v[i], list.group(i)});
        all8.push_back({list.w[i], list.g[i], list.m8[i], list.v8[i], list.max_m[i], list.max_v[i], list.group(i)});
      }
      ops.adam(all, rule, block_tensor(step));
      ops.adam8bit(all8, rule, block_tensor(step));
      for (size_t i = 0; i < list.w.size(); ++i) {
        EXPECT_TRUE(same_bits(one.w[i], list.w[i]) && same_bits(one.m[i], list.m[i]) && same_bits(one.v[i], list.v[i])) << i;
        EXPECT_TRUE(one.m8[i].v == list.m8[i].v && one.v8[i].v == list.v8[i].v) << i;
        EXPECT_TRUE(one.max_m[i].v == list.max_m[i].v && one.max_v[i].v == list.max_v[i].v) << i;
      }
    }
}

TEST(AdamTime, StepZeroIsRefused) {
  CpuOps ops(1);
  Array<float> w({2}), m({2}), v({2});
  StepScalars step = scalars(0, 0.1);
  EXPECT_THROW(ops.adam(w, w, m, v, {}, ParamGroup::core, block_tensor(step)), Error);
}

}  // namespace
}  // namespace comera::test
