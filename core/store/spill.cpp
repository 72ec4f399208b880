#include "core/store/spill.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/store/process.h"
#include "core/store/rescue.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMark = ".spill-";
constexpr const char* kEnding = ".jsonl";

bool merged_before(Database& db, const std::string& token) {
  Statement statement(db, "SELECT 1 FROM spills WHERE token = ?");
  return statement.bind(token).step();
}

struct Merged {
  int64_t rows = 0, damaged = 0;
  std::string run;
};

Json header_of(std::istream& file) {
  std::string line;
  const Json header = std::getline(file, line) ? try_parse_json(line) : Json();
  return header.is_object() && header.contains("token") ? header : Json();
}

// Does all ops of a file in the caller's transaction. Nothing when the file has no header: then not a single row was
// written whole.
Merged merge_file(Database& db, const std::string& path) {
  Merged merged;
  std::ifstream file(path);
  std::string line;
  const Json header = header_of(file);
  if (header.is_null()) return merged;
  const std::string token = header.at("token");
  merged.run = header.at("run");
  if (merged_before(db, token)) return merged;
  int64_t run = find_run(db, merged.run);
  if (run == 0) run = insert_run(db, merged.run, start_from_json(header.at("start")), header.at("created"));  // the store was replaced
  RunTables tables(db, run);
  MetricNames names;
  while (std::getline(file, line)) {
    if (file.eof()) break;  // no line end: the writer was killed in the middle of it
    std::optional<RunOp> op;
    try {
      op = op_from_json(parse_valid_json(line), names);
    } catch (const nlohmann::json::exception&) {
      ++merged.damaged;
      continue;
    }
    tables.apply(*op, names);
    ++merged.rows;
  }
  Statement(db, "INSERT INTO spills(token) VALUES(?)").bind(token).run();
  return merged;
}

// The same for every name of the file.
std::string identity_of(const std::string& store) {
  std::error_code error;
  const fs::path file = fs::weakly_canonical(store, error);
  return error ? store : file.string();
}

fs::path folder_of(const std::string& store) {
  const fs::path folder = fs::path(store).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

struct Found {
  double begun = 0;
  std::string path, run;
};

std::vector<Found> find_spills(const std::string& store) {
  std::vector<Found> found;
  const std::string identity = identity_of(store);
  const auto look_in = [&](const fs::path& folder, const std::string& beginning, bool rescued) {
    std::error_code error;
    for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
      const std::string name = it->path().filename().string();
      if (!name.starts_with(beginning) || !name.ends_with(kEnding)) continue;
      std::ifstream file(it->path());
      const Json header = header_of(file);
      if (rescued && (header.is_null() || header.value("store", "") != identity)) continue;
      found.push_back(header.is_null() ? Found{0, it->path().string(), ""}
                                       : Found{header.value("begun", 0.0), it->path().string(), header.value("run", "")});
    }
  };
  look_in(folder_of(store), fs::path(store).filename().string() + kMark, false);
  for (const std::string& folder : rescue_folders()) look_in(folder, fs::path(identity).filename().string() + kMark, true);
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return std::tie(a.begun, a.path) < std::tie(b.begun, b.path); });
  return found;
}

}  // namespace

// ---- Spill -------------------------------------------------------------------------------------------------------

Spill::Spill(const std::string& store, const std::string& run_id, const RunStart& start, double created) : store_(store), run_id_(run_id) {
  header_ = json_line({{"spill", 1},
                       {"token", ""},
                       {"run", run_id},
                       {"created", created},
                       {"start", start_to_json(start)},
                       {"store", identity_of(store)},
                       {"begun", 0.0}});
}

Spill::~Spill() {
  for (const File& file : files_) ::close(file.handle);
}

std::string Spill::paths() const {
  std::string text;
  for (const File& file : files_) text += (text.empty() ? "" : " and ") + file.path;
  return text;
}

// All of `text`, or the file is cut back.
bool Spill::write(File& file, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(file.handle, text.data() + at, text.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      problem_ += (problem_.empty() ? "" : ", ") + ("cannot write " + file.path + ": " + std::strerror(errno));
      if (::ftruncate(file.handle, file.bytes) != 0) problem_ += ", nor cut it back";  // a line in halves is left out by a merge
      return false;
    }
    at += static_cast<size_t>(wrote);
  }
  file.bytes += static_cast<int64_t>(text.size());
  return true;
}

bool Spill::create_in(const std::string& folder) {
  const std::string name = fs::path(identity_of(store_)).filename().string() + kMark + run_id_ + "-" + random_text(8) + kEnding;
  File file;
  if (folder.empty()) {
    file.path = (folder_of(store_) / (fs::path(store_).filename().string() + name.substr(name.rfind(kMark)))).string();
  } else {
    file.path = folder + "/" + name;
    try {
      ensure_rescue_folder(folder);
    } catch (const Error& error) {
      problem_ += std::string(", ") + error.what();
      return false;
    }
  }
  file.handle = ::open(file.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file.handle < 0) {
    problem_ += (problem_.empty() ? "" : ", ") + ("cannot write " + file.path + ": " + std::strerror(errno));
    return false;
  }
  ::flock(file.handle, LOCK_EX | LOCK_NB);
  Json header = parse_valid_json(header_);
  header["token"] = random_text(16);
  header["begun"] = now_s();
  if (write(file, json_line(header))) {
    files_.push_back(file);
    return true;
  }
  ::unlink(file.path.c_str());
  ::close(file.handle);
  return false;
}

bool Spill::append(const std::vector<RunOp>& ops, const MetricNames& names) {
  if (ops.empty()) return true;
  problem_.clear();
  std::string text;
  for (const RunOp& op : ops) text += json_line(op_to_json(op, names));
  if (!files_.empty() && write(files_.back(), text)) return true;
  std::vector<std::string> folders = {""};  // beside the store
  for (const std::string& folder : rescue_folders()) folders.push_back(folder);
  for (const std::string& folder : folders) {
    if (!create_in(folder)) continue;
    if (write(files_.back(), text)) {
      problem_.clear();
      return true;
    }
    ::unlink(files_.back().path.c_str());
    ::close(files_.back().handle);
    files_.pop_back();
  }
  tidy_rescue_folders();
  return false;
}

void Spill::merge_into(Database& db) {
  for (const File& file : files_) merge_file(db, file.path);
}

void Spill::remove() {
  if (files_.empty()) return;
  for (const File& file : files_) {
    ::unlink(file.path.c_str());
    ::close(file.handle);
  }
  files_.clear();
  tidy_rescue_folders();
}

// ---- merging what others left ------------------------------------------------------------------------------------

std::vector<std::string> spill_files(const std::string& store) {
  std::vector<std::string> files;
  for (const Found& found : find_spills(store)) files.push_back(found.path);
  return files;
}

bool has_spills(const std::string& store) { return !find_spills(store).empty() || has_rescued_checkpoints(); }

std::vector<std::string> merge_spills(Database& db) {
  std::vector<std::string> report;
  std::set<std::string> waiting;  // runs whose later files must wait for an earlier one
  const std::vector<Found> files = find_spills(db.path());
  for (const auto& [begun, path, run] : files) {
    if (waiting.contains(run)) continue;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 || ::flock(file, LOCK_EX | LOCK_NB) != 0) {  // its writer lives, or another program merges it
      if (file >= 0) ::close(file);
      waiting.insert(run);
      continue;
    }
    try {
      Transaction transaction(db);
      const Merged merged = merge_file(db, path);
      transaction.commit();
      std::error_code ignored;
      if (merged.damaged > 0)
        fs::rename(path, path + ".damaged", ignored);
      else
        fs::remove(path, ignored);
      report.push_back("run " + merged.run + ": " + std::to_string(merged.rows) + " rows from " + path +
                       (merged.damaged > 0 ? ", " + std::to_string(merged.damaged) + " damaged lines left out (kept as .damaged)" : ""));
    } catch (const std::exception& error) {
      report.push_back(path + " could not be merged: " + error.what());
      waiting.insert(run);
    }
    ::close(file);
  }
  if (!files.empty()) tidy_rescue_folders();
  for (std::string& line : bring_checkpoints_home(db)) report.push_back(std::move(line));
  return report;
}

}  // namespace comera
