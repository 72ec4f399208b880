#include "core/data/text_stream.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/rounding.h"
#include "core/data/sha256.h"

namespace comera {

namespace {
constexpr int64_t kBytes = 256;
}

TextStream::TextStream(const std::string& path, int64_t length) : file_(path), length_(length) {
  CHECK(length >= 1, "rows of " << length << " tokens");
  info_.name = std::filesystem::path(path).filename().string();
  info_.rows = ceil_div(static_cast<int64_t>(file_.bytes().size()), length);
  info_.vocab_size = kBytes;
  info_.fingerprint = sha256_hex(sha256_hex(file_.bytes()) + "/" + std::to_string(length));
  describe_stream(info_);
}

bool TextStream::is(const std::string& path) { return std::filesystem::path(path).extension() == ".txt"; }

void TextStream::read(int64_t row, int64_t max_length, Columns& out) const {
  CHECK(row >= 0 && row < info_.rows, "row " << row << " of " << info_.rows);
  const std::string_view bytes = file_.bytes();
  const auto begin = static_cast<size_t>(row * length_),
             end = std::min(bytes.size(), begin + static_cast<size_t>(std::min(length_, max_length)));
  std::vector<int32_t>&ids = out.ints["ids"], &labels = out.ints["labels"];
  ids.clear();
  labels.clear();
  for (size_t i = begin; i < end; ++i) {
    ids.push_back(static_cast<unsigned char>(bytes[i]));
    labels.push_back(i + 1 < bytes.size() ? static_cast<unsigned char>(bytes[i + 1]) : -1);
  }
}

}  // namespace comera
