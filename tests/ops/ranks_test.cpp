// The rank objective: values written out by hand, METHODS.md 1.4 and 1.5, finite differences.
#include "tests/ops/host.h"

namespace comera::test {
namespace {

enum class Mode { reference, selective, paper };
constexpr Mode kModes[] = {Mode::reference, Mode::selective, Mode::paper};

// Layers by their modes and ranks; rank vectors start as ones.
struct Model {
  Array<double> ranks, layer_weight;
  Array<int> bond_begin, layer_bond, modes;
  StepScalars step;
  StepResults results;

  struct Layer {
    std::vector<int> modes, ranks;
  };
  explicit Model(const std::vector<Layer>& layers) {
    bond_begin.v = layer_bond.v = {0};
    for (const Layer& layer : layers) {
      for (int r : layer.ranks) bond_begin.v.push_back(bond_begin.v.back() + r);
      modes.v.insert(modes.v.end(), layer.modes.begin(), layer.modes.end());
      layer_bond.v.push_back(static_cast<int>(bond_begin.v.size()) - 1);
    }
    ranks = Array<double>({bond_begin.v.back()}, 1.0);
    layer_weight = Array<double>({static_cast<int64_t>(layers.size())}, 1.0);
    bond_begin.shape = {bond_begin.count()};
    layer_bond.shape = {layer_bond.count()};
    modes.shape = {modes.count()};
  }
  void set(Mode mode) {
    step.selective = mode == Mode::selective ? 1 : 0;
    step.paper = mode == Mode::paper ? 1 : 0;
  }
  RankTable table() const { return {ranks, bond_begin, layer_bond, modes, layer_weight}; }
  void objective(CpuOps& ops) { ops.rank_objective(block_tensor(results), table(), block_tensor(step)); }
  Array<double> gradient(CpuOps& ops) {
    Array<double> out(ranks.shape);
    ops.rank_objective_backward(out, table(), block_tensor(results), block_tensor(step));
    return out;
  }
};

// The released MNLI model: 6 encoders of q, k, v, o and two FFN layers, one classifier, one TTM table.
Model mnli() {
  std::vector<Model::Layer> layers;
  const Model::Layer square{{12, 8, 8, 8, 8, 12}, {12, 30, 30, 30, 12}};
  for (int encoder = 0; encoder < 6; ++encoder) {
    for (int i = 0; i < 4; ++i) layers.push_back(square);
    layers.push_back({{12, 8, 8, 12, 16, 16}, {12, 30, 30, 30, 16}});
    layers.push_back({{16, 16, 12, 8, 8, 12}, {16, 30, 30, 30, 12}});
  }
  layers.push_back(square);
  layers.push_back({{16 * 4, 20 * 4, 10 * 8, 10 * 6}, {32, 32, 32}});
  return Model(layers);
}

void expect_no_push(Model& model, CpuOps& ops) {
  for (double g : model.gradient(ops).v) EXPECT_EQ(g, 0);
}

TEST(RankObjective, StartOfTheReleasedModel) {
  CpuOps ops(1);
  Model model = mnli();
  model.results.ce = 1.1;
  model.objective(ops);
  EXPECT_EQ(model.ranks.count(), 4362);
  EXPECT_EQ(model.results.entries, 1026528);
  EXPECT_DOUBLE_EQ(model.results.rho, 1);
  EXPECT_DOUBLE_EQ(model.results.loss, 1.1 + 0.01);
  EXPECT_EQ(model.results.ce_weight, 1);
  EXPECT_EQ(model.results.rho_weight, 0.01);
  for (double g : model.gradient(ops).v) EXPECT_DOUBLE_EQ(g, 0.01 / 4362);
}

Model two_layers() {
  Model model({{{2, 3, 4}, {2, 3}}, {{5, 6}, {4}}});
  model.ranks.v = {0.5, 1.5, 0.3, 2, 0.7, 1, -3, 0.01, 0.2};  // a negative entry and one at the threshold are dead
  return model;
}

TEST(RankObjective, CountsAndMeanOfLiveEntries) {
  CpuOps ops(1);
  Model model = two_layers();
  model.objective(ops);
  EXPECT_DOUBLE_EQ(model.results.rho, (0.5 + 1.5 + 0.3 + 2 + 0.7 + 1 + 0.2) / 7);
  EXPECT_EQ(model.results.entries, (2 * 2 + 3 * 2 * 3 + 4 * 3) + (5 * 2 + 6 * 2));
  const auto gradient = model.gradient(ops);
  for (int i = 0; i < 9; ++i) EXPECT_DOUBLE_EQ(gradient[i], i == 6 || i == 7 ? 0 : 0.01 / 7);
}

TEST(RankObjective, ADeadBondTakesItsLayerOutOfS) {
  CpuOps ops(1);
  Model model = two_layers();
  model.ranks[0] = model.ranks[1] = 0;
  model.objective(ops);
  EXPECT_EQ(model.results.entries, 5 * 2 + 6 * 2);
  EXPECT_DOUBLE_EQ(model.results.rho, (0.3 + 2 + 0.7 + 1 + 0.2) / 5);  // the layer's other bond stays in rho
  EXPECT_DOUBLE_EQ(model.gradient(ops)[3], 0.01 / 5);
  model.step.paper = 1;
  model.step.gamma = 0.1;
  model.objective(ops);
  EXPECT_DOUBLE_EQ(model.results.surrogate, (5 + 6) * 1.2);  // but not in S^
  const auto gradient = model.gradient(ops);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(gradient[i], 0);
  EXPECT_DOUBLE_EQ(gradient[5], 0.1 * (5 + 6));
}

TEST(RankObjective, SelectivePushesTheWeakByWhatSWouldLose) {
  CpuOps ops(1);
  Model model = two_layers();
  model.step.selective = 1;
  model.objective(ops);
  // Live ranks (2, 3) of modes (2, 3, 4) and 2 of modes (5, 6); bonds {0.5, 1.5}, {0.3, 2, 0.7}, {1, 0.2}.
  const double first = 2 + 3 * 3, second = 3 * 2 + 4, other = 5 + 6, total = 2 * first + 3 * second + 2 * other;
  EXPECT_DOUBLE_EQ(model.results.surrogate, (first * 0.5 + second * (0.3 + 0.7) + other * 0.2) / total);
  EXPECT_DOUBLE_EQ(model.results.loss, 0.01 * model.results.surrogate);
  EXPECT_DOUBLE_EQ(model.results.rho, (0.5 + 1.5 + 0.3 + 2 + 0.7 + 1 + 0.2) / 7);  // still reported
  auto gradient = model.gradient(ops);
  const std::vector<double> slopes{first, 0, second, 0, second, 0, 0, 0, other};
  for (int i = 0; i < 9; ++i) EXPECT_DOUBLE_EQ(gradient[i], 0.01 * slopes[static_cast<size_t>(i)] / total);
  // The slope is what S loses with one entry.
  const double entries = model.results.entries;
  model.ranks[0] = 0;
  model.objective(ops);
  EXPECT_EQ(entries - model.results.entries, first);
  EXPECT_EQ(model.gradient(ops)[1], 0);  // the last entry of a bond
  model.ranks[1] = 0;                    // the layer has left S: nothing to gain there
  model.objective(ops);
  gradient = model.gradient(ops);
  EXPECT_DOUBLE_EQ(model.results.surrogate, 0.2 / 2);
  for (int i = 0; i < 9; ++i) EXPECT_DOUBLE_EQ(gradient[i], i == 8 ? 0.01 / 2 : 0);
}

TEST(RankObjective, SelectiveOfTheReleasedModel) {
  CpuOps ops(1);
  Model model = mnli();
  model.step.selective = 1;
  model.step.late = 1;
  model.results.ce = 1.1;
  model.step.size_target = 0.2 * 1026528;
  model.objective(ops);
  EXPECT_EQ(model.results.lambda, 1);
  EXPECT_EQ(model.results.surrogate, 0) << "all entries alike: none is weak";
  expect_no_push(model, ops);
  const int64_t table = 4362 - 64, classifier = 4362 - 96 - 57;  // in the middle bond of the table, of the classifier
  model.ranks[table] = model.ranks[classifier] = 0.5;
  model.objective(ops);
  const auto gradient = model.gradient(ops);
  for (int64_t i = 0; i < 4362; ++i) EXPECT_EQ(gradient[i] > 0, i == table || i == classifier);
  // 80 * 32 + 80 * 32 entries a rank, against 8 * 30 + 8 * 30.
  EXPECT_NEAR(gradient[table] / gradient[classifier], 5120.0 / 480, 1e-9);
}

TEST(RankObjective, NothingAliveIsNoDivisionByZero) {
  CpuOps ops(1);
  for (double late : {0.0, 1.0})
    for (Mode mode : kModes) {
      Model model = two_layers();
      model.ranks = Array<double>(model.ranks.shape, -1.0);
      model.step.late = late;
      model.set(mode);
      model.results.ce = 2;
      model.objective(ops);
      EXPECT_EQ(model.results.rho, 0);
      EXPECT_EQ(model.results.entries, 0);
      EXPECT_EQ(model.results.lambda, 0);
      EXPECT_DOUBLE_EQ(model.results.loss, model.results.ce_weight * 2);
      expect_no_push(model, ops);
    }
}

TEST(RankObjective, LateStagePushesWhatIsFurtherFromItsTarget) {
  CpuOps ops(1);
  Model model = two_layers();
  model.step.late = 1;
  model.step.size_target = 28;  // (56 - 28) / 56 = 0.5
  const auto lambda_at = [&](double ce) {
    model.results.ce = ce;
    model.objective(ops);
    return model.results.lambda;
  };
  model.step.loss_target = 1;
  EXPECT_EQ(lambda_at(2), 0);  // (2 - 1) / 2 = 0.5: equality pushes the loss
  EXPECT_DOUBLE_EQ(model.results.ce_weight, 1.1);
  EXPECT_DOUBLE_EQ(model.results.rho_weight, 0.01);
  EXPECT_DOUBLE_EQ(model.results.loss, 0.1 * 2 + 0.01 * model.results.rho + 2);
  EXPECT_EQ(lambda_at(std::nextafter(2, 0)), 1);
  EXPECT_DOUBLE_EQ(model.results.ce_weight, 0.1);
  EXPECT_DOUBLE_EQ(model.results.rho_weight, 1.01);
  EXPECT_DOUBLE_EQ(model.results.loss, 0.1 * model.results.ce + 1.01 * model.results.rho);
  const auto gradient = model.gradient(ops);
  for (int i = 0; i < 9; ++i) EXPECT_DOUBLE_EQ(gradient[i], i == 6 || i == 7 ? 0 : 1.01 / 7);
}

TEST(RankObjective, LockedLayersGetNoGradient) {
  CpuOps ops(1);
  for (Mode mode : kModes) {
    Model model = two_layers();
    model.set(mode);
    model.step.gamma = 0.1;
    model.objective(ops);
    const auto free = model.gradient(ops);
    model.layer_weight.v = {0, 0.5};
    const auto locked = model.gradient(ops);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(locked[i], 0);
    for (int i = 5; i < 9; ++i) EXPECT_DOUBLE_EQ(locked[i], free[i] / 2);
  }
}

TEST(RankObjective, WithoutPruningOnlyTheLossIsLeft) {
  CpuOps ops(1);
  Model model = two_layers();
  model.step.pruning = 0;
  model.step.late = 1;
  model.results.ce = 3;
  model.objective(ops);
  EXPECT_EQ(model.results.loss, 3);
  EXPECT_EQ(model.results.rho, 0);
  EXPECT_EQ(model.results.ce_weight, 1);
  EXPECT_EQ(model.results.rho_weight, 0);
  EXPECT_EQ(model.results.entries, (2 * 2 + 3 * 2 * 3 + 4 * 3) + (5 * 4 + 6 * 4));
  expect_no_push(model, ops);
}

TEST(RankObjective, WithoutTensorisedLayersOnlyTheLossIsLeft) {
  CpuOps ops(1);
  StepScalars step;
  StepResults results;
  results.ce = 1.5;
  ops.rank_objective(block_tensor(results), {}, block_tensor(step));
  EXPECT_EQ(results.loss, 1.5);
  EXPECT_EQ(results.entries, 0);
}

TEST(RankObjective, PaperModeSurrogateAndChoice) {
  CpuOps ops(1);
  Model model = two_layers();
  model.step.paper = 1;
  model.step.gamma = 0.25;
  model.step.beta = 0.5;
  model.results.ce = 2;
  model.results.core_norm2 = 6;
  model.objective(ops);
  const double surrogate = 2 * 2 + 3 * 2 * 3 + 4 * 3 + (5 + 6) * 1.2;
  EXPECT_DOUBLE_EQ(model.results.surrogate, surrogate);
  EXPECT_DOUBLE_EQ(model.results.loss, 2 + 0.25 * surrogate + 0.5 * 6);
  EXPECT_EQ(model.results.core_norm2, 6);
  model.step.late = 1;
  model.step.late_w1 = 3;
  model.step.late_w2 = 0.5;
  model.step.loss_target = 1;
  model.step.size_target = 50;  // w2 (56 - 50) = 3 = w1 (2 - 1): equality takes the loss
  model.objective(ops);
  EXPECT_EQ(model.results.lambda, 0);
  EXPECT_DOUBLE_EQ(model.results.ce_weight, 3.01);
  EXPECT_DOUBLE_EQ(model.results.rho_weight, 0.01);
  model.step.size_target = 49;
  model.objective(ops);
  EXPECT_EQ(model.results.lambda, 1);
  EXPECT_DOUBLE_EQ(model.results.ce_weight, 0.01);
  EXPECT_DOUBLE_EQ(model.results.rho_weight, 0.51);
  EXPECT_DOUBLE_EQ(model.results.loss, 0.01 * 2 + 0.51 * surrogate + 0.5 * 6);
}

TEST(RankObjective, GradientByFiniteDifferences) {
  CpuOps ops(1);
  for (Mode mode : kModes)
    for (double late : {0.0, 1.0})
      for (double size_target : {0.0, 1e6}) {  // either side of lambda
        Model model({{{2, 3, 4, 5}, {3, 4, 2}}, {{7, 3}, {5}}});
        model.ranks = uniform<double>({14}, 1, 0.2, 1.5);
        model.ranks[1] = -0.5;
        model.ranks[10] = 0.005;
        model.set(mode);
        model.step.late = late;
        model.step.gamma = 0.03;
        model.step.size_target = size_target;
        model.results.ce = 1.3;
        model.results.core_norm2 = 0.4;
        model.step.beta = 0.1;
        model.objective(ops);
        const auto gradient = model.gradient(ops);
        const auto numeric = numeric_gradient(model.ranks, [&] {
          model.objective(ops);
          return model.results.loss;
        });
        EXPECT_LT(largest_difference(gradient, numeric), 1e-7) << static_cast<int>(mode) << late << size_target;
      }
}

TEST(RankObjective, GradientIsAddedAndFloatAgrees) {
  CpuOps ops(1);
  Model model = two_layers();
  model.objective(ops);
  Array<float> ranks(model.ranks.shape), gradient(model.ranks.shape, 2.f), weights({2}, 1.f);
  for (int i = 0; i < 9; ++i) ranks[i] = static_cast<float>(model.ranks[i]);
  StepResults results;
  const RankTable table{ranks, model.bond_begin, model.layer_bond, model.modes, weights};
  ops.rank_objective(block_tensor(results), table, block_tensor(model.step));
  EXPECT_EQ(results.entries, model.results.entries);
  EXPECT_NEAR(results.rho, model.results.rho, 1e-7);
  ops.rank_objective_backward(gradient, table, block_tensor(results), block_tensor(model.step));
  for (int i = 0; i < 9; ++i) EXPECT_NEAR(gradient[i], 2 + model.gradient(ops)[i], 1e-6);
}

}  // namespace
}  // namespace comera::test
