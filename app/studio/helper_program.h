// A helper program of the desktop as a child process, and its output. Nothing here blocks.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace comera::studio {

// Where a program of this name is in $PATH; "" = nowhere.
std::string program_in_path(const std::string& name);

class HelperProgram {
 public:
  struct End {
    int code = -1;  // exit code; -1 = not started, or killed
    std::string said;
  };

  // `words`: its path, then its arguments. Its standard error is discarded.
  explicit HelperProgram(std::vector<std::string> words);
  ~HelperProgram();  // ends it
  HelperProgram(const HelperProgram&) = delete;

  // Nothing as long as it runs. Asked again and again, until there is an answer; once.
  std::optional<End> ended();
  double age() const;  // seconds since it was started

 private:
  void read();

  pid_t process_ = -1;
  int output_ = -1;
  const double since_;  // seconds of the steady clock
  std::string said_;
};

}  // namespace comera::studio
