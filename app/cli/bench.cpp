// comera bench step | layers | gemm: how fast this machine trains a config, and where the time goes.
#include <cmath>
#include <iostream>
#include <memory>

#include "app/cli/cli.h"
#include "core/session/bench.h"

namespace comera::cli {
namespace {

struct BenchOptions {
  std::string config = "encoder6-mnli";
  std::vector<std::string> sets;
  int64_t steps = 20, warmup = 3;
};

Json ops_json(const StepBench& bench) {
  Json ops = Json::array();
  for (const OpTime& op : bench.ops)
    ops.push_back({{"op", op.op},
                   {"calls", std::llround(op.calls)},
                   {"ms", op.ms},
                   {"gflop", op.gflop},
                   {"gbyte", op.gbyte},
                   {"share_of_rate", share_of_rate(op, bench.rates)}});
  return ops;
}

int step(const Context& context, const BenchOptions& options) {
  const StepBench bench = bench_step(load_config(options.config, options.sets), options.steps, options.warmup);
  if (context.json) {
    print_json(
        {{"config", options.config},
         {"steps", bench.steps},
         {"step_ms",
          {{"median", bench.ms_median},
           {"min", bench.ms_min},
           {"p95", bench.ms_p95},
           {"grad", bench.grad_ms},
           {"update", bench.update_ms}}},
         {"gflop", bench.gflop},
         {"gbyte", bench.gbyte},
         {"gemm_gbyte", bench.gemm_gbyte},
         {"sgemm_gflops", bench.rates.sgemm_gflops},
         {"copy_gbs", bench.rates.copy_gbs},
         {"limit_ms", bench.limit_ms},
         {"traffic_ms", bench.traffic_ms},
         {"bandwidth_ms", bench.bandwidth_ms},
         {"tokens_per_s", bench.tokens_per_s},
         {"memory",
          {{"planned_bytes", bench.planned_bytes}, {"measured_bytes", bench.measured_bytes}, {"peak_rss_bytes", bench.peak_rss_bytes}}},
         {"ops", ops_json(bench)}});
    return 0;
  }
  print_table(
      context, {"measurement", "value"},
      {{"step", significant(bench.ms_median) + " ms median, " + significant(bench.ms_min) + " min, " + significant(bench.ms_p95) + " p95"},
       {"gradient, update", significant(bench.grad_ms) + " ms, " + significant(bench.update_ms) + " ms"},
       {"GEMM limit", significant(bench.limit_ms) + " ms (" + significant(bench.gflop) + " GFLOP at " +
                          significant(bench.rates.sgemm_gflops) + " GFLOP/s)"},
       {"everything else", significant(bench.traffic_ms) + " ms (" + significant(bench.gbyte) + " GB at " +
                               significant(bench.rates.copy_gbs) + " GB/s, the rate of a copy)"},
       {"bandwidth limit", significant(bench.bandwidth_ms) + " ms (with " + significant(bench.gemm_gbyte) + " GB of the GEMMs)"},
       {"tokens", thousands(bench.tokens_per_s) + " per second"},
       {"memory", mebibytes(bench.measured_bytes) + " taken, " + mebibytes(bench.planned_bytes) + " planned, " +
                      mebibytes(bench.peak_rss_bytes) + " peak resident"}});
  return 0;
}

int layers(const Context& context, const BenchOptions& options) {
  const StepBench bench = bench_step(load_config(options.config, options.sets), options.steps, options.warmup);
  if (context.json) {
    print_json({{"config", options.config}, {"step_ms", {{"median", bench.ms_median}}}, {"ops", ops_json(bench)}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  double sum = 0;
  for (const OpTime& op : bench.ops) {
    rows.push_back({op.op, std::to_string(std::llround(op.calls)), significant(op.ms), significant(100 * op.ms / bench.ms_median, 3),
                    op.gflop > 0 ? significant(gflops_of(op)) : "", op.gflop > 0 ? "" : significant(gbs_of(op)),
                    significant(100 * share_of_rate(op, bench.rates), 3)});
    sum += op.ms;
  }
  rows.push_back({"(all)", "", significant(sum), significant(100 * sum / bench.ms_median, 3), "", "", ""});
  print_table(context, {"op", "calls per step", "ms per step", "% of the step", "GFLOP/s", "GB/s", "% of the GEMM or copy rate"}, rows);
  return 0;
}

int gemm(const Context& context, const BenchOptions& options) {
  const RunConfig config = load_config(options.config, options.sets);
  const std::vector<GemmRate> rates = bench_gemm(config);
  if (context.json) {
    Json rows = Json::array();
    for (const GemmRate& rate : rates)
      rows.push_back({{"what", rate.what},
                      {"m", rate.m},
                      {"k", rate.k},
                      {"n", rate.n},
                      {"ms", rate.ms},
                      {"gflops", rate.gflops},
                      {"share", rate.share}});
    print_json({{"config", options.config}, {"matmul", config.train.matmul}, {"gemm", rows}});
    return 0;
  }
  std::vector<std::vector<std::string>> rows;
  for (const GemmRate& rate : rates)
    rows.push_back({rate.what, std::to_string(rate.m) + " x " + std::to_string(rate.k) + " x " + std::to_string(rate.n),
                    significant(rate.ms), significant(rate.gflops), significant(100 * rate.share, 3)});
  print_table(context, {"product in " + config.train.matmul, "m x k x n", "ms", "GFLOP/s", "% of 2048^3"}, rows);
  return 0;
}

}  // namespace

void add_bench(Verb& program, Context& context) {
  Verb verb = program.verb("bench", "measure how fast this machine trains a config, and where the time goes");
  verb.needs_verb();
  const auto options = std::make_shared<BenchOptions>();
  const auto add = [&](const char* name, const char* help, int (*run)(const Context&, const BenchOptions&)) {
    Verb inner = verb.verb(name, help);
    inner.option("config", options->config, "preset or file; - for stdin").shows_default();
    inner.settings(options->sets);
    inner.option("--steps", options->steps, "timed steps").positive().shows_default();
    inner.option("--warmup", options->warmup, "untimed steps before them").shows_default();
    inner.does([&context, options, run] { return run(context, *options); });
  };
  add("step", "measure whole training steps: time, GEMM limit, memory", step);
  add("layers", "measure the time of each op in a step", layers);
  add("gemm", "measure each matrix product of the layers in train.matmul, relative to 2048^3", gemm);
}

}  // namespace comera::cli
