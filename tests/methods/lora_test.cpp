// LoRA: the layer against finite differences and the published code, and whole runs: frozen matrices stay, the merged matrix
// computes the same, and a dense model can be taken over.
#include "core/config/method.h"
#include "core/train/model_export.h"
#include "core/train/model_import.h"
#include "tests/layers/check_layer.h"
#include "tests/layers/golden.h"
#include "tests/methods/scored.h"

namespace comera::layer_test {
namespace {

class CountingStash final : public Stash {
 public:
  StashSlot slot(ParamSet&, const char*, int64_t, uint32_t site) override { return ++slots, StashSlot{site, nullptr, 1}; }
  Kept keep(Ctx&, const StashSlot&, const Tensor& x, Use) override { return ++kept, Kept{x, {}, {}}; }
  Tensor load(Ctx&, const StashSlot&, const Kept& kept) override { return kept.exact; }
  int slots = 0, kept = 0;
};

struct Lora {
  Lora(int64_t in, int64_t out, const LoraConfig& config, DType dtype = DType::f64, std::unique_ptr<Stash> stash = nullptr)
      : rig(dtype, std::move(stash)), form(config.make_forms({}, {})[0]) {
    LayerFactory factory(rig.params, *rig.stash, {form});
    layer = factory.linear("l", in, out, LinearKind::attention);
    rig.start();
  }
  Tensor value(const char* name) { return rig.params.find(name)->value; }
  void draw_b() { rig.set(value("l.lora.b"), noise_values(value("l.lora.b").count(), 4)); }

  Rig rig;
  std::shared_ptr<WeightForm> form;
  std::unique_ptr<Layer> layer;
};

TEST(LoraLinear, GradientsAgreeWithFiniteDifferences) {
  for (const auto& [tokens, in, out, rank] : {std::tuple{5, 3, 4, 2}, {1, 7, 2, 3}, {6, 1, 1, 1}, {9, 4, 8, 11}})
    for (const double dropout : {0.0, 0.4})
      for (const bool rest : {false, true}) {
        Lora lora(in, out, {.rank = rank, .alpha = 3, .dropout = dropout, .rest = rest});
        lora.draw_b();
        check_gradients(lora.rig, *lora.layer, lora.rig.noise({tokens, in}), {.step = 1e-3, .tolerance = 1e-9});
        EXPECT_FALSE(lora.rig.params.find("l.weight")->grad);
        EXPECT_EQ(static_cast<bool>(lora.rig.params.find("l.bias")->grad), rest);
      }
}

TEST(LoraLinear, BeginsAsItsBase) {
  Lora lora(6, 5, {.rank = 2});
  Rig plain;
  LayerFactory factory(plain.params, *plain.stash);
  const auto dense = factory.linear("l", 6, 5, LinearKind::attention);
  plain.start();
  const Tensor x = lora.rig.noise({7, 6});
  const Pass pass_of_lora = pass(lora.rig, *lora.layer, x), pass_of_base = pass(plain, *dense, x);
  EXPECT_EQ(pass_of_lora.y, pass_of_base.y);
  EXPECT_EQ(pass_of_lora.dx, pass_of_base.dx);
  EXPECT_EQ(pass_of_lora.grads(lora.rig, "l.lora.a"), Values(12, 0.0)) << "as B is 0";
  EXPECT_NE(pass_of_lora.grads(lora.rig, "l.lora.b"), Values(10, 0.0));
  for (const double value : lora.rig.get(lora.value("l.lora.a"))) EXPECT_LE(std::fabs(value), 1 / std::sqrt(6.0));
}

TEST(LoraLinear, KeepsItsInputOnce) {
  auto stash = std::make_unique<CountingStash>();
  CountingStash& counts = *stash;
  Lora lora(6, 5, {.rank = 2}, DType::f64, std::move(stash));
  EXPECT_EQ(counts.slots, 1);
  pass(lora.rig, *lora.layer, lora.rig.noise({7, 6}));
  EXPECT_EQ(counts.kept, 2) << "in the dry run and in the pass";
}

TEST(LoraLinear, EqualsItsMergedMatrix) {
  Lora lora(6, 5, {.rank = 3, .alpha = 2, .dropout = 0.5});
  lora.draw_b();
  int matrices = 0;
  lora.form->dense(*lora.rig.device, [&](const HostTensor& matrix, const std::vector<const Param*>& parts) {
    ++matrices;
    EXPECT_EQ(matrix.name, "l.weight");
    EXPECT_EQ(parts.size(), 3u);
    Rig plain;
    LayerFactory factory(plain.params, *plain.stash);
    const auto dense = factory.linear("l", 6, 5, LinearKind::attention);
    plain.start();
    plain.set(plain.params.find("l.weight")->value, matrix.values);
    const Tensor x = lora.rig.noise({7, 6});
    EXPECT_LE(relative_difference(evaluate(lora.rig, *lora.layer, x), evaluate(plain, *dense, x)), 1e-14);
  });
  EXPECT_EQ(matrices, 1);
}

TEST(LoraForm, LeavesTablesAndWhatFollowsTheBlocksDense) {
  Rig rig;
  LayerFactory factory(rig.params, *rig.stash, LoraConfig().make_forms({}, {}));
  const auto in = factory.linear("in", 6, 5, LinearKind::ffn_in), head = factory.linear("head", 6, 5, LinearKind::head),
             classifier = factory.linear("classifier", 6, 5, LinearKind::classifier), table = factory.embedding("table", 8, 6);
  for (const char* name : {"head.weight", "head.bias", "classifier.weight", "classifier.bias", "table.weight"})
    EXPECT_TRUE(rig.params.find(name)->trainable) << name;
  for (const char* name : {"in.weight", "in.bias"}) EXPECT_FALSE(rig.params.find(name)->trainable) << name;
  EXPECT_EQ(rig.params.dense_equivalent(), 3 * 35 + 48);
}

struct LoraTable {
  LoraTable(int64_t rows, int64_t columns, LoraConfig config, DType dtype = DType::f64) : rig(dtype) {
    config.tables = true;
    form = config.make_forms({}, {})[0];
    LayerFactory factory(rig.params, *rig.stash, {form});
    layer = factory.embedding("t", rows, columns);
    form->finish(rig.params);
    rig.start();
  }
  Tensor value(const char* name) { return rig.params.find(name)->value; }

  Rig rig;
  std::shared_ptr<WeightForm> form;
  std::unique_ptr<Layer> layer;
};

TEST(LoraTable, GradientsAgreeWithFiniteDifferences) {
  for (const auto& [rows, columns, rank] : {std::tuple{6, 3, 2}, {7, 1, 3}, {8, 4, 11}})
    for (const bool rest : {false, true}) {
      LoraTable lora(rows, columns, {.rank = rank, .alpha = 3, .rest = rest});
      lora.rig.set(lora.value("t.lora.a"), noise_values(rank * rows, 4));
      check_gradients(lora.rig, *lora.layer, lora.rig.put_ids({5, 0, 2, 2, 5, 5}), {.step = 1e-3, .tolerance = 1e-9});
      EXPECT_FALSE(lora.rig.params.find("t.weight")->grad);
    }
}

TEST(LoraTable, BeginsAsItsBase) {
  LoraTable lora(9, 4, {.rank = 2});
  const Tensor ids = lora.rig.put_ids({5, 0, 8, 2, 5});
  const Values table = lora.rig.get(lora.value("t.weight")), y = pass(lora.rig, *lora.layer, ids).y;
  EXPECT_EQ(Values(y.begin(), y.begin() + 4), Values(table.begin() + 20, table.begin() + 24));
  EXPECT_EQ(lora.rig.get(lora.value("t.lora.a")), Values(18, 0.0));
  EXPECT_NE(lora.rig.get(lora.value("t.lora.b")), Values(8, 0.0));
}

// One forward and backward pass; the merged table.
TEST(Golden, LoraEmbedding) {
  for (const std::string& path : golden_files("lora_embedding"))
    for (const DType dtype : {DType::f64, DType::f32}) {
      const SafetensorsFile file(path);
      double worst = 0;
      const auto expect_close = [&](const Values& ours, const char* theirs) {
        const double error = relative_difference(ours, file.values(theirs));
        worst = std::max(worst, error);
        EXPECT_LE(error, dtype == DType::f64 ? kGoldenDouble : kGoldenFloat) << path << " " << name_of(dtype) << ": " << theirs;
      };
      const std::vector<int64_t>& w = file.entry("w0").shape;
      LoraTable lora(w[0], w[1], {.rank = golden_setting<int64_t>(file, "rank"), .alpha = golden_setting<double>(file, "alpha")}, dtype);
      for (const auto& [ours, theirs] : {std::pair("t.weight", "w0"), {"t.lora.a", "a0"}, {"t.lora.b", "b0"}})
        lora.rig.set(lora.value(ours), file.values(theirs));
      std::vector<int32_t> ids;
      for (const double id : file.values("ids")) ids.push_back(static_cast<int32_t>(id));
      const Pass run = pass(lora.rig, *lora.layer, lora.rig.put_ids(ids), file.values("dy"));
      expect_close(run.y, "y");
      expect_close(run.grads(lora.rig, "t.lora.a"), "da");
      expect_close(run.grads(lora.rig, "t.lora.b"), "db");
      lora.form->dense(*lora.rig.device, [&](const HostTensor& matrix, const auto&) { expect_close(matrix.values, "w_merged"); });
      report_golden(path, worst, std::string(" in ") + name_of(dtype));
    }
}

// Four steps of AdamW on A and B, the bias frozen, then the merged matrix.
TEST(Golden, Lora) {
  for (const std::string& path : golden_files("lora"))
    for (const DType dtype : {DType::f64, DType::f32}) {
      SCOPED_TRACE(path + " " + name_of(dtype));
      const SafetensorsFile file(path);
      double worst = 0;
      const auto expect_close = [&](const Values& ours, const Values& theirs, const std::string& what) {
        const double error = relative_difference(ours, theirs);
        worst = std::max(worst, error);
        EXPECT_LE(error, dtype == DType::f64 ? kGoldenDouble : kGoldenFloat) << what;
      };
      const std::vector<int64_t> w = file.entry("w0").shape, x = file.entry("x").shape;
      const auto part = [&](const char* name, int64_t index) {
        const Values all = file.values(name);
        const int64_t count = static_cast<int64_t>(all.size()) / file.entry(name).shape[0];
        return Values(all.begin() + index * count, all.begin() + (index + 1) * count);
      };
      Lora lora(w[1], w[0], {.rank = golden_setting<int64_t>(file, "rank"), .alpha = golden_setting<double>(file, "alpha")}, dtype);
      Rig& rig = lora.rig;
      rig.set(lora.value("l.weight"), file.values("w0"));
      rig.set(lora.value("l.bias"), file.values("bias"));
      const std::pair<const char*, Param*> factors[] = {{"a", rig.params.find("l.lora.a")}, {"b", rig.params.find("l.lora.b")}};
      std::vector<std::pair<Tensor, Tensor>> moments;
      for (const auto& [name, param] : factors) {
        rig.set(param->value, file.values(name + std::string("0")));
        const Values zeros(static_cast<size_t>(param->count()), 0.0);
        moments.emplace_back(rig.put(zeros, param->shape), rig.put(zeros, param->shape));
      }
      rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay");
      const auto betas = golden_setting<std::vector<double>>(file, "betas");
      const AdamRule rule{AdamFlavour::torch, betas[0], betas[1], golden_setting<double>(file, "eps")};
      const auto rates = golden_setting<std::vector<double>>(file, "lr");
      for (int64_t step = 0; step < x[0]; ++step) {
        const std::string at = ", step " + std::to_string(step + 1);
        const Pass run = pass(rig, *lora.layer, rig.put(part("x", step), {x[1], x[2]}), part("dy", step));
        expect_close(run.y, part("y", step), "y" + at);
        expect_close(run.dx, part("dx", step), "dx" + at);
        for (double& rate : rig.scalars.learning_rate) rate = rates[static_cast<size_t>(step)];
        rig.scalars.optimizer_step = static_cast<uint64_t>(step + 1);
        rig.run([&](Ctx& ctx) {
          for (size_t i = 0; i < 2; ++i) {
            Param& param = *factors[i].second;
            ctx.ops.adam(param.value, param.grad, moments[i].first, moments[i].second, rule, param.group, ctx.step);
          }
        });
        for (const auto& [name, param] : factors) {
          expect_close(rig.get(param->grad), part(("d" + std::string(name)).c_str(), step), "d" + std::string(name) + at);
          expect_close(rig.get(param->value), part(name, step), name + at);
        }
      }
      const std::vector<int64_t> rows = file.entry("x_eval").shape;
      expect_close(evaluate(rig, *lora.layer, rig.put(file.values("x_eval"), {rows[0], rows[1]})), file.values("y_eval"), "y_eval");
      lora.form->dense(*rig.device,
                       [&](const HostTensor& matrix, const auto&) { expect_close(matrix.values, file.values("w_merged"), "w_merged"); });
      report_golden(path, worst, std::string(" in ") + name_of(dtype));
    }
}

}  // namespace
}  // namespace comera::layer_test

namespace comera::test {
namespace {

RunConfig lora_of(RunConfig config) {
  config.method.weights = "lora";
  config.method.lora.rank = 4;
  return config;
}

RunConfig with_tables(RunConfig config) {
  config.method.lora.tables = true;
  return config;
}

TEST(LoraRun, TrainsFactorsAndHeadAloneUnlessTheRestIsAsked) {
  for (const RunConfig& small : {image_config(), text_config()})
    for (const auto& [rest, tables] : {std::pair(false, false), {true, false}, {false, true}, {true, true}}) {
      SCOPED_TRACE(small.model.kind + (rest ? " with the rest" : "") + (tables ? " with tables" : ""));
      RunConfig config = lora_of(small);
      config.method.lora.rest = rest;
      config.method.lora.tables = tables;
      config.method.adam.weight_decay = 0.1;
      const auto device = open_cpu_device(2);
      Log log;
      Trainer trainer(config, data_of(config), nullptr, *device, log);
      trainer.start();
      const auto before = values_of(trainer);
      for (int i = 0; i < 8; ++i) trainer.step();
      const auto after = values_of(trainer);
      int64_t trained = 0;
      for (const Param& param : trainer.engine().params().params()) {
        const bool behind = param.name.starts_with("head") || param.name.starts_with("classifier");
        const bool held =
            param.kind == ParamKind::weight || (tables && param.name == "emb.token.weight");  // by a frozen matrix with factors
        const bool expected = behind || param.kind == ParamKind::factor || (rest && !held);
        EXPECT_EQ(param.trainable, expected) << param.name;
        EXPECT_EQ(after.at(param.name) != before.at(param.name), expected) << param.name;
        trained += expected ? param.count() : 0;
      }
      EXPECT_EQ(trainer.engine().params().trained(), trained);
      const MemoryByPurpose memory = trainer.engine().planned();
      EXPECT_LT(memory[Purpose::gradient], memory[Purpose::dense_weight]);
      EXPECT_LE(memory[Purpose::optimizer], 2 * memory[Purpose::gradient]);
    }
}

// lora -> merged export -> dense model, and on to a lora model, whose frozen matrices are the merged ones.
TEST(LoraRun, MergedExportComputesTheSameAndCanBeGoneOnFrom) {
  for (const RunConfig& config : {lora_of(image_config()), lora_of(text_config()), with_tables(lora_of(text_config()))}) {
    SCOPED_TRACE(config.model.kind + (config.method.lora.tables ? " with tables" : ""));
    RunConfig dense = config;
    dense.method.weights = "dense";
    const auto device = open_cpu_device(2);
    Log log;
    Trainer trainer(config, data_of(config), nullptr, *device, log);
    trainer.start();
    for (int i = 0; i < 8; ++i) trainer.step();
    const std::string saved = file("lora"), merged = file("lora-merged"), as_dense = file("lora-dense"), again = file("lora-again");
    trainer.save(saved);
    export_model(saved, merged, ExportNames::own, true, false);
    EXPECT_FALSE(SafetensorsFile(merged).has(config.model.kind == "mlp" ? "fc0.lora.a" : "enc0.attn.q.lora.a"));
    import_model(merged, dense, as_dense);
    import_model(merged, config, again);
    const Outputs trained = scored(saved, config);
    expect_equal(scored(as_dense, config), trained);
    expect_equal(scored(again, config), trained);
    Trainer on(config, data_of(config), nullptr, *device, log);
    on.restore(again);
    const auto before = values_of(on);
    for (int i = 0; i < 3; ++i) on.step();
    const auto after = values_of(on);
    for (const Param& param : on.engine().params().params())
      EXPECT_EQ(after.at(param.name) != before.at(param.name), param.trainable) << param.name;
    for (const std::string& path : {saved, merged, as_dense, again}) std::filesystem::remove(path);
  }
}

TEST(LoraRun, HasNoRanksToControl) {
  const RunConfig config = lora_of(image_config());
  const auto device = open_cpu_device(1);
  Log log;
  Trainer trainer(config, data_of(config), nullptr, *device, log);
  trainer.start();
  EXPECT_THROW(trainer.edit("stage", "late"), Error);
  EXPECT_THROW(trainer.edit("rank.cap.fc0.1", "2"), Error);
  RunConfig odd = config;
  odd.model.tt.ffn_in.in_modes = {5};  // which does not multiply to the size
  EXPECT_TRUE(config_problems(odd).empty());
  const UnusedSettings unused = unused_settings(fields_of(odd));
  for (const char* path : {"model.tt", "method.comera", "train.lr_rank"}) EXPECT_TRUE(unused.contains(path)) << path;
  EXPECT_FALSE(unused.contains("method.lora"));
}

}  // namespace
}  // namespace comera::test
