#include "core/session/session.h"

#include <chrono>

#include "core/base/error.h"
#include "core/session/runner.h"

namespace comera {

Session::Session(SessionStart start) : latest_(std::make_shared<const Snapshot>()), most_waiting_(start.most_waiting) {
  thread_ = std::jthread([this, start = std::move(start)]() mutable { run(std::move(start)); });
}

Session::~Session() {
  try {
    post(StopCommand{true});
  } catch (...) {  // no memory for the command: the join below still ends with the run
  }
  join();
}

void Session::join() {
  if (thread_.joinable()) thread_.join();
}

Ticket Session::post(Command command) {
  const std::lock_guard lock(mutex_);
  commands_.emplace_back(next_ticket_, std::move(command));
  wake_.notify_all();
  return next_ticket_++;
}

std::shared_ptr<const Snapshot> Session::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

Records Session::drain() {
  const std::lock_guard lock(mutex_);
  return std::exchange(records_, {});
}

bool Session::wait(double seconds) {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return has_ended_; });
}

// ---- the trainer's thread --------------------------------------------------------------------------------------

std::deque<std::pair<Ticket, Command>> Session::take_commands(double wait_seconds) {
  std::unique_lock lock(mutex_);
  if (commands_.empty() && wait_seconds > 0)
    wake_.wait_for(lock, std::chrono::duration<double>(wait_seconds), [&] { return !commands_.empty(); });
  return std::exchange(commands_, {});
}

void Session::publish(std::shared_ptr<const Snapshot> snapshot, Records records) {
  const std::lock_guard lock(mutex_);
  latest_ = std::move(snapshot);
  records_.append(std::move(records));
  if (records_.points() > most_waiting_) records_.leave_out_metrics();
}

void Session::run(SessionStart start) {
  {
    Runner runner(*this, std::move(start));
    runner.run();  // never throws: what goes wrong is in the last snapshot
  }
  const std::lock_guard lock(mutex_);
  has_ended_ = true;
  ended_.notify_all();
}

}  // namespace comera
