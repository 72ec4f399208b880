// A tokenizer: from a text to the ids of its tokens and back, with the special tokens that stand around texts.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/token_table.h"

namespace comera {

// Immutable after construction; any thread may encode.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Ids of `text`, which replace `ids`; no special tokens around. Never fails, whatever the bytes.
  virtual void encode(std::string_view text, std::vector<int32_t>& ids) const = 0;
  std::vector<int32_t> encode(std::string_view text) const;
  // The text of ids, special tokens included; an id out of range is left out.
  virtual std::string decode(const std::vector<int32_t>& ids) const = 0;

  // Special tokens that stand around one text, or around a pair.
  int64_t marks(bool pair) const;
  // Ids of one text (`second` null) or a pair with the special tokens around, and the segment, 0 or 1, of each.
  void surround(const std::vector<int32_t>& first, const std::vector<int32_t>* second, std::vector<int32_t>& ids,
                std::vector<int32_t>& segments) const;
  std::vector<int32_t> encode_with_specials(std::string_view text) const;
  std::vector<int32_t> encode_with_specials(std::string_view first, std::string_view second) const;

  // Ids of one of several texts that stand one behind the other: with the special tokens around, and behind them the end of a text, or a
  // line end where there is no such token.
  std::vector<int32_t> document(std::string_view text) const;

  int64_t size() const { return static_cast<int64_t>(table_.tokens.size()); }
  const std::string& token(int64_t id) const { return table_.tokens.at(static_cast<size_t>(id)); }
  // -1: there is no such token.
  int32_t pad() const { return table_.pad; }
  int32_t unknown() const { return table_.unknown; }
  int32_t cls() const { return table_.cls; }
  int32_t sep() const { return table_.sep; }
  int32_t mask() const { return table_.mask; }
  int32_t end() const { return table_.end; }                                // of a text
  const std::vector<int32_t>& specials() const { return table_.specials; }  // ascending
  const std::string& fingerprint() const { return table_.fingerprint; }     // sha256 (hex) of the files

  // The first place from `from` on where a text may be cut: the ids of both parts, one behind the other, are those of the whole. The size
  // of the text: none.
  size_t cut(std::string_view text, size_t from) const;

 protected:
  // `words`: no token has white space and something before it, but for added ones.
  Tokenizer(TokenTable table, bool words);
  const TokenTable table_;

 private:
  bool cuts_ = false;
};

// The tokenizer of a vocab.txt (WordPiece), of a tokenizer.json, of GPT-2's or RoBERTa's vocab.json with merges.txt next to it, or of a
// folder that has one of them; of a set that was downloaded (paths::sets_folder) its name will do. Throws Error(not_found) where there is
// none, Error(config) for a file that is wrong, or that has a part that is not known here.
std::shared_ptr<const Tokenizer> open_tokenizer(const std::string& name);
// Its file, which open_tokenizer() reads. Throws Error(not_found) for a folder without one.
std::string tokenizer_file(const std::string& name);
// The one of texts for which none is named.
std::string bert_vocabulary(const std::string& assets);

// The file of a tokenizer in a folder; "": none.
std::string tokenizer_file_in(const std::string& folder);

}  // namespace comera
