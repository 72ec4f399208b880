// What the stashes keep, and what codes do to layers: outputs stay, gradients move within a bound.
#include "core/layers/stash.h"

#include <map>
#include <set>

#include "core/config/method.h"
#include "core/layers/blocks.h"
#include "core/layers/tt_linear.h"
#include "tests/layers/check_layer.h"

namespace comera::layer_test {
namespace {

int64_t blocks_with_tag(const Arena& arena, const std::string& tag) {
  return std::count_if(arena.blocks().begin(), arena.blocks().end(), [&](const Arena::Block& block) { return tag == block.tag; });
}

std::unique_ptr<Layer> encoder_block(LayerFactory& factory, int64_t features, int64_t hidden, int64_t heads, double dropout,
                                     bool keep = true) {
  auto inner = std::make_unique<Chain>();
  inner->add(factory.linear("f.in", features, hidden, LinearKind::ffn_in));
  inner->add(std::make_unique<ActivationLayer>(Activation::gelu, "f.gelu", hidden, factory));
  inner->add(factory.linear("f.out", hidden, features, LinearKind::ffn_out));
  auto chain = std::make_unique<Chain>();
  chain->add(std::make_unique<ResidualNorm>("a", std::make_unique<SelfAttention>("a", features, heads, dropout, keep, factory), features,
                                            1e-9, dropout, factory));
  chain->add(std::make_unique<ResidualNorm>("f", std::move(inner), features, 1e-9, dropout, factory));
  return chain;
}

struct BuiltStack {
  BuiltStack(std::unique_ptr<Stash> stash, bool tt, DType type = DType::f64) : rig(type, std::move(stash)) {
    LayerFactory factory(rig.params, *rig.stash, tt ? WeightForms{make_tt_form(kinds)} : WeightForms());
    layer = encoder_block(factory, 12, 24, 3, 0.1);
    rig.start();
    rig.sequences = {rig.put_ids({0, 5, 8}), rig.put_ids({5, 3, 7}), 7};
    input = rig.noise({15, 12});
  }
  // x as a temporary, as a layer before would hand it over.
  Pass run(const Values& dy = {}) {
    return pass(rig,
                {[this](Ctx& ctx) {
                   Tensor x = ctx.temp(input.shape(), "x");
                   ctx.ops.copy(x, input);
                   return layer->forward(ctx, std::move(x));
                 },
                 [this](Ctx& ctx, Tensor dy) { return layer->backward(ctx, std::move(dy)); }},
                dy);
  }
  TTKinds kinds;
  Rig rig;
  std::unique_ptr<Layer> layer;
  Tensor input;
};

TEST(ExactStash, KeepsTheHandleAndNoState) {
  BuiltStack b(make_exact_stash(), false);
  b.run();
  EXPECT_TRUE(b.rig.params.states().empty());
  EXPECT_EQ(blocks_with_tag(b.rig.arena, "int8 codes"), 0);
}

TEST(Bf16Stash, CodesOnceWhatIsKeptTwiceInARow) {
  BuiltStack b(make_bf16_stash(), false);
  b.run();
  EXPECT_EQ(blocks_with_tag(b.rig.arena, "bf16 codes"), 11) << "as int8 does, below";
  EXPECT_TRUE(b.rig.params.states().empty());
}

// Rounding is the same every step, so gradients are within it, and not only on average.
TEST(Bf16Stash, OutputsAreExactAndGradientsNear) {
  for (const bool tt : {false, true})
    for (const DType type : {DType::f64, DType::f32}) {
      BuiltStack exact(make_exact_stash(), tt, type), coded(make_bf16_stash(), tt, type);
      const Values dy = noise_values(15 * 12, 5);
      EXPECT_EQ(exact.run(dy).y, coded.run(dy).y);
      double error = 0, largest = 0;
      std::map<std::string, Values> want;
      for (const Param& param : exact.rig.params.params())
        for (double x : want[param.name] = exact.rig.get(param.grad)) largest = std::max(largest, std::fabs(x));
      for (const Param& param : coded.rig.params.params())
        error = std::max(error, relative_difference(coded.rig.get(param.grad), want[param.name], largest / 20));
      EXPECT_GT(error, 1e-5) << "nothing was rounded";
      EXPECT_LE(error, 0.02);
    }
}

TEST(Bf16Stash, KeepsAHalf) {
  BuiltStack exact(make_exact_stash(), false, DType::f32), coded(make_bf16_stash(), false, DType::f32);
  exact.run();
  coded.run();
  const int64_t a = exact.rig.arena.peak_by_purpose()[Purpose::activation], b = coded.rig.arena.peak_by_purpose()[Purpose::activation];
  EXPECT_LT(b * 3, a * 2) << a << " bytes exact, " << b << " in bf16";
}

TEST(Int8Stash, GroupsDivideTheFeatures) {
  for (const auto& [features, groups, expected] :
       {std::tuple{12, 3, 3}, {12, 5, 4}, {7, 3, 1}, {12, 100, 12}, {1, 3, 1}, {9, 1, 1}, {10, 9, 5}}) {
    ParamSet params;
    const auto stash = make_int8_stash(groups, 0.9);
    const StashSlot slot = stash->slot(params, "enc0.ffn.in", features, 4);
    EXPECT_EQ(slot.groups, expected) << features << " in " << groups;
    ASSERT_EQ(params.states().size(), 1u);
    EXPECT_EQ(params.states()[0].name, "enc0.ffn.in.range");
    EXPECT_EQ(params.states()[0].shape, (Shape{expected, 2}));
    EXPECT_EQ(params.states()[0].initial, -1) << "a width below 0 has not been used yet";
    EXPECT_EQ(slot.range, &params.states()[0].value);
    EXPECT_EQ(slot.site, 4u);
  }
}

TEST(Int8Stash, QuantisesOnceWhatIsKeptTwiceInARow) {
  BuiltStack b(make_int8_stash(2, 0.9), false);
  b.run();
  // Block input (q, k, v share it), probabilities, queries, keys, values, attention output, sum, norm output, GELU input,
  // GELU output, sum.
  EXPECT_EQ(blocks_with_tag(b.rig.arena, "int8 codes"), 11);
  // Every slot has its range; those of k and v stay unused.
  std::set<std::string> unused, names;
  for (const State& state : b.rig.params.states()) {
    EXPECT_TRUE(names.insert(state.name).second) << state.name << " twice";
    if (b.rig.get(state.value)[0] < 0) unused.insert(state.name);
  }
  EXPECT_EQ(unused, (std::set<std::string>{"a.k.range", "a.v.range"}));
}

TEST(Int8Stash, SharesOnlyTheSameRowsAndGroups) {
  Rig rig(DType::f64, make_int8_stash(4, 0.9));
  const StashSlot four = rig.stash->slot(rig.params, "a", 8, 1), two = rig.stash->slot(rig.params, "b", 2, 2);
  rig.start();
  rig.run([&](Ctx& ctx) {
    const Tensor x = ctx.temp({6, 8}, "x");
    if (!ctx.ops.dry) rig.set(x, noise_values(48, 3));
    const Kept whole = rig.stash->keep(ctx, four, x), again = rig.stash->keep(ctx, four, x), halves = rig.stash->keep(ctx, two, x),
               top = rig.stash->keep(ctx, four, x.rows(0, 3)), other = rig.stash->keep(ctx, two, x.view({24, 2}));
    EXPECT_EQ(whole.codes.lease().block(), again.codes.lease().block());
    EXPECT_EQ(halves.used.size(0), 2) << "in two groups, not in four";
    EXPECT_NE(whole.codes.lease().block(), halves.codes.lease().block());
    EXPECT_NE(whole.codes.lease().block(), top.codes.lease().block());
    EXPECT_EQ(top.codes.shape(), (Shape{3, 8}));
    EXPECT_NE(top.codes.lease().block(), other.codes.lease().block());
    EXPECT_EQ(rig.stash->load(ctx, two, other).shape(), (Shape{24, 2}));
    rig.stash->forget();
  });
}

// A block that was written again is another tensor: neither its codes nor its maker serve any longer.
TEST(Stash, ForgetsWhatIsOverwritten) {
  struct Maker final : Remake {
    Tensor remake(Ctx&) override { return {}; }
    int depth() const override { return 0; }
  } maker;
  WtaConfig some;
  some.ratio = 0.5;
  const std::function<std::unique_ptr<Stash>()> stashes[] = {make_bf16_stash, [] { return make_int8_stash(2, 0.9); },
                                                             [=] { return make_sampled_stash(some, make_exact_stash()); },
                                                             [] { return make_waist_stash(make_bf16_stash()); }};
  for (const auto& make : stashes) {
    Rig rig(DType::f64, make());
    const StashSlot slot = rig.stash->slot(rig.params, "a", 8, 1);
    rig.start();
    rig.run([&](Ctx& ctx) {
      const Tensor x = ctx.temp({24, 8}, "x");
      if (!ctx.ops.dry) rig.set(x, noise_values(192, 3));
      const auto block = [&] {
        const Kept kept = rig.stash->keep(ctx, slot, x, Use::product);
        return (kept.codes ? kept.codes : kept.exact).lease().block();
      };
      const int64_t first = block();
      EXPECT_EQ(block(), first);
      ctx.stash.offer(x, maker);
      ctx.stash.overwritten(x);
      EXPECT_EQ(ctx.stash.maker(x), nullptr);
      EXPECT_NE(block(), first);
      rig.stash->forget();
    });
  }
}

TEST(InPlace, OnlyWhereNobodyElseHoldsTheTensor) {
  Rig rig(DType::f64, make_exact_stash());
  const Tensor owned = rig.noise({6, 8});
  rig.run([&](Ctx& ctx) {
    Tensor x = ctx.temp({6, 8}, "x");
    EXPECT_EQ(ctx.in_place_of(x, "y").lease().block(), x.lease().block());
    const Tensor held = x;
    EXPECT_NE(ctx.in_place_of(x, "y").lease().block(), x.lease().block());
    EXPECT_TRUE(ctx.in_place_of(owned, "y").lease()) << "memory of the arena for what has none";
  });
}

// A norm writes over its x and its branch only where they are its own.
TEST(InPlace, ANormLeavesWhatOthersHold) {
  const auto block = [](bool holds) {
    Rig rig(DType::f64, make_exact_stash());
    LayerFactory factory(rig.params, *rig.stash, WeightForms());
    Norm norm("n", 8, 1e-5, factory);
    rig.start();
    const Tensor x_values = rig.noise({6, 8}), branch_values = rig.noise({6, 8});
    Values y, dx, dbranch;
    rig.run([&](Ctx& ctx) {
      Tensor x = ctx.temp({6, 8}, "x"), branch = ctx.temp({6, 8}, "branch");
      ctx.ops.copy(x, x_values);
      ctx.ops.copy(branch, branch_values);
      const Tensor held_x = holds ? x : Tensor(), held_branch = holds ? branch : Tensor();
      Tensor out = norm.forward(ctx, std::move(x), std::move(branch), {});
      if (!ctx.ops.dry) y = rig.get(out);
      const Tensor held_out = holds ? out : Tensor();
      const auto gradients = norm.backward(ctx, std::move(out), true, {});
      if (ctx.ops.dry) return;
      dx = rig.get(gradients.first), dbranch = rig.get(gradients.second);
      if (!holds) return;
      EXPECT_EQ(rig.get(held_x), rig.get(x_values));
      EXPECT_EQ(rig.get(held_branch), rig.get(branch_values));
      EXPECT_EQ(rig.get(held_out), y) << "the gradient was held, too";
    });
    return std::tuple(y, dx, dbranch, rig.arena.blocks().size());
  };
  const auto alone = block(false), held = block(true);
  EXPECT_EQ(std::get<0>(alone), std::get<0>(held));
  EXPECT_EQ(std::get<1>(alone), std::get<1>(held));
  EXPECT_EQ(std::get<2>(alone), std::get<2>(held));
  EXPECT_LE(std::get<3>(alone) + 3, std::get<3>(held)) << "y, the sum and dsum lie in place; dbranch does in both";
}

TEST(Int8Stash, ProbabilitiesAreGroupedByHeads) {
  BuiltStack b(make_int8_stash(3, 0.9), false);
  b.run();
  for (const State& state : b.rig.params.states())
    if (state.name == "a.probabilities.range") {
      EXPECT_EQ(state.shape, (Shape{3, 2}));
      const Values range = b.rig.get(state.value);
      for (size_t head = 0; head < 3; ++head) {
        EXPECT_GT(range[2 * head], 0);
        EXPECT_LE(range[2 * head], 1);
        EXPECT_EQ(range[2 * head + 1], 0) << "the smallest of a padded square";
      }
      return;
    }
  ADD_FAILURE() << "no range of the probabilities";
}

// Outputs are those of the exact layer bit for bit. Gradients are near the exact ones, and nearer on average, since
// codes are rounded stochastically.
TEST(Int8Stash, OutputsAreExactAndGradientsNear) {
  constexpr int kSteps = 16;
  for (const bool tt : {false, true})
    for (const DType type : {DType::f64, DType::f32}) {
      BuiltStack exact(make_exact_stash(), tt, type), coded(make_int8_stash(1, 0.9), tt, type);
      std::map<std::string, Values> want, mean_error;
      double error = 0, averaged = 0;
      for (int step = 1; step <= kSteps; ++step) {
        exact.rig.scalars.step = coded.rig.scalars.step = static_cast<uint64_t>(step);
        for (State& state : coded.rig.params.states()) coded.rig.set(state.value, Values(static_cast<size_t>(state.value.count()), -1));
        const Values dy = noise_values(15 * 12, 5);
        EXPECT_EQ(exact.run(dy).y, coded.run(dy).y);
        double largest = 0;
        for (const Param& param : exact.rig.params.params()) {
          want[param.name] = exact.rig.get(param.grad);
          for (double x : want[param.name]) largest = std::max(largest, std::fabs(x));
        }
        for (const Param& param : coded.rig.params.params()) {
          const Values got = coded.rig.get(param.grad);
          error = std::max(error, relative_difference(got, want[param.name], largest / 20));
          Values& mean = mean_error[param.name];
          mean.resize(got.size());
          for (size_t i = 0; i < mean.size(); ++i) mean[i] += (got[i] - want[param.name][i]) / kSteps;
        }
        if (step < kSteps) continue;
        for (auto& [name, mean] : mean_error) {
          for (size_t i = 0; i < mean.size(); ++i) mean[i] += want[name][i];
          averaged = std::max(averaged, relative_difference(mean, want[name], largest / 20));
        }
      }
      EXPECT_GT(error, 1e-3) << "nothing was quantised";
      EXPECT_LE(error, 0.05);
      EXPECT_LE(averaged, error / 2);
    }
}

// Where all values are the same, attention gives them whatever the probabilities are, and queries and keys have no gradient: of
// probabilities that are computed again from codes, too, since each row of them sums to 1. Values of one number have exact codes.
TEST(Int8Stash, QueriesAndKeysThatDoNotMatterHaveNoGradients) {
  for (const bool waist : {false, true})
    for (const bool tt : {false, true}) {
      SCOPED_TRACE(std::string(waist ? "waist" : "") + (tt ? " tt" : ""));
      std::unique_ptr<Stash> stash = make_int8_stash(1, 0);
      Rig rig(DType::f64, waist ? make_waist_stash(std::move(stash)) : std::move(stash));
      TTKinds kinds;
      LayerFactory factory(rig.params, *rig.stash, tt ? WeightForms{make_tt_form(kinds)} : WeightForms());
      SelfAttention layer("a", 12, 3, 0, false, factory);
      rig.start();
      rig.sequences = {rig.put_ids({0, 5, 8}), rig.put_ids({5, 3, 7}), 7};
      for (Param& param : rig.params.params()) {
        const bool of_values = param.name.starts_with("a.v."), bias = param.name == "a.v.bias";
        rig.set(param.value,
                of_values ? Values(static_cast<size_t>(param.value.count()), bias ? 0.7 : 0) : noise_values(param.value.count(), 3));
      }
      const Tensor input = rig.noise({15, 12});
      const Pass got = pass(rig, {[&](Ctx& ctx) { return layer.forward(ctx, input); },
                                  [&](Ctx& ctx, Tensor dy) { return layer.backward(ctx, std::move(dy)); }});
      EXPECT_GT(relative_difference(got.y, Values(got.y.size(), 0), 1), 0.1);
      double of_output = 0;
      for (const Param& param : rig.params.params())
        for (const double x : rig.get(param.grad)) {
          if (param.name.starts_with("a.q.") || param.name.starts_with("a.k.")) {
            EXPECT_LT(std::fabs(x), 1e-13) << param.name;
          } else if (param.name.starts_with("a.o.")) {
            of_output = std::max(of_output, std::fabs(x));
          }
        }
      EXPECT_GT(of_output, 0.1);
    }
}

std::unique_ptr<Stash> sampled(std::unique_ptr<Stash> below, bool adaptive = true) {
  WtaConfig config;
  config.ratio = 0.01;  // 10 rows: never fewer
  config.adaptive = adaptive;
  return make_sampled_stash(config, std::move(below));
}

// Only what products of an activation with a gradient give is drawn, and it is right on average.
TEST(SampledStash, OnlyGradientsOfMatricesAreDrawnAndTheirMeanIsRight) {
  constexpr int kSteps = 200;
  for (const bool tt : {false, true})
    for (const bool adaptive : {false, true}) {
      BuiltStack exact(make_exact_stash(), tt), drawn(sampled(make_exact_stash(), adaptive), tt);
      std::map<std::string, Values> want, mean_error;
      double error = 0, averaged = 0, largest = 0;
      for (int step = 1; step <= kSteps; ++step) {
        exact.rig.scalars.step = drawn.rig.scalars.step = static_cast<uint64_t>(step);
        const Values dy = noise_values(15 * 12, 5);
        const Pass a = exact.run(dy), b = drawn.run(dy);
        ASSERT_EQ(a.y, b.y);
        ASSERT_EQ(a.dx, b.dx);
        for (const Param& param : drawn.rig.params.params()) {
          const Values got = drawn.rig.get(param.grad), right = exact.rig.get(exact.rig.params.find(param.name)->grad);
          if (param.kind == ParamKind::bias || param.kind == ParamKind::norm) {
            ASSERT_EQ(got, right) << param.name;
            continue;
          }
          Values &mean = mean_error[param.name], &sum = want[param.name];
          mean.resize(got.size());
          sum.resize(got.size());
          for (size_t i = 0; i < got.size(); ++i) {
            mean[i] += (got[i] - right[i]) / kSteps;
            sum[i] += right[i] / kSteps;
            largest = std::max(largest, std::fabs(right[i]));
            error = std::max(error, std::fabs(got[i] - right[i]));
          }
        }
      }
      for (const auto& [name, mean] : mean_error)
        for (double x : mean) averaged = std::max(averaged, std::fabs(x));
      EXPECT_GT(error, largest / 20) << "nothing was drawn";
      EXPECT_LT(averaged, error / 5);
    }
}

TEST(SampledStash, OneSampleServesAllThatKeepATensor) {
  for (const bool tt : {false, true}) {
    BuiltStack b(sampled(make_exact_stash()), tt);
    b.run();
    // The block's input (queries, keys and values share it), what attention gives, the norm's output, the activation.
    EXPECT_EQ(blocks_with_tag(b.rig.arena, "sampled x"), 4);
    BuiltStack coded(sampled(make_int8_stash(1, 0.9)), tt), waist(make_waist_stash(sampled(make_exact_stash())), tt);
    coded.run();
    waist.run();
    EXPECT_EQ(blocks_with_tag(coded.rig.arena, "sampled x"), 4);
    EXPECT_EQ(blocks_with_tag(waist.rig.arena, "sampled x"), 2) << "what is computed again has all its rows";
  }
}

// METHODS.md 14: b k n + 8 k bytes.
TEST(SampledStash, KeepsRowsIndicesAndWeights) {
  WtaConfig config;
  config.ratio = 0.3;
  Rig rig(DType::f32, make_sampled_stash(config, make_exact_stash()));
  rig.device->ops().dry = true;
  rig.arena.record();
  Ctx ctx = rig.context(true);
  const StashSlot slot = rig.stash->slot(rig.params, "w", 768, 1);
  Kept kept = rig.stash->keep(ctx, slot, ctx.temp({4096, 768}, "x"), Use::product);
  rig.stash->forget();
  int64_t bytes = 0;
  for (const Arena::Block& block : rig.arena.blocks())
    if (block.died < 0) bytes += block.bytes;
  EXPECT_EQ(bytes, 3'782'240 + 2 * 16) << "blocks of 64 bytes";
  kept = {};
}

TEST(SampledStash, AllRowsAreTheExactStash) {
  WtaConfig config;
  config.ratio = 0.5;
  EXPECT_EQ(config.rows_of(8), 8) << "10 rows at least";
  EXPECT_EQ(config.rows_of(40), 20);
  BuiltStack exact(make_exact_stash(), false), all(make_sampled_stash({.ratio = 1}, make_exact_stash()), false);
  const Values dy = noise_values(15 * 12, 5);
  exact.run(dy);
  all.run(dy);
  for (const Param& param : all.rig.params.params())
    EXPECT_EQ(all.rig.get(param.grad), exact.rig.get(exact.rig.params.find(param.name)->grad)) << param.name;
}

// Kept bytes: codes are an eighth of doubles; what is not stashed (statistics, merged cores) stays.
TEST(Int8Stash, KeepsAnEighth) {
  BuiltStack exact(make_exact_stash(), false), coded(make_int8_stash(1, 0.9), false);
  exact.run();
  coded.run();
  const int64_t a = exact.rig.arena.peak_by_purpose()[Purpose::activation], b = coded.rig.arena.peak_by_purpose()[Purpose::activation];
  EXPECT_LT(b * 4, a) << a << " bytes exact, " << b << " in codes";
}

}  // namespace
}  // namespace comera::layer_test
