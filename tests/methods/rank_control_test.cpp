// Counts, caps, floor and the bookkeeping of a cut, on layers built by hand. That a cut leaves training as it is, is
// tested with real layers in truncation_test.cpp.
#include "core/methods/rank_control.h"

#include "tests/optim/harness.h"

namespace comera::test {
namespace {

// A layer of cores (r_{k-1}, l_k, r_k) with rank vectors.
RankLayer add_layer(ParamSet& params, const std::string& name, const std::vector<int64_t>& modes, const std::vector<int64_t>& ranks) {
  RankLayer layer;
  layer.name = name;
  layer.mode_sizes = modes;
  for (size_t k = 0; k < modes.size(); ++k) {
    layer.cores.push_back(
        &params.add(name + ".core." + std::to_string(k), {ranks[k], modes[k], ranks[k + 1]}, ParamKind::tt_core, ParamGroup::core, {}));
    if (k + 1 < modes.size())
      layer.ranks.push_back(&params.add(name + ".rank." + std::to_string(k), {ranks[k + 1]}, ParamKind::rank_vector, ParamGroup::rank, {}));
  }
  params.add_rank_layer(layer);
  return layer;
}

void two_layers(ParamSet& params) {
  add_layer(params, "a", {3, 4, 2}, {1, 4, 3, 1});
  params.add("bias", {5}, ParamKind::bias, ParamGroup::rest, {});
  add_layer(params, "b", {5, 6}, {1, 8, 1});
  params.add_state("range", {2}, -1);
}

constexpr double kControlTau = 0.01;

struct RankControl : testing::TestWithParam<DType> {
  Rig rig{GetParam()};
  Trainee net{rig, AdamConfig{}.make({}), two_layers};
  void ranks(const std::string& name, const Values& values) { from_host(*rig.device, net.params.find(name)->value, values); }
  void SetUp() override {
    ranks("a.rank.0", {1, 0.5, 0.009, 0.7});
    ranks("a.rank.1", {-1, 2, 0.3});
    ranks("b.rank.0", {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8});
    from_host(*rig.device, net.params.states()[0].value, {3, 4});
  }
  LiveRanks live() { return live_ranks(net.params, *rig.device, kControlTau); }
};
INSTANTIATE_TEST_SUITE_P(Types, RankControl, testing::Values(DType::f32, DType::f64));

TEST_P(RankControl, CountsAndEntries) {
  EXPECT_EQ(live(), (LiveRanks{{3, 2}, {8}}));
  const auto& layers = net.params.rank_layers();
  EXPECT_EQ(live_entries(layers[0], {3, 2}), 3 * 3 + 3 * 4 * 2 + 2 * 2);
  EXPECT_EQ(live_entries(layers[1], {8}), 5 * 8 + 8 * 6);
  EXPECT_EQ(live_entries(layers[0], {0, 2}), 0) << "a dead bond takes the whole layer's term";
  EXPECT_EQ(live_entries(layers[0], {3, 0}), 0);
}

// The released shapes at full rank (METHODS.md 1.1 to 1.4): S = 1,026,528 with the true TTM factor.
TEST(LiveEntries, ReleasedModel) {
  ParamSet params;
  const auto entries = [&](const std::string& name, const std::vector<int64_t>& modes, const std::vector<int64_t>& ranks) {
    const RankLayer layer = add_layer(params, name, modes, ranks);
    return live_entries(layer, {ranks.begin() + 1, ranks.end() - 1});
  };
  const int64_t square = entries("square", {12, 8, 8, 8, 8, 12}, {1, 12, 30, 30, 30, 12, 1});
  const int64_t up = entries("up", {12, 8, 8, 12, 16, 16}, {1, 12, 30, 30, 30, 16, 1});
  const int64_t down = entries("down", {16, 16, 12, 8, 8, 12}, {1, 16, 30, 30, 30, 12, 1});
  const int64_t table = entries("table", {64, 80, 80, 60}, {1, 32, 32, 32, 1});
  EXPECT_EQ(square, 20'448);
  EXPECT_EQ(up, 28'960);
  EXPECT_EQ(down, 28'960);
  EXPECT_EQ(table, 167'808);
  EXPECT_EQ(6 * (4 * square + up + down) + square + table, 1'026'528);
}

TEST_P(RankControl, ACapKillsTheSmallest) {
  EXPECT_FALSE(hold_ranks(net.params, *rig.device, kControlTau, {{"b.1", 8}, {"a.1", 3}}, false)) << "within its cap nothing changes";
  EXPECT_TRUE(hold_ranks(net.params, *rig.device, kControlTau, {{"b.1", 3}, {"a.2", 1}}, false));
  EXPECT_EQ(live(), (LiveRanks{{3, 1}, {3}}));
  const Values b = net.value("b.rank.0");
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(b[i], 0);
  EXPECT_NEAR(b[5], 0.6, 1e-7);
  EXPECT_EQ(net.value("a.rank.1"), (Values{-1, 2, 0})) << "what was dead stays as it was";
  EXPECT_THROW(hold_ranks(net.params, *rig.device, kControlTau, {{"a.3", 1}}, false), Error);
  EXPECT_THROW(hold_ranks(net.params, *rig.device, kControlTau, {{"c.1", 1}}, false), Error);
}

TEST_P(RankControl, TheFloorRevivesTheLargest) {
  ranks("a.rank.1", {-1, 0.004, 0.002});
  EXPECT_FALSE(hold_ranks(net.params, *rig.device, kControlTau, {}, false));
  EXPECT_EQ(live()[0][1], 0);
  EXPECT_TRUE(hold_ranks(net.params, *rig.device, kControlTau, {}, true));
  EXPECT_EQ(live()[0][1], 1);
  EXPECT_NEAR(net.value("a.rank.1")[1], kControlTau, 2e-5);
  EXPECT_FALSE(hold_ranks(net.params, *rig.device, kControlTau, {}, true));
}

TEST_P(RankControl, ACutIsDueFromItsShareOn) {
  // One of four and one of three are dead.
  EXPECT_TRUE(plan_cut(net.params, *rig.device, kControlTau, 0.34).empty());
  const BondEntries cut = plan_cut(net.params, *rig.device, kControlTau, 0.33);
  ASSERT_FALSE(cut.empty());
  EXPECT_EQ(cut, (BondEntries{{{0, 1, 3}, {1, 2}}, {{0, 1, 2, 3, 4, 5, 6, 7}}}));
  ranks("a.rank.0", {1, 1, 1, 1});
  ranks("a.rank.1", {1, 1, 1});
  EXPECT_TRUE(plan_cut(net.params, *rig.device, kControlTau, 0).empty()) << "with nothing dead there is nothing to cut";
}

TEST_P(RankControl, ExactlyTheShareIsEnough) {
  ranks("a.rank.1", {1, 1, 1});
  ASSERT_EQ(live(), (LiveRanks{{3, 3}, {8}}));  // one of four is dead, nowhere else any
  EXPECT_TRUE(plan_cut(net.params, *rig.device, kControlTau, 0.2500001).empty());
  EXPECT_FALSE(plan_cut(net.params, *rig.device, kControlTau, 0.25).empty());
}

TEST_P(RankControl, ADeadBondKeepsOneDeadEntryAndIsThenLeftAlone) {
  ranks("a.rank.1", {-1, 0.004, 0.002});
  const BondEntries cut = plan_cut(net.params, *rig.device, kControlTau, 0.125);
  EXPECT_EQ(cut[0][1], (std::vector<int64_t>{1}));
  Ctx ctx = rig.ctx();
  resize_bonds(*rig.device, rig.memory, net.params, *net.optimizer, ctx, cut);
  EXPECT_EQ(live()[0][1], 0);
  EXPECT_EQ(net.params.find("a.rank.1")->shape, (Shape{1}));
  EXPECT_TRUE(plan_cut(net.params, *rig.device, kControlTau, 0).empty());
}

TEST_P(RankControl, ACutSlicesValuesAndMomentsAlikeAndNothingElse) {
  for (uint32_t t = 1; t <= 3; ++t) {
    for (Param& param : net.params.params())
      net.set_grad(param.name, random_values(param.count(), 10 * t + static_cast<uint32_t>(param.count())));
    net.step(t);
  }
  SetUp();
  const auto state = [&](const std::string& param, const std::string& name) {
    return name == "value" ? net.value(param) : to_host(*rig.device, net.state(param, name));
  };
  std::map<std::string, Values> before;
  for (const Param& param : net.params.params())
    for (const char* name : {"value", "m", "v"}) before[param.name + name] = state(param.name, name);
  const MemoryByPurpose planned_before = net.params.planned(rig.dtype);
  const int64_t held_before = rig.memory.now().total();
  rig.memory.reset_peak();

  Ctx ctx = rig.ctx();
  resize_bonds(*rig.device, rig.memory, net.params, *net.optimizer, ctx, plan_cut(net.params, *rig.device, kControlTau, 0));

  EXPECT_LE(rig.memory.peak().total(), held_before) << "old and new memory are never held together";
  EXPECT_LT(net.params.planned(rig.dtype).total(), planned_before.total());
  EXPECT_EQ(rig.memory.now()[Purpose::tt_core], net.params.planned(rig.dtype)[Purpose::tt_core]);
  EXPECT_EQ(rig.memory.now()[Purpose::optimizer], net.optimizer->planned(rig.dtype)[Purpose::optimizer]);
  EXPECT_EQ(to_host(*rig.device, net.params.states()[0].value), (Values{3, 4}));
  EXPECT_EQ(net.params.find("a.core.1")->shape, (Shape{3, 4, 2}));
  for (const char* name : {"value", "m", "v"}) {
    for (const char* same : {"bias", "b.core.0", "b.core.1", "b.rank.0"})
      EXPECT_EQ(state(same, name), before[std::string(same) + name]) << same << " " << name;
    // Core 1 of layer a was (4, 4, 3): rows 0, 1, 3 and columns 1, 2 stay.
    const Values &old = before[std::string("a.core.1") + name], now = state("a.core.1", name);
    const int64_t rows[] = {0, 1, 3}, columns[] = {1, 2};
    for (size_t i = 0; i < 3; ++i)
      for (size_t j = 0; j < 4; ++j)
        for (size_t k = 0; k < 2; ++k)
          EXPECT_EQ(now[(i * 4 + j) * 2 + k], old[static_cast<size_t>((rows[i] * 4 + static_cast<int64_t>(j)) * 3 + columns[k])]);
    const Values &first = before[std::string("a.core.0") + name], &last = before[std::string("a.core.2") + name];
    EXPECT_EQ(state("a.core.0", name), (Values{first[0], first[1], first[3], first[4], first[5], first[7], first[8], first[9], first[11]}));
    EXPECT_EQ(state("a.core.2", name), (Values{last[2], last[3], last[4], last[5]}));
    const Values& ranks = before[std::string("a.rank.0") + name];
    EXPECT_EQ(state("a.rank.0", name), (Values{ranks[0], ranks[1], ranks[3]}));
  }
}

TEST_P(RankControl, EntriesThatCannotBeAreOurBug) {
  Ctx ctx = rig.ctx();
  const std::vector<int64_t> all{0, 1, 2, 3, 4, 5, 6, 7};
  const auto resized = [&](const std::vector<int64_t>& entries) {  // of the bond with four
    resize_bonds(*rig.device, rig.memory, net.params, *net.optimizer, ctx, {{entries, {0, 1, 2}}, {all}});
  };
  const std::map<const char*, std::vector<int64_t>> wrong{{"none", {}},
                                                          {"one twice", {0, 1, 1}},
                                                          {"out of order", {1, 0}},
                                                          {"one too far", {0, 4}},
                                                          {"only one, too far", {4}},
                                                          {"below 0", {-2, 1}},
                                                          {"a new one before an old one", {0, kNewEntry, 1}}};
  for (const auto& [what, entries] : wrong) {
    EXPECT_THROW(resized(entries), Error) << what;
    EXPECT_EQ(net.params.find("a.rank.0")->shape, (Shape{4})) << what << ": nothing has changed";
  }
  EXPECT_THROW(resize_bonds(*rig.device, rig.memory, net.params, *net.optimizer, ctx, {{{0}, {0}}}), Error) << "a layer is missing";
  EXPECT_NO_THROW(resized({0, 3, kNewEntry}));
  EXPECT_EQ(net.params.find("a.rank.0")->shape, (Shape{3}));
}

// 8-bit moments of what is not cut stay byte for byte; those of a cut core follow to map resolution.
TEST(RankControl8bit, ACutKeepsTheCodesOfOtherTensors) {
  Rig rig(DType::f32);
  const auto declare = [](ParamSet& params) {
    add_layer(params, "a", {30, 30}, {1, 200, 1});
    add_layer(params, "b", {30, 30}, {1, 200, 1});
    params.add("w", {64, 70}, ParamKind::weight, ParamGroup::rest, {});
  };
  Trainee net(rig, Adam8bitConfig{}.make({}), declare);
  for (Param& param : net.params.params()) net.set_grad(param.name, random_values(param.count(), 3));
  net.step(1);
  Values ranks(200, 1.0);
  from_host(*rig.device, net.params.find("b.rank.0")->value, ranks);
  for (size_t i = 0; i < 30; ++i) ranks[3 * i] = 0;
  from_host(*rig.device, net.params.find("a.rank.0")->value, ranks);
  Ctx ctx = rig.ctx();
  const auto moment = [&] { return by_name(net.optimizer->capture(*rig.device, ctx, *net.params.find("a.core.1"))).at("m"); };
  const Values core = moment();
  const Values b = to_host(*rig.device, net.state("b.core.0", "m8")), w = to_host(*rig.device, net.state("w", "v8"));
  resize_bonds(*rig.device, rig.memory, net.params, *net.optimizer, ctx, plan_cut(net.params, *rig.device, kControlTau, 0.125));
  EXPECT_EQ(to_host(*rig.device, net.state("b.core.0", "m8")), b);
  EXPECT_EQ(to_host(*rig.device, net.state("w", "v8")), w);
  const Values after = moment();
  size_t row = 0;
  for (size_t i = 0; i < 200; ++i) {
    if (ranks[i] == 0) continue;
    for (size_t j = 0; j < 30; ++j) EXPECT_NEAR(after[row * 30 + j], core[i * 30 + j], 0.015 * 0.4);
    ++row;
  }
  EXPECT_EQ(row * 30, after.size());
}

}  // namespace
}  // namespace comera::test
