// The axes combine freely: every weights x stash x optimizer trains a tiny net, takes the bytes it planned, and goes on
// bit for bit from a copy of its state. A new value of an axis is covered by its name in the config.
#include "core/config/named_methods.h"
#include "core/methods/tables.h"
#include "tests/config/choices.h"
#include "tests/methods/tiny_net.h"

namespace comera::test {
namespace {

using Combination = std::tuple<const char*, const char*, const char*>;

MethodConfig method_of(const Combination& combination) {
  MethodConfig config;
  config.weights = std::get<0>(combination);
  config.stash = std::get<1>(combination);
  config.optimizer = std::get<2>(combination);
  shrink(config);
  config.galore.gap = 7;
  config.coap.reset_every = 2;
  return config;
}

std::unique_ptr<TinyNet> make_net(MethodConfig config) {
  const double factor = take_rates_of_adamw(config);
  auto net = std::make_unique<TinyNet>(make_optimizer(config), DType::f32, config, make_stash(config));
  for (double& rate : net->rig.scalars.learning_rate) rate = 0.02 * factor;
  net->rig.scalars.learning_rate[1] = 0.002;
  return net;
}

// Every byte that a checkpoint holds: values, optimizer state, state of the run.
std::vector<std::pair<std::string, Tensor>> all_tensors(TinyNet& net) {
  std::vector<std::pair<std::string, Tensor>> out;
  for (Param& param : net.params.params()) {
    out.emplace_back(param.name, param.value);
    net.optimizer->states(param, [&](const std::string& name, Tensor& value) { out.emplace_back(param.name + "." + name, value); });
  }
  for (State& state : net.params.states()) out.emplace_back(state.name, state.value);
  return out;
}

class Combinations : public testing::TestWithParam<Combination> {};
INSTANTIATE_TEST_SUITE_P(All, Combinations,
                         testing::ValuesIn(methods_of(choices_of("method.weights"), choices_of("method.stash"),
                                                      choices_of("method.optimizer"))),
                         name_of_choices);

TEST_P(Combinations, TakesWhatItPlanned) {
  const auto net = make_net(method_of(GetParam()));
  const MemoryByPurpose params = net->params.planned(DType::f32), optimizer = net->optimizer->planned(DType::f32),
                        now = net->rig.memory.now();
  for (const Purpose purpose : {Purpose::tt_core, Purpose::dense_weight, Purpose::rank_vector, Purpose::gradient, Purpose::optimizer})
    EXPECT_EQ(now[purpose], params[purpose] + optimizer[purpose]) << name_of(purpose);
  const int64_t held = now.total();
  net->gradients(1);
  net->update();
  EXPECT_EQ(net->rig.memory.now().total(), held) << "a step takes nothing that stays";
}

TEST_P(Combinations, OverfitsATinyBatch) {
  const auto net = make_net(method_of(GetParam()));
  const double first = net->gradients(1).ce;
  net->update();
  double last = first;
  for (uint64_t t = 2; t <= 30; ++t) {
    last = net->gradients(t).ce;
    net->update();
  }
  EXPECT_LT(last, 0.7 * first);
}

TEST_P(Combinations, GoesOnBitForBitFromACopyOfItsState) {
  const auto a = make_net(method_of(GetParam())), b = make_net(method_of(GetParam()));
  for (uint64_t t = 1; t <= 10; ++t) {
    a->gradients(t);
    a->update();
  }
  const auto from = all_tensors(*a), to = all_tensors(*b);
  ASSERT_EQ(from.size(), to.size());
  for (size_t i = 0; i < from.size(); ++i) {
    ASSERT_EQ(from[i].first, to[i].first);
    from_host(*b->rig.device, to[i].second, to_host(*a->rig.device, from[i].second));
  }
  for (uint64_t t = 11; t <= 20; ++t) {
    EXPECT_EQ(a->gradients(t).loss, b->gradients(t).loss) << "step " << t;
    a->update();
    b->update();
  }
  for (size_t i = 0; i < from.size(); ++i)
    EXPECT_EQ(to_host(*a->rig.device, from[i].second), to_host(*b->rig.device, to[i].second)) << from[i].first;
}

// A cut in the middle of each tensorised combination: training goes on from the same loss.
class CutCombinations : public testing::TestWithParam<Combination> {};
INSTANTIATE_TEST_SUITE_P(Tensorised, CutCombinations,
                         testing::ValuesIn(methods_of(std::vector{"tt"}, choices_of("method.stash"), choices_of("method.optimizer"))),
                         name_of_choices);

TEST_P(CutCombinations, ACutIsNoEvent) {
  const auto net = make_net(method_of(GetParam()));
  for (uint64_t t = 1; t <= 8; ++t) {
    net->gradients(t);
    net->update();
  }
  net->set("a.rank.1", {0.005, 1, 0.9, 0.01, -0.3, 0.6});
  const double before = net->gradients(9).ce;
  net->cut(plan_cut(net->params, *net->rig.device, 0.01, 0.125));
  double last = net->gradients(9).ce;
  EXPECT_NEAR(last, before, 1e-5);
  for (uint64_t t = 9; t <= 40; ++t) {
    last = net->gradients(t).ce;
    net->update();
  }
  EXPECT_LT(last, before);
}

}  // namespace
}  // namespace comera::test
