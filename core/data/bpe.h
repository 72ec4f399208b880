// The tokenizer of a tokenizer.json: byte-pair encoding over bytes (GPT-2, RoBERTa) or over characters with bytes for unknown ones (LLaMA).
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/json.h"

namespace comera {

// Immutable after construction; any thread may encode.
class BpeTokenizer {
 public:
  // Throws Error(not_found) where there is no such file, Error(config) where it is no such tokenizer or has a part that is not known here.
  explicit BpeTokenizer(const std::string& path);

  // Ids of a text. Never fails: bytes that are not UTF-8 count as U+FFFD, one for each maximal part of a character. The text of a special
  // token is that token.
  std::vector<int32_t> encode(std::string_view text) const;
  // The same with the special tokens around one text, or around a pair.
  std::vector<int32_t> encode_with_specials(std::string_view text) const;
  std::vector<int32_t> encode_with_specials(std::string_view first, std::string_view second) const;
  // The text of ids, special tokens included; an id out of range is left out.
  std::string decode(const std::vector<int32_t>& ids) const;

  int32_t mask_token() const;  // "<mask>" or "[MASK]"; -1: none
  int64_t size() const { return static_cast<int64_t>(tokens_.size()); }
  const std::string& token(int32_t id) const { return tokens_.at(static_cast<size_t>(id)); }
  const std::string& fingerprint() const { return fingerprint_; }  // sha256 (hex) of the file

 private:
  struct Added {
    std::string text;
    int32_t id;
    bool strips_left, strips_right;
  };
  struct Merge {
    int32_t rank, made;
  };
  enum class Spaces : unsigned char { kept, before_each, before_first };  // where U+2581 is put in front
  struct Piece {                                                          // of what stands around texts: a special token, or text 0 or 1
    int32_t token = -1;
    int text = 0;
  };

  void read_model(const Json& model);
  void read_added(const Json& added);
  void read_steps(const Json& file);
  void read_template(const Json& processor);
  int32_t id_of(const std::string& token) const;  // -1: none
  void encode_plain(std::string_view text, bool first, std::vector<int32_t>& ids) const;
  void encode_by_words(std::string_view text, std::vector<int32_t>& ids) const;
  void encode_characters(std::string_view text, std::vector<int32_t>& ids) const;
  void merge(std::vector<int32_t>& symbols) const;
  std::vector<int32_t> around(const std::vector<Piece>& pieces, std::string_view first, std::string_view second) const;
  [[noreturn]] void unknown(const std::string& what) const;

  const std::string path_;
  std::vector<std::string> tokens_;
  std::unordered_map<std::string, int32_t> ids_;
  std::unordered_map<uint64_t, Merge> merges_;  // by both ids
  std::vector<Added> added_;                    // the longest first
  std::array<int32_t, 256> bytes_{};            // id of each byte; -1: none
  bool by_bytes_ = false, prefix_space_ = false;
  Spaces spaces_ = Spaces::kept;
  int32_t unknown_ = -1;
  std::vector<Piece> single_, pair_;
  std::string fingerprint_;
};

}  // namespace comera
