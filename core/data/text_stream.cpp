#include "core/data/text_stream.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/rounding.h"
#include "core/data/formats.h"
#include "core/data/sha256.h"

namespace comera {

namespace {
constexpr int64_t kBytes = 256;
constexpr size_t kKeptFrom = 1 << 20;  // bytes of a text whose tokens are kept in the cache: shorter ones take a moment
}  // namespace

TextStream::TextStream(const std::string& path, int64_t length, const std::string& tokenizer, bool masked,
                       const std::function<void(double)>& progress)
    : file_(path), length_(length), masked_(masked) {
  CHECK(length >= 1, "rows of " << length << " tokens");
  info_.name = std::filesystem::path(path).filename().string();
  info_.vocab_size = kBytes;
  info_.mask_token = 0;  // no text has this byte
  const std::string sha = sha256_hex(file_.bytes());
  std::string made_of = sha + "/" + std::to_string(length);
  if (!tokenizer.empty()) {
    tokenizer_ = open_tokenizer(tokenizer);
    if (file_.bytes().size() >= kKeptFrom) {
      pack_ = std::make_unique<const TokenPack>(path, file_.bytes(), sha, *tokenizer_, progress);
      tokens_ = pack_->ids();
    } else {
      tokenizer_->encode(file_.bytes(), held_);
      tokens_ = held_;
    }
    info_.vocab_size = tokenizer_->size();
    info_.mask_token = tokenizer_->mask();
    info_.vocab_fingerprint = tokenizer_->fingerprint();
    made_of += "/" + tokenizer_->fingerprint();
    if (tokens_.empty())
      throw Error(ErrorCode::config, path + " has no tokens", "no character of it is in the vocabulary", "use another tokenizer");
  }
  info_.rows = ceil_div(static_cast<int64_t>(count()), length);
  info_.fingerprint = sha256_hex(made_of);
  describe_stream(info_, masked);
}

bool TextStream::is(const std::string& path) { return std::filesystem::path(path).extension() == ".txt"; }

int64_t TextStream::tokens(int64_t row, int64_t max_length) const {
  CHECK(row >= 0 && row < info_.rows, "row " << row << " of " << info_.rows);
  return std::min({length_, max_length, static_cast<int64_t>(count()) - row * length_});
}

void TextStream::read(int64_t row, int64_t max_length, Columns& out) const {
  const size_t all = static_cast<size_t>(tokens(row, max_length)), begin = static_cast<size_t>(row * length_), end = begin + all;
  std::vector<int32_t>&ids = out.ints["ids"], &labels = out.ints["labels"];
  ids.clear();
  labels.clear();
  for (size_t i = begin; i < end; ++i) {
    ids.push_back(token(i));
    labels.push_back(i + 1 < count() ? token(i + 1) : -1);
  }
  if (masked_) out.ints["segments"].assign(ids.size(), 0);
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

namespace {

bool is_stream(const std::string& path, std::string_view) { return TextStream::is(path); }

std::unique_ptr<Dataset> open_stream(const std::string& path, const DataSpec& spec) {
  return std::make_unique<TextStream>(path, spec.length, spec.vocab, spec.masked, spec.progress);
}

}  // namespace

const Format kStreamFormat = {.is = is_stream, .open = open_stream, .endings = {".txt"}};

}  // namespace comera
