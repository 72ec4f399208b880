// The desktop's own dialog to choose a file: zenity or kdialog, as a process of its own. Nothing here waits.
#pragma once
#include <sys/types.h>

#include <optional>
#include <string>

namespace comera::studio {

class DesktopDialog {
 public:
  // The program that would show it; "" = there is none in $PATH.
  static std::string program();

  struct Answer {
    std::string path;     // "" = it was cancelled
    bool failed = false;  // it could not be shown: another way is needed
  };

  // Shows it; begins in `folder`. A program that cannot be started is an answer that failed.
  DesktopDialog(const std::string& program, const std::string& title, const std::string& folder);
  ~DesktopDialog();  // takes it away
  DesktopDialog(const DesktopDialog&) = delete;

  // Nothing as long as it is open. Asked again and again.
  std::optional<Answer> answer();

 private:
  pid_t process_ = -1;
  int output_ = -1;
  double since_ = 0;  // seconds of the steady clock
  std::string said_;
};

}  // namespace comera::studio
