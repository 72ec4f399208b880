// Whether the desktop is dark, light, or of high contrast. Asked is its portal, then GNOME's settings, each through the
// program of the desktop that knows them; then the files in which KDE and GTK keep their own. Nothing here waits.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "app/figure/colors.h"
#include "app/studio/helper_program.h"

namespace comera::studio {

class DesktopTheme {
 public:
  void ask();  // anew; what is asked already is asked on
  bool asking() const { return asking_; }
  // Once for each question, some frames later; dark where nobody knows.
  std::optional<ThemeKind> answer();

 private:
  void ask_next();

  bool asking_ = false;
  int next_ = 0;                            // of the programs
  std::unique_ptr<HelperProgram> program_;  // that is asked now
};

// What they say; nothing where that is no preference.
std::optional<ThemeKind> theme_of_portal(const std::string& said);     // gdbus: org.freedesktop.portal.Settings.ReadAll
std::optional<ThemeKind> theme_of_gsettings(const std::string& said);  // org.gnome.desktop.interface color-scheme
std::optional<ThemeKind> theme_of_files(const std::string& folder);    // kdeglobals and gtk-*/settings.ini in ~/.config

}  // namespace comera::studio
