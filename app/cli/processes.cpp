#include "app/cli/processes.h"

#include "app/cli/follow.h"
#include "core/comm/mpi.h"
#include "core/session/remote_session.h"
#include "core/session/session_socket.h"
#include "core/session/version.h"
#include "core/session/with_others.h"

namespace comera::cli {

int in_processes(const Context& context, const std::function<int(const Context&, Processes)>& verb) {
  Processes others;
  try {
    others = join_processes();
  } catch (const Error&) {
    if (started_as_process() > 0) return 0;
    throw;
  }
  if (!others) return verb(context, nullptr);
  const bool prints = others->process() == 0;
  Context own = context;
  if (!prints) own.quiet = true;
  try {
    return verb(own, others);
  } catch (const Error& error) {
    others->fail(error);
    if (prints) throw;
  } catch (const std::exception& error) {
    others->fail(Error(ErrorCode::other, error.what()));
    if (prints) throw;
  }
  return 0;
}

int serve_session_at(const Context& context, const std::string& socket) {
  return in_processes(context, [&](const Context&, Processes others) {
    catch_signals();
    if (others) check_alike(*others, version_text("comera"), "another version of comera", "use the same build on all machines");
    if (others && others->process() > 0) {
      train_with_process_0(*others);
      return 0;
    }
    serve_session(SessionSocket::connect(socket), others, [] { return signal_code() != 0; });
    return 0;
  });
}

}  // namespace comera::cli
