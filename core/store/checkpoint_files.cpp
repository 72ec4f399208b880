#include "core/store/checkpoint_files.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/store/sqlite.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

bool is_sqlite(const fs::path& path) {
  constexpr const char* kMagic = "SQLite format 3";
  std::array<char, 16> head{};
  std::ifstream(path, std::ios::binary).read(head.data(), head.size());
  return std::memcmp(head.data(), kMagic, head.size()) == 0;
}

bool lists(const fs::path& store, const std::string& run) {
  try {
    Database db(store.string(), Database::Mode::read);
    if (db.number("SELECT count(*) FROM sqlite_master WHERE name IN ('runs', 'checkpoints')") != 2) return false;  // of another program
    Statement rows(db, "SELECT 1 FROM checkpoints JOIN runs USING(run) WHERE id = ? LIMIT 1");
    return rows.bind(run).step();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

std::string place_of_checkpoint(const std::string& path, const std::string& store) {
  constexpr std::string_view kFolder = "checkpoints/";
  const size_t at = path.rfind(kFolder);
  if (at == std::string::npos) return path;
  const fs::path beside = fs::path(paths::checkpoints_folder(store)) / path.substr(at + kFolder.size());
  std::error_code ignored;
  return fs::exists(beside, ignored) ? beside.string() : path;
}

std::string moved_checkpoint(const std::string& path, const std::string& from_run, const std::string& to_run) {
  const fs::path file(path);
  return file.parent_path().filename() == from_run ? (file.parent_path().parent_path() / to_run / file.filename()).string() : path;
}

bool listed_elsewhere(const std::string& store, const std::string& run) {
  std::error_code error;
  for (fs::directory_iterator it(fs::absolute(store).parent_path(), error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_regular_file(ignored) && !fs::equivalent(it->path(), store, ignored) && is_sqlite(it->path()) && lists(it->path(), run))
      return true;
  }
  return false;
}

std::string checkpoint_folder(const std::string& store, const std::string& run) {
  const fs::path folder(paths::checkpoints_folder(store));
  return (listed_elsewhere(store, run) ? folder / fs::path(store).filename() / run : folder / run).string();
}

}  // namespace comera
