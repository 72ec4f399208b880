#include "app/studio/dialogs/desktop_dialog.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace comera::studio {
namespace {

// Both programs exit with 1 on cancel and on failure. An exit with 1 before this time is taken as a failure to show the dialog.
constexpr double kTooQuick = 0.3;  // seconds

std::vector<std::string> words(const std::string& program, const std::string& title, const std::string& begin, Choose choose) {
  const bool folder = choose == Choose::folder;
  if (std::filesystem::path(program).filename() == "kdialog")
    return {program, "--title", title, folder ? "--getexistingdirectory" : "--getopenfilename", begin};
  std::vector<std::string> zenity = {program, "--file-selection", "--title=" + title, "--filename=" + begin + "/"};
  if (folder) zenity.emplace_back("--directory");
  return zenity;
}

}  // namespace

std::string DesktopDialog::program() {
  const char* desktop = std::getenv("XDG_CURRENT_DESKTOP");
  const bool kde = desktop && std::string(desktop).find("KDE") != std::string::npos;
  const std::string first = program_in_path(kde ? "kdialog" : "zenity");
  return first.empty() ? program_in_path(kde ? "zenity" : "kdialog") : first;
}

DesktopDialog::DesktopDialog(const std::string& program, const std::string& title, const std::string& begin, Choose choose)
    : dialog_(words(program, title, begin, choose)) {}

std::optional<DesktopDialog::Answer> DesktopDialog::answer() {
  const auto end = dialog_.ended();
  if (!end) return std::nullopt;
  if (end->code == 0 && !end->said.empty()) return Answer{.path = end->said};
  return Answer{.path = "", .failed = end->code != 1 || dialog_.age() < kTooQuick};
}

}  // namespace comera::studio
