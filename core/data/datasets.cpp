#include "core/data/datasets.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/mapped_file.h"
#include "core/base/paths.h"
#include "core/data/documents.h"
#include "core/data/formats.h"
#include "core/data/parquet.h"
#include "core/data/picture_folder.h"
#include "core/data/scaled_pixels.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSplits[] = {"train", "dev", "test", "dev_mismatched", "test_mismatched"};

// The names of a split without endings, the most usual first.
std::vector<std::string> stems_of(const Format& format, const std::string& split) {
  std::vector<std::string> stems;
  const auto add = [&](const std::string& stem) {
    stems.push_back(stem);
    if (*format.dev_and_test && (split == "dev" || split == "test")) stems.push_back(stem + format.dev_and_test);
  };
  add(split);
  for (const auto& [name, other] : {std::pair{std::string("dev"), format.dev}, {std::string("test"), format.test}})
    if (*other && split.starts_with(name)) add(other + split.substr(name.size()));
  return stems;
}

// The file names of a split, the most usual first.
std::vector<std::string> split_files(const std::string& split) {
  std::vector<std::string> names;
  for (const Format* format : kFormats) {
    for (const std::string& stem : stems_of(*format, split))
      for (const char* ending : format->endings)
        if (ending) names.push_back(stem + ending);
  }
  return names;
}

// As Hugging Face's data sets are stored: in parts, all of them often in a folder `data`.
std::string find_parquet_split(const fs::path& folder, const std::string& split) {
  for (const fs::path& place : {folder, folder / "data"})
    for (const std::string& stem : stems_of(kTextFormat, split)) {
      std::error_code ignored;
      if (const fs::path whole = place / (stem + ".parquet"); fs::exists(whole, ignored)) return whole.string();
      if (const std::string part = find_parquet_part(place.string(), stem); !part.empty()) return part;
    }
  return "";
}

// A folder of pictures by class, or of texts, may have no splits; all of it is found then.
std::string split_in(const fs::path& folder, const DataSpec& spec) {
  const std::string& split = spec.split;
  const auto find = [&](const std::string& wanted) {
    std::string found = find_split(folder.string(), wanted);
    if (found.empty() && spec.joins())
      for (const std::string& stem : stems_of(kStreamFormat, wanted))
        if (found.empty() && is_folder_of_texts((folder / stem).string())) found = (folder / stem).string();
    return found;
  };
  if (const std::string found = find(split); !found.empty()) return found;
  std::string there;
  for (const char* other : kSplits)
    if (!find(other).empty()) there += (there.empty() ? "" : ", ") + std::string(other);
  if (there.empty() && is_picture_folder(folder.string(), true)) return folder.string();
  if (there.empty() && spec.joins() && is_folder_of_texts(folder.string())) return folder.string();
  throw Error(ErrorCode::config, folder.string() + " has no split '" + split + "'",
              there.empty() ? "no data file is in it" : "it has " + there,
              there.empty() ? "a folder must have train.tsv, train.csv, train.jsonl, train.parquet, train.txt, train-images-idx3-ubyte, "
                              "PNG and JPEG files in a folder for each class, or texts for a language model"
                            : "choose one of the sets, or name a file");
}

bool is_name(const std::string& path) { return !path.empty() && path.find('/') == std::string::npos; }

[[noreturn]] void nothing_there(const DataSpec& spec) {
  std::vector<std::string> names;
  if (!spec.assets.empty() && fs::exists(fs::path(spec.assets) / "data" / "sets.json"))
    for (const KnownSet& set : known_sets(spec.assets)) names.push_back(set.name);
  const bool known = std::find(names.begin(), names.end(), spec.path) != names.end();
  if (known)
    throw Error(ErrorCode::not_found, "the set " + spec.path + " is not here yet", "it is not in " + paths::sets_folder(),
                "comera data get " + spec.path);
  const std::string near = is_name(spec.path) ? nearest_name(spec.path, names) : "";
  throw Error(ErrorCode::not_found, "there is no data at '" + spec.path + "'", "no such file or folder, and no set has this name",
              near.empty() ? "comera data list shows the sets" : "did you mean " + near + "?");
}

// The file or folder that is meant.
fs::path find_place(const DataSpec& spec) {
  std::vector<fs::path> places = {spec.path};
  if (is_name(spec.path)) {
    places.push_back(fs::path(paths::sets_folder()) / spec.path);
    if (!spec.assets.empty()) places.push_back(fs::path(spec.assets) / "data" / spec.path);
  }
  std::error_code ignored;  // a place that cannot be looked at is one where nothing is
  for (const fs::path& place : places) {
    if (!place.empty() && fs::exists(place, ignored)) return place;
  }
  nothing_there(spec);
}

}  // namespace

TextTask text_task(const std::string& task) {
  return task == "masked" ? TextTask::masked : task == "language" ? TextTask::language : TextTask::classification;
}

std::string find_split(const std::string& folder, const std::string& split) {
  for (const std::string& name : split_files(split))
    if (const std::string path = (fs::path(folder) / name).string();
        fs::is_directory(path) ? is_picture_folder(path, false) : fs::exists(path))
      return path;
  return find_parquet_split(folder, split);
}

std::string find_data_file(const DataSpec& spec) {
  const fs::path place = find_place(spec);
  std::error_code ignored;
  return fs::is_directory(place, ignored) ? split_in(place, spec) : place.string();
}

bool is_whole(const DataSpec& spec) { return find_data_file(spec) == find_place(spec).string(); }

std::string picture_folder(const DataSpec& spec) {
  try {
    const std::string path = find_data_file(spec);
    return fs::is_directory(path) && is_picture_folder(path, false) ? path : "";
  } catch (const Error&) {
    return "";
  }
}

std::unique_ptr<Dataset> open_dataset(const DataSpec& spec) {
  CHECK(spec.classes >= 0);
  const std::string path = find_data_file(spec);
  std::optional<MappedFile> file;
  if (!fs::is_directory(path)) file.emplace(path);
  const std::string_view bytes = file ? file->bytes() : std::string_view();
  const Format* found = nullptr;
  for (const Format* format : kFormats)
    if (format->is ? format->is(path, bytes) : !found) found = format;
  std::unique_ptr<Dataset> data = found->open(path, spec);
  if ((spec.pixel_mean == 0 && spec.pixel_std == 1) || !data->info().fields.find("pixels")) return data;
  return std::make_unique<ScaledPixels>(std::move(data), spec.pixel_mean, spec.pixel_std);
}

std::vector<KnownSet> known_sets(const std::string& assets) {
  const std::string path = (fs::path(assets) / "data" / "sets.json").string();
  const Json table = read_json_file(path);
  std::vector<KnownSet> sets;
  try {
    for (const Json& row : table)
      sets.push_back({row.at("name"), row.at("about"), row.at("format"), row.at("licence"), row.at("package"), row.at("bytes")});
  } catch (const Json::exception& e) {
    throw Error(ErrorCode::config, path + " is not the list of sets", e.what(), "install CoMERA Studio's assets again");
  }
  return sets;
}

}  // namespace comera
