#include "core/session/duel.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/config/named_methods.h"
#include "core/records/events.h"
#include "core/session/stored_run.h"
#include "core/store/run_reader.h"
#include "core/train/forecast.h"
#include "core/train/memory_fit.h"
#include "core/train/rank_setting.h"

namespace comera {
namespace {

// Whether the method is one of this rank alone, as APOLLO-Mini is.
bool fixes_rank(const std::string& id, const std::string& path) {
  constexpr std::string_view kGroup = "method.";
  if (!path.starts_with(kGroup)) return false;
  MethodConfig recipe, plain;
  set_method(recipe, id);
  const std::string field = path.substr(kGroup.size());
  return field_values(fields_of(recipe)).at(field) != field_values(fields_of(plain)).at(field);
}

std::string run_name(const RunConfig& config, const std::string& id, int64_t seed) {
  return (config.name.empty() ? "" : config.name + " ") + id + " seed " + std::to_string(seed);
}

DuelMethod plan_method(const Duel& duel, const std::string& id) {
  DuelMethod method{.id = id, .title = {}, .config = duel.config};
  set_method(method.config, id);
  method.title = method.config.method.name;
  if (duel.bytes > 0) method.config.train.micro_batches = 1;  // which are chosen then, so those given refuse no method
  if (const std::vector<Problem> problems = config_problems(method.config); !problems.empty()) {
    method.refusal = problems.front().path + ": " + problems.front().text;
    return method;
  }
  const std::optional<RankSetting> setting = rank_setting(method.config);
  if (duel.bytes > 0)
    if (const auto fitted = fit_to_memory(method.config, duel.bytes, setting && fixes_rank(id, setting->path))) {
      method.fits = fitted->fits;
      if (fitted->fits) method.config = fitted->config;
      method.planned = fitted->bytes;
    }
  if (setting) {
    method.rank = rank_setting(method.config)->configured;
    method.rank_path = setting->path;
  }
  if (!method.fits) return method;
  const Forecast forecast = make_forecast(method.config);
  method.parameters = forecast.parameters;
  method.trainable = forecast.trainable;
  method.planned = forecast.memory.total();
  for (int64_t seed = duel.config.train.seed; seed < duel.config.train.seed + duel.seeds; ++seed) {
    method.runs.push_back(method.config);
    method.runs.back().train.seed = seed;
    method.runs.back().name = run_name(duel.config, id, seed);
  }
  return method;
}

std::string key_of(RunConfig config) {
  make_paths_absolute(config);
  return config_to_json(config).dump();
}

bool was_edited(const RunReader& reader, const std::string& run) {
  const std::vector<EventRow> events = reader.events(run);
  return std::any_of(events.begin(), events.end(), [](const EventRow& event) { return change_of(event.step, event.kind, event.body); });
}

std::string imported_by(const RunReader& reader, const std::string& run) {
  std::string from;
  for (const EventRow& event : reader.events(run))
    if (event.kind == StartEvent::kind) from = read_event<StartEvent>(event.body).imported.value_or("");
  return from;
}

// Most bytes held at one time: the summary of a run that was resumed knows those since then.
double peak_of(const RunReader& reader, const RunRow& run) {
  std::map<std::string, int64_t> held;
  int64_t peak = std::isfinite(run.summary.peak_bytes) ? static_cast<int64_t>(run.summary.peak_bytes) : 0;
  const std::vector<MemoryRow> rows = reader.memory(run.id);
  for (size_t i = 0; i < rows.size(); ++i) {
    held[rows[i].purpose] = rows[i].bytes;
    if (i + 1 < rows.size() && rows[i + 1].step == rows[i].step) continue;  // the others of this step come first
    peak = std::max(peak,
                    std::accumulate(held.begin(), held.end(), int64_t{0}, [](int64_t sum, const auto& one) { return sum + one.second; }));
  }
  return peak > 0 ? static_cast<double>(peak) : kUnknown;
}

double median(std::vector<double> values) {
  if (values.empty()) return kUnknown;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::vector<DuelMethod> plan_duel(const Duel& duel) {
  std::vector<std::string> ids = duel.methods;
  if (ids.empty())
    for (const NamedMethod& method : named_methods()) ids.push_back(method.id);
  std::set<std::string> seen;
  for (const std::string& id : ids) {
    if (!seen.insert(id).second)
      throw Error(ErrorCode::usage, "method '" + id + "' is given twice", "its runs would be the same", "name each method once");
  }
  std::vector<DuelMethod> planned;
  for (const std::string& id : ids) planned.push_back(plan_method(duel, id));
  return planned;
}

DuelRuns::DuelRuns(const RunReader& reader, const std::string& data_fingerprint, const std::string& imported) {
  for (const RunRow& row : reader.runs()) {
    const bool of_duel = std::find(row.tags.begin(), row.tags.end(), kDuelTag) != row.tags.end() && row.parent.empty();
    if (!of_duel || row.data_fingerprint != data_fingerprint || was_edited(reader, row.id) || imported_by(reader, row.id) != imported)
      continue;
    const std::string key = key_of(config_from_json(parse_json(reader.config(row.id), "the stored config"), "run " + row.id));
    const auto [known, added] = runs_.emplace(key, row);
    if (!added && is_over(row) && !is_over(known->second)) known->second = row;
  }
}

const RunRow* DuelRuns::find(const RunConfig& config) const {
  const auto found = runs_.find(key_of(config));
  return found == runs_.end() ? nullptr : &found->second;
}

bool is_over(const RunRow& run) { return run.status == "finished" || run.status == "diverged"; }

Spread spread_of(const std::vector<double>& values) {
  Spread spread{.count = static_cast<int64_t>(values.size())};
  if (values.empty()) return spread;
  const auto count = static_cast<double>(values.size());
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - spread.mean) * (value - spread.mean);
  if (values.size() > 1) spread.deviation = std::sqrt(squares / (count - 1));
  return spread;
}

DuelResult duel_result(const RunReader& reader, const DuelRuns& stored, const DuelMethod& method) {
  DuelResult result;
  std::vector<double> accuracies, losses, steps;
  for (const RunConfig& config : method.runs) {
    const RunRow* row = stored.find(config);
    if (!row) continue;
    result.runs.push_back(*row);
    result.seconds += row->active_s;
    if (row->summary.step > 0) result.peak_bytes = std::fmax(result.peak_bytes, peak_of(reader, *row));
    const Series times = reader.metric(row->id, "step_ms");
    steps.insert(steps.end(), times.values.begin(), times.values.end());
    result.failed += row->status == "failed";
    if (row->status != "finished") continue;
    ++result.finished;
    if (std::isfinite(row->summary.val_accuracy)) accuracies.push_back(row->summary.val_accuracy);
    if (std::isfinite(row->summary.val_loss)) losses.push_back(row->summary.val_loss);
  }
  result.val_accuracy = spread_of(accuracies);
  result.val_loss = spread_of(losses);
  result.step_ms = median(std::move(steps));
  return result;
}

}  // namespace comera
