// The tokens of a tokenizer by their ids, and which of them are special.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/wide_json.h"

namespace comera {

// A token that is found in a text before it is split: its text is that token.
struct AddedToken {
  std::string text;
  int32_t id = 0;
  bool strips_left = false, strips_right = false;  // white space next to it belongs to it
};

// What stands around texts: a special token, or text 0 or 1.
struct Mark {
  int32_t token = -1;  // -1: the text
  int text = 0;
  int32_t segment = 0;
};

struct TokenTable {
  std::vector<std::string> tokens;
  std::vector<AddedToken> added;
  std::vector<Mark> single = {{-1, 0, 0}}, pair = {{-1, 0, 0}, {-1, 1, 1}};
  int32_t pad = -1, unknown = -1, cls = -1, sep = -1, mask = -1;
  int32_t end = -1;  // of a document
  std::vector<int32_t> specials;  // ascending
  std::string fingerprint;
};

// Texts to ids, looked up without a copy.
struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using TokenIds = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

inline int32_t id_in(const TokenIds& ids, std::string_view token) {  // -1: none
  const auto found = ids.find(token);
  return found == ids.end() ? -1 : found->second;
}

// Reads the tokens of a tokenizer's files, and what a tokenizer.json says of them besides its model. Every error names `path`.
class TokenReader {
 public:
  explicit TokenReader(std::string path) : path_(std::move(path)) {}

  void read_vocabulary(const WideJson& vocabulary);  // {"token": id}
  void read_added(const WideJson& added);            // "added_tokens"
  void read_processor(const WideJson& processor);    // "post_processor"
  void add(const AddedToken& token, bool special = true);
  void surround(const char* cls, const char* sep, bool doubled);  // cls A sep B sep, or cls A sep sep B sep in one segment

  const TokenIds& ids() const { return ids_; }
  int32_t id_of(std::string_view token) const { return id_in(ids_, token); }
  // After all tokens: checks that the ids are 0, 1, 2 ... and finds special tokens by their usual names. `unknown`: a token, or "".
  TokenTable finish(const std::string& unknown, const std::string& fingerprint);

  // An error for what this program cannot do.
  [[noreturn]] void unknown(const std::string& what) const;
  [[noreturn]] void wrong(const std::string& what, const std::string& why) const;

 private:
  int32_t id_from(const WideJson& json) const;
  std::vector<Mark> marks_of(const WideJson& list, const WideJson& tokens) const;

  const std::string path_;
  TokenIds ids_;
  TokenTable table_;
};

// Splits a text at its added tokens, the longest first.
class AddedSplitter {
 public:
  explicit AddedSplitter(const std::vector<AddedToken>& added);
  // `text` is valid UTF-8. Calls plain(text between, where it begins) and token(id) in the order of the text.
  void split(std::string_view text, const std::function<void(std::string_view, size_t)>& plain,
             const std::function<void(int32_t)>& token) const;

 private:
  const AddedToken* at(std::string_view text, size_t place) const;
  std::vector<AddedToken> added_;      // the longest first
  std::array<bool, 256> begins_ = {};  // bytes that one begins with
};

}  // namespace comera
