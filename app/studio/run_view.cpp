#include "app/studio/run_view.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/format.h"
#include "core/base/error.h"

namespace comera::studio {

const Curve& RunView::metric(const std::string& name) const {
  static const Curve kEmpty;
  const auto found = metrics.find(name);
  return found == metrics.end() ? kEmpty : found->second;
}

void RunView::add_ranks(int64_t step, const LayerRanks& layer) {
  double sum = 0;
  for (int64_t rank : layer.live) sum += static_cast<double>(rank);
  Curve& curve = rank_sums[layer.name];
  if (!curve.empty() && curve.last() == sum) return;
  const auto x = static_cast<double>(step);
  if (!curve.empty() && curve.x().back() < x - 1) curve.append(x - 1, curve.last());
  curve.append(x, sum);
}

bool RunView::ended() const { return has_ended(snapshot->phase); }

double RunView::target_base_entries() const { return late_entries > 0 ? late_entries : snapshot->size.entries; }

bool has_ended(Phase phase) {
  return phase == Phase::finished || phase == Phase::stopped || phase == Phase::interrupted || phase == Phase::failed ||
         phase == Phase::diverged;
}

Phase phase_of(const std::string& status) {
  for (int i = 0; i <= static_cast<int>(Phase::diverged); ++i)
    if (status == name_of(static_cast<Phase>(i))) return static_cast<Phase>(i);
  return Phase::idle;
}

namespace {

// Layers with their ranks at a step; `initial` is the first rank that was stored of each bond. On the way the view gets
// the sums.
std::vector<LayerRanks> ranks_at(const std::vector<RankRow>& history, int64_t step, RunView& view) {
  std::vector<LayerRanks> layers;
  int64_t moment = -1;
  const auto close_moment = [&] {
    for (const LayerRanks& layer : layers)
      if (moment >= 0) view.add_ranks(moment, layer);
  };
  for (const RankRow& row : history) {
    if (row.step > step) break;
    if (row.step != moment) close_moment();
    moment = row.step;
    auto layer = std::find_if(layers.begin(), layers.end(), [&](const LayerRanks& other) { return other.name == row.layer; });
    if (layer == layers.end()) layer = layers.insert(layers.end(), LayerRanks{row.layer, {}, {}, {}});
    if (row.bond < 1) continue;  // stored bonds count from 1
    const auto bond = static_cast<size_t>(row.bond - 1);
    if (layer->live.size() <= bond) {
      layer->live.resize(bond + 1);
      layer->initial.resize(bond + 1);
    }
    if (layer->initial[bond] == 0) layer->initial[bond] = row.rank;
    layer->live[bond] = row.rank;
  }
  close_moment();
  for (LayerRanks& layer : layers) layer.held = layer.live;  // what was allocated is not stored
  return layers;
}

void read_events(const std::vector<EventRow>& events, int64_t step, RunView& view, Snapshot& snapshot) {
  for (const EventRow& event : events) {
    if (event.step > step) continue;
    const Json body = Json::parse(event.body, nullptr, false);
    const auto text = [&](const char* key) {
      return body.is_object() && body.contains(key) && body[key].is_string() ? body[key].get<std::string>() : "";
    };
    if (event.kind == "edit") {
      try {
        apply_edit(view.config, view.overrides, text("path"), text("value"));
      } catch (const Error&) {  // of another version: shown, not applied
      }
      view.marks.push_back({event.step, Mark::edit, text("path") + " = " + text("value")});
      view.log.push_back({Level::info, event.step, "set " + text("path") + " = " + text("value")});
    } else if (event.kind == "stage") {
      snapshot.late = true;
      const double entries = view.metric("entries").at(static_cast<double>(event.step));
      if (view.late_entries == 0 && std::isfinite(entries)) view.late_entries = entries;
      view.marks.push_back({event.step, Mark::late_stage, "late stage"});
      view.log.push_back({Level::good, event.step, "late stage begins (" + text("reason") + ")"});
    } else if (event.kind == "checkpoint") {
      snapshot.last_checkpoint_step = event.step;
      view.marks.push_back({event.step, Mark::checkpoint, "checkpoint"});
      view.log.push_back({Level::info, event.step, "checkpoint written"});
    } else if (event.kind == "alert") {
      view.log.push_back({Level::warning, event.step, text("text")});
    } else {
      view.log.push_back({Level::info, event.step, event.kind});
    }
  }
}

}  // namespace

std::shared_ptr<RunView> load_run_view(const RunReader& reader, const std::string& id, int64_t at_step) {
  auto view = std::make_shared<RunView>();
  Snapshot s;
  const RunRow row = reader.run(id);
  try {
    view->config = config_from_json(parse_json(reader.config(id), id), id);
  } catch (const Error& error) {  // a config of another version: the curves are still worth seeing
    view->log.push_back({Level::warning, 0, std::string("the stored config cannot be read: ") + error.what()});
  }
  s.run = row.id;
  s.name = row.name;
  s.phase = phase_of(row.status);
  s.message = row.message;
  s.step = at_step >= 0 ? std::min(at_step, row.summary.step) : row.summary.step;
  s.total_steps = row.summary.total_steps;
  s.device = row.device;
  s.elapsed_s = row.active_s;
  if (std::isfinite(row.summary.step_ms)) s.step_ms_median = row.summary.step_ms;
  if (s.step_ms_median > 0) s.steps_per_s = 1000 / s.step_ms_median;
  for (const std::string& name : reader.metric_names(id)) {
    const Series series = reader.metric(id, name);
    Curve& curve = view->metrics[name];
    for (size_t i = 0; i < series.steps.size() && series.steps[i] <= s.step; ++i)
      curve.append(static_cast<double>(series.steps[i]), series.values[i]);
  }
  const auto last = [&](const char* name) { return view->metric(name).empty() ? 0 : view->metric(name).last(); };
  s.last.step = s.step;
  s.last.results.ce = last("train_loss");
  s.last.results.loss = last("train_objective");
  s.last.results.rho = last("rho");
  s.last.results.entries = last("entries");
  s.last.accuracy = last("train_accuracy");
  s.last.step_ms = last("step_ms");
  s.target_entries = last("target_entries");
  if (const Curve& accuracy = view->metric("val_accuracy"); !accuracy.empty()) {
    s.eval.step = static_cast<int64_t>(accuracy.x().back());
    s.eval.accuracy = accuracy.last();
    s.eval.loss = last("val_loss");
    s.eval.examples = 1;  // scored; how many rows is not stored
  }
  // Sizes at the step, from those of the last step: bytes of an entry and the dense size do not change.
  s.size.entries = s.last.results.entries > 0 ? s.last.results.entries : row.summary.entries;
  if (row.summary.entries > 0) {
    s.size.bytes = row.summary.bytes / row.summary.entries * s.size.entries;
    s.size.compression = row.summary.compression * row.summary.entries / std::max(1.0, s.size.entries);
  }
  s.ranks = ranks_at(reader.rank_history(id), s.step, *view);
  int64_t changed = -1;
  const auto close_moment = [&] {  // rows of one moment come together
    if (changed < 0) return;
    for (int i = 0; i < kPurposes; ++i)
      view->memory[static_cast<size_t>(i)].append(static_cast<double>(changed),
                                                  static_cast<double>(s.memory_now.bytes[static_cast<size_t>(i)]));
    if (s.memory_now.total() > s.memory_peak.total()) s.memory_peak = s.memory_now;
  };
  for (const MemoryRow& memory : reader.memory(id)) {
    if (memory.step > s.step) break;
    if (memory.step != changed) close_moment();
    changed = memory.step;
    for (int i = 0; i < kPurposes; ++i)
      if (memory.purpose == name_of(static_cast<Purpose>(i))) s.memory_now.bytes[static_cast<size_t>(i)] = memory.bytes;
  }
  close_moment();
  read_events(reader.events(id), s.step, *view, s);
  if (!s.message.empty()) view->log.push_back({Level::error, s.step, s.message});
  view->snapshot = std::make_shared<const Snapshot>(std::move(s));
  return view;
}

}  // namespace comera::studio
