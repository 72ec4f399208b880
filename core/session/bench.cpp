#include "core/session/bench.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <set>

#include "core/base/clock.h"
#include "core/data/random_rows.h"
#include "core/train/engine.h"
#include "core/train/forecast.h"

namespace comera {
namespace {

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5))];
}

// A batch with every position in use; ids uniform over the vocabulary, as the peers were measured.
Batch made_up_batch(const RunConfig& config, const BatchLayout& layout) {
  BatchOptions options;
  options.batch_size = config.part_batch();
  options.length = config.model.length;
  options.pack = config.data.pack;
  options.token_budget = config.token_capacity();
  options.shuffle = false;
  Batch batch = random_batch(layout, options);
  if (!layout.has_tokens()) batch.tokens = batch.sequences;
  return batch;
}

double peak_rss() {
  struct rusage usage {};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024;
}

void set_limits(StepBench& bench) {
  bench.limit_ms = bench.gflop / bench.rates.sgemm_gflops * 1e3;
  bench.traffic_ms = bench.gbyte / bench.rates.copy_gbs * 1e3;
  bench.bandwidth_ms = (bench.gemm_gbyte + bench.gbyte) / bench.rates.copy_gbs * 1e3;
}

}  // namespace

StepBench bench_step(const RunConfig& config, int64_t steps, int64_t warmup) {
  const std::unique_ptr<Device> device = open_device(device_to_begin_on(config.train.device), static_cast<int>(config.train.threads));
  StepBench bench;
  bench.steps = steps;
  std::vector<double> total, grad, update;
  {
    Engine engine(config, *device);
    engine.allocate();
    const Batch batch = made_up_batch(config, engine.layout());
    StepScalars scalars;
    scalars.seed = 1;
    scalars.learning_rate[0] = config.train.lr_core;
    scalars.learning_rate[1] = config.train.lr_rank;
    scalars.learning_rate[2] = config.train.lr;
    const auto step = [&] {
      scalars.step = ++scalars.optimizer_step;
      engine.submit(batch, scalars);
      while (engine.underway() > device->lag()) engine.take();
    };
    const auto note_phases = [&] {
      grad.push_back(engine.times().grad);
      update.push_back(engine.times().update);
    };
    for (int64_t i = 0; i < warmup; ++i) step();
    for (int64_t i = 0; i < steps; ++i) {
      const double begin = now_ms();
      step();
      total.push_back(now_ms() - begin);
      if (device->lag() == 0) note_phases();
    }
    // Once more with a clock around every op, apart from the timed steps.
    OpProfile profile;
    engine.profile(&profile);
    const int kProfiled = 3;
    for (int i = 0; i < kProfiled; ++i) {
      step();
      if (device->lag() > 0) note_phases();
    }
    engine.profile(nullptr);
    while (engine.underway() > 0) engine.take();
    bench.ops = op_times(profile, kProfiled);
    bench.gflop = engine.step_work().gemm_flops / 1e9;
    bench.gemm_gbyte = engine.step_work().gemm_bytes / 1e9;
    bench.gbyte = engine.step_work().other_bytes / 1e9;
    bench.planned_bytes = static_cast<double>(engine.planned().total());
    bench.measured_bytes = static_cast<double>(engine.memory().peak().total());
    bench.tokens_per_s = static_cast<double>(batch.tokens * config.train.micro_batches);
  }
  bench.peak_rss_bytes = peak_rss();  // before the 2048^3 matrices are taken
  bench.ms_median = quantile(total, 0.5);
  bench.ms_min = quantile(total, 0);
  bench.ms_p95 = quantile(total, 0.95);
  bench.grad_ms = quantile(grad, 0.5);
  bench.update_ms = quantile(update, 0.5);
  bench.tokens_per_s *= 1e3 / bench.ms_median;
  bench.rates = measure_rates(*device);
  set_limits(bench);
  return bench;
}

std::vector<GemmRate> bench_gemm(const RunConfig& config) {
  const std::unique_ptr<Device> device = open_device(device_to_begin_on(config.train.device), static_cast<int>(config.train.threads));
  Memory memory(*device);
  std::vector<GemmRate> rates = {{"reference", 2048, 2048, 2048, false, false, 0, 0, 0}};
  Engine engine(config, *device);
  const int64_t tokens = engine.layout().has_tokens() ? config.token_capacity() : config.part_batch();
  check_fits(engine.planned(), available_on(*device));  // its products are of the same size
  std::set<std::string> seen;
  for (const RankLayer& layer : engine.params().rank_layers()) {
    if (layer.in_modes.size() + layer.out_modes.size() != layer.cores.size()) continue;  // a table
    int64_t in = 1, out = 1;
    for (int64_t mode : layer.in_modes) in *= mode;
    for (int64_t mode : layer.out_modes) out *= mode;
    const int64_t rank = layer.ranks[layer.in_modes.size() - 1]->count();
    const std::string shape = std::to_string(in) + "->" + std::to_string(out) + " rank " + std::to_string(rank) + " ";
    if (layer.name.rfind("classifier", 0) == 0 || !seen.insert(shape).second) continue;
    rates.push_back({shape + "T1 = X L", tokens, in, rank, false, false, 0, 0, 0});
    rates.push_back({shape + "Y = T1 R", tokens, rank + 1, out, false, false, 0, 0, 0});
    rates.push_back({shape + "U1 = dY R^T", tokens, out, rank, false, true, 0, 0, 0});
    rates.push_back({shape + "dX = U1 L^T", tokens, rank, in, false, true, 0, 0, 0});
    rates.push_back({shape + "T2 = T1^T dY", rank + 1, tokens, out, true, false, 0, 0, 0});
    rates.push_back({shape + "V = X^T U1", in, tokens, rank, true, false, 0, 0, 0});
  }
  for (const Param& weight : engine.params().params()) {
    if (weight.kind != ParamKind::weight) continue;
    const int64_t out = weight.shape[0], in = weight.shape[1];
    const std::string shape = std::to_string(in) + "->" + std::to_string(out) + " dense ";
    if (weight.name.rfind("classifier", 0) == 0 || !seen.insert(shape).second) continue;
    rates.push_back({shape + "Y = X W^T", tokens, in, out, false, true, 0, 0, 0});
    rates.push_back({shape + "dX = dY W", tokens, out, in, false, false, 0, 0, 0});
    rates.push_back({shape + "dW = dY^T X", out, tokens, in, true, false, 0, 0, 0});
  }
  device->set_products(products_of(config.train.matmul));
  // Working memory is lent, as to a run.
  device->ops().dry = true;
  for (const GemmRate& rate : rates) {
    const Tensor a(nullptr, rate.ta ? Shape{rate.k, rate.m} : Shape{rate.m, rate.k}, DType::f32),
        b(nullptr, rate.tb ? Shape{rate.n, rate.k} : Shape{rate.k, rate.n}, DType::f32), c(nullptr, {rate.m, rate.n}, DType::f32);
    device->ops().gemm(c, a, rate.ta, b, rate.tb);
  }
  device->ops().dry = false;
  const Buffer workspace(memory, device->workspace_bytes(), Purpose::workspace);
  device->lend_workspace(workspace.data(), workspace.bytes());
  for (GemmRate& rate : rates) {
    rate.ms = time_gemm(*device, memory, rate.m, rate.k, rate.n, rate.ta, rate.tb);
    rate.gflops = 2.0 * static_cast<double>(rate.m) * static_cast<double>(rate.k) * static_cast<double>(rate.n) / rate.ms / 1e6;
    rate.share = rate.gflops / rates.front().gflops;
  }
  device->end_loan(workspace.data());
  return rates;
}

}  // namespace comera
