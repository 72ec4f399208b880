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
  void ask();  // starts a new query; does nothing while one is running
  bool asking() const { return asking_; }
  // Returns a value once per query, some frames later; dark if no source has a theme.
  std::optional<ThemeKind> answer();

 private:
  void ask_next();

  bool asking_ = false;
  int next_ = 0;                            // index of the next program
  std::unique_ptr<HelperProgram> program_;  // the program that is being queried
};

// The theme that a source reports; nullopt if it has no preference.
std::optional<ThemeKind> theme_of_portal(const std::string& said);     // gdbus: org.freedesktop.portal.Settings.ReadAll
std::optional<ThemeKind> theme_of_gsettings(const std::string& said);  // org.gnome.desktop.interface color-scheme
std::optional<ThemeKind> theme_of_files(const std::string& folder);    // kdeglobals and gtk-*/settings.ini in ~/.config

}  // namespace comera::studio
