#include "app/studio/shown_run/timeline.h"

#include <algorithm>
#include <cmath>

namespace comera::studio {
namespace {

constexpr double kLowestSpeed = 0.25, kHighestSpeed = 64;
constexpr size_t kClockedAFrame = 500'000;  // takes some milliseconds of one core

bool has(const Timeline& timeline, int64_t step) {
  return timeline.replay && !timeline.replay->steps().empty() && step <= timeline.replay->steps().back();
}

void show(UiState& ui, int64_t step) {
  Timeline& t = ui.timeline;
  if (!t.replay || t.replay->steps().empty()) return;
  const RunView& view = ui.shown();
  const size_t edits = t.snapshot ? view.edits_until(t.snapshot->step) : SIZE_MAX;
  t.replay->seek(step);
  t.snapshot = t.replay->latest();
  if (edits != view.edits_until(t.snapshot->step)) t.config = view.config_at(t.snapshot->step);
}

void read_past(UiState& ui) {
  if (ui.load_request != 0 || no_past(ui)) return;
  ui.load_request = ui.store->load(ui.shown().snapshot->run, ui.shown().store);
  ui.load_for = LoadFor::past;
}

// The recorded step `by` steps further on; beyond the last recorded step, counts steps.
int64_t step_from(const UiState& ui, int64_t step, int64_t by) {
  if (!has(ui.timeline, step)) return step + by;
  const Rising<int64_t>& steps = ui.timeline.replay->steps();
  const auto at = std::upper_bound(steps.begin(), steps.end(), step) - steps.begin() - 1 + by;
  const auto last = static_cast<int64_t>(steps.size()) - 1;
  return at <= last ? steps[static_cast<size_t>(std::max<int64_t>(0, at))] : steps.back() + at - last;
}

}  // namespace

int64_t cursor_step(const UiState& ui) {
  const Timeline& t = ui.timeline;
  return t.wanted >= 0 ? t.wanted : t.snapshot ? t.snapshot->step : ui.shown().snapshot->step;
}

int64_t first_step(const RunView& view) {
  const Curve& loss = view.metric("train_loss");
  return loss.empty() ? 0 : static_cast<int64_t>(loss.x().front());
}

const char* no_past(const UiState& ui) {
  const RunView& view = ui.shown();
  if (!ui.has_run()) return "No run yet: start one first";
  if (view.snapshot->step <= first_step(view)) return "There are no past steps yet";
  if (!ui.timeline.replay && (!ui.store || view.snapshot->run.empty() || view.store.empty()))
    return "This run is not stored: past steps are not available";
  return nullptr;
}

void seek(UiState& ui, int64_t step) {
  Timeline& t = ui.timeline;
  const RunView& view = ui.shown();
  if (no_past(ui)) return;
  if (step >= view.snapshot->step) return follow_run(ui);
  step = std::max(step, first_step(view));
  t.wanted = -1;
  if (!has(t, step)) {
    t.wanted = step;
    read_past(ui);
  }
  show(ui, step);
}

void follow_run(UiState& ui) {
  ui.timeline.snapshot = nullptr;
  ui.timeline.wanted = -1;
  ui.timeline.playing = false;
}

void move_cursor(UiState& ui, int64_t recorded_steps) { seek(ui, step_from(ui, cursor_step(ui), recorded_steps)); }

void seek_mark(UiState& ui, int direction, bool only_checkpoints) {
  const RunView& view = ui.shown();
  const int64_t at = cursor_step(ui);
  int64_t to = direction > 0 ? INT64_MAX : INT64_MIN;
  for (const Mark& mark : view.marks) {
    if (only_checkpoints && mark.kind != Mark::checkpoint) continue;
    if (direction > 0 && mark.step > at) to = std::min(to, mark.step);
    if (direction < 0 && mark.step < at) to = std::max(to, mark.step);
  }
  seek(ui, to);
}

void toggle_play(UiState& ui) {
  Timeline& t = ui.timeline;
  if (no_past(ui)) return;
  if (!t.playing && t.loop == Loop::selection && !t.selection.has(cursor_step(ui))) seek(ui, t.selection.first);
  if (!t.playing && !t.snapshot && t.wanted < 0) seek(ui, first_step(ui.shown()));  // at the end: restart
  t.playing = !t.playing;
  t.time = 0;
}

void play_from_start(UiState& ui) {
  constexpr double kSeconds = 60;
  if (no_past(ui)) return;
  seek(ui, first_step(ui.shown()));
  const double times = std::max(1e-9, ui.shown().snapshot->elapsed_s / kSeconds);
  ui.timeline.speed = std::clamp(std::exp2(std::round(std::log2(times))), kLowestSpeed, kHighestSpeed);
  ui.timeline.playing = ui.replaying();
}

void change_speed(UiState& ui, double factor) {
  ui.timeline.speed = factor == 0 ? 1 : std::clamp(ui.timeline.speed * factor, kLowestSpeed, kHighestSpeed);
}

void next_loop(UiState& ui) {
  Timeline& t = ui.timeline;
  t.loop = t.loop == Loop::off ? Loop::all : t.loop == Loop::all && t.selection.any() ? Loop::selection : Loop::off;
}

void select_steps(UiState& ui, int64_t from, int64_t to) {
  const int64_t first = first_step(ui.shown()), last = std::max(first, ui.shown().snapshot->step);
  ui.timeline.selection = {std::clamp(std::min(from, to), first, last), std::clamp(std::max(from, to), first, last)};
}

void select_from(UiState& ui) {
  const StepRange& selected = ui.timeline.selection;
  const int64_t at = cursor_step(ui);
  if (!no_past(ui)) select_steps(ui, at, selected.any() && selected.last > at ? selected.last : INT64_MAX);
}

void select_to(UiState& ui) {
  const StepRange& selected = ui.timeline.selection;
  const int64_t at = cursor_step(ui);
  if (!no_past(ui)) select_steps(ui, selected.any() && selected.first < at ? selected.first : first_step(ui.shown()), at);
}

void drop_selection(UiState& ui) {
  ui.timeline.selection = {};
  if (ui.timeline.loop == Loop::selection) ui.timeline.loop = Loop::off;
}

RangeSummary summarise(const RunView& view, const PlayClock& clock, StepRange range) {
  RangeSummary out{.range = range};
  const auto low = static_cast<double>(range.first), high = static_cast<double>(range.last);
  const auto within = [&](const Curve& curve) {
    const auto begin = std::lower_bound(curve.x().begin(), curve.x().end(), low) - curve.x().begin();
    const auto end = std::upper_bound(curve.x().begin(), curve.x().end(), high) - curve.x().begin();
    return std::pair(static_cast<size_t>(begin), static_cast<size_t>(end));
  };
  const Curve& loss = view.metric("train_loss");
  const auto [begin, end] = within(loss);
  out.steps = static_cast<int64_t>(end - begin);
  double sum = 0;
  int64_t finite = 0;
  out.loss_first = out.loss_last = out.loss_mean = out.loss_low = out.loss_high = NAN;
  for (size_t i = begin; i < end; ++i) {
    const double value = loss.y()[i];
    if (!std::isfinite(value)) continue;
    if (finite++ == 0) out.loss_first = out.loss_low = out.loss_high = value;
    out.loss_last = value;
    out.loss_low = std::min(out.loss_low, value);
    out.loss_high = std::max(out.loss_high, value);
    sum += value;
  }
  if (finite > 0) out.loss_mean = sum / static_cast<double>(finite);
  out.seconds = clock.between(low, high);
  const auto [drop, last_drop] = within(view.rank_drops);
  for (size_t i = drop; i < last_drop; ++i) out.ranks_fell += view.rank_drops.y()[i];
  for (const Mark& mark : view.marks) {
    if (!range.has(mark.step)) continue;
    out.checkpoints += mark.kind == Mark::checkpoint;
    out.edits += mark.kind == Mark::edit;
    out.alerts += mark.kind == Mark::alert;
  }
  return out;
}

const RangeSummary& selection_summary(UiState& ui) {
  Timeline& t = ui.timeline;
  const RunView& view = ui.shown();
  const Curve& loss = view.metric("train_loss");
  // Points and events are only appended, except at a resume from an earlier step.
  const size_t points = (loss.empty() || loss.x().back() < static_cast<double>(t.selection.last) ? loss.size() : 0) + view.marks.size();
  if (t.summary.range.first != t.selection.first || t.summary.range.last != t.selection.last || points != t.summary_points ||
      loss.rewrites() != t.summary_rewrites) {
    t.summary = summarise(view, t.clock, t.selection);
    t.summary_points = points;
    t.summary_rewrites = loss.rewrites();
  }
  return t.summary;
}

void reset_timeline(UiState& ui) {
  Timeline& t = ui.timeline;
  Timeline fresh;
  fresh.view = &ui.shown();
  fresh.loop = t.loop == Loop::selection ? Loop::off : t.loop;
  fresh.by_time = t.by_time;
  fresh.speed = t.speed;
  t = std::move(fresh);
  ui.plots.follow = true;
  ui.plots.forget_curves();
}

void take_past(UiState& ui, std::shared_ptr<Replay> replay) {
  Timeline& t = ui.timeline;
  if (!replay || replay->row().id != ui.shown().snapshot->run) return;
  t.replay = std::move(replay);
  const int64_t wanted = std::exchange(t.wanted, -1);
  if (wanted >= 0) show(ui, wanted);  // or the last step stored so far
}

bool take_more(UiState& ui, RunRows rows) {
  Timeline& t = ui.timeline;
  const int64_t at = ui.replaying() || t.wanted >= 0 ? cursor_step(ui) : -1;
  if (!t.replay || !append(*ui.stored, *t.replay, std::move(rows))) return false;
  if (at >= 0) seek(ui, at);  // the step may have new values, such as an evaluation
  return true;
}

void take_again(UiState& ui, std::shared_ptr<RunView> view, std::shared_ptr<Replay> replay) {
  Timeline& t = ui.timeline;
  const int64_t at = ui.replaying() ? cursor_step(ui) : -1;
  const StepRange selection = t.selection;
  const bool playing = t.playing, same_diagram = ui.tt.view == &ui.shown();
  ui.stored = std::move(view);
  if (same_diagram) ui.tt.view = &ui.shown();
  ui.plots.forget_curves();
  t.view = &ui.shown();
  t.replay = std::move(replay);
  t.clock = {};
  t.summary = {};
  follow_run(ui);
  if (at >= 0) seek(ui, at);
  t.playing = playing && ui.replaying();
  if (selection.any()) select_steps(ui, selection.first, selection.last);
}

void advance_timeline(UiState& ui, double seconds) {
  Timeline& t = ui.timeline;
  const RunView& view = ui.shown();
  if (t.view != &view) reset_timeline(ui);
  t.clock_left = !t.clock.update(view.wall, view.metric("step_ms"), kClockedAFrame);
  if (!t.playing || t.wanted >= 0) return;
  const bool within = t.loop == Loop::selection && t.selection.any();
  if (within && !t.selection.has(cursor_step(ui))) return seek(ui, t.selection.first);
  t.time += std::min(seconds, 0.25) * t.speed;  // limits the jump after the window was hidden
  const int64_t begin = cursor_step(ui), end = within ? t.selection.last : view.snapshot->step;
  int64_t step = begin;
  while (step < end) {
    const int64_t next = step_from(ui, step, 1);
    const double takes = t.clock.between(static_cast<double>(step), static_cast<double>(next));
    if (t.time < takes) break;
    t.time -= takes;
    step = next;
  }
  if (step >= end && t.loop != Loop::off)
    seek(ui, within ? t.selection.first : first_step(view));
  else if (step >= end)
    follow_run(ui);
  else if (step != begin)
    seek(ui, step);
}

}  // namespace comera::studio
