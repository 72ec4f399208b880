// The theme of the desktop: what its programs and files say, and that nobody waits for them. The programs are scripts here.
#include "app/studio/desktop_theme.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/preferences.h"
#include "tests/store/support.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;

TEST(DesktopTheme, ReadsWhatThePortalSays) {
  const auto said = [](const char* inside) { return "({'org.freedesktop.appearance': {" + std::string(inside) + "}},)"; };
  EXPECT_EQ(theme_of_portal(said("'color-scheme': <uint32 1>, 'contrast': <uint32 0>")), ThemeKind::dark);
  EXPECT_EQ(theme_of_portal(said("'accent-color': <(0.2, 0.5, 0.9)>, 'color-scheme': <uint32 2>")), ThemeKind::light);
  EXPECT_EQ(theme_of_portal(said("'contrast': <uint32 1>, 'color-scheme': <uint32 2>")), ThemeKind::contrast);
  EXPECT_FALSE(theme_of_portal(said("'color-scheme': <uint32 0>"))) << "no preference";
  EXPECT_FALSE(theme_of_portal(said("'color-scheme': <'dark'>, 'accent-color': <uint32 1>"))) << "not the number of another key";
  EXPECT_FALSE(theme_of_portal("({},)"));
  EXPECT_FALSE(theme_of_portal(""));
}

TEST(DesktopTheme, ReadsWhatGnomeSays) {
  EXPECT_EQ(theme_of_gsettings("'prefer-dark'"), ThemeKind::dark);
  EXPECT_EQ(theme_of_gsettings("'prefer-light'"), ThemeKind::light);
  EXPECT_FALSE(theme_of_gsettings("'default'"));
  EXPECT_FALSE(theme_of_gsettings("No such schema"));
}

// A home, and nothing in $PATH but what a test puts there.
class Desktop : public testing::Test {
 protected:
  Desktop() {
    folder_ = fs::temp_directory_path() / ("comera-desktop-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "bin");
    setenv("PATH", (folder_ / "bin").c_str(), 1);
    setenv("XDG_CONFIG_HOME", (folder_ / "config").c_str(), 1);
  }
  ~Desktop() override {
    setenv("PATH", path_.c_str(), 1);
    if (config_.empty())
      unsetenv("XDG_CONFIG_HOME");
    else
      setenv("XDG_CONFIG_HOME", config_.c_str(), 1);
    fs::remove_all(folder_);
  }
  void program(const char* name, const std::string& script) {
    const std::string file = (folder_ / "bin" / name).string();
    test::write_text(file, "#!/bin/sh\n" + script + "\n");
    fs::permissions(file, fs::perms::owner_all);
  }
  void file(const char* name, const std::string& text) {
    fs::create_directories((folder_ / "config" / name).parent_path());
    test::write_text((folder_ / "config" / name).string(), text);
  }
  std::optional<ThemeKind> files() { return theme_of_files((folder_ / "config").string()); }
  // What the window looks like once it was told.
  ThemeKind followed(ThemeKind before) {
    Stage stage({960, 600}, 1, before);
    follow_desktop_theme(stage.ui);
    EXPECT_TRUE(stage.until([&] { return !stage.ui.desktop_theme.asking(); }));
    EXPECT_EQ(theme_kind(), stage.ui.settings.theme);
    return stage.ui.settings.theme;
  }
  static std::string of(const char* variable) {
    const char* value = std::getenv(variable);
    return value ? value : "";
  }

  fs::path folder_;
  const std::string path_ = of("PATH"), config_ = of("XDG_CONFIG_HOME");
};

TEST_F(Desktop, FilesOfKdeAndGtkAreRead) {
  EXPECT_FALSE(files());
  file("gtk-3.0/settings.ini", "[Settings]\ngtk-theme-name=Adwaita\ngtk-application-prefer-dark-theme=0\n");
  EXPECT_EQ(files(), ThemeKind::light);
  file("gtk-3.0/settings.ini", "[Settings]\ngtk-application-prefer-dark-theme = true\n");
  EXPECT_EQ(files(), ThemeKind::dark);
  file("gtk-4.0/settings.ini", "[Other]\ngtk-theme-name=Adwaita\n[Settings]\r\ngtk-theme-name=Arc-Dark\r\n");
  EXPECT_EQ(files(), ThemeKind::dark);
  file("gtk-4.0/settings.ini", "[Settings]\ngtk-theme-name=HighContrastInverse\n");
  EXPECT_EQ(files(), ThemeKind::contrast);
  file("kdeglobals", "[Colors:View]\nBackgroundNormal=27,30,32\n[Colors:Window]\nBackgroundNormal=239,240,241\n");
  EXPECT_EQ(files(), ThemeKind::light);
  file("kdeglobals", "[Colors:Window]\nBackgroundNormal=42,46,50\n");
  EXPECT_EQ(files(), ThemeKind::dark);
}

TEST_F(Desktop, TheFirstWhoKnowsIsBelieved) {
  EXPECT_EQ(followed(ThemeKind::light), ThemeKind::dark) << "nobody knows";
  file("gtk-3.0/settings.ini", "[Settings]\ngtk-theme-name=Adwaita\n");
  EXPECT_EQ(followed(ThemeKind::dark), ThemeKind::light);
  program("gsettings", "[ \"$3\" = color-scheme ] && echo \"'prefer-dark'\"");
  EXPECT_EQ(followed(ThemeKind::light), ThemeKind::dark);
  program("gdbus", "echo \"({'org.freedesktop.appearance': {'color-scheme': <uint32 2>}},)\"");
  EXPECT_EQ(followed(ThemeKind::dark), ThemeKind::light);
  program("gdbus", "echo \"({'org.freedesktop.appearance': {'color-scheme': <uint32 1>, 'contrast': <uint32 1>}},)\"");
  EXPECT_EQ(followed(ThemeKind::dark), ThemeKind::contrast);
  program("gdbus", "echo \"Error: no session bus\" >&2; exit 1");
  EXPECT_EQ(followed(ThemeKind::light), ThemeKind::dark) << "as gsettings says";
}

// A program that never answers is given up; frames are drawn meanwhile, and quitting does not wait for it.
TEST_F(Desktop, NobodyWaitsForIt) {
  program("gdbus", "exec /bin/sleep 1000");
  program("gsettings", "echo \"'prefer-light'\"");
  {
    Stage stage;
    follow_desktop_theme(stage.ui);
    stage.frames();
    EXPECT_TRUE(stage.ui.desktop_theme.asking());
    EXPECT_EQ(stage.ui.settings.theme, ThemeKind::dark) << "as before";
  }
  EXPECT_EQ(followed(ThemeKind::dark), ThemeKind::light);
}

TEST_F(Desktop, AChoiceByHandEndsIt) {
  program("gdbus", "echo \"({'org.freedesktop.appearance': {'color-scheme': <uint32 2>}},)\"");
  Stage stage;
  for (const Action& action : actions(stage.ui))
    if (action.id == "theme.desktop") action.act(stage.ui);
  set_theme(stage.ui, ThemeKind::contrast);
  ASSERT_TRUE(stage.until([&] { return !stage.ui.desktop_theme.asking(); }));
  EXPECT_EQ(stage.ui.settings.theme, ThemeKind::contrast) << "the answer comes too late";
  EXPECT_FALSE(stage.ui.settings.theme_of_desktop);
}

TEST_F(Desktop, IsRemembered) {
  const std::string kept = (folder_ / "studio.json").string();
  Stage stage({960, 600}, 1, ThemeKind::contrast);
  save_preferences(stage.ui, kept);
  UiState later;
  load_preferences(later, kept);
  EXPECT_EQ(later.settings.theme, ThemeKind::contrast);
  EXPECT_FALSE(later.settings.theme_of_desktop);
  stage.ui.settings.theme_of_desktop = true;
  save_preferences(stage.ui, kept);
  load_preferences(later, kept);
  EXPECT_TRUE(later.settings.theme_of_desktop);
  EXPECT_EQ(later.settings.theme, ThemeKind::contrast) << "what it was last, until the desktop answers";
}

}  // namespace
}  // namespace comera::studio
