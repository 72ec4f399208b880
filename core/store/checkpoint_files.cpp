#include "core/store/checkpoint_files.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/store/schema.h"
#include "core/store/sqlite.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kFolder = "checkpoints/";

// Where the part of a path after its folder `checkpoints` begins; npos: it has no such folder.
size_t inside_checkpoints(const std::string& path) {
  if (const size_t at = path.rfind("/" + std::string(kFolder)); at != std::string::npos) return at + 1 + kFolder.size();
  return path.starts_with(kFolder) ? kFolder.size() : std::string::npos;
}

// By the header alone (sqlite.org/fileformat.html): opening thousands takes seconds.
bool is_store(const fs::path& path) {
  constexpr size_t kIdAt = 68;
  std::array<char, kIdAt + 4> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  uint32_t id = 0;
  for (size_t i = 0; i < 4; ++i) id = id << 8 | static_cast<unsigned char>(head[kIdAt + i]);
  return std::memcmp(head.data(), "SQLite format 3", 16) == 0 && id == kApplicationId;
}

// A file next to a store, what a migration leaves as a precaution, or an import that was killed.
bool is_no_store(const std::string& name) {
  for (const char* ending : {"-wal", "-shm", "-journal", "-writers"})
    if (name.ends_with(ending)) return true;
  return name.find("-backup") != std::string::npos || name.find(".import-") != std::string::npos;
}

bool lists(const std::string& store, const std::string& run) {
  try {
    Database db(store, Database::Mode::look, 0.5);
    db.keeps_log();
    Statement rows(db, "SELECT 1 FROM checkpoints JOIN runs USING(run) WHERE id = ? LIMIT 1");
    return rows.bind(run).step();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

std::string checkpoint_folder(const std::string& store, const std::string& run, bool shared) {
  const fs::path folder(paths::checkpoints_folder(store));
  return (shared ? folder / fs::path(store).filename() / run : folder / run).string();
}

std::string place_of_checkpoint(const std::string& path, const std::string& store) {
  const size_t inside = inside_checkpoints(path);
  if (inside == std::string::npos) return path;
  const fs::path beside = fs::path(paths::checkpoints_folder(store)) / path.substr(inside);
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside.string() : path;
}

std::string moved_checkpoint(const std::string& path, const std::string& from_run, const std::string& to_run) {
  const fs::path file(path);
  return file.parent_path().filename() == from_run ? (file.parent_path().parent_path() / to_run / file.filename()).string() : path;
}

std::string lister_of(const std::string& store, const std::string& run, const std::vector<std::string>& paths) {
  std::error_code error;
  std::set<fs::path> folders = {fs::absolute(store).parent_path(), fs::weakly_canonical(store, error).parent_path()};
  for (const std::string& path : paths)
    if (const size_t inside = inside_checkpoints(path); inside != std::string::npos)
      folders.insert(fs::absolute(path.substr(0, inside - kFolder.size())).parent_path());
  for (const fs::path& folder : folders)
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      std::error_code ignored;
      const fs::path& other = it->path();
      // The store itself and the files next to it must not be opened, not even to read a header: closing one takes the locks from whoever
      // has it open in this process (sqlite.org/howtocorrupt.html, 2.2).
      if (!it->is_regular_file(ignored) || fs::equivalent(other, store, ignored) || is_no_store(other.filename())) continue;
      if (is_store(other) && lists(other.string(), run)) return other.string();
    }
  return "";
}

}  // namespace comera
