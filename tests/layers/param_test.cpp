// ParamSet: where parameters lie, what they cost, and that initial values are a function of (seed, name) alone.
#include "core/layers/param.h"

#include "tests/layers/check_layer.h"

namespace comera::layer_test {
namespace {

// Two rank layers, declared with other parameters in between.
struct Model {
  Rig rig;
  explicit Model(DType dtype = DType::f64) : rig(dtype) {
    ParamSet& set = rig.params;
    set.add("w", {5, 3}, ParamKind::weight, ParamGroup::rest, {Init::uniform, 0.5});
    train("a", {3, 5});
    set.add("norm", {7}, ParamKind::norm, ParamGroup::rest, {Init::ones});
    train("b", {1});
    set.add("zero", {2}, ParamKind::bias, ParamGroup::rest, {Init::zeros});
    set.add_state("range", {2, 2}, -1);
  }
  void train(const std::string& name, const std::vector<int64_t>& bonds) {
    RankLayer layer;
    layer.name = name;
    layer.rows = 50;
    layer.columns = 20;
    int64_t before = 1;
    for (size_t k = 0; k <= bonds.size(); ++k) {
      const int64_t after = k < bonds.size() ? bonds[k] : 1;
      layer.cores.push_back(&rig.params.add(name + ".core." + std::to_string(k), {before, 4, after}, ParamKind::tt_core, ParamGroup::core,
                                            {Init::normal, 2}));
      layer.mode_sizes.push_back(4);
      if (k < bonds.size())
        layer.ranks.push_back(
            &rig.params.add(name + ".rank." + std::to_string(k), {after}, ParamKind::rank_vector, ParamGroup::rank, {Init::ones}));
      before = after;
    }
    rig.params.add_rank_layer(std::move(layer));
  }
};

TEST(ParamSet, TakesExactlyWhatItPlans) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    Model model(dtype);
    model.rig.start();  // expects it
    const MemoryByPurpose planned = model.rig.params.planned(dtype);
    const int64_t size = static_cast<int64_t>(size_of(dtype));
    EXPECT_GE(planned[Purpose::rank_vector], 9 * size);
    EXPECT_LT(planned[Purpose::rank_vector], 9 * size + 64);
    EXPECT_GE(planned[Purpose::gradient], model.rig.params.count() * size);
    const MemoryByPurpose held = model.rig.memory.now();
    model.rig.params.release();
    for (size_t i = 0; i < planned.bytes.size(); ++i) EXPECT_EQ(held.bytes[i] - model.rig.memory.now().bytes[i], planned.bytes[i]);
  }
}

TEST(ParamSet, RankVectorsAreOneTensorInTheOrderOfTheLayers) {
  Model model;
  model.rig.start();
  const ParamSet& set = model.rig.params;
  ASSERT_EQ(set.ranks().shape(), (Shape{9}));
  ASSERT_EQ(set.rank_grads().shape(), (Shape{9}));
  int64_t first = 0;
  for (const RankLayer& layer : set.rank_layers())
    for (const Param* rank : layer.ranks) {
      EXPECT_EQ(rank->value.raw(), set.ranks().rows(first, rank->count()).raw()) << rank->name;
      EXPECT_EQ(rank->grad.raw(), set.rank_grads().rows(first, rank->count()).raw()) << rank->name;
      first += rank->count();
    }
  EXPECT_EQ(first, 9);
}

TEST(ParamSet, EverythingElseIsAlignedAndApart) {
  Model model(DType::f32);
  model.rig.start();
  std::vector<std::pair<const char*, const char*>> spans;
  for (const Param& param : model.rig.params.params())
    for (const Tensor* tensor : {&param.value, &param.grad}) {
      const char* begin = static_cast<const char*>(tensor->raw());
      if (param.kind != ParamKind::rank_vector) {
        EXPECT_EQ(reinterpret_cast<uintptr_t>(begin) % 64, 0u) << param.name;
      }
      spans.emplace_back(begin, begin + tensor->bytes());
    }
  std::sort(spans.begin(), spans.end());
  for (size_t i = 0; i + 1 < spans.size(); ++i) EXPECT_LE(spans[i].second, spans[i + 1].first);
}

TEST(ParamSet, DescribesWithoutAddresses) {
  Model model;
  model.rig.params.describe(DType::f32);
  EXPECT_EQ(model.rig.memory.now().total() - model.rig.memory.now()[Purpose::data], 0);
  for (const Param& param : model.rig.params.params()) {
    EXPECT_EQ(param.value.shape(), param.shape);
    EXPECT_EQ(param.value.dtype(), DType::f32);
    EXPECT_EQ(param.value.raw(), nullptr);
    EXPECT_EQ(param.grad.raw(), nullptr);
  }
  EXPECT_EQ(model.rig.params.ranks().count(), 9);
}

TEST(ParamSet, GivesBackAllWhenOnePieceIsTooMuch) {
  struct Small final : Allocator {
    int64_t left = 1 << 12;
    std::vector<std::unique_ptr<char[]>> blocks;
    int64_t live = 0;
    void* allocate(int64_t bytes) override {
      if (bytes > left) throw Error(ErrorCode::memory, "full");
      left -= bytes;
      ++live;
      blocks.push_back(std::make_unique<char[]>(static_cast<size_t>(bytes)));
      return blocks.back().get();
    }
    void release(void*) noexcept override { --live; }
  } small;
  Memory memory(small);
  ParamSet set;
  set.add("w", {400}, ParamKind::weight, ParamGroup::rest, {});  // 3,200 bytes fit, the gradient does not
  EXPECT_THROW(set.allocate(memory, DType::f64), Error);
  EXPECT_EQ(memory.now().total(), 0);
  EXPECT_EQ(small.live, 0);
}

TEST(ParamSet, InitialValuesDependOnSeedAndNameOnly) {
  Model one, two;
  two.rig.params.add("extra", {3}, ParamKind::weight, ParamGroup::rest, {Init::normal, 1});
  one.rig.start(42);
  two.rig.start(42);
  for (const Param& param : one.rig.params.params())
    EXPECT_EQ(one.rig.get(param.value), two.rig.get(two.rig.params.find(param.name)->value)) << param.name;
  EXPECT_NE(one.rig.get(one.rig.params.find("a.core.0")->value), one.rig.get(one.rig.params.find("b.core.0")->value));
  const Values before = one.rig.get(one.rig.params.find("w")->value);
  one.rig.params.initialise(*one.rig.device, 43);
  EXPECT_NE(one.rig.get(one.rig.params.find("w")->value), before);

  EXPECT_EQ(one.rig.get(one.rig.params.find("norm")->value), Values(7, 1.0));
  EXPECT_EQ(one.rig.get(one.rig.params.find("zero")->value), Values(2, 0.0));
  EXPECT_EQ(one.rig.get(one.rig.params.states().front().value), Values(4, -1.0));
}

TEST(ParamSet, FloatsAreTheRoundedDoubles) {
  Model wide(DType::f64), narrow(DType::f32);
  wide.rig.start(9);
  narrow.rig.start(9);
  for (const Param& param : wide.rig.params.params()) {
    Values rounded = wide.rig.get(param.value);
    for (double& value : rounded) value = static_cast<float>(value);
    EXPECT_EQ(narrow.rig.get(narrow.rig.params.find(param.name)->value), rounded) << param.name;
  }
}

TEST(ParamSet, DrawsHaveTheirMoments) {
  Rig rig;
  rig.params.add("n", {100001}, ParamKind::weight, ParamGroup::rest, {Init::normal, 3});
  rig.params.add("u", {100001}, ParamKind::weight, ParamGroup::rest, {Init::uniform, 2});
  rig.start(5);
  const auto moments = [](const Values& values) {
    double sum = 0, squares = 0, fourth = 0;
    for (double value : values) {
      sum += value;
      squares += value * value;
      fourth += value * value * value * value;
    }
    const double n = static_cast<double>(values.size());
    return std::array<double, 3>{sum / n, squares / n, fourth / n};
  };
  const auto normal = moments(rig.get(rig.params.find("n")->value)), uniform = moments(rig.get(rig.params.find("u")->value));
  EXPECT_NEAR(normal[0], 0, 0.04);
  EXPECT_NEAR(normal[1], 9, 0.15);
  EXPECT_NEAR(normal[2], 3 * 81, 10);
  EXPECT_NEAR(uniform[0], 0, 0.02);
  EXPECT_NEAR(uniform[1], 4.0 / 3, 0.02);
  EXPECT_NEAR(uniform[2], 16.0 / 5, 0.08);
  for (double value : rig.get(rig.params.find("u")->value)) ASSERT_LE(std::fabs(value), 2);
}

TEST(ParamSet, CountsAndNames) {
  Model model;
  ParamSet& set = model.rig.params;
  EXPECT_EQ(set.count(), 15 + 7 + 2 + (12 + 60 + 20 + 8) + (4 + 4 + 1));
  EXPECT_EQ(set.dense_equivalent(), 15 + 7 + 2 + 2000);
  EXPECT_EQ(set.find("nobody"), nullptr);
  EXPECT_THROW(set.add("w", {1}, ParamKind::bias, ParamGroup::rest, {}), Error);
}

TEST(HostCopies, RoundTripEveryType) {
  Rig rig;
  const Values values{0, 1, 2, 250};
  for (const DType dtype : {DType::f32, DType::f64, DType::i32, DType::u8}) {
    Buffer buffer(rig.memory, 64, Purpose::data);
    const Tensor tensor(buffer.data(), {4}, dtype);
    from_host(*rig.device, tensor, values);
    EXPECT_EQ(to_host(*rig.device, tensor), values) << name_of(dtype);
    EXPECT_THROW(from_host(*rig.device, tensor, {1, 2}), Error);
  }
}

}  // namespace
}  // namespace comera::layer_test
