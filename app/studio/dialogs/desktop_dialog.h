// The desktop's dialog to choose a file or a folder: zenity or kdialog as a child process. Nothing here waits.
#pragma once
#include <optional>
#include <string>

#include "app/studio/helper_program.h"

namespace comera::studio {

enum class Choose { file, folder };

class DesktopDialog {
 public:
  // The program that shows the dialog; "" = none in $PATH.
  static std::string program();

  struct Answer {
    std::string path;     // "" = cancelled
    bool failed = false;  // the dialog could not be shown: use another way
  };

  // Shows the dialog, starting in the folder `begin`. If the program cannot be started, answer() returns `failed`. The destructor closes
  // the dialog.
  DesktopDialog(const std::string& program, const std::string& title, const std::string& begin, Choose choose);

  // Nullopt while the dialog is open. Call repeatedly.
  std::optional<Answer> answer();

 private:
  HelperProgram dialog_;
};

}  // namespace comera::studio
