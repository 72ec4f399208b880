// Adagrad of entries and of rows of tables. Whole models against the published steps: tests/train/dlrm_test.cpp.
#include "tests/optim/harness.h"

namespace comera::test {
namespace {

constexpr int64_t kRows = 7, kColumns = 5;

void add_table_and_matrix(ParamSet& params) {
  params.add("table", {kRows, kColumns}, ParamKind::table, ParamGroup::rest, {}).by_rows = true;
  params.add("w", {kRows, kColumns}, ParamKind::weight, ParamGroup::core, {});
}

// METHODS.md 9.2 and 14.
TEST(StateBytes, AdagradKeepsOneSum) {
  for (const bool rowwise : {false, true}) {
    ParamSet params;
    const auto optimizer = AdagradConfig{.rowwise = rowwise}.make({});
    optimizer->attach(params.add("w", {3072, 768}, ParamKind::weight, ParamGroup::rest, {}));
    EXPECT_EQ(optimizer->planned(DType::f32)[Purpose::optimizer], 4 * 3072 * 768);
    Param& table = params.add("table", {1024, 64}, ParamKind::table, ParamGroup::rest, {});
    table.by_rows = true;
    optimizer->attach(table);
    EXPECT_EQ(optimizer->planned(DType::f32)[Purpose::optimizer], 4 * 3072 * 768 + 4 * 1024 * (rowwise ? 1 : 64));
  }
}

// Three steps, the rate of the table another one than that of the matrix.
TEST(Adagrad, FollowsItsFormula) {
  constexpr double kEps = 1e-3, kRates[] = {0.03, 0.002}, kDecay = 0.5;
  for (const bool rowwise : {false, true}) {
    Rig rig;
    rig.scalars.weight_decay = kDecay;
    rig.scalars.learning_rate[static_cast<int>(ParamGroup::rest)] = kRates[0];
    rig.scalars.learning_rate[static_cast<int>(ParamGroup::core)] = kRates[1];
    Trainee net(rig, AdagradConfig{.eps = kEps, .rowwise = rowwise}.make({}), add_table_and_matrix);
    uint32_t seed = 70;
    const char* const names[] = {"table", "w"};
    Values expected[2], sums[2] = {Values(kRows * kColumns), Values(kRows * kColumns)};
    for (size_t p = 0; p < 2; ++p) expected[p] = net.value(names[p]);
    for (uint64_t t = 1; t <= 3; ++t) {
      for (size_t p = 0; p < 2; ++p) {
        Values g = random_values(kRows * kColumns, ++seed);
        for (size_t j = 0; j < kColumns; ++j) g[2 * kColumns + j] = 0;  // row 2 is never looked up
        net.set_grad(names[p], g);
        for (size_t i = 0; i < g.size(); ++i) {
          const size_t first = i / kColumns * kColumns;
          if (!rowwise || p == 1)
            sums[p][i] += g[i] * g[i];
          else
            for (size_t j = first; j < first + kColumns; ++j) sums[p][i] += g[j] * g[j] / kColumns;
          expected[p][i] = (1 - kRates[p] * kDecay) * expected[p][i] - kRates[p] * g[i] / (std::sqrt(sums[p][i]) + kEps);
        }
      }
      net.step(t);
    }
    for (size_t p = 0; p < 2; ++p) EXPECT_LE(largest_difference(net.value(names[p]), expected[p]), 1e-13) << names[p] << rowwise;
    const Tensor of_table = net.state("table", rowwise ? "row_sum" : "sum");
    ASSERT_EQ(of_table.count(), rowwise ? kRows : kRows * kColumns);
    const Values kept = to_host(*rig.device, of_table);
    for (size_t i = 0; i < kept.size(); ++i) EXPECT_NEAR(kept[i], sums[0][rowwise ? i * kColumns : i], 1e-13);
  }
}

}  // namespace
}  // namespace comera::test
