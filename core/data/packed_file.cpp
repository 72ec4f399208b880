#include "core/data/packed_file.h"

#include <unistd.h>

#include <atomic>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/paths.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

fs::path cached_data() { return fs::path(paths::cache_folder()) / "data"; }

// A file in the cache folder, or where temporary files are if that cannot be written to.
std::string writable_place(const std::string& name, std::ofstream& out) {
  static std::atomic<int> number = 0;  // threads of a program may pack the same file
  const std::string own = name + "." + std::to_string(::getpid()) + "." + std::to_string(number++);
  for (const bool in_cache : {true, false}) {
    try {
      const fs::path folder = in_cache ? fs::path(paths::ensure_folder(cached_data().string())) : fs::temp_directory_path();
      const std::string path = (folder / own).string();
      out.open(path, std::ios::binary | std::ios::trunc);
      if (out) return path;
    } catch (const std::exception&) {  // no such place
    }
    out.clear();
  }
  throw Error(ErrorCode::storage, "no room for the packed form of a data set",
              "neither the cache folder nor the temporary folder can be written to", "set XDG_CACHE_HOME or TMPDIR to a folder with room");
}

}  // namespace

void PackedOutput::write(const void* data, size_t bytes) {
  out_.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (!out_) no_room();
}

void PackedOutput::write_at_begin(const void* data, size_t bytes) {
  out_.seekp(0);
  write(data, bytes);
}

void PackedOutput::close() {
  out_.close();
  if (!out_) no_room();
}

void PackedOutput::no_room() const {
  throw Error(ErrorCode::storage, "cannot write the packed form of " + source_, "the disk is full, or cannot be written to",
              "make room, or set XDG_CACHE_HOME to a folder with room");
}

void open_packed(const std::string& name, const std::string& source, const std::function<bool(const std::string&)>& open,
                 const std::function<void(PackedOutput&)>& write) {
  const fs::path kept = cached_data() / name;
  std::error_code problem;
  if (fs::exists(kept, problem) && open(kept.string())) return;
  std::ofstream out;
  const std::string unfinished = writable_place(name, out);
  struct Remove {  // an unfinished file, and one in the temporary folder once it is mapped
    const std::string& path;
    ~Remove() {
      std::error_code ignored;
      fs::remove(path, ignored);
    }
  } remove{unfinished};
  PackedOutput output(source, out);
  write(output);
  output.close();
  std::string finished = unfinished;
  if (fs::path(unfinished).parent_path() == kept.parent_path()) {
    fs::rename(unfinished, kept, problem);
    if (!problem) finished = kept.string();
  }
  CHECK(open(finished), "the packed form of " << source << " cannot be read");
}

}  // namespace comera
