// Theme of the desktop: dark, light or high contrast. Sources in order: the portal, GNOME's settings (each through a helper
// program), then the files of KDE and GTK. Nothing here blocks.
#pragma once
#include <memory>
#include <optional>
#include <string>

#include "app/figure/colors.h"
#include "app/studio/helper_program.h"

namespace comera::studio {

class DesktopTheme {
 public:
  void ask();  // starts again; a running query continues
  bool asking() const { return asking_; }
  // Once per query, some frames later; dark if no source has a theme.
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
