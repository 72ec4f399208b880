// States follow their parameter by the axes that they declare: under cuts, growth and the canonical form. The rule here
// declares every kind of state and never makes a step; tests put numbers into its states.
#include <numeric>
#include "core/methods/rank_canonical.h"

#include "tests/methods/tiny_net.h"

namespace comera::test {
namespace {

Shape without_last(const Shape& shape) {
  Shape out;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) out.push_back(shape[axis]);
  return out;
}

class EveryKindOfState final : public Rule {
 public:
  std::vector<StateSpec> declare(const Param& param, const Shape& shape) const override {
    const unsigned all = all_axes(shape), last = 1u << (shape.rank() - 1);
    std::vector<StateSpec> specs = {
        {.name = "full", .shape = shape, .axes = all},
        {.name = "number", .shape = {1}, .anew = StateSpec::stays},
        {.name = "elsewhere", .shape = {3}, .axes = kStartsAnew, .anew = StateSpec::stays},
    };
    if (param.kind != ParamKind::tt_core) return specs;
    specs.push_back({.name = "row", .shape = without_last(shape), .axes = all & ~last, .anew = StateSpec::mean, .averages = true});
    specs.push_back({.name = "column", .shape = {shape[-1]}, .axes = last, .anew = StateSpec::mean, .averages = true});
    specs.push_back({.name = "mean full", .shape = shape, .axes = all, .grown = StateSpec::mean});
    specs.push_back({.name = "mean row", .shape = without_last(shape), .axes = all & ~last, .grown = StateSpec::mean, .averages = true});
    specs.push_back({.name = "mean column", .shape = {shape[-1]}, .axes = last, .grown = StateSpec::mean, .averages = true});
    return specs;
  }
  void step(Ctx&, Param&, const Tensor&, const States&) override {}
  void update(Ctx&, Param&, const Tensor&, const Tensor&, const States&) override {}
};

struct Follows : testing::Test {
  TinyNet net{std::make_unique<Optimizer>(std::make_unique<EveryKindOfState>())};
  Param& core = *net.params.find("a.core.2");  // between the two bonds that change

  Tensor state(const std::string& name) {
    Tensor found;
    net.optimizer->states(core, [&](const std::string& key, Tensor& value) {
      if (key == name) found = value;
    });
    return found;
  }
  Values get(const std::string& name) { return to_host(*net.rig.device, state(name)); }
  void set(const std::string& name, const Values& values) { from_host(*net.rig.device, state(name), values); }

  // Means of the state "full" over columns, and over rows.
  std::pair<Values, Values> means_of_full() {
    const Values full = get("full");
    const size_t columns = static_cast<size_t>(core.shape[-1]), rows = full.size() / columns;
    Values row(rows), column(columns);
    for (size_t i = 0; i < rows; ++i)
      for (size_t j = 0; j < columns; ++j) {
        row[i] += full[i * columns + j] / static_cast<double>(columns);
        column[j] += full[i * columns + j] / static_cast<double>(rows);
      }
    return {row, column};
  }
  void fill(const std::function<bool(int64_t row, int64_t column)>& dead) {
    const int64_t a = core.shape[0], middle = core.shape[1], b = core.shape[2];
    Values full = random_values(core.count(), 3);
    for (int64_t i = 0; i < core.count(); ++i) {
      double& value = full[static_cast<size_t>(i)];
      value = dead(i / (middle * b), i % b) ? 0 : value * value;
    }
    ASSERT_EQ(static_cast<int64_t>(full.size()), a * middle * b);
    set("full", full);
    const auto [row, column] = means_of_full();
    set("row", row);
    set("column", column);
    set("number", {7});
    set("elsewhere", {1, 2, 3});
  }
  void expect_means() {
    const auto [row, column] = means_of_full();
    EXPECT_EQ(state("row").count() * core.shape[-1], core.count());
    EXPECT_LT(largest_difference(get("row"), row), 1e-14);
    EXPECT_LT(largest_difference(get("column"), column), 1e-14);
    EXPECT_EQ(get("number"), Values{7});
    EXPECT_EQ(get("elsewhere"), Values(3, 0.0)) << "has no axis of its parameter";
  }
};

// Where the entries that go carried nothing, rows and columns of the cut matrix are those of the whole one.
TEST_F(Follows, ACutOnBothSides) {
  net.set("a.rank.1", {0.5, 0, 0.9, 0, 0.7, 0.6});
  net.set("a.rank.2", {0, 1});
  const BondEntries bonds = plan_cut(net.params, *net.rig.device, 0.01, 0.125);
  ASSERT_EQ(core.shape, (Shape{6, 5, 2}));
  fill([](int64_t row, int64_t column) { return row == 1 || row == 3 || column == 0; });
  const Values before = get("full");
  net.cut(bonds);
  ASSERT_EQ(core.shape, (Shape{4, 5, 1}));
  const Values after = get("full");
  size_t next = 0;
  for (const size_t row : {0u, 2u, 4u, 5u})
    for (size_t j = 0; j < 5; ++j) EXPECT_EQ(after[next++], before[(row * 5 + j) * 2 + 1]);
  EXPECT_GT(*std::max_element(after.begin(), after.end()), 0);
  expect_means();
}

TEST_F(Follows, AGrowthOnBothSides) {
  fill([](int64_t, int64_t) { return false; });
  const Values before = get("full");
  net.grow(plan_growth(net.params, *net.rig.device, 0.01, {{3, 8, 3}, {2, 5, 2}}), 6);
  ASSERT_EQ(core.shape, (Shape{8, 5, 3}));
  const Values after = get("full");
  for (size_t row = 0; row < 8; ++row)
    for (size_t j = 0; j < 5; ++j)
      for (size_t column = 0; column < 3; ++column)
        EXPECT_EQ(after[(row * 5 + j) * 3 + column], row < 6 && column < 2 ? before[(row * 5 + j) * 2 + column] : 0);
  expect_means();
}

// As if the new entries had always been there, and been like the old ones. Dead entries go on the way.
TEST_F(Follows, AGrowthByMeans) {
  net.set("a.rank.1", {0.5, 0, 0.9, 0.8, 0.7, 0.6});
  fill([](int64_t row, int64_t) { return row == 1; });
  const Values full = get("full"), row = get("row"), column = get("column");
  for (const auto& [name, values] : {std::pair("mean full", full), {"mean row", row}, {"mean column", column}}) set(name, values);
  net.grow(plan_growth(net.params, *net.rig.device, 0.01, {{3, 7, 3}, {2, 5, 2}}), 6);
  ASSERT_EQ(core.shape, (Shape{7, 5, 3}));
  const auto mean = [](const Values& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  Values kept_full, kept_row, kept_column;
  for (size_t i = 0; i < full.size(); ++i)
    if (i / 10 != 1) kept_full.push_back(full[i]);
  for (size_t i = 0; i < row.size(); ++i)
    if (i / 5 != 1) kept_row.push_back(row[i]);
  for (const double value : column) kept_column.push_back(value * 6 / 5);  // the mean over five rows, not six
  Values full_then, row_then = kept_row, column_then = kept_column;
  for (size_t i = 0; i < 7 * 5; ++i)
    for (size_t j = 0; j < 3; ++j) full_then.push_back(i < 25 && j < 2 ? kept_full[i * 2 + j] : mean(kept_full));
  row_then.resize(7 * 5, mean(kept_row));
  column_then.push_back(mean(kept_column));
  EXPECT_LT(largest_difference(get("mean full"), full_then), 1e-14);
  EXPECT_LT(largest_difference(get("mean row"), row_then), 1e-14);
  EXPECT_LT(largest_difference(get("mean column"), column_then), 1e-14);
}

TEST_F(Follows, TheCanonicalFormByAnew) {
  fill([](int64_t, int64_t) { return false; });
  const Values row = get("row"), column = get("column");
  Ctx ctx = net.rig.ctx();
  make_canonical(net.params, *net.optimizer, *net.rig.device, ctx, 0.01);
  const auto mean = [](const Values& values) {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  };
  EXPECT_EQ(get("full"), Values(static_cast<size_t>(core.count()), 0.0));
  EXPECT_EQ(get("row"), Values(row.size(), mean(row)));
  EXPECT_EQ(get("column"), Values(column.size(), mean(column)));
  EXPECT_EQ(get("number"), Values{7});
  EXPECT_EQ(get("elsewhere"), (Values{1, 2, 3}));
}

}  // namespace
}  // namespace comera::test
