#include "core/data/tokenizer.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/data/mapped_file.h"
#include "core/data/sha256.h"
#include "core/data/words.h"

namespace comera {
namespace {

constexpr int64_t kLongestWord = 100;  // characters; the published tokenizer's max_input_chars_per_word

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

std::vector<std::string> read_lines(std::string_view bytes) {
  std::vector<std::string> lines;
  while (!bytes.empty()) {
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    std::string_view line = bytes.substr(0, end);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    lines.emplace_back(line);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
  }
  return lines;
}

}  // namespace

Tokenizer::Tokenizer(const std::string& vocab_path) {
  const MappedFile file(vocab_path);
  if (file.bytes().find('\0') != std::string_view::npos)
    throw Error(ErrorCode::config, vocab_path + " is not a vocabulary", "it is a binary file", "name a vocab.txt with one token a line");
  tokens_ = read_lines(file.bytes());
  fingerprint_ = sha256_hex(file.bytes());
  for (size_t id = 0; id < tokens_.size(); ++id) {  // of a token that comes twice the last counts, as in the published reader
    std::string_view token = tokens_[id];
    const bool inner = token.starts_with("##") && token.size() > 2;
    if (inner) token.remove_prefix(2);
    (inner ? inner_ : first_)[token] = static_cast<int32_t>(id);
    longest_ = std::max(longest_, token.size());
  }
  pad_ = special(vocab_path, "[PAD]");
  unknown_ = special(vocab_path, "[UNK]");
  cls_ = special(vocab_path, "[CLS]");
  sep_ = special(vocab_path, "[SEP]");
}

int32_t Tokenizer::special(const std::string& path, const char* token) const {
  const auto found = first_.find(token);
  if (found == first_.end())
    throw Error(ErrorCode::config, path + " is not a WordPiece vocabulary", std::string("it has no line ") + token,
                "name a vocab.txt of a BERT model: one token a line, among them [PAD], [UNK], [CLS] and [SEP]");
  return found->second;
}

void Tokenizer::encode_word(std::string_view word, std::vector<int32_t>& ids) const {
  const size_t before = ids.size();
  bool known = std::count_if(word.begin(), word.end(), starts_character) <= kLongestWord;
  for (size_t start = 0; known && start < word.size();) {
    const Pieces& pieces = start == 0 ? first_ : inner_;
    size_t end = std::min(word.size(), start + longest_);
    for (; end > start; --end) {  // the longest piece that fits
      if (end < word.size() && !starts_character(word[end])) continue;
      const auto found = pieces.find(word.substr(start, end - start));
      if (found == pieces.end()) continue;
      ids.push_back(found->second);
      break;
    }
    known = end > start;
    start = end;
  }
  if (known) return;
  ids.resize(before);
  ids.push_back(unknown_);
}

void Tokenizer::encode(std::string_view text, std::vector<int32_t>& ids) const {
  ids.clear();
  std::string buffer;
  normalize_words(text, buffer);
  for (std::string_view words = buffer; !words.empty();) {
    const size_t end = std::min(words.find(' '), words.size());
    encode_word(words.substr(0, end), ids);
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

std::vector<int32_t> Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  encode(text, ids);
  return ids;
}

}  // namespace comera
