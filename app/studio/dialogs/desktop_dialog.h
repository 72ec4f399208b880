// The desktop's own dialog to choose a file or a folder: zenity or kdialog, as a process of its own. Nothing here waits.
#pragma once
#include <optional>
#include <string>

#include "app/studio/helper_program.h"

namespace comera::studio {

enum class Choose { file, folder };

class DesktopDialog {
 public:
  // The program that would show it; "" = there is none in $PATH.
  static std::string program();

  struct Answer {
    std::string path;     // "" = it was cancelled
    bool failed = false;  // it could not be shown: another way is needed
  };

  // Shows it; begins in the folder `begin`. A program that cannot be started is an answer that failed. It goes with this object.
  DesktopDialog(const std::string& program, const std::string& title, const std::string& begin, Choose choose);

  // Nothing as long as it is open. Asked again and again.
  std::optional<Answer> answer();

 private:
  HelperProgram dialog_;
};

}  // namespace comera::studio
