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

TextStream::TextStream(const std::string& path, int64_t length, const std::string& tokenizer) : file_(path), length_(length) {
  CHECK(length >= 1, "rows of " << length << " tokens");
  info_.name = std::filesystem::path(path).filename().string();
  info_.vocab_size = kBytes;
  info_.mask_token = 0;  // no text has this byte
  std::string made_of = sha256_hex(file_.bytes()) + "/" + std::to_string(length);
  if (!tokenizer.empty()) {
    tokenizer_ = std::make_unique<const BpeTokenizer>(tokenizer);
    const BpeTokenizer& bpe = *tokenizer_;
    tokens_ = bpe.encode(file_.bytes());
    info_.vocab_size = bpe.size();
    info_.mask_token = bpe.mask_token();
    info_.vocab_fingerprint = bpe.fingerprint();
    made_of += "/" + bpe.fingerprint();
    if (tokens_.empty())
      throw Error(ErrorCode::config, path + " has no tokens", "no character of it is in the vocabulary", "use another tokenizer");
  }
  info_.rows = ceil_div(static_cast<int64_t>(count()), length);
  info_.fingerprint = sha256_hex(made_of);
  describe_stream(info_);
}

bool TextStream::is(const std::string& path) { return std::filesystem::path(path).extension() == ".txt"; }

void TextStream::read(int64_t row, int64_t max_length, Columns& out) const {
  CHECK(row >= 0 && row < info_.rows, "row " << row << " of " << info_.rows);
  const auto begin = static_cast<size_t>(row * length_),
             end = std::min(count(), begin + static_cast<size_t>(std::min(length_, max_length)));
  std::vector<int32_t>&ids = out.ints["ids"], &labels = out.ints["labels"];
  ids.clear();
  labels.clear();
  for (size_t i = begin; i < end; ++i) {
    ids.push_back(token(i));
    labels.push_back(i + 1 < count() ? token(i + 1) : -1);
  }
}

std::string TextStream::shown(int64_t row, int64_t max_length) const {
  Columns columns;
  read(row, max_length, columns);
  std::string text;
  for (const int32_t id : columns.ints.at("ids"))
    text += tokenizer_ ? "[" + tokenizer_->token(id) + "]" : std::string(1, static_cast<char>(id < ' ' || id > '~' ? '.' : id));
  const std::vector<int32_t>& labels = columns.ints.at("labels");
  return text + "  ->  the next token of " + std::to_string(std::count_if(labels.begin(), labels.end(), [](int32_t l) { return l >= 0; }));
}

}  // namespace comera
