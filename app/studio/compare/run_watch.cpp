#include "app/studio/compare/run_watch.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/config/renamed_settings.h"
#include "core/store/config_diff.h"
#include "core/store/run_reader.h"

namespace comera::studio {
namespace {

// Dotted paths and JSON texts; empty if the config cannot be parsed, which the replay reports.
std::vector<std::pair<std::string, std::string>> settings_in(const std::string& config, const std::string& run) try {
  std::vector<std::pair<std::string, std::string>> out;
  const std::string current = with_current_names(parse_json(config, "the stored config"), "run " + run).dump();
  for (const ConfigDifference& leaf : diff_configs(current, current, false)) out.emplace_back(leaf.path, leaf.a);
  return out;
} catch (const std::exception&) {
  return {};
}

std::vector<int64_t> checkpoint_steps(const RunReader& reader, const std::string& id) {
  std::vector<int64_t> steps;
  for (const CheckpointRow& row : reader.checkpoints(id)) steps.push_back(row.step);
  return steps;
}

}  // namespace

void RunWatch::open(const std::string& store) {
  if (store == store_) return;
  replays_.clear();
  store_ = store;
}

void RunWatch::keep(const std::vector<WatchRequest>& requests) {
  std::erase_if(replays_, [&](const auto& known) {
    return std::none_of(requests.begin(), requests.end(), [&](const WatchRequest& request) { return request.run == known.first; });
  });
}

WatchedRun RunWatch::read(const WatchRequest& request) {
  WatchedRun answer;
  answer.run = request.run;
  answer.step = request.step;
  try {
    std::unique_ptr<Replay>& replay = replays_[request.run];
    if (!replay || request.whole) {
      auto fresh = std::make_unique<Replay>(store_, request.run);
      const std::string& id = fresh->row().id;
      const RunReader reader(store_);
      auto view = std::make_shared<RunView>(fresh->config());
      view->config_problem = fresh->config_problem();
      view->take(fresh->latest(), fresh->drain());
      answer.config = settings_in(reader.config(id), id);
      answer.checkpoints = checkpoint_steps(reader, id);
      answer.view = std::move(view);
      replay = std::move(fresh);
    } else if (request.refresh && replay->refresh()) {
      answer.latest = replay->latest();
      answer.records = replay->drain();
      answer.checkpoints = checkpoint_steps(RunReader(store_), replay->row().id);
    }
    if (request.step >= 0) {
      replay->seek(request.step);
      answer.past = replay->latest();
      replay->seek(INT64_MAX);
    }
  } catch (const Error& error) {
    answer.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
  if (!answer.problem.empty()) replays_.erase(request.run);  // the next request reads it from the start
  return answer;
}

}  // namespace comera::studio
