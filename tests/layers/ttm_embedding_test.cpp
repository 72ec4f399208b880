// TTM table: lookups against the table written out by plain loops, gradients against finite differences.
#include "core/layers/ttm_embedding.h"
#include "core/layers/tt_linear.h"

#include "tests/layers/check_layer.h"
#include "tests/layers/dense_equivalent.h"

namespace comera::layer_test {
namespace {

struct TableCase {
  const char* name;
  std::vector<int64_t> row_modes, column_modes, ranks;
  int64_t rows;
  std::vector<int32_t> ids;
  int64_t dead_every = 0;
  size_t split = 0;  // the expected one; 0: not looked at
};

const TableCase kTableCases[] = {
    {"order_2", {4, 3}, {2, 3}, {1, 5, 1}, 12, {0, 11, 5, 5, 7, 0, 2}, 0, 1},
    {"order_2_rank_1", {2, 2}, {3, 1}, {1, 1, 1}, 4, {3, 0, 1}},
    {"order_3", {3, 2, 4}, {2, 3, 2}, {1, 4, 3, 1}, 24, {23, 0, 8, 8, 8, 15}},
    {"order_4", {3, 5, 2, 2}, {2, 3, 2, 2}, {1, 4, 5, 3, 1}, 60, {0, 59, 31, 7, 31, 12, 59}, 0, 2},
    {"order_5", {2, 3, 2, 2, 2}, {2, 1, 3, 2, 2}, {1, 3, 4, 4, 3, 1}, 48, {47, 0, 13, 30, 13}},
    {"order_5_left_heavy", {2, 2, 2, 4, 4}, {2, 2, 2, 3, 3}, {1, 2, 3, 2, 6, 1}, 128, {0, 127, 64, 63, 63}, 0, 3},
    {"order_5_last_alone", {2, 2, 2, 2, 20}, {1, 1, 1, 1, 6}, {1, 2, 3, 4, 2, 1}, 320, {0, 319, 20, 21}, 0, 4},
    {"order_3_first_alone", {20, 2, 2}, {5, 2, 1}, {1, 2, 3, 1}, 80, {0, 79, 20, 21}, 0, 1},
    {"order_4_first_alone", {20, 2, 3, 2}, {5, 2, 1, 2}, {1, 2, 3, 4, 1}, 240, {0, 239, 20, 21}, 0, 1},
    {"order_5_right_heavy", {4, 4, 2, 3, 2}, {3, 3, 2, 1, 2}, {1, 6, 2, 3, 2, 1}, 192, {0, 191, 64, 63, 63}, 0, 2},
    {"padding_rows", {4, 3}, {2, 3}, {1, 5, 1}, 10, {0, 9, 4}},
    {"some_dead", {3, 5, 2, 2}, {2, 3, 2, 2}, {1, 4, 5, 3, 1}, 60, {0, 59, 31, 7, 31}, 2},
    {"all_dead", {3, 5, 2, 2}, {2, 3, 2, 2}, {1, 4, 5, 3, 1}, 60, {0, 59, 31}, 1},
    {"one_id", {3, 4}, {2, 2}, {1, 3, 1}, 12, {7}},
};

struct BuiltTable {
  explicit BuiltTable(const TableCase& c, DType dtype = DType::f64)
      : rig(dtype), factory(rig.params, *rig.stash), shape(shape_of(c)), layer("e", shape, factory) {
    rig.start();
    for (size_t k = 0; k < train().ranks.size(); ++k)
      rig.set(train().ranks[k]->value, rank_values(train().ranks[k]->count(), k, c.dead_every));
    ids = rig.put_ids(c.ids);
  }
  static TTShape shape_of(const TableCase& c) {
    TTShape shape;
    shape.in_modes = c.row_modes;
    shape.out_modes = c.column_modes;
    shape.ranks = c.ranks;
    shape.in = c.rows;
    shape.out = shape.padded_out();
    return shape;
  }
  const RankLayer& train() { return rig.params.rank_layers().front(); }

  Rig rig;
  LayerFactory factory;
  TTShape shape;
  TTMEmbedding layer;
  Tensor ids;
};

class TTMCase : public testing::TestWithParam<TableCase> {};

TEST_P(TTMCase, GradientsAgreeWithFiniteDifferences) {
  BuiltTable built(GetParam());
  check_gradients(built.rig, built.layer, built.ids, {.step = 1e-3, .tolerance = 1e-9});
}

TEST_P(TTMCase, EqualsTheRowsOfTheTable) {
  BuiltTable built(GetParam());
  if (GetParam().split) {
    EXPECT_EQ(ttm_split(built.shape, built.ids.size(0)), GetParam().split);
  }
  const Values table = table_of(contract(built.rig, built.train()), GetParam().row_modes, GetParam().column_modes);
  const size_t width = static_cast<size_t>(built.shape.out);
  Values rows;
  for (int32_t id : GetParam().ids)
    rows.insert(rows.end(), table.begin() + static_cast<std::ptrdiff_t>(static_cast<size_t>(id) * width),
                table.begin() + static_cast<std::ptrdiff_t>((static_cast<size_t>(id) + 1) * width));
  const Pass run = pass(built.rig, built.layer, built.ids);
  EXPECT_LE(relative_difference(run.y, rows, 1e-12), 1e-13);
  EXPECT_LE(relative_difference(evaluate(built.rig, built.layer, built.ids), run.y, 1e-12), 0);
}

TEST_P(TTMCase, EveryCoreCarriesTheWholeGradient) {
  BuiltTable built(GetParam());
  const Values dy = noise_values(built.ids.size(0) * built.shape.out, 5);
  const double expected = dot(dy, pass(built.rig, built.layer, built.ids, dy).y), tolerance = 1e-12 * std::max(1.0, std::fabs(expected));
  for (const Param* core : built.train().cores)
    EXPECT_NEAR(dot(built.rig.get(core->value), built.rig.get(core->grad)), expected, tolerance) << core->name;
  for (const Param* rank : built.train().ranks)
    EXPECT_NEAR(dot(built.rig.get(rank->value), built.rig.get(rank->grad)), expected, tolerance) << rank->name;
}

TEST_P(TTMCase, FloatsAgreeWithDoubles) {
  BuiltTable wide(GetParam()), narrow(GetParam(), DType::f32);
  const Values dy = noise_values(wide.ids.size(0) * wide.shape.out, 5);
  const Pass exact = pass(wide.rig, wide.layer, wide.ids, dy), rounded = pass(narrow.rig, narrow.layer, narrow.ids, dy);
  EXPECT_LE(relative_difference(rounded.y, exact.y, 1e-5), 5e-6);
  for (const Param& param : wide.rig.params.params())
    EXPECT_LE(relative_difference(rounded.grads(narrow.rig, param.name), exact.grads(wide.rig, param.name), 1e-5), 5e-6) << param.name;
}

INSTANTIATE_TEST_SUITE_P(Shapes, TTMCase, testing::ValuesIn(kTableCases), [](const auto& info) { return std::string(info.param.name); });

TEST(TTMEmbedding, EntriesStartWithVarianceOne) {
  const TableCase c{"variance", {3, 2, 2, 2}, {2, 2, 2, 1}, {1, 4, 5, 3, 1}, 24, {0}};
  Rig rig;
  LayerFactory factory(rig.params, *rig.stash);
  TTMEmbedding layer("e", BuiltTable::shape_of(c), factory);
  rig.start();
  double squares = 0, count = 0;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    rig.params.initialise(*rig.device, seed);
    for (double entry : contract(rig, rig.params.rank_layers().front())) {
      squares += entry * entry;
      ++count;
    }
  }
  EXPECT_NEAR(squares / count, 1, 0.04);
}

TEST(TTMEmbedding, PublishedSizeAndCost) {
  Rig rig(DType::f32);
  TTKinds kinds;
  kinds.embedding.in_modes = {16, 20, 10, 10};
  kinds.embedding.out_modes = {4, 4, 8, 6};
  LayerFactory factory(rig.params, *rig.stash, {make_tt_form(kinds)});
  const std::unique_ptr<Layer> layer = factory.embedding("embed", 30522, 768);
  const RankLayer& train = rig.params.rank_layers().front();
  int64_t entries = 0, ranks = 0;
  for (const Param* core : train.cores) entries += core->count();
  for (const Param* rank : train.ranks) ranks += rank->count();
  EXPECT_EQ(entries, 167808);
  EXPECT_EQ(ranks, 96);
  EXPECT_EQ(train.mode_sizes, (std::vector<int64_t>{64, 80, 80, 60}));
  EXPECT_EQ(train.dense_entries(), int64_t{30522} * 768);
  EXPECT_EQ(rig.params.find("embed.core.1")->shape, (Shape{32, 20, 4, 32}));
  EXPECT_EQ(rig.params.find("embed.core.1")->group, ParamGroup::core);

  rig.start();
  const Tensor ids = rig.put_ids({0, 30521, 101, 2023, 0});
  double forward = 0;
  rig.run(
      [&](Ctx& ctx) {
        layer->forward(ctx, ids);
        forward = ctx.ops.work.gemm_flops;
      },
      false);
  EXPECT_EQ(forward, 2 * (5242880 + 4915200 + 24576.0 * 5));

  // Kept: masked cores, P, Q, and nothing that grows with the tokens but y's successor dy (the harness's).
  pass(rig, *layer, ids);
  const int64_t masked = 167808 - 32 * 60, kept = rig.arena.peak_by_purpose()[Purpose::activation];
  EXPECT_GE(kept, 4 * (masked + 163840 + 153600 + 5 * 768));
  EXPECT_LE(kept, 4 * (masked + 163840 + 153600 + 5 * 768) + 8 * 64);
}

}  // namespace
}  // namespace comera::layer_test
