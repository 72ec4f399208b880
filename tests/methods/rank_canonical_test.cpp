// The canonical form computes the same, and sorts a bond by what its entries carry.
#include "core/methods/rank_canonical.h"

#include "core/layers/tt_export.h"
#include "tests/methods/tiny_net.h"

namespace comera::test {
namespace {

constexpr double kTau = 0.01;

void make_canonical(TinyNet& net) {
  Ctx ctx = net.rig.ctx();
  comera::make_canonical(net.params, *net.optimizer, *net.rig.device, ctx, kTau);
}

Values weight(TinyNet& net, size_t layer = 0) { return dense_weight(net.params.rank_layers()[layer], *net.rig.device, kTau).values; }

double norm(const Values& values) {
  double squares = 0;
  for (const double value : values) squares += value * value;
  return std::sqrt(squares);
}

// How far the first layer's matrix moves when one entry of a bond dies.
double change(TinyNet& net, const std::string& bond, size_t entry) {
  const Values before = weight(net), ranks = net.get(bond);
  Values fewer = ranks;
  fewer[entry] = 0;
  net.set(bond, fewer);
  Values difference = weight(net);
  for (size_t i = 0; i < difference.size(); ++i) difference[i] -= before[i];
  net.set(bond, ranks);
  return norm(difference);
}

TEST(Canonical, TheFunctionStays) {
  TinyNet net(AdamConfig{}.make({}));
  net.set("a.rank.0", {0.9, 0.004, 0.8});
  net.set("a.rank.1", {0.005, 1, 0.05, 0.3, -0.3, 0.6});
  const StepResults before = net.gradients(1);
  const Values logits = net.logits, first = weight(net), second = weight(net, 1), core = net.get("a.core.1");
  make_canonical(net);
  const StepResults after = net.gradients(1);
  EXPECT_LT(largest_difference(logits, net.logits), 1e-13);
  EXPECT_LT(largest_difference(first, weight(net)), 1e-14);
  EXPECT_LT(largest_difference(second, weight(net, 1)), 1e-14);
  EXPECT_NEAR(before.ce, after.ce, 1e-13);
  EXPECT_GT(largest_difference(core, net.get("a.core.1")), 0.01) << "it was rewritten";
}

TEST(Canonical, EntriesStandInTheOrderOfWhatTheyCarry) {
  TinyNet net(AdamConfig{}.make({}));
  net.set("a.rank.1", {0.4, 1, 0.05, 1.1, 0.7, 0.6});
  double least = 1e9;
  for (size_t i = 0; i < 6; ++i) least = std::min(least, change(net, "a.rank.1", i));
  double mean = 0;
  for (const double d : net.get("a.rank.1")) mean += d / 6;
  make_canonical(net);
  const Values ranks = net.get("a.rank.1");
  double squares = 0, new_mean = 0, smallest = 0;
  for (size_t i = 0; i < 6; ++i) {
    const double moved = change(net, "a.rank.1", i);
    EXPECT_NEAR(moved / change(net, "a.rank.1", 0), std::pow(ranks[i] / ranks[0], 2), 1e-10) << "entry " << i << ": D is sqrt(s)";
    if (i > 0) {
      EXPECT_LT(ranks[i], ranks[i - 1]);
    }
    squares += moved * moved;
    new_mean += ranks[i] / 6;
    smallest = moved;
  }
  // Singular vectors of the unfolding: what they carry adds up to the matrix, and no other entry carries less than the last.
  EXPECT_NEAR(std::sqrt(squares), norm(weight(net)), 1e-12);
  EXPECT_LT(smallest, least);
  EXPECT_NEAR(new_mean, mean, 1e-12);
}

TEST(Canonical, CoresKeepTheShareOfTheirNorms) {
  TinyNet net(AdamConfig{}.make({}));
  const auto norms = [&] {
    std::vector<double> out;
    for (size_t k = 0; k < 4; ++k) {
      Values core = net.get("a.core." + std::to_string(k));
      if (k < 3) {
        const Values ranks = net.get("a.rank." + std::to_string(k));
        for (size_t i = 0; i < core.size(); ++i) core[i] *= ranks[i % ranks.size()];
      }
      out.push_back(norm(core));
    }
    return out;
  };
  const std::vector<double> before = norms();
  make_canonical(net);
  const std::vector<double> after = norms();
  for (size_t k = 1; k < 4; ++k) EXPECT_NEAR(after[k] / before[k], after[0] / before[0], 1e-12);
}

// What carries nothing dies: entries that were dead, and those that say again what others say.
TEST(Canonical, WhatCarriesNothingDies) {
  TinyNet net(AdamConfig{}.make({}));
  net.set("a.rank.0", {0.9, 0.004, 0.8});
  Values core = net.get("a.core.1");  // (3, 4, 6): the last two entries of its right bond become copies of the first
  for (size_t i = 0; i < core.size(); i += 6) core[i + 4] = core[i + 5] = core[i];
  net.set("a.core.1", core);
  const Values before = weight(net);
  make_canonical(net);
  EXPECT_LT(largest_difference(before, weight(net)), 1e-14);
  EXPECT_EQ(live_ranks(net.params, *net.rig.device, kTau)[0], (std::vector<int64_t>{2, 4, 2}));
  EXPECT_EQ(net.get("a.rank.1")[5], 0);
}

// Rank parameters keep their mean over the live entries; dead ones count neither before nor after.
TEST(Canonical, DeadEntriesAreNoPartOfTheMean) {
  TinyNet net(AdamConfig{}.make({}));
  net.set("a.rank.1", {0.4, 1, 0.005, 1.1, -2, 0.6});
  make_canonical(net);
  const Values ranks = net.get("a.rank.1");
  EXPECT_EQ(std::count(ranks.begin(), ranks.end(), 0.0), 2);
  double sum = 0;
  for (const double rank : ranks) sum += rank;
  EXPECT_NEAR(sum / 4, (0.4 + 1 + 1.1 + 0.6) / 4, 1e-12);
}

// What carries next to nothing lives all the same, just above the threshold: else it would be masked, and the function moved.
TEST(Canonical, AnEntryThatCarriesLittleStaysAlive) {
  TinyNet net(AdamConfig{}.make({}));
  Values core = net.get("a.core.1");  // (3, 4, 6): the last entry of its right bond becomes nearly nothing
  for (size_t i = 5; i < core.size(); i += 6) core[i] *= 1e-8;
  net.set("a.core.1", core);
  const Values before = weight(net);
  make_canonical(net);
  const Values ranks = net.get("a.rank.1");
  EXPECT_EQ(live_ranks(net.params, *net.rig.device, kTau)[0], (std::vector<int64_t>{3, 6, 2}));
  EXPECT_GT(ranks[5], kTau);
  EXPECT_LT(ranks[5], 1.01 * kTau) << "so little is it worth, else the test shows nothing";
  EXPECT_GT(change(net, "a.rank.1", 5), 0);
  EXPECT_LT(largest_difference(before, weight(net)), 1e-14);
}

TEST(Canonical, ALayerWithADeadBondIsLeftAlone) {
  TinyNet net(AdamConfig{}.make({}));
  net.set("a.rank.1", Values(6, 0.01));
  const Values core = net.get("a.core.1"), other = net.get("b.core.1");
  make_canonical(net);
  EXPECT_EQ(net.get("a.core.1"), core);
  EXPECT_NE(net.get("b.core.1"), other);
}

// A second time nothing is left to do: the same up to rounding and to the signs of vectors.
TEST(Canonical, TwiceIsOnce) {
  TinyNet net(AdamConfig{}.make({}));
  make_canonical(net);
  const Values ranks = net.get("a.rank.1"), core = net.get("a.core.2");
  make_canonical(net);
  EXPECT_LT(largest_difference(ranks, net.get("a.rank.1")), 1e-12);
  Values again = net.get("a.core.2");
  for (size_t i = 0; i < core.size(); ++i) EXPECT_NEAR(std::fabs(core[i]), std::fabs(again[i]), 1e-11);
}

TEST(Canonical, MomentsBeginAnew) {
  TinyNet net(AdamConfig{}.make({}));
  for (uint64_t t = 1; t <= 3; ++t) {
    net.gradients(t);
    net.update();
  }
  Ctx ctx = net.rig.ctx();
  const auto states = [&](const char* name) { return by_name(net.optimizer->capture(*net.rig.device, ctx, *net.params.find(name))); };
  const auto before = states("a.core.1"), bias = states("a.bias");
  double mean = 0;
  for (const double v : before.at("v")) mean += v / static_cast<double>(before.at("v").size());
  make_canonical(net);
  const auto after = states("a.core.1");
  EXPECT_GT(norm(before.at("m")), 0);
  EXPECT_EQ(norm(after.at("m")), 0);
  for (const double v : after.at("v")) EXPECT_NEAR(v, mean, 1e-12 * mean);
  EXPECT_EQ(states("a.bias"), bias);
}

// Eight-bit moments as well, and in float.
TEST(Canonical, InFloatWithEightBitMoments) {
  TinyNet net(Adam8bitConfig{.min_size = 1}.make({}), DType::f32);
  for (uint64_t t = 1; t <= 3; ++t) {
    net.gradients(t);
    net.update();
  }
  const Values before = weight(net);
  make_canonical(net);
  EXPECT_LT(largest_difference(before, weight(net)), 2e-6 * norm(before));
  net.gradients(4);
  net.update();
}

}  // namespace
}  // namespace comera::test
