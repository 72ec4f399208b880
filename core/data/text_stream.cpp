#include "core/data/text_stream.h"

#include <algorithm>
#include <filesystem>

#include "core/base/error.h"
#include "core/base/rounding.h"
#include "core/data/formats.h"
#include "core/data/sha256.h"
#include "core/data/utf8.h"

namespace comera {

namespace {

namespace fs = std::filesystem;

constexpr size_t kKeptFrom = 1 << 20;  // bytes of texts whose tokens are kept in the cache: shorter ones take a moment

// Each byte is the token with its number.
class Bytes final : public Tokenizer {
 public:
  Bytes() : Tokenizer(all(), false) {}
  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override {
    ids.clear();
    for (const char byte : text) ids.push_back(static_cast<unsigned char>(byte));
  }
  std::string decode(const std::vector<int32_t>& ids) const override {
    std::string text;
    for (const int32_t id : ids)
      if (id >= 0 && id < size()) text += static_cast<char>(id);
    return text;
  }

 private:
  static TokenTable all() {
    TokenTable table;
    for (int byte = 0; byte < 256; ++byte) table.tokens.emplace_back(1, static_cast<char>(byte));
    table.mask = 0;  // no text has this byte
    table.fingerprint = "bytes";
    return table;
  }
};

std::string name_of(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).filename().string();
}

}  // namespace

TextStream::TextStream(std::unique_ptr<const Documents> texts, const Options& options)
    : texts_(std::move(texts)), length_(options.length), masked_(options.masked) {
  CHECK(length_ >= 1, "rows of " << length_ << " tokens");
  if (!options.tokenizer.empty()) tokenizer_ = open_tokenizer(options.tokenizer);
  tokenize(options.progress);
  info_.name = name_of(texts_->path());
  info_.rows = ceil_div(static_cast<int64_t>(count()), length_);
  std::string made_of = texts_->fingerprint() + "/" + std::to_string(length_);
  if (tokenizer_) made_of += "/" + (info_.vocab_fingerprint = tokenizer_->fingerprint());
  info_.fingerprint = sha256_hex(made_of);
  describe_stream(info_, masked_);
}

void TextStream::tokenize(const std::function<void(double)>& progress) {
  static const Bytes kBytes;
  const Tokenizer& tokenizer = tokenizer_ ? *tokenizer_ : kBytes;
  info_.vocab_size = tokenizer.size();
  info_.mask_token = tokenizer.mask();
  const bool is_one = !texts_->only_text().empty();
  if (!is_one && tokenizer_) {  // special tokens stand between texts
    info_.unknown_token = tokenizer.unknown();
    info_.cls_token = tokenizer.cls();
    info_.sep_token = tokenizer.sep();
    info_.special_tokens = tokenizer.specials();
    if (tokenizer.end() >= 0) info_.special_tokens.push_back(tokenizer.end());
    std::sort(info_.special_tokens.begin(), info_.special_tokens.end());
  }
  if (is_one && !tokenizer_) {
    bytes_ = texts_->only_text();
  } else if (texts_->size() >= kKeptFrom) {
    pack_ = std::make_unique<const TokenPack>(*texts_, tokenizer, progress);
    tokens_ = pack_->ids();
  } else {
    held_ = texts_->ids(tokenizer, 0, texts_->size());
    tokens_ = held_;
  }
  if (count() == 0)
    throw Error(ErrorCode::config, texts_->path() + " has no tokens",
                is_one ? "no character of it is in the vocabulary" : "it has no texts, or no character is in the vocabulary",
                "use another file, column or tokenizer");
}

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

namespace {

// Bytes as one line for people: a sign for a line end, a space for a tab, a dot for what is no character or cannot be seen.
std::string line_of_bytes(const std::string& bytes) {
  std::string line;
  for (size_t at = 0, bad = 0; at < bytes.size();) {
    const size_t length = character_length(bytes, at, bad);
    const auto c = static_cast<unsigned char>(bytes[at]);
    if (length > 1)
      line.append(bytes, at, length);
    else
      line += c == '\n' ? "\xE2\x86\xB5" : c == '\t' ? " " : length == 0 || c < ' ' || c == 0x7F ? "." : std::string(1, bytes[at]);
    at += length > 0 ? length : bad;
  }
  return line;
}

}  // namespace

std::string TextStream::shown(int64_t row, int64_t max_length) const {
  Columns columns;
  read(row, max_length, columns);
  std::string text;
  for (const int32_t id : columns.ints.at("ids"))
    text += tokenizer_ ? "[" + tokenizer_->token(id) + "]" : std::string(1, static_cast<char>(id));
  if (!tokenizer_) text = line_of_bytes(text);
  if (masked_) return text + "  ->  masked tokens";
  const std::vector<int32_t>& labels = columns.ints.at("labels");
  return text + "  ->  the next token of " + std::to_string(std::count_if(labels.begin(), labels.end(), [](int32_t l) { return l >= 0; }));
}

namespace {

// A folder is one of texts where it has no pictures.
bool is_stream(const std::string& path, std::string_view) { return fs::path(path).extension() == ".txt" || fs::is_directory(path); }

std::unique_ptr<Dataset> open_stream(const std::string& path, const DataSpec& spec) {
  std::unique_ptr<Documents> texts = fs::is_directory(path)                 ? folder_of_texts(path)
                                     : fs::path(path).extension() == ".txt" ? text_file(path)
                                                                            : column_of_texts(path, spec.columns, spec.progress);
  return std::make_unique<TextStream>(std::move(texts),
                                      TextStream::Options{spec.length, spec.vocab, spec.task == TextTask::masked, spec.progress});
}

}  // namespace

const Format kStreamFormat = {.is = is_stream, .open = open_stream, .endings = {".txt"}, .dev = "validation"};

}  // namespace comera
