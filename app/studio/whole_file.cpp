#include "app/studio/whole_file.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "core/base/error.h"

namespace comera::studio {
namespace fs = std::filesystem;
namespace {

std::mutex g_mutex;
std::set<std::string> g_parts;  // guarded by g_mutex: unfinished files

class Part {
 public:
  explicit Part(std::string path) : path_(std::move(path)) {
    const std::lock_guard lock(g_mutex);
    g_parts.insert(path_);
  }
  ~Part() {
    const std::lock_guard lock(g_mutex);
    g_parts.erase(path_);
    std::error_code ignored;
    fs::remove(path_, ignored);  // does nothing after the rename
  }
  Part(const Part&) = delete;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

class StoppableBuffer : public std::filebuf {
 public:
  explicit StoppableBuffer(const std::atomic<bool>& stop) : stop_(stop) {}

 protected:
  std::streamsize xsputn(const char* text, std::streamsize size) override {
    look();
    return std::filebuf::xsputn(text, size);
  }
  int_type overflow(int_type c) override {
    look();
    return std::filebuf::overflow(c);
  }

 private:
  void look() const {
    if (stop_) throw GivenUp();
  }
  const std::atomic<bool>& stop_;
};

}  // namespace

void write_whole(const std::string& path, const std::atomic<bool>& stop, const std::function<void(std::ostream&)>& fill) {
  const Part part(path + ".part");
  const auto fail = [&] { throw Error(ErrorCode::storage, "cannot write " + path, std::strerror(errno), "choose another folder"); };
  StoppableBuffer file(stop);
  if (!file.open(part.path(), std::ios::out | std::ios::binary | std::ios::trunc)) fail();
  try {
    std::ostream out(&file);
    out.exceptions(std::ios::badbit);  // lets GivenUp pass through the stream
    fill(out);
    out.flush();
  } catch (const std::ios_base::failure&) {
    fail();
  }
  if (!file.close()) fail();
  if (stop) throw GivenUp();
  std::error_code problem;
  fs::rename(part.path(), path, problem);
  if (problem) throw Error(ErrorCode::storage, "cannot write " + path, problem.message(), "choose another folder");
}

void remove_unfinished_files() {
  const std::lock_guard lock(g_mutex);
  std::error_code ignored;
  for (const std::string& path : g_parts) fs::remove(path, ignored);
}

}  // namespace comera::studio
