// A session in another program, which mpirun starts as one of several processes: commands go to it over a socket, snapshots and records
// come back. For whoever watches it is a session like one of this program (session.h).
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "core/session/session.h"

namespace comera {

class SessionListener;
class SessionSocket;

// The other side: runs the session that the program at the other end asks for until it ends. When the connection is lost or `interrupted`
// says so, the session stops with a checkpoint. `others`: the other processes. Throws Error before a session begins.
void serve_session(SessionSocket socket, std::shared_ptr<Communicator> others, const std::function<bool()>& interrupted);

class RemoteSession final : public RunSource {
 public:
  // The program that serves, while it is alive.
  class Program {
   public:
    virtual ~Program() = default;
    virtual std::optional<std::string> ended() = 0;  // null while it runs, then why: its last line; called until it is not null
  };
  // Starts one that connects to `socket`; on the thread of this session. May throw Error.
  using Open = std::function<std::unique_ptr<Program>(const std::string& socket)>;

  RemoteSession(SessionStart start, Open open);
  ~RemoteSession() override;  // stops with a checkpoint if still running
  RemoteSession(const RemoteSession&) = delete;

  // As Session's. A program that ends without a word is a failed run.
  Ticket post(Command command);
  std::shared_ptr<const Snapshot> latest() const override;
  Records drain() override;
  bool ended() const { return has_ended_; }

 private:
  void run(SessionStart start, const Open& open);
  static SessionSocket connected(SessionListener& listener, Program& program);
  void converse(SessionSocket& socket);
  bool take(const Json& message);
  void fail(const Error& error);

  mutable std::mutex mutex_;
  std::deque<Command> commands_;            // guarded by mutex_: not sent yet
  Ticket next_ticket_ = 1;                  // guarded by mutex_
  std::shared_ptr<const Snapshot> latest_;  // guarded by mutex_
  Records records_;                         // guarded by mutex_
  const size_t most_waiting_;
  std::atomic<bool> has_ended_ = false;
  std::jthread thread_;
};

}  // namespace comera
