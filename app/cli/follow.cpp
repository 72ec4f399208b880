#include "app/cli/follow.h"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

namespace comera::cli {
namespace {

volatile std::sig_atomic_t g_signals = 0;
volatile std::sig_atomic_t g_signal = 0;

extern "C" void on_signal(int number) {
  g_signal = number;
  g_signals = g_signals + 1;
  if (g_signals > 1) std::_Exit(128 + number);  // second signal: quit at once; the store marks the run as interrupted
}

// After a signal the run has `grace` seconds to write its last checkpoint. If it takes longer (a disk that hangs), the program exits
// without waiting for the trainer's thread; the store marks the run as interrupted.
[[noreturn]] void give_up(const Context& context, const Snapshot& last, double grace) {
  const std::string run = last.run.empty() ? "the run" : "run " + last.run;
  const int code = 128 + g_signal;
  report(context, code, run + " did not end within " + significant(grace, 3) + " s of the signal",
         last.saving.step >= 0 ? "the checkpoint of step " + std::to_string(last.saving.step) + " is still being written"
                               : "step " + std::to_string(last.step + 1) + " is still being computed",
         last.run.empty() ? "wait longer: --grace 300"
         : last.last_checkpoint_step >= 0
             ? "comera resume " + last.run + " continues from step " + std::to_string(last.last_checkpoint_step)
             : "comera resume " + last.run + " continues from its last checkpoint; wait longer with --grace 300");
  std::cerr << std::flush;
  std::_Exit(code);
}

}  // namespace

void catch_signals() {
  g_signals = 0;
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}

int signal_code() { return g_signals > 0 ? 128 + g_signal : 0; }

std::shared_ptr<const Snapshot> follow_session(const Context& context, SessionStart start, Progress& progress, const Following& following) {
  Session session(std::move(start));
  std::optional<std::chrono::steady_clock::time_point> stopping;  // time of the first signal
  bool ended = false, told_replaced = false;
  while (!ended) {
    ended = session.wait(following.poll_s);
    if (g_signals > 0 && !stopping) {
      stopping = std::chrono::steady_clock::now();
      note(context, "\nStopping after this step and writing a checkpoint. Ctrl-C again quits at once");
      session.post(StopCommand{true});
    }
    const auto snapshot = session.latest();
    const Records records = session.drain();
    if (following.on_records) following.on_records(records);
    if (!snapshot->replaced.empty() && !std::exchange(told_replaced, true))
      note(context, "the later steps are kept as run " + snapshot->replaced);
    progress.show(*snapshot, ended);
    if (stopping && !ended && std::chrono::duration<double>(std::chrono::steady_clock::now() - *stopping).count() > following.grace) {
      if (following.before_exit) following.before_exit();
      give_up(context, *snapshot, following.grace);
    }
  }
  session.join();
  return session.latest();
}

void check_result(const Context& context, const Snapshot& last) {
  if (last.error_code == 0) return;
  if (!last.run.empty() && !context.json)
    note(context, "run " + last.run + " is stored as '" + name_of(last.phase) + "' at step " + std::to_string(last.step));
  throw Error(static_cast<ErrorCode>(last.error_code), last.message, last.error_why, last.error_hint);
}

Error not_saved(const Snapshot& last) {
  return {ErrorCode::storage, "the run was not saved completely", last.store_problem,
          "make the store writable again, for example by freeing disk space: the next command on it merges the rows and checkpoints that "
          "are kept elsewhere"};
}

}  // namespace comera::cli
