// Layers of images: convolutions, norms over channels, pooling, sums with a shortcut.
#include "core/layers/conv.h"

#include "core/layers/blocks.h"
#include "core/methods/tables.h"
#include "tests/config/choices.h"
#include "tests/layers/five_points.h"

namespace comera::layer_test {
namespace {

struct BuiltConv {
  explicit BuiltConv(std::unique_ptr<Stash> stash = make_exact_stash(), const WeightForms& forms = {}, int threads = 1)
      : rig(DType::f64, std::move(stash), threads), factory(rig.params, *rig.stash, forms) {}
  Rig rig;
  LayerFactory factory;
  std::unique_ptr<Layer> layer;

  void start() {
    rig.start();
    uint64_t seed = 40;  // gammas of one and betas of zero would hide mistakes
    for (Param& param : rig.params.params())
      if (param.kind == ParamKind::norm) {
        Values values = noise_values(param.count(), ++seed, 0.4);
        if (param.init.kind == Init::ones)
          for (double& value : values) value += 1;
        rig.set(param.value, values);
      }
  }
  Values state(const std::string& name) {
    for (const State& state : rig.params.states())
      if (state.name == name) return rig.get(state.value);
    ADD_FAILURE() << "no state " << name;
    return {};
  }
};

const Window kWindows[] = {Window::square(4, 5, 3, 1, 1), Window::square(5, 4, 3, 2, 1), Window::square(4, 4, 3, 1, 0),
                           Window::square(3, 4, 1, 1, 0), Window::square(5, 4, 1, 2, 0), {4, 5, 5, 3, 1, 2, 2, 1}};

TTOptions small_trains() { return {.rank = 3, .cores = 2}; }

WeightForms forms_of(const std::string& weights) {
  MethodConfig method;
  method.weights = weights;
  method.lte.heads = 2;
  TTKinds kinds;
  kinds.convolution = small_trains();
  return make_forms(method, kinds);
}

TEST(Convolution, GradientsInEveryWeightForm) {
  for (const char* weights : choices_of("method.weights"))
    for (const Window& window : kWindows) {
      SCOPED_TRACE(weights);
      BuiltConv b(make_exact_stash(), forms_of(weights));
      Convolution layer("c", {.in = 3, .out = 4, .window = window}, b.factory);
      b.start();
      for (Param& param : b.rig.params.params())  // factors of 0 have gradients of 0
        if (param.kind == ParamKind::factor) b.rig.set(param.value, noise_values(param.count(), 3, 0.5));
      const Tensor x = b.rig.noise({2 * window.pixels(), 3});
      check_directions(b.rig, probe_of(layer, x), {.directions = 1});
      if (weights == std::string("dense")) check_gradients(b.rig, layer, x, {.step = 1e-3, .tolerance = 1e-9, .entries = 8});
    }
}

// Every output by its definition.
TEST(Convolution, IsItsFormula) {
  for (const Window& w : kWindows) {
    BuiltConv b;
    Convolution layer("c", {.in = 2, .out = 3, .window = w, .bias = false}, b.factory);
    b.start();
    EXPECT_EQ(b.rig.params.params().size(), 1u) << "no bias";
    const Values x = noise_values(2 * w.pixels() * 2, 5), weight = b.rig.get(b.rig.params.find("c.weight")->value);
    const Values y = evaluate(b.rig, layer, b.rig.put(x, {2 * w.pixels(), 2}));
    ASSERT_EQ(static_cast<int64_t>(y.size()), 2 * w.count() * 3);
    size_t at = 0;
    for (int64_t image = 0; image < 2; ++image)
      for (int64_t row = 0; row < w.rows(); ++row)
        for (int64_t column = 0; column < w.columns(); ++column)
          for (int64_t out = 0; out < 3; ++out, ++at) {
            double sum = 0;
            for (int64_t i = 0; i < w.kernel_rows; ++i)
              for (int64_t j = 0; j < w.kernel_columns; ++j) {
                const int64_t line = row * w.stride_rows + i - w.pad_rows, across = column * w.stride_columns + j - w.pad_columns;
                if (line < 0 || line >= w.height || across < 0 || across >= w.width) continue;
                for (int64_t c = 0; c < 2; ++c)
                  sum += x[static_cast<size_t>(((image * w.height + line) * w.width + across) * 2 + c)] *
                         weight[static_cast<size_t>((out * w.area() + i * w.kernel_columns + j) * 2 + c)];
              }
            ASSERT_NEAR(y[at], sum, 1e-14);
          }
  }
}

// What is kept, by its number of entries.
class CountingStash final : public Stash {
 public:
  StashSlot slot(ParamSet&, const char*, int64_t, uint32_t site) override { return {site, nullptr, 1}; }
  Kept keep(Ctx&, const StashSlot&, const Tensor& x, Use) override {
    kept.push_back(x.count());
    return {x, {}, {}};
  }
  Tensor load(Ctx&, const StashSlot&, const Kept& of) override { return of.exact; }
  std::vector<int64_t> kept;
};

TEST(Convolution, KeepsXAndNoPatches) {
  for (const char* weights : {"dense", "tt", "lora", "lte"}) {
    auto stash = std::make_unique<CountingStash>();
    CountingStash& counts = *stash;
    BuiltConv b(std::move(stash), forms_of(weights));
    const Window window = Window::square(6, 5, 3, 1, 1);
    Convolution layer("c", {.in = 3, .out = 4, .window = window}, b.factory);
    b.start();
    pass(b.rig, layer, b.rig.noise({2 * window.pixels(), 3}));
    EXPECT_EQ(counts.kept, std::vector<int64_t>(2, 2 * window.pixels() * 3)) << weights << ": a dry run and a real one";
  }
}

std::unique_ptr<Layer> unit(LayerFactory& factory, const std::string& name, int64_t in, int64_t out, const Window& window, bool batch,
                            Activation kind = Activation::relu) {
  auto chain = std::make_unique<Chain>();
  chain->add(std::make_unique<Convolution>(name, ConvolutionSpec{.in = in, .out = out, .window = window, .bias = false}, factory));
  if (batch)
    chain->add(std::make_unique<BatchNorm>(name + ".norm", out, BatchNormSpec{}, factory));
  else
    chain->add(std::make_unique<GroupNorm>(name + ".norm", out, 2, window.count(), 1e-5, factory));
  chain->add(std::make_unique<ActivationLayer>(kind, name + ".activation", out, factory));
  return chain;
}

// Three units; the waist computes norms and activations again, and patches from them.
TEST(Convolution, TheWaistAndThreadsChangeNoBit) {
  for (const char* weights : {"dense", "tt"}) {
    std::map<std::string, Values> expected;
    Values y;
    for (const auto& [waist, threads] : {std::pair{false, 1}, {true, 1}, {false, 3}}) {
      BuiltConv b(waist ? make_waist_stash(make_exact_stash()) : make_exact_stash(), forms_of(weights), threads);
      Chain chain;
      const Window window = Window::square(13, 12, 3, 1, 1), smaller = Window::square(13, 12, 3, 2, 1);
      chain.add(unit(b.factory, "a", 2, 8, window, true));
      chain.add(unit(b.factory, "b", 8, 6, smaller, false));
      chain.add(unit(b.factory, "c", 6, 4, Window::square(7, 6, 1, 1, 0), true));
      b.start();
      const Pass p = pass(b.rig, chain, b.rig.noise({40 * window.pixels(), 2}));
      std::map<std::string, Values> found{{"dx", p.dx}};
      for (const Param& param : b.rig.params.params())
        if (param.has_grad()) found[param.name] = p.grads(b.rig, param.name);
      if (y.empty()) {
        y = p.y;
        expected = found;
      }
      EXPECT_EQ(p.y, y);
      EXPECT_EQ(found, expected) << weights << ", waist " << waist << ", threads " << threads;
    }
  }
}

TEST(Convolution, CodedStashesMoveGradientsALittle) {
  std::vector<Pass> passes;
  for (const char* stash : {"exact", "bf16", "int8"}) {
    BuiltConv b(stash == std::string("bf16")   ? make_bf16_stash()
                : stash == std::string("int8") ? make_int8_stash(1, 0.9)
                                               : make_exact_stash());
    Chain chain;
    const Window window = Window::square(6, 5, 3, 1, 1);
    chain.add(unit(b.factory, "a", 2, 8, window, true, Activation::gelu));
    chain.add(unit(b.factory, "b", 8, 6, window, true, Activation::gelu));
    b.start();
    passes.push_back(pass(b.rig, chain, b.rig.noise({8 * window.pixels(), 2})));
  }
  for (const Pass& p : passes) {
    EXPECT_EQ(p.y, passes[0].y);
    Values apart = p.dx;
    for (size_t i = 0; i < apart.size(); ++i) apart[i] -= passes[0].dx[i];
    EXPECT_LE(length(apart), 0.03 * length(passes[0].dx));
  }
  EXPECT_NE(passes[1].dx, passes[0].dx);
  EXPECT_NE(passes[2].dx, passes[0].dx);
}

// ---- norms --------------------------------------------------------------------------------------------------------

TEST(BatchNorm, GradientsOfBatchAndFrozenStatistics) {
  for (const bool frozen : {false, true}) {
    BuiltConv b;
    BatchNorm layer("n", 5, {.eps = 1e-2, .frozen = frozen}, b.factory);
    b.start();
    for (State& state : b.rig.params.states()) {
      Values values = noise_values(5, 3, 0.4);
      for (double& value : values) value += 1;
      b.rig.set(state.value, values);
    }
    const Tensor x = b.rig.noise({14, 5});
    check_directions(b.rig, probe_of(layer, x));
    const Values before = b.state("n.running_mean");
    check_gradients(b.rig, layer, x, {.entries = 10});
    EXPECT_EQ(before == b.state("n.running_mean"), frozen);
  }
}

TEST(GroupNorm, GradientsAndFormula) {
  for (const int64_t groups : {1, 3, 6}) {
    BuiltConv b;
    constexpr int64_t kPixels = 4, kImages = 3, kChannels = 6;
    GroupNorm layer("n", kChannels, groups, kPixels, 1e-2, b.factory);
    b.start();
    const Tensor in = b.rig.noise({kImages * kPixels, kChannels});
    check_directions(b.rig, probe_of(layer, in), {.directions = 1});
    check_gradients(b.rig, layer, in, {.entries = 10});
    const Values x = b.rig.get(in), gamma = b.rig.get(b.rig.params.find("n.gamma")->value),
                 beta = b.rig.get(b.rig.params.find("n.beta")->value), y = evaluate(b.rig, layer, in);
    const int64_t wide = kChannels / groups;
    for (int64_t image = 0; image < kImages; ++image)
      for (int64_t g = 0; g < groups; ++g) {
        const auto each = [&](const auto& body) {
          for (int64_t p = 0; p < kPixels; ++p)
            for (int64_t c = g * wide; c < (g + 1) * wide; ++c)
              body(static_cast<size_t>((image * kPixels + p) * kChannels + c), static_cast<size_t>(c));
        };
        const double count = static_cast<double>(kPixels * wide);
        double mean = 0, variance = 0;
        each([&](size_t at, size_t) { mean += x[at] / count; });
        each([&](size_t at, size_t) { variance += (x[at] - mean) * (x[at] - mean) / count; });
        each([&](size_t at, size_t c) { EXPECT_NEAR(y[at], (x[at] - mean) / std::sqrt(variance + 1e-2) * gamma[c] + beta[c], 1e-13); });
      }
  }
}

TEST(BatchNorm, RunningStatisticsFollowEachBatchOnce) {
  constexpr int64_t kRows = 6;
  Values expected_mean, expected_variance;
  for (const bool checkpointed : {false, true}) {
    BuiltConv b;
    auto norm = std::make_unique<BatchNorm>("n", 2, BatchNormSpec{.momentum = 0.3}, b.factory);
    if (checkpointed)
      b.layer = std::make_unique<Checkpointed>(std::move(norm));
    else
      b.layer = std::move(norm);
    b.start();
    const Values x = noise_values(kRows * 2, 8, 3);
    const Tensor in = b.rig.put(x, {kRows, 2});
    const Values untrained = evaluate(b.rig, *b.layer, in);
    EXPECT_EQ(b.state("n.running_mean"), (Values{0, 0})) << "evaluations leave them";
    Values mean(2, 0.0), variance(2, 1.0);
    for (int step = 0; step < 2; ++step) {
      // A pass of the rig is a dry run, which must not count, and a real one.
      pass(b.rig, *b.layer, in);
      for (size_t c = 0; c < 2; ++c) {
        double average = 0, squares = 0;
        for (size_t row = 0; row < kRows; ++row) average += x[row * 2 + c] / kRows;
        for (size_t row = 0; row < kRows; ++row) squares += (x[row * 2 + c] - average) * (x[row * 2 + c] - average);
        mean[c] = 0.7 * mean[c] + 0.3 * average;
        variance[c] = 0.7 * variance[c] + 0.3 * squares / (kRows - 1);
      }
    }
    EXPECT_LE(relative_difference(b.state("n.running_mean"), mean), 1e-13);
    EXPECT_LE(relative_difference(b.state("n.running_variance"), variance), 1e-13);
    const Values y = evaluate(b.rig, *b.layer, in), gamma = b.rig.get(b.rig.params.find("n.gamma")->value),
                 beta = b.rig.get(b.rig.params.find("n.beta")->value);
    for (size_t i = 0; i < y.size(); ++i)
      EXPECT_NEAR(y[i], (x[i] - mean[i % 2]) / std::sqrt(variance[i % 2] + 1e-5) * gamma[i % 2] + beta[i % 2], 1e-12);
    EXPECT_NE(y, untrained);
  }
}

// The spread of numbers far from 0 is not lost in f32.
TEST(BatchNorm, StandsALargeMean) {
  Rig rig(DType::f32);
  LayerFactory factory(rig.params, *rig.stash);
  BatchNorm layer("n", 3, {.eps = 0}, factory);
  rig.start();
  Values x = noise_values(900 * 3, 4);
  for (double& value : x) value += 3000;
  const Values y = pass(rig, layer, rig.put(x, {900, 3})).y;
  for (size_t c = 0; c < 3; ++c) {
    double mean = 0, square = 0;
    for (size_t row = 0; row < 900; ++row) {
      mean += y[row * 3 + c] / 900;
      square += y[row * 3 + c] * y[row * 3 + c] / 900;
    }
    EXPECT_NEAR(mean, 0, 1e-3);
    EXPECT_NEAR(square, 1, 1e-3);
  }
}

// ---- pooling and shortcuts ----------------------------------------------------------------------------------------

TEST(Pooling, Gradients) {
  for (const Window& window :
       {Window::square(6, 5, 2, 2, 0), Window::square(5, 6, 3, 2, 1), Window::square(4, 4, 2, 3, 0), Window::whole(3, 4)})
    for (const bool largest : {false, true}) {
      BuiltConv b;
      if (largest)
        b.layer = std::make_unique<MaxPooling>(window);
      else
        b.layer = std::make_unique<AveragePooling>(window);
      b.start();
      // Far enough apart that a difference moves no largest one.
      Values x(static_cast<size_t>(2 * window.pixels() * 3));
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 37 % x.size()) / 16 - 2;
      check_gradients(b.rig, *b.layer, b.rig.put(x, {2 * window.pixels(), 3}), {.step = 1e-3, .tolerance = 1e-10, .entries = 30});
    }
}

TEST(ResidualSum, GradientsWithAndWithoutAShortcut) {
  for (const bool shortcut : {false, true}) {
    BuiltConv b;
    auto body = b.factory.linear("body", 4, shortcut ? 3 : 4, LinearKind::ffn_in);
    b.layer = std::make_unique<ResidualSum>(std::move(body), shortcut ? b.factory.linear("side", 4, 3, LinearKind::ffn_in) : nullptr);
    b.start();
    check_gradients(b.rig, *b.layer, b.rig.noise({5, 4}), {.step = 1e-3, .tolerance = 1e-10, .entries = 10});
  }
}

}  // namespace
}  // namespace comera::layer_test
