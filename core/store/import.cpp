#include "core/store/import.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/base/csv.h"
#include "core/base/error.h"
#include "core/store/import_run.h"
#include "core/store/process.h"
#include "core/store/schema.h"
#include "core/store/tfevents.h"

namespace comera {
namespace fs = std::filesystem;
namespace {

// ---- CSV ---------------------------------------------------------------------------------------------------------

std::string lower(std::string text) {
  for (char& c : text) c = c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

class CsvImport {
 public:
  CsvImport(const std::string& path, const std::string& name) : path_(path), name_(name), file_(path, std::ios::binary), csv_(file_) {
    if (!file_) throw Error(ErrorCode::not_found, "cannot read " + path, std::strerror(errno), "check the path");
    if (!csv_.next(header_)) bad("it is empty");
    for (size_t i = 0; i < header_.size(); ++i) column_.try_emplace(lower(header_[i]), static_cast<int>(i));
    if (!has("step")) bad("its first line names no column 'step'");
    tidy_ = has("metric") && has("value");
    if (!tidy_ && metric_columns().empty()) bad("it has no column with values");
  }

  void into(Database& db, Imported& imported) {
    std::vector<std::string> fields;
    while (csv_.next(fields)) {
      if (fields.size() == 1 && fields[0].empty()) continue;  // an empty line
      if (fields.size() != header_.size())
        bad("line " + std::to_string(csv_.line()) + " has " + std::to_string(fields.size()) + " fields, the first line " +
            std::to_string(header_.size()));
      row(db, fields);
    }
    if (runs_.empty()) bad("it has no values");
    for (const std::string& key : order_) {
      imported.points += runs_.at(key).points();
      imported.ids.push_back(runs_.at(key).finish());
    }
  }

 private:
  bool has(const char* name) const { return column_.count(name) > 0; }
  const std::string& field(const std::vector<std::string>& fields, const char* name) const {
    return fields[static_cast<size_t>(column_.at(name))];
  }
  std::vector<size_t> metric_columns() const {
    std::vector<size_t> out;
    for (size_t i = 0; i < header_.size(); ++i)
      if (const std::string name = lower(header_[i]); !name.empty() && name != "run" && name != "step" && name != "wall_time")
        out.push_back(i);
    return out;
  }
  [[noreturn]] void bad(const std::string& why) const {
    throw Error(ErrorCode::config, "cannot import " + path_, why,
                "a CSV with the columns run,step,wall_time,metric,value, or step and a column a metric");
  }
  double number(const std::string& text) const {
    double value = 0;
    const std::string word = lower(text);
    if (word == "nan") return kUnknown;
    if (word == "inf" || word == "infinity" || word == "+inf") return INFINITY;
    if (word == "-inf" || word == "-infinity") return -INFINITY;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      bad("line " + std::to_string(csv_.line()) + ": '" + text.substr(0, 40) + "' is not a number");
    return value;
  }
  void row(Database& db, const std::vector<std::string>& fields) {
    const double step = number(field(fields, "step"));
    if (!(std::fabs(step) < 9e15) || step != std::floor(step))
      bad("line " + std::to_string(csv_.line()) + ": the step is not a whole number");
    const std::string key = has("run") ? field(fields, "run") : "";
    auto found = runs_.find(key);
    if (found == runs_.end()) {
      const std::string stem = fs::path(path_).stem().string();
      std::string name = !name_.empty() ? name_ : !key.empty() ? key : stem;
      if (!name_.empty() && !runs_.empty()) name += "-" + std::to_string(runs_.size() + 1);
      found = runs_.try_emplace(key, db, name, path_).first;
      order_.push_back(key);
    }
    const double wall_time = has("wall_time") && !field(fields, "wall_time").empty() ? number(field(fields, "wall_time")) : kUnknown;
    NamedValues values;
    if (tidy_)
      values.emplace_back(field(fields, "metric"), number(field(fields, "value")));
    else
      for (size_t i : metric_columns())
        if (!fields[i].empty()) values.emplace_back(header_[i], number(fields[i]));
    found->second.add(static_cast<int64_t>(step), wall_time, values);
  }

  std::string path_, name_;
  std::ifstream file_;
  CsvReader csv_;
  std::vector<std::string> header_, order_;
  std::map<std::string, int> column_;
  std::map<std::string, RunImport> runs_;
  bool tidy_ = false;
};

// ---- event files -------------------------------------------------------------------------------------------------

// Folder -> its event files in the order of their names, which begin with the time.
std::map<std::string, std::vector<std::string>> event_files(const std::string& path) {
  std::map<std::string, std::vector<std::string>> folders;
  std::error_code error;
  if (!fs::is_directory(path, error)) {
    folders[path].push_back(path);
    return folders;
  }
  for (fs::recursive_directory_iterator it(path, error), end; !error && it != end; it.increment(error))
    if (it->is_regular_file() && it->path().filename().string().find("tfevents") != std::string::npos)
      folders[it->path().parent_path().string()].push_back(it->path().string());
  for (auto& [folder, files] : folders) std::sort(files.begin(), files.end());
  return folders;
}

std::string name_of_folder(const std::string& root, const std::string& folder) {
  const fs::path relative = fs::path(folder).lexically_relative(root);
  if (relative.empty() || relative == ".") {
    const fs::path absolute = fs::absolute(folder).lexically_normal();
    return absolute.has_filename() ? absolute.filename().string() : absolute.parent_path().filename().string();
  }
  return relative.string();
}

void import_event_folder(Database& db, const std::string& name, const std::vector<std::string>& files, Imported& imported) {
  RunImport run(db, name, files[0]);
  for (const std::string& file : files) {
    const TfeventsContents contents = read_tfevents(file);
    for (const TfeventsScalar& scalar : contents.scalars) run.add(scalar.step, scalar.wall_time, {{scalar.tag, scalar.value}});
    if (contents.other_values > 0)
      imported.notes.push_back(file + ": " + std::to_string(contents.other_values) + " values that are not scalars were left out");
    if (contents.cut_short) imported.notes.push_back(file + ": the last record is not complete and was left out");
  }
  if (run.points() == 0)
    throw Error(ErrorCode::config, "cannot import " + files[0], "it holds no scalar values",
                "histograms, images and texts cannot be imported");
  imported.points += run.points();
  imported.ids.push_back(run.finish());
}

// ---- again -------------------------------------------------------------------------------------------------------

int64_t newest_run(Database& db) {
  Statement newest(db, "SELECT coalesce(max(run), 0) FROM runs");
  newest.step();
  return newest.integer(0);
}

// The new runs that have the same curves as one of the runs up to `before`.
void find_same(Database& db, int64_t before, Imported& imported) {
  Statement candidates(db, "SELECT run, id, name FROM runs WHERE run <= ? AND step = (SELECT step FROM runs WHERE run = ?) ORDER BY run");
  Statement differs(db,
                    "SELECT 1 FROM metrics m LEFT JOIN metrics o ON o.run = ?1 AND o.metric = m.metric AND o.step = m.step "
                    "WHERE m.run = ?2 AND (o.run IS NULL OR o.value IS NOT m.value) LIMIT 1");
  Statement counts(db, "SELECT (SELECT count(*) FROM metrics WHERE run = ?) = (SELECT count(*) FROM metrics WHERE run = ?)");
  for (const std::string& id : imported.ids) {
    const int64_t run = find_run(db, id);
    for (candidates.bind(before, run); candidates.step();) {
      const int64_t other = candidates.integer(0);
      if (differs.bind(other, run).step() || !counts.bind(other, run).step() || counts.integer(0) == 0) continue;
      imported.same.push_back({candidates.text(1), candidates.text(2), id});
      break;
    }
  }
}

// The new runs stay, unless all of them were here before and are refused a second time.
void settle(Database& db, int64_t before, Twice twice, Transaction& transaction, Imported& imported) {
  find_same(db, before, imported);
  if (twice == Twice::refused && imported.same.size() == imported.ids.size()) {
    imported.ids.clear();
    imported.points = 0;
    return;  // rolled back
  }
  for (const SameCurves& one : imported.same)
    imported.notes.push_back("run " + one.imported + " has the same curves as run " + one.id + " (" + one.name +
                             "), which was already here");
  transaction.commit();
}

}  // namespace

Imported import_csv(const std::string& store, const std::string& path, const std::string& name, Twice twice) {
  CsvImport csv(path, name);
  const auto db = open_store(store, StoreAccess::create);
  Imported imported;
  Transaction transaction(*db);
  const int64_t before = newest_run(*db);
  csv.into(*db, imported);
  settle(*db, before, twice, transaction, imported);
  return imported;
}

Imported import_tfevents(const std::string& store, const std::string& path, const std::string& name, Twice twice) {
  if (!fs::exists(path)) throw Error(ErrorCode::not_found, "cannot read " + path, "there is no such file or folder", "check the path");
  const auto folders = event_files(path);
  if (folders.empty())
    throw Error(ErrorCode::config, "cannot import " + path, "no file in it is named *tfevents*",
                "name the folder that TensorBoard would be given");
  const auto db = open_store(store, StoreAccess::create);
  Imported imported;
  Transaction transaction(*db);
  const int64_t before = newest_run(*db);
  for (const auto& [folder, files] : folders) {
    std::string run_name = fs::is_directory(path) ? name_of_folder(path, folder) : fs::path(path).filename().string();
    if (!name.empty()) run_name = folders.size() == 1 ? name : name + "/" + run_name;
    import_event_folder(*db, run_name, files, imported);
  }
  settle(*db, before, twice, transaction, imported);
  return imported;
}

Imported import_any(const std::string& store, const std::string& path, const std::string& name, Twice twice) {
  if (fs::is_directory(path)) return import_tfevents(store, path, name, twice);
  char begin[16] = {};
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Error(ErrorCode::not_found, "cannot read " + path, std::strerror(errno), "check the path");
  file.read(begin, sizeof begin);
  if (file.gcount() == 16 && std::memcmp(begin, "SQLite format 3", 16) == 0) return import_store(store, path);
  if (looks_like_tfevents(path)) return import_tfevents(store, path, name, twice);
  if (std::memchr(begin, 0, static_cast<size_t>(file.gcount())))
    throw Error(ErrorCode::config, "cannot import " + path, "it is neither a database, nor an event file, nor CSV text", "");
  return import_csv(store, path, name, twice);
}

}  // namespace comera
