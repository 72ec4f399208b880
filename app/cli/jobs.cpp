#include "app/cli/jobs.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "core/base/error.h"

namespace comera::cli {
namespace {

[[noreturn]] void fail(const char* doing) {
  throw Error(ErrorCode::other, "cannot start a run", std::string(doing) + ": " + std::strerror(errno), "use fewer --jobs");
}

// All variables but those that change settings: a config that is handed over is complete.
std::vector<char*> environment() {
  constexpr std::string_view kSettings[] = {"COMERA_MODEL_", "COMERA_DATA_", "COMERA_METHOD_", "COMERA_TRAIN_"};
  std::vector<char*> kept;
  for (char** entry = environ; entry && *entry; ++entry) {
    bool setting = false;
    for (const std::string_view prefix : kSettings) setting = setting || std::string_view(*entry).starts_with(prefix);
    if (!setting) kept.push_back(*entry);
  }
  kept.push_back(nullptr);
  return kept;
}

// A file in memory that holds the text and stands at its beginning.
int file_of(const std::string& text) {
  const int file = ::memfd_create("comera-job", MFD_CLOEXEC);
  if (file < 0) fail("memfd_create");
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t wrote = ::write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      ::close(file);
      fail("write");
    }
    done += static_cast<size_t>(wrote);
  }
  ::lseek(file, 0, SEEK_SET);
  return file;
}

}  // namespace

Jobs::~Jobs() {
  send(SIGINT);
  for (auto& [job, of_job] : jobs_) {
    ::close(of_job.out);
    while (::waitpid(of_job.pid, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void Jobs::start(size_t job, const std::vector<std::string>& arguments, const std::string& input, int kept) {
  std::vector<std::string> words{"comera"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::vector<char*> variables = environment();
  const int in = file_of(input);
  int out[2];
  if (::pipe2(out, O_CLOEXEC) != 0) {
    ::close(in);
    fail("pipe2");
  }
  const pid_t parent = ::getpid(), pid = ::fork();
  if (pid == 0) {  // only calls that are safe between fork and exec
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGINT);
    if (::getppid() != parent) ::_exit(128 + SIGINT);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out[1], STDOUT_FILENO);
    if (kept >= 0) ::fcntl(kept, F_SETFD, 0);
    ::execve("/proc/self/exe", argv.data(), variables.data());
    ::_exit(127);
  }
  ::close(in);
  ::close(out[1]);
  if (pid < 0) {
    ::close(out[0]);
    fail("fork");
  }
  jobs_[job] = {pid, out[0], {}};
}

JobEnd Jobs::end(size_t job) {
  Job& ended = jobs_.at(job);
  int status = 0;
  while (::waitpid(ended.pid, &status, 0) < 0 && errno == EINTR) {
  }
  ::close(ended.out);
  JobEnd end{.job = job, .output = std::move(ended.output)};
  end.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  end.code = end.signal != 0 ? 128 + end.signal : WEXITSTATUS(status);
  jobs_.erase(job);
  return end;
}

std::optional<JobEnd> Jobs::wait(double seconds) {
  std::vector<pollfd> files;
  std::vector<size_t> numbers;
  for (const auto& [job, of_job] : jobs_) {
    files.push_back({of_job.out, POLLIN, 0});
    numbers.push_back(job);
  }
  if (::poll(files.data(), files.size(), static_cast<int>(1000 * seconds)) <= 0) return {};
  for (size_t i = 0; i < files.size(); ++i) {
    if (files[i].revents == 0) continue;
    char bytes[4096];
    const ssize_t read = ::read(files[i].fd, bytes, sizeof bytes);
    if (read > 0) jobs_[numbers[i]].output.append(bytes, static_cast<size_t>(read));
    if (read == 0) return end(numbers[i]);
  }
  return {};
}

void Jobs::send(int signal) {
  for (const auto& [job, of_job] : jobs_) ::kill(of_job.pid, signal);
}

}  // namespace comera::cli
