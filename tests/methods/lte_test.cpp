// LTE: the layer against finite differences and the published code, what a merge and a reset leave, and whole runs: one head is LoRA, a
// run that goes on between two merges ends with the same bytes, and an export holds what evaluations use.
#include "core/methods/lte.h"
#include "core/config/method.h"
#include "core/train/model_export.h"
#include "core/train/model_import.h"
#include "tests/layers/check_layer.h"
#include "tests/layers/golden.h"
#include "tests/methods/scored.h"

namespace comera::layer_test {
namespace {

// Says for what its tensors were kept.
class TellingStash final : public Stash {
 public:
  StashSlot slot(ParamSet&, const char*, int64_t, uint32_t site) override { return {site, nullptr, 1}; }
  Kept keep(Ctx&, const StashSlot&, const Tensor& x, Use use) override { return uses.push_back(use), Kept{x, {}, {}}; }
  Tensor load(Ctx&, const StashSlot&, const Kept& kept) override { return kept.exact; }
  std::vector<Use> uses;
};

struct LteModel {
  LteModel(int64_t in, int64_t out, const LteConfig& config, DType dtype = DType::f64, std::unique_ptr<Stash> stash = nullptr)
      : rig(dtype, std::move(stash)), form(config.make_forms({}, {})[0]) {
    LayerFactory factory(rig.params, *rig.stash, {form});
    layer = factory.linear("l", in, out, LinearKind::attention);
    method = std::make_unique<Lte>(config, rig.params);
    rig.start();
  }
  Param& param(const std::string& name) { return *rig.params.find("l." + name); }
  Values get(const std::string& name) { return rig.get(param(name).value); }
  void set(const std::string& name, const Values& values) { rig.set(param(name).value, values); }
  // B and what was merged, as after some steps and merges.
  void draw_factors() {
    for (const char* name : {"lte.b", "lte.merged_a", "lte.merged_b"}) set(name, noise_values(param(name).count(), 4 + std::strlen(name)));
  }
  void merge() { method->merge(rig.device->ops()); }

  Rig rig;
  std::shared_ptr<WeightForm> form;
  std::unique_ptr<Layer> layer;
  std::unique_ptr<Lte> method;
};

TEST(LteLinear, GradientsAgreeWithFiniteDifferences) {
  for (const auto& [heads, tokens, in, out, rank] : {std::tuple{1, 5, 3, 4, 2}, {2, 6, 7, 2, 3}, {3, 3, 1, 1, 1}, {4, 8, 4, 8, 11}})
    for (const bool rest : {false, true}) {
      LteModel lte(in, out, {.heads = heads, .rank = rank, .alpha = 3, .rest = rest});
      lte.draw_factors();
      check_gradients(lte.rig, *lte.layer, lte.rig.noise({tokens, in}), {.step = 1e-3, .tolerance = 1e-9});
      for (const char* name : {"weight", "lte.merged_a", "lte.merged_b"}) EXPECT_FALSE(lte.param(name).grad) << name;
      EXPECT_EQ(static_cast<bool>(lte.param("bias").grad), rest);
    }
}

TEST(LteLinear, BeginsAsItsBase) {
  LteModel lte(6, 5, {.heads = 2, .rank = 2});
  Rig plain;
  LayerFactory factory(plain.params, *plain.stash);
  const auto dense = factory.linear("l", 6, 5, LinearKind::attention);
  plain.start();
  const Tensor x = lte.rig.noise({8, 6});
  const Pass ours = pass(lte.rig, *lte.layer, x), base = pass(plain, *dense, x);
  EXPECT_EQ(ours.y, base.y);
  EXPECT_EQ(ours.dx, base.dx);
  EXPECT_EQ(ours.grads(lte.rig, "l.lte.a"), Values(24, 0.0)) << "as B is 0";
  EXPECT_NE(ours.grads(lte.rig, "l.lte.b"), Values(20, 0.0));
}

// A_h A_h^T = n / r, or A_h^T A_h = n / r where there are more rows than columns.
TEST(LteLinear, FactorsBeginOrthogonal) {
  for (const auto& sides : {std::pair<int64_t, int64_t>{9, 4}, {5, 5}, {3, 7}}) {
    const int64_t in = sides.first, rank = sides.second;
    LteModel lte(in, 2, {.heads = 3, .rank = rank});
    const Values a = lte.get("lte.a");
    const int64_t lines = std::min(in, rank), length = std::max(in, rank);
    for (int64_t head = 0; head < 3; ++head)
      for (int64_t i = 0; i < lines; ++i)
        for (int64_t j = 0; j < lines; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < length; ++k) {
            const auto at = [&](int64_t line) {
              return a[static_cast<size_t>(head * rank * in + (rank <= in ? line * in + k : k * in + line))];
            };
            sum += at(i) * at(j);
          }
          EXPECT_NEAR(sum, i == j ? static_cast<double>(in) / static_cast<double>(rank) : 0, 1e-12);
        }
    const auto count = static_cast<size_t>(rank * in);
    EXPECT_NE(Values(a.begin(), a.begin() + static_cast<long>(count)),
              Values(a.begin() + static_cast<long>(count), a.begin() + static_cast<long>(2 * count)));
  }
}

TEST(LteLinear, KeepsItsInputOnceAndAllRowsWhereHeadsHaveTheirOwn) {
  for (const int64_t heads : {1, 2}) {
    auto stash = std::make_unique<TellingStash>();
    TellingStash& told = *stash;
    LteModel lte(6, 5, {.heads = heads, .rank = 2}, DType::f64, std::move(stash));
    pass(lte.rig, *lte.layer, lte.rig.noise({8, 6}));
    const Use use = heads == 1 ? Use::product : Use::other;
    EXPECT_EQ(told.uses, (std::vector<Use>{use, use})) << "in the dry run and in the pass";
  }
}

// 768 -> 3072, of the table in METHODS.md 14, without the bias.
TEST(LteLinear, TakesTheBytesOfTheTable) {
  Rig rig(DType::f32);
  LayerFactory factory(rig.params, *rig.stash, LteConfig{.heads = 32, .rank = 32}.make_forms({}, {}));
  const auto layer = factory.linear("l", 768, 3072, LinearKind::ffn_in);
  const MemoryByPurpose planned = rig.params.planned(DType::f32);
  EXPECT_EQ(planned[Purpose::dense_weight], 40894464 + 4 * 3072);
  EXPECT_EQ(planned[Purpose::gradient], 15728640);
}

TEST(LteLinear, EvaluatesAndExportsTheMatrixAlone) {
  LteModel lte(6, 5, {.heads = 2, .rank = 3});
  lte.draw_factors();
  const Tensor x = lte.rig.noise({7, 6});  // which need not divide by the heads
  Rig plain;
  LayerFactory factory(plain.params, *plain.stash);
  const auto dense = factory.linear("l", 6, 5, LinearKind::attention);
  plain.start();
  EXPECT_EQ(evaluate(lte.rig, *lte.layer, x), evaluate(plain, *dense, x));
  int matrices = 0;
  lte.form->dense(*lte.rig.device, [&](const HostTensor& matrix, const std::vector<const Param*>& parts) {
    ++matrices;
    EXPECT_EQ(matrix.name, "l.weight");
    EXPECT_EQ(matrix.values, lte.get("weight"));
    EXPECT_EQ(parts.size(), 5u);
  });
  EXPECT_EQ(matrices, 1);
}

TEST(LteMerge, LeavesEveryHeadWithTheNewMatrix) {
  LteModel lte(6, 5, {.heads = 3, .rank = 2, .alpha = 5});
  lte.draw_factors();
  const Values before = lte.get("weight");
  const Tensor x = lte.rig.noise({9, 6});
  EXPECT_GT(relative_difference(pass(lte.rig, *lte.layer, x).y, evaluate(lte.rig, *lte.layer, x)), 0.1);
  lte.merge();
  EXPECT_GT(relative_difference(lte.get("weight"), before), 0.1);
  EXPECT_LE(relative_difference(pass(lte.rig, *lte.layer, x).y, evaluate(lte.rig, *lte.layer, x)), 1e-13);
  const Values merged = lte.get("weight");
  lte.merge();
  EXPECT_LE(relative_difference(lte.get("weight"), merged), 1e-13) << "nothing was learned in between";
}

TEST(LteMerge, AResetLeavesTheMatrixAndDrawsAnew) {
  LteModel lte(6, 5, {.heads = 3, .rank = 2});
  const Values first = lte.get("lte.a");
  lte.draw_factors();
  lte.merge();
  const Values merged = lte.get("weight");
  lte.method->reset(*lte.rig.device, 1, 10);
  EXPECT_EQ(lte.get("weight"), merged);
  for (const char* name : {"lte.b", "lte.merged_a", "lte.merged_b"})
    EXPECT_EQ(lte.get(name), Values(static_cast<size_t>(lte.param(name).count()), 0.0)) << name;
  const Values second = lte.get("lte.a");
  EXPECT_GT(relative_difference(second, first), 0.1);
  double squares = 0;
  for (const double value : second) squares += value * value;
  EXPECT_NEAR(squares, 3 * 6, 1e-12) << "three heads of rows that are as long as before";
  lte.method->reset(*lte.rig.device, 1, 20);
  EXPECT_GT(relative_difference(lte.get("lte.a"), second), 0.1);
  lte.merge();
  EXPECT_EQ(lte.get("weight"), merged);
}

// One published run: steps of AdamW on the factors, merges, and at one step a reset.
class PublishedLte {
 public:
  PublishedLte(const std::string& path, DType type)
      : file_(path),
        dtype_(type),
        shape_(file_.entry("x").shape),
        lte_(file_.entry("w0").shape[1], file_.entry("w0").shape[0],
             {.heads = setting("heads"),
              .rank = setting("rank"),
              .alpha = golden_setting<double>(file_, "alpha"),
              .merge_every = setting("merge_every")},
             type),
        reset_after_(golden_setting<int64_t>(file_, "reset_after_step", -1)) {
    lte_.set("weight", file_.values("w0"));
    lte_.set("bias", file_.values("bias"));
    for (const char* name : {"a", "b"}) {
      lte_.set(std::string("lte.") + name, file_.values(name + std::string("0")));
      const Param& param = lte_.param(std::string("lte.") + name);
      const Values zeros(static_cast<size_t>(param.count()), 0.0);
      moments_.emplace_back(lte_.rig.put(zeros, param.shape), lte_.rig.put(zeros, param.shape));
    }
  }

  double run() {
    for (int64_t step = 0; step < shape_[0]; ++step) {
      SCOPED_TRACE("step " + std::to_string(step + 1));
      pass_of(step);
      update(step);
      if ((step + 1) % setting("merge_every") == 0) lte_.merge();
      compare(lte_.get("weight"), part(right("w"), step), "w");
      if (step == reset_after_) {
        lte_.method->reset(*lte_.rig.device, 1, step);
        lte_.set("lte.a", file_.values("a_reset"));
      }
    }
    const Tensor x = rows(file_.values("x_eval"));
    compare(evaluate(lte_.rig, *lte_.layer, x), file_.values(right("y_eval")), "y_eval");
    return worst_;
  }

 private:
  int64_t setting(const char* name) const { return golden_setting<int64_t>(file_, name); }
  // Where the published reset leaves what was merged (`deviation` of the file), the corrected values stand beside.
  std::string right(const std::string& name) const { return file_.has(name + "_right") ? name + "_right" : name; }
  Values part(const std::string& name, int64_t index) const {
    const Values all = file_.values(name);
    const int64_t count = static_cast<int64_t>(all.size()) / file_.entry(name).shape[0];
    return Values(all.begin() + index * count, all.begin() + (index + 1) * count);
  }
  Tensor rows(const Values& values) {
    const int64_t columns = shape_.back();
    return lte_.rig.put(values, {static_cast<int64_t>(values.size()) / columns, columns});
  }
  void compare(const Values& ours, const Values& theirs, const std::string& what) {
    const double error = relative_difference(ours, theirs);
    worst_ = std::max(worst_, error);
    EXPECT_LE(error, dtype_ == DType::f64 ? kGoldenDouble : kGoldenFloat) << what;
  }

  void pass_of(int64_t step) {
    const Pass run = pass(lte_.rig, *lte_.layer, rows(part("x", step)), part("dy", step));
    compare(run.y, part(right("y"), step), "y");
    compare(run.dx, dx(step), "dx");
    for (const char* name : {"a", "b"})
      compare(run.grads(lte_.rig, std::string("l.lte.") + name), part(std::string("d") + name, step), std::string("d") + name);
  }

  // The file has no corrected dx: behind the reset the published one still has the branch of what was merged last, s dy B' A' less.
  Values dx(int64_t step) const {
    Values out = part("dx", step);
    if (reset_after_ < 0 || step <= reset_after_) return out;
    const auto heads = static_cast<size_t>(setting("heads")), rank = static_cast<size_t>(setting("rank")),
               in = static_cast<size_t>(shape_.back()), n = out.size() / in;
    const Values dy = part("dy", step), a = part("a", reset_after_), b = part("b", reset_after_);
    const size_t width = dy.size() / n;
    const double scale = golden_setting<double>(file_, "alpha") / static_cast<double>(rank);
    for (size_t row = 0; row < n; ++row)
      for (size_t k = 0; k < rank; ++k) {
        const size_t head = row * heads / n;
        double dh = 0;
        for (size_t o = 0; o < width; ++o) dh += scale * dy[row * width + o] * b[(head * width + o) * rank + k];
        for (size_t i = 0; i < in; ++i) out[row * in + i] += dh * a[(head * rank + k) * in + i];
      }
    return out;
  }

  void update(int64_t step) {
    Rig& rig = lte_.rig;
    const auto betas = golden_setting<std::vector<double>>(file_, "betas");
    const AdamRule rule{AdamFlavour::torch, betas[0], betas[1], golden_setting<double>(file_, "eps")};
    rig.scalars.weight_decay = golden_setting<double>(file_, "weight_decay");
    for (double& rate : rig.scalars.learning_rate) rate = golden_setting<std::vector<double>>(file_, "lr")[static_cast<size_t>(step)];
    rig.scalars.optimizer_step = static_cast<uint64_t>(step + 1);
    rig.run([&](Ctx& ctx) {
      for (size_t i = 0; i < 2; ++i) {
        Param& param = lte_.param(i == 0 ? "lte.a" : "lte.b");
        ctx.ops.adam(param.value, param.grad, moments_[i].first, moments_[i].second, rule, param.group, ctx.step);
      }
    });
    for (const char* name : {"a", "b"}) compare(lte_.get(std::string("lte.") + name), part(name, step), name);
  }

  const SafetensorsFile file_;
  const DType dtype_;
  const std::vector<int64_t> shape_;
  LteModel lte_;
  const int64_t reset_after_;
  std::vector<std::pair<Tensor, Tensor>> moments_;
  double worst_ = 0;
};

TEST(Golden, Lte) {
  for (const std::string& path : golden_files("lte"))
    for (const DType dtype : {DType::f64, DType::f32}) {
      SCOPED_TRACE(path + " " + name_of(dtype));
      report_golden(path, PublishedLte(path, dtype).run(), std::string(" in ") + name_of(dtype));
    }
}

}  // namespace
}  // namespace comera::layer_test

namespace comera::test {
namespace {

RunConfig lte_of(RunConfig config, int64_t heads = 2) {
  config.method.weights = "lte";
  config.method.lte.heads = heads;
  config.method.lte.rank = 4;
  config.method.lte.merge_every = 3;
  return config;
}

TEST(LteRun, TrainsFactorsAndHeadAloneAndMatricesByMerges) {
  for (const RunConfig& small : {image_config(), text_config()})
    for (const bool rest : {false, true}) {
      SCOPED_TRACE(small.model.kind + (rest ? " with the rest" : ""));
      RunConfig config = lte_of(small);
      config.method.lte.rest = rest;
      const auto device = open_cpu_device(2);
      Log log;
      Trainer trainer(config, data_of(config), nullptr, *device, log);
      trainer.start();
      auto before = values_of(trainer);
      for (int step = 1; step <= 7; ++step) {
        trainer.step();
        const auto after = values_of(trainer);
        for (const Param& param : trainer.engine().params().params()) {
          const bool behind = param.name.starts_with("head") || param.name.starts_with("classifier"),
                     merged = param.kind == ParamKind::weight || param.name.find(".lte.merged_") != std::string::npos;
          const bool trained = !merged && (behind || param.kind == ParamKind::factor || rest);
          EXPECT_EQ(param.trainable, trained) << param.name;
          if (merged) {
            EXPECT_EQ(after.at(param.name) != before.at(param.name), step % 3 == 0) << param.name << ", step " << step;
          }
          if (!merged && !trained) {
            EXPECT_EQ(after.at(param.name), before.at(param.name)) << param.name;
          }
        }
        before = after;
      }
    }
}

// Whatever the interval: what is merged is taken off again. Both begin with the same factors.
TEST(LteRun, OneHeadIsLora) {
  for (RunConfig config : {image_config(), text_config()}) {
    config.model.mlp.dropout = config.model.encoder.dropout = config.model.encoder.attention_dropout = 0;
    config.train.precision = "f64";
    config.method.lora.rank = 4;
    config.method.adam.eps = 1e-4;  // where v is near 0, m / sqrt(v) makes much of a last bit
    const auto losses = [&](RunConfig of) {
      const auto device = open_cpu_device(1);
      Log log;
      Trainer trainer(of, data_of(of), nullptr, *device, log);
      trainer.start();
      for (Param& param : trainer.engine().params().params())
        if (param.kind == ParamKind::factor && param.name.ends_with(".a"))
          from_host(*device, param.value, layer_test::noise_values(param.count(), 3, 0.3));
      for (int step = 0; step < 9; ++step) trainer.step();
      return log.losses;
    };
    config.method.weights = "lora";
    const std::vector<double> lora = losses(config);
    for (const int64_t every : {1, 3, 100}) {
      RunConfig of = lte_of(config, 1);
      of.method.lte.merge_every = every;
      const std::vector<double> lte = losses(of);
      ASSERT_EQ(lte.size(), lora.size());
      for (size_t i = 0; i < lte.size(); ++i) EXPECT_NEAR(lte[i], lora[i], 1e-11) << "step " << i + 1 << ", merged every " << every;
    }
  }
}

// Every head sees the same examples, in one part of the batch or in several.
TEST(LteRun, PartsEqualTheWholeBatch) {
  RunConfig config = lte_of(text_config(), 4);
  config.train.precision = "f64";
  config.train.batch = 16;
  config.model.encoder.dropout = config.model.encoder.attention_dropout = 0;
  config.method.adam.eps = 1e-4;
  const auto values = [&](int64_t parts) {
    config.train.micro_batches = parts;
    const auto device = open_cpu_device(1);
    Log log;
    Trainer trainer(config, data_of(config), nullptr, *device, log);
    trainer.start();
    for (int step = 0; step < 7; ++step) trainer.step();
    return values_of(trainer);
  };
  const auto whole = values(1);
  for (const int64_t parts : {2, 4, 8})
    for (const auto& [name, value] : values(parts))
      EXPECT_LE(layer_test::relative_difference(value, whole.at(name)), 1e-9) << name << ", " << parts;
}

TEST(LteRun, GoesOnBetweenTwoMergesWithTheSameBytes) {
  for (const bool reset : {false, true})
    for (const int64_t parts : {1, 2}) {
      RunConfig config = lte_of(text_config());
      config.train.micro_batches = parts;
      config.method.lte.reset = reset;
      const std::string middle = file("lte-middle"), ends[2] = {file("lte-whole"), file("lte-resumed")};
      const auto device = open_cpu_device(2);
      Log log;
      Trainer whole(config, data_of(config), nullptr, *device, log);
      whole.start();
      EXPECT_EQ(whole.engine().planned().total(), whole.engine().memory().now().total());
      for (int step = 1; step <= 8; ++step) {
        whole.step();
        if (step == 4) whole.save(middle);
      }
      whole.save(ends[0]);
      Trainer resumed(config, data_of(config), nullptr, *device, log);
      resumed.restore(middle);
      for (int step = 5; step <= 8; ++step) resumed.step();
      resumed.save(ends[1]);
      EXPECT_EQ(difference(ends[0], ends[1]), "");
      for (const std::string& path : {middle, ends[0], ends[1]}) std::filesystem::remove(path);
    }
}

TEST(LteRun, ExportsWhatEvaluationsUseAndCanBeGoneOnFrom) {
  for (const RunConfig& small : {image_config(), text_config()}) {
    SCOPED_TRACE(small.model.kind);
    const RunConfig config = lte_of(small);
    RunConfig dense = config;
    dense.method.weights = "dense";
    const auto device = open_cpu_device(2);
    Log log;
    Trainer trainer(config, data_of(config), nullptr, *device, log);
    trainer.start();
    for (int i = 0; i < 8; ++i) trainer.step();
    const std::string saved = file("lte"), merged = file("lte-merged"), as_dense = file("lte-dense"), again = file("lte-again");
    trainer.save(saved);
    export_model(saved, merged, ExportNames::own, true, false);
    const SafetensorsFile exported(merged);
    for (const auto& [name, entry] : exported.entries()) EXPECT_EQ(name.find(".lte."), std::string::npos) << name;
    import_model(merged, dense, as_dense);
    import_model(merged, config, again);
    const Outputs trained = scored(saved, config);
    expect_equal(scored(as_dense, config), trained);
    expect_equal(scored(again, config), trained);
    for (const std::string& path : {saved, merged, as_dense, again}) std::filesystem::remove(path);
  }
}

TEST(LteRun, HeadsShareEveryMicroBatchEvenly) {
  RunConfig config = lte_of(text_config(), 4);
  config.train.batch = 8;
  EXPECT_TRUE(config_problems(config).empty());
  const auto refusal = [](const RunConfig& of) {
    const std::vector<Problem> problems = config_problems(of);
    EXPECT_EQ(problems.size(), 1u);
    EXPECT_TRUE(problems.empty() || (problems[0].path == "method.lte.heads" && !problems[0].hint.empty()));
    return problems.empty() ? "" : problems[0].text;
  };
  for (const int64_t parts : {2, 4, 8}) {  // of two heads, one, half of one
    config.train.micro_batches = parts;
    EXPECT_TRUE(config_problems(config).empty()) << parts;
  }
  config.train.batch = 9;
  config.train.micro_batches = 3;
  EXPECT_NE(refusal(config).find("4 must divide the 3 examples"), std::string::npos) << refusal(config);
  config.train.micro_batches = 1;
  config.train.batch = 6;
  EXPECT_NE(refusal(config).find("must divide the 6 examples"), std::string::npos) << refusal(config);
  config.train.batch = 8;
  config.data.pack = true;
  EXPECT_NE(refusal(config).find("a packed batch"), std::string::npos) << refusal(config);
  config.method.lte.heads = 1;
  EXPECT_TRUE(config_problems(config).empty());
  config.method.lte.heads = 3;
  config.method.weights = "dense";
  EXPECT_TRUE(config_problems(config).empty()) << "heads are not used";
}

TEST(LteRun, HasNoRanksToControl) {
  RunConfig config = lte_of(image_config());
  const auto device = open_cpu_device(1);
  Log log;
  Trainer trainer(config, data_of(config), nullptr, *device, log);
  trainer.start();
  EXPECT_THROW(trainer.edit("stage", "late"), Error);
  EXPECT_THROW(trainer.edit("rank.cap.fc0.1", "2"), Error);
  EXPECT_THROW(trainer.edit("method.lte.merge_every", "2"), Error) << "it is fixed";
  const UnusedSettings unused = unused_settings(fields_of(config));
  for (const char* path : {"model.tt", "method.comera", "method.lora", "train.lr_rank"}) EXPECT_TRUE(unused.contains(path)) << path;
  EXPECT_FALSE(unused.contains("method.lte"));
}

}  // namespace
}  // namespace comera::test
