#include "app/studio/shown_run/run_view.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "app/format.h"
#include "core/base/error.h"
#include "core/config/renamed_settings.h"
#include "core/records/events.h"

namespace comera::studio {
namespace {

constexpr int64_t kDropsNamed = 3;  // bonds named per log line

std::string count(double value) { return thousands(value); }

void add_mark(std::vector<Mark>& marks, Mark mark) {
  const auto at =
      std::upper_bound(marks.begin(), marks.end(), mark.step, [](int64_t step, const Mark& other) { return step < other.step; });
  marks.insert(at, std::move(mark));
}

void apply(const Edit& edit, RunConfig& config, RankOverrides& overrides) {
  try {
    apply_edit(config, overrides, edit.path, edit.value);
  } catch (const Error&) {  // from another version: shown, not applied
  }
}

}  // namespace

const Curve& RunView::metric(const std::string& name) const {
  static const Curve kEmpty;
  const auto found = metrics.find(name);
  return found == metrics.end() ? kEmpty : found->second;
}

bool RunView::ended() const { return has_ended(snapshot->phase); }

double RunView::target_base_entries(const Snapshot& at) const {
  const double known = at.late ? entries_at_begin(at.step) : 0;
  return known > 0 ? known : at.size.entries;
}

double RunView::entries_at_begin(int64_t step) const {
  double entries = first_late_entries_;
  bool late = first_late_entries_ > 0;
  for (const StageSwitch& to : stages_) {
    if (to.step > step) break;
    if (to.late && !late) entries = to.entries;  // repeated switches continue the same stage
    late = to.late;
  }
  return entries;
}

size_t RunView::edits_until(int64_t step) const {
  const auto after = std::upper_bound(edits.begin(), edits.end(), step, [](int64_t s, const Edit& edit) { return s < edit.step; });
  return static_cast<size_t>(after - edits.begin());
}

std::string failure_text(const Snapshot& s) {
  std::string text = s.message.empty() ? name_of(s.phase) : s.message;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  if (!s.error_why.empty()) text += ": " + s.error_why;
  if (!s.error_hint.empty()) text += "\nTry: " + s.error_hint;
  return text;
}

RunConfig RunView::config_at(int64_t step) const {
  RunConfig at = first_config_;
  RankOverrides overrides;
  for (size_t i = 0; i < edits_until(step); ++i) apply(edits[i], at, overrides);
  return at;
}

void RunView::add_switch(StageSwitch to) {
  const auto at =
      std::upper_bound(stages_.begin(), stages_.end(), to.step, [](int64_t step, const StageSwitch& other) { return step < other.step; });
  stages_.insert(at, to);
}

void RunView::add_log(Level level, int64_t step, std::string text, LogLine::Place place) {
  const auto at = std::upper_bound(log.begin(), log.end(), std::pair(step, place),
                                   [](const auto& key, const LogLine& line) { return key < std::pair(line.step, line.place); });
  LogLine line{level, step, std::move(text), place};
  if (live) new_lines.push_back(line);
  log.insert(at, std::move(line));
}

void RunView::take(std::shared_ptr<const Snapshot> now, const Records& records) {
  const std::shared_ptr<const Snapshot> before = std::exchange(snapshot, std::move(now));
  const Snapshot& s = *snapshot;
  for (const EventRow& event : records.events)
    if (event.kind == "resume") take_back(event.step);
  for (const auto& [name, series] : records.metrics) {
    Curve& curve = metrics[name];
    if (curve.empty()) curve.reserve(series.steps.size());
    for (size_t i = 0; i < series.steps.size(); ++i) curve.append(static_cast<double>(series.steps[i]), series.values[i]);
  }
  if (wall.empty()) wall.reserve(records.times.steps.size());
  for (size_t i = 0; i < records.times.steps.size(); ++i) wall.append(static_cast<double>(records.times.steps[i]), records.times.values[i]);
  trained_ms.update(metric("step_ms"));
  // Events and rank drops are merged by step.
  auto next = records.ranks.begin();
  const auto ranks_before = [&](int64_t step) {
    const auto end = std::find_if(next, records.ranks.end(), [&](const RankRow& row) { return row.step >= step; });
    take_ranks({next, end});
    next = end;
  };
  for (const EventRow& event : records.events) {
    ranks_before(event.step);
    take_event(event);
  }
  ranks_before(INT64_MAX);
  for (size_t i = 0; i < records.memory.size(); ++i) {
    const MemoryRow& row = records.memory[i];
    for (int purpose = 0; purpose < kPurposes; ++purpose)
      if (row.purpose == name_of(static_cast<Purpose>(purpose))) memory_now_.bytes[static_cast<size_t>(purpose)] = row.bytes;
    if (i + 1 < records.memory.size() && records.memory[i + 1].step == row.step) continue;  // rows of the same step form one point
    for (size_t purpose = 0; purpose < memory.size(); ++purpose)
      memory[purpose].append(static_cast<double>(row.step), static_cast<double>(memory_now_.bytes[purpose]));
  }
  // Edits take effect at the next step. An edit that was repeated at a resume may be due much later.
  const size_t due = edits_until(s.step + 1);
  if (due < edits_in_force_ || edits_changed_) {
    config = first_config_;
    overrides_ = {};
    edits_in_force_ = 0;
    edits_changed_ = false;
  }
  for (; edits_in_force_ < due; ++edits_in_force_) apply(edits[edits_in_force_], config, overrides_);
  find_late_entries();
  // In a stored run the line about its state is always at the last step.
  const bool moves = !live && std::erase_if(log, [](const LogLine& line) { return line.place == LogLine::now; }) > 0;
  if (s.phase != before->phase || moves) {
    const bool bad = s.phase == Phase::failed || s.phase == Phase::diverged;
    std::string text = name_of(s.phase);
    if (bad && !s.message.empty()) text += ": " + s.message + (s.error_why.empty() ? "" : " (" + s.error_why + ")");
    add_log(bad                          ? Level::error
            : s.phase == Phase::finished ? Level::good
                                         : Level::info,
            s.step, text, live ? LogLine::after : LogLine::now);
    if (bad && !s.error_hint.empty()) add_log(Level::error, s.step, "try: " + s.error_hint, live ? LogLine::after : LogLine::now);
  }
  if (s.store_problem != before->store_problem)
    add_log(s.store_problem.empty() ? Level::good : Level::error, s.step,
            s.store_problem.empty() ? "the database works again" : s.store_problem);
}

// Fills in sizes for stage switches without one in their event: a switch requested in advance, and a fork that starts in the late stage,
// whose size follows from its target.
void RunView::find_late_entries() {
  for (StageSwitch& to : stages_)
    if (to.late && to.entries == 0 && to.step <= snapshot->step)
      to.entries = std::max(0.0, metric("entries").at(static_cast<double>(to.step)));  // 0 = not known
  const Curve& targets = metric("target_entries");
  const bool from_the_start = begins_late_ || (snapshot->late && stages_.empty());
  if (from_the_start && first_late_entries_ == 0 && (live || !targets.empty())) {
    const double first = targets.empty() ? snapshot->target_entries : targets.y().front();
    const double share = (targets.empty() ? config : config_at(static_cast<int64_t>(targets.x().front()))).method.comera.target;
    if (first > 0 && share > 0) first_late_entries_ = first / share;
  }
  late_entries = entries_at_begin(snapshot->step);
}

void RunView::share(const std::string& name, const Rising<int64_t>& steps, std::shared_ptr<std::vector<double>> values) {
  (name == "wall" ? wall : metrics[name]).share(steps, std::move(values));
  if (name == "step_ms") trained_ms.update(metrics[name]);
  if (name == "entries" || name == "target_entries") find_late_entries();
}

void RunView::let_go() {
  wall.let_go();
  for (auto& [name, curve] : metrics) curve.let_go();
}

void RunView::fill_in(const Records& missing) {
  const auto fill = [](Curve& curve, const Series& series) {
    if (series.steps.empty()) return;
    const auto first = static_cast<double>(series.steps.front()), last = static_cast<double>(series.steps.back());
    std::vector<std::pair<double, double>> later;
    for (size_t i = curve.size(); i-- > 0 && curve.x()[i] > last;) later.emplace_back(curve.x()[i], curve.y()[i]);
    curve.cut_after(first - 0.5);
    for (size_t i = 0; i < series.steps.size(); ++i) curve.append(static_cast<double>(series.steps[i]), series.values[i]);
    for (auto point = later.rbegin(); point != later.rend(); ++point) curve.append(point->first, point->second);
  };
  for (const auto& [name, series] : missing.metrics) fill(metrics[name], series);
  fill(wall, missing.times);
  trained_ms.update(metric("step_ms"));
}

void RunView::take_event(const EventRow& event) {
  const auto add = [&](Level level, Mark::Kind kind, const std::string& what, LogLine::Place place = LogLine::after) {
    add_mark(marks, {event.step, kind, what});
    add_log(level, event.step, what, place);
  };
  if (event.kind == StartEvent::kind) {
    const auto start = read_event<StartEvent>(event.body);
    parent = start.parent.value_or("");
    begins_late_ = start.late.value_or(false);
    const auto step = static_cast<double>(start.fork_step.value_or(0));
    add(Level::info, Mark::segment, parent.empty() ? "the run starts" : "forked from " + parent + " at step " + count(step));
  } else if (event.kind == ResumeEvent::kind) {
    const std::string kept = read_event<ResumeEvent>(event.body).replaced.value_or("");
    if (!kept.empty()) replaced.push_back({event.step, kept});
    add(Level::info, Mark::segment,
        "resumed after step " + count(static_cast<double>(event.step)) + (kept.empty() ? "" : "; the later steps are kept as " + kept));
  } else if (event.kind == EditEvent::kind) {
    const auto told = read_event<EditEvent>(event.body);
    const Edit edit{event.step, current_path(told.path), told.value};
    const size_t at = edits_until(edit.step);
    edits_changed_ = edits_changed_ || at < edits_in_force_;
    edits.insert(edits.begin() + static_cast<std::ptrdiff_t>(at), edit);
    // A cap, lock or weight has no old value before its first edit.
    const std::string old = !told.before ? "" : told.before->is_string() ? told.before->get<std::string>() : told.before->dump();
    add(Level::info, Mark::edit, edit.path + (told.before && old != edit.value ? ": " + old + " -> " : " = ") + edit.value,
        LogLine::before);
  } else if (event.kind == StageEvent::kind) {
    const auto stage = read_event<StageEvent>(event.body);
    const bool early = stage.stage == "early";
    if (stage.stays) {
      add_log(Level::info, event.step, std::string("the stage switch was undone: the stage stays ") + (early ? "early" : "late"),
              LogLine::before);
      return;
    }
    add_mark(marks, {event.step, early ? Mark::early_stage : Mark::late_stage, early ? "early stage again" : "late stage"});
    if (early) {
      add_switch({event.step, false, 0});
      add_log(Level::info, event.step, "early stage again (" + stage.reason + "): gentle rank penalty", LogLine::before);
      return;
    }
    add_switch({event.step, true, std::max(0.0, stage.entries.value_or(0))});
    add_log(Level::good, event.step, "late stage (" + stage.reason + "): to size and loss targets", LogLine::before);
  } else if (event.kind == CheckpointEvent::kind) {
    add(Level::info, Mark::checkpoint, "checkpoint written");
  } else if (event.kind == TruncationEvent::kind) {
    const auto cut = read_event<TruncationEvent>(event.body);
    add(Level::good, Mark::cut,
        "pruned: " + count(static_cast<double>(cut.entries_before)) + " -> " + count(static_cast<double>(cut.entries_after)) + " entries");
  } else if (event.kind == RegrowthEvent::kind) {
    const auto growth = read_event<RegrowthEvent>(event.body);
    add(Level::good, Mark::growth, "ranks grew: " + count(growth.live_before) + " -> " + count(growth.live_after) + " live entries",
        LogLine::before);
  } else if (event.kind == "profile") {
    profiles.push_back(StepProfile::read(event.body, event.step));
    add_log(Level::info, event.step, counted(profiles.back().steps, "step") + " profiled");
  } else if (event.kind == AlertEvent::kind) {
    add(Level::warning, Mark::alert, alert_text(event));
  } else {
    add_log(Level::info, event.step, event.kind);
  }
}

void RunView::take_ranks(const std::vector<RankRow>& rows) {
  for (size_t i = 0; i < rows.size();) {  // one step at a time
    const int64_t step = rows[i].step;
    const auto x = static_cast<double>(step);
    int64_t fell = 0, bonds = 0;
    std::string which;  // names of the first bonds
    for (; i < rows.size() && rows[i].step == step; ++i) {
      const RankRow& row = rows[i];
      Curve& ranks = bond_ranks[{row.layer, row.bond}];
      if (!ranks.empty()) {
        const auto before = static_cast<int64_t>(ranks.last());
        fell += before - row.rank;
        if (before > row.rank) drops.push_back({step, row.layer, row.bond, before, row.rank});
        if (before > row.rank && ++bonds <= kDropsNamed)
          which += (which.empty() ? "" : ", ") + row.layer + " bond " + std::to_string(row.bond) + ": " + std::to_string(before) + " -> " +
                   std::to_string(row.rank);
        if (before == row.rank) continue;
      }
      ranks.append(x, static_cast<double>(row.rank));
    }
    if (fell <= 0) continue;
    double all = 0;
    for (const auto& [bond, ranks] : bond_ranks) all += ranks.last();
    rank_drops.append(x, static_cast<double>(fell));
    if (bonds > kDropsNamed) which += ", " + std::to_string(bonds - kDropsNamed) + " more";
    const std::string sum = "sum " + count(all);
    add_log(Level::info, step,
            bonds == 1 ? which + ", " + sum : "ranks fell by " + count(static_cast<double>(fell)) + ", " + sum + ": " + which,
            LogLine::ranks);
  }
}

// The run was resumed from an earlier step: drops all later data.
void RunView::take_back(int64_t after_step) {
  const auto last = static_cast<double>(after_step);
  for (auto& [name, curve] : metrics) curve.cut_after(last);
  for (Curve& curve : memory) curve.cut_after(last);
  for (auto& [bond, curve] : bond_ranks) curve.cut_after(last);
  std::erase_if(bond_ranks, [](const auto& of) { return of.second.empty(); });
  rank_drops.cut_after(last);
  wall.cut_after(last);
  const auto later = [&](const auto& what) { return what.step > after_step; };
  std::erase_if(marks, later);
  std::erase_if(log, later);
  std::erase_if(profiles, later);
  std::erase_if(replaced, later);
  std::erase_if(drops, later);
  edits_changed_ = std::erase_if(edits, later) > 0 || edits_changed_;
  std::erase_if(stages_, later);
}

std::string alert_text(const EventRow& event) {
  const auto alert = read_event<AlertEvent>(event.body);
  if (const std::string said = alert.text.value_or(""); !said.empty()) return said;
  if (alert.what != "diverged") return alert.what;
  const std::string loss = alert.loss == "nan" ? "NaN" : alert.loss.value_or(""), tensor = alert.tensor.value_or("");
  return "the loss is " + loss + (tensor.empty() ? "" : ", first bad values in " + tensor);
}

bool has_ended(Phase phase) {
  return phase == Phase::finished || phase == Phase::stopped || phase == Phase::interrupted || phase == Phase::failed ||
         phase == Phase::diverged;
}

}  // namespace comera::studio
