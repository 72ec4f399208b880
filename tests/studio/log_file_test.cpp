// What the window tells is kept in a file: its lines, how it is turned over, and that nothing ends when it cannot be written.
#include "app/studio/log_file.h"

#include <stdlib.h>

#include <algorithm>
#include <fstream>
#include <regex>
#include <sstream>

#include "app/studio/actions.h"
#include "core/base/paths.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;

std::vector<std::string> lines_of(const std::string& path) {
  std::istringstream text(test::read_text(path));
  std::vector<std::string> lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

TEST(LogFile, KeepsALineForEachThingThatIsTold) {
  const test::Folder folder;
  const std::string path = folder.file("made/when/needed.log");
  {
    LogFile log(path);
    EXPECT_FALSE(fs::exists(folder.file("made"))) << "nothing was told yet";
    log.write(Level::warning, "window", "the disk is nearly full");
    log.write(Level::error, "demo r-abc123", "step 1,200: the loss\nis NaN");
    log.write(Level::error, "demo r-abc123", "step 1,200: the loss\nis NaN");
    EXPECT_EQ(log.take_problem(), "");
  }
  const std::vector<std::string> lines = lines_of(path);
  ASSERT_EQ(lines.size(), 2u) << "what is told twice in a row is kept once";
  const std::string time = R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d  )";
  EXPECT_TRUE(std::regex_match(lines[0], std::regex(time + "warning  window  the disk is nearly full"))) << lines[0];
  EXPECT_TRUE(std::regex_match(lines[1], std::regex(time + "error  demo r-abc123  step 1,200: the loss is NaN"))) << lines[1];
  {
    LogFile again(path);
    again.write(Level::info, "window", "opened again");
  }
  EXPECT_EQ(lines_of(path).size(), 3u) << "it goes on where it was";
  EXPECT_FALSE(fs::exists(path + ".1"));
}

TEST(LogFile, IsTurnedOverToOneOlderFile) {
  const test::Folder folder;
  const std::string path = folder.file("studio.log");
  constexpr int64_t kMost = 4000;
  for (int i = 0; i < 300; ++i) LogFile(path, kMost).write(Level::info, "window", "line " + std::to_string(i) + std::string(50, '.'));
  ASSERT_TRUE(fs::exists(path + ".1"));
  EXPECT_LE(fs::file_size(path), static_cast<uintmax_t>(kMost));
  EXPECT_LE(fs::file_size(path + ".1"), static_cast<uintmax_t>(kMost));
  EXPECT_GT(fs::file_size(path + ".1"), static_cast<uintmax_t>(kMost) / 2);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), fs::directory_iterator()), 2) << "one older file, no more";
  std::vector<std::string> all = lines_of(path + ".1");
  const std::vector<std::string> newest = lines_of(path);
  all.insert(all.end(), newest.begin(), newest.end());
  for (size_t i = 0; i < all.size(); ++i)
    EXPECT_NE(all[i].find("line " + std::to_string(300 - all.size() + i) + "."), std::string::npos) << "the newest ones, none left out";
}

TEST(LogFile, SeveralWindowsWriteOneFile) {
  const test::Folder folder;
  const std::string path = folder.file("studio.log");
  {
    LogFile a(path, 6000), b(path, 6000);
    for (int i = 0; i < 60; ++i) {
      a.write(Level::info, "window", "a " + std::to_string(i));
      b.write(Level::info, "window", "b " + std::to_string(i));
    }
  }
  size_t count = lines_of(path).size();
  if (fs::exists(path + ".1")) count += lines_of(path + ".1").size();
  EXPECT_EQ(count, 120u);
}

TEST(LogFile, WhatCannotBeWrittenIsSaidOnceAndEndsNothing) {
  const test::Folder folder;
  const std::string in_the_way = folder.file("state"), path = in_the_way + "/comera/studio.log";
  test::write_text(in_the_way, "a file where the folder would be");
  LogFile log(path);
  const auto problem = [&] {
    std::string why;
    EXPECT_TRUE(test::wait_for([&] { return !(why = log.take_problem()).empty(); })) << "nothing was said";
    return why;
  };
  log.write(Level::error, "window", "first");
  EXPECT_TRUE(test::has(problem(), {in_the_way}));
  log.write(Level::error, "window", "second");
  EXPECT_FALSE(test::wait_for([&] { return !log.take_problem().empty(); }, 0.3)) << "said twice";
  fs::remove(in_the_way);
  log.write(Level::error, "window", "third");
  ASSERT_TRUE(test::wait_for([&] { return fs::exists(path) && !lines_of(path).empty(); })) << "it is tried again with every line";
  EXPECT_TRUE(test::has(lines_of(path)[0], {"third"}));
  fs::remove_all(in_the_way);
  test::write_text(in_the_way, "again");
  log.write(Level::error, "window", "fourth");
  EXPECT_TRUE(test::has(problem(), {in_the_way})) << "another time";
}

class WindowLog : public Clicked {
 protected:
  WindowLog() {
    if (const char* old = ::getenv("XDG_STATE_HOME")) before_ = old;
    ::setenv("XDG_STATE_HOME", folder_.path().c_str(), 1);
    ui().log_file = std::make_shared<LogFile>(paths::studio_log());
  }
  ~WindowLog() override {
    if (before_.empty())
      ::unsetenv("XDG_STATE_HOME");
    else
      ::setenv("XDG_STATE_HOME", before_.c_str(), 1);
  }
  // What was kept, when all of it is written.
  std::string kept() {
    ui().log_file.reset();
    return test::read_text(paths::studio_log());
  }

  test::Folder folder_;
  std::string before_;
};

TEST_F(WindowLog, KeepsToastsErrorsAlertsAndWhatRunsSay) {
  stage_.begin_run(Phase::running);
  frame();
  toast(ui(), Level::info, "only for a moment");
  toast(ui(), Level::error, "the file cannot be opened");
  stage_.script->records.ranks.push_back({905, "enc1.attn.q", 1, 20});
  stage_.script->records.events.push_back({0, 906, "alert", 0, R"({"kind": "no_progress", "text": "no progress"})"});
  frame();
  say([](Snapshot& s) {
    s.phase = Phase::failed;
    s.message = "the device is lost";
  });
  frame();
  frame();
  const std::string text = kept();
  EXPECT_TRUE(test::has(text, {"info  window  only for a moment", "error  window  the file cannot be opened",
                               "warning  window  Step 906: no progress", "r-test01  step 906: no progress", "the device is lost"}));
  EXPECT_EQ(text.find("ranks fell"), std::string::npos) << "the store has them";
}

TEST_F(WindowLog, ItsPathIsInTheMenuOfTheLog) {
  stage_.begin_run(Phase::running);
  for (int i = 0; i < 4; ++i) frame();  // the layout is built
  ui().front_panel = "log";
  click("log-more");
  ASSERT_TRUE(sees("says:" + folder_.path() + "/comera/studio.log"));
  ImGui::SetClipboardText("");
  click("copy-log-path");
  EXPECT_EQ(std::string(ImGui::GetClipboardText()), folder_.path() + "/comera/studio.log");
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  ui().log_file.reset();  // of a window that keeps none
  click("log-more");
  EXPECT_TRUE(sees("copy-log"));
  EXPECT_FALSE(sees("copy-log-path"));
}

TEST_F(WindowLog, WhenItCannotBeWrittenTheLogSaysSo) {
  test::write_text(folder_.file("comera"), "in the way");
  stage_.begin_run(Phase::running);
  for (int i = 0; i < 5; ++i) toast(ui(), Level::warning, "number " + std::to_string(i));
  const auto said = [&] {
    return std::count_if(ui().window_log.begin(), ui().window_log.end(),
                         [](const LogLine& line) { return line.text.find("The log file cannot be written") == 0; });
  };
  ASSERT_TRUE(stage_.until([&] { return said() > 0; }));
  for (int i = 5; i < 10; ++i) {
    toast(ui(), Level::warning, "number " + std::to_string(i));
    frame();
  }
  EXPECT_EQ(said(), 1);
  EXPECT_TRUE(std::none_of(ui().toasts.begin(), ui().toasts.end(),
                           [](const Toast& toast) { return toast.text.find("cannot be written") != std::string::npos; }));
}

}  // namespace
}  // namespace comera::studio
