// Cutting dead slices out of memory must not change training (METHODS.md 1.6): a cut and an uncut net side by side. The
// only difference allowed is rounding: products over fewer terms add in another order.
#include <sstream>

#include "tests/methods/tiny_net.h"

namespace comera::test {
namespace {

constexpr double kCutTau = 0.01;

// What of an uncut parameter's numbers is still there after the cut.
Values cut_like(const TinyNet& net, const std::string& name, const Values& values, const BondEntries& keep) {
  for (size_t l = 0; l < keep.size(); ++l) {
    const RankLayer& layer = net.params.rank_layers()[l];
    for (size_t k = 0; k < layer.cores.size(); ++k) {
      const auto all = [](int64_t n) {
        std::vector<int64_t> out;
        for (int64_t i = 0; i < n; ++i) out.push_back(i);
        return out;
      };
      Values out;
      if (layer.cores[k]->name == name) {
        const Shape& shape = layer.cores[k]->shape;
        for (int64_t a : k > 0 ? keep[l][k - 1] : all(1))
          for (int64_t i = 0; i < shape[1]; ++i)
            for (int64_t b : k < layer.ranks.size() ? keep[l][k] : all(1))
              out.push_back(values[static_cast<size_t>((a * shape[1] + i) * shape[2] + b)]);
        return out;
      }
      if (k < layer.ranks.size() && layer.ranks[k]->name == name) {
        for (int64_t b : keep[l][k]) out.push_back(values[static_cast<size_t>(b)]);
        return out;
      }
    }
  }
  return values;
}

// An entry that dies in training was falling, so its moment never lifts it again. One killed by hand may have been
// rising: without a first moment it stays where it was put.
void stop_the_dead(TinyNet& net) {
  for (const RankLayer& layer : net.params.rank_layers())
    for (Param* ranks : layer.ranks)
      net.optimizer->states(*ranks, [&](const std::string& name, Tensor& state) {
        if (name != "m") return;
        Values m = to_host(*net.rig.device, state);
        const Values d = to_host(*net.rig.device, ranks->value);
        for (size_t i = 0; i < m.size(); ++i)
          if (d[i] <= kCutTau) m[i] = 0;
        from_host(*net.rig.device, state, m);
      });
}

struct CutCase {
  const char* name;
  bool dead_bond, late;
};
class Truncation : public testing::TestWithParam<CutCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, Truncation,
                         testing::Values(CutCase{"early", false, false}, CutCase{"late", false, true}, CutCase{"dead_bond", true, false},
                                         CutCase{"dead_bond_late", true, true}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Truncation, TwoHundredStepsAreTheSame) {
  TinyNet whole(AdamConfig{}.make({})), cut(AdamConfig{}.make({}));
  for (TinyNet* net : {&whole, &cut}) {
    net->rig.scalars.late = GetParam().late;
    net->rig.scalars.loss_target = 0.5;
    net->rig.scalars.size_target = 60;
    net->rig.scalars.learning_rate[1] = 0.003;
    // Moments first, so that they are cut too; then entries die.
    for (uint64_t t = 1; t <= 5; ++t) {
      net->gradients(t);
      net->update();
    }
    net->set("a.rank.0", {0.9, 0.004, 0.8});
    net->set("a.rank.1", GetParam().dead_bond ? Values{0.001, 0.003, 0.002, -4, 0, 0.0099} : Values{0.005, 1, 0.05, 0.01, -0.3, 0.6});
    net->set("b.rank.1", {0.7, 0.0, 1.1, 0.9, 0.009});
    stop_the_dead(*net);
  }
  const StepResults before = whole.gradients(6);
  const BondEntries plan = plan_cut(cut.params, *cut.rig.device, kCutTau, 0.125);
  ASSERT_FALSE(plan.empty());
  EXPECT_EQ(plan[0][1], GetParam().dead_bond ? (std::vector<int64_t>{5}) : (std::vector<int64_t>{1, 2, 5}));
  const int64_t held = cut.params.count();
  cut.cut(plan);
  EXPECT_LT(cut.params.count(), held);
  const StepResults after = cut.gradients(6);
  EXPECT_EQ(after.entries, before.entries);
  EXPECT_EQ(live_ranks(cut.params, *cut.rig.device, kCutTau), live_ranks(whole.params, *whole.rig.device, kCutTau));
  EXPECT_EQ(before.entries - live_entries(whole.params.rank_layers()[1], {2, 3, 2}),
            GetParam().dead_bond ? 0 : live_entries(whole.params.rank_layers()[0], {2, 3, 2}));

  double largest = 0;
  for (uint64_t t = 6; t <= 205; ++t) {
    const StepResults a = whole.gradients(t), b = cut.gradients(t);
    largest = std::max({largest, std::fabs(a.loss - b.loss), std::fabs(a.rho - b.rho), largest_difference(whole.logits, cut.logits)});
    ASSERT_EQ(a.entries, b.entries) << "step " << t;
    ASSERT_EQ(a.lambda, b.lambda) << "step " << t;
    for (const Param& param : whole.params.params()) {
      const Values live = cut_like(whole, param.name, to_host(*whole.rig.device, param.grad), plan);
      largest = std::max(largest, largest_difference(live, to_host(*cut.rig.device, cut.params.find(param.name)->grad)));
    }
    whole.update();
    cut.update();
  }
  for (const Param& param : whole.params.params())
    largest = std::max(largest,
                       largest_difference(cut_like(whole, param.name, to_host(*whole.rig.device, param.value), plan), cut.get(param.name)));
  EXPECT_LT(largest, 1e-12);
  std::ostringstream text;
  text << largest;
  RecordProperty("largest_difference", text.str());
}

// A cut in the middle of float training is no visible event either.
TEST(TruncationFloat, TheLossGoesOnWhereItWas) {
  TinyNet net(AdamConfig{}.make({}), DType::f32);
  for (uint64_t t = 1; t <= 20; ++t) {
    net.gradients(t);
    net.update();
  }
  net.set("a.rank.1", {0.005, 1, 0.5, 0.01, -0.3, 0.6});
  const double before = net.gradients(21).loss;
  net.cut(plan_cut(net.params, *net.rig.device, kCutTau, 0.125));
  EXPECT_NEAR(net.gradients(21).loss, before, 1e-6);
}

}  // namespace
}  // namespace comera::test
