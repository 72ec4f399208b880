#include "app/studio/helper_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>

extern char** environ;

namespace comera::studio {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

}  // namespace

std::string program_in_path(const std::string& name) {
  const char* path = std::getenv("PATH");
  std::stringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (const std::string file = folder + "/" + name; ::access(file.c_str(), X_OK) == 0) return file;
  return "";
}

HelperProgram::HelperProgram(std::vector<std::string> words) : since_(now()) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  if (::posix_spawn(&process_, arguments[0], &files, nullptr, arguments.data(), environ) != 0) process_ = -1;
  posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  output_ = ends[0];
  ::fcntl(output_, F_SETFL, O_NONBLOCK);
}

HelperProgram::~HelperProgram() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);  // returns at once: the process was killed
  }
  if (output_ >= 0) ::close(output_);
}

void HelperProgram::read() {
  char part[4096];
  for (ssize_t size; output_ >= 0 && (size = ::read(output_, part, sizeof part)) > 0;) said_.append(part, static_cast<size_t>(size));
}

std::optional<HelperProgram::End> HelperProgram::ended() {
  if (process_ <= 0) return End{};
  int status = 0;
  const bool runs = ::waitpid(process_, &status, WNOHANG) == 0;
  read();  // read while it runs: a full pipe would block it
  if (runs) return std::nullopt;
  process_ = -1;
  while (said_.ends_with('\n')) said_.pop_back();
  return End{WIFEXITED(status) ? WEXITSTATUS(status) : -1, said_};
}

double HelperProgram::age() const { return now() - since_; }

}  // namespace comera::studio
