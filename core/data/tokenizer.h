// BERT's uncased WordPiece tokenizer over a vocab.txt (one token a line, "##" marks a piece inside a word).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace comera {

// Immutable after construction; any thread may encode.
class Tokenizer {
 public:
  // Throws Error(config) when the file is not a WordPiece vocabulary (empty, binary, no [PAD] [UNK] [CLS] [SEP]),
  // Error(not_found) when it is not there.
  explicit Tokenizer(const std::string& vocab_path);

  // Token ids of `text`, without [CLS] and [SEP]. Never fails: bytes that are not UTF-8 are dropped (words.h), a
  // word that no pieces make up or of more than 100 characters is one [UNK]. "[SEP]" in a text is four plain words.
  void encode(std::string_view text, std::vector<int32_t>& ids) const;  // replaces `ids`
  std::vector<int32_t> encode(std::string_view text) const;

  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  const std::string& token(int64_t id) const { return tokens_.at(static_cast<size_t>(id)); }
  int32_t pad() const { return pad_; }
  int32_t unknown() const { return unknown_; }
  int32_t cls() const { return cls_; }
  int32_t sep() const { return sep_; }
  const std::string& fingerprint() const { return fingerprint_; }  // sha256 (hex) of the file

 private:
  int32_t special(const std::string& path, const char* token) const;
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const;

  using Pieces = std::unordered_map<std::string_view, int32_t>;  // keys view tokens_
  std::vector<std::string> tokens_;
  Pieces first_, inner_;  // pieces at the start of a word; pieces after it, without their "##"
  size_t longest_ = 0;    // bytes of the longest key
  int32_t pad_ = 0, unknown_ = 0, cls_ = 0, sep_ = 0;
  std::string fingerprint_;
};

}  // namespace comera
