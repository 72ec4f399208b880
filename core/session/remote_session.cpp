#include "core/session/remote_session.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/session/session_socket.h"
#include "core/session/wire.h"

namespace comera {
namespace {

constexpr int kLookMs = 20;  // between two looks: a frame of the window

}  // namespace

// ---- the program with the session ----------------------------------------------------------------------------------

void serve_session(SessionSocket socket, std::shared_ptr<Communicator> others, const std::function<bool()>& interrupted) {
  constexpr int kStartMs = 60'000;  // the other end sends it at once
  const std::optional<Json> begin = socket.receive(kStartMs);
  if (!begin) throw Error(ErrorCode::storage, "no start of a session came");
  SessionStart start = start_of_wire(*begin);
  start.others = std::move(others);
  Session session(std::move(start));
  std::shared_ptr<const Snapshot> shown;
  bool ended = false, watched = true, stopped = false;
  while (!ended) {
    std::optional<Json> message;
    try {
      if (watched) message = socket.receive(kLookMs);
    } catch (const Error&) {
      watched = false;
    }
    if (message) session.post(command_of_wire(*message));
    if ((!watched || interrupted()) && !std::exchange(stopped, true)) session.post(StopCommand{true});
    ended = session.wait(watched ? 0 : 0.1);
    const std::shared_ptr<const Snapshot> latest = session.latest();
    if (!watched || (latest == shown && !ended)) continue;
    shown = latest;
    try {
      socket.send({{"snapshot", wire_snapshot(*latest)}, {"records", wire_records(session.drain())}, {"ended", ended}});
    } catch (const Error&) {
      watched = false;
    }
  }
}

// ---- the program that watches it -----------------------------------------------------------------------------------

RemoteSession::RemoteSession(SessionStart start, Open open)
    : latest_(std::make_shared<const Snapshot>()), most_waiting_(start.most_waiting) {
  thread_ = std::jthread([this, start = std::move(start), open = std::move(open)]() mutable {
    try {
      run(std::move(start), open);
    } catch (const Error& error) {
      fail(error);
    } catch (const std::exception& error) {
      fail(Error(ErrorCode::other, error.what()));
    }
    has_ended_ = true;
  });
}

RemoteSession::~RemoteSession() {
  try {
    post(StopCommand{true});
  } catch (...) {  // no memory for the command: the join below still ends with the run
  }
  if (thread_.joinable()) thread_.join();
}

Ticket RemoteSession::post(Command command) {
  const std::lock_guard lock(mutex_);
  commands_.push_back(std::move(command));
  return next_ticket_++;
}

std::shared_ptr<const Snapshot> RemoteSession::latest() const {
  const std::lock_guard lock(mutex_);
  return latest_;
}

Records RemoteSession::drain() {
  const std::lock_guard lock(mutex_);
  return std::exchange(records_, {});
}

void RemoteSession::run(SessionStart start, const Open& open) {
  SessionListener listener;
  const std::unique_ptr<Program> program = open(listener.path());
  SessionSocket socket = connected(listener, *program);
  try {
    socket.send(wire_start(start));
    converse(socket);
  } catch (const std::exception& error) {
    std::optional<std::string> last_words;  // it may still be ending
    for (int looks = 0; !(last_words = program->ended()) && looks < 500; ++looks)
      std::this_thread::sleep_for(std::chrono::milliseconds(kLookMs));
    throw Error(ErrorCode::device, "the processes of the run have ended", last_words && !last_words->empty() ? *last_words : error.what(),
                "resume the run: it continues from its last checkpoint");
  }
}

SessionSocket RemoteSession::connected(SessionListener& listener, Program& program) {
  for (;;) {
    if (std::optional<SessionSocket> accepted = listener.accept(kLookMs)) return std::move(*accepted);
    if (const std::optional<std::string> last_words = program.ended())
      throw Error(ErrorCode::device, "the processes of the run did not start", *last_words, "comera doctor shows the devices of this machine");
  }
}

void RemoteSession::converse(SessionSocket& socket) {
  for (;;) {
    std::deque<Command> commands;
    {
      const std::lock_guard lock(mutex_);
      commands.swap(commands_);
    }
    for (const Command& command : commands) socket.send(wire_command(command));
    if (const std::optional<Json> message = socket.receive(kLookMs); message && take(*message)) return;
  }
}

// Whether it was the last one.
bool RemoteSession::take(const Json& message) {
  auto snapshot = std::make_shared<const Snapshot>(snapshot_of_wire(message.at("snapshot")));
  Records records = records_of_wire(message.at("records"));
  const std::lock_guard lock(mutex_);
  latest_ = std::move(snapshot);
  records_.append(std::move(records));
  if (records_.points() > most_waiting_) records_.leave_out_metrics();
  return message.at("ended").get<bool>();
}

void RemoteSession::fail(const Error& error) {
  const std::lock_guard lock(mutex_);
  auto failed = std::make_shared<Snapshot>(*latest_);
  failed->phase = Phase::failed;
  failed->message = error.what();
  failed->error_code = static_cast<int>(error.code());
  failed->error_why = error.why();
  failed->error_hint = error.hint();
  latest_ = std::move(failed);
}

}  // namespace comera
