// Layers without a matrix of their own: norm, activations, dropout, chains, residuals, attention.
#include "core/layers/blocks.h"
#include "core/layers/tt_linear.h"

#include "tests/layers/five_points.h"

namespace comera::layer_test {
namespace {

// Sequences of these lengths one after another, with `gap` rows of nobody's between them.
Sequences sequences_of(Rig& rig, const std::vector<int32_t>& lengths, int32_t gap = 0) {
  std::vector<int32_t> starts;
  int32_t at = gap;
  for (int32_t length : lengths) {
    starts.push_back(length == 0 ? 0 : at);
    at += length == 0 ? 0 : length + gap;
  }
  return {rig.put_ids(starts), rig.put_ids(lengths), *std::max_element(lengths.begin(), lengths.end())};
}

// A layer over D features between its parameters and the rig.
struct Built {
  explicit Built(std::unique_ptr<Stash> stash = make_exact_stash(), DType type = DType::f64, const WeightForms& forms = {})
      : rig(type, std::move(stash)), factory(rig.params, *rig.stash, forms) {}
  Rig rig;
  LayerFactory factory;
  std::unique_ptr<Layer> layer;

  template <class L, class... Arguments>
  void make(Arguments&&... arguments) {
    layer = std::make_unique<L>(std::forward<Arguments>(arguments)..., factory);
    rig.start();
    // Gammas of one and betas of zero would hide mistakes.
    uint64_t seed = 40;
    for (Param& param : rig.params.params())
      if (param.kind == ParamKind::norm) {
        Values values = noise_values(param.count(), ++seed, 0.4);
        if (param.init.kind == Init::ones)
          for (double& value : values) value += 1;
        rig.set(param.value, values);
      }
  }
};

std::unique_ptr<Layer> feed_forward(LayerFactory& factory, int64_t features, int64_t hidden) {
  auto chain = std::make_unique<Chain>();
  chain->add(factory.linear("f.in", features, hidden, LinearKind::ffn_in));
  chain->add(std::make_unique<ActivationLayer>(Activation::gelu, "f.gelu", hidden, factory));
  chain->add(factory.linear("f.out", hidden, features, LinearKind::ffn_out));
  return chain;
}

// ---- finite differences -------------------------------------------------------------------------------------------
TEST(Norm, GradientsWithAndWithoutABranch) {
  for (const auto& [kind, branch] :
       {std::pair{NormKind::layer, false}, {NormKind::layer, true}, {NormKind::rms, false}, {NormKind::rms, true}}) {
    Built b;
    Norm norm("n", 7, 1e-9, b.factory, kind);
    const Dropout dropout{branch ? 0.3 : 0.0, b.factory.next_site()};
    b.rig.start();
    const Tensor x = b.rig.noise({5, 7}), side = b.rig.noise({5, 7}, 3);
    Tensor dside;
    const bool has_branch = branch;  // a structured binding cannot be captured
    const Probe probe{[&](Ctx& ctx) { return norm.forward(ctx, x, has_branch ? side : Tensor(), dropout); },
                      [&](Ctx& ctx, Tensor dy) {
                        auto [dx, dbranch] = norm.backward(ctx, std::move(dy), has_branch, dropout);
                        EXPECT_EQ(static_cast<bool>(dbranch), has_branch);
                        return dx;
                      },
                      x};
    check_directions(b.rig, probe);
    if (!branch) continue;
    const Probe of_branch{probe.forward, [&](Ctx& ctx, Tensor dy) { return norm.backward(ctx, std::move(dy), true, dropout).second; },
                          side};
    check_directions(b.rig, of_branch);
  }
}

// y = x / sqrt(mean(x^2) + eps) * gamma, with an eps that is seen.
TEST(Norm, RmsIsItsFormula) {
  Built b;
  Norm norm("n", 6, 0.3, b.factory, NormKind::rms);
  b.rig.start();
  EXPECT_EQ(b.rig.params.params().size(), 1u) << "no beta";
  const Values gamma = noise_values(6, 9), x = noise_values(24, 2, 3);
  b.rig.set(b.rig.params.find("n.gamma")->value, gamma);
  const Tensor in = b.rig.put(x, {4, 6});
  Values y;
  b.rig.run(
      [&](Ctx& ctx) {
        const Tensor out = norm.forward(ctx, in, {}, {});
        if (!ctx.ops.dry) y = b.rig.get(out);
      },
      false);
  for (size_t t = 0; t < 4; ++t) {
    double square = 0;
    for (size_t j = 0; j < 6; ++j) square += x[t * 6 + j] * x[t * 6 + j] / 6;
    for (size_t j = 0; j < 6; ++j) EXPECT_NEAR(y[t * 6 + j], x[t * 6 + j] / std::sqrt(square + 0.3) * gamma[j], 1e-14);
  }
}

TEST(Activations, Gradients) {
  for (const Activation kind : {Activation::gelu, Activation::tanh, Activation::relu}) {
    Built b;
    b.make<ActivationLayer>(kind, "a", 6);
    Values x = noise_values(24, 8, 3);
    for (double& value : x) value += value > 0 ? 0.1 : -0.1;  // away from relu's corner
    check_gradients(b.rig, *b.layer, b.rig.put(x, {4, 6}), {.step = 1e-5, .tolerance = 1e-9});
  }
}

TEST(DropoutLayer, GradientsWithAMask) {
  Built b;
  b.make<DropoutLayer>(0.4);
  check_gradients(b.rig, *b.layer, b.rig.noise({6, 9}), {.step = 1e-3, .tolerance = 1e-11});
}

TEST(DropoutLayer, NothingIsDroppedInEvaluationOrAtZero) {
  Built b, off;
  b.make<DropoutLayer>(0.4);
  off.make<DropoutLayer>(0.0);
  const Tensor x = b.rig.noise({6, 9});
  EXPECT_EQ(evaluate(b.rig, *b.layer, x), b.rig.get(x));
  const Pass p = pass(b.rig, *b.layer, x);
  EXPECT_NE(p.y, b.rig.get(x));
  const Tensor y = off.rig.noise({6, 9});
  EXPECT_EQ(pass(off.rig, *off.layer, y).y, off.rig.get(y));
}

TEST(DropoutLayer, EachStepAndSiteHasItsOwnMask) {
  Rig rig(DType::f64, make_exact_stash());
  LayerFactory factory(rig.params, *rig.stash);
  DropoutLayer first(0.5, factory), second(0.5, factory);
  rig.start();
  const Tensor x = rig.put(Values(64, 1.0), {8, 8});
  const Values a = pass(rig, first, x).y, b = pass(rig, second, x).y;
  rig.scalars.step = 2;
  const Values c = pass(rig, first, x).y;
  EXPECT_NE(a, b);
  EXPECT_NE(a, c);
  rig.scalars.step = 1;
  EXPECT_EQ(pass(rig, first, x).y, a);
}

TEST(Chain, Gradients) {
  Built b;
  b.layer = feed_forward(b.factory, 5, 11);
  b.rig.start();
  check_gradients(b.rig, *b.layer, b.rig.noise({7, 5}), {.step = 1e-4, .tolerance = 1e-7});
  check_directions(b.rig, probe_of(*b.layer, b.rig.noise({7, 5})));
}

TEST(ResidualNorm, Gradients) {
  for (const auto& [dropout, kind] :
       {std::pair{0.0, NormKind::layer}, {0.25, NormKind::layer}, {0.0, NormKind::rms}, {0.25, NormKind::rms}}) {
    Built b;
    b.layer = std::make_unique<ResidualNorm>("r", feed_forward(b.factory, 6, 10), 6, 1e-9, dropout, b.factory, kind);
    b.rig.start();
    const Tensor x = b.rig.noise({5, 6});
    check_directions(b.rig, probe_of(*b.layer, x));
    check_directions(b.rig, probe_of(*b.layer, x, b.rig.put(Values(30, 0.0), {5, 6})));  // with `into`
  }
}

struct AttentionCase {
  std::vector<int32_t> lengths;
  int32_t gap;
  int64_t features, heads;
  double dropout;
  bool keep;
};

TEST(SelfAttention, Gradients) {
  const TTKinds tt;
  for (const AttentionCase& c : {AttentionCase{{4, 2, 5}, 0, 8, 2, 0.0, true},
                                 {{4, 2, 5}, 1, 8, 2, 0.3, true},
                                 {{3, 0, 4}, 1, 6, 3, 0.3, false},
                                 {{1}, 0, 4, 1, 0.2, true},
                                 {{1, 1, 1}, 2, 4, 4, 0.0, false}})
    for (const WeightForms& forms : {WeightForms(), WeightForms{make_tt_form(tt)}}) {
      Built b(make_exact_stash(), DType::f64, forms);
      b.make<SelfAttention>("a", c.features, c.heads, c.dropout, c.keep);
      b.rig.sequences = sequences_of(b.rig, c.lengths, c.gap);
      int64_t tokens = c.gap;
      for (int32_t length : c.lengths) tokens += length == 0 ? 0 : length + c.gap;
      check_directions(b.rig, probe_of(*b.layer, b.rig.noise({tokens, c.features})));
      check_directions(b.rig, probe_of(*b.layer, b.rig.noise({tokens, c.features}),
                                       b.rig.put(Values(static_cast<size_t>(tokens * c.features), 0.0), {tokens, c.features})));
    }
}

// ---- attention ----------------------------------------------------------------------------------------------------
TEST(SelfAttention, KeptProbabilitiesOnlyCostMemory) {
  Pass passes[2];
  Values grads[2];
  int64_t kept[2];
  for (const bool keep : {false, true}) {
    Built b;
    b.make<SelfAttention>("a", 8, 2, 0.3, keep);
    b.rig.sequences = sequences_of(b.rig, {6, 3, 6});
    passes[keep] = pass(b.rig, *b.layer, b.rig.noise({15, 8}));
    grads[keep] = passes[keep].grads(b.rig, "a.q.weight");
    kept[keep] = b.rig.arena.peak_by_purpose()[Purpose::activation];
  }
  EXPECT_EQ(passes[0].y, passes[1].y);
  EXPECT_LE(relative_difference(passes[0].dx, passes[1].dx), 1e-13);
  EXPECT_LE(relative_difference(grads[0], grads[1]), 1e-13);
  EXPECT_EQ(kept[1] - kept[0], (3 * 2 * 6 * 6 * 8 + 63) / 64 * 64);  // (S, heads, longest, longest) doubles
}

// Rows of nobody's may hold anything: they change neither the others' outputs nor any gradient, if no gradient comes to them.
TEST(SelfAttention, RowsOutsideSequencesChangeNothing) {
  Pass passes[2];
  std::vector<Values> grads[2];
  for (const int other : {0, 1}) {
    Built b;
    b.make<SelfAttention>("a", 8, 2, 0.2, true);
    b.rig.sequences = sequences_of(b.rig, {4, 3}, 2);  // tokens 2..5 and 8..10 of 13
    Values x = noise_values(13 * 8, 3), dy = noise_values(13 * 8, 4);
    for (const size_t row : {0u, 1u, 6u, 7u, 11u, 12u})
      for (size_t j = 0; j < 8; ++j) {
        dy[row * 8 + j] = 0;
        if (other == 1) x[row * 8 + j] = 100.0 * static_cast<double>(j) - 300;
      }
    passes[other] = pass(b.rig, *b.layer, b.rig.put(x, {13, 8}), dy);
    for (Param& param : b.rig.params.params()) grads[other].push_back(b.rig.get(param.grad));
  }
  for (const size_t row : {2u, 3u, 4u, 5u, 8u, 9u, 10u})
    for (size_t i = row * 8; i < row * 8 + 8; ++i) {
      EXPECT_EQ(passes[0].y[i], passes[1].y[i]);
      EXPECT_EQ(passes[0].dx[i], passes[1].dx[i]);
    }
  for (const size_t row : {0u, 1u, 6u, 7u, 11u, 12u})
    for (size_t i = row * 8; i < row * 8 + 8; ++i) EXPECT_EQ(passes[1].dx[i], 0.0);
  for (size_t i = 0; i < grads[0].size(); ++i) EXPECT_LE(relative_difference(grads[0][i], grads[1][i], 1e-9), 1e-14);
}

// ---- evaluation, misuse -------------------------------------------------------------------------------------------
TEST(Blocks, EvaluationKeepsNothingAndDropsNothing) {
  Built on, off;
  const auto make = [](Built& b, double dropout) {
    auto chain = std::make_unique<Chain>();
    chain->add(std::make_unique<ResidualNorm>("r", std::make_unique<SelfAttention>("a", 8, 2, dropout, true, b.factory), 8, 1e-9, dropout,
                                              b.factory));
    chain->add(std::make_unique<ResidualNorm>("s", feed_forward(b.factory, 8, 12), 8, 1e-9, dropout, b.factory));
    chain->add(std::make_unique<ActivationLayer>(Activation::tanh, "t", 8, b.factory));
    chain->add(std::make_unique<DropoutLayer>(dropout, b.factory));
    b.layer = std::move(chain);
    b.rig.start();
    b.rig.sequences = sequences_of(b.rig, {4, 3});
  };
  make(on, 0.5);
  make(off, 0.0);
  const Values x = noise_values(56, 2);
  const Values y = evaluate(on.rig, *on.layer, on.rig.put(x, {7, 8}));  // run() throws when a temporary is still held
  EXPECT_EQ(y, pass(off.rig, *off.layer, off.rig.put(x, {7, 8})).y);
  EXPECT_NE(y, pass(on.rig, *on.layer, on.rig.put(x, {7, 8})).y);
  EXPECT_EQ(y, evaluate(on.rig, *on.layer, on.rig.put(x, {7, 8}))) << "an evaluation after a step";
}

TEST(Blocks, BackwardNeedsAForward) {
  Built b;
  b.make<ResidualNorm>("r", feed_forward(b.factory, 4, 4), 4, 1e-9, 0.0);
  const auto backward = [&](Ctx& ctx) {
    if (!ctx.ops.dry) return;
    EXPECT_THROW(b.layer->backward(ctx, ctx.temp({3, 4}, "dy")), Error);
  };
  b.rig.run(backward);
}

// ---- memory -------------------------------------------------------------------------------------------------------
TEST(Blocks, KeepEachTensorOnce) {
  Built b;
  constexpr int64_t T = 16, D = 8, F = 32;
  b.make<ResidualNorm>("r", feed_forward(b.factory, D, F), D, 1e-9, 0.1);
  pass(b.rig, *b.layer, b.rig.noise({T, D}));
  // x is the caller's; GELU's input and the next layer's input (T, F) each; sum (T, D), mean and rstd (T); dy (T, D).
  EXPECT_EQ(b.rig.arena.peak_by_purpose()[Purpose::activation], 8 * (2 * T * F + T * D + 2 * T + T * D));
}

TEST(Activations, OutputsServeTheNextLayerToo) {
  for (const auto& [kind, kept] : {std::pair{Activation::gelu, 2}, {Activation::tanh, 1}, {Activation::relu, 1}}) {
    Built b;
    auto chain = std::make_unique<Chain>();
    chain->add(b.factory.linear("in", 4, 16, LinearKind::ffn_in));
    chain->add(std::make_unique<ActivationLayer>(kind, "a", 16, b.factory));
    chain->add(b.factory.linear("out", 16, 4, LinearKind::ffn_out));
    b.layer = std::move(chain);
    b.rig.start();
    pass(b.rig, *b.layer, b.rig.noise({8, 4}));
    EXPECT_EQ(b.rig.arena.peak_by_purpose()[Purpose::activation], 8 * (8 * 16 * kept + 8 * 4));  // and dy
  }
}

}  // namespace
}  // namespace comera::layer_test
