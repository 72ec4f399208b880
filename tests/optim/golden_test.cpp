// GaLore, 8-bit GaLore and 8-bit Adam against the published code, on every file of theirs there is.
//
// Singular vectors are defined up to sign, and the published code decomposes in float even for double weights, so its
// projections are good to about 1e-6. Fed with them we must agree to 1e-9; with our own, sign by sign as they chose, to 1e-4.
#include <optional>

#include "core/ops/quant_math.h"
#include "tests/optim/published_run.h"

namespace comera::test {
namespace {

using layer_test::golden_files;
using layer_test::golden_setting;

// What is stored in 8 bits was computed in float there, and is given with its tolerance.
double tolerance_of(const SafetensorsFile& file, DType dtype) {
  if (golden_setting<std::string>(file, "precision", "float64") == "float32") return golden_setting<double>(file, "tolerance");
  return dtype == DType::f64 ? layer_test::kGoldenDouble : layer_test::kGoldenFloat;
}

// One published run of one matrix, and ours beside it.
struct Replay {
  Replay(const std::string& path, DType dtype)
      : file(path), rig(dtype), kind(layer_test::golden_kind(file)), tolerance(tolerance_of(file, dtype)) {
    AdamConfig adam;
    const auto betas = golden_setting<std::vector<double>>(file, "betas", std::vector<double>{0.9, 0.999});
    adam.beta1 = betas.at(0);
    adam.beta2 = betas.at(1);
    adam.eps = golden_setting<double>(file, "eps");
    rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay", 0.0);
    const std::vector<int64_t>& shape = file.entry("w0").shape;
    net.emplace(rig,
                kind == "bnb8_adam"
                    ? Adam8bitConfig{.min_size = 1, .floor = false}.make({.adam = adam})
                    : galore_options().make(
                          {.adam = adam, .adam8bit = {.min_size = golden_setting<int64_t>(file, "min_8bit_size", 4096), .floor = false}}),
                [&](ParamSet& params) {
                  params.add("w", {shape[0], shape[1]}, ParamKind::weight, ParamGroup::rest, {});
                });
    from_host(*rig.device, w().value, file.values("w0"));
    steps = file.entry("grads").shape[0];
    const Json lr = golden_setting<Json>(file, "lr");
    rates = lr.is_array() ? lr.get<std::vector<double>>() : std::vector<double>(static_cast<size_t>(steps), lr.get<double>());
  }

  GaloreConfig galore_options() {
    GaloreConfig options;
    options.decomposition = "exact";
    options.rank = golden_setting<int64_t>(file, "rank");
    options.gap = gap = golden_setting<int64_t>(file, "gap");
    options.scale = golden_setting<double>(file, "scale");
    options.rule = kind == "galore8" ? "adam8bit" : "adam";
    const std::map<std::string, std::string> sides = {
        {"std", "shorter"}, {"reverse_std", "longer"}, {"left", "left"}, {"right", "right"}, {"full", "both"}};
    options.side = side = sides.at(golden_setting<std::string>(file, "proj_type", "std"));
    return options;
  }
  // A state and the tensor of the file that it is.
  std::vector<std::pair<std::string, std::string>> projections() const {
    if (side == "both") return {{"projection", "projection_right"}, {"projection_left", "projection_left"}};
    return {{"projection", "projection"}};
  }
  bool has_rows(const std::string& state) {  // its vectors are its rows, else its columns
    const bool tall = w().shape[0] >= w().shape[1];
    return state != "projection_left" && (side == "shorter" ? tall : side == "longer" ? !tall : side != "left");
  }

  Param& w() { return *net->params.find("w"); }
  Values of_step(const char* name, int64_t step) const { return part(file, name, step - 1); }
  Values state(const char* name) { return to_host(*rig.device, net->state("w", name)); }

  // The projection that step used; an older file holds only the last one.
  bool knows_projection(int64_t step) const { return file.has("projection_index") || step > (steps - 1) / gap * gap; }
  Values projection(int64_t step, const std::string& name) const {
    if (!file.has("projection_index")) return file.values(name);
    return part(file, name, static_cast<int64_t>(file.values("projection_index")[static_cast<size_t>(step - 1)]));
  }

  void set_grad(int64_t step) { from_host(*rig.device, w().grad, of_step("grads", step)); }
  void refresh(int64_t step) {
    Ctx ctx = rig.ctx();
    rig.run([&] { net->optimizer->refresh(ctx, net->params.params(), static_cast<uint64_t>(step)); });
  }
  void update(int64_t step) {
    rig.scalars.learning_rate[static_cast<int>(ParamGroup::rest)] = rates[static_cast<size_t>(step - 1)];
    rig.begin(static_cast<uint64_t>(step));
    Ctx ctx = rig.ctx();
    rig.run([&] { net->optimizer->update(ctx, w()); });
  }

  double worst = 0;
  void expect_close(const Values& ours, const Values& theirs, double limit, const std::string& what) {
    const double error = relative(ours, theirs);
    worst = std::max(worst, error);
    EXPECT_LE(error, limit) << file.path() << " " << what;
  }
  // The state after the last step. A moment within 1e-5 of the middle of two codes may take either; none of these does.
  void expect_codes() {
    for (const auto& [ours, theirs] : {std::pair("m8", "m_code"), {"v8", "v_code"}}) {
      const Values codes = state(ours), published = file.values(theirs);
      ASSERT_EQ(codes.size(), published.size());
      int64_t differing = 0;
      for (size_t i = 0; i < codes.size(); ++i) differing += codes[i] != published[i] ? 1 : 0;
      EXPECT_EQ(differing, 0) << file.path() << ": of " << codes.size() << " " << theirs;
    }
    expect_close(state("absmax_m"), file.values("m_absmax"), tolerance, "m_absmax");
    expect_close(state("absmax_v"), file.values("v_absmax"), tolerance, "v_absmax");
  }
  void report(const std::string& with) const {
    layer_test::report_golden(file.path(), worst, " in " + std::string(name_of(rig.dtype)) + with);
  }

  const SafetensorsFile file;
  Rig rig;
  const std::string kind;
  const double tolerance;
  std::optional<Trainee> net;
  std::string side;
  int64_t gap = 0, steps = 0;
  std::vector<double> rates;
};

TEST(Golden, GaloreWithThePublishedProjection) {
  for (const char* kind : {"galore", "galore8"})
    for (const std::string& path : golden_files(kind))
      for (const DType dtype : {DType::f64, DType::f32}) {
        Replay replay(path, dtype);
        if (!replay.knows_projection(1)) continue;
        for (int64_t step = 1; step <= replay.steps; ++step) {
          replay.set_grad(step);
          for (const auto& [ours, theirs] : replay.projections()) {
            const Tensor projection = replay.net->state("w", ours);
            const Values published = replay.projection(step, theirs);
            ASSERT_EQ(projection.count(), static_cast<int64_t>(published.size())) << path;
            from_host(*replay.rig.device, projection, published);
          }
          replay.update(step);
          replay.expect_close(replay.net->value("w"), replay.of_step("w", step), replay.tolerance, "w, step " + std::to_string(step));
        }
        if (replay.kind == "galore8") {
          replay.expect_codes();
        } else {
          replay.expect_close(replay.state("m"), replay.file.values("m"), replay.tolerance, "m");
          replay.expect_close(replay.state("v"), replay.file.values("v"), replay.tolerance, "v");
        }
        replay.report(", its projections");
      }
}

// Our projection at every refresh, with the signs of the published vectors: the moments are kept across it, so they count.
TEST(Golden, GaloreWithOurProjection) {
  for (const std::string& path : golden_files("galore"))
    for (const DType dtype : {DType::f64, DType::f32}) {
      Replay replay(path, dtype);
      for (int64_t step = 1; step <= replay.steps; ++step) {
        replay.set_grad(step);
        replay.refresh(step);
        for (const auto& [name, theirs] : replay.projections()) {
          if (!replay.knows_projection(step)) break;
          const Tensor tensor = replay.net->state("w", name);
          Values ours = replay.state(name.c_str());
          const Values published = replay.projection(step, theirs);
          const size_t rows = static_cast<size_t>(tensor.size(0)), columns = static_cast<size_t>(tensor.size(1));
          const bool right = replay.has_rows(name);
          for (size_t vector = 0; vector < (right ? rows : columns); ++vector) {
            const auto at = [&](size_t i) { return right ? vector * columns + i : i * columns + vector; };
            double dot = 0;
            for (size_t i = 0; i < (right ? columns : rows); ++i) dot += ours[at(i)] * published[at(i)];
            for (size_t i = 0; i < (right ? columns : rows); ++i) ours[at(i)] *= dot < 0 ? -1 : 1;
          }
          replay.expect_close(ours, published, layer_test::kGoldenFloat, name + ", step " + std::to_string(step));
          from_host(*replay.rig.device, tensor, ours);
        }
        replay.update(step);
        // On both sides R has entries near 0, by whose size Adam divides their rounding errors: 1e-5 even with the published projection.
        if (replay.side == "both" && dtype == DType::f32) continue;
        replay.expect_close(replay.net->value("w"), replay.of_step("w", step), layer_test::kGoldenFloat, "w, step " + std::to_string(step));
      }
      replay.expect_close(replay.state("v"), replay.file.values("v"), layer_test::kGoldenFloat, "v");
      replay.report(", our projections");
    }
}

// The published net y = tanh(x W1^T) W2^T, whose layers are updated one by one as soon as their gradient is there.
TEST(Golden, GaloreLayerByLayer) {
  for (const std::string& path : golden_files("galore_perlayer"))
    for (const DType dtype : {DType::f64, DType::f32}) {
      const SafetensorsFile file(path);
      const int64_t hidden = file.entry("w1_0").shape[0], inputs = file.entry("w1_0").shape[1], outputs = file.entry("w2_0").shape[0];
      const int64_t steps = file.entry("x").shape[0], rows = file.entry("x").shape[1];
      const auto betas = golden_setting<std::vector<double>>(file, "betas");
      GaloreConfig options;
      options.decomposition = "exact";
      options.rank = golden_setting<int64_t>(file, "rank");
      options.scale = golden_setting<double>(file, "scale");
      Rig rig(dtype);
      rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay");
      Trainee net(rig, options.make({.adam = {betas.at(0), betas.at(1), golden_setting<double>(file, "eps")}}), [&](ParamSet& params) {
        params.add("w1", {hidden, inputs}, ParamKind::weight, ParamGroup::rest, {});
        params.add("w2", {outputs, hidden}, ParamKind::weight, ParamGroup::rest, {});
      });
      for (const char* name : {"w1", "w2"}) from_host(*rig.device, net.params.find(name)->value, file.values(name + std::string("_0")));
      const auto rates = golden_setting<std::vector<double>>(file, "lr");
      double worst = 0;
      for (int64_t step = 0; step < steps; ++step) {
        for (double& rate : rig.scalars.learning_rate) rate = rates.at(static_cast<size_t>(step));
        const Values x = part(file, "x", step), target = part(file, "target", step), w1 = net.value("w1"), w2 = net.value("w2");
        Values h = product(x, false, w1, true, rows, inputs, hidden);
        for (double& value : h) value = std::tanh(value);
        Values dy = product(h, false, w2, true, rows, hidden, outputs);
        for (size_t i = 0; i < dy.size(); ++i) dy[i] = (dy[i] - target[i]) / static_cast<double>(dy.size());
        Values dz = product(dy, false, w2, false, rows, outputs, hidden);
        for (size_t i = 0; i < dz.size(); ++i) dz[i] *= 1 - h[i] * h[i];
        rig.begin(static_cast<uint64_t>(step + 1));
        const auto take = [&](const std::string& name, const char* projection, const Values& gradient) {
          const auto index = static_cast<int64_t>(file.values("projection_index")[static_cast<size_t>(step)]);
          from_host(*rig.device, net.state(name, "projection"), part(file, projection, index));
          net.set_grad(name, gradient);
          Ctx ctx = rig.ctx();
          Param& w = *net.params.find(name);
          rig.run([&] { net.optimizer->take(ctx, w, w.grad); });
          const double error = relative(net.value(name), part(file, name, step));
          worst = std::max(worst, error);
          EXPECT_LE(error, tolerance_of(file, dtype)) << path << " " << name << ", step " << step + 1;
        };
        take("w2", "projection2", product(dy, true, h, false, outputs, rows, hidden));
        take("w1", "projection1", product(dz, true, x, false, hidden, rows, inputs));
      }
      layer_test::report_golden(path, worst, " in " + std::string(name_of(dtype)));
    }
}

TEST(Golden, Adam8bit) {
  for (const std::string& path : golden_files("bnb8_adam")) {
    Replay replay(path, DType::f32);
    EXPECT_EQ(golden_setting<int64_t>(replay.file, "block"), kQuantBlock);
    // The published processor kernel decays before the update; the formula, which its other kernels have, decays behind it.
    const char* weights = replay.file.has("w_decay_after") ? "w_decay_after" : "w";
    for (int64_t step = 1; step <= replay.steps; ++step) {
      replay.set_grad(step);
      replay.update(step);
      replay.expect_close(replay.net->value("w"), replay.of_step(weights, step), replay.tolerance, "w, step " + std::to_string(step));
    }
    replay.expect_codes();
    replay.report("");
  }
}

TEST(Golden, MapsOfEightBits) {
  for (const std::string& path : golden_files("bnb8_maps")) {
    const SafetensorsFile file(path);
    double worst = 0;
    for (const bool is_signed : {true, false}) {
      const QuantMap map = make_quant_map(is_signed);
      const Values ours(std::begin(map.value), std::end(map.value));
      worst = std::max(worst, relative(ours, file.values(is_signed ? "map_signed" : "map_unsigned")));
    }
    EXPECT_LE(worst, 1e-7) << path;
    layer_test::report_golden(path, worst);
  }
}

// Blocks of 256 are what exists here; those of 4,096 are left out.
TEST(Golden, CodesOfEightBits) {
  for (const std::string& path : golden_files("bnb8_quantise")) {
    const SafetensorsFile file(path);
    Rig rig(DType::f32);
    double worst = 0;
    for (const bool is_signed : {true, false}) {
      const std::string name = is_signed ? "signed256" : "unsigned256";
      const Values published = file.values(name + ".code"), all = file.values("x");
      const int64_t count = static_cast<int64_t>(published.size()), blocks = static_cast<int64_t>(file.entry(name + ".absmax").count());
      Values x(all.begin(), all.begin() + count);
      if (!is_signed)
        for (double& value : x) value = static_cast<double>(static_cast<float>(value * value));
      const Buffer memory(rig.memory, 9 * count + 4 * blocks + 256, Purpose::data);
      char* base = static_cast<char*>(memory.data());
      const Tensor plain(base, {count}, DType::f32), back(base + 4 * count, {count}, DType::f32);
      const Tensor absmax(base + 8 * count, {blocks}, DType::f32), codes(base + 8 * count + 4 * blocks, {count}, DType::u8);
      from_host(*rig.device, plain, x);
      rig.device->ops().quantise8bit(codes, absmax, plain, is_signed);
      rig.device->ops().dequantise8bit(back, codes, absmax, is_signed);
      EXPECT_EQ(to_host(*rig.device, codes), published) << path << " " << name;
      EXPECT_EQ(to_host(*rig.device, absmax), file.values(name + ".absmax")) << path << " " << name;
      double sum = 0, size = 0;
      for (const double value : to_host(*rig.device, back)) sum += value, size += std::fabs(value);
      const double error = std::fabs(sum - file.values(name + ".restored_sum")[0]) / size;
      worst = std::max(worst, error);
      EXPECT_LE(error, golden_setting<double>(file, "tolerance")) << path << " " << name;
    }
    layer_test::report_golden(path, worst, ", blocks of 256 only");
  }
}

}  // namespace
}  // namespace comera::test
