#include "core/store/rescue.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "core/base/error.h"
#include "core/base/paths.h"
#include "core/base/remove_later.h"
#include "core/store/checkpoint_files.h"
#include "core/store/process.h"
#include "core/store/writer_lock.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

constexpr const char* kCheckpoints = "/checkpoints/";

bool is_ours_alone(const std::string& folder) {
  struct stat info {};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() && (info.st_mode & 022) == 0;
}

struct Rescued {
  int64_t run = 0, step = 0;
  std::string id, path, home;
};

std::vector<Rescued> rescued_of(Database& db, const std::string& prefix) {
  std::vector<Rescued> found;
  Statement rows(db,
                 "SELECT run, id, checkpoints.step, path, status, heartbeat, pid, boot_id FROM checkpoints JOIN runs USING(run) "
                 "WHERE instr(path, ?) = 1");
  for (rows.bind(prefix); rows.step();) {
    const int64_t run = rows.integer(0);
    if (rows.text(4) == "running" && writer_alive(db.path(), run, rows.real(5), rows.integer(6), rows.text(7))) continue;
    found.push_back({run, rows.integer(2), rows.text(1), rows.text(3), {}});
  }
  rows.reset();
  for (Rescued& one : found) {
    fs::path folder = checkpoint_folder(db.path(), one.id);
    Statement others(db, "SELECT path FROM checkpoints WHERE run = ? AND instr(path, ?) != 1 ORDER BY step");
    for (others.bind(one.run, prefix); others.step();)
      if (const fs::path other(place_of_checkpoint(others.text(0), db.path())); other.parent_path().filename() == one.id)
        folder = other.parent_path();
    one.home = (folder / fs::path(one.path).filename()).string();
  }
  return found;
}

// Throws what goes wrong; then it stays where it is.
void bring_home(Database& db, const Rescued& one) {
  paths::ensure_folder_of(one.home);
  const std::string part = one.home + ".part-" + random_text(8);
  const RemoveLater remove_part(part);
  fs::copy_file(one.path, part);
  fs::rename(part, one.home);
  Statement(db, "UPDATE checkpoints SET path = ? WHERE run = ? AND step = ? AND path = ?")
      .bind(one.home, one.run, one.step, one.path)
      .run();
  std::error_code ignored;
  fs::remove(one.path, ignored);
}

}  // namespace

std::vector<std::string> rescue_folders() {
  std::vector<std::string> folders;
  try {
    folders.push_back(paths::state_folder() + "/rescued");
  } catch (const Error&) {  // no home
  }
  std::error_code error;
  if (const fs::path temporary = fs::temp_directory_path(error); !error) {
    const std::string folder = (temporary / ("comera-rescued-" + std::to_string(::geteuid()))).string();
    if (is_ours_alone(folder) || fs::symlink_status(folder, error).type() == fs::file_type::not_found) folders.push_back(folder);
  }
  return folders;
}

void ensure_rescue_folder(const std::string& folder) {
  paths::ensure_folder(folder);
  if (!is_ours_alone(folder)) throw Error(ErrorCode::storage, "cannot write into " + folder, "others may write there too", "");
}

void tidy_rescue_folders() {
  std::error_code ignored;
  for (const std::string& folder : rescue_folders()) {
    std::vector<fs::path> runs;
    for (fs::directory_iterator it(folder + kCheckpoints, ignored), end; !ignored && it != end; it.increment(ignored))
      runs.push_back(it->path());
    for (const fs::path& run : runs) ::rmdir(run.c_str());
    ::rmdir((folder + "/checkpoints").c_str());
    ::rmdir(folder.c_str());
  }
}

std::string rescued_checkpoints(const std::string& folder, const std::string& run_id) { return folder + kCheckpoints + run_id; }

bool has_rescued_checkpoints() {
  std::error_code ignored;
  for (const std::string& folder : rescue_folders())
    if (fs::is_directory(folder + "/checkpoints", ignored)) return true;
  return false;
}

std::vector<std::string> bring_checkpoints_home(Database& db) {
  std::vector<std::string> report;
  if (!has_rescued_checkpoints()) return report;
  for (const std::string& folder : rescue_folders())
    for (const Rescued& one : rescued_of(db, folder + kCheckpoints)) try {
        bring_home(db, one);
        report.push_back("run " + one.id + ": checkpoint " + one.home + " from " + one.path);
      } catch (const std::exception& error) {
        report.push_back(one.path + " could not be moved to " + one.home + ": " + error.what());
      }
  tidy_rescue_folders();
  return report;
}

}  // namespace comera
