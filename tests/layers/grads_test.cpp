// Gradients that layers hand over: kept, summed over passes, given away, of frozen parameters and of those used twice.
#include "core/layers/grads.h"

#include <map>

#include "core/layers/blocks.h"
#include "core/layers/tt_linear.h"
#include "tests/layers/check_layer.h"

namespace comera::layer_test {
namespace {

class Collector final : public GradTaker {
 public:
  explicit Collector(Rig& rig) : rig_(rig) {}
  void take(Ctx& ctx, Param& param, const Tensor& grad) override {
    if (ctx.ops.dry) return;
    EXPECT_TRUE(taken.emplace(param.name, rig_.get(grad)).second) << param.name << " twice";
  }
  void add_projected(Ctx& ctx, Param& param, const Tensor& grad) override {  // twice the first entries
    ctx.ops.run(op::Axpy{param.grad, 2, Tensor(grad.raw(), param.projected, grad.dtype())});
  }
  std::map<std::string, Values> taken;

 private:
  Rig& rig_;
};

// A table, a block with attention, and a feed-forward chain: every layer that has parameters.
struct Net {
  Net(bool tt, GradWay way, TTOrder order = TTOrder::cheaper) : rig(DType::f64, make_exact_stash()) {
    LayerFactory factory(rig.params, *rig.stash, tt ? WeightForms{make_tt_form(kinds)} : WeightForms());
    table = factory.embedding("table", 30, 12);
    auto inner = std::make_unique<Chain>();
    inner->add(factory.linear("f.in", 12, 24, LinearKind::ffn_in));
    inner->add(std::make_unique<ActivationLayer>(Activation::gelu, "f.gelu", 24, factory));
    inner->add(factory.linear("f.out", 24, 12, LinearKind::ffn_out));
    blocks.add(std::make_unique<ResidualNorm>("a", std::make_unique<SelfAttention>("a", 12, 3, 0, true, factory), 12, 1e-9, 0.1, factory));
    blocks.add(std::make_unique<ResidualNorm>("f", std::move(inner), 12, 1e-9, 0.1, factory));
    if (tt) {
      std::vector<Problem> problems;
      blocks.add(
          std::make_unique<TTLinear>("last", linear_shape(12, 10, kinds.ffn_in, "last", problems), LinearKind::ffn_in, factory, order));
    }
    for (Param& param : rig.params.params())
      if (param.kind != ParamKind::rank_vector) param.way = way;
    rig.start();
    rig.sequences = {rig.put_ids({0, 5, 8}), rig.put_ids({5, 3, 7}), 7};
    ids = rig.put_ids({3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 29});
  }
  void run(GradTaker* taker = nullptr) {
    pass(rig, {[this, taker](Ctx& ctx) {
                 ctx.taker = taker;
                 return blocks.forward(ctx, table->forward(ctx, ids));
               },
               [this](Ctx& ctx, Tensor dy) {
                 table->backward(ctx, blocks.backward(ctx, std::move(dy)));
                 return Tensor();
               }});
  }
  Values grad(const std::string& name) { return rig.get(rig.params.find(name)->grad); }

  TTKinds kinds;
  Rig rig;
  std::unique_ptr<Layer> table;
  Chain blocks;
  Tensor ids;
};

class EveryGradient : public testing::TestWithParam<std::tuple<bool, TTOrder>> {};
INSTANTIATE_TEST_SUITE_P(All, EveryGradient,
                         testing::Values(std::tuple{false, TTOrder::cheaper}, std::tuple{true, TTOrder::merged},
                                         std::tuple{true, TTOrder::sequential}));

TEST_P(EveryGradient, OfTwoPassesAreSummed) {
  const auto [tt, order] = GetParam();
  Net kept(tt, GradWay::kept, order), summed(tt, GradWay::summed, order);
  kept.run();
  for (Param& param : summed.rig.params.params()) summed.rig.set(param.grad, Values(static_cast<size_t>(param.count()), 0.0));
  for (const double passes : {1.0, 2.0}) {
    summed.run();
    for (const Param& param : kept.rig.params.params()) {
      Values expected = kept.grad(param.name);
      if (param.kind != ParamKind::rank_vector)
        for (double& value : expected) value *= passes;
      EXPECT_EQ(summed.grad(param.name), expected) << param.name;
    }
  }
}

TEST_P(EveryGradient, AreGivenOnceAndTakeNoMemoryOfTheirOwn) {
  const auto [tt, order] = GetParam();
  Net kept(tt, GradWay::kept, order), given(tt, GradWay::given, order);
  kept.run();
  Collector collector(given.rig);
  given.run(&collector);
  for (const Param& param : given.rig.params.params()) {
    if (param.kind == ParamKind::rank_vector) continue;
    EXPECT_FALSE(param.grad) << param.name;
    EXPECT_EQ(collector.taken[param.name], kept.grad(param.name)) << param.name;
  }
  const int64_t ranks = given.rig.params.ranks() ? given.rig.params.ranks().bytes() : 0;
  EXPECT_LE(given.rig.params.planned(DType::f64)[Purpose::gradient], Arena::aligned(ranks));
}

// The optimizer brings each contribution into a smaller tensor; the layer's room is of the whole shape.
TEST(Gradients, ThatAreProjectedAreSummedInTheirShape) {
  Rig rig;
  Param& param = rig.params.add("w", {3}, ParamKind::weight, ParamGroup::rest, {});
  param.uses = 2;
  param.way = GradWay::projected;
  param.projected = {2};
  rig.start();
  ASSERT_EQ(param.grad.shape(), (Shape{2}));
  rig.set(param.grad, {1, 1});
  Collector collector(rig);
  rig.run([&](Ctx& ctx) {
    ctx.taker = &collector;
    for (const Values& part : {Values{1, 2, 3}, Values{10, 20, 30}}) {
      Tensor room = grad_room(ctx, param);
      EXPECT_EQ(room.shape(), param.shape);
      if (!ctx.ops.dry) rig.set(room, part);
      grad_ready(ctx, param, std::move(room));
    }
  });
  EXPECT_EQ(rig.get(param.grad), (Values{23, 45}));
  param.projected = {1};
  rig.params.allocate_gradients(rig.memory);
  EXPECT_EQ(param.grad.shape(), (Shape{1}));
  EXPECT_EQ(rig.memory.now()[Purpose::gradient], rig.params.planned(DType::f64)[Purpose::gradient]);
}

// A matrix that is used twice in a pass, e.g. as token table and head.
TEST(Gradients, OfAParameterUsedTwiceAreOneSum) {
  for (const GradWay way : {GradWay::kept, GradWay::summed, GradWay::given}) {
    Rig rig;
    Param& param = rig.params.add("tied", {3}, ParamKind::weight, ParamGroup::rest, {});
    param.uses = 2;
    param.way = way;
    rig.start();
    if (param.grad) rig.set(param.grad, way == GradWay::kept ? Values{7, 7, 7} : Values{0, 0, 0});
    Collector collector(rig);
    rig.run([&](Ctx& ctx) {
      ctx.taker = &collector;
      for (const Values& part : {Values{1, 2, 3}, Values{10, 20, 30}}) {
        Tensor room = grad_room(ctx, param);
        if (!ctx.ops.dry) rig.set(room, part);
        grad_ready(ctx, param, std::move(room));
      }
    });
    EXPECT_EQ(way == GradWay::given ? collector.taken["tied"] : rig.get(param.grad), (Values{11, 22, 33}));
  }
}

TEST(Gradients, OfAFrozenLayerAreNotComputedButItsInputsAre) {
  Net plain(false, GradWay::kept);
  plain.run();
  Net frozen(false, GradWay::kept);
  frozen.rig.params.release();
  for (const char* name : {"f.in.weight", "f.in.bias"}) frozen.rig.params.find(name)->trainable = false;
  frozen.rig.start();
  frozen.run();
  EXPECT_FALSE(frozen.rig.params.find("f.in.weight")->grad);
  EXPECT_EQ(frozen.grad("a.norm.gamma"), plain.grad("a.norm.gamma")) << "behind the frozen layer";
  EXPECT_LT(frozen.rig.params.planned(DType::f64)[Purpose::gradient], plain.rig.params.planned(DType::f64)[Purpose::gradient]);
}

// Norms, tables and matrices; a bias of a frozen matrix.
TEST(Gradients, OfTheOthersStayWhereSomeAreFrozen) {
  Net plain(false, GradWay::kept);
  plain.run();
  for (const std::vector<std::string>& kept : {std::vector<std::string>{"a.q.weight"}, {"f.out.bias", "a.norm.beta"}, {"table.weight"}}) {
    Net frozen(false, GradWay::kept);
    frozen.rig.params.release();
    for (Param& param : frozen.rig.params.params()) param.trainable = std::find(kept.begin(), kept.end(), param.name) != kept.end();
    frozen.rig.start();
    frozen.run();
    for (const Param& param : frozen.rig.params.params()) {
      EXPECT_EQ(static_cast<bool>(param.grad), param.trainable) << param.name;
      if (param.trainable) {
        EXPECT_EQ(frozen.grad(param.name), plain.grad(param.name)) << param.name;
      }
    }
    EXPECT_LT(frozen.rig.params.trained(), frozen.rig.params.count());
  }
}

}  // namespace
}  // namespace comera::layer_test
