// Modes, ranks and costs (METHODS.md 1.1, 1.2), and what is said when they do not fit.
#include "core/config/tt_shape.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/layers/factory.h"
#include "core/layers/tt_linear.h"
#include "core/layers/ttm_embedding.h"

namespace comera {
namespace {

using Modes = std::vector<int64_t>;

int64_t product(const Modes& modes) { return std::accumulate(modes.begin(), modes.end(), int64_t{1}, std::multiplies<>()); }

TTShape linear(int64_t in, int64_t out, const TTOptions& options = {}) {
  std::vector<Problem> problems;
  TTShape shape = linear_shape(in, out, options, "tt.attention", problems);
  EXPECT_TRUE(problems.empty()) << problems.front().text;
  return shape;
}

TTShape table(int64_t rows, int64_t columns, const TTOptions& options) {
  std::vector<Problem> problems;
  TTShape shape = table_shape(rows, columns, options, "tt.embedding", problems);
  EXPECT_TRUE(problems.empty()) << problems.front().text;
  return shape;
}

TEST(Modes, PublishedOnes) {
  EXPECT_EQ(choose_modes(768, 3, false), (Modes{12, 8, 8}));
  EXPECT_EQ(choose_modes(768, 3, true), (Modes{8, 8, 12}));
  EXPECT_EQ(choose_modes(3072, 3, false), (Modes{16, 16, 12}));
  EXPECT_EQ(choose_modes(3072, 3, true), (Modes{12, 16, 16}));
  EXPECT_EQ(choose_modes(768, 4, true), (Modes{4, 4, 6, 8}));
}

TEST(Modes, CoverEverySizeTightlyAndEvenly) {
  for (int64_t count = 1; count <= 5; ++count)
    for (int64_t size = 1; size <= 3000; size += size < 300 ? 1 : 37) {
      const Modes modes = choose_modes(size, count, false), rising = choose_modes(size, count, true);
      ASSERT_EQ(static_cast<int64_t>(modes.size()), count);
      EXPECT_TRUE(std::is_sorted(modes.rbegin(), modes.rend()));
      EXPECT_TRUE(std::is_sorted(rising.begin(), rising.end()));
      EXPECT_EQ(product(modes), product(rising));
      EXPECT_GE(product(modes), size);
      EXPECT_LE(static_cast<double>(product(modes)), 1.2 * static_cast<double>(size) + 4) << size << " in " << count;
      if (size > 300) {
        EXPECT_LE(static_cast<double>(product(modes)), 1.1 * static_cast<double>(size)) << size << " in " << count;
      }
      // No factorisation of the same number of entries has a clearly smaller sum than an equal one.
      const double equal = static_cast<double>(count) * std::pow(static_cast<double>(product(modes)), 1.0 / static_cast<double>(count));
      EXPECT_LE(static_cast<double>(std::accumulate(modes.begin(), modes.end(), int64_t{0})), 1.25 * equal + 1e-9)
          << size << " in " << count;
    }
}

TEST(Modes, PrimesArePaddedByLittle) {
  EXPECT_EQ(choose_modes(97, 1, false), (Modes{97}));
  const Modes modes = choose_modes(769, 3, false);  // prime
  EXPECT_GT(product(modes), 769);
  EXPECT_LE(product(modes), 792);
  const TTShape shape = linear(769, 97);
  EXPECT_EQ(shape.in, 769);
  EXPECT_TRUE(shape.padded());
  EXPECT_GE(shape.padded_out(), 97);
  EXPECT_FALSE(linear(768, 3072).padded());
}

TEST(Modes, RowsOfTheVocabulary) {
  // Published: 16, 20, 10, 10 = 32,000 for 30,522. Chosen ones must be as balanced and no larger.
  const TTShape shape = table(30522, 768, {.rank = 32, .cores = 4});
  EXPECT_GE(shape.padded_in(), 30522);
  EXPECT_LE(shape.padded_in(), 32000);
  EXPECT_EQ(shape.padded_out(), 768);
  EXPECT_LE(shape.in_modes.front(), 20);
  EXPECT_GE(shape.in_modes.back(), 10);
  EXPECT_LE(tt_entries(shape), 170000);
  const size_t split = ttm_split(shape, 4096);
  EXPECT_EQ(split, 2u);
}

TEST(Modes, MayBeOfExactlyTheVocabulary) {
  const TTShape shape = table(32000, 768, {.in_modes = {16, 20, 10, 10}, .out_modes = {4, 4, 8, 6}, .rank = 32});
  EXPECT_EQ(shape.padded_in(), 32000);
}

TEST(Ranks, AsTheModesAllow) {
  EXPECT_EQ(linear(768, 768).ranks, (Modes{1, 12, 30, 30, 30, 12, 1}));
  EXPECT_EQ(linear(768, 3072).ranks, (Modes{1, 12, 30, 30, 30, 16, 1}));
  EXPECT_EQ(linear(3072, 768).ranks, (Modes{1, 16, 30, 30, 30, 12, 1}));
  EXPECT_EQ(linear(4, 3, {.rank = 30, .cores = 1}).ranks, (Modes{1, 3, 1}));
  EXPECT_EQ(linear(768, 768, {.rank = 1}).ranks, (Modes{1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(table(30522, 768, {.in_modes = {16, 20, 10, 10}, .out_modes = {4, 4, 8, 6}, .rank = 32}).ranks, (Modes{1, 32, 32, 32, 1}));
}

TEST(Entries, PublishedCounts) {
  EXPECT_EQ(tt_entries(linear(768, 768)), 20448);
  EXPECT_EQ(tt_entries(linear(768, 3072)), 28960);
  EXPECT_EQ(tt_entries(linear(3072, 768)), 28960);
  EXPECT_EQ(tt_entries(table(30522, 768, {.in_modes = {16, 20, 10, 10}, .out_modes = {4, 4, 8, 6}, .rank = 32})), 167808);
}

TEST(Costs, PublishedProducts) {
  EXPECT_EQ(merged_cost(linear(768, 768), 4096), 725760 + 725760 + 188743680.0);
  EXPECT_EQ(merged_cost(linear(768, 3072), 4096), 725760 + 2887680 + 471859200.0);
  EXPECT_EQ(merged_cost(linear(3072, 768), 4096), 2887680 + 725760 + 471859200.0);
  EXPECT_EQ(sequential_cost(linear(768, 768), 10), 2 * 39456.0 * 10);  // both sides mirror each other
  EXPECT_LT(sequential_cost(linear(768, 768), 32), merged_cost(linear(768, 768), 32));
  EXPECT_GT(sequential_cost(linear(768, 768), 64), merged_cost(linear(768, 768), 64));
  const TTShape rows = table(30522, 768, {.in_modes = {16, 20, 10, 10}, .out_modes = {4, 4, 8, 6}, .rank = 32});
  EXPECT_EQ(ttm_cost(rows, 2, 1000), 5242880 + 4915200 + 24576.0 * 1000);
  EXPECT_EQ(ttm_split(rows, 1000), 2u);
}

// ---- problems -----------------------------------------------------------------------------------------------------

std::vector<Problem> wrong_linear(const TTOptions& options) {
  std::vector<Problem> problems;
  linear_shape(768, 768, options, "tt.attention", problems);
  return problems;
}
std::vector<Problem> wrong_table(const TTOptions& options) {
  std::vector<Problem> problems;
  table_shape(30522, 768, options, "tt.embedding", problems);
  return problems;
}
void expect_one(const std::vector<Problem>& problems, const std::string& path, const std::string& text) {
  ASSERT_EQ(problems.size(), 1u) << path;
  EXPECT_EQ(problems[0].path, path);
  EXPECT_EQ(problems[0].text, text);
  EXPECT_FALSE(problems[0].hint.empty());
}

TEST(Problems, NameTheFieldAndSayWhatToDo) {
  expect_one(wrong_linear({.in_modes = {12, 8, 9}}), "tt.attention.in_modes", "in_modes multiply to 864, the size is 768");
  expect_one(wrong_linear({.out_modes = {700}}), "tt.attention.out_modes", "out_modes multiply to 700, the size is 768");
  expect_one(wrong_linear({.in_modes = {2, 2, 2, 2, 2, 24}}), "tt.attention.in_modes", "in_modes has 6 modes, 1 to 5 are possible");
  expect_one(wrong_linear({.in_modes = {768, 0}}), "tt.attention.in_modes", "in_modes are 768, 0, each must be at least 1");
  expect_one(wrong_linear({.rank = 0}), "tt.attention.rank", "rank is 0, must be at least 1");
  expect_one(wrong_linear({.cores = 6}), "tt.attention.cores", "cores is 6, must be 1 to 5");
  expect_one(wrong_linear({.ranks = {1, 30, 1}}), "tt.attention.ranks", "ranks has 3 entries, 6 cores need 7");
  expect_one(wrong_linear({.ranks = {1, 2, 3, 4, 3, 2, 2}}), "tt.attention.ranks", "ranks begin with 1 and end with 2, both must be 1");
  expect_one(wrong_linear({.ranks = {1, 2, 0, 4, 3, 2, 1}}), "tt.attention.ranks",
             "ranks are 1, 2, 0, 4, 3, 2, 1, each must be at least 1");
  expect_one(wrong_table({.in_modes = {16, 20, 10, 9}, .cores = 4}), "tt.embedding.in_modes",
             "in_modes multiply to 28800, the size is at least 30522");
  expect_one(wrong_table({.out_modes = {4, 4, 8, 7}, .cores = 4}), "tt.embedding.out_modes", "out_modes multiply to 896, the size is 768");
  expect_one(wrong_table({.in_modes = {180, 170}, .out_modes = {4, 4, 48}}), "tt.embedding.out_modes", "in_modes has 2 modes, out_modes 3");
  expect_one(wrong_table({.cores = 1}), "tt.embedding.cores", "cores is 1, must be 2 to 5");
  EXPECT_EQ(wrong_linear({.in_modes = {5}, .out_modes = {7}}).size(), 2u) << "all that is wrong, at once";
  EXPECT_TRUE(wrong_linear({.in_modes = {int64_t{1} << 40, int64_t{1} << 40}}).size() == 1) << "no overflow";
}

TEST(Problems, TheFactoryRefuses) {
  ParamSet params;
  TTKinds kinds;
  kinds.attention.in_modes = {5};
  struct NoStash : Stash {
    StashSlot slot(ParamSet&, const char*, int64_t, uint32_t) override { return {}; }
    Kept keep(Ctx&, const StashSlot&, const Tensor&, Use) override { return {}; }
    Tensor load(Ctx&, const StashSlot&, const Kept&) override { return {}; }
  } stash;
  LayerFactory factory(params, stash, {make_tt_form(kinds)});
  EXPECT_THROW(factory.linear("enc0.attn.q", 768, 768, LinearKind::attention), Error);
  EXPECT_TRUE(params.params().empty());
}

}  // namespace
}  // namespace comera
