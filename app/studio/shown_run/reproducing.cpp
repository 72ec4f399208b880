#include "app/studio/shown_run/reproducing.h"

#include <algorithm>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/shown_run/timeline.h"
#include "core/base/error.h"

namespace comera::studio {
namespace {

std::string count(int64_t value) { return thousands(static_cast<double>(value)); }

void begin(UiState& ui, ReproduceQuestion question) {
  if (no_reproducing(ui)) return;
  ui.reproducing = std::make_unique<Reproducing>(std::move(question), ui.wake);
}

}  // namespace

Reproducing::Reproducing(ReproduceQuestion question, std::function<void()> wake)
    : question_(std::move(question)), wake_(std::move(wake)), thread_([this] { work(); }) {}

Reproducing::~Reproducing() { give_up(); }

std::optional<Reproducing::Answer> Reproducing::answer() const {
  const std::lock_guard lock(mutex_);
  return answer_;
}

void Reproducing::work() {
  Answer answer;
  try {
    const auto told = [this](int64_t step, int64_t) {
      at_ = step;
      return !given_up_;
    };
    answer.found = reproduce_run(question_.store, question_.run, told, {.after = question_.first - 1, .last = question_.last});
  } catch (const Error& error) {
    answer.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()) +
                     (error.hint().empty() ? "" : ". Try: " + error.hint());
  } catch (const std::exception& error) {
    answer.problem = error.what();
  }
  answer.given_up = given_up_;
  {
    const std::lock_guard lock(mutex_);
    answer_ = std::move(answer);
  }
  if (wake_) wake_();
}

std::string Reproducing::text_of(const ReproduceQuestion& question, const Answer& answer) {
  const Reproduction& found = answer.found;
  const std::string what = question.name + ", steps " + count(found.from + 1) + " to ";
  if (!answer.problem.empty()) return question.name + " was not reproduced: " + answer.problem;
  if (!found.identical) {
    char values[96] = "";
    if (found.stored != found.computed) std::snprintf(values, sizeof values, " was %.9g, is %.9g", found.stored, found.computed);
    return what + count(found.step) + " reproduced: different. At step " + count(found.step) + " " + found.what + values;
  }
  return what + count(found.from + found.steps) + " reproduced: identical, " + count(found.values) + " stored values" +
         (found.weights_compared ? " and the checkpoint, byte for byte" : "") + (answer.given_up ? "; then stopped" : "");
}

ReproduceQuestion steps_to_reproduce(const UiState& ui) {
  const RunView& view = ui.shown();
  ReproduceQuestion out{.store = view.store, .run = view.snapshot->run, .name = view.snapshot->name};
  if (ui.timeline.selection.any()) {
    out.first = ui.timeline.selection.first;
    out.last = ui.timeline.selection.last;
    return out;
  }
  out.last = cursor_step(ui);
  // Starts at the last checkpoint before the cursor.
  out.first = first_step(view);
  for (const Mark& mark : view.marks)
    if (mark.kind == Mark::checkpoint && mark.step < out.last) out.first = std::max(out.first, mark.step + 1);
  return out;
}

const char* no_reproducing(const UiState& ui) {
  const RunView& view = ui.shown();
  if (!ui.has_run() || view.snapshot->step == 0) return "No steps yet";
  if (ui.reproducing) return "A reproduction is already running";
  if (view.store.empty() || view.snapshot->run.empty()) return "This run is not stored";
  if (!view.config_problem.empty()) return "The settings of this run cannot be read";
  if (view.live && !view.ended() && !ui.replaying() && !ui.timeline.selection.any())
    return "The newest steps are not stored yet: move the cursor back, or select steps";
  return nullptr;
}

void reproduce_shown(UiState& ui) { begin(ui, steps_to_reproduce(ui)); }

void reproduce_whole(UiState& ui) {
  ReproduceQuestion question = steps_to_reproduce(ui);
  question.first = 1;
  question.last = ui.shown().snapshot->step;
  begin(ui, std::move(question));
}

void tick_reproducing(UiState& ui) {
  if (!ui.reproducing) return;
  const auto answer = ui.reproducing->answer();
  if (!answer) return;
  const bool good = answer->problem.empty() && answer->found.identical;
  if (!(answer->given_up && good && answer->found.steps == 0))
    add_toast(ui, {good ? Level::good : Level::warning, Reproducing::text_of(ui.reproducing->question(), *answer), kUntilDismissed,
                   "reproduced"});
  if (!good) ui.window_log.push_back({Level::warning, -1, Reproducing::text_of(ui.reproducing->question(), *answer)});
  ui.reproducing.reset();  // its thread has ended
}

}  // namespace comera::studio
