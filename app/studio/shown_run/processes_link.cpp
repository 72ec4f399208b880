#include "app/studio/shown_run/processes_link.h"

#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "app/studio/helper_program.h"
#include "core/base/error.h"
#include "core/session/remote_session.h"

namespace comera::studio {
namespace {

std::filesystem::path beside_this_program(const char* name) {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).parent_path() / name;
}

// The line that says what is wrong, of all that mpirun and the processes wrote.
std::string reason_in(const std::string& said) {
  std::istringstream in(said);
  std::string last;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("error: ")) return line.substr(7);
    if (line.find_first_not_of("- \t") != std::string::npos) last = line;
  }
  return last;
}

class Mpirun final : public RemoteSession::Program {
 public:
  explicit Mpirun(const std::vector<std::string>& words) : program_(words) {}
  std::optional<std::string> ended() override {
    const std::optional<HelperProgram::End> end = program_.ended();
    return end ? std::optional<std::string>(reason_in(end->said)) : std::nullopt;
  }

 private:
  HelperProgram program_;
};

class ProcessesLink final : public RunLink {
 public:
  explicit ProcessesLink(SessionStart start)
      : session_(std::move(start), [processes = start.processes](const std::string& socket) -> std::unique_ptr<RemoteSession::Program> {
          if (!no_processes().empty()) throw Error(ErrorCode::device, "several processes cannot be started", no_processes());
          return std::make_unique<Mpirun>(processes_command(processes, socket));
        }) {}
  Ticket post(Command command) override { return session_.post(std::move(command)); }
  std::shared_ptr<const Snapshot> latest() const override { return session_.latest(); }
  Records drain() override { return session_.drain(); }
  bool ended() override { return session_.ended(); }

 private:
  RemoteSession session_;
};

}  // namespace

const std::string& no_processes() {
  static const std::string kWhy = [] {
    for (const char* name : {"libcomera_mpi.so", "comera"})
      if (!std::filesystem::exists(beside_this_program(name))) return std::string(name) + " is not in the folder of this program";
    return std::string(program_in_path("mpirun").empty() ? "mpirun is not installed (Debian: openmpi-bin)" : "");
  }();
  return kWhy;
}

std::vector<std::string> processes_command(int processes, const std::string& socket) {
  // The shell gives what mpirun writes on its standard error to the standard output, which HelperProgram reads. Open MPI keeps its files
  // in the private folder of the socket. By default all runs of a user share one, and a run that ends can remove files of one that starts.
  std::vector<std::string> words = {"/bin/sh", "-c", "TMPDIR=\"$0\" exec \"$@\" 2>&1", std::filesystem::path(socket).parent_path().string(),
                                    program_in_path("mpirun")};
  if (::geteuid() == 0) words.emplace_back("--allow-run-as-root");
  for (const char* word : {"--oversubscribe", "--bind-to", "none", "-n"}) words.emplace_back(word);
  words.push_back(std::to_string(processes));
  words.push_back(beside_this_program("comera").string());
  words.emplace_back("serve-session");
  words.push_back(socket);
  return words;
}

std::unique_ptr<RunLink> start_processes(SessionStart start) { return std::make_unique<ProcessesLink>(std::move(start)); }

}  // namespace comera::studio
