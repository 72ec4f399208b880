#include "core/session/replay.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/methods/model_size.h"
#include "core/ops/device.h"
#include "core/records/events.h"
#include "core/session/recorder.h"
#include "core/train/engine.h"

namespace comera {
namespace {

constexpr size_t kSpeedSteps = 20;  // as Recorder::recent_step_ms
constexpr size_t kQuantileSteps = 1000;
constexpr size_t kBlock = 1024;

// The value in force at `step`, or `missing`.
int64_t in_force(const std::vector<std::pair<int64_t, int64_t>>& changes, int64_t step, int64_t missing) {
  const auto after = std::upper_bound(changes.begin(), changes.end(), step, [](int64_t s, const auto& change) { return s < change.first; });
  return after == changes.begin() ? missing : std::prev(after)->second;
}

// Both rise; what is new mostly follows what is known.
void add_steps(Rising<int64_t>& known, const Rising<int64_t>& more) {
  if (more.empty()) return;
  const auto from = std::lower_bound(known.begin(), known.end(), more.front());
  std::vector<int64_t> joined;
  if (from != known.end()) {
    if (std::equal(from, known.end(), more.begin(), more.end())) return;
    std::set_union(from, known.end(), more.begin(), more.end(), std::back_inserter(joined));
    known.resize(static_cast<size_t>(from - known.begin()));
  }
  if (joined.empty())
    for (const int64_t step : more) known.push_back(step);
  else
    for (const int64_t step : joined) known.push_back(step);
}

// To be changed: others that have it keep what they have.
std::vector<double>& own(Replay::Column& column) {
  if (column.values.use_count() != 1) column.values = std::make_shared<std::vector<double>>(*column.values);
  return *column.values;
}

void add_column(Replay::Column& known, Replay::Column more) {
  if (known.steps.empty()) {
    known = std::move(more);
    return;
  }
  if (more.steps.empty()) return;
  for (const int64_t step : more.steps) known.steps.push_back(step);
  std::vector<double>& values = own(known);
  values.insert(values.end(), more.values->begin(), more.values->end());
}

}  // namespace

Replay::Replay(const std::string& store, const std::string& run, const std::function<void(double share)>& progress)
    : reader_(store), row_(reader_.find(run)) {
  append(read_rows(reader_, row_.id, {}, progress));
  seek(steps_.empty() ? 0 : steps_.back());
  read_config();
}

// A run that was imported has none, one of another version may have one that is not understood.
void Replay::read_config() try {
  const std::string text = reader_.config(row_.id);
  if (ranks_.empty() && text == "{}") return;
  config_ = config_from_json(parse_json(text, "the stored config"), "run " + row_.id);
  device_ = open_device("cpu", 1);
  engine_ = std::make_unique<Engine>(config_, *device_);
  step_memory_ = std::make_shared<const StepMemory>(engine_->step_memory());
} catch (const Error& error) {
  config_problem_ = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why());
} catch (const std::exception& error) {
  config_problem_ = std::string("the stored config cannot be read: ") + error.what();
}

Replay::~Replay() = default;

void Replay::seek(int64_t step) {
  const auto after = std::upper_bound(steps_.begin(), steps_.end(), step);
  step_ = after != steps_.begin() ? *std::prev(after) : steps_.empty() ? 0 : steps_.front();
}

bool Replay::refresh() {
  const bool at_end = steps_.empty() || step_ == steps_.back();
  const int64_t before = steps_.empty() ? -1 : steps_.back();
  const std::string status = row_.status;
  RunRows rows = read_rows(reader_, row_.id, place());
  int64_t taken_back = last_seq_;
  for (bool again = true; again;) {
    again = false;
    for (const EventRow& event : rows.events)
      if (event.kind == "resume" && event.seq > taken_back) {
        take_back(event.step);
        taken_back = event.seq;
        again = true;
      }
    if (again) rows = read_rows(reader_, row_.id, place());  // from there on
  }
  if (rows.events_before != static_cast<int64_t>(events_.size())) {
    events_.clear();
    turns_.clear();
    edits_.clear();
    last_seq_ = -1;
    rows = read_rows(reader_, row_.id, place());
  }
  append(std::move(rows));
  if (at_end && !steps_.empty()) step_ = steps_.back();
  return row_.status != status || (!steps_.empty() && steps_.back() != before);
}

RunPlace Replay::place() const {
  RunPlace place;
  place.event = last_seq_;
  place.rank = rank_step_;
  place.memory = memory_step_;
  if (!times_.steps.empty()) place.time = times_.steps.back();
  for (const auto& [name, column] : metrics_)
    if (!column.steps.empty()) place.metrics[name] = column.steps.back();
  return place;
}

bool Replay::continues(const RunRows& rows) const {
  if (rows.last_step < place().time || rows.events_before != static_cast<int64_t>(events_.size())) return false;
  for (const EventRow& event : rows.events)
    if (event.kind == "resume") return false;
  const auto known = [](const auto& tracks, const auto& name, int64_t step, int64_t value) {
    const auto track = tracks.find(name);
    return track != tracks.end() && !track->second.changes.empty() && track->second.changes.back() == std::pair(step, value);
  };
  for (const RankRow& row : rows.ranks)
    if (row.step <= rank_step_ && !known(ranks_, std::pair(row.layer, row.bond), row.step, row.rank)) return false;
  for (const MemoryRow& row : rows.memory)
    if (row.step <= memory_step_ && !known(memory_, row.purpose, row.step, row.bytes)) return false;
  return true;
}

// The rows that were read of steps the store has no more.
void Replay::take_back(int64_t after_step) {
  const auto kept = [&](const Rising<int64_t>& steps) {
    return static_cast<size_t>(std::upper_bound(steps.begin(), steps.end(), after_step) - steps.begin());
  };
  const auto cut = [&](Column& column) {
    const size_t size = kept(column.steps);
    column.steps.resize(size);
    own(column).resize(size);
    return size;
  };
  for (auto& [name, series] : metrics_) drained_points_[name] = std::min(drained_points_[name], cut(series));
  drained_times_ = std::min(drained_times_, cut(times_));
  blocks_ms_.clear();
  steps_.resize(kept(steps_));
  const auto cut_track = [&](Track& track) {
    std::erase_if(track.changes, [&](const auto& change) { return change.first > after_step; });
    track.drained = std::min(track.drained, track.changes.size());
  };
  for (auto& [bond, track] : ranks_) cut_track(track);
  for (auto& [purpose, track] : memory_) cut_track(track);
  rank_step_ = std::min(rank_step_, after_step);
  memory_step_ = std::min(memory_step_, after_step);
  const auto later = [&](const auto& what) { return what.step > after_step; };
  std::erase_if(events_, later);
  std::erase_if(turns_, later);
  std::erase_if(edits_, later);
  seek(step_);
}

void Replay::take_event(EventRow event) {
  last_seq_ = event.seq;
  Turn turn{event.step, {}, {}};
  if (event.kind == StageEvent::kind) turn.late = read_event<StageEvent>(event.body).late();
  if (event.kind == StartEvent::kind) {
    const auto start = read_event<StartEvent>(event.body);
    if (start.late.value_or(false)) turn.late = true;
    turn.held = start.held;
    if (start.imported) folder_ = {*start.imported, start.most_error.value_or(-1), start.compression.value_or(0), start.gradient_batches.value_or(0)};
    if (start.caps) first_overrides_ = {*start.caps, start.weights.value_or(std::map<std::string, double>())};
  }
  if (event.kind == TruncationEvent::kind) turn.held = read_event<TruncationEvent>(event.body).held;
  if (event.kind == RegrowthEvent::kind) turn.held = read_event<RegrowthEvent>(event.body).held;
  if (turn.late || turn.held) turns_.push_back(std::move(turn));
  if (event.kind == EditEvent::kind)
    if (const auto edit = read_event<EditEvent>(event.body); edit.path.starts_with("rank.") || edit.path == "train.max_steps_per_s")
      edits_.push_back({event.step, edit.path, edit.value});
  events_.push_back(std::move(event));
}

void Replay::append(RunRows rows) {
  row_ = std::move(rows.row);
  checkpoints_ = std::move(rows.checkpoints);
  for (EventRow& event : rows.events) take_event(std::move(event));
  add_column(times_, std::move(rows.times));
  for (auto& [name, more] : rows.metrics) {
    add_steps(steps_, more.steps);
    add_column(metrics_[name], std::move(more));
  }
  if (const auto times = metrics_.find("step_ms"); times != metrics_.end())
    for (size_t block = blocks_ms_.size(); block * kBlock <= times->second.values->size(); ++block) {
      double sum = block == 0 ? 0 : blocks_ms_.back();
      for (size_t i = block == 0 ? 0 : (block - 1) * kBlock; i < block * kBlock; ++i) sum += (*times->second.values)[i];
      blocks_ms_.push_back(sum);
    }
  // Some of the last step are known already.
  const auto change = [](Track& track, int64_t step, int64_t value) {
    if (!track.changes.empty() && track.changes.back().first == step)
      track.changes.back().second = value;
    else
      track.changes.emplace_back(step, value);
  };
  for (const RankRow& row : rows.ranks) {
    change(ranks_[{row.layer, row.bond}], row.step, row.rank);
    rank_step_ = std::max(rank_step_, row.step);
  }
  for (const MemoryRow& row : rows.memory) {
    change(memory_[row.purpose], row.step, row.bytes);
    memory_step_ = std::max(memory_step_, row.step);
  }
}

double Replay::value(const char* metric, int64_t* at) const {
  const auto found = metrics_.find(metric);
  if (at) *at = 0;
  if (found == metrics_.end()) return 0;
  const Column& column = found->second;
  const auto after = std::upper_bound(column.steps.begin(), column.steps.end(), step_);
  if (after == column.steps.begin()) return 0;
  const auto index = static_cast<size_t>(after - column.steps.begin() - 1);
  if (at) *at = column.steps[index];
  return (*column.values)[index];
}

double Replay::trained_ms(size_t steps) const {
  const std::vector<double>& times = *metrics_.at("step_ms").values;
  double sum = blocks_ms_[steps / kBlock];
  for (size_t i = steps / kBlock * kBlock; i < steps; ++i) sum += times[i];
  return sum;
}

std::shared_ptr<const Snapshot> Replay::latest() const {
  auto snapshot = std::make_shared<Snapshot>();
  Snapshot& s = *snapshot;
  const bool at_end = steps_.empty() || step_ == steps_.back();
  s.run = row_.id;
  s.name = row_.name;
  s.device = row_.device;
  s.phase = at_end ? phase_of(row_.status) : Phase::running;
  if (at_end) s.message = row_.message;
  if (at_end && failed_for_memory(row_)) s.error_code = static_cast<int>(ErrorCode::memory);
  s.step = step_;
  s.total_steps = row_.summary.total_steps;
  for (const CheckpointRow& checkpoint : checkpoints_)
    if (checkpoint.step <= step_) {  // they are in the order of steps
      s.last_checkpoint_step = checkpoint.step;
      s.last_checkpoint_path = checkpoint.path;
    }
  show_values(s);
  show_best(s);
  for (const Turn& turn : turns_)
    if (turn.step <= step_ && turn.late) s.late = *turn.late;
  if (engine_) show_ranks(s);
  show_memory(s);
  show_speed(s);
  return snapshot;
}

void Replay::show_values(Snapshot& s) const {
  s.last.results.ce = value("train_loss", &s.last.step);
  s.last.results.loss = value("train_objective");
  s.last.results.rho = value("rho");
  s.last.results.lambda = value("lambda");
  s.last.results.entries = value("entries");
  s.last.accuracy = value("train_accuracy");
  s.last.learning_rate[0] = value("lr_core");
  s.last.learning_rate[1] = value("lr_rank");
  s.last.learning_rate[2] = value("lr_rest");
  s.last.tokens = static_cast<int64_t>(value("tokens"));
  s.last.step_ms = value("step_ms");
  s.last.target_entries = s.target_entries = value("target_entries");
  s.last.epoch = s.epoch = value("epoch");
  if (s.step > 0) s.total_epochs = s.epoch * static_cast<double>(s.total_steps) / static_cast<double>(s.step);
  s.eval.loss = value("val_loss", &s.eval.step);
  s.eval.accuracy = value("val_accuracy");
  for (const std::string& name : more_scores())
    if (metrics_.contains("val_" + name)) s.eval.more.emplace_back(name, value(("val_" + name).c_str()));
  if (s.eval.step > 0) s.eval.examples = std::max<int64_t>(1, static_cast<int64_t>(value("val_examples")));
}

void Replay::show_best(Snapshot& s) const {
  const auto losses = metrics_.find("val_loss");
  if (losses == metrics_.end()) return;
  const Column none, &accuracies = metrics_.contains("val_accuracy") ? metrics_.at("val_accuracy") : none;
  for (size_t i = 0; i < losses->second.steps.size() && losses->second.steps[i] <= step_; ++i)
    if (s.best_step == 0 || (*losses->second.values)[i] < s.best_loss) {
      s.best_loss = (*losses->second.values)[i];
      s.best_step = std::max<int64_t>(1, losses->second.steps[i]);
      s.best_accuracy = i < accuracies.values->size() ? (*accuracies.values)[i] : 0;
    }
}

void Replay::apply_edits(RunConfig& config, RankOverrides& overrides) const {
  for (const Edit& edit : edits_)
    if (edit.step <= step_) try {
        apply_edit(config, overrides, edit.path, edit.value);
      } catch (const Error&) {  // an older version took a value that is refused now
      }
}

void Replay::show_ranks(Snapshot& s) const {
  LiveRanks held = held_ranks(engine_->params());
  for (const Turn& turn : turns_)
    if (turn.step <= step_ && turn.held) held = *turn.held;
  RankOverrides overrides = first_overrides_;
  RunConfig unused;
  apply_edits(unused, overrides);
  LiveRanks live;
  const LiveRanks initial = held_ranks(engine_->params());
  const auto& layers = engine_->params().rank_layers();
  for (size_t i = 0; i < layers.size(); ++i) {
    std::vector<int64_t> ranks;
    for (size_t bond = 0; bond < initial[i].size(); ++bond) {
      const auto track = ranks_.find({layers[i].name, static_cast<int64_t>(bond) + 1});
      ranks.push_back(track == ranks_.end() ? initial[i][bond] : in_force(track->second.changes, step_, initial[i][bond]));
    }
    live.push_back(ranks);
    s.ranks.push_back(layer_ranks(layers[i], std::move(ranks), held[i], initial[i], overrides));
  }
  s.ranked = ranked_matrices(engine_->params(), engine_->config().method);
  s.size = model_size(engine_->params(), live, held, engine_->config().dtype());
  s.memory_planned = engine_->planned();
  s.step_memory = step_memory_;
}

void Replay::show_memory(Snapshot& s) const {
  for (int i = 0; i < kPurposes; ++i)
    if (const auto track = memory_.find(name_of(static_cast<Purpose>(i))); track != memory_.end())
      s.memory_now.bytes[static_cast<size_t>(i)] = in_force(track->second.changes, step_, 0);
  // The largest total so far. Purposes change together, so the steps of one are looked at with all.
  for (const auto& [purpose, track] : memory_)
    for (const auto& [step, bytes] : track.changes) {
      if (step > step_) break;
      MemoryByPurpose then;
      for (int i = 0; i < kPurposes; ++i)
        if (const auto other = memory_.find(name_of(static_cast<Purpose>(i))); other != memory_.end())
          then.bytes[static_cast<size_t>(i)] = in_force(other->second.changes, step, 0);
      if (then.total() > s.memory_peak.total()) s.memory_peak = then;
    }
  // A plan that was made later, after a cut or a growth, took exactly what it said.
  if (s.memory_peak.total() > s.memory_planned.total()) s.memory_planned = s.memory_peak;
}

void Replay::show_speed(Snapshot& s) const {
  const auto found = metrics_.find("step_ms");
  if (found == metrics_.end()) return;
  const Column& times = found->second;
  const auto end = std::upper_bound(times.steps.begin(), times.steps.end(), step_) - times.steps.begin();
  const auto last = [&](size_t count) {
    return std::vector<double>(times.values->begin() + std::max<long>(0, end - static_cast<long>(count)), times.values->begin() + end);
  };
  double recent_sum = 0;
  s.elapsed_s = trained_ms(static_cast<size_t>(end)) / 1000;
  const std::vector<double> recent = last(kSpeedSteps);
  for (const double ms : recent) recent_sum += ms;
  if (recent_sum > 0) {
    RunConfig now;
    RankOverrides unused;
    now.train.max_steps_per_s = config_.train.max_steps_per_s;
    apply_edits(now, unused);
    const double limit = now.train.max_steps_per_s, free = 1000 * static_cast<double>(recent.size()) / recent_sum;
    s.steps_per_s = limit > 0 ? std::min(free, limit) : free;
    s.tokens_per_s = s.steps_per_s * static_cast<double>(s.last.tokens);
    s.eta_s = static_cast<double>(s.total_steps - s.step) / s.steps_per_s;
    std::vector<double> sorted = last(kQuantileSteps);
    std::sort(sorted.begin(), sorted.end());
    s.step_ms_median = sorted[sorted.size() / 2];
    s.step_ms_p95 = sorted[(sorted.size() - 1) * 95 / 100];
  }
}

Records Replay::drain() {
  const auto rest_of = [](const Column& column, size_t drained) {
    const auto from = static_cast<std::ptrdiff_t>(drained);
    return Series{{column.steps.begin() + from, column.steps.end()}, {column.values->begin() + from, column.values->end()}};
  };
  Series times = rest_of(times_, drained_times_);
  std::map<std::string, Series> metrics;
  for (const auto& [name, column] : metrics_)
    if (const size_t drained = drained_points_[name]; drained < column.steps.size()) metrics[name] = rest_of(column, drained);
  Records records = drain_rest();
  records.times = std::move(times);
  records.metrics = std::move(metrics);
  return records;
}

Records Replay::drain_rest() {
  Records records;
  drained_times_ = times_.steps.size();
  for (const auto& [name, column] : metrics_) drained_points_[name] = column.steps.size();
  for (auto& [bond, track] : ranks_)
    for (; track.drained < track.changes.size(); ++track.drained) {
      const auto& [step, rank] = track.changes[track.drained];
      records.ranks.push_back({step, bond.first, bond.second, rank});
    }
  std::stable_sort(records.ranks.begin(), records.ranks.end(), [](const RankRow& a, const RankRow& b) { return a.step < b.step; });
  for (auto& [purpose, track] : memory_)
    for (; track.drained < track.changes.size(); ++track.drained) {
      const auto& [step, bytes] = track.changes[track.drained];
      records.memory.push_back({step, purpose, bytes});
    }
  std::stable_sort(records.memory.begin(), records.memory.end(), [](const MemoryRow& a, const MemoryRow& b) { return a.step < b.step; });
  for (const EventRow& event : events_)
    if (event.seq > drained_events_) records.events.push_back(event);
  if (!events_.empty()) drained_events_ = events_.back().seq;
  return records;
}

}  // namespace comera
