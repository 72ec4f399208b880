// Q-GaLore (METHODS.md 7) against the published code, and its parts one by one.
#include <set>

#include "core/optim/projector.h"
#include "tests/optim/published_run.h"

namespace comera::test {
namespace {

using layer_test::golden_files;
using layer_test::golden_setting;

// Groups without 0 show the published fault: they are left out there, and must come back here.
TEST(Golden, QgaloreQuantiser) {
  for (const std::string& path : golden_files("qgalore_quantiser"))
    for (const DType dtype : {DType::f64, DType::f32}) {
      const SafetensorsFile file(path);
      const double tolerance = dtype == DType::f64 ? layer_test::kGoldenDouble : layer_test::kGoldenFloat;
      const int64_t group = golden_setting<int64_t>(file, "group"), groups = file.entry("w").shape[0];
      double worst = 0;
      for (int64_t k = 0; k < groups; ++k)
        for (const int bits : {4, 8}) {
          const Values w = part(file, "w", k), draw = part(file, "draw", k);
          const bool without_zero = *std::min_element(w.begin(), w.end()) > 0 || *std::max_element(w.begin(), w.end()) < 0;
          Values codes, stochastic, restored;
          double scale = 0, zero = 0;
          const auto run = [&](auto type) {
            using T = decltype(type);
            const T low = static_cast<T>(std::min(0.0, *std::min_element(w.begin(), w.end())));
            const T high = static_cast<T>(std::max(0.0, *std::max_element(w.begin(), w.end())));
            const GroupRange<T> range = GroupRange<T>::of(low, high, T(0), bits);
            for (size_t i = 0; i < w.size(); ++i) {
              codes.push_back(range.code(static_cast<T>(w[i]), bits));
              stochastic.push_back(range.code(static_cast<T>(w[i]), static_cast<T>(draw[i]), bits));
              restored.push_back(static_cast<double>(range.number(static_cast<int>(codes.back()))));
            }
            scale = static_cast<double>(range.scale);
            zero = static_cast<double>(range.zero);
          };
          if (dtype == DType::f64)
            run(double{});
          else
            run(float{});
          EXPECT_EQ(static_cast<int64_t>(w.size()), group);
          if (without_zero) {
            EXPECT_LE(largest_difference(restored, w), scale * 0.5001) << path << ", group " << k;
            continue;
          }
          const std::string b = std::to_string(bits);
          EXPECT_EQ(codes, part(file, "code" + b, k)) << path << ", group " << k << ", " << b << " bits";
          EXPECT_EQ(zero, part(file, "zero" + b, k)[0]) << path << ", group " << k;
          if (bits == 8) {
            EXPECT_EQ(stochastic, part(file, "code_stochastic", k)) << path << ", group " << k;
          }
          for (const double error : {relative({scale}, part(file, "scale" + b, k)), relative(restored, part(file, "restored" + b, k))}) {
            EXPECT_LE(error, tolerance) << path << ", group " << k;
            worst = std::max(worst, error);
          }
        }
      layer_test::report_golden(path, worst, " in " + std::string(name_of(dtype)));
    }
}

// One published run of one matrix, and ours beside it. The weight is stored by the test, whose uniforms of stochastic rounding are the
// published ones.
struct QGaloreReplay {
  QGaloreReplay(const std::string& path, DType dtype)
      : file(path),
        rig(dtype),
        coded(golden_setting<bool>(file, "eight_bit_moments")),
        limit(dtype == DType::f64 && !coded ? layer_test::kGoldenDouble : layer_test::kGoldenFloat) {
    const std::vector<int64_t>& shape = file.entry("w0").shape;
    m = shape[0], n = shape[1], steps = file.entry("grads").shape[0];
    group = golden_setting<int64_t>(file, "group");
    options = {.threshold = golden_setting<double>(file, "cos_threshold"),
               .queue = golden_setting<int64_t>(file, "queue_size"),
               .group = golden_setting<int64_t>(file, "projection_group")};
    EXPECT_EQ(golden_setting<int64_t>(file, "factor"), op::LazyRefresh().factor);
    EXPECT_EQ(golden_setting<int64_t>(file, "projection_bits"), 4);
    rig.scalars.weight_decay = golden_setting<double>(file, "weight_decay");
    net.emplace(rig, optimizer(), [&](ParamSet& params) { params.add("w", {m, n}, ParamKind::weight, ParamGroup::rest, {}); });
  }

  std::unique_ptr<Optimizer> optimizer() const {
    const auto betas = golden_setting<std::vector<double>>(file, "betas");
    const AdamConfig adam = {betas.at(0), betas.at(1), golden_setting<double>(file, "eps")};
    return std::make_unique<Optimizer>(make_projected_rule(make_adam8bit_rule(adam, {.min_size = coded ? 1 : 1'000'000, .floor = false}),
                                                           make_qgalore_projector(options),
                                                           {.rank = golden_setting<int64_t>(file, "rank"),
                                                            .gap = golden_setting<int64_t>(file, "gap"),
                                                            .scale = golden_setting<double>(file, "scale")}));
  }
  Values state(const char* name) { return to_host(*rig.device, net->state("w", name)); }

  double worst = 0;
  void expect_close(const Values& ours, const Values& theirs, const std::string& what) {
    const double error = relative(ours, theirs);
    worst = std::max(worst, error);
    EXPECT_LE(error, limit) << file.path() << " in " << name_of(rig.dtype) << ": " << what;
  }

  // The weight as published before step k.
  Values published_weight(int64_t k) const {
    const Values codes = k == 0 ? file.values("code0") : part(file, "code", k - 1),
                 scale = k == 0 ? file.values("scale0") : part(file, "scale", k - 1),
                 zero = k == 0 ? file.values("zero0") : part(file, "zero", k - 1);
    Values w(codes.size());
    for (size_t i = 0; i < w.size(); ++i) w[i] = (codes[i] - zero[i / static_cast<size_t>(group)]) * scale[i / static_cast<size_t>(group)];
    return w;
  }
  // Codes of our weight by the published uniforms.
  template <class T>
  void expect_stored(int64_t k, const Values& w) {
    const Values draw = part(file, "draw", k), codes = part(file, "code", k), scale = part(file, "scale", k), zero = part(file, "zero", k);
    Values ours(w.size()), scales, zeros;
    for (size_t first = 0; first < w.size(); first += static_cast<size_t>(group)) {
      const auto begin = w.begin() + static_cast<std::ptrdiff_t>(first), end = begin + group;
      const GroupRange<T> range =
          GroupRange<T>::of(static_cast<T>(*std::min_element(begin, end)), static_cast<T>(*std::max_element(begin, end)), 0, 8);
      scales.push_back(static_cast<double>(range.scale));
      zeros.push_back(static_cast<double>(range.zero));
      for (size_t i = first; i < first + static_cast<size_t>(group); ++i)
        ours[i] = range.code(static_cast<T>(w[i]), static_cast<T>(draw[i]), 8);
    }
    expect_close(scales, scale, "scale");
    EXPECT_EQ(zeros, zero) << file.path() << " step " << k + 1;
    // A number within rounding of the boundary that its uniform sets may go either way in f32.
    int64_t others = 0;
    for (size_t i = 0; i < ours.size(); ++i) others += ours[i] != codes[i];
    EXPECT_EQ(others, 0) << file.path() << " in " << name_of(rig.dtype) << " step " << k + 1;
  }

  // Our singular vectors, up to their signs, then the published codes in their place.
  void expect_projection(int64_t refresh) {
    const Values vectors = part(file, "projection", refresh), codes = part(file, "p_code", refresh), scale = part(file, "p_scale", refresh),
                 zero = part(file, "p_zero", refresh);
    Values numbers(vectors.size());
    for (size_t i = 0; i < numbers.size(); ++i) {
      const size_t at = i / static_cast<size_t>(options.group);
      numbers[i] = (codes[i] - zero[at]) * scale[at];
    }
    const bool right = m >= n;
    const int64_t side = right ? n : m, rank = static_cast<int64_t>(vectors.size()) / side;
    Values direction(static_cast<size_t>(side));
    for (int64_t i = 0; i < side; ++i) direction[static_cast<size_t>(i)] = vectors[static_cast<size_t>(right ? i : i * rank)];
    Values ours = state("direction");
    if (ours[0] * direction[0] < 0)
      for (double& value : ours) value = -value;
    expect_close(ours, direction, "first direction");
    std::vector<double> packed((codes.size() + 1) / 2);
    for (size_t i = 0; i < codes.size(); ++i) packed[i / 2] += codes[i] * (i % 2 ? 16 : 1);
    from_host(*rig.device, net->state("w", "projection4"), packed);
    from_host(*rig.device, net->state("w", "scale_projection"), scale);
    from_host(*rig.device, net->state("w", "zero_projection"), zero);
    expect_quantiser(vectors, codes, scale, zero);
  }
  void expect_quantiser(const Values& x, const Values& codes, const Values& scale, const Values& zero) {
    for (size_t first = 0; first < x.size(); first += static_cast<size_t>(options.group)) {
      const size_t last = std::min(x.size(), first + static_cast<size_t>(options.group));
      const auto [low, high] =
          std::minmax_element(x.begin() + static_cast<std::ptrdiff_t>(first), x.begin() + static_cast<std::ptrdiff_t>(last));
      const GroupRange<double> range = GroupRange<double>::of(std::min(0.0, *low), std::max(0.0, *high), 0, 4);
      const size_t at = first / static_cast<size_t>(options.group);
      EXPECT_NEAR(range.scale, scale[at], 1e-9 * scale[at] + (coded ? 1e-6 * scale[at] : 0));
      EXPECT_EQ(range.zero, zero[at]);
      for (size_t i = first; i < last; ++i) EXPECT_EQ(range.code(x[i], 4), codes[i]) << i;
    }
  }

  // The published cosine has a sign, which is the whim of a decomposition; ours has none.
  void expect_gap(int64_t k, bool& signs_differ) {
    const Values queue = golden_setting<std::vector<Values>>(file, "queues").at(static_cast<size_t>(k));
    Values ours = state("cosines");
    ours.erase(ours.begin(), ours.end() - static_cast<std::ptrdiff_t>(queue.size()));
    Values lengths;
    for (const double cosine : queue) lengths.push_back(std::fabs(cosine)), signs_differ = signs_differ || cosine < 0;
    if (!queue.empty()) expect_close(ours, lengths, "cosines");
    const double gap = golden_setting<double>(file, "gap") * state("refreshes")[0], published = part(file, "gap", k)[0];
    double mean = 0;
    for (const double cosine : lengths) mean += cosine / static_cast<double>(options.queue);
    const bool doubled_here_only = signs_differ && static_cast<int64_t>(queue.size()) == options.queue && mean >= options.threshold;
    EXPECT_EQ(gap, doubled_here_only ? 2 * published : published) << file.path() << " step " << k + 1;
  }

  void run() {
    const Values rates = golden_setting<Values>(file, "lr"), refreshed = file.values("refreshed");
    int64_t refreshes = 0;
    bool signs_differ = false;
    for (int64_t k = 0; k < steps; ++k) {
      const auto step = static_cast<uint64_t>(k + 1);
      from_host(*rig.device, net->params.find("w")->value, published_weight(k));
      net->set_grad("w", part(file, "grads", k));
      for (double& rate : rig.scalars.learning_rate) rate = rates.at(static_cast<size_t>(k));
      rig.begin(step);
      Ctx ctx = rig.ctx();
      ASSERT_EQ(net->optimizer->refresh_due(step), refreshed.at(static_cast<size_t>(k)) == 1) << file.path() << " step " << step;
      if (refreshed.at(static_cast<size_t>(k)) == 1) {
        rig.run([&] { net->optimizer->refresh(ctx, net->params.params(), step); });
        expect_projection(refreshes++);
      }
      expect_gap(k, signs_differ);
      rig.run([&] { net->optimizer->update(ctx, net->params.params()); });
      const Values w = net->value("w");
      rig.dtype == DType::f64 ? expect_stored<double>(k, w) : expect_stored<float>(k, w);
    }
    for (const char* moment : {"m", "v"}) {
      if (!coded) {
        expect_close(state(moment), file.values(moment), moment);
        continue;
      }
      EXPECT_EQ(state((std::string(moment) + "8").c_str()), file.values(std::string(moment) + "_code")) << file.path();
      expect_close(state(("absmax_" + std::string(moment)).c_str()), file.values(std::string(moment) + "_absmax"), moment);
    }
    EXPECT_EQ(refreshes, file.entry("projection").shape[0]);
    layer_test::report_golden(file.path(), worst, std::string(" in ") + name_of(rig.dtype));
  }

  const SafetensorsFile file;
  Rig rig;
  const bool coded;
  const double limit;
  QGaloreOptions options;
  int64_t m = 0, n = 0, steps = 0, group = 0;
  std::optional<Trainee> net;
};

TEST(Golden, Qgalore) {
  for (const std::string& path : golden_files("qgalore"))
    for (const DType dtype : {DType::f64, DType::f32}) QGaloreReplay(path, dtype).run();
}

TEST(StateBytes, OfQgalore) {
  for (const auto& [m, n] : {std::pair<int64_t, int64_t>{3072, 768}, {768, 3072}}) {
    ParamSet params;
    Param& w = params.add("w", {m, n}, ParamKind::weight, ParamGroup::rest, {});
    const auto optimizer = QGaloreConfig{.rank = 192}.make({});
    optimizer->attach(w);
    optimizer->describe(DType::f32);
    int64_t bytes = 0;
    optimizer->states(w, [&](const std::string&, Tensor& state) { bytes += state.bytes(); });
    EXPECT_EQ(bytes, 1'279'516);
    EXPECT_EQ(optimizer->planned(DType::f32)[Purpose::optimizer], 1'279'616);  // each tensor aligned to 64 bytes
  }
}

TEST(Qgalore, KeepsItsProjectionWhereAGradientIsNotFinite) {
  Rig rig;
  Trainee net(rig, QGaloreConfig{.rank = 3, .gap = 1}.make({}), [](ParamSet& params) {
    params.add("w", {9, 6}, ParamKind::weight, ParamGroup::rest, {});
  });
  net.set_grad("w", random_values(54, 5));
  net.step(1);
  const Values codes = to_host(*rig.device, net.state("w", "projection4"));
  net.set_grad("w", Values(54, std::numeric_limits<double>::quiet_NaN()));
  rig.begin(2);
  Ctx ctx = rig.ctx();
  rig.run([&] { net.optimizer->refresh(ctx, net.params.params(), 2); });
  EXPECT_EQ(to_host(*rig.device, net.state("w", "projection4")), codes);
}

}  // namespace
}  // namespace comera::test
