// The recommendation model: against facebookresearch/dlrm (tests/golden_models, or $COMERA_GOLDEN_MODELS), finite differences, sizes.
#include "core/base/json.h"
#include "core/optim/optimizer.h"
#include "tests/layers/five_points.h"
#include "tests/models/golden_dlrm.h"
#include "tests/models/net.h"

namespace comera::model_test {
namespace {

ModelConfig toy_dlrm(bool itself) {
  ModelConfig config;
  config.kind = "dlrm";
  config.task = "binary";
  config.classes = 2;
  config.dlrm = {.inputs = 5, .tables = {30, 4, 24}, .width = 6, .bottom = {7}, .top = {9, 8}, .itself = itself, .min_tt_rows = 20};
  config.tt.ffn_in.cores = 2;
  config.tt.ffn_in.rank = 3;
  config.tt.embedding.cores = 2;
  config.tt.embedding.rank = 3;
  return config;
}

void put_clicks(Net& net, const Values& numbers, const std::vector<std::vector<int32_t>>& categories, const std::vector<int32_t>& labels) {
  net.batch = {};
  net.batch.tokens = net.batch.examples = static_cast<int64_t>(labels.size());
  net.batch["numbers"] = net.rig.put(numbers, {net.batch.examples, net.config.dlrm.inputs});
  for (size_t t = 0; t < categories.size(); ++t) net.batch["category" + std::to_string(t)] = net.rig.put_ids(categories[t]);
  net.batch["labels"] = net.rig.put_ids(labels);
}

void put_toy(Net& net) {
  put_clicks(net, noise_values(6 * 5, 2), {{0, 29, 3, 3, 8, 0}, {1, 0, 3, 2, 1, 1}, {23, 5, 5, 5, 0, 11}}, {0, 1, 1, 0, 1, 0});
}

TEST(Dlrm, Gradients) {
  for (const bool tensorise : {false, true})
    for (const bool itself : {false, true}) {
      Net net(toy_dlrm(itself), tensorise);
      shake(net);
      put_toy(net);
      check_directions(net.rig, net.probe(), {.step = 1e-6, .tolerance = 1e-6, .directions = 2});  // no corner of a ReLU is that near
    }
}

TEST(Dlrm, SmallTablesStayDense) {
  Net net(toy_dlrm(false), true);
  for (const char* name :
       {"table0.core.0", "table1.weight", "table2.core.1", "bottom0.core.0", "bottom1.core.0", "top1.bias", "head.weight"})
    EXPECT_NE(net.rig.params.find(name), nullptr) << name;
  EXPECT_EQ(net.rig.params.find("table1.core.0"), nullptr);
  EXPECT_EQ(net.rig.params.dense_equivalent(), 5 * 7 + 7 + 7 * 6 + 6 + (30 + 4 + 24) * 6 + (6 + 6) * 9 + 9 + 9 * 8 + 8 + 8 + 1);
}

TEST(Dlrm, GivesTheNumbersOfThePublishedProgram) {
  const test::GoldenDlrm golden;
  for (const DType dtype : {DType::f64, DType::f32}) {
    Net net(golden.config, false, dtype);
    for (const auto& [ours, theirs] : golden.names()) net.rig.set(net.rig.params.find(ours)->value, golden.weights.values(theirs));
    const double near = dtype == DType::f64 ? 1e-9 : 1e-4;
    const test::GoldenClicks clicks = golden.batch(0);
    put_clicks(net, clicks.numbers, clicks.categories, clicks.labels);
    golden.expect_close(net.evaluate(), golden.file.values("logits"), near, "logits");
    net.gradients();
    golden.expect_close({net.rig.results.ce}, golden.file.values("loss"), near, "loss");
    const auto gradients = net.all_gradients();
    for (const auto& [ours, theirs] : golden.names())
      golden.expect_close(gradients.at(ours), golden.file.values("grad/" + theirs), near, theirs);
  }
}

// Tables by SparseAdam, whose epsilon stands where Hugging Face's Adam has it, the rest by torch's Adam.
TEST(Dlrm, StepsOfRowsAreThoseOfSparseAdam) {
  const test::GoldenDlrm golden;
  for (const DType dtype : {DType::f64, DType::f32}) {
    const auto by_rows = [](ParamSet& params) {
      for (Param& param : params.params())
        if (param.by_rows) {
          param.way = GradWay::rows;
          param.projected = {std::min<int64_t>(8, param.shape[0]), param.shape[1]};  // 8 examples
        }
    };
    Net net(golden.config, false, dtype, make_exact_stash(), by_rows);
    Optimizer tables(make_adam_rule(AdamFlavour::huggingface, {})), rest(make_adam_rule(AdamFlavour::torch, {}));
    for (const auto& [ours, theirs] : golden.names()) net.rig.set(net.rig.params.find(ours)->value, golden.weights.values(theirs));
    for (Param& param : net.rig.params.params()) (param.by_rows ? tables : rest).attach(param);
    for (Optimizer* optimizer : {&tables, &rest}) optimizer->allocate(*net.rig.device, net.rig.memory, dtype);
    net.rig.scalars.learning_rate[static_cast<int>(ParamGroup::rest)] =
        parse_valid_json(golden.file.metadata().at("learning_rate")).at("sparse_adam");
    const double near = dtype == DType::f64 ? 1e-9 : 1e-4;
    for (int64_t step = 0; step < 3; ++step) {
      const test::GoldenClicks clicks = golden.batch(step);
      put_clicks(net, clicks.numbers, clicks.categories, clicks.labels);
      net.rig.scalars.optimizer_step = static_cast<uint64_t>(step + 1);
      net.gradients();
      golden.expect_close({net.rig.results.ce}, {golden.file.values("losses_sparse_adam")[static_cast<size_t>(step)]}, near, "loss");
      net.rig.run([&](Ctx& ctx) {
        for (Param& param : net.rig.params.params()) (param.by_rows ? tables : rest).update(ctx, param);
      });
    }
    for (const auto& [ours, theirs] : golden.names())
      golden.expect_close(net.value(ours), golden.file.values("after_sparse_adam/" + theirs), near, theirs);
  }
}

}  // namespace
}  // namespace comera::model_test
