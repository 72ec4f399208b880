// Every recipe of the table trains every kind of model of texts or images: a tiny one learns one batch by heart in 30 steps, with a rank
// cut in the middle where there are ranks.
#include "core/config/named_methods.h"
#include "core/methods/rank_control.h"
#include "core/methods/tables.h"
#include "core/models/model.h"
#include "tests/config/choices.h"
#include "tests/optim/harness.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

ModelConfig tiny(const std::string& kind) {
  ModelConfig config = small_run(kind).model;
  config.classes = 3;
  config.length = 5;
  FieldValues values = field_values(fields_of(config));
  for (auto& [path, value] : values)
    if (path.ends_with("dropout")) value = 0.0;
  set_field_values(fields_of(config), values);
  for (TTOptions* options :
       {&config.tt.attention, &config.tt.ffn_in, &config.tt.ffn_out, &config.tt.classifier, &config.tt.convolution, &config.tt.embedding}) {
    options->cores = 2;
    options->rank = 6;
  }
  return config;
}

struct ModelRig {
  static constexpr int64_t kSequences = 6;

  ModelRig(const ModelConfig& model_config, const MethodConfig& method)
      : rig(DType::f32), stash(make_stash(method)), optimizer(make_optimizer(method)) {
    LayerFactory factory(params, *stash, make_forms(method, model_config.tt));
    model = build_model(model_config, factory);
    for (Param& param : params.params()) optimizer->attach(param);
    params.allocate(rig.memory, DType::f32);
    optimizer->allocate(*rig.device, rig.memory, DType::f32);
    params.initialise(*rig.device, 3);
    data = Buffer(rig.memory, 1 << 14, Purpose::data);
    const int64_t tokens = kSequences * model_config.length;
    Values ids, segments, positions, starts, lengths, labels;
    for (int64_t t = 0; t < tokens; ++t) {
      ids.push_back(static_cast<double>((t * 7 + t / 5) % 40));
      segments.push_back(static_cast<double>(t % 5 > 2));
      positions.push_back(static_cast<double>(t % 5));
    }
    for (int64_t s = 0; s < kSequences; ++s) {
      starts.push_back(static_cast<double>(s * 5));
      lengths.push_back(static_cast<double>(3 + s % 3));
      labels.push_back(static_cast<double>((s * 2) % 3));
    }
    batch.fields = {{"ids", ints(ids)},       {"segments", ints(segments)}, {"positions", ints(positions)},
                    {"starts", ints(starts)}, {"lengths", ints(lengths)},   {"labels", ints(labels)}};
    batch.examples = kSequences;
    batch.tokens = kSequences;
    batch.longest = model_config.length;
    const BatchLayout inputs = model_inputs(model_config);
    if (const BatchField* field = inputs.find("pixels")) {
      const Tensor pixels = batch["pixels"] = place({kSequences, field->width}, DType::f32);
      from_host(*rig.device, pixels, random_values(pixels.count(), 5));
    } else {
      batch.tokens = tokens;
    }
  }

  Tensor place(const Shape& shape, DType dtype) {
    Tensor tensor(static_cast<char*>(data.data()) + used, shape, dtype);
    used += (tensor.bytes() + 63) / 64 * 64;
    return tensor;
  }
  Tensor ints(const Values& values) {
    const Tensor tensor = place({static_cast<int64_t>(values.size())}, DType::i32);
    from_host(*rig.device, tensor, values);
    return tensor;
  }

  double step(uint64_t t) {
    rig.begin(t);
    Ctx ctx = rig.ctx(*stash);
    ctx.sequences = {batch.at("starts"), batch.at("lengths"), batch.longest};
    rig.run([&] {
      Tensor logits = model->forward(ctx, batch);
      Tensor dlogits = ctx.temp(logits.shape(), "dlogits");
      ctx.ops.cross_entropy(ctx.results, dlogits, {}, logits, batch.at("labels"));
      logits = {};
      stash->forget();
      model->backward(ctx, std::move(dlogits));
    });
    const double loss = rig.read_results().ce;
    if (optimizer->refresh_due(t)) rig.run([&] { optimizer->refresh(ctx, params.params(), t); });
    rig.run([&] { optimizer->update(ctx, params.params()); });
    return loss;
  }

  Rig rig;
  ParamSet params;
  std::unique_ptr<Stash> stash;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Model> model;
  Buffer data;
  int64_t used = 0;
  DeviceBatch batch;
};

class Recipes : public testing::TestWithParam<std::tuple<std::string, std::string>> {};
std::vector<std::string> all_ids() {
  std::vector<std::string> ids;
  for (const NamedMethod& recipe : named_methods()) ids.push_back(recipe.id);
  return ids;
}
std::vector<std::string> kinds() {
  std::vector<std::string> kinds;
  for (const RunConfig& run : small_runs())
    if (run.model.task == "classification") kinds.push_back(run.model.kind);
  return kinds;
}
INSTANTIATE_TEST_SUITE_P(All, Recipes, testing::Combine(testing::ValuesIn(all_ids()), testing::ValuesIn(kinds())), [](const auto& info) {
  std::string name = std::get<0>(info.param) + "_" + std::get<1>(info.param);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

TEST_P(Recipes, LearnsABatchByHeart) {
  MethodConfig method = find_method(std::get<0>(GetParam())).config;
  method.galore.rank = 8;
  method.galore.gap = 10;
  const double factor = take_rates_of_adamw(method);
  method.adam8bit.min_size = 64;
  ModelRig net(tiny(std::get<1>(GetParam())), method);
  // Pre-norm blocks do not settle at the rate of the others: where a run of 30 steps ends would be a matter of rounding.
  const double adamw = std::get<1>(GetParam()) == "vit" ? 0.003 : 0.01;
  for (double& rate : net.rig.scalars.learning_rate) rate = adamw * factor;
  EXPECT_EQ(net.params.rank_layers().empty(), method.weights != "tt");
  const double first = net.step(1);
  double last = first;
  for (uint64_t t = 2; t <= 30; ++t) {
    if (t == 15 && !net.params.rank_layers().empty()) {
      for (const RankLayer& layer : net.params.rank_layers()) {
        Values ranks = to_host(*net.rig.device, layer.ranks[0]->value);
        if (ranks.size() > 1) ranks[0] = -0.5;
        from_host(*net.rig.device, layer.ranks[0]->value, ranks);
      }
      const int64_t before = net.params.count();
      Ctx ctx = net.rig.ctx(*net.stash);
      resize_bonds(*net.rig.device, net.rig.memory, net.params, *net.optimizer, ctx, plan_cut(net.params, *net.rig.device, 0.01, 0.1));
      EXPECT_LT(net.params.count(), before);
    }
    last = net.step(t);
    ASSERT_TRUE(std::isfinite(last)) << "step " << t;
  }
  EXPECT_LT(last, 0.5 * first);
  const MemoryByPurpose params = net.params.planned(DType::f32), optimizer = net.optimizer->planned(DType::f32), now = net.rig.memory.now();
  EXPECT_EQ(now[Purpose::optimizer], optimizer[Purpose::optimizer]);
  EXPECT_EQ(now[Purpose::tt_core], params[Purpose::tt_core]);
  EXPECT_EQ(now[Purpose::gradient], params[Purpose::gradient]);
}

}  // namespace
}  // namespace comera::test
