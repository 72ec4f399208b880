// GaLore against the published code, on every galore_* file there is. The published code decomposes in float even for
// double weights, so its projection is good to about 1e-6: fed with it we must agree to 1e-9, with our own to 1e-4.
#include "tests/layers/golden.h"

#include <optional>

#include "tests/optim/harness.h"

namespace comera::test {
namespace {

using layer_test::golden_setting;

double relative(const Values& a, const Values& b) {
  double largest = 0;
  for (double value : b) largest = std::max(largest, std::fabs(value));
  return largest_difference(a, b) / std::max(largest, 1e-300);
}

// One published run, and ours beside it.
struct Replay {
  Replay(const std::string& path, DType dtype) : file(path), rig(dtype) {
    GaloreConfig options;
    options.rank = golden_setting<int64_t>(file, "rank");
    options.gap = gap = golden_setting<int64_t>(file, "gap");
    options.scale = golden_setting<double>(file, "scale");
    AdamConfig adam;
    adam.eps = golden_setting<double>(file, "eps");
    rig.scalars.learning_rate[2] = golden_setting<double>(file, "lr");
    const std::vector<int64_t>& shape = file.entry("w0").shape;
    net.emplace(rig, make_galore(adam, options), [&](ParamSet& params) {
      params.add("w", {shape[0], shape[1]}, ParamKind::weight, ParamGroup::rest, {});
    });
    from_host(*rig.device, w().value, file.values("w0"));
    steps = file.entry("grads").shape[0];
  }
  Param& w() { return *net->params.find("w"); }
  Values slice(const char* name, int64_t step) const {  // of (steps, m, n)
    const Values all = file.values(name);
    const int64_t count = static_cast<int64_t>(all.size()) / steps;
    return {all.begin() + (step - 1) * count, all.begin() + step * count};
  }
  Values state(const char* name) { return to_host(*rig.device, net->state("w", name)); }
  void refresh(int64_t step) {
    from_host(*rig.device, w().grad, slice("grads", step));
    Ctx ctx = rig.ctx();
    if (net->optimizer->refresh_due(static_cast<uint64_t>(step))) net->optimizer->refresh(ctx, w(), static_cast<uint64_t>(step));
  }
  void update(int64_t step) {
    rig.begin(static_cast<uint64_t>(step));
    Ctx ctx = rig.ctx();
    rig.run([&] { net->optimizer->update(ctx, w()); });
  }
  double error(int64_t step) { return relative(net->value("w"), slice("w", step)); }

  // Kept moments make the directions' signs matter at a second refresh, and published signs are whatever the library
  // gave: each direction takes the sign that fits the published step better. Directions are orthogonal, so their errors
  // add up in squares and each can be judged by itself.
  void update_with_their_signs(int64_t step) {
    const Values value = net->value("w"), m = state("m"), v = state("v");
    Values p = state("projection");
    const Tensor tensor = net->state("w", "projection");
    const int64_t rows = tensor.size(0), columns = tensor.size(1);
    const bool right = w().shape[0] >= w().shape[1];
    const auto attempt = [&] {
      from_host(*rig.device, w().value, value);
      from_host(*rig.device, net->state("w", "m"), m);
      from_host(*rig.device, net->state("w", "v"), v);
      from_host(*rig.device, tensor, p);
      update(step);
      const Values ours = net->value("w"), theirs = slice("w", step);
      double squares = 0;
      for (size_t i = 0; i < ours.size(); ++i) squares += (ours[i] - theirs[i]) * (ours[i] - theirs[i]);
      return squares;
    };
    for (int64_t direction = 0; direction < (right ? rows : columns); ++direction) {
      const auto flip = [&] {
        for (int64_t i = 0; i < (right ? columns : rows); ++i)
          p[static_cast<size_t>(right ? direction * columns + i : i * columns + direction)] *= -1;
      };
      const double as_is = attempt();
      flip();
      if (attempt() > as_is) flip();
    }
    attempt();
  }

  SafetensorsFile file;
  Rig rig;
  std::optional<Trainee> net;
  int64_t gap = 0, steps = 0;
};

TEST(Golden, GaloreWithThePublishedProjection) {
  int compared = 0;
  for (const std::string& path : layer_test::golden_files("galore_"))
    for (const DType dtype : {DType::f64, DType::f32}) {
      Replay replay(path, dtype);
      if (replay.steps > replay.gap) continue;  // the file holds the last projection only
      const double tolerance = dtype == DType::f64 ? layer_test::kGoldenDouble : layer_test::kGoldenFloat;
      ASSERT_EQ(replay.net->state("w", "projection").shape(),
                (Shape{replay.file.entry("projection").shape[0], replay.file.entry("projection").shape[1]}));
      from_host(*replay.rig.device, replay.net->state("w", "projection"), replay.file.values("projection"));
      for (int64_t step = 1; step <= replay.steps; ++step) {
        from_host(*replay.rig.device, replay.w().grad, replay.slice("grads", step));
        replay.update(step);
        EXPECT_LE(replay.error(step), tolerance) << path << " step " << step;
      }
      EXPECT_LE(relative(replay.state("m"), replay.file.values("m")), tolerance) << path;
      EXPECT_LE(relative(replay.state("v"), replay.file.values("v")), tolerance) << path;
      ++compared;
    }
  if (compared == 0) GTEST_SKIP() << "no galore_* of one gap in the folder";
}

TEST(Golden, GaloreWithOurProjection) {
  const std::vector<std::string> files = layer_test::golden_files("galore_");
  if (files.empty()) GTEST_SKIP() << "no galore_* in the folder";
  for (const std::string& path : files)
    for (const DType dtype : {DType::f64, DType::f32}) {
      Replay replay(path, dtype);
      for (int64_t step = 1; step <= replay.steps; ++step) {
        replay.refresh(step);
        if (step > 1 && (step - 1) % replay.gap == 0) {
          replay.update_with_their_signs(step);
        } else {
          replay.update(step);
        }
        EXPECT_LE(replay.error(step), layer_test::kGoldenFloat) << path << " step " << step;
      }
      const auto magnitudes = [](Values values) {  // moments are defined up to the signs of the directions
        for (double& value : values) value = std::fabs(value);
        return values;
      };
      EXPECT_LE(relative(magnitudes(replay.state("projection")), magnitudes(replay.file.values("projection"))), layer_test::kGoldenFloat)
          << path;
      EXPECT_LE(relative(magnitudes(replay.state("m")), magnitudes(replay.file.values("m"))), layer_test::kGoldenFloat) << path;
      EXPECT_LE(relative(replay.state("v"), replay.file.values("v")), layer_test::kGoldenFloat) << path;
    }
}

}  // namespace
}  // namespace comera::test
