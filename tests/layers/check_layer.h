// Harness of the layer tests. A layer is run as the engine runs it: dry, plan, then for real in memory of exactly the
// planned size, which is poisoned with NaN before and guarded behind. Gradients are checked in double against central
// differences of L = <dy, y> for a fixed random dy.
//
// To check a layer:
//   Rig rig;                                               // one model under test; lives longer than its layers
//   LayerFactory factory(rig.params, *rig.stash);
//   auto layer = factory.linear("l", 3, 4, LinearKind::attention);
//   rig.start();                                           // memory and initial values; planned bytes are checked
//   check_gradients(rig, *layer, rig.noise({5, 3}));       // every parameter and the input, and `into`
// What is no Layer (a model, a chain with several inputs) is given as a Probe.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "core/layers/factory.h"
#include "core/ops/device.h"

namespace comera::layer_test {

using Values = std::vector<double>;

// Keeps handles, as the exact stash does; written out here so that a layer is tested against the bare contract.
class PlainStash final : public Stash {
 public:
  StashSlot slot(ParamSet&, const char*, int64_t, uint32_t site) override { return {site, nullptr, 1}; }
  Kept keep(Ctx&, const StashSlot&, const Tensor& x, Use) override { return {x, {}, {}}; }
  Tensor load(Ctx&, const StashSlot&, const Kept& kept) override { return kept.exact; }
};

inline Values noise_values(int64_t count, uint64_t seed, double scale = 1) {
  std::mt19937_64 generator(seed * 7919 + 1);
  std::uniform_real_distribution<double> uniform(-scale, scale);
  Values values(static_cast<size_t>(count));
  for (double& value : values) value = uniform(generator);
  return values;
}

// Largest difference as a share of the largest value of `expected` (at least `floor`).
inline double relative_difference(const Values& actual, const Values& expected, double floor = 1e-300) {
  if (actual.size() != expected.size()) return std::numeric_limits<double>::infinity();
  double difference = 0, largest = floor;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!std::isfinite(actual[i]) || !std::isfinite(expected[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::fabs(actual[i] - expected[i]));
    largest = std::max(largest, std::fabs(expected[i]));
  }
  return difference / largest;
}

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Everything around one model under test.
class Rig {
 public:
  explicit Rig(DType type = DType::f64, std::unique_ptr<Stash> how = nullptr, int threads = 1)
      : dtype(type), device(open_cpu_device(threads)), stash(how ? std::move(how) : std::make_unique<PlainStash>()) {
    scalars.seed = 7;
    scalars.step = scalars.optimizer_step = 1;
    step_ = place({static_cast<int64_t>(sizeof(StepScalars))}, DType::u8);
    results_ = place({static_cast<int64_t>(sizeof(StepResults))}, DType::u8);
  }

  const DType dtype;
  const std::unique_ptr<Device> device;
  Memory memory{*device};
  Arena arena;
  ParamSet params;
  std::unique_ptr<Stash> stash;
  StepScalars scalars;  // uploaded before each run
  StepResults results;  // downloaded after it
  Sequences sequences;

  // Takes memory for the parameters and draws them. What was planned must be what is taken.
  void start(uint64_t seed = 1) {
    params.describe(dtype);
    const MemoryByPurpose planned = params.planned(dtype), before = memory.now();
    params.allocate(memory, dtype);
    for (size_t i = 0; i < planned.bytes.size(); ++i)
      EXPECT_EQ(memory.now().bytes[i] - before.bytes[i], planned.bytes[i]) << name_of(static_cast<Purpose>(i));
    params.initialise(*device, seed);
  }

  // Inputs: they live as long as the rig.
  Tensor put(const Values& values, const Shape& shape) {
    Tensor tensor = place(shape, dtype);
    from_host(*device, tensor, values);
    return tensor;
  }
  Tensor put_ids(const std::vector<int32_t>& ids) {
    Tensor tensor = place({static_cast<int64_t>(ids.size())}, DType::i32);
    device->upload(tensor.raw(), ids.data(), tensor.bytes());
    return tensor;
  }
  Tensor noise(const Shape& shape, uint64_t seed = 11, double scale = 1) { return put(noise_values(shape.count(), seed, scale), shape); }
  Values get(const Tensor& tensor) { return to_host(*device, tensor); }
  void set(const Tensor& tensor, const Values& values) { from_host(*device, tensor, values); }

  Ctx context(bool training) { return {device->ops(), arena, *stash, step_, results_, dtype, training, sequences}; }

  // Runs `program` dry, plans, and runs it for real; returns what one run counts. The program is called twice and
  // must make the same requests both times; it may read values only when !ctx.ops.dry.
  Work run(const std::function<void(Ctx&)>& program, bool training = true) {
    Ops& ops = device->ops();
    ops.dry = true;
    ops.work = {};
    arena.record();
    {
      Ctx ctx = context(training);
      program(ctx);
    }
    arena.plan();
    const Work planned = ops.work;
    ops.dry = false;
    ops.work = {};
    device->upload(step_.raw(), &scalars, sizeof(scalars));
    results = StepResults{};
    device->upload(results_.raw(), &results, sizeof(results));

    constexpr int64_t kGuard = 256;
    const int64_t size = arena.peak_bytes();
    const Buffer block(memory, size + kGuard, Purpose::workspace);
    std::vector<unsigned char> poison(static_cast<size_t>(size + kGuard), 0xff);  // 0xff.. is NaN in f32 and f64, -1 in i32
    device->upload(block.data(), poison.data(), size + kGuard);
    arena.attach(block.data());
    arena.rewind();
    {
      Ctx ctx = context(training);
      program(ctx);
    }
    device->synchronize();
    arena.rewind();  // throws when a handle is still held
    std::vector<unsigned char> after(static_cast<size_t>(kGuard));
    device->download(after.data(), static_cast<char*>(block.data()) + size, kGuard);
    EXPECT_TRUE(std::all_of(after.begin(), after.end(), [](unsigned char byte) { return byte == 0xff; })) << "written behind the plan";
    EXPECT_EQ(ops.work.gemm_flops, planned.gemm_flops) << "the dry run counted other products";
    EXPECT_EQ(ops.work.other_bytes, planned.other_bytes);
    device->download(&results, results_.raw(), sizeof(results));
    return planned;
  }

 private:
  Tensor place(const Shape& shape, DType type) {
    buffers_.emplace_back(memory, std::max<int64_t>(1, shape.count() * static_cast<int64_t>(size_of(type))), Purpose::data);
    return Tensor(buffers_.back().data(), shape, type);
  }

  std::vector<Buffer> buffers_;
  Tensor step_, results_;
};

// What is differentiated: y = forward(), dx = backward(dy), dx of `x` (empty where there is none to check).
struct Probe {
  std::function<Tensor(Ctx&)> forward;
  std::function<Tensor(Ctx&, Tensor dy)> backward;
  Tensor x = {};
};

inline Probe probe_of(Layer& layer, const Tensor& x, const Tensor& into = {}) {
  // `into` is copied into a temporary first: backward may add to what it is given.
  return {[&layer, x](Ctx& ctx) { return layer.forward(ctx, x); },
          [&layer, into](Ctx& ctx, Tensor dy) {
            if (!into) return layer.backward(ctx, std::move(dy));
            Tensor target = ctx.temp(into.shape(), "into");
            ctx.ops.copy(target, into);
            return layer.backward(ctx, std::move(dy), std::move(target));
          },
          x.dtype() == DType::i32 ? Tensor{} : x};
}

struct Pass {
  Values y, dx;
  Shape y_shape;
  Work work;  // of forward and backward
  Values grads(Rig& rig, const std::string& name) const { return rig.get(rig.params.find(name)->grad); }
};

// One forward and backward pass with this dy (empty: noise of seed 5).
inline Pass pass(Rig& rig, const Probe& probe, const Values& dy = {}) {
  Pass out;
  out.work = rig.run([&](Ctx& ctx) {
    Tensor y = probe.forward(ctx);
    out.y_shape = y.shape();
    if (!ctx.ops.dry) out.y = rig.get(y);
    Tensor upstream = ctx.temp(y.shape(), "dy");
    y = {};
    if (!ctx.ops.dry) rig.set(upstream, dy.empty() ? noise_values(upstream.count(), 5) : dy);
    ctx.arena.mark_turn();
    ctx.stash.forget();
    const Tensor dx = probe.backward(ctx, std::move(upstream));
    if (!ctx.ops.dry && dx) out.dx = rig.get(dx);
  });
  return out;
}
inline Pass pass(Rig& rig, Layer& layer, const Tensor& x, const Values& dy = {}) { return pass(rig, probe_of(layer, x), dy); }

// y of an evaluation, which keeps nothing.
inline Values evaluate(Rig& rig, Layer& layer, const Tensor& x) {
  Values y;
  rig.run(
      [&](Ctx& ctx) {
        const Tensor out = layer.forward(ctx, x);
        if (!ctx.ops.dry) y = rig.get(out);
      },
      false);
  return y;
}

struct GradientCheck {
  double step = 1e-5;       // half width of the difference; a multilinear layer stands a larger one
  double tolerance = 1e-7;  // of the largest entry of a gradient
  int64_t entries = 60;     // checked a tensor, evenly spread
  uint64_t dy_seed = 5;
};

// Compares all gradients of a pass with central differences; returns the largest relative error.
inline double check_gradients(Rig& rig, const Probe& probe, GradientCheck check = {}) {
  const Pass first = pass(rig, probe);
  const Values dy = noise_values(static_cast<int64_t>(first.y.size()), check.dy_seed);
  for (Param& param : rig.params.params())  // gradients are "=": what lay there must not matter
    if (param.has_grad()) rig.set(param.grad, Values(static_cast<size_t>(param.count()), std::numeric_limits<double>::quiet_NaN()));
  const Pass exact = pass(rig, probe, dy);
  std::vector<std::pair<Param*, Values>> gradients;  // read before the moved passes overwrite them
  for (Param& param : rig.params.params())
    if (param.has_grad()) gradients.emplace_back(&param, rig.get(param.grad));
  double worst = 0;
  const auto compare = [&](const std::string& name, const Tensor& tensor, const Values& gradient) {
    const Values values = rig.get(tensor);
    ASSERT_EQ(values.size(), gradient.size()) << name;
    const int64_t count = tensor.count(), stride = std::max<int64_t>(1, count / check.entries);
    double largest = 1e-6, difference = 0;
    for (double entry : gradient) {
      ASSERT_TRUE(std::isfinite(entry)) << "gradient of " << name;
      largest = std::max(largest, std::fabs(entry));
    }
    for (int64_t i = 0; i < count; i += stride) {
      double loss[2];
      for (int side = 0; side < 2; ++side) {
        Values moved = values;
        moved[static_cast<size_t>(i)] += side == 0 ? check.step : -check.step;
        rig.set(tensor, moved);
        loss[side] = dot(pass(rig, probe, dy).y, dy);
      }
      difference = std::max(difference, std::fabs((loss[0] - loss[1]) / (2 * check.step) - gradient[static_cast<size_t>(i)]));
    }
    rig.set(tensor, values);
    EXPECT_LE(difference / largest, check.tolerance) << "gradient of " << name;
    worst = std::max(worst, difference / largest);
  };
  for (const auto& [param, gradient] : gradients) compare(param->name, param->value, gradient);
  if (probe.x) compare("the input", probe.x, exact.dx);
  return worst;
}

// The same for a layer, and: backward into a given tensor adds to it; two passes are equal bit for bit.
inline double check_gradients(Rig& rig, Layer& layer, const Tensor& x, GradientCheck check = {}) {
  const double worst = check_gradients(rig, probe_of(layer, x), check);
  const Pass one = pass(rig, layer, x), two = pass(rig, layer, x);
  EXPECT_EQ(one.y, two.y);
  EXPECT_EQ(one.dx, two.dx);
  if (!one.dx.empty()) {
    const Tensor into = rig.noise(x.shape(), 23);
    const Pass added = pass(rig, probe_of(layer, x, into));
    Values sum = rig.get(into);
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += one.dx[i];
    EXPECT_LE(relative_difference(added.dx, sum), 1e-12) << "backward with `into`";
  }
  return worst;
}

}  // namespace comera::layer_test
