// Where files go: the XDG rules, and folders only on demand.
#include "core/base/paths.h"

#include <stdlib.h>

#include "tests/store/support.h"

namespace comera {
namespace {

// Sets a variable for one test; nullptr removes it.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = ::getenv(name)) old_ = old, had_ = true;
    if (value)
      ::setenv(name, value, 1);
    else
      ::unsetenv(name);
  }
  ~Environment() {
    if (had_)
      ::setenv(name_, old_.c_str(), 1);
    else
      ::unsetenv(name_);
  }

 private:
  const char* name_;
  std::string old_;
  bool had_ = false;
};

TEST(Paths, DefaultsLieInHome) {
  test::Folder folder;
  const std::string home = folder.path();
  Environment a("HOME", home.c_str()), b("XDG_DATA_HOME", nullptr), c("XDG_CONFIG_HOME", nullptr), d("XDG_STATE_HOME", nullptr),
      e("XDG_CACHE_HOME", nullptr), f("COMERA_STORE", nullptr);
  EXPECT_EQ(paths::data_folder(), home + "/.local/share/comera");
  EXPECT_EQ(paths::config_folder(), home + "/.config/comera");
  EXPECT_EQ(paths::config_file(), home + "/.config/comera/config.json");
  EXPECT_EQ(paths::state_folder(), home + "/.local/state/comera");
  EXPECT_EQ(paths::studio_log(), home + "/.local/state/comera/studio.log");
  EXPECT_EQ(paths::cache_folder(), home + "/.cache/comera");
  EXPECT_EQ(paths::runs_database(), home + "/.local/share/comera/runs.db");
  EXPECT_EQ(paths::checkpoints_folder(paths::runs_database()), home + "/.local/share/comera/checkpoints");
  EXPECT_TRUE(std::filesystem::is_empty(home)) << "asking must not create anything";
}

TEST(Paths, VariablesMoveThem) {
  Environment a("XDG_DATA_HOME", "/data"), b("COMERA_STORE", nullptr);
  EXPECT_EQ(paths::runs_database(), "/data/comera/runs.db");
  Environment c("XDG_DATA_HOME", "relative"), d("HOME", "/h");  // the rules: not absolute, so ignored
  EXPECT_EQ(paths::data_folder(), "/h/.local/share/comera");
  Environment e("COMERA_STORE", "/elsewhere/x.db");
  EXPECT_EQ(paths::runs_database(), "/elsewhere/x.db");
  Environment f("COMERA_STORE", "");
  EXPECT_EQ(paths::runs_database(), "/h/.local/share/comera/runs.db");
}

TEST(Paths, FoldersOnDemand) {
  test::Folder folder;
  const std::string deep = folder.file("a/b/c");
  EXPECT_EQ(paths::ensure_folder(deep), deep);
  EXPECT_EQ(paths::ensure_folder(deep + "/"), deep + "/");
  EXPECT_TRUE(std::filesystem::is_directory(deep));
  EXPECT_EQ(std::filesystem::status(deep).permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(paths::ensure_folder_of("file-without-folder.db"), "file-without-folder.db");
  test::write_text(folder.file("file"), "x");
  for (const char* blocked : {"file", "file/below"})
    EXPECT_TRUE(test::has(test::error_of([&] { paths::ensure_folder(folder.file(blocked)); }),
                          {test::code(ErrorCode::storage), "cannot create folder"}));
}

}  // namespace
}  // namespace comera
