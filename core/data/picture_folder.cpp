#include "core/data/picture_folder.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/mapped_file.h"
#include "core/data/formats.h"
#include "core/data/sha256.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepest = 32;                 // folders inside a class
constexpr size_t kLookedAt = 4096;           // bytes at each end of a file, of the fingerprint
constexpr int64_t kMostFolders = 1'000'000;  // as model.classes

bool hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

bool has_ending(const fs::path& path, std::initializer_list<const char*> endings) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return std::find(endings.begin(), endings.end(), ending) != endings.end();
}
bool is_picture(const fs::path& path) { return has_ending(path, {".png", ".jpg", ".jpeg"}); }
// Formats that torchvision reads besides.
bool is_other_picture(const fs::path& path) { return has_ending(path, {".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp"}); }

// body(entry) for each entry of a folder that is not hidden, in any order.
template <class Body>
void each_entry(const fs::path& folder, const Body& body) {
  std::error_code problem;
  fs::directory_iterator at(folder, problem);
  for (; !problem && at != fs::directory_iterator(); at.increment(problem))
    if (!hidden(at->path())) body(*at);
  if (problem) throw Error(ErrorCode::storage, "cannot read the folder " + folder.string(), problem.message(), "check its rights");
}

bool is_folder(const fs::directory_entry& entry) {
  std::error_code ignored;
  return entry.is_directory(ignored);
}

// Pictures of a class, as (folder in it, name). Links to folders are not followed below it: they may lead back.
void collect(const fs::path& folder, const std::string& inside, int depth, std::vector<std::pair<std::string, std::string>>& found,
             int64_t& others) {
  each_entry(folder, [&](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    if (!is_folder(entry)) {
      if (is_picture(entry.path())) found.emplace_back(inside, name);
      if (is_other_picture(entry.path())) ++others;
    } else if (depth < kDeepest && !entry.is_symlink()) {
      collect(entry.path(), inside + name + "/", depth + 1, found, others);
    }
  });
}

// Whether a class folder has a picture, and whether it has anything; also one folder below.
struct Content {
  bool pictures = false, any = false;
};
Content content_of(const fs::path& folder, bool deeper) {
  Content content;
  std::error_code problem;
  std::vector<fs::path> below;
  for (fs::directory_iterator at(folder, problem); !problem && at != fs::directory_iterator() && !content.pictures; at.increment(problem)) {
    if (hidden(at->path())) continue;
    content.any = true;
    if (is_folder(*at))
      below.push_back(at->path());
    else
      content.pictures = is_picture(at->path());
  }
  for (size_t i = 0; deeper && i < below.size() && !content.pictures; ++i) content.pictures = content_of(below[i], false).pictures;
  return content;
}

}  // namespace

std::vector<std::string> picture_classes(const std::string& folder) {
  std::vector<std::string> names;
  each_entry(folder, [&](const fs::directory_entry& entry) {
    if (is_folder(entry)) names.push_back(entry.path().filename().string());
  });
  std::sort(names.begin(), names.end());
  return names;
}

bool is_picture_folder(const std::string& folder, bool nothing_else) {
  bool some = false;
  std::error_code problem;
  for (fs::directory_iterator at(folder, problem); !problem && at != fs::directory_iterator(); at.increment(problem)) {
    if (hidden(at->path()) || !is_folder(*at)) continue;
    const Content content = content_of(at->path(), true);
    if (nothing_else && content.any && !content.pictures) return false;
    some |= content.pictures;
  }
  return some;
}

PictureFolder::PictureFolder(const std::string& folder, const PictureOptions& options) : folder_(folder) {
  const fs::path path = fs::path(folder).lexically_normal();
  info_.name = (path.has_filename() ? path : path.parent_path()).filename().string();
  list(options);
  info_.rows = static_cast<int64_t>(files_.size());
  info_.height = options.height, info_.width = options.width, info_.channels = options.channels;
  if (info_.height == 0 || info_.width == 0 || info_.channels == 0) {
    const Picture first = picture(files_.front(), 0);
    if (info_.height == 0 || info_.width == 0) info_.height = first.height, info_.width = first.width;
    if (info_.channels == 0) info_.channels = first.channels;
  }
  if (info_.channels != 1 && info_.channels != 3)
    throw Error(ErrorCode::config, "the model's images have " + std::to_string(info_.channels) + " channels", "pictures have 1 (gray) or 3",
                "set the model's channels to 1 or 3");
  describe_images(info_);
  info_.fingerprint = look_at_files(options.progress);
}

void PictureFolder::list(const PictureOptions& options) {
  const std::vector<std::string> folders = picture_classes(folder_);
  const std::vector<std::string>& names = options.label_names.empty() ? folders : options.label_names;
  for (const std::string& name : folders) {
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end())
      throw Error(ErrorCode::config, folder_ + " has the class " + name, "the training set has no such class",
                  "move the folder to another place, or give the training set one");
    std::vector<std::pair<std::string, std::string>> pictures;
    collect(fs::path(folder_) / name, "", 0, pictures, info_.left_out);
    if (pictures.empty())
      throw Error(ErrorCode::config, folder_ + "/" + name + " has no pictures", "every folder is a class, and needs a PNG or JPEG file",
                  "name the folder that has the folders of classes, or put pictures into it");
    std::sort(pictures.begin(), pictures.end());
    for (const auto& [inside, file] : pictures) files_.push_back({name + "/" + inside + file, static_cast<int32_t>(known - names.begin())});
  }
  if (files_.empty())
    throw Error(ErrorCode::config, folder_ + " has no pictures", "there is no folder in it", "make a folder of pictures for each class");
  const auto count = static_cast<int64_t>(names.size());
  if (count > (options.classes > 0 ? options.classes : kMostFolders))
    throw Error(ErrorCode::config, folder_ + " has " + std::to_string(count) + " classes",
                "the model has " + std::to_string(options.classes > 0 ? options.classes : kMostFolders), "set the number of classes");
  info_.classes = options.classes > 0 ? options.classes : count;
  if (info_.classes == count) info_.label_names = names;
}

std::string PictureFolder::look_at_files(const std::function<void(double)>& progress) {
  Sha256 all;
  for (size_t i = 0; i < files_.size(); ++i) {
    const MappedFile file((fs::path(folder_) / files_[i].name).string());
    files_[i].state = file.state();
    const std::string_view bytes = file.bytes();
    all.update(files_[i].name + '\0' + std::to_string(bytes.size()) + '\0' + std::to_string(files_[i].label) + '\0');
    all.update(bytes.substr(0, kLookedAt));
    if (bytes.size() > kLookedAt) all.update(bytes.substr(std::max(kLookedAt, bytes.size() - std::min(bytes.size(), kLookedAt))));
    if (progress && i % 1000 == 999) progress(static_cast<double>(i + 1) / static_cast<double>(files_.size()));
  }
  if (progress) progress(1);
  all.update(std::to_string(info_.classes));
  return all.hex();
}

Picture PictureFolder::picture(const File& file, int64_t channels) const {
  const MappedFile mapped((fs::path(folder_) / file.name).string());
  if (file.state != FileState() && mapped.state() != file.state) file_was_changed(mapped.path(), file.state, mapped.state(), kChangedData);
  return read_picture(mapped.path(), mapped.bytes(), channels);
}

void PictureFolder::read(int64_t row, int64_t, Columns& out) const {
  CHECK(row >= 0 && row < info_.rows, "row " << row << " of " << info_.rows);
  const File& file = files_[static_cast<size_t>(row)];
  const Picture fits = fitted(picture(file, info_.channels), info_.height, info_.width);
  std::vector<float>& pixels = out.reals["pixels"];
  pixels.resize(fits.pixels.size());
  std::transform(fits.pixels.begin(), fits.pixels.end(), pixels.begin(),
                 [](unsigned char value) { return static_cast<float>(value) * (1.0f / 255.0f); });
  out.ints["labels"].assign(1, file.label);
}

std::string PictureFolder::shown(int64_t row, int64_t) const {
  CHECK(row >= 0 && row < info_.rows, "row " << row << " of " << info_.rows);
  const File& file = files_[static_cast<size_t>(row)];
  const Picture stored = picture(file, 0);
  const auto size = [](int64_t height, int64_t width) { return std::to_string(height) + " x " + std::to_string(width); };
  std::string text = file.name + ", " + size(stored.height, stored.width);
  if (stored.height != info_.height || stored.width != info_.width) text += " as " + size(info_.height, info_.width);
  return text + (info_.channels == 1 ? " gray" : " colours") + "  ->  " + label_text(file.label);
}

namespace {

bool is_pictures(const std::string& path, std::string_view) { return fs::is_directory(path) && is_picture_folder(path, false); }

// Classes are those of the training set, where there is one beside it.
std::unique_ptr<Dataset> open_pictures(const std::string& path, const DataSpec& spec) {
  PictureOptions options{spec.classes, spec.label_names, spec.height, spec.width, spec.channels, spec.progress};
  std::string training = spec.training;
  if (training.empty() && spec.split != "train" && !is_whole(spec)) training = find_split(fs::path(path).parent_path().string(), "train");
  if (options.label_names.empty() && fs::is_directory(training)) options.label_names = picture_classes(training);
  return std::make_unique<PictureFolder>(path, options);
}

}  // namespace

const Format kPictureFormat = {.is = is_pictures, .open = open_pictures, .endings = {""}, .dev = "val"};

}  // namespace comera
