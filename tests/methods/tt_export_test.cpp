// A layer as a dense matrix gives the layer's own outputs, before and after folding and cutting.
#include "core/layers/tt_export.h"

#include <map>

#include "tests/methods/tiny_net.h"

namespace comera::test {
namespace {

constexpr double kExportTau = 0.01;

void kill_some(TinyNet& net) {
  net.set("a.rank.0", {0.9, 0.004, 0.8});
  net.set("a.rank.1", {0.005, 1, 0.05, 0.01, -0.3, 0.6});
  net.set("a.rank.2", {2, 0.5});
}

// Outputs of the first layer, and of x W^T + b with W multiplied out.
std::pair<Values, Values> both_ways(TinyNet& net) {
  net.rig.begin(1);
  Ctx ctx = net.rig.ctx();
  ctx.training = false;
  Values ours;
  net.rig.run([&] {
    const Tensor y = net.first->forward(ctx, net.x);
    if (!ctx.ops.dry) ours = to_host(*net.rig.device, y);
  });
  const HostTensor w = dense_weight(net.params.rank_layers()[0], *net.rig.device, kExportTau);
  EXPECT_EQ(w.shape, (Shape{TinyNet::kHidden, TinyNet::kIn}));
  Values dense = product(to_host(*net.rig.device, net.x), false, w.values, true, TinyNet::kTokens, TinyNet::kIn, TinyNet::kHidden);
  const Values bias = net.get("a.bias");
  for (size_t i = 0; i < dense.size(); ++i) dense[i] += bias[i % bias.size()];
  return {ours, dense};
}

TEST(DenseWeight, IsWhatTheLayerComputes) {
  TinyNet net(AdamConfig{}.make({}));
  kill_some(net);
  const auto [ours, dense] = both_ways(net);
  EXPECT_LT(largest_difference(ours, dense), 1e-13);
}

TEST(DenseWeight, ADeadBondLeavesZeros) {
  TinyNet net(AdamConfig{}.make({}));
  net.set("a.rank.1", Values(6, 0.01));
  for (double value : dense_weight(net.params.rank_layers()[0], *net.rig.device, kExportTau).values) EXPECT_EQ(value, 0);
}

TEST(DenseWeight, PaddingIsCutOff) {
  TinyNet net(AdamConfig{}.make({}));
  const HostTensor all = dense_weight(net.params.rank_layers()[0], *net.rig.device, kExportTau);
  net.params.rank_layers()[0].rows = 7;
  net.params.rank_layers()[0].columns = 11;
  const HostTensor part = dense_weight(net.params.rank_layers()[0], *net.rig.device, kExportTau);
  ASSERT_EQ(part.shape, (Shape{7, 11}));
  for (size_t i = 0; i < 7; ++i)
    for (size_t j = 0; j < 11; ++j) EXPECT_EQ(part.values[i * 11 + j], all.values[i * 12 + j]);
}

TEST(DenseWeight, IsUnchangedByACut) {
  TinyNet net(AdamConfig{}.make({}));
  kill_some(net);
  const HostTensor before = dense_weight(net.params.rank_layers()[0], *net.rig.device, kExportTau);
  net.cut(plan_cut(net.params, *net.rig.device, kExportTau, 0));
  EXPECT_EQ(dense_weight(net.params.rank_layers()[0], *net.rig.device, kExportTau).values, before.values);
}

// Rows of the table against the definition, element by element.
TEST(DenseWeight, TableOfATtm) {
  Rig rig;
  ParamSet params;
  RankLayer layer;
  layer.name = "t";
  layer.mode_sizes = {6, 20};
  layer.in_modes = {3, 5};
  layer.out_modes = {2, 4};
  layer.rows = 15;
  layer.columns = 8;
  layer.cores = {&params.add("t.core.0", {1, 3, 2, 3}, ParamKind::tt_core, ParamGroup::core, {}),
                 &params.add("t.core.1", {3, 5, 4, 1}, ParamKind::tt_core, ParamGroup::core, {})};
  layer.ranks = {&params.add("t.rank.0", {3}, ParamKind::rank_vector, ParamGroup::rank, {})};
  params.add_rank_layer(layer);
  params.allocate(rig.memory, rig.dtype);
  const Values f = random_values(18, 1), g = random_values(60, 2), d{0.5, 0.01, 2};
  from_host(*rig.device, layer.cores[0]->value, f);
  from_host(*rig.device, layer.cores[1]->value, g);
  from_host(*rig.device, layer.ranks[0]->value, d);
  const HostTensor table = dense_weight(layer, *rig.device, kExportTau);
  ASSERT_EQ(table.shape, (Shape{15, 8}));
  for (size_t i1 = 0; i1 < 3; ++i1)
    for (size_t i2 = 0; i2 < 5; ++i2)
      for (size_t j1 = 0; j1 < 2; ++j1)
        for (size_t j2 = 0; j2 < 4; ++j2) {
          double expected = 0;
          for (size_t r : {0u, 2u}) expected += f[(i1 * 2 + j1) * 3 + r] * d[r] * g[(r * 5 + i2) * 4 + j2];
          EXPECT_NEAR(table.values[(i1 * 5 + i2) * 8 + j1 * 4 + j2], expected, 1e-14);
        }
}

TEST(Fold, TheFunctionStays) {
  TinyNet net(AdamConfig{}.make({}));
  kill_some(net);
  const Values ours = both_ways(net).first;
  const Values core = net.get("a.core.0");
  std::map<std::string, Values> folded;
  for (const HostTensor& tensor : fold(net.params, *net.rig.device, kExportTau)) {
    EXPECT_EQ(tensor.shape, net.params.find(tensor.name)->shape);
    folded[tensor.name] = tensor.values;
  }
  EXPECT_EQ(folded["a.rank.0"], (Values{1, 0, 1}));
  EXPECT_EQ(folded["a.rank.1"], (Values{0, 1, 1, 0, 0, 1}));
  EXPECT_EQ(net.get("a.core.0"), core) << "the net itself is left alone";
  for (const auto& [name, values] : folded) net.set(name, values);
  EXPECT_LT(largest_difference(both_ways(net).first, ours), 1e-13);
}

}  // namespace
}  // namespace comera::test
