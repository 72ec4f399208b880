#include "app/studio/form/pace.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/data/holdout.h"
#include "core/session/bench.h"
#include "core/store/query.h"
#include "core/train/forecast.h"

namespace comera::studio {
namespace {

constexpr int64_t kMostRuns = 500;  // newest runs that are searched

// The settings that determine the step time.
Json shape_of(const Json& config) {
  Json shape;
  const auto take = [&](const char* group, const char* name) {
    if (config.contains(group) && config[group].contains(name)) shape[std::string(group) + "." + name] = config[group][name];
  };
  if (config.contains("model")) shape["model"] = config["model"];
  for (const char* name : {"weights", "stash", "optimizer"}) take("method", name);
  for (const char* name : {"batch", "precision", "matmul", "threads", "device"}) take("train", name);
  if (config.contains("train") && !config["train"].value("cuda_graph", true)) shape["train.cuda_graph"] = false;  // absent in older ones
  for (const char* name : {"pack", "token_budget"}) take("data", name);
  return shape;
}

}  // namespace

Pace find_pace(const PaceQuestion& question) {
  Pace pace;
  std::error_code ignored;
  if (question.store.empty() || !std::filesystem::exists(question.store, ignored)) return pace;
  try {
    const Json wanted = shape_of(config_to_json(question.config));
    const QueryTable table = query_store(
        question.store, "SELECT id, name, device, step_ms, config FROM runs WHERE step_ms > 0 ORDER BY created DESC", kMostRuns);
    for (const auto& row : table.rows) {
      const Json config = try_parse_json(row[4].text);
      if (!config.is_object() || shape_of(config) != wanted) continue;
      pace.run = row[0].text;
      pace.name = row[1].text;
      pace.device = row[2].text;
      pace.step_ms = std::strtod(row[3].text.c_str(), nullptr);
      break;
    }
  } catch (const std::exception&) {  // the list of runs reports the problem
  }
  return pace;
}

std::string machine_name() {
  static const std::string kName = [] {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
      if (const size_t colon = line.find(": "); line.starts_with("model name") && colon != std::string::npos)
        return line.substr(colon + 2) + ", " + std::to_string(std::thread::hardware_concurrency()) + " threads";
    return std::to_string(std::thread::hardware_concurrency()) + " threads";
  }();
  return kName;
}

std::string shape_text(const RunConfig& config) { return shape_of(config_to_json(config)).dump(); }

MeasuredStep measure_step(const RunConfig& config) {
  constexpr int64_t kSteps = 7, kWarmup = 2;
  constexpr double kSlow = 500;  // ms; for slower steps a single one is measured
  MeasuredStep step{.machine = machine_name(), .shape = shape_text(config), .name = config.name, .problem = ""};
  try {
    const Forecast forecast = make_forecast(config);
    check_fits(forecast.memory, forecast.available);
    StepBench bench = bench_step(config, 1, 1);
    if (bench.ms_median < kSlow) bench = bench_step(config, kSteps, kWarmup);
    step.step_ms = bench.ms_median;
    step.gflop = bench.gflop;
  } catch (const Error& error) {
    step.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    step.problem = error.what();
  }
  return step;
}

void remember_step(std::vector<MeasuredStep>& known, MeasuredStep step) {
  constexpr size_t kMost = 50;
  std::erase_if(known, [&](const MeasuredStep& one) { return one.machine == step.machine && one.shape == step.shape; });
  known.push_back(std::move(step));
  if (known.size() > kMost) known.erase(known.begin());
}

Guess guess_step(const std::vector<MeasuredStep>& known, const std::string& machine, const RunConfig& config, double gflop) {
  const std::string shape = shape_text(config);
  Guess guess;
  double nearest = 0;  // smallest ratio of work so far, at least 1
  for (const MeasuredStep& step : known) {
    if (step.machine != machine || step.step_ms <= 0) continue;
    if (step.shape == shape) return {step.step_ms, step.name, true};
    if (step.gflop <= 0 || gflop <= 0) continue;
    const double times = std::max(step.gflop / gflop, gflop / step.gflop);
    if (guess.step_ms > 0 && times >= nearest) continue;
    nearest = times;
    guess = {step.step_ms * gflop / step.gflop, step.name, false};
  }
  return guess;
}

int64_t planned_steps(const RunConfig& config, int64_t rows, bool whole) {
  if (config.train.steps > 0) return config.train.steps;
  if (whole) rows -= Holdout::held_of(rows, config.data.holdout);
  if (config.data.train_rows > 0) rows = rows > 0 ? std::min(rows, config.data.train_rows) : config.data.train_rows;
  if (rows <= 0 || config.train.batch <= 0) return 0;
  return std::llround(config.train.epochs * static_cast<double>(std::max<int64_t>(1, rows / config.train.batch)));
}

}  // namespace comera::studio
