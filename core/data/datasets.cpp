#include "core/data/datasets.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/base/paths.h"
#include "core/data/criteo.h"
#include "core/data/glue.h"
#include "core/data/idx.h"
#include "core/data/picture_folder.h"
#include "core/data/scaled_pixels.h"
#include "core/data/text_stream.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

constexpr const char* kSplits[] = {"train", "dev", "test", "dev_mismatched", "test_mismatched"};

bool is_images(const std::string& path, std::string_view bytes) {
  const std::string name = fs::path(path).filename().string();
  using namespace std::string_view_literals;
  return name.find("-ubyte") != std::string::npos || name.find("idx") != std::string::npos || bytes.starts_with("\0\0\x08"sv);
}

std::unique_ptr<Dataset> open_images(const std::string& path, const DataSpec& spec) {
  return std::make_unique<IdxDataset>(path, spec.classes);
}

std::unique_ptr<Dataset> open_texts(const std::string& path, const DataSpec& spec) {
  if (spec.vocab.empty() && spec.assets.empty())
    throw Error(ErrorCode::config, "no vocabulary for " + path, "texts need a tokenizer: a vocab.txt or tokenizer.json", "set data.vocab");
  const std::string vocab = !spec.vocab.empty() ? spec.vocab : (fs::path(spec.assets) / "vocab" / "bert-uncased.txt").string();
  return std::make_unique<GlueDataset>(path, open_tokenizer(vocab),
                                       GlueDataset::Options{spec.classes, spec.columns, spec.label_names, spec.masked});
}

bool is_stream(const std::string& path, std::string_view) { return TextStream::is(path); }

std::unique_ptr<Dataset> open_stream(const std::string& path, const DataSpec& spec) {
  return std::make_unique<TextStream>(path, spec.length, spec.vocab, spec.masked, spec.progress);
}

bool is_clicks(const std::string&, std::string_view bytes) { return CriteoPack::is(bytes); }

std::string find_split(const fs::path& folder, const std::string& split);

// The tables are for the values of the training file beside it, where there is one.
std::unique_ptr<Dataset> open_clicks(const std::string& path, const DataSpec& spec) {
  std::string training = spec.training.empty() ? path : spec.training;
  if (spec.training.empty() && spec.split != "train" && fs::path(path) != fs::path(spec.path))
    if (const std::string found = find_split(fs::path(path).parent_path(), "train"); !found.empty()) training = found;
  return std::make_unique<CriteoDataset>(path, training, spec.min_count, spec.tables, spec.progress);
}

bool is_pictures(const std::string& path, std::string_view) { return fs::is_directory(path); }

// Classes are those of the training set, where there is one beside it.
std::unique_ptr<Dataset> open_pictures(const std::string& path, const DataSpec& spec) {
  PictureOptions options{spec.classes, spec.label_names, spec.height, spec.width, spec.channels, spec.progress};
  std::string training = spec.training;
  if (training.empty() && spec.split != "train" && !is_whole(spec)) training = find_split(fs::path(path).parent_path(), "train");
  if (options.label_names.empty() && fs::is_directory(training)) options.label_names = picture_classes(training);
  return std::make_unique<PictureFolder>(path, options);
}

// A data format: how its files (or folders) are recognised and opened, and their names in a folder.
struct Format {
  bool (*is)(const std::string& path, std::string_view bytes);  // null: every file that no other row recognises
  std::unique_ptr<Dataset> (*open)(const std::string& path, const DataSpec& spec);
  const char* dev_and_test;          // what such a file may have behind dev or test in its name
  const char *dev, *test;            // other names of dev and test
  std::vector<const char*> endings;  // behind the name of the split, the most usual first
};
const Format kFormats[] = {
    {nullptr, open_texts, "_matched", "", "", {".tsv", ".jsonl", ".csv"}},
    {is_stream, open_stream, "", "", "", {".txt"}},
    {is_clicks, open_clicks, "", "", "", {".tsv.gz", ".txt.gz"}},
    {is_images,
     open_images,
     "",
     "",
     "t10k",
     {"-images-idx3-ubyte", "-images-idx3-ubyte.gz", "-images.idx3-ubyte", "-images.idx3-ubyte.gz"}},
    {is_pictures, open_pictures, "", "val", "", {""}},
};

// The file names of a split, the most usual first.
std::vector<std::string> split_files(const std::string& split) {
  std::vector<std::string> names;
  for (const Format& format : kFormats) {
    std::vector<std::string> stems = {split};
    if (*format.dev_and_test && (split == "dev" || split == "test")) stems.push_back(split + format.dev_and_test);
    for (const auto& [name, other] : {std::pair{"dev", format.dev}, {"test", format.test}})
      if (*other && split == name) stems.push_back(other);
    for (const std::string& stem : stems)
      for (const char* ending : format.endings) names.push_back(stem + ending);
  }
  return names;
}

std::string find_split(const fs::path& folder, const std::string& split) {
  for (const std::string& name : split_files(split))
    if (const std::string path = (folder / name).string(); fs::is_directory(path) ? is_picture_folder(path, false) : fs::exists(path))
      return path;
  return "";
}

// A folder of pictures by class has no splits; all of it is found then.
std::string split_in(const fs::path& folder, const std::string& split) {
  const std::string found = find_split(folder, split);
  if (!found.empty()) return found;
  std::string there;
  for (const char* other : kSplits)
    if (!find_split(folder, other).empty()) there += (there.empty() ? "" : ", ") + std::string(other);
  if (there.empty() && is_picture_folder(folder.string(), true)) return folder.string();
  throw Error(ErrorCode::config, folder.string() + " has no split '" + split + "'",
              there.empty() ? "no data file is in it" : "it has " + there,
              there.empty() ? "a folder must have train.tsv, train.csv, train.jsonl, train.txt, train-images-idx3-ubyte, or PNG and JPEG "
                              "files in a folder for each class"
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

std::string find_data_file(const DataSpec& spec) {
  const fs::path place = find_place(spec);
  std::error_code ignored;
  return fs::is_directory(place, ignored) ? split_in(place, spec.split) : place.string();
}

bool is_whole(const DataSpec& spec) { return find_data_file(spec) == find_place(spec).string(); }

std::string picture_folder(const DataSpec& spec) {
  try {
    const std::string path = find_data_file(spec);
    return fs::is_directory(path) ? path : "";
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
  for (const Format& format : kFormats)
    if (format.is ? format.is(path, bytes) : !found) found = &format;
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
