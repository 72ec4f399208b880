#include "app/studio/run_queue.h"

#include "app/studio/actions.h"
#include "core/base/error.h"

namespace comera::studio {
namespace {

QueueState look_without_throwing(const QueueOrder& order) {
  QueueState state{.runs = order.runs, .compare = {}, .problem = {}};
  try {
    return order.look();
  } catch (const Error& error) {
    state.problem = std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()) +
                    (error.hint().empty() ? "" : ". Try: " + error.hint());
  } catch (const std::exception& error) {
    state.problem = error.what();
  }
  return state;
}

void end_queue(UiState& ui, Level level, const std::string& text) {
  toast(ui, level, text);
  ui.queue.reset();
}

void stopped(UiState& ui, Level level = Level::info) {
  const std::string& noun = ui.queue->order.noun;
  end_queue(ui, level,
            "The " + noun + " has stopped at " + queue_progress(*ui.queue) + ". Start the same " + noun + " again to train the rest");
}

void ask(RunQueue& queue) {
  queue.training = false;
  queue.load = 0;
  queue.number = queue.looker.ask({});
}

void finish(UiState& ui) {
  const std::string noun = ui.queue->order.noun, text = "The " + noun + " has finished";
  const std::vector<std::string> runs = ui.queue->state.compare;
  const bool here = ui.store && ui.store->path() == ui.queue->order.store;
  const bool watched = !ui.queue->tried.empty() && ui.layout == "train" && !ui.show_stored;
  const bool asked = ui.queue->tried.empty();  // nothing was left to train
  const auto compare = [runs, then = ui.queue->order.compare](UiState& state) {
    compare_runs(state, runs);
    if (then) then(state);
  };
  ui.queue.reset();
  if (!here || runs.size() < 2) return toast(ui, Level::good, text);
  if (watched || asked) return compare(ui);
  Toast done{Level::good, text, kUntilDismissed, noun};
  done.offers = {{"Compare", compare}, {"Dismiss", {}}};
  add_toast(ui, std::move(done));
}

// Trains the first run that is neither over nor was started here. The page stays but for the first one.
void train_next(UiState& ui) {
  RunQueue& queue = *ui.queue;
  const std::vector<QueuedRun>& runs = queue.state.runs;
  for (queue.at = 0; queue.at < runs.size() && (runs[queue.at].over || queue.tried.contains(queue.at));) ++queue.at;
  if (queue.at == runs.size()) return finish(ui);
  const bool behind = !queue.tried.empty();
  const QueuedRun& run = runs[queue.at];
  queue.tried.insert(queue.at);
  if (!run.stored.empty()) {
    const uint64_t before = ui.load_request;
    resume_run(ui, run.stored, {.store = queue.order.store, .behind = behind});
    if (ui.load_request == before) return stopped(ui, Level::warning);
    queue.load = ui.load_request;
    return;
  }
  SessionStart session;
  session.store = queue.order.store;
  session.config = run.config;
  session.folder.path = queue.order.folder;
  session.tags = queue.order.tags;
  if (!start_run(ui, std::move(session), behind)) return stopped(ui, Level::warning);
  queue.live = ui.live.get();
  queue.training = true;
}

// A run that diverges or finds no memory is a result; every other failure ends the queue, as does a stop.
void take_end(UiState& ui) {
  const Snapshot& s = *ui.live->view().snapshot;
  const bool result = s.phase == Phase::finished || s.phase == Phase::diverged ||
                      (s.phase == Phase::failed && s.error_code == static_cast<int>(ErrorCode::memory));
  if (ui.queue->stopping || !result || !s.store_problem.empty())
    return stopped(ui, s.phase == Phase::stopped ? Level::info : Level::warning);
  ask(*ui.queue);
}

}  // namespace

RunQueue::RunQueue(QueueOrder wanted, std::function<void()> wake)
    : order(std::move(wanted)), looker([of = order](const Look&) { return look_without_throwing(of); }, std::move(wake)) {
  state.runs = order.runs;
}

void start_queue(UiState& ui, QueueOrder order) {
  ui.queue = std::make_unique<RunQueue>(std::move(order), ui.wake);
  ui.queue->live = ui.live.get();
  ask(*ui.queue);
}

void stop_queue(UiState& ui) {
  if (!ui.queue) return;
  ui.queue->stopping = true;
  if (ui.queue->training && ui.live.get() == ui.queue->live && !ui.live->view().ended() && !ui.live->stopping()) ui.live->stop(true);
}

std::string queue_progress(const RunQueue& queue) {
  const std::vector<QueuedRun>& runs = queue.state.runs;
  const std::string count = std::to_string(runs.size());
  if (queue.at >= runs.size()) return count + " of " + count;
  return std::to_string(queue.at + 1) + " of " + count + ": " + runs[queue.at].title;
}

bool trains_queue(const UiState& ui, const std::string& noun) { return ui.queue && ui.queue->order.noun == noun; }

void tick_queue(UiState& ui) {
  if (!ui.queue) return;
  RunQueue& queue = *ui.queue;
  if (queue.load != 0) {
    if (ui.load_request == queue.load) return;
    if (!ui.live || ui.live.get() == queue.live || ui.live->run() != queue.state.runs[queue.at].stored) return stopped(ui, Level::warning);
    queue.load = 0;
    queue.live = ui.live.get();
    queue.training = true;
  }
  if (ui.live.get() != queue.live) return stopped(ui);  // the user has started another run
  if (queue.training) {
    if (ui.live->view().ended() && ui.live->ended()) take_end(ui);
    return;
  }
  const auto answer = queue.looker.latest();
  if (!answer || answer->number != queue.number) return;
  if (queue.stopping) return stopped(ui);
  if (!answer->answer.problem.empty())
    return end_queue(ui, Level::error, "The " + queue.order.noun + " cannot be trained: " + answer->answer.problem);
  if (ui.close_requested || !ui.ending.empty()) return;  // an earlier run still writes its checkpoint
  queue.state = answer->answer;
  train_next(ui);
}

}  // namespace comera::studio
