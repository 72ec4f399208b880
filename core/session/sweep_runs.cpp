#include "core/session/sweep_runs.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/base/json.h"
#include "core/data/dataset.h"
#include "core/session/stored_run.h"
#include "core/store/run_reader.h"

namespace comera {
namespace {

bool has(const std::vector<std::string>& texts, const std::string& text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// Steps to which a run was extended, 0 = none; nullopt: other settings were edited too.
std::optional<int64_t> extended_to(const std::vector<EventRow>& events) {
  int64_t steps = 0;
  for (const EventRow& event : events)
    if (const auto change = change_of(event.step, event.kind, event.body)) {
      if (change->path != "train.steps") return std::nullopt;
      steps = parse_valid_json(change->value).get<int64_t>();
    }
  return steps;
}

}  // namespace

bool SweepRun::is_over(int64_t step) const {
  if (row.status == "diverged") return true;
  if (row.status == "finished") return std::max(steps, row.summary.total_steps) >= step;
  return step > 0 && steps > step && row.summary.step >= step;  // past it, on the way to a later rung
}

DataOf fingerprints() {
  return [known = std::map<std::string, std::string>()](const RunConfig& config) mutable {
    const ModelInfo model = config.model.info();
    const Json read = {config_to_json(config)["data"],
                       config.model.kind,
                       config.model.task,
                       config.model.length,
                       model.tables,
                       {model.image.height, model.image.width, model.image.channels}};
    const auto [at, added] = known.emplace(read.dump(), "");
    if (added) try {
        at->second = open_run_data(config).train->info().fingerprint;
      } catch (const Error&) {  // finished runs can be listed where the data are not; training reports it
      }
    return at->second;
  };
}

SweepRuns::SweepRuns(const RunReader& reader, const Sweep& sweep) : varied_(sweep.varied()) {
  for (const RunRow& row : reader.runs()) {
    if (!has(row.tags, sweep.tag()) || !row.parent.empty()) continue;
    const std::optional<int64_t> steps = extended_to(reader.events(row.id));
    if (!steps || (*steps > 0 && !sweep.halving)) continue;
    const RunConfig config = config_from_json(parse_json(reader.config(row.id), "the stored config"), "run " + row.id);
    runs_[key_of(config)].push_back({row, *steps});
  }
}

std::string SweepRuns::key_of(RunConfig config) const {
  make_paths_absolute(config);
  Json json = config_to_json(config);
  json.erase("name");
  for (const char* setting : {"threads", "device"})
    if (!has(varied_, std::string("train.") + setting)) json["train"].erase(setting);
  return json.dump();
}

const SweepRun* SweepRuns::find(const RunConfig& config, const DataOf& data_of) const {
  const auto found = runs_.find(key_of(config));
  if (found == runs_.end()) return nullptr;
  const std::string data = data_of(config);
  const SweepRun* best = nullptr;
  for (const SweepRun& run : found->second)
    if ((data.empty() || run.row.data_fingerprint == data) && (!best || (run.is_over(0) && !best->is_over(0)))) best = &run;
  return best;
}

std::vector<std::string> SweepRuns::of_no_task(const std::vector<const RunConfig*>& tasks) const {
  std::set<std::string> keys;
  for (const RunConfig* config : tasks) keys.insert(key_of(*config));
  std::vector<std::string> ids;
  for (const auto& [key, runs] : runs_)
    if (!keys.contains(key))
      for (const SweepRun& run : runs) ids.push_back(run.row.id);
  return ids;
}

double score_of(const RunReader& reader, const std::string& run, const std::string& metric, int64_t step) {
  Series series;
  reader.metric(run, metric, -1, step > 0 ? step : std::numeric_limits<int64_t>::max(), series);
  return series.values.empty() ? kUnknown : series.values.back();
}

}  // namespace comera
