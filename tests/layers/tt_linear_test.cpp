// TT linear layer: both contraction orders against plain loops and finite differences, over mode counts, ranks, dead
// bonds and padding. A case is one line of kLinearCases.
#include "core/layers/tt_linear.h"

#include "tests/layers/check_layer.h"
#include "tests/layers/dense_equivalent.h"

namespace comera::layer_test {
namespace {

struct LinearCase {
  const char* name;
  std::vector<int64_t> in_modes, out_modes, ranks;
  int64_t in, out;  // 0: what the modes multiply to
  int64_t tokens;
  int64_t dead_every = 0;  // every n-th rank entry is dead
  int64_t dead_bond = -1;  // this bond is dead altogether
};

const LinearCase kLinearCases[] = {
    {"p1_q1", {4}, {3}, {1, 2, 1}, 0, 0, 5},
    {"p1_q1_rank_1", {3}, {2}, {1, 1, 1}, 0, 0, 4},
    {"p1_q3", {5}, {2, 3, 2}, {1, 4, 3, 2, 1}, 0, 0, 6},
    {"p3_q1", {2, 3, 2}, {5}, {1, 2, 3, 4, 1}, 0, 0, 6},
    {"p2_q2", {3, 4}, {2, 5}, {1, 3, 4, 2, 1}, 0, 0, 7},
    {"p3_q3", {3, 2, 4}, {5, 2, 3}, {1, 3, 5, 7, 5, 3, 1}, 0, 0, 5},
    {"p2_q4", {4, 3}, {2, 2, 3, 2}, {1, 2, 5, 4, 3, 2, 1}, 0, 0, 5},
    {"p4_q2", {2, 3, 2, 2}, {3, 4}, {1, 2, 3, 3, 5, 3, 1}, 0, 0, 5},
    {"p5_q5", {2, 1, 2, 2, 1}, {1, 2, 2, 1, 2}, {1, 2, 2, 3, 2, 3, 2, 3, 2, 2, 1}, 0, 0, 3},
    {"p1_q5", {4}, {2, 1, 2, 2, 2}, {1, 3, 2, 3, 2, 2, 1}, 0, 0, 3},
    {"p5_q1", {2, 2, 2, 1, 2}, {3}, {1, 2, 3, 2, 2, 3, 1}, 0, 0, 3},
    {"all_ranks_1", {3, 2, 2}, {2, 2, 3}, {1, 1, 1, 1, 1, 1, 1}, 0, 0, 4},
    {"modes_of_1", {1, 4, 1}, {1, 3, 1}, {1, 1, 3, 3, 3, 1, 1}, 0, 0, 4},
    {"one_token", {3, 4}, {4, 3}, {1, 3, 5, 3, 1}, 0, 0, 1},
    {"some_dead", {3, 2, 4}, {4, 2, 3}, {1, 3, 5, 6, 5, 3, 1}, 0, 0, 5, 3},
    {"dead_bond_left", {3, 4}, {4, 3}, {1, 3, 4, 3, 1}, 0, 0, 4, 0, 0},
    {"dead_bond_middle", {3, 4}, {4, 3}, {1, 3, 4, 3, 1}, 0, 0, 4, 0, 1},
    {"dead_bond_right", {3, 4}, {4, 3}, {1, 3, 4, 3, 1}, 0, 0, 4, 0, 2},
    {"padded_in", {4, 3}, {3, 4}, {1, 3, 4, 3, 1}, 11, 0, 5},
    {"padded_out", {4, 3}, {3, 4}, {1, 3, 4, 3, 1}, 0, 11, 5},
    {"padded_both", {2, 2, 3}, {3, 2, 2}, {1, 2, 3, 4, 3, 2, 1}, 10, 11, 5},
    {"padded_p1_q1", {4}, {4}, {1, 3, 1}, 3, 3, 5},
};

int64_t product(const std::vector<int64_t>& modes) {
  int64_t out = 1;
  for (int64_t mode : modes) out *= mode;
  return out;
}

TTShape shape_of_case(const LinearCase& c) {
  TTShape shape;
  shape.in_modes = c.in_modes;
  shape.out_modes = c.out_modes;
  shape.ranks = c.ranks;
  shape.in = c.in ? c.in : product(c.in_modes);
  shape.out = c.out ? c.out : product(c.out_modes);
  return shape;
}

// One layer with rank vectors as the case asks.
struct BuiltLinear {
  explicit BuiltLinear(const LinearCase& c, TTOrder order, DType dtype = DType::f64, std::unique_ptr<Stash> stash = nullptr)
      : rig(dtype, std::move(stash)),
        factory(rig.params, *rig.stash),
        shape(shape_of_case(c)),
        layer("l", shape, LinearKind::attention, factory, order) {
    rig.start();
    const RankLayer& train = rig.params.rank_layers().front();
    for (size_t k = 0; k < train.ranks.size(); ++k) {
      Values values = rank_values(train.ranks[k]->count(), k, c.dead_every);
      if (static_cast<int64_t>(k) == c.dead_bond) values.assign(values.size(), 0.001);
      rig.set(train.ranks[k]->value, values);
    }
    x = rig.noise({c.tokens, shape.in});
  }
  RankLayer& train() { return rig.params.rank_layers().front(); }
  Values dense() { return contract(rig, train()); }  // W^T (N, M)

  Rig rig;
  LayerFactory factory;
  TTShape shape;
  TTLinear layer;
  Tensor x;
};

class TTLinearCase : public testing::TestWithParam<std::tuple<LinearCase, TTOrder>> {
 protected:
  const LinearCase& shape() const { return std::get<0>(GetParam()); }
  TTOrder order() const { return std::get<1>(GetParam()); }
};

TEST_P(TTLinearCase, GradientsAgreeWithFiniteDifferences) {
  BuiltLinear built(shape(), order());
  // The layer is linear in each single entry, so that a wide difference is exact but for rounding.
  check_gradients(built.rig, built.layer, built.x, {.step = 1e-3, .tolerance = 1e-9});
}

TEST_P(TTLinearCase, EqualsTheDenseEquivalent) {
  BuiltLinear built(shape(), order());
  const int64_t tokens = built.x.size(0), in = built.shape.in, out = built.shape.out, width = built.shape.padded_out();
  const Values wt = built.dense(), bias = built.rig.get(built.rig.params.find("l.bias")->value), x = built.rig.get(built.x);
  const Values dy = noise_values(tokens * out, 5);
  const Pass run = pass(built.rig, built.layer, built.x, dy);
  EXPECT_LE(relative_difference(run.y, apply_dense(x, in, wt, width, bias)), 1e-13);
  EXPECT_LE(relative_difference(evaluate(built.rig, built.layer, built.x), run.y), 0) << "evaluation is the same function";

  Values dx(static_cast<size_t>(tokens * in), 0.0), dbias(static_cast<size_t>(out), 0.0);
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t j = 0; j < out; ++j) {
      const double g = dy[static_cast<size_t>(t * out + j)];
      dbias[static_cast<size_t>(j)] += g;
      for (int64_t i = 0; i < in; ++i) dx[static_cast<size_t>(t * in + i)] += g * wt[static_cast<size_t>(i * width + j)];
    }
  EXPECT_LE(relative_difference(run.dx, dx, 1e-12), 1e-13);
  EXPECT_LE(relative_difference(run.grads(built.rig, "l.bias"), dbias), 1e-13);
}

TEST_P(TTLinearCase, EveryCoreCarriesTheWholeGradient) {
  // <dE_k, E_k> = <dU_k, U_k> = <dD_k, D_k> is one number for all k, and equals <dY, Y - bias>.
  BuiltLinear built(shape(), order());
  const Values dy = noise_values(built.x.size(0) * built.shape.out, 5);
  const Pass run = pass(built.rig, built.layer, built.x, dy);
  Values without_bias = run.y;
  const Values bias = built.rig.get(built.rig.params.find("l.bias")->value);
  for (size_t i = 0; i < without_bias.size(); ++i) without_bias[i] -= bias[i % bias.size()];
  const double expected = dot(dy, without_bias), tolerance = 1e-12 * std::max(1.0, std::fabs(expected));
  for (const Param* core : built.train().cores)
    EXPECT_NEAR(dot(built.rig.get(core->value), built.rig.get(core->grad)), expected, tolerance) << core->name;
  for (const Param* rank : built.train().ranks)
    EXPECT_NEAR(dot(built.rig.get(rank->value), built.rig.get(rank->grad)), expected, tolerance) << rank->name;
}

TEST_P(TTLinearCase, FloatsAgreeWithDoubles) {
  BuiltLinear wide(shape(), order()), narrow(shape(), order(), DType::f32);
  const Values dy = noise_values(wide.x.size(0) * wide.shape.out, 5);
  const Pass exact = pass(wide.rig, wide.layer, wide.x, dy), rounded = pass(narrow.rig, narrow.layer, narrow.x, dy);
  EXPECT_LE(relative_difference(rounded.y, exact.y), 2e-6);
  EXPECT_LE(relative_difference(rounded.dx, exact.dx, 1e-6), 5e-6);
  for (const Param& param : wide.rig.params.params())
    EXPECT_LE(relative_difference(rounded.grads(narrow.rig, param.name), exact.grads(wide.rig, param.name), 1e-5), 5e-6) << param.name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, TTLinearCase,
                         testing::Combine(testing::ValuesIn(kLinearCases), testing::Values(TTOrder::merged, TTOrder::sequential)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param).name) +
                                  (std::get<1>(info.param) == TTOrder::merged ? "_merged" : "_sequential");
                         });

const LinearCase& named(const std::string& name) {
  for (const LinearCase& c : kLinearCases)
    if (name == c.name) return c;
  throw std::runtime_error("no case " + name);
}

TEST(TTLinear, OrdersAgree) {
  for (const LinearCase& c : kLinearCases) {
    BuiltLinear merged(c, TTOrder::merged), sequential(c, TTOrder::sequential);
    const Pass a = pass(merged.rig, merged.layer, merged.x), b = pass(sequential.rig, sequential.layer, sequential.x);
    EXPECT_LE(relative_difference(a.y, b.y), 1e-13) << c.name;
    EXPECT_LE(relative_difference(a.dx, b.dx, 1e-12), 1e-13) << c.name;
    for (const Param& param : merged.rig.params.params())
      EXPECT_LE(relative_difference(a.grads(merged.rig, param.name), b.grads(sequential.rig, param.name), 1e-12), 1e-13)
          << c.name << " " << param.name;
  }
}

TEST(TTLinear, ADeadBondLeavesTheBiasOnly) {
  BuiltLinear built(named("dead_bond_middle"), TTOrder::merged);
  const Values y = evaluate(built.rig, built.layer, built.x), bias = built.rig.get(built.rig.params.find("l.bias")->value);
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], bias[i % bias.size()]);
}

TEST(TTLinear, RankVectorsAreIgnoredWhenPruningIsOff) {
  BuiltLinear built(named("some_dead"), TTOrder::merged);
  built.rig.scalars.pruning = 0;
  std::vector<Values> cores, ones;
  for (const Param* core : built.train().cores) cores.push_back(built.rig.get(core->value));
  for (const Param* rank : built.train().ranks) ones.emplace_back(static_cast<size_t>(rank->count()), 1.0);
  const Values wt = contract(cores, ones, built.train().mode_sizes, 0);
  const Values bias = built.rig.get(built.rig.params.find("l.bias")->value);
  EXPECT_LE(relative_difference(pass(built.rig, built.layer, built.x).y,
                                apply_dense(built.rig.get(built.x), built.shape.in, wt, built.shape.padded_out(), bias)),
            1e-13);
}

TEST(TTLinear, OnlyTheInputCoresFeelAnInexactStash) {
  // V = X^T U1 is the only use of x in backward (merged order): with 8-bit codes everything else stays as it is.
  const LinearCase& c = named("p3_q3");
  BuiltLinear exact(c, TTOrder::merged), coded(c, TTOrder::merged, DType::f64, make_int8_stash(1, 0.9));
  const Pass a = pass(exact.rig, exact.layer, exact.x), b = pass(coded.rig, coded.layer, coded.x);
  EXPECT_EQ(a.y, b.y);
  EXPECT_EQ(a.dx, b.dx);
  for (const Param& param : exact.rig.params.params()) {
    const double difference = relative_difference(b.grads(coded.rig, param.name), a.grads(exact.rig, param.name));
    const bool input_side = param.name == "l.core.0" || param.name == "l.core.1" || param.name == "l.core.2" || param.name == "l.rank.0" ||
                            param.name == "l.rank.1" || param.name == "l.rank.2";
    EXPECT_LE(difference, input_side ? 0.05 : 0) << param.name;
    EXPECT_TRUE(!input_side || difference > 0) << param.name << " does not see x";
  }
}

TEST(TTLinear, GoesOnAfterItsRanksAreCut) {
  BuiltLinear built(named("some_dead"), TTOrder::merged);
  const Values dy = noise_values(built.x.size(0) * built.shape.out, 5);
  const Pass before = pass(built.rig, built.layer, built.x, dy);
  // Takes the dead slices out of cores and rank vectors, as a rank cut does.
  std::vector<std::vector<size_t>> keep{{0}};
  for (const Param* rank : built.train().ranks) {
    keep.emplace_back();
    const Values values = built.rig.get(rank->value);
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i] > built.rig.scalars.threshold) keep.back().push_back(i);
  }
  keep.push_back({0});
  std::vector<std::pair<Param*, Values>> cut;
  for (size_t k = 0; k < built.train().cores.size(); ++k) {
    Param* core = built.train().cores[k];
    const Values values = built.rig.get(core->value);
    const int64_t mode = core->shape[1], after = core->shape[2];
    Values kept;
    for (size_t a : keep[k])
      for (int64_t i = 0; i < mode; ++i)
        for (size_t b : keep[k + 1])
          kept.push_back(values[(a * static_cast<size_t>(mode) + static_cast<size_t>(i)) * static_cast<size_t>(after) + b]);
    core->shape = {static_cast<int64_t>(keep[k].size()), mode, static_cast<int64_t>(keep[k + 1].size())};
    cut.emplace_back(core, kept);
  }
  for (size_t k = 0; k < built.train().ranks.size(); ++k) {
    Param* rank = built.train().ranks[k];
    const Values values = built.rig.get(rank->value);
    Values kept;
    for (size_t i : keep[k + 1]) kept.push_back(values[i]);
    rank->shape = {static_cast<int64_t>(kept.size())};
    cut.emplace_back(rank, kept);
  }
  const Values bias = built.rig.get(built.rig.params.find("l.bias")->value);
  built.rig.params.release();
  built.rig.params.allocate(built.rig.memory, DType::f64);
  for (const auto& [param, values] : cut) built.rig.set(param->value, values);
  built.rig.set(built.rig.params.find("l.bias")->value, bias);
  const Pass after = pass(built.rig, built.layer, built.x, dy);
  EXPECT_LE(relative_difference(after.y, before.y), 1e-14);
  EXPECT_LE(relative_difference(after.dx, before.dx), 1e-14);
}

TEST(TTLinear, EntriesOfTheDenseEquivalentStartWithVarianceOneOverNPlusM) {
  LinearCase c{"variance", {3, 2, 2}, {2, 3, 2}, {1, 3, 5, 6, 4, 2, 1}, 0, 0, 1};
  Rig rig;
  LayerFactory factory(rig.params, *rig.stash);
  TTLinear layer("l", shape_of_case(c), LinearKind::attention, factory);
  rig.start();
  double sum = 0, squares = 0, count = 0;
  for (uint64_t seed = 1; seed <= 3000; ++seed) {
    rig.params.initialise(*rig.device, seed);
    for (double entry : contract(rig, rig.params.rank_layers().front())) {
      sum += entry;
      squares += entry * entry;
      ++count;
    }
  }
  EXPECT_NEAR(squares / count, 1.0 / (12 + 12), 0.04 / 24);
  EXPECT_NEAR(sum / count, 0, 0.01 / std::sqrt(24.0));
}

TEST(TTLinear, EachCoreStartsAsPublished) {
  // N(0, 1) / sqrt(r_k) * sigma^(1/K), sigma = sqrt(1 / (in + out)): the true sizes, also when the modes are padded.
  Rig rig;
  LayerFactory factory(rig.params, *rig.stash);
  const TTShape shape = shape_of_case(named("padded_both"));
  TTLinear layer("l", shape, LinearKind::attention, factory);
  for (size_t k = 0; k < 6; ++k) {
    const Init& init = rig.params.find("l.core." + std::to_string(k))->init;
    EXPECT_EQ(init.kind, Init::normal);
    EXPECT_NEAR(init.scale, std::pow(std::sqrt(1.0 / 21), 1.0 / 6) / std::sqrt(static_cast<double>(shape.ranks[k + 1])), 1e-14);
  }
  EXPECT_EQ(rig.params.find("l.rank.3")->init.kind, Init::ones);
  EXPECT_EQ(rig.params.find("l.bias")->init.kind, Init::uniform);
  EXPECT_NEAR(rig.params.find("l.bias")->init.scale, 1 / std::sqrt(11.0), 1e-14);
}

TEST(TTLinear, NamesKindsAndGroups) {
  for (const bool classifier : {false, true}) {
    Rig rig;
    LayerFactory factory(rig.params, *rig.stash);
    TTLinear layer("head.l", shape_of_case(named("p2_q2")), classifier ? LinearKind::classifier : LinearKind::ffn_in, factory);
    EXPECT_EQ(rig.params.find("head.l.core.3")->group, classifier ? ParamGroup::rest : ParamGroup::core);
    EXPECT_EQ(rig.params.find("head.l.core.3")->kind, ParamKind::tt_core);
    EXPECT_EQ(rig.params.find("head.l.rank.2")->group, classifier ? ParamGroup::rest : ParamGroup::rank);
    EXPECT_EQ(rig.params.find("head.l.rank.2")->kind, ParamKind::rank_vector);
    EXPECT_EQ(rig.params.find("head.l.bias")->group, ParamGroup::rest);
    EXPECT_EQ(rig.params.find("head.l.core.4"), nullptr);
    EXPECT_EQ(rig.params.find("head.l.rank.3"), nullptr);
  }
}

}  // namespace
}  // namespace comera::layer_test
