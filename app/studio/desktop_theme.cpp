#include "app/studio/desktop_theme.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/base/paths.h"

namespace comera::studio {
namespace {

constexpr double kMostWait = 2;  // seconds per program: without a session bus it may hang

struct Teller {
  std::vector<const char*> words;
  std::optional<ThemeKind> (*theme)(const std::string& said);
};

const std::array<Teller, 2>& tellers() {
  static const std::array<Teller, 2> kAll = {
      {{{"gdbus", "call", "--session", "--dest", "org.freedesktop.portal.Desktop", "--object-path", "/org/freedesktop/portal/desktop",
         "--method", "org.freedesktop.portal.Settings.ReadAll", "['org.freedesktop.appearance']"},
        theme_of_portal},
       {{"gsettings", "get", "org.gnome.desktop.interface", "color-scheme"}, theme_of_gsettings}}};
  return kAll;
}

// Finds N of 'KEY': <uint32 N> in the output of gdbus, such as {'color-scheme': <uint32 1>, ...}; -1 = no such key.
int number_of(const std::string& said, const std::string& key) {
  const size_t at = said.find("'" + key + "'");
  if (at == std::string::npos) return -1;
  const size_t type = said.find("uint32 ", at), end = said.find('>', at);
  return type == std::string::npos || type > end ? -1 : std::atoi(said.c_str() + type + 7);
}

// Value of KEY=VALUE under [SECTION]; "" = not found.
std::string value_of(const std::filesystem::path& file, const std::string& section, const std::string& key) {
  std::ifstream in(file);
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("[")) inside = line == "[" + section + "]";
    if (!inside) continue;
    const size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    std::string name = line.substr(0, equals), value = line.substr(equals + 1);
    while (name.ends_with(' ')) name.pop_back();
    while (value.starts_with(' ')) value.erase(0, 1);
    while (value.ends_with(' ') || value.ends_with('\r')) value.pop_back();
    if (name == key) return value;
  }
  return "";
}

}  // namespace

std::optional<ThemeKind> theme_of_portal(const std::string& said) {
  if (number_of(said, "contrast") == 1) return ThemeKind::contrast;
  const int scheme = number_of(said, "color-scheme");
  return scheme == 1 ? std::optional(ThemeKind::dark) : scheme == 2 ? std::optional(ThemeKind::light) : std::nullopt;
}

std::optional<ThemeKind> theme_of_gsettings(const std::string& said) {
  return said == "'prefer-dark'"    ? std::optional(ThemeKind::dark)
         : said == "'prefer-light'" ? std::optional(ThemeKind::light)
                                    : std::nullopt;
}

std::optional<ThemeKind> theme_of_files(const std::string& folder) {
  const std::filesystem::path root = folder;
  unsigned red = 0, green = 0, blue = 0;
  const std::string kde = value_of(root / "kdeglobals", "Colors:Window", "BackgroundNormal");
  if (std::sscanf(kde.c_str(), "%u,%u,%u", &red, &green, &blue) == 3 && std::max({red, green, blue}) < 256) {
    const Color back = rgba(red, green, blue, 255);
    return contrast(back, rgb(0xFFFFFF)) > contrast(back, rgb(0)) ? ThemeKind::dark : ThemeKind::light;
  }
  for (const char* gtk : {"gtk-4.0", "gtk-3.0"}) {
    const std::filesystem::path file = root / gtk / "settings.ini";
    std::string name = value_of(file, "Settings", "gtk-theme-name");
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    if (name.starts_with("highcontrast")) return ThemeKind::contrast;
    const std::string dark = value_of(file, "Settings", "gtk-application-prefer-dark-theme");
    if (dark == "1" || dark == "true" || name.find("dark") != std::string::npos) return ThemeKind::dark;
    if (!dark.empty() || !name.empty()) return ThemeKind::light;
  }
  return std::nullopt;
}

void DesktopTheme::ask() {
  if (asking_) return;
  asking_ = true;
  next_ = 0;
  ask_next();
}

void DesktopTheme::ask_next() {
  program_.reset();
  while (next_ < static_cast<int>(tellers().size()) && !program_) {
    const Teller& teller = tellers()[static_cast<size_t>(next_++)];
    std::vector<std::string> words(teller.words.begin(), teller.words.end());
    words[0] = program_in_path(words[0]);
    if (!words[0].empty()) program_ = std::make_unique<HelperProgram>(std::move(words));
  }
}

std::optional<ThemeKind> DesktopTheme::answer() {
  if (!asking_) return std::nullopt;
  std::optional<ThemeKind> kind;
  if (program_) {
    const auto end = program_->ended();
    if (!end && program_->age() < kMostWait) return std::nullopt;
    if (end && end->code == 0) kind = tellers()[static_cast<size_t>(next_ - 1)].theme(end->said);
    if (!kind) ask_next();
    if (!kind && program_) return std::nullopt;
  }
  asking_ = false;
  program_.reset();
  if (!kind) kind = theme_of_files(std::filesystem::path(paths::config_folder()).parent_path().string());
  return kind.value_or(ThemeKind::dark);
}

}  // namespace comera::studio
