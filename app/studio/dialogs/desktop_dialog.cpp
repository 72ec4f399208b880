#include "app/studio/dialogs/desktop_dialog.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <vector>

extern char** environ;

namespace comera::studio {
namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

// Nobody cancels a dialog faster than this: it was not shown at all, for both programs end with 1 then too.
constexpr double kTooQuick = 0.3;  // seconds

}  // namespace

std::string DesktopDialog::program() {
  const char* path = std::getenv("PATH");
  std::stringstream folders(path ? path : "");
  std::array<std::string, 2> found;
  for (std::string folder; std::getline(folders, folder, ':');)
    for (size_t i = 0; i < found.size(); ++i) {
      const std::string file = folder + (i == 0 ? "/zenity" : "/kdialog");
      if (found[i].empty() && ::access(file.c_str(), X_OK) == 0) found[i] = file;
    }
  const char* desktop = std::getenv("XDG_CURRENT_DESKTOP");
  const bool kde = desktop && std::string(desktop).find("KDE") != std::string::npos;
  const std::string &first = found[kde ? 1 : 0], &second = found[kde ? 0 : 1];
  return first.empty() ? second : first;
}

DesktopDialog::DesktopDialog(const std::string& program, const std::string& title, const std::string& folder) : since_(now()) {
  std::vector<std::string> words{program};
  if (std::filesystem::path(program).filename() == "kdialog")
    words.insert(words.end(), {"--title", title, "--getopenfilename", folder});
  else
    words.insert(words.end(), {"--file-selection", "--title=" + title, "--filename=" + folder + "/"});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return;
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
  if (::posix_spawn(&process_, program.c_str(), &files, nullptr, arguments.data(), environ) != 0) process_ = -1;
  posix_spawn_file_actions_destroy(&files);
  ::close(ends[1]);
  output_ = ends[0];
  ::fcntl(output_, F_SETFL, O_NONBLOCK);
}

DesktopDialog::~DesktopDialog() {
  if (process_ > 0) {
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);  // at once: it is dead
  }
  if (output_ >= 0) ::close(output_);
}

std::optional<DesktopDialog::Answer> DesktopDialog::answer() {
  if (process_ <= 0) return Answer{.path = "", .failed = true};
  int status = 0;
  if (::waitpid(process_, &status, WNOHANG) == 0) return std::nullopt;
  process_ = -1;
  char part[4096];
  for (ssize_t size; (size = ::read(output_, part, sizeof part)) > 0;) said_.append(part, static_cast<size_t>(size));
  while (said_.ends_with('\n')) said_.pop_back();
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 0 && !said_.empty()) return Answer{.path = said_};
  return Answer{.path = "", .failed = code != 1 || now() - since_ < kTooQuick};
}

}  // namespace comera::studio
