// The threads of the window that draw nothing: background questions, writing of files, the log file, waking. Also run under the
// thread sanitizer, without the window.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <future>
#include <set>
#include <thread>
#include <vector>

#include "app/studio/background.h"
#include "app/studio/log_file.h"
#include "app/studio/parts/file_writer.h"
#include "app/studio/shown_run/run_view.h"
#include "app/studio/waker.h"
#include "app/studio/whole_file.h"
#include "tests/store/support.h"

namespace comera::studio {
namespace {

namespace fs = std::filesystem;
using test::Folder;
using test::wait_for;

// Holds a thread until it is opened.
class Gate {
 public:
  void wait() const { opened_.wait(); }
  void open() { promise_.set_value(); }

 private:
  std::promise<void> promise_;
  std::shared_future<void> opened_ = promise_.get_future().share();
};

std::set<std::string> names_in(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& file : fs::directory_iterator(folder)) names.insert(file.path().filename().string());
  return names;
}

TEST(Background, OnlyTheNewestQuestionCounts) {
  Gate gate;
  std::promise<void> began;
  std::vector<int> worked;
  std::atomic<int> woken = 0;
  {
    Background<int, int> twice(
        [&](int question) {
          worked.push_back(question);
          if (question == 1) {
            began.set_value();
            gate.wait();
          }
          return 2 * question;
        },
        [&] { ++woken; });
    EXPECT_FALSE(twice.busy());
    twice.ask(1);
    EXPECT_TRUE(twice.busy());
    began.get_future().wait();
    EXPECT_TRUE(twice.busy()) << "it is being answered";
    EXPECT_EQ(twice.latest(), nullptr);
    for (int question = 2; question <= 50; ++question) twice.ask(question);
    gate.open();
    ASSERT_TRUE(wait_for([&] { return twice.latest() && twice.latest()->number == 50; }));
    EXPECT_EQ(twice.latest()->answer, 100);
    EXPECT_TRUE(wait_for([&] { return !twice.busy(); }));
  }
  EXPECT_EQ(worked, (std::vector<int>{1, 50}));
  EXPECT_EQ(woken, 2);
}

TEST(Waker, TouchesNothingAfterItWasClosed) {
  Waker waker;
  bool open = false;  // written while no post can run: the thread sanitizer sees one that does
  std::atomic<bool> end = false;
  std::atomic<int> posts = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      while (!end) waker.wake();
    });
  for (int round = 1; round <= 20; ++round) {
    open = true;
    waker.open([&] {
      EXPECT_TRUE(open);
      ++posts;
    });
    const int before = posts;
    EXPECT_TRUE(wait_for([&] { return posts > before; }));
    waker.close();
    open = false;
    EXPECT_TRUE(waker.take());
  }
  end = true;
  for (std::thread& thread : threads) thread.join();
  waker.take();
  EXPECT_FALSE(waker.take());
}

TEST(FileWriter, WritesInOrderAndOverNothing) {
  const Folder folder;
  FileWriter writer;
  for (int i = 0; i < 20; ++i) writer.write({folder.file("charts"), {{"a", "csv", [i] { return std::to_string(i); }}}});
  std::vector<FileWriter::Result> results;
  ASSERT_TRUE(wait_for([&] {
    for (FileWriter::Result& result : writer.take_results()) results.push_back(std::move(result));
    return results.size() == 20;
  }));
  EXPECT_FALSE(writer.busy());
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(results[static_cast<size_t>(i)].written.size(), 1u) << results[static_cast<size_t>(i)].problem;
    EXPECT_EQ(test::read_text(results[static_cast<size_t>(i)].written[0]), std::to_string(i));
  }
  EXPECT_EQ(names_in(folder.file("charts")).size(), 20u);
}

TEST(FileWriter, WritesAllBeforeItGoes) {
  const Folder folder;
  {
    FileWriter writer;
    for (int i = 0; i < 5; ++i) writer.write({folder.path(), {{"a", "csv", [] { return std::string(1 << 16, 'x'); }}}});
  }
  EXPECT_EQ(names_in(folder.path()), (std::set<std::string>{"a.csv", "a-2.csv", "a-3.csv", "a-4.csv", "a-5.csv"}));
}

TEST(FileWriter, IsGivenUpWithoutUnfinishedFiles) {
  const Folder folder;
  Gate gate;
  std::promise<void> began;
  FileWriter writer;
  const auto slow = [&] {
    began.set_value();
    gate.wait();
    return std::string("late");
  };
  writer.write({folder.path(), {{"first", "csv", [] { return std::string("x"); }}, {"slow", "csv", slow}, {"third", "csv", [] {
                                                                                                             return std::string("x");
                                                                                                           }}}});
  writer.write({folder.path(), {{"other", "csv", [] { return std::string("x"); }}}});
  began.get_future().wait();
  EXPECT_EQ(writer.unfinished().files, 3u);
  EXPECT_EQ(writer.unfinished().folder, folder.path());
  writer.give_up();
  EXPECT_TRUE(writer.busy());
  gate.open();
  std::vector<FileWriter::Result> results;
  ASSERT_TRUE(wait_for([&] {
    for (FileWriter::Result& result : writer.take_results()) results.push_back(std::move(result));
    return !writer.busy();
  }));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_TRUE(results[0].given_up && results[1].given_up);
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"first.csv"}) << "a whole file stays";
  EXPECT_EQ(writer.unfinished().files, 0u);
  writer.write({folder.path(), {{"again", "csv", [] { return std::string("x"); }}}});
  ASSERT_TRUE(wait_for([&] { return names_in(folder.path()).contains("again.csv"); })) << "only that was given up";
}

const std::atomic<bool> kGoOn = false;

TEST(WholeFile, AppearsWholeOrNotAtAll) {
  const Folder folder;
  const std::string path = folder.file("a.csv");
  write_whole(path, kGoOn, [&](std::ostream& out) {
    out << "whole";
    out.flush();
    EXPECT_FALSE(fs::exists(path)) << "before its end";
  });
  EXPECT_EQ(test::read_text(path), "whole");
  EXPECT_THROW(write_whole(folder.file("b.csv"), kGoOn,
                           [](std::ostream& out) {
                             out << "half";
                             throw std::runtime_error("no more");
                           }),
               std::runtime_error);
  EXPECT_NE(test::error_of([&] { write_whole(folder.file("none/c.csv"), kGoOn, [](std::ostream&) {}); }), "");
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"a.csv"});
}

TEST(WholeFile, StopsWhileItIsWritten) {
  const Folder folder;
  std::atomic<bool> stop = false;
  int lines = 0;
  const auto fill = [&](std::ostream& out) {
    for (; lines < 100'000; ++lines) {
      if (lines == 10) stop = true;
      out << "a line that is long enough to be written one day\n";
    }
  };
  EXPECT_THROW(write_whole(folder.file("a.csv"), stop, fill), GivenUp);
  EXPECT_EQ(lines, 10);
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(WholeFile, LeavesNothingWhereTheDiskIsFull) {
  const Folder folder;
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 16, before.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &small);
  const std::string error =
      test::error_of([&] { write_whole(folder.file("a.csv"), kGoOn, [](std::ostream& out) { out << std::string(1 << 20, 'x'); }); });
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_TRUE(test::has(error, {test::code(ErrorCode::storage), "cannot write " + folder.file("a.csv"), "another folder"}));
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(WholeFile, IsRemovedWhereTheProcessEndsAtOnce) {
  const Folder folder;
  EXPECT_NE(test::error_of([&] {
              write_whole(folder.file("a.csv"), kGoOn, [&](std::ostream& out) {
                out << std::string(1 << 20, 'x');
                EXPECT_EQ(names_in(folder.path()).size(), 1u);
                remove_unfinished_files();
                EXPECT_TRUE(names_in(folder.path()).empty());
              });
            }),
            "");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(LogFile, TakesLinesOfManyThreads) {
  const Folder folder;
  const std::string path = folder.file("window.log");
  {
    LogFile log(path);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&log, t] {
        for (int i = 0; i < 100; ++i) log.write(Level::info, "thread " + std::to_string(t), "line " + std::to_string(i));
        EXPECT_EQ(log.take_problem(), "");
      });
    for (std::thread& thread : threads) thread.join();
  }
  const std::string text = test::read_text(path);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 400);
}

}  // namespace
}  // namespace comera::studio
