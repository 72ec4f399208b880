// A helper program of the desktop, run as a child process, and its output. Nothing here blocks.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace comera::studio {

// Path of the program in $PATH; "" = not found.
std::string program_in_path(const std::string& name);

class HelperProgram {
 public:
  struct End {
    int code = -1;  // exit code; -1 = not started or killed
    std::string said;
  };

  // `words`: path of the program, then its arguments. Its standard error is discarded.
  explicit HelperProgram(std::vector<std::string> words);
  ~HelperProgram();  // kills the program
  HelperProgram(const HelperProgram&) = delete;

  // The result, once; nullopt while the program runs. Call repeatedly until it returns a value.
  std::optional<End> ended();
  double age() const;  // seconds since the start

 private:
  void read();

  pid_t process_ = -1;
  int output_ = -1;
  const double since_;  // start time, in seconds of the steady clock
  std::string said_;
};

}  // namespace comera::studio
