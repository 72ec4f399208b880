// What optimizer and method tests need of a training step: a CPU device, step blocks, one planned program.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>

#include "core/optim/optimizer.h"

namespace comera::test {

using Values = std::vector<double>;

class NoStash final : public Stash {
 public:
  StashSlot slot(ParamSet&, const char*, int64_t, uint32_t) override { return {}; }
  Kept keep(Ctx&, const StashSlot&, const Tensor& x, Use) override { return {x, {}, {}}; }
  Tensor load(Ctx&, const StashSlot&, const Kept& kept) override { return kept.exact; }
};

struct Rig {
  explicit Rig(DType dtype = DType::f64) : dtype(dtype), device(open_cpu_device(1)), memory(*device) {
    blocks_ = Buffer(memory, sizeof(StepScalars) + sizeof(StepResults), Purpose::data);
    step = Tensor(blocks_.data(), {static_cast<int64_t>(sizeof(StepScalars))}, DType::u8);
    results = Tensor(static_cast<char*>(blocks_.data()) + sizeof(StepScalars), {static_cast<int64_t>(sizeof(StepResults))}, DType::u8);
    for (double& rate : scalars.learning_rate) rate = 0.01;
  }

  Ctx ctx() { return ctx(no_stash_); }
  Ctx ctx(Stash& stash) { return {device->ops(), arena, stash, step, results, dtype, true, {}}; }
  void begin(uint64_t t) {
    scalars.step = scalars.optimizer_step = t;
    device->upload(step.raw(), &scalars, sizeof scalars);
    const StepResults none;
    device->upload(results.raw(), &none, sizeof none);
  }
  StepResults read_results() {
    StepResults out;
    device->download(&out, results.raw(), sizeof out);
    return out;
  }
  // Dry run, plan, run.
  void run(const std::function<void()>& program) {
    device->ops().dry = true;
    arena.record();
    program();
    device->ops().dry = false;
    arena.plan();
    Buffer temporaries(memory, arena.peak_by_purpose());
    arena.attach(temporaries.data());
    arena.rewind();
    program();
    device->synchronize();
  }

  DType dtype;
  std::unique_ptr<Device> device;
  Memory memory;
  Arena arena;
  StepScalars scalars;
  Tensor step, results;

 private:
  NoStash no_stash_;
  Buffer blocks_;
};

inline Values random_values(int64_t count, uint32_t seed, double scale = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal(0, scale);
  Values out(static_cast<size_t>(count));
  for (double& value : out) value = normal(generator);
  return out;
}

// A few parameters under an optimizer, with gradients put in by hand.
struct Trainee {
  Trainee(Rig& rig, std::unique_ptr<Optimizer> made, const std::function<void(ParamSet&)>& declare) : rig(rig), optimizer(std::move(made)) {
    declare(params);
    for (Param& param : params.params()) optimizer->attach(param);
    params.allocate(rig.memory, rig.dtype);
    optimizer->allocate(*rig.device, rig.memory, rig.dtype);
    uint32_t seed = 1;
    for (Param& param : params.params()) from_host(*rig.device, param.value, random_values(param.count(), seed++));
  }
  Values value(const std::string& name) { return to_host(*rig.device, params.find(name)->value); }
  void set_grad(const std::string& name, const Values& values) { from_host(*rig.device, params.find(name)->grad, values); }
  void step(uint64_t t) {
    rig.begin(t);
    Ctx ctx = rig.ctx();
    if (optimizer->refresh_due(t)) rig.run([&] { optimizer->refresh(ctx, params.params(), t); });
    rig.run([&] { optimizer->update(ctx, params.params()); });
  }
  Tensor state(const std::string& param, const std::string& name) {
    Tensor found;
    optimizer->states(*params.find(param), [&](const std::string& key, Tensor& value) {
      if (key == name) found = value;
    });
    return found;
  }

  Rig& rig;
  ParamSet params;
  std::unique_ptr<Optimizer> optimizer;
};

inline std::map<std::string, Values> by_name(const std::vector<StateNumbers>& states) {
  std::map<std::string, Values> out;
  for (const StateNumbers& state : states) out[state.spec.name] = state.values;
  return out;
}

// Adam in ten lines of double (METHODS.md 0.2). Returns the update that is added to w; decay apart.
struct AdamReference {
  AdamRule rule;
  Values m = {}, v = {};
  Values update(const Values& g, double rate, double t) {
    m.resize(g.size());
    v.resize(g.size());
    const double c1 = 1 - std::pow(rule.beta1, t), c2 = 1 - std::pow(rule.beta2, t);
    Values u(g.size());
    for (size_t i = 0; i < g.size(); ++i) {
      m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * g[i];
      v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * g[i] * g[i];
      const double root = std::sqrt(v[i]);
      if (rule.flavour == AdamFlavour::torch) u[i] = -rate / c1 * m[i] / (root / std::sqrt(c2) + rule.eps);
      if (rule.flavour == AdamFlavour::huggingface) u[i] = -rate * std::sqrt(c2) / c1 * m[i] / (root + rule.eps);
      if (rule.flavour == AdamFlavour::bitsandbytes) u[i] = -rate * std::sqrt(c2) / c1 * m[i] / (root + rule.eps * std::sqrt(c2));
    }
    return u;
  }
  // torch decays first, the others last.
  void step(Values& w, const Values& g, double rate, double decay, double t) {
    const Values u = update(g, rate, t);
    for (size_t i = 0; i < w.size(); ++i) {
      if (rule.flavour == AdamFlavour::torch)
        w[i] = w[i] * (1 - rate * decay) + u[i];
      else
        w[i] = (w[i] + u[i]) * (1 - rate * decay);
    }
  }
};

inline double largest_difference(const Values& a, const Values& b) {
  EXPECT_EQ(a.size(), b.size());
  double largest = 0;
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

// Dense product for checks: op(a) (m, k) op(b) (k, n).
inline Values product(const Values& a, bool ta, const Values& b, bool tb, int64_t m, int64_t k, int64_t n) {
  Values c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l)
        c[static_cast<size_t>(i * n + j)] +=
            a[static_cast<size_t>(ta ? l * m + i : i * k + l)] * b[static_cast<size_t>(tb ? j * k + l : l * n + j)];
  return c;
}

}  // namespace comera::test
