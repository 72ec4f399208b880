#include "core/data/idx.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "core/base/error.h"
#include "core/data/formats.h"
#include "core/data/gzip.h"
#include "core/data/labels.h"
#include "core/data/sha256.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void damaged(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::config, path + " is damaged", why, "get the file again");
}

uint32_t big_endian(std::string_view bytes, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

// The data behind the header; `sizes` gets the dimensions.
template <size_t N>
std::string_view idx_data(const std::string& path, std::string_view bytes, std::array<int64_t, N>& sizes) {
  const std::string magic = {0, 0, 8, static_cast<char>(N)};  // 8 = bytes, then the number of dimensions
  if (!bytes.starts_with(magic))
    throw Error(
        ErrorCode::config, path + " is not an IDX file of " + (N == 3 ? "images" : "labels"),
        "it does not start with the bytes 0 0 8 " + std::to_string(N),
        N == 3 ? "name an images-idx3-ubyte file" : "name the images file; the labels file in the same folder must be labels-idx1-ubyte");
  constexpr size_t kHeader = 4 + 4 * N;
  if (bytes.size() < kHeader) damaged(path, "the header is cut off");
  // Dimensions are below 2^32: a product of three that passes 2^62 cannot be a file's size.
  double product = 1;
  for (size_t i = 0; i < N; ++i) {
    sizes[i] = big_endian(bytes, 4 + 4 * i);
    product *= static_cast<double>(sizes[i]);
  }
  if (product <= 0 || product > 4e18) damaged(path, "the header gives impossible sizes");
  int64_t total = 1;
  for (const int64_t size : sizes) total *= size;
  const auto have = static_cast<int64_t>(bytes.size() - kHeader);
  if (have != total) damaged(path, "the header promises " + std::to_string(total) + " bytes of data, there are " + std::to_string(have));
  return bytes.substr(kHeader);
}

}  // namespace

IdxBytes::IdxBytes(const std::string& path) : file_(path) {
  if (is_gzip(file_.bytes())) unpacked_ = unpack_gzip(path, file_.bytes());
}

std::string idx_labels_path(const std::string& images_path) {
  std::string name = fs::path(images_path).filename().string();
  for (const auto& [images, labels] : {std::pair{"images-idx3", "labels-idx1"}, std::pair{"images.idx3", "labels.idx1"}}) {
    const size_t at = name.find(images);
    if (at == std::string::npos) continue;
    name.replace(at, std::string_view(images).size(), labels);
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    for (const char* end : {"", ".gz"}) {
      const fs::path path = fs::path(images_path).parent_path() / (name + end);
      if (fs::exists(path)) return path.string();
    }
  }
  return "";
}

IdxDataset::IdxDataset(const std::string& path, int64_t classes) : images_(path) {
  std::array<int64_t, 3> sizes;
  pixels_ = idx_data(path, images_.bytes(), sizes);
  info_.name = fs::path(path).filename().string();
  info_.rows = sizes[0], info_.height = sizes[1], info_.width = sizes[2];
  info_.label_names = read_label_names((fs::path(path).parent_path() / "labels.txt").string());
  info_.classes = classes > 0 ? classes : static_cast<int64_t>(info_.label_names.size());
  const std::string labels = idx_labels_path(path);
  info_.labelled = !labels.empty();
  if (info_.labelled) read_labels(labels, info_.classes);
  if (static_cast<int64_t>(info_.label_names.size()) != info_.classes) info_.label_names.clear();
  describe_images(info_);
  Sha256 all;  // of the unpacked bytes: the packing does not change what is learned
  all.update(sha256_hex(images_.bytes()));
  all.update(labels_ ? sha256_hex(labels_->bytes()) : "");
  all.update(std::to_string(info_.classes));
  info_.fingerprint = all.hex();
}

void IdxDataset::read_labels(const std::string& path, int64_t classes) {
  labels_ = std::make_unique<const IdxBytes>(path);
  std::array<int64_t, 1> sizes;
  numbers_ = idx_data(path, labels_->bytes(), sizes);
  if (sizes[0] != info_.rows)
    throw Error(ErrorCode::config, path + " does not fit its images",
                "it has " + std::to_string(sizes[0]) + " labels for " + std::to_string(info_.rows) + " images", "get both files again");
  const auto largest = std::max_element(numbers_.begin(), numbers_.end(),
                                        [](char a, char b) { return static_cast<unsigned char>(a) < static_cast<unsigned char>(b); });
  const int64_t label = static_cast<unsigned char>(*largest);
  if (classes > 0 && label >= classes)
    throw Error(ErrorCode::config, path + ": bad label",
                "image " + std::to_string(largest - numbers_.begin()) + " has label " + std::to_string(label) + ", outside 0.." +
                    std::to_string(classes - 1),
                "correct the file, or set the number of classes");
  if (classes == 0) info_.classes = label + 1;
}

void IdxDataset::read(int64_t row, int64_t, Columns& out) const {
  CHECK(row >= 0 && row < info_.rows, "row " << row << " of " << info_.rows);
  const auto count = static_cast<size_t>(info_.height * info_.width);
  const char* from = pixels_.data() + static_cast<size_t>(row) * count;
  std::vector<float>& pixels = out.reals["pixels"];
  pixels.resize(count);
  for (size_t i = 0; i < count; ++i) pixels[i] = static_cast<float>(static_cast<unsigned char>(from[i])) * (1.0f / 255.0f);
  out.ints["labels"].assign(1, labels_ ? static_cast<unsigned char>(numbers_[static_cast<size_t>(row)]) : -1);
}

namespace {

bool is_images(const std::string& path, std::string_view bytes) {
  const std::string name = fs::path(path).filename().string();
  using namespace std::string_view_literals;
  return name.find("-ubyte") != std::string::npos || name.find("idx") != std::string::npos || bytes.starts_with("\0\0\x08"sv);
}

std::unique_ptr<Dataset> open_images(const std::string& path, const DataSpec& spec) {
  return std::make_unique<IdxDataset>(path, spec.classes);
}

}  // namespace

const Format kImageFormat = {.is = is_images,
                             .open = open_images,
                             .endings = {"-images-idx3-ubyte", "-images-idx3-ubyte.gz", "-images.idx3-ubyte", "-images.idx3-ubyte.gz"},
                             .test = "t10k"};

}  // namespace comera
