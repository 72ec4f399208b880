// Folders that clean up after themselves, and small shared checks for the tests of the store.
#pragma once
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mount.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <string>
#include <thread>

#include "core/base/error.h"
#include "core/store/run_reader.h"
#include "core/store/run_writer.h"
#include "core/store/sqlite.h"

namespace comera::test {

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "comera-test-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  std::string store() const { return file("runs.db"); }

 private:
  std::string path_;
};

// A variable of the environment for as long as this lives. Not while other threads read the environment.
class Variable {
 public:
  Variable(std::string name, const std::string& value) : name_(std::move(name)) {
    if (const char* before = std::getenv(name_.c_str())) before_ = before;
    ::setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { before_ ? ::setenv(name_.c_str(), before_->c_str(), 1) : ::unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;

 private:
  std::string name_;
  std::optional<std::string> before_;
};

// Where what a disk has no room for goes: a state folder and a folder of temporary files inside `folder`.
struct RescuePlaces {
  explicit RescuePlaces(const Folder& folder) : state("XDG_STATE_HOME", folder.file("state")), temporary("TMPDIR", folder.file("tmp")) {
    std::filesystem::create_directory(folder.file("tmp"));
  }
  Variable state, temporary;
};

// A disk of 2 MiB that can be filled to the last byte. Needs the right to mount it.
class SmallDisk {
 public:
  explicit SmallDisk(const std::string& path) : path_(path) {
    std::filesystem::create_directory(path);
    mounted_ = ::mount("tmpfs", path.c_str(), "tmpfs", 0, "size=2m") == 0;
  }
  ~SmallDisk() {
    if (mounted_) ::umount2(path_.c_str(), MNT_DETACH);
  }
  bool mounted() const { return mounted_; }
  void fill() {
    std::ofstream ballast(path_ + "/ballast");
    ballast << std::string(8 << 20, 'x');
    ballast.flush();
    EXPECT_FALSE(ballast) << "the disk should be full";
  }
  void empty() { std::filesystem::remove(path_ + "/ballast"); }

 private:
  std::string path_;
  bool mounted_;
};

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream out;
  out << file.rdbuf();
  return out.str();
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
}

// The Error that `action` throws, as "code|what|why|hint"; "" when it throws none.
inline std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return std::to_string(static_cast<int>(error.code())) + "|" + error.what() + "|" + error.why() + "|" + error.hint();
  }
  return "";
}

// Whether `text` holds all parts; says what is missing.
inline ::testing::AssertionResult has(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    if (text.find(part) == std::string::npos) return ::testing::AssertionFailure() << "'" << part << "' is not in: " << text;
  return ::testing::AssertionSuccess();
}

inline std::string code(ErrorCode value) { return std::to_string(static_cast<int>(value)) + "|"; }

// Waits until `condition` holds; false after `seconds`.
inline bool wait_for(const std::function<bool()>& condition, double seconds = 20) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return true;
}

// Everything faster than in real use, so that failures and recoveries fit into a test.
inline RunWriterOptions quick() {
  RunWriterOptions options;
  options.commit_s = 0.02;
  options.heartbeat_s = 0.05;
  options.busy_s = 0.05;
  options.retry_s = 0.05;
  options.spill_after_s = 1000;
  return options;
}

inline RunStart start_of(const std::string& name) {
  RunStart start;
  start.name = name;
  start.config = R"({"train":{"batch":32}})";
  start.seed = 7;
  start.device = "CPU, 2 threads";
  start.data_fingerprint = "abc";
  start.total_steps = 100;
  start.tags = {"good"};
  return start;
}

// A finished run with steps 1..steps of metric "loss" = 1 / step. Returns its id.
inline std::string make_run(const std::string& store, const std::string& name, int64_t steps = 3) {
  RunWriter writer(store, start_of(name), quick());
  for (int64_t step = 1; step <= steps; ++step) writer.metrics(step, NamedValues{{"loss", 1.0 / static_cast<double>(step)}});
  writer.finish("finished");
  EXPECT_TRUE(writer.flush()) << writer.store_problem();
  return writer.run_id();
}

}  // namespace comera::test
