#include "app/studio/timeline.h"

#include <algorithm>
#include <cmath>

namespace comera::studio {
namespace {

constexpr double kLowestSpeed = 0.25, kHighestSpeed = 64;
constexpr double kLongestStep = 5, kUnknownStep = 0.1;  // seconds

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
  ui.load_request = ui.store->load(ui.shown().snapshot->run);
  ui.load_for = LoadFor::past;
}

double seconds_of(const RunView& view, int64_t step) {
  const double seconds = view.metric("step_ms").at(static_cast<double>(step)) / 1000;
  return std::isfinite(seconds) && seconds > 0 ? std::min(seconds, kLongestStep) : kUnknownStep;
}

// The recorded step that many further on; beyond what is read, steps are counted.
int64_t step_from(const UiState& ui, int64_t step, int64_t by) {
  if (!has(ui.timeline, step)) return step + by;
  const std::vector<int64_t>& steps = ui.timeline.replay->steps();
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
  if (view.snapshot->step <= first_step(view)) return "There is no past yet";
  if (!ui.timeline.replay && (!ui.store || view.snapshot->run.empty() || (view.live && ui.store_path.empty())))
    return "This run is not stored, so its past is not kept";
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
  if (!t.playing && !t.snapshot) seek(ui, first_step(ui.shown()));  // from the start when it is at the end
  t.playing = !t.playing;
  t.time = 0;
}

void change_speed(UiState& ui, double factor) {
  ui.timeline.speed = factor == 0 ? 1 : std::clamp(ui.timeline.speed * factor, kLowestSpeed, kHighestSpeed);
}

void reset_timeline(UiState& ui) {
  Timeline& t = ui.timeline;
  Timeline fresh;
  fresh.view = &ui.shown();
  fresh.loop = t.loop;
  fresh.speed = t.speed;
  t = std::move(fresh);
  ui.plots.follow = true;
  ui.plots.smoothed.clear();
}

void take_past(UiState& ui, std::shared_ptr<Replay> replay) {
  Timeline& t = ui.timeline;
  if (!replay || replay->row().id != ui.shown().snapshot->run) return;
  t.replay = std::move(replay);
  const int64_t wanted = std::exchange(t.wanted, -1);
  if (wanted >= 0) show(ui, wanted);  // or the last step that is stored by now
}

void advance_timeline(UiState& ui, double seconds) {
  Timeline& t = ui.timeline;
  const RunView& view = ui.shown();
  if (t.view != &view) reset_timeline(ui);
  if (!t.playing || t.wanted >= 0) return;
  t.time += std::min(seconds, 0.25) * t.speed;  // a window that was hidden does not jump
  const int64_t begin = cursor_step(ui), end = view.snapshot->step;
  int64_t step = begin;
  while (step < end) {
    const int64_t next = step_from(ui, step, 1);
    const double takes = seconds_of(view, next);
    if (t.time < takes) break;
    t.time -= takes;
    step = next;
  }
  if (step >= end)
    t.loop ? seek(ui, first_step(view)) : follow_run(ui);
  else if (step != begin)
    seek(ui, step);
}

}  // namespace comera::studio
