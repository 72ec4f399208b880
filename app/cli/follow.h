// Follows a session to its end: progress view, signals, the last checkpoint. Shared by all verbs that train.
#pragma once
#include <functional>
#include <memory>

#include "app/cli/progress.h"
#include "core/session/session.h"

namespace comera::cli {

// From now on the first SIGINT or SIGTERM stops the session that is followed, with a checkpoint; the second one ends the program at once.
// Forgets earlier signals.
void catch_signals();
// 128 + the number of the signal that came since then; 0 = none did.
int signal_code();

struct Following {
  double grace = 30;     // seconds that the run has after a signal to write its last checkpoint
  double poll_s = 0.25;  // seconds between two looks at the session
  std::function<void(const Records&)> on_records = {};
  std::function<void()> before_exit = {};  // called where the program ends without waiting for the session
};
// Returns the last snapshot, also of a run that failed. After a signal and the grace it does not return: the program ends with
// signal_code().
std::shared_ptr<const Snapshot> follow_session(const Context& context, SessionStart start, Progress& progress, const Following& following);

// Throws the error that ended the run, if one did.
void check_result(const Context& context, const Snapshot& last);
// For a run that was trained but not stored completely.
Error not_saved(const Snapshot& last);

}  // namespace comera::cli
