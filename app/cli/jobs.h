// Runs of this program in processes of their own, several at once. They are outside the terminal's process group, so Ctrl-C comes to this
// program alone, which hands it on; if this program is killed, they stop with a checkpoint, as after a Ctrl-C (PR_SET_PDEATHSIG).
#pragma once
#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace comera::cli {

struct JobEnd {
  size_t job = 0;
  int code = 0;        // exit code; of a job that a signal ended 128 + its number
  int signal = 0;      // that ended it; 0 = it ended by itself
  std::string output;  // its stdout
};

// Thread: that of start() must outlive the jobs.
class Jobs {
 public:
  Jobs() = default;
  ~Jobs();  // stops what still runs, and waits for it
  Jobs(const Jobs&) = delete;

  // `kept`: an open file that the job holds open as well, as for its lock; -1 = none. Throws Error(other).
  void start(size_t job, const std::vector<std::string>& arguments, const std::string& input, int kept);
  size_t running() const { return jobs_.size(); }
  // The next one that ends within `seconds`.
  std::optional<JobEnd> wait(double seconds);
  void send(int signal);

 private:
  struct Job {
    pid_t pid = 0;
    int out = -1;
    std::string output;
  };
  JobEnd end(size_t job);
  std::map<size_t, Job> jobs_;
};

}  // namespace comera::cli
