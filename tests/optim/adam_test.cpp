// AdamW and 8-bit Adam against references in double, their state's size and its round trips.
#include <cstring>

#include "tests/optim/harness.h"

namespace comera::test {
namespace {

void four_params(ParamSet& params) {
  Param& left = params.add("core", {1, 5, 7}, ParamKind::tt_core, ParamGroup::core, {});
  Param& rank = params.add("rank", {7}, ParamKind::rank_vector, ParamGroup::rank, {});
  Param& right = params.add("core2", {7, 4, 1}, ParamKind::tt_core, ParamGroup::core, {});
  params.add("bias", {9}, ParamKind::bias, ParamGroup::rest, {});
  params.add_rank_layer({"layer", {5, 4}, {5}, {4}, {&left, &right}, {&rank}, 20});
}
constexpr int64_t kCounts = 35 + 7 + 28 + 9;

class AdamAgainstReference : public testing::TestWithParam<std::tuple<DType, AdamFlavour>> {};

TEST_P(AdamAgainstReference, SixSteps) {
  const auto [dtype, flavour] = GetParam();
  Rig rig(dtype);
  const AdamConfig config{0.8, 0.95, 1e-6, 0.3};
  rig.scalars.learning_rate[0] = 0.02;
  rig.scalars.learning_rate[1] = 0.005;
  rig.scalars.weight_decay = config.weight_decay;
  Trainee net(rig, flavour == AdamFlavour::torch ? config.make({}) : Adam8bitConfig{}.make({.adam = config}), four_params);
  for (Param& param : net.params.params()) {
    AdamReference reference{{flavour, config.beta1, config.beta2, config.eps}};
    Values w = to_host(*rig.device, param.value);
    const double rate = rig.scalars.learning_rate[static_cast<int>(param.group)];
    for (uint32_t t = 1; t <= 6; ++t) {
      rig.begin(t);
      const Values g = random_values(param.count(), 100 + t);
      from_host(*rig.device, param.grad, g);
      Ctx ctx = rig.ctx();
      rig.run([&] { net.optimizer->update(ctx, param); });
      reference.step(w, g, rate, config.weight_decay, t);
      EXPECT_LT(largest_difference(to_host(*rig.device, param.value), w), dtype == DType::f64 ? 1e-13 : 2e-6)
          << param.name << " step " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Both, AdamAgainstReference,
                         testing::Combine(testing::Values(DType::f64, DType::f32),
                                          testing::Values(AdamFlavour::torch, AdamFlavour::bitsandbytes)));

// METHODS.md 13 written out: maps, blocks of 256, fresh moments in the update.
struct EightBitReference {
  std::vector<double> map[2];  // unsigned, signed
  Values m, v;
  EightBitReference() {
    for (int is_signed : {0, 1}) {
      std::vector<double>& out = map[is_signed];
      for (int e = 0; e < 7; ++e) {
        const int cells = 1 << (is_signed ? e : e + 1);
        for (int i = 0; i < cells; ++i) {
          const double value = (0.1 + 0.9 * (i + 0.5) / cells) * std::pow(10.0, e - 6);
          out.push_back(value);
          if (is_signed) out.push_back(-value);
        }
      }
      out.push_back(0);
      out.push_back(1);
      std::sort(out.begin(), out.end());
    }
  }
  // Every value through its code and back.
  void quantise(Values& x, bool is_signed) const {
    for (size_t begin = 0; begin < x.size(); begin += 256) {
      const size_t end = std::min(x.size(), begin + 256);
      double absmax = 0;
      for (size_t i = begin; i < end; ++i) absmax = std::max(absmax, std::fabs(x[i]));
      for (size_t i = begin; absmax > 0 && i < end; ++i) {
        double nearest = map[is_signed][0];
        for (double value : map[is_signed])
          if (std::fabs(value - x[i] / absmax) < std::fabs(nearest - x[i] / absmax)) nearest = value;
        x[i] = nearest * absmax;
      }
    }
  }
};

TEST(Adam8bit, FollowsTheReference) {
  Rig rig(DType::f32);
  const AdamConfig config{.eps = 1e-8};
  const int64_t count = 5000;  // the last block is not full
  Trainee net(rig, Adam8bitConfig{}.make({.adam = config}),
              [&](ParamSet& params) { params.add("w", {count}, ParamKind::weight, ParamGroup::rest, {}); });
  EXPECT_EQ(net.state("w", "m8").dtype(), DType::u8);
  EightBitReference quant;
  ASSERT_EQ(quant.map[0].size(), 256u);
  ASSERT_EQ(quant.map[1].size(), 256u);
  AdamReference adam{{AdamFlavour::bitsandbytes, config.beta1, config.beta2, config.eps}};
  Values w = net.value("w");
  for (uint32_t t = 1; t <= 10; ++t) {
    const Values g = random_values(count, 50 + t);
    net.set_grad("w", g);
    net.step(t);
    const Values u = adam.update(g, 0.01, t);
    for (size_t i = 0; i < w.size(); ++i) w[i] += u[i];
    quant.quantise(adam.m, true);
    quant.quantise(adam.v, false);
    // A moment near the middle of two codes may round the other way in float: then its weight is off by a small part of
    // one step; all others agree to float precision.
    const Values ours = net.value("w");
    double sum = 0;
    for (size_t i = 0; i < w.size(); ++i) sum += std::fabs(ours[i] - w[i]);
    EXPECT_LT(sum / static_cast<double>(count), 2e-6) << "step " << t;
    EXPECT_LT(largest_difference(ours, w), 0.005 * t) << "step " << t;
  }
}

TEST(Adam8bit, FirstStepIsTheSignOfTheGradient) {
  Rig rig(DType::f32);
  AdamConfig config;
  config.eps = 0;
  Trainee net(rig, Adam8bitConfig{}.make({.adam = config}), [](ParamSet& params) {
    params.add("w", {64, 80}, ParamKind::weight, ParamGroup::rest, {});
  });
  const Values before = net.value("w"), g = random_values(64 * 80, 9);
  net.set_grad("w", g);
  net.step(1);
  const Values after = net.value("w");
  for (size_t i = 0; i < g.size(); ++i) EXPECT_NEAR(after[i] - before[i], g[i] > 0 ? -0.01 : 0.01, 1e-6);
}

TEST(Adam8bit, SmallTensorsAndTablesStayPlain) {
  Rig rig(DType::f32);
  const auto declare = [](ParamSet& params) {
    params.add("small", {63, 65}, ParamKind::weight, ParamGroup::rest, {});
    params.add("large", {64, 64}, ParamKind::weight, ParamGroup::rest, {});
    params.add("table", {100, 100}, ParamKind::table, ParamGroup::rest, {});
  };
  Trainee net(rig, Adam8bitConfig{}.make({}), declare);
  EXPECT_TRUE(net.state("small", "m"));
  EXPECT_TRUE(net.state("large", "m8"));
  EXPECT_TRUE(net.state("table", "m"));
  Trainee other(rig, Adam8bitConfig{.min_size = 5000, .embeddings = true}.make({}), declare);
  EXPECT_TRUE(other.state("large", "m"));
  EXPECT_TRUE(other.state("table", "m8"));
}

// ---- bytes ------------------------------------------------------------------------------------------------------

struct Bytes {
  int64_t logical = 0, planned = 0;
};

Bytes state_bytes(Optimizer& optimizer, int64_t m, int64_t n) {
  ParamSet params;
  Param& w = params.add("w", {m, n}, ParamKind::weight, ParamGroup::rest, {});
  optimizer.attach(w);
  optimizer.describe(DType::f32);
  Bytes bytes;
  optimizer.states(w, [&](const std::string&, Tensor& state) { bytes.logical += state.bytes(); });
  bytes.planned = optimizer.planned(DType::f32)[Purpose::optimizer];
  return bytes;
}

// METHODS.md 14. Alignment to 64 bytes a state tensor comes on top; here every size is a multiple already.
TEST(StateBytes, WorkedNumbers) {
  GaloreConfig galore;
  galore.rank = 192;
  GaloreConfig galore8 = galore;
  galore8.rule = "adam8bit";
  const std::pair<std::unique_ptr<Optimizer>, int64_t> cases[] = {{AdamConfig{}.make({}), 18'874'368},
                                                                  {Adam8bitConfig{}.make({}), 4'792'320},
                                                                  {galore.make({}), 5'308'416},
                                                                  {galore8.make({}), 1'787'904}};
  for (const auto& [optimizer, expected] : cases) {
    const Bytes bytes = state_bytes(*optimizer, 3072, 768);
    EXPECT_EQ(bytes.logical, expected);
    EXPECT_EQ(bytes.planned, expected);
  }
}

// METHODS.md 14, of each rule inside each projection: 3072 x 768, rank 192.
TEST(StateBytes, OfEveryRuleInAProjection) {
  constexpr int64_t m = 3072, n = 768, r = 192, entries = r * m, codes = entries + 4 * entries / 256, basis = 4 * r * n;
  constexpr int64_t vectors = 4 * (m + r), first = 4 * entries;
  const AdafactorConfig with_first{.beta1 = 0.9};
  const auto galore = [&](const char* rule, const char* side, const AdafactorConfig& adafactor) {
    GaloreConfig config;
    config.rank = r;
    config.rule = rule;
    config.side = side;
    return config.make({.adafactor = adafactor});
  };
  const auto coap = [&](const char* rule, const AdafactorConfig& adafactor) {
    CoapConfig config;
    config.rank = r;
    config.rule = rule;
    return config.make({.adafactor = adafactor});
  };
  const std::pair<std::unique_ptr<Optimizer>, int64_t> cases[] = {
      {galore("adam", "shorter", {}), 2 * first + basis},
      {galore("adam8bit", "shorter", {}), 2 * codes + basis},
      {galore("adafactor", "shorter", {}), vectors + basis},
      {galore("adafactor", "shorter", with_first), vectors + first + basis},
      {galore("adam", "longer", {}), 4 * (2 * r * n + r * m)},
      {galore("adam", "left", {}), 4 * (2 * r * n + r * m)},
      {galore("adam", "right", {}), 2 * first + basis},
      {galore("adam", "both", {}), 4 * (2 * r * r + r * (m + n))},
      {coap("adam", {}), 2 * first + basis},
      {coap("adam8bit", {}), 2 * codes + basis},
      {coap("adafactor", {}), vectors + basis},
      {coap("adafactor", with_first), vectors + first + basis},
      {coap("adafactor8bit", with_first), vectors + codes + basis},
  };
  for (const auto& [optimizer, expected] : cases) {
    const Bytes bytes = state_bytes(*optimizer, m, n);
    EXPECT_EQ(bytes.logical, expected) << &optimizer - &cases[0].first;
    EXPECT_EQ(bytes.planned, expected);
  }
}

TEST(StateBytes, SidesAreSymmetric) {
  GaloreConfig galore;
  galore.rank = 192;
  const auto a = galore.make({}), b = galore.make({});
  EXPECT_EQ(state_bytes(*a, 3072, 768).logical, state_bytes(*b, 768, 3072).logical);
}

TEST(StateBytes, PaddingIsPlannedAndTaken) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Rig rig(dtype);
    Trainee net(rig, AdamConfig{}.make({}), four_params);
    int64_t logical = 0;
    for (Param& param : net.params.params())
      net.optimizer->states(param, [&](const std::string&, Tensor& state) {
        logical += state.bytes();
        EXPECT_EQ(reinterpret_cast<uintptr_t>(state.raw()) % 64, 0u);
        for (double value : to_host(*rig.device, state)) EXPECT_EQ(value, 0);
      });
    EXPECT_EQ(logical, 2 * kCounts * static_cast<int64_t>(size_of(dtype)));
    const int64_t planned = net.optimizer->planned(dtype)[Purpose::optimizer];
    EXPECT_EQ(planned, rig.memory.now()[Purpose::optimizer]);
    EXPECT_GT(planned, logical);
    EXPECT_LT(planned, logical + 8 * 64);
    net.optimizer->release();
    EXPECT_EQ(rig.memory.now()[Purpose::optimizer], 0);
  }
}

// The CPU, but for what new memory holds: something.
class UsedMemory final : public Device {
 public:
  std::string name() const override { return device_->name(); }
  Ops& ops() override { return device_->ops(); }
  void* allocate(int64_t bytes) override { return std::memset(device_->allocate(bytes), 0x5a, static_cast<size_t>(bytes)); }
  void release(void* data) noexcept override { device_->release(data); }
  void upload(void* to, const void* from, int64_t bytes) override { device_->upload(to, from, bytes); }
  void download(void* to, const void* from, int64_t bytes) override { device_->download(to, from, bytes); }
  void synchronize() override { device_->synchronize(); }

 private:
  const std::unique_ptr<Device> device_ = open_cpu_device(1);
};

// Some MiB: the state is cleared in pieces of one.
TEST(StateBytes, AllOfALargeStateBeginsAtZero) {
  UsedMemory device;
  Memory memory(device);
  ParamSet params;
  params.add("w", {1100, 500}, ParamKind::weight, ParamGroup::rest, {});
  params.add("bias", {9}, ParamKind::bias, ParamGroup::rest, {});
  for (const auto& make : {+[] { return AdamConfig{}.make({}); }, +[] { return Adam8bitConfig{}.make({}); }}) {
    const std::unique_ptr<Optimizer> optimizer = make();
    for (Param& param : params.params()) optimizer->attach(param);
    optimizer->allocate(device, memory, DType::f32);
    EXPECT_GT(memory.now()[Purpose::optimizer], 1 << 20);
    for (Param& param : params.params())
      optimizer->states(param, [&](const std::string& name, Tensor& state) {
        const Values values = to_host(device, state);
        EXPECT_EQ(std::count(values.begin(), values.end(), 0.0), state.count()) << name << " of " << param.name;
      });
    optimizer->release();
  }
}

// ---- capture and restore ----------------------------------------------------------------------------------------

TEST(Capture, PlainMomentsComeBackBitForBit) {
  Rig rig(DType::f32);
  Trainee net(rig, AdamConfig{}.make({}), four_params);
  for (uint32_t t = 1; t <= 3; ++t) {
    for (Param& param : net.params.params()) net.set_grad(param.name, random_values(param.count(), t));
    net.step(t);
  }
  Ctx ctx = rig.ctx();
  Param& core = *net.params.find("core");
  const auto saved = net.optimizer->capture(*rig.device, ctx, core);
  ASSERT_EQ(saved.size(), 2u);
  EXPECT_EQ(by_name(saved).at("m"), to_host(*rig.device, net.state("core", "m")));
  net.optimizer->release();
  net.optimizer->allocate(*rig.device, rig.memory, rig.dtype);
  EXPECT_EQ(to_host(*rig.device, net.state("core", "v")), Values(35, 0.0));
  net.optimizer->restore(*rig.device, ctx, core, saved);
  EXPECT_EQ(by_name(saved), by_name(net.optimizer->capture(*rig.device, ctx, core)));
}

TEST(Capture, EightBitMomentsComeBackToMapResolution) {
  Rig rig(DType::f32);
  Trainee net(rig, Adam8bitConfig{}.make({}), [](ParamSet& params) { params.add("w", {70, 80}, ParamKind::weight, ParamGroup::rest, {}); });
  net.set_grad("w", random_values(5600, 3));
  net.step(1);
  Ctx ctx = rig.ctx();
  Param& w = *net.params.find("w");
  const auto saved = net.optimizer->capture(*rig.device, ctx, w);
  ASSERT_EQ(saved.size(), 2u);
  ASSERT_EQ(saved[0].values.size(), 5600u);
  // Smaller than min_size after a cut: the same numbers, kept as plain moments.
  w.shape = {50, 80};
  net.optimizer->release();
  net.optimizer->attach(w);
  net.optimizer->allocate(*rig.device, rig.memory, rig.dtype);
  std::vector<StateNumbers> cut = saved;
  for (StateNumbers& state : cut) state.values.resize(4000);
  net.optimizer->restore(*rig.device, ctx, w, cut);
  EXPECT_TRUE(net.state("w", "m"));
  EXPECT_EQ(by_name(cut), by_name(net.optimizer->capture(*rig.device, ctx, w)));
  // The same size: a block whose extreme is negative loses 0.7 % at its extreme, nothing else moves.
  w.shape = {70, 80};
  net.optimizer->release();
  net.optimizer->attach(w);
  net.optimizer->allocate(*rig.device, rig.memory, rig.dtype);
  net.optimizer->restore(*rig.device, ctx, w, saved);
  const auto again = net.optimizer->capture(*rig.device, ctx, w);
  for (size_t i = 0; i < 5600; ++i) {
    EXPECT_NEAR(again[0].values[i], saved[0].values[i], 0.008 * 0.4);  // |m| <= 0.1 |g|, |g| < 4
    EXPECT_NEAR(again[1].values[i], saved[1].values[i], 1e-6);
  }
}

TEST(Capture, AWrongShapeIsOurBug) {
  Rig rig;
  Trainee net(rig, AdamConfig{}.make({}), four_params);
  Ctx ctx = rig.ctx();
  Param& core = *net.params.find("core");
  const auto states = [](const std::vector<std::pair<const char*, size_t>>& all) {
    std::vector<StateNumbers> out;
    for (const auto& [name, count] : all) out.push_back({{.name = name, .shape = {}}, Values(count)});
    return out;
  };
  EXPECT_NO_THROW(net.optimizer->restore(*rig.device, ctx, core, states({{"v", 35}, {"m", 35}}))) << "in any order";
  EXPECT_THROW(net.optimizer->restore(*rig.device, ctx, core, states({{"m", 3}, {"v", 3}})), Error);
  EXPECT_THROW(net.optimizer->restore(*rig.device, ctx, core, states({{"m", 35}})), Error) << "one is missing";
  EXPECT_THROW(net.optimizer->restore(*rig.device, ctx, core, states({{"m", 35}, {"v", 35}, {"row", 35}})), Error) << "one too many";
}

// A frozen parameter has no state, no refresh and no step, not even decay.
TEST(Frozen, ParametersStay) {
  for (const auto& make : {+[] { return AdamConfig{}.make({}); }, +[] { return Adam8bitConfig{.min_size = 1}.make({}); },
                           +[] { return GaloreConfig{.rank = 2, .gap = 1}.make({}); }, +[] { return AdafactorConfig{}.make({}); }}) {
    Rig rig(DType::f32);
    rig.scalars.weight_decay = 0.1;
    Trainee net(rig, make(), [](ParamSet& params) {
      params.add("frozen", {6, 5}, ParamKind::weight, ParamGroup::rest, {}).trainable = false;
      params.add("trained", {6, 5}, ParamKind::weight, ParamGroup::rest, {});
    });
    const Values frozen = net.value("frozen"), trained = net.value("trained");
    for (uint64_t t = 1; t <= 3; ++t) {
      net.set_grad("trained", random_values(30, 40 + static_cast<uint32_t>(t)));
      net.step(t);
    }
    EXPECT_EQ(net.value("frozen"), frozen);
    EXPECT_NE(net.value("trained"), trained);
    net.optimizer->states(*net.params.find("frozen"), [](const std::string& key, Tensor&) { ADD_FAILURE() << key; });
    EXPECT_FALSE(net.params.find("frozen")->grad);
  }
}

}  // namespace
}  // namespace comera::test
