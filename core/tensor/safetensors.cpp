#include "core/tensor/safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/rounding.h"
#include "core/tensor/half.h"

namespace comera {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kHeaderLimit = 100'000'000;  // of the format: a larger header is an attack, not a model
constexpr int64_t kMaxElements = int64_t{1} << 50;
// A header nests three deep and has a handful of values a tensor: what has more would only fill memory.
constexpr int kMaxDepth = 4;
constexpr int64_t kMaxValues = 10'000'000;
constexpr const char* kMetadata = "__metadata__";

int64_t size_of_dtype(const std::string& dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL") return 1;
  return 0;
}

[[noreturn]] void unsound(const std::string& path, const std::string& why) {
  throw Error(ErrorCode::storage, path + " is not a sound safetensors file", why, "the file may be damaged or cut short: use another copy");
}

// The header as JSON. A name that stands twice in an object would silently win over the first one: refused. Keys are
// kept in a tree (not in the order of the file), so that a hundred thousand of them cost no square.
nlohmann::json parse_header(const std::string& path, const char* text, size_t bytes) {
  using Event = nlohmann::json::parse_event_t;
  const char* refused = nullptr;
  int64_t values = 0;
  std::vector<std::set<std::string>> keys;  // of the objects that are open
  const auto watch = [&](int depth, Event event, nlohmann::json& value) {
    if (depth > kMaxDepth) refused = "its header nests too deep";
    if (event == Event::value && ++values > kMaxValues) refused = "its header has too many values";
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get<std::string>()).second) refused = "a name stands twice in its header";
    if (refused) unsound(path, refused);
    return true;
  };
  nlohmann::json header;
  try {
    header = nlohmann::json::parse(text, text + bytes, watch);
  } catch (const nlohmann::json::exception&) {
    unsound(path, "its header is not valid JSON");
  }
  if (!header.is_object()) unsound(path, "its header is not a JSON object");
  return header;
}

const std::string& not_empty(const std::string& path) {
  std::error_code unknown;  // MappedFile says what is wrong then
  if (std::filesystem::file_size(path, unknown) == 0 && !unknown) unsound(path, "it has only 0 bytes");
  return path;
}

template <class T>
void widen(const void* data, std::vector<double>& out) {
  const char* at = static_cast<const char*>(data);
  for (double& value : out) {
    T item;
    std::memcpy(&item, at, sizeof item);  // the file does not promise alignment
    value = static_cast<double>(item);
    at += sizeof item;
  }
}

}  // namespace

int64_t SafetensorsEntry::count() const {
  int64_t product = 1;
  for (int64_t size : shape) product *= size;
  return product;
}

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(not_empty(path)) { read_header(); }

void SafetensorsFile::read_header() {
  if (bytes() < 8) unsound(path(), "it has only " + std::to_string(bytes()) + " bytes");
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file_.bytes().data(), 8);
  if (header_bytes > static_cast<uint64_t>(kHeaderLimit))
    unsound(path(), "its header claims " + std::to_string(header_bytes) + " bytes, 100,000,000 is the limit");
  if (header_bytes > static_cast<uint64_t>(bytes() - 8))
    unsound(path(), "its header claims " + std::to_string(header_bytes) + " bytes, the file has " + std::to_string(bytes()));
  data_begin_ = 8 + static_cast<int64_t>(header_bytes);
  const nlohmann::json header = parse_header(path(), file_.bytes().data() + 8, static_cast<size_t>(header_bytes));
  for (const auto& item : header.items()) {
    if (item.key() != kMetadata) {
      read_entry(item.key(), item.value());
      continue;
    }
    if (!item.value().is_object()) unsound(path(), "its metadata is not an object of texts");
    for (const auto& pair : item.value().items()) {
      if (!pair.value().is_string()) unsound(path(), "metadata '" + pair.key().substr(0, 80) + "' is not a text");
      metadata_[pair.key()] = pair.value().get<std::string>();
    }
  }
  // Every byte belongs to exactly one tensor.
  std::vector<const SafetensorsEntry*> order;
  for (const auto& [name, entry] : entries_) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](const auto* a, const auto* b) { return a->begin != b->begin ? a->begin < b->begin : a->end < b->end; });
  int64_t at = 0;
  for (const SafetensorsEntry* entry : order) {
    if (entry->begin < at) unsound(path(), "two tensors overlap");
    if (entry->begin > at) unsound(path(), "there is a hole of " + std::to_string(entry->begin - at) + " bytes between tensors");
    at = entry->end;
  }
  if (at != bytes() - data_begin_)
    unsound(path(), "its tensors take " + std::to_string(at) + " bytes, the file holds " + std::to_string(bytes() - data_begin_));
}

void SafetensorsFile::read_entry(const std::string& name, const nlohmann::json& json) {
  const auto bad = [&](const std::string& why) { unsound(path(), "tensor '" + name.substr(0, 80) + "' " + why); };
  if (!json.is_object() || !json.contains("dtype") || !json.contains("shape") || !json.contains("data_offsets"))
    bad("has no dtype, shape and data_offsets");
  SafetensorsEntry entry;
  if (!json["dtype"].is_string()) bad("has no dtype text");
  entry.dtype = json["dtype"].get<std::string>();
  const int64_t width = size_of_dtype(entry.dtype);
  if (width == 0) bad("is of unknown dtype '" + entry.dtype.substr(0, 20) + "'");
  const auto whole = [&](const nlohmann::json& value) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > static_cast<uint64_t>(kMaxElements))
      bad("has a size that is not a whole number in range");
    return static_cast<int64_t>(value.get<uint64_t>());
  };
  if (!json["shape"].is_array() || json["shape"].size() > 16) bad("has no shape list");
  int64_t count = 1;
  for (const nlohmann::json& size : json["shape"]) {
    entry.shape.push_back(whole(size));
    if (entry.shape.back() != 0 && count > kMaxElements / entry.shape.back()) bad("has a shape that overflows");
    count *= entry.shape.back();
  }
  if (!json["data_offsets"].is_array() || json["data_offsets"].size() != 2) bad("has no pair of offsets");
  entry.begin = whole(json["data_offsets"][0]);
  entry.end = whole(json["data_offsets"][1]);
  if (entry.begin > entry.end || entry.end > bytes() - data_begin_) bad("lies outside the file");
  if (count > kMaxElements / width || count * width != entry.end - entry.begin)
    bad("has " + std::to_string(entry.end - entry.begin) + " bytes, its shape asks for another number");
  entries_[name] = std::move(entry);
}

const SafetensorsEntry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end())
    throw Error(ErrorCode::storage, path() + " has no tensor '" + name + "'",
                "it holds " + std::to_string(entries_.size()) + " other tensors", "is it a file of this kind of model?");
  return found->second;
}

const void* SafetensorsFile::data(const std::string& name) const { return file_.bytes().data() + data_begin_ + entry(name).begin; }

void SafetensorsFile::check_unchanged() const { file_.check_unchanged("read it again when the program that writes it is done"); }

std::vector<double> SafetensorsFile::values(const std::string& name) const {
  const SafetensorsEntry& item = entry(name);
  std::vector<double> out(static_cast<size_t>(item.count()));
  const void* at = data(name);
  if (item.dtype == "F64")
    widen<double>(at, out);
  else if (item.dtype == "F32")
    widen<float>(at, out);
  else if (item.dtype == "I64")
    widen<int64_t>(at, out);
  else if (item.dtype == "U64")
    widen<uint64_t>(at, out);
  else if (item.dtype == "I32")
    widen<int32_t>(at, out);
  else if (item.dtype == "U32")
    widen<uint32_t>(at, out);
  else if (item.dtype == "I16")
    widen<int16_t>(at, out);
  else if (item.dtype == "U16")
    widen<uint16_t>(at, out);
  else if (item.dtype == "I8")
    widen<int8_t>(at, out);
  else if (item.dtype == "U8" || item.dtype == "BOOL")
    widen<uint8_t>(at, out);
  else
    for (size_t i = 0; i < out.size(); ++i) {
      uint16_t bits;
      std::memcpy(&bits, static_cast<const char*>(at) + 2 * i, 2);
      const uint32_t wide = static_cast<uint32_t>(bits) << 16;
      float brain;
      std::memcpy(&brain, &wide, 4);
      out[i] = item.dtype == "F16" ? from_half(bits) : brain;
    }
  check_unchanged();
  return out;
}

// ---- writing -----------------------------------------------------------------------------------------------------

void SafetensorsWriter::add(const std::string& name, const std::string& dtype, std::vector<int64_t> shape, const void* data) {
  SafetensorsEntry sized{dtype, shape, 0, 0};
  CHECK(size_of_dtype(dtype) > 0, "dtype " << dtype);
  items_.push_back({name, dtype, std::move(shape), data, sized.count() * size_of_dtype(dtype)});
}

namespace {

// The nearest number of 16 bits, of two the even one. NaN stays NaN.
uint16_t bfloat_of(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

void SafetensorsWriter::add_values(const std::string& name, const std::string& dtype, std::vector<int64_t> shape,
                                   const std::vector<double>& values) {
  CHECK(dtype == "F32" || dtype == "F64" || dtype == "BF16" || dtype == "F16", "values are written as F64, F32, F16 or BF16");
  const auto width = static_cast<size_t>(size_of_dtype(dtype));
  auto bytes = std::make_unique<char[]>(values.size() * width + 1);
  for (size_t i = 0; i < values.size(); ++i) {
    const float narrow = static_cast<float>(values[i]);
    const uint16_t half = dtype == "BF16" ? bfloat_of(narrow) : to_half(narrow);
    std::memcpy(bytes.get() + i * width, width == 2 ? &half : width == 4 ? static_cast<const void*>(&narrow) : &values[i], width);
  }
  add(name, dtype, std::move(shape), bytes.get());
  CHECK(items_.back().bytes == static_cast<int64_t>(values.size() * width), name << ": values do not fill the shape");
  owned_.push_back(std::move(bytes));
}

namespace {

thread_local std::function<void(int64_t, int64_t)>* t_watch = nullptr;
constexpr int64_t kWrittenAtOnce = 1 << 24;  // bytes; between two of them a watch is told

// A file under a temporary name; removed again unless it was renamed into place.
class AtomicFile {
 public:
  AtomicFile(const std::string& path, int64_t total)
      : path_(path), temporary_(path + ".part-" + std::to_string(::getpid())), total_(total) {
    file_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (file_ < 0) fail();
  }
  ~AtomicFile() {
    if (file_ >= 0) ::close(file_);
    if (!done_) ::unlink(temporary_.c_str());
  }
  void write(const void* data, int64_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      const ssize_t wrote = ::write(file_, at, static_cast<size_t>(std::min(bytes, kWrittenAtOnce)));
      if (wrote < 0 && errno == EINTR) continue;
      if (wrote <= 0) fail();
      at += wrote;
      bytes -= wrote;
      done_bytes_ += wrote;
      if (t_watch) (*t_watch)(done_bytes_, total_);
    }
  }
  void commit() {
    if (::fsync(file_) != 0) fail();
    const int closed = ::close(file_);
    file_ = -1;
    if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) fail();
    done_ = true;
    const size_t slash = path_.rfind('/');
    const int folder = ::open(slash == std::string::npos ? "." : path_.substr(0, slash + 1).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder >= 0) {
      ::fsync(folder);
      ::close(folder);
    }
  }

 private:
  [[noreturn]] void fail() {
    const int error = errno;
    throw Error(ErrorCode::storage, "cannot write " + path_, std::strerror(error),
                error == ENOSPC ? "free some disk space; nothing else was lost" : "check the folder and its permissions");
  }
  std::string path_, temporary_;
  const int64_t total_;
  int64_t done_bytes_ = 0;
  int file_ = -1;
  bool done_ = false;
};

}  // namespace

WatchWrites::WatchWrites(std::function<void(int64_t done, int64_t total)> tell) : tell_(std::move(tell)) {
  CHECK(!t_watch, "files of this thread are watched already");
  t_watch = &tell_;
}
WatchWrites::~WatchWrites() { t_watch = nullptr; }

int64_t SafetensorsWriter::finish(const std::string& path) {
  std::set<std::string> names = {kMetadata};
  // Written entry by entry: the order is that of add(), so the same tensors give the same bytes.
  const auto dumped = [](const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); };
  std::string text = "{";
  if (!metadata_.empty()) text += dumped(kMetadata) + ":" + dumped(metadata_);
  int64_t at = 0;
  for (const Item& item : items_) {
    CHECK(names.insert(item.name).second, "tensor " << item.name << " twice in one file");
    const Json entry = {{"dtype", item.dtype}, {"shape", item.shape}, {"data_offsets", {at, at + item.bytes}}};
    text += (text.size() > 1 ? "," : "") + dumped(item.name) + ":" + dumped(entry);
    at += item.bytes;
  }
  text += "}";
  text.resize(round_up(text.size(), 8), ' ');  // the tensors begin aligned
  const uint64_t header_bytes = text.size();
  CHECK(header_bytes <= static_cast<uint64_t>(kHeaderLimit), "too many tensors for one file");
  const int64_t total = 8 + static_cast<int64_t>(header_bytes) + at;
  AtomicFile file(path, total);
  file.write(&header_bytes, 8);
  file.write(text.data(), static_cast<int64_t>(text.size()));
  for (const Item& item : items_) file.write(item.data, item.bytes);
  file.commit();
  return total;
}

}  // namespace comera
