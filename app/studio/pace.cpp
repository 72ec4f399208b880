#include "app/studio/pace.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/store/query.h"

namespace comera::studio {
namespace {

constexpr int64_t kMostRuns = 500;  // the newest ones

// Of a config, what decides how long a step takes.
Json shape_of(const Json& config) {
  Json shape;
  const auto take = [&](const char* group, const char* name) {
    if (config.contains(group) && config[group].contains(name)) shape[std::string(group) + "." + name] = config[group][name];
  };
  if (config.contains("model")) shape["model"] = config["model"];
  for (const char* name : {"weights", "stash", "optimizer"}) take("method", name);
  for (const char* name : {"batch", "precision", "threads", "device"}) take("train", name);
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
      const Json config = Json::parse(row[4].text, nullptr, false);
      if (!config.is_object() || shape_of(config) != wanted) continue;
      pace.run = row[0].text;
      pace.name = row[1].text;
      pace.device = row[2].text;
      pace.step_ms = std::strtod(row[3].text.c_str(), nullptr);
      break;
    }
  } catch (const std::exception&) {  // a store that cannot be read says so in the list of runs
  }
  return pace;
}

int64_t planned_steps(const RunConfig& config, int64_t rows) {
  if (config.train.steps > 0) return config.train.steps;
  if (config.data.train_rows > 0) rows = rows > 0 ? std::min(rows, config.data.train_rows) : config.data.train_rows;
  if (rows <= 0 || config.train.batch <= 0) return 0;
  return std::llround(config.train.epochs * static_cast<double>(std::max<int64_t>(1, rows / config.train.batch)));
}

}  // namespace comera::studio
