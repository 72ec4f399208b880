#include "core/data/criteo_pack.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "core/base/error.h"
#include "core/data/gzip.h"
#include "core/data/packed_file.h"
#include "core/data/sha256.h"

namespace comera {
namespace {

namespace fs = std::filesystem;

constexpr int kColumns = kCriteoNumbers + kCriteoCategories;  // behind the label
constexpr size_t kLongestLine = 1 << 16;

// Head of a packed file; rows follow, then the counts of column 0, 1, ...
struct Head {
  char magic[8] = {'c', 'r', 'i', 't', 'e', 'o', '0', '1'};
  int64_t rows = 0, labelled = 0;
  int64_t starts[kCriteoCategories + 1] = {};
  char fingerprint[64] = {};
};

// Fields of a line. False where it has another number of tabs than a row of the format.
bool split(std::string_view line, std::string_view (&fields)[kColumns + 1], int& count) {
  count = 0;
  for (;;) {
    if (count > kColumns) return false;
    const size_t tab = line.find('\t');
    fields[count++] = line.substr(0, tab);
    if (tab == std::string_view::npos) break;
    line.remove_prefix(tab + 1);
  }
  return count >= kColumns;
}

// "" is missing; numbers beyond 32 bits become the nearest.
bool read_number(std::string_view text, int32_t& out) {
  out = CriteoRow::kMissing;
  if (text.empty()) return true;
  int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || (problem != std::errc() && problem != std::errc::result_out_of_range)) return false;
  if (problem == std::errc::result_out_of_range) value = text.front() == '-' ? INT64_MIN : INT64_MAX;
  out = static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN + 1, INT32_MAX));
  return true;
}

// FNV-1a, then mixed so that all 32 bits count (MurmurHash3's last step). 0 is left to missing values.
uint32_t hash_of(std::string_view text) {
  if (text.empty()) return 0;
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  hash ^= hash >> 33;
  hash *= 0xff51afd7ed558ccdu;
  hash ^= hash >> 33;
  const auto low = static_cast<uint32_t>(hash);
  return low == 0 ? 1 : low;
}

// "" or what is wrong. `labelled` -1: not known yet.
std::string read_row(std::string_view line, int& labelled, CriteoRow& row) {
  std::string_view fields[kColumns + 1];
  int count = 0;
  if (!split(line, fields, count))
    return "it has " + std::to_string(std::count(line.begin(), line.end(), '\t') + 1) + " columns, the format has a label, " +
           std::to_string(kCriteoNumbers) + " integers and " + std::to_string(kCriteoCategories) + " categories";
  const int has_label = count > kColumns;
  if (labelled < 0) labelled = has_label;
  if (labelled != has_label) return labelled ? "it has no label, lines before have one" : "it has a label, lines before have none";
  row.label = -1;
  if (has_label) {
    if (fields[0] != "0" && fields[0] != "1") return "its label is '" + std::string(fields[0].substr(0, 20)) + "', not 0 or 1";
    row.label = fields[0] == "1";
  }
  for (int i = 0; i < kCriteoNumbers; ++i)
    if (!read_number(fields[has_label + i], row.numbers[i]))
      return "integer column " + std::to_string(i + 1) + " is '" + std::string(fields[has_label + i].substr(0, 20)) + "'";
  for (int i = 0; i < kCriteoCategories; ++i) row.categories[i] = hash_of(fields[has_label + kCriteoNumbers + i]);
  return "";
}

// The lines of a text, plain or gzip, one after another.
class Lines {
 public:
  Lines(const std::string& path, std::string_view bytes) : bytes_(bytes) {
    if (is_gzip(bytes)) gzip_ = std::make_unique<GzipReader>(path, bytes);
  }
  // False at the end. The line is valid until the next call. A line without an end is given in pieces.
  bool next(std::string_view& line) {
    size_t end = window_.find('\n', at_);
    while (end == std::string_view::npos && window_.size() - at_ <= kLongestLine && refill()) end = window_.find('\n', at_);
    if (at_ == window_.size()) return false;
    line = window_.substr(at_, end == std::string_view::npos ? end : end - at_);
    at_ = end == std::string_view::npos ? window_.size() : end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return true;
  }
  double share() const {
    return gzip_ ? gzip_->share() : static_cast<double>(taken_) / static_cast<double>(std::max<size_t>(bytes_.size(), 1));
  }
  std::string hex() { return sha_.hex(); }  // of all that was read

 private:
  bool refill() {
    std::string_view more;
    if (gzip_)
      more = gzip_->next();
    else
      more = bytes_.substr(taken_, 1 << 18);
    taken_ += more.size();
    sha_.update(more);
    std::string kept(window_.substr(at_));
    kept += more;
    buffer_ = std::move(kept);
    window_ = buffer_;
    at_ = 0;
    return !more.empty();
  }

  const std::string_view bytes_;
  std::unique_ptr<GzipReader> gzip_;
  std::string buffer_;
  std::string_view window_;
  size_t at_ = 0, taken_ = 0;
  Sha256 sha_;
};

std::string test_labels_path(const std::string& path) {
  std::string stem = path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
  const fs::path file(stem);
  return (file.parent_path() / (file.stem().string() + ".labels.txt")).string();
}

// Labels of a file without, and its bytes; empty where there are none.
std::vector<int32_t> read_labels(const std::string& path, std::string& content) {
  std::vector<int32_t> labels;
  if (!fs::exists(path)) return labels;
  const MappedFile file(path);
  content = file.bytes();
  std::string_view line;
  for (Lines lines(path, file.bytes()); lines.next(line);) {
    if (line != "0" && line != "1")
      throw Error(ErrorCode::config, path + ":" + std::to_string(labels.size() + 1) + ": not a label", "a line must be 0 or 1",
                  "correct the file, or remove it");
    labels.push_back(line == "1");
  }
  return labels;
}

// Reads the text and writes the packed file.
class Packer {
 public:
  Packer(const std::string& path, PackedOutput& out) : path_(path), out_(out) {}

  void pack(const std::function<void(double)>& progress) {
    const MappedFile file(path_);
    Lines lines(path_, file.bytes());
    std::string labels_content;
    const std::vector<int32_t> labels = read_labels(test_labels_path(path_), labels_content);
    out_.write(&head_, sizeof head_);
    int labelled = -1;
    CriteoRow row;
    std::string_view line;
    while (lines.next(line)) {
      const int64_t number = head_.rows + 1;
      if (const std::string why = read_row(line, labelled, row); !why.empty())
        throw Error(ErrorCode::config, path_ + ":" + std::to_string(number) + ": not a row in Criteo's format", why,
                    "correct or remove this line");
      if (!labelled && !labels.empty()) {
        if (number > static_cast<int64_t>(labels.size()))
          throw Error(ErrorCode::config, test_labels_path(path_) + " does not fit its data",
                      "it has only " + std::to_string(labels.size()) + " labels", "get both files again");
        row.label = labels[static_cast<size_t>(number - 1)];
      }
      for (int c = 0; c < kCriteoCategories; ++c) ++counts_[c][row.categories[c]];
      out_.write(&row, sizeof row);
      ++head_.rows;
      if (progress && head_.rows % 65536 == 0) progress(lines.share());
    }
    if (head_.rows == 0) throw Error(ErrorCode::config, path_ + " is empty", "it has no row", "get the file again");
    head_.labelled = labelled > 0 || !labels.empty();
    write_counts();
    const std::string hex = labels_content.empty() || labelled > 0 ? lines.hex() : sha256_hex(lines.hex() + sha256_hex(labels_content));
    std::memcpy(head_.fingerprint, hex.data(), sizeof head_.fingerprint);
    out_.write_at_begin(&head_, sizeof head_);
    if (progress) progress(1);
  }

 private:
  void write_counts() {
    std::vector<CriteoCount> sorted;
    for (int c = 0; c < kCriteoCategories; ++c) {
      sorted.clear();
      for (const auto& [hash, count] : counts_[c]) sorted.push_back({hash, count});
      std::sort(sorted.begin(), sorted.end(), [](const CriteoCount& a, const CriteoCount& b) { return a.hash < b.hash; });
      out_.write(sorted.data(), sorted.size() * sizeof(CriteoCount));
      head_.starts[c + 1] = head_.starts[c] + static_cast<int64_t>(sorted.size());
    }
  }

  const std::string path_;
  PackedOutput& out_;
  Head head_;
  std::unordered_map<uint32_t, uint32_t> counts_[kCriteoCategories];
};

// Size and time of a file, for the name of its packed form.
std::string mark_of(const std::string& path) {
  std::error_code none;
  const auto size = fs::file_size(path, none);
  const auto time = fs::last_write_time(path, none);
  return none ? "-" : std::to_string(size) + "/" + std::to_string(time.time_since_epoch().count());
}

}  // namespace

bool CriteoPack::is(std::string_view bytes) {
  std::string head;
  if (is_gzip(bytes)) {
    try {
      GzipReader reader("", bytes);
      head = reader.next(kLongestLine);
    } catch (const Error&) {
      return false;
    }
  } else {
    head = bytes.substr(0, kLongestLine);
  }
  std::string_view line = std::string_view(head).substr(0, head.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  int labelled = -1;
  CriteoRow row;
  return read_row(line, labelled, row).empty();
}

bool CriteoPack::open(const std::string& packed) {
  try {
    file_ = std::make_unique<const MappedFile>(packed);
  } catch (const Error&) {  // a packed file that cannot be read is made again
    return false;
  }
  const std::string_view bytes = file_->bytes();
  Head head;
  const std::string_view magic(head.magic, sizeof head.magic);
  if (bytes.size() < sizeof head || !bytes.starts_with(magic)) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  const auto need = sizeof head + static_cast<size_t>(head.rows) * sizeof(CriteoRow) +
                    static_cast<size_t>(head.starts[kCriteoCategories]) * sizeof(CriteoCount);
  if (head.rows < 1 || bytes.size() != need) return false;
  rows_ = head.rows;
  labelled_ = head.labelled != 0;
  first_ = reinterpret_cast<const CriteoRow*>(bytes.data() + sizeof head);
  counts_ = reinterpret_cast<const CriteoCount*>(first_ + rows_);
  std::copy(std::begin(head.starts), std::end(head.starts), starts_);
  fingerprint_.assign(head.fingerprint, sizeof head.fingerprint);
  return true;
}

CriteoPack::CriteoPack(const std::string& path, const std::function<void(double)>& progress) {
  const std::string key =
      sha256_hex(fs::absolute(path).lexically_normal().string() + "\n" + mark_of(path) + "\n" + mark_of(test_labels_path(path)))
          .substr(0, 32);
  open_packed(
      "criteo-" + key + ".pack", path, [&](const std::string& packed) { return open(packed); },
      [&](PackedOutput& out) { Packer(path, out).pack(progress); });
}

}  // namespace comera
