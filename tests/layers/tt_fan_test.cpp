// Tensor trains that read the same x: together they are what they are one by one, and x is multiplied once.
#include <deque>

#include "core/layers/tt_linear.h"
#include "tests/layers/five_points.h"

namespace comera::layer_test {
namespace {

struct FanTrain {
  std::vector<int64_t> in_modes, out_modes, ranks;
  int64_t out;
};
struct FanCase {
  const char* name;
  int64_t in, tokens;
  std::vector<FanTrain> trains;
};
const FanCase kFanCases[] = {
    {"alike", 12, 7, {{{3, 4}, {4, 3}, {1, 3, 5, 3, 1}, 12}, {{3, 4}, {4, 3}, {1, 3, 5, 3, 1}, 12}, {{3, 4}, {4, 3}, {1, 3, 5, 3, 1}, 12}}},
    {"other_ranks", 12, 7, {{{3, 4}, {4, 3}, {1, 2, 1, 3, 1}, 12}, {{3, 4}, {2, 6}, {1, 3, 5, 2, 1}, 12}}},
    {"other_modes", 12, 6, {{{12}, {5}, {1, 4, 1}, 5}, {{2, 3, 2}, {7}, {1, 2, 3, 2, 1}, 7}, {{3, 4}, {2, 2, 2}, {1, 2, 3, 2, 2, 1}, 8}}},
    {"padded", 11, 5, {{{3, 4}, {4, 3}, {1, 3, 4, 3, 1}, 11}, {{12}, {4, 4}, {1, 3, 2, 1}, 13}}},
    {"many_ranks", 2, 3, {{{2}, {3}, {1, 21, 1}, 3}, {{2}, {2, 2}, {1, 9, 3, 1}, 4}}},  // more than modes can use
    {"one", 6, 4, {{{2, 3}, {3, 2}, {1, 2, 3, 2, 1}, 6}}},
};

struct BuiltFan {
  explicit BuiltFan(const FanCase& c, DType type = DType::f64, std::unique_ptr<Stash> stash = nullptr)
      : rig(type, std::move(stash)), factory(rig.params, *rig.stash) {
    std::vector<TTLinear*> all;
    for (const FanTrain& train : c.trains) {
      TTShape shape;
      shape.in_modes = train.in_modes;
      shape.out_modes = train.out_modes;
      shape.ranks = train.ranks;
      shape.in = c.in;
      shape.out = train.out;
      outs.push_back(train.out);
      layers.emplace_back("l" + std::to_string(all.size()), shape, LinearKind::attention, factory, TTOrder::merged);
      all.push_back(&layers.back());
    }
    fan = std::make_unique<TTFan>(all);
    rig.start();
    for (const RankLayer& train : rig.params.rank_layers())
      for (Param* rank : train.ranks) rig.set(rank->value, noise_values(rank->count(), 3, 1));
    x = rig.noise({c.tokens, c.in});
  }

  // All y side by side. `shared`: by the fan, else one by one.
  Probe probe(bool shared, const Tensor& into = {}) {
    int64_t width = 0;
    for (int64_t out : outs) width += out;
    return {[this, shared, width](Ctx& ctx) {
              TensorList y;
              if (shared)
                y = fan->forward(ctx, x);
              else
                for (TTLinear& layer : layers) y.push_back(layer.forward(ctx, x));
              Tensor all = ctx.temp({x.size(0), width}, "all");
              each(all, [&](size_t i, const Mat& columns) { copy(ctx, columns, y[i]); });
              return all;
            },
            [this, shared, into](Ctx& ctx, Tensor dy) {
              TensorList gradients;
              each(dy, [&](size_t, const Mat& columns) {
                gradients.push_back(ctx.temp({x.size(0), columns.cols}, "one"));
                copy(ctx, gradients.back(), columns);
              });
              dy = {};
              Tensor dx;
              if (into) copy(ctx, dx = ctx.temp(into.shape(), "into"), into);
              if (shared) return fan->backward(ctx, std::move(gradients), std::move(dx));
              for (size_t i = layers.size(); i-- > 0;) dx = layers[i].backward(ctx, std::move(gradients[i]), std::move(dx));
              return dx;
            },
            x};
  }
  template <class Body>
  void each(const Tensor& all, const Body& body) {
    int64_t first = 0;
    for (size_t i = 0; i < outs.size(); first += outs[i++]) body(i, Mat(all).columns(first, outs[i]));
  }
  static void copy(Ctx& ctx, const Mat& y, const Mat& x) {
    const CopyArgs one[] = {{y, x}};
    ctx.ops.copy(one);
  }

  Rig rig;
  LayerFactory factory;
  std::vector<int64_t> outs;
  std::deque<TTLinear> layers;
  std::unique_ptr<TTFan> fan;
  Tensor x;
};

class TTFanCase : public testing::TestWithParam<FanCase> {};
INSTANTIATE_TEST_SUITE_P(Shapes, TTFanCase, testing::ValuesIn(kFanCases), [](const auto& info) { return std::string(info.param.name); });

TEST_P(TTFanCase, GradientsAgreeWithFiniteDifferences) {
  BuiltFan b(GetParam());
  check_gradients(b.rig, b.probe(true), {.step = 1e-3, .tolerance = 1e-9});
}

TEST_P(TTFanCase, EqualsItsLayersOneByOne) {
  const FanCase& c = GetParam();
  for (const bool add : {false, true}) {
    BuiltFan together(c), apart(c);
    const auto into = [&](BuiltFan& b) { return add ? b.rig.noise(b.x.shape(), 9) : Tensor(); };
    const Pass a = pass(together.rig, together.probe(true, into(together))), b = pass(apart.rig, apart.probe(false, into(apart)));
    EXPECT_LE(relative_difference(a.y, b.y), 1e-14);
    EXPECT_LE(relative_difference(a.dx, b.dx), 1e-14);
    for (const Param& param : apart.rig.params.params())
      EXPECT_LE(relative_difference(a.grads(together.rig, param.name), b.grads(apart.rig, param.name), 1e-12), 1e-13) << param.name;
    double more = 0;  // multiply-adds of the columns behind each half: in T1, V and dX; and in Y, T2 and U1
    for (const FanTrain& train : c.trains) {
      const int64_t rank = train.ranks[train.in_modes.size()], rest = TTFan::width(rank) - rank;
      if (c.trains.size() > 1) more += static_cast<double>(c.tokens * (3 * rest * c.in + (3 * rest - 2) * train.out));
    }
    EXPECT_EQ(a.work.gemm_flops - b.work.gemm_flops, 2 * more);
  }
}

TEST_P(TTFanCase, ReadsXTwiceAndWritesDxOnce) {
  const FanCase& c = GetParam();
  int64_t products[2];
  for (const bool shared : {false, true}) {
    BuiltFan b(c);
    OpProfile profile;
    HostClock clock;
    profile.start(clock, 0, 0);
    b.rig.device->ops().profile = &profile;
    pass(b.rig, b.probe(shared));
    b.rig.device->ops().profile = nullptr;
    products[shared] = profile.ops["gemm"].calls + profile.ops["linear"].calls;
  }
  // Besides, one list of products for each turn of the merges, and of the sweeps.
  int64_t one_by_one = 0, together = 0;
  for (const FanTrain& train : c.trains) {
    const auto lists = static_cast<int64_t>(2 * (std::max(train.in_modes.size(), train.out_modes.size()) - 1));
    one_by_one += lists;
    together = std::max(together, lists);
  }
  EXPECT_EQ(products[0] - products[1], 3 * (static_cast<int64_t>(c.trains.size()) - 1) + one_by_one - together);
}

TEST_P(TTFanCase, AnEvaluationIsTheSameFunction) {
  BuiltFan b(GetParam());
  const Probe probe = b.probe(true);
  const Values y = pass(b.rig, probe).y;
  Values evaluated;
  b.rig.run(
      [&](Ctx& ctx) {
        const Tensor out = probe.forward(ctx);
        if (!ctx.ops.dry) evaluated = b.rig.get(out);
      },
      false);
  EXPECT_EQ(evaluated, y);
}

// What is kept of x is kept once, and restored once.
TEST(TTFan, OnlyTheInputCoresFeelAnInexactStash) {
  BuiltFan exact(kFanCases[0]), coded(kFanCases[0], DType::f64, make_int8_stash(1, 0.9));
  const Pass a = pass(exact.rig, exact.probe(true)), b = pass(coded.rig, coded.probe(true));
  EXPECT_EQ(a.y, b.y);
  EXPECT_EQ(a.dx, b.dx);
  for (const Param& param : exact.rig.params.params()) {
    const double difference = relative_difference(b.grads(coded.rig, param.name), a.grads(exact.rig, param.name));
    const std::string what = param.name.substr(2);
    const bool input_side = what == ".core.0" || what == ".core.1" || what == ".rank.0" || what == ".rank.1";
    EXPECT_LE(difference, input_side ? 0.05 : 0) << param.name;
    EXPECT_TRUE(!input_side || difference > 0) << param.name << " does not see x";
  }
}

}  // namespace
}  // namespace comera::layer_test
