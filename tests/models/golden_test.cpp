// The whole classifier against the published code and its trainer, on every encoder_* file there is: logits, losses,
// gradients, AdamW steps of the early stage and runs of the late stage.
//
// The published attention rounds its scores to float and, in backward, their gradient too, whatever the rest is computed
// in. Rounded alike, ours agrees to 2e-15 everywhere; in double, what lies upstream of the scores alone is compared less
// sharply: gradients and weights of queries and keys.
#include "tests/layers/golden.h"

#include <cmath>

#include "tests/models/net.h"

namespace comera::model_test {
namespace {

// TT modes of a file: both sides in one list of equal halves.
void set_matrix(TTOptions& options, const SafetensorsFile& file, const char* modes, const char* ranks) {
  const auto all = golden_setting<std::vector<int64_t>>(file, modes);
  const auto half = all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2);
  options.in_modes.assign(all.begin(), half);
  options.out_modes.assign(half, all.end());
  options.ranks = golden_setting<std::vector<int64_t>>(file, ranks);
}

ModelConfig config_of(const SafetensorsFile& file) {
  ModelConfig config;
  const auto size = [&](const char* key) { return golden_setting<int64_t>(file, key); };
  config.classes = file.entry("logits").shape.at(1);
  config.length = file.entry("ids").shape.at(1);
  config.encoder = {.layers = size("n_layers"),
                    .d_model = size("d_model"),
                    .heads = size("heads"),
                    .d_ff = size("d_hid"),
                    .vocab = size("vocab"),
                    .positions = size("n_position"),
                    .segments = file.entry("before/encoder.embedding.token_type_emb.weight").shape.at(0),
                    .dropout = 0,
                    .attention_dropout = 0,
                    .norm_eps = golden_setting<double>(file, "ln_eps")};
  set_matrix(config.tt.attention, file, "attn_modes", "attn_ranks");
  set_matrix(config.tt.classifier, file, "attn_modes", "attn_ranks");
  set_matrix(config.tt.ffn_in, file, "ff1_modes", "ff1_ranks");
  set_matrix(config.tt.ffn_out, file, "ff2_modes", "ff2_ranks");
  config.tt.embedding.in_modes = golden_setting<std::vector<int64_t>>(file, "emb_rows");
  config.tt.embedding.out_modes = golden_setting<std::vector<int64_t>>(file, "emb_cols");
  config.tt.embedding.ranks = golden_setting<std::vector<int64_t>>(file, "emb_ranks");
  return config;
}

TextRows rows_of(const SafetensorsFile& file) {
  const std::vector<int64_t> shape = file.entry("ids").shape;
  const Values ids = file.values("ids"), mask = file.values("mask"), segments = file.values("segments"), labels = file.values("label");
  TextRows rows;
  for (int64_t s = 0; s < shape[0]; ++s) {
    rows.ids.emplace_back();
    rows.segments.emplace_back();
    bool inside = true;
    for (int64_t t = 0; t < shape[1]; ++t) {
      const size_t at = static_cast<size_t>(s * shape[1] + t);
      EXPECT_TRUE(inside || mask[at] == 0) << "a mask that is no prefix";
      inside = inside && mask[at] != 0;
      if (!inside) continue;
      rows.ids.back().push_back(static_cast<int32_t>(ids[at]));
      rows.segments.back().push_back(static_cast<int32_t>(segments[at]));
    }
    rows.labels.push_back(static_cast<int32_t>(labels[static_cast<size_t>(s)]));
  }
  return rows;
}

class Comparison {
 public:
  Comparison(const SafetensorsFile& file, DType dtype, bool packed)
      : file_(file), double_(dtype == DType::f64), net_(config_of(file), true, dtype) {
    const TextRows rows = rows_of(file);
    int64_t tokens = 0;
    for (const auto& ids : rows.ids) tokens += static_cast<int64_t>(ids.size());
    net_.put(packed ? lay_out(rows, tokens + 3, net_.config.length, true) : padded(rows, net_.config.length));
    const Json rates = golden_setting<Json>(file, "lr");
    double* rate = net_.rig.scalars.learning_rate;
    rate[static_cast<int>(ParamGroup::core)] = rates.at("core").get<double>();
    rate[static_cast<int>(ParamGroup::rank)] = rates.at("rank").get<double>();
    rate[static_cast<int>(ParamGroup::rest)] = rates.at("rest").get<double>();
  }

  double worst = 0;  // relative to the tolerance

  void run() {
    load();
    first_gradients();
    const int64_t steps = golden_setting<int64_t>(file_, "steps");
    const Values early = file_.values("early_loss");
    ASSERT_EQ(static_cast<int64_t>(early.size()), steps);
    for (int64_t i = 0; i < steps; ++i) {
      net_.step();
      near(net_.rig.results.loss, early[static_cast<size_t>(i)], "early_loss");
    }
    weights("after_early/");
    net_.gradients();
    EXPECT_EQ(net_.rig.results.entries, golden_setting<double>(file_, "size_before_late"));
    late(steps);
    weights("after_late/");
    net_.gradients();
    EXPECT_EQ(net_.rig.results.entries, golden_setting<double>(file_, "size_end"));
  }

 private:
  void load() {
    size_t found = 0;
    for (const auto& [name, entry] : file_.entries()) found += name.rfind("before/", 0) == 0;
    EXPECT_EQ(found, net_.rig.params.params().size()) << "the file and the model have other parameters";
    for (Param& param : net_.rig.params.params()) {
      const std::string name = "before/" + official_name(param.name);
      ASSERT_TRUE(file_.has(name)) << param.name << " -> " << name;
      Shape shape;
      for (int64_t size : file_.entry(name).shape) shape.push_back(size);
      EXPECT_EQ(shape, param.shape) << param.name;
      net_.rig.set(param.value, file_.values(name));
    }
  }

  void first_gradients() {
    close(net_.gradients(), file_.values("logits"), "logits");
    near(net_.rig.results.ce, file_.values("ce").at(0), "ce");
    near(net_.rig.results.rho, file_.values("rho").at(0), "rho");
    double largest = 0;
    for (const auto& [name, entry] : file_.entries())
      if (name.rfind("grad/", 0) == 0)
        for (double value : file_.values(name)) largest = std::max(largest, std::fabs(value));
    for (Param& param : net_.rig.params.params())
      close(net_.rig.get(param.grad), file_.values("grad/" + official_name(param.name)), "grad/" + param.name,
            (of_scores(param) ? 1e-3 : 1e-6) * largest);
  }

  void late(int64_t steps) {
    const Values losses = file_.values("late_loss"), lambdas = file_.values("late_lambda");
    const double size = golden_setting<double>(file_, "size_before_late");
    size_t i = 0;
    for (const Json& run : golden_setting<Json>(file_, "late_runs")) {
      net_.reset_optimizer();
      net_.rig.scalars.late = 1;
      net_.rig.scalars.loss_target = run.at("F0").get<double>();
      net_.rig.scalars.size_target = run.at("S0_over_S").get<double>() * size;
      for (int64_t step = 0; step < steps; ++step, ++i) {
        ASSERT_LT(i, losses.size());
        net_.step();
        near(net_.rig.results.loss, losses[i], "late_loss");
        EXPECT_EQ(net_.rig.results.lambda, lambdas[i]) << "late step " << i;
      }
    }
    EXPECT_EQ(i, losses.size());
  }

  // Dead rank entries are dead in both; the published table mask overwrites their values.
  void weights(const std::string& when) {
    for (Param& param : net_.rig.params.params()) {
      Values golden = file_.values(when + official_name(param.name)), ours = net_.rig.get(param.value);
      ASSERT_EQ(golden.size(), ours.size());
      if (param.kind == ParamKind::rank_vector)
        for (size_t i = 0; i < ours.size(); ++i) {
          const bool dead = golden[i] <= net_.rig.scalars.threshold;
          EXPECT_EQ(ours[i] <= net_.rig.scalars.threshold, dead) << when << param.name << " entry " << i;
          if (dead) golden[i] = ours[i] = 0;
        }
      if (is_part(param, ".k.bias")) {  // its gradient is 0 but for rounding, and Adam makes a step of any rounding
        const double steps = static_cast<double>(file_.values("early_loss").size() + file_.values("late_loss").size());
        for (size_t i = 0; i < ours.size(); ++i)
          EXPECT_LE(std::fabs(ours[i] - golden[i]), 2 * steps * net_.rig.scalars.learning_rate[static_cast<int>(ParamGroup::rest)]);
      } else if (of_scores(param) && double_) {
        EXPECT_LE(relative_difference(ours, golden), 1e-6) << when << param.name;
      } else {
        close(ours, golden, when + param.name);
      }
    }
  }

  static bool is_part(const Param& param, const char* part) { return param.name.find(part) != std::string::npos; }
  static bool of_scores(const Param& param) { return is_part(param, ".attn.q.") || is_part(param, ".attn.k."); }

  void close(const Values& actual, const Values& golden, const std::string& what, double floor = 1e-300) {
    const double tolerance = double_ ? kGoldenDouble : kGoldenFloat, difference = relative_difference(actual, golden, floor);
    worst = std::max(worst, difference / tolerance);
    EXPECT_LE(difference, tolerance) << what;
  }
  void near(double actual, double golden, const std::string& what) { close({actual}, {golden}, what); }

  const SafetensorsFile& file_;
  const bool double_;
  Net net_;
};

TEST(Golden, Encoder) {
  const std::vector<std::string> files = golden_files("encoder_");
  if (files.empty()) GTEST_SKIP() << "no encoder_* in the folder";
  for (const std::string& path : files)
    for (const DType dtype : {DType::f64, DType::f32})
      for (const bool packed : {false, true}) {
        SCOPED_TRACE(path + (packed ? ", packed, " : ", padded, ") + name_of(dtype));
        const SafetensorsFile file(path);
        Comparison comparison(file, dtype, packed);
        comparison.run();
        RecordProperty(std::string(name_of(dtype)) + (packed ? "_packed" : "_padded") + "_share_of_tolerance",
                       std::to_string(comparison.worst));
      }
}

}  // namespace
}  // namespace comera::model_test
