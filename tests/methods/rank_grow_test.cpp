// Bonds that get entries back must leave the function as it is, everything old with it, and the new entries must learn.
#include "core/methods/rank_grow.h"

#include "core/base/draw.h"
#include "tests/methods/tiny_net.h"

namespace comera::test {
namespace {

constexpr double kGrowthTau = 0.01;
constexpr double kEps = 2.220446049250313e-16;

// Layer a has bonds of 3, 6 and 2 entries, layer b of 2, 5 and 2.
const LiveRanks kInitial{{3, 6, 2}, {2, 5, 2}};

// A net that has trained a little and lost entries: a keeps 2, 3 and 2 alive, b 2, 3 and 2. `dead_bond`: a's second keeps
// none.
void lose_entries(TinyNet& net, bool dead_bond = false) {
  net.rig.scalars.threshold = kGrowthTau;
  for (uint64_t t = 1; t <= 5; ++t) {
    net.gradients(t);
    net.update();
  }
  net.set("a.rank.0", {0.9, 0.004, 0.8});
  net.set("a.rank.1", dead_bond ? Values{0.001, 0.003, 0.002, -4, 0, 0.0099} : Values{0.005, 1, 0.05, 0.01, -0.3, 0.6});
  net.set("b.rank.1", {0.7, 0.0, 1.1, 0.9, 0.009});
}

LiveRanks live(TinyNet& net) { return live_ranks(net.params, *net.rig.device, kGrowthTau); }
BondEntries plan(TinyNet& net, const LiveRanks& wanted) { return plan_growth(net.params, *net.rig.device, kGrowthTau, wanted); }

// Where each entry of a parameter was before it grew: its index then, or -1 for one that is new.
std::vector<int64_t> origins(const TinyNet& net, const Param& param, const BondEntries& bonds, const std::map<std::string, Shape>& before) {
  const Shape old = before.at(param.name);
  std::vector<int64_t> rows, columns;
  for (int64_t i = 0; i < old[0]; ++i) rows.push_back(i);
  for (int64_t i = 0; i < old[-1]; ++i) columns.push_back(i);
  for (size_t l = 0; l < bonds.size(); ++l) {
    const RankLayer& layer = net.params.rank_layers()[l];
    for (size_t bond = 0; bond < layer.ranks.size(); ++bond) {
      if (&param == layer.ranks[bond] || &param == layer.cores[bond]) columns = bonds[l][bond];
      if (&param == layer.cores[bond + 1]) rows = bonds[l][bond];
    }
  }
  std::vector<int64_t> out;
  if (old.rank() == 1) return columns;
  const int64_t middle = old.count() / (old[0] * old[-1]);
  for (const int64_t row : rows)
    for (int64_t j = 0; j < middle; ++j)
      for (const int64_t column : columns) out.push_back(row < 0 || column < 0 ? -1 : (row * middle + j) * old[-1] + column);
  return out;
}

std::map<std::string, Shape> shapes(const TinyNet& net) {
  std::map<std::string, Shape> out;
  for (const Param& param : net.params.params()) out[param.name] = param.shape;
  return out;
}

// The matrix of a layer, entry by entry, each sum in the order of the bond's entries.
Values dense(TinyNet& net, size_t index) {
  const RankLayer& layer = net.params.rank_layers()[index];
  Values rows{1};  // (all indices so far, r)
  int64_t rank = 1;
  for (size_t k = 0; k < layer.cores.size(); ++k) {
    const Values core = net.get(layer.cores[k]->name);
    const int64_t mode = layer.mode_sizes[k], after = layer.cores[k]->shape[-1], count = static_cast<int64_t>(rows.size()) / rank;
    Values d(static_cast<size_t>(after), 1.0);
    if (k < layer.ranks.size()) d = net.get(layer.ranks[k]->name);
    Values next;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t j = 0; j < mode; ++j)
        for (int64_t b = 0; b < after; ++b) {
          const double factor = k == layer.ranks.size() ? 1 : d[static_cast<size_t>(b)] > kGrowthTau ? d[static_cast<size_t>(b)] : 0;
          double sum = 0;
          for (int64_t a = 0; a < rank; ++a)
            sum += rows[static_cast<size_t>(i * rank + a)] * (core[static_cast<size_t>((a * mode + j) * after + b)] * factor);
          next.push_back(sum);
        }
    rows = std::move(next);
    rank = after;
  }
  return rows;
}

struct GrowthCase {
  const char* name;
  bool dead_bond;
  LiveRanks wanted;
};
class Growth : public testing::TestWithParam<GrowthCase> {};
INSTANTIATE_TEST_SUITE_P(Cases, Growth,
                         testing::Values(GrowthCase{"one_bond", false, {{2, 5, 2}, {2, 3, 2}}},
                                         GrowthCase{"neighbours", false, {{3, 6, 2}, {2, 3, 2}}},
                                         GrowthCase{"everything", false, {{3, 6, 4}, {2, 5, 3}}},
                                         GrowthCase{"beyond_the_start", false, {{2, 9, 2}, {2, 3, 2}}},
                                         GrowthCase{"dead_bond", true, {{2, 2, 2}, {2, 3, 2}}},
                                         GrowthCase{"dead_bond_and_neighbour", true, {{3, 3, 3}, {2, 3, 2}}}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Growth, LeavesTheFunctionAndEverythingOldAsTheyWere) {
  TinyNet net(AdamConfig{}.make({}));
  lose_entries(net, GetParam().dead_bond);
  net.gradients(6);
  const Values logits = net.logits, first = dense(net, 0), second = dense(net, 1);
  const std::map<std::string, Shape> before = shapes(net);
  std::map<std::string, Values> values, grads, m, v;
  const auto moment = [&](const Param& param, const char* name) {
    Values out;
    net.optimizer->states(const_cast<Param&>(param), [&](const std::string& key, Tensor& state) {
      if (key == name) out = to_host(*net.rig.device, state);
    });
    return out;
  };
  for (const Param& param : net.params.params()) {
    values[param.name] = net.get(param.name);
    grads[param.name] = to_host(*net.rig.device, param.grad);
    m[param.name] = moment(param, "m");
    v[param.name] = moment(param, "v");
  }
  const BondEntries bonds = plan(net, GetParam().wanted);
  ASSERT_FALSE(bonds.empty());
  net.grow(bonds, 6);

  EXPECT_EQ(live(net), GetParam().wanted);
  EXPECT_EQ(dense(net, 0), first) << "added in the order of the entries, not one bit differs";
  EXPECT_EQ(dense(net, 1), second);
  for (const Param& param : net.params.params()) {
    const std::vector<int64_t> from = origins(net, param, bonds, before);
    const Values value = net.get(param.name), mean = moment(param, "m"), square = moment(param, "v");
    ASSERT_EQ(from.size(), value.size()) << param.name;
    for (size_t i = 0; i < from.size(); ++i) {
      const auto old = static_cast<size_t>(from[i]);
      if (from[i] >= 0) {
        EXPECT_EQ(value[i], values[param.name][old]) << param.name << " " << i;
      }
      EXPECT_EQ(mean[i], from[i] < 0 ? 0 : m[param.name][old]) << param.name << " " << i;
      EXPECT_EQ(square[i], from[i] < 0 ? 0 : v[param.name][old]) << param.name << " " << i;
    }
  }
  for (const Purpose purpose : {Purpose::tt_core, Purpose::rank_vector, Purpose::gradient, Purpose::optimizer})
    EXPECT_EQ(net.rig.memory.now()[purpose], net.params.planned(DType::f64)[purpose] + net.optimizer->planned(DType::f64)[purpose]);

  net.gradients(6);
  // Two layers of sums over at most 12 * 6 terms each, of order 1.
  double size = 1;
  for (const double logit : logits) size = std::max(size, std::fabs(logit));
  EXPECT_LE(largest_difference(logits, net.logits), 2 * 2 * 72 * kEps * size);
  for (const Param& param : net.params.params()) {
    if (param.kind == ParamKind::rank_vector) continue;  // the penalty is shared among more entries
    const std::vector<int64_t> from = origins(net, param, bonds, before);
    const Values grad = to_host(*net.rig.device, param.grad);
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] >= 0) {
        EXPECT_NEAR(grad[i], grads[param.name][static_cast<size_t>(from[i])], 1e-13) << param.name << " " << i;
      }
  }
}

TEST_P(Growth, TheGradientOfEveryNewEntryIsThatOfTheLoss) {
  TinyNet net(AdamConfig{}.make({}));
  net.rig.scalars.rank_weight = 0;  // the loss alone: the penalty's gradient is tested elsewhere
  lose_entries(net, GetParam().dead_bond);
  const std::map<std::string, Shape> before = shapes(net);
  const BondEntries bonds = plan(net, GetParam().wanted);
  net.grow(bonds, 6);
  net.gradients(6);
  std::map<std::string, Values> grads;
  for (const Param& param : net.params.params()) grads[param.name] = to_host(*net.rig.device, param.grad);
  double zero_side = 0;
  for (const Param& param : net.params.params()) {
    const std::vector<int64_t> from = origins(net, param, bonds, before);
    const Values values = net.get(param.name);
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] >= 0) continue;
      constexpr double h = 1e-5;
      Values moved = values;
      moved[i] = values[i] + h;
      net.set(param.name, moved);
      const double above = net.gradients(6).ce;
      moved[i] = values[i] - h;
      net.set(param.name, moved);
      const double below = net.gradients(6).ce;
      net.set(param.name, values);
      EXPECT_NEAR(grads[param.name][i], (above - below) / (2 * h), 1e-8) << param.name << " " << i;
      if (values[i] == 0) zero_side = std::max(zero_side, std::fabs(grads[param.name][i]));
      if (param.kind == ParamKind::rank_vector) {
        EXPECT_EQ(grads[param.name][i], 0) << "what D scales goes into zeros";
      }
    }
  }
  EXPECT_GT(zero_side, 1e-3) << "with no gradient there the new entries would never learn";
}

TEST_P(Growth, EveryNewSliceLearns) {
  TinyNet net(AdamConfig{}.make({}));
  net.rig.scalars.rank_weight = 0;
  lose_entries(net, GetParam().dead_bond);
  const std::map<std::string, Shape> before = shapes(net);
  const BondEntries bonds = plan(net, GetParam().wanted);
  net.grow(bonds, 6);
  std::map<std::string, Values> start;
  for (const Param& param : net.params.params()) start[param.name] = net.get(param.name);
  const double loss = net.gradients(6).ce;
  for (uint64_t t = 6; t <= 15; ++t) {
    net.gradients(t);
    net.update();
  }
  EXPECT_LT(net.gradients(16).ce, loss);
  for (const Param& param : net.params.params()) {
    const std::vector<int64_t> from = origins(net, param, bonds, before);
    const Values now = net.get(param.name);
    for (size_t i = 0; i < from.size(); ++i)
      if (from[i] < 0) {
        EXPECT_NE(now[i], start[param.name][i]) << param.name << " " << i << " stands still";
      }
  }
}

TEST(GrowthValues, AreDrawnFromSeedStepAndName) {
  const auto grown = [](uint64_t step) {
    TinyNet net(AdamConfig{}.make({}));
    lose_entries(net);
    net.grow(plan(net, kInitial), step);
    return std::vector<Values>{net.get("a.core.0"), net.get("a.core.1"), net.get("a.core.2"), net.get("a.rank.1"), net.get("b.core.1")};
  };
  const std::vector<Values> one = grown(6), again = grown(6), later = grown(7);
  EXPECT_EQ(one, again);
  EXPECT_NE(one[1], later[1]);
  EXPECT_EQ(one[3], (Values{1, 0.05, 0.6, 0.6, 0.6, 0.6})) << "D of a new entry is the median of the live ones";
  EXPECT_NE(one[1], one[4]);
  TinyNet low(AdamConfig{}.make({}));
  lose_entries(low);
  low.set("a.rank.0", {0.011, 0, 0});
  low.set("a.rank.2", {0, 0});
  low.set("b.rank.1", {0.2, 0, 0.8, 0.4, 0.5});
  low.grow(plan(low, kInitial), 6);
  EXPECT_EQ(low.get("a.rank.0"), (Values{0.011, 0.02, 0.02})) << "at least twice the threshold";
  EXPECT_EQ(low.get("a.rank.2"), (Values{1, 1})) << "of a dead bond";
  EXPECT_EQ(low.get("b.rank.1"), (Values{0.2, 0.8, 0.4, 0.5, 0.45})) << "of an even number the mean of the two in the middle";
}

// The new columns of a core are as large as its old ones in the root mean square; rows that are new themselves, and zero as yet,
// do not count.
TEST(GrowthValues, NewColumnsAreAsLargeAsTheOldOnes) {
  for (const bool neighbours : {false, true}) {
    TinyNet net(AdamConfig{}.make({}));
    lose_entries(net);
    net.grow(plan(net, neighbours ? LiveRanks{{3, 6, 2}, {2, 3, 2}} : LiveRanks{{2, 6, 2}, {2, 3, 2}}), 6);
    // (2 or 3, 4, 6) after (2 of 3 alive, 4, 3 of 6 alive): 2 old rows where the bond before grew, else its 3 entries.
    const Param& core = *net.params.find("a.core.1");
    const size_t rows = static_cast<size_t>(core.shape[0]), old_rows = neighbours ? 2 : rows, old_columns = 3, columns = 6;
    ASSERT_EQ(core.shape, (Shape{static_cast<int64_t>(rows), 4, 6}));
    const Values values = net.get("a.core.1");
    double squares = 0;
    for (size_t row = 0; row < old_rows * 4; ++row)
      for (size_t column = 0; column < old_columns; ++column) squares += values[row * columns + column] * values[row * columns + column];
    const double rms = std::sqrt(squares / static_cast<double>(old_rows * 4 * old_columns));
    EXPECT_GT(rms, 0);
    const Values normals = draw_normals({7, 6, site_of("a.core.1")}, rows * 4 * (columns - old_columns));
    size_t next = 0;
    for (size_t row = 0; row < rows * 4; ++row)
      for (size_t column = 0; column < columns; ++column) {
        if (column >= old_columns) {
          EXPECT_NEAR(values[row * columns + column], rms * normals[next++], 1e-14) << row << " " << column;
        } else if (row >= old_rows * 4) {
          EXPECT_EQ(values[row * columns + column], 0) << row << " " << column;
        }
      }
  }
}

// 8-bit moments: what is not touched keeps its codes, what is new is 0, what is sliced follows to map resolution.
TEST(Growth8bit, MomentsFollow) {
  TinyNet net(Adam8bitConfig{.min_size = 30, .embeddings = true}.make({}), DType::f32);
  lose_entries(net);
  Ctx ctx = net.rig.ctx();
  const auto moments = [&](const char* name) { return by_name(net.optimizer->capture(*net.rig.device, ctx, *net.params.find(name))); };
  const auto core = moments("a.core.1"), other = moments("b.core.1");
  const std::map<std::string, Shape> before = shapes(net);
  const BondEntries bonds = plan(net, {{3, 6, 2}, {2, 3, 2}});
  net.grow(bonds, 6);
  EXPECT_EQ(moments("b.core.1"), other);
  auto now = moments("a.core.1");
  const std::vector<int64_t> from = origins(net, *net.params.find("a.core.1"), bonds, before);
  ASSERT_EQ(now.size(), 2u);
  for (const auto& [which, values] : core) {
    double largest = 0;
    for (const double value : values) largest = std::max(largest, std::fabs(value));
    EXPECT_GT(largest, 0);
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] < 0) {
        EXPECT_EQ(now[which][i], 0) << which << " " << i;
      } else {
        EXPECT_NEAR(now[which][i], values[static_cast<size_t>(from[i])], 0.015 * largest) << which << " " << i;
      }
    }
  }
}

// CAME neither clips its last division nor corrects its moments later: moments of 0 would let a new corner of a core leap.
TEST(GrowthCame, NewEntriesTakeNoLeaps) {
  TinyNet net(CameConfig{}.make({}));
  for (double& rate : net.rig.scalars.learning_rate) rate = 1e-4;
  uint64_t t = 0;
  const auto largest_step = [&](int steps) {
    double largest = 0;
    for (int i = 0; i < steps; ++i) {
      std::map<std::string, Values> before;
      for (const Param& param : net.params.params()) before[param.name] = net.get(param.name);
      net.gradients(++t);
      net.update();
      for (const Param& param : net.params.params())
        largest = std::max(largest, largest_difference(net.get(param.name), before[param.name]) / 1e-4);
    }
    return largest;
  };
  largest_step(20);
  const double before = largest_step(20);
  net.grow(plan(net, {{3, 9, 4}, {2, 8, 4}}), t + 1);
  EXPECT_LT(largest_step(20), 2 * before);
}

TEST(GrownToSize, ComesNearAndNotOver) {
  TinyNet net(AdamConfig{}.make({}));
  const auto& layers = net.params.rank_layers();
  const auto size = [&](const LiveRanks& live) {
    return static_cast<double>(live_entries(layers[0], live[0]) + live_entries(layers[1], live[1]));
  };
  const LiveRanks few{{1, 1, 1}, {1, 1, 1}};
  LiveRanks last = few;
  for (double entries = size(few); entries < size(kInitial) + 20; entries += 1) {
    const LiveRanks grown = grown_to_size(layers, few, kInitial, entries);
    ASSERT_LE(size(grown), entries);
    for (size_t i = 0; i < grown.size(); ++i)
      for (size_t bond = 0; bond < grown[i].size(); ++bond) {
        EXPECT_GE(grown[i][bond], few[i][bond]);
        EXPECT_LE(grown[i][bond], kInitial[i][bond]);
        LiveRanks more = grown;
        ++more[i][bond];
        if (more[i][bond] <= kInitial[i][bond]) {
          EXPECT_GT(size(more), entries) << "one more entry would have fitted";
        }
      }
    EXPECT_EQ(grown, grown_to_size(layers, few, kInitial, entries));
    last = grown;
  }
  EXPECT_EQ(last, kInitial);
  EXPECT_EQ(grown_to_size(layers, kInitial, kInitial, 10), kInitial) << "over the size already: nothing is taken here";
  // Half of what each lost: 1 of 2, 2 of 5, 0 of 1; 0 of 1, 2 of 4, 0 of 1. No room for one more is left.
  const LiveRanks half{{2, 3, 1}, {1, 3, 1}};
  EXPECT_EQ(grown_to_size(layers, few, kInitial, size(half)), half);
  EXPECT_EQ(grown_to_size(layers, few, {{1, 1, 1}, {2, 5, 2}}, 1e9), (LiveRanks{{1, 1, 1}, {2, 5, 2}})) << "a locked layer";
  EXPECT_EQ(grown_to_size(layers, {{4, 1, 1}, {1, 1, 1}}, kInitial, 1e9), (LiveRanks{{4, 6, 2}, {2, 5, 2}})) << "over its limit";
  EXPECT_EQ(grown_to_size(layers, {{0, 1, 1}, {1, 1, 1}}, kInitial, 1e9), kInitial) << "dead layers come back";
}

// At exactly the size as with one entry to spare.
TEST(GrownToSize, BondsOfADeadLayerTakeNoRoom) {
  TinyNet net(AdamConfig{}.make({}));
  const auto& layers = net.params.rank_layers();
  const LiveRanks dead{{0, 1, 1}, {1, 1, 1}}, back{{0, 6, 2}, {1, 1, 1}};
  for (const double more : {0, 1}) EXPECT_EQ(grown_to_size(layers, dead, kInitial, total_entries(layers, dead) + more), back) << more;
}

TEST(GrownToSize, NoRankIsLargerThanItsModesCanUse) {
  TinyNet net(AdamConfig{}.make({}));
  const RankLayer& a = net.params.rank_layers()[0];  // modes 3, 4, 5, 2
  EXPECT_EQ(rank_limit(a, 0), 3);
  EXPECT_EQ(rank_limit(a, 1), 10);
  EXPECT_EQ(rank_limit(a, 2), 2);
  RankLayer huge;
  huge.mode_sizes = {1 << 20, 1 << 20, 1 << 20, 1 << 20};
  EXPECT_EQ(rank_limit(huge, 1), int64_t{1} << 31) << "no overflow";
}

}  // namespace
}  // namespace comera::test
