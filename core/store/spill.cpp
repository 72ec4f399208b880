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

#include "core/base/error.h"
#include "core/store/process.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

constexpr const char* kMark = ".spill-";
constexpr const char* kEnding = ".jsonl";

std::string line_of(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n"; }

bool merged_before(Database& db, const std::string& token) {
  Statement statement(db, "SELECT 1 FROM spills WHERE token = ?");
  return statement.bind(token).step();
}

struct Merged {
  int64_t rows = 0, damaged = 0;
  std::string run;
};

// Does all ops of a file in the caller's transaction. Nothing when the file has no header: then not a single row was
// written whole.
Merged merge_file(Database& db, const std::string& path) {
  Merged merged;
  std::ifstream file(path);
  std::string line;
  const Json header = std::getline(file, line) ? Json::parse(line, nullptr, false) : Json();
  if (!header.is_object() || !header.contains("token")) return merged;
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
      op = op_from_json(Json::parse(line), names);
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

}  // namespace

// ---- SpillFile ---------------------------------------------------------------------------------------------------

SpillFile::SpillFile(const std::string& store, const std::string& run_id, const RunStart& start, double created)
    : store_(store), run_id_(run_id) {
  header_ = line_of({{"spill", 1}, {"token", ""}, {"run", run_id}, {"created", created}, {"start", start_to_json(start)}});
}

SpillFile::~SpillFile() {
  if (file_ >= 0) ::close(file_);
}

bool SpillFile::create() {
  token_ = random_text(16);
  path_ = store_ + kMark + run_id_ + "-" + random_text(8) + kEnding;
  file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (file_ < 0) {
    problem_ = "cannot write " + path_ + ": " + std::strerror(errno);
    return false;
  }
  ::flock(file_, LOCK_EX | LOCK_NB);
  bytes_ = 0;
  return true;
}

bool SpillFile::append(const std::vector<RunOp>& ops, const MetricNames& names) {
  if (ops.empty()) return true;
  const bool fresh = file_ < 0;
  if (fresh && !create()) return false;
  std::string text;
  if (fresh) {
    Json header = Json::parse(header_);
    header["token"] = token_;
    text = line_of(header);
  }
  for (const RunOp& op : ops) text += line_of(op_to_json(op, names));
  for (size_t at = 0; at < text.size();) {
    const ssize_t wrote = ::write(file_, text.data() + at, text.size() - at);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      problem_ = "cannot write " + path_ + ": " + std::strerror(errno);
      if (fresh)
        remove();
      else if (::ftruncate(file_, bytes_) != 0)
        problem_ += ", nor cut it back";  // a line in halves is left out by a merge
      return false;
    }
    at += static_cast<size_t>(wrote);
  }
  bytes_ += static_cast<int64_t>(text.size());
  problem_.clear();
  return true;
}

void SpillFile::merge_into(Database& db) {
  if (exists()) merge_file(db, path_);
}

void SpillFile::remove() {
  if (file_ < 0) return;
  ::unlink(path_.c_str());
  ::close(file_);
  file_ = -1;
}

// ---- merging what others left ------------------------------------------------------------------------------------

std::vector<std::string> spill_files(const std::string& store) {
  const fs::path folder = fs::path(store).parent_path().empty() ? fs::path(".") : fs::path(store).parent_path();
  const std::string beginning = fs::path(store).filename().string() + kMark, ending = kEnding;
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.rfind(beginning, 0) == 0 && name.size() > ending.size() &&
        name.compare(name.size() - ending.size(), ending.size(), ending) == 0)
      files.push_back(it->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<std::string> merge_spills(Database& db) {
  std::vector<std::string> report;
  for (const std::string& path : spill_files(db.path())) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0 || ::flock(file, LOCK_EX | LOCK_NB) != 0) {  // its writer lives, or another program merges it
      if (file >= 0) ::close(file);
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
    }
    ::close(file);
  }
  return report;
}

}  // namespace comera
