// WordPiece (BERT): words are normalized and split at spaces and punctuation, then cut into the longest known pieces from the left.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/wide_json.h"
#include "core/data/tokenizer.h"
#include "core/data/words.h"

namespace comera {

class WordCache;

// A word that no pieces make up, or of more characters than a word may have, is one unknown token. Bytes that are not UTF-8 are dropped.
class WordPiece final : public Tokenizer {
 public:
  // Over a vocab.txt: one token a line, "##" marks a piece inside of a word. BERT's uncased rules, or what a tokenizer_config.json next to
  // it says (do_lower_case, tokenize_chinese_chars, strip_accents). "[SEP]" in a text is four plain words. Throws Error(config) when the
  // file is not a WordPiece vocabulary (empty, binary, no [PAD] [UNK] [CLS] [SEP]), Error(not_found) when it is not there.
  static std::shared_ptr<const WordPiece> of_lines(const std::string& path);
  // Of a tokenizer.json; special tokens in a text are found. Throws as open_tokenizer, or WideJson::exception where a part is missing.
  static std::shared_ptr<const WordPiece> of_json(const std::string& path, const WideJson& file, const std::string& fingerprint);

  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  std::string decode(const std::vector<int32_t>& ids) const override;

 private:
  struct Rules {
    WordRules words;
    std::string prefix = "##";   // of a piece inside of a word
    int64_t longest_word = 100;  // characters
    bool joins = true;           // decoding leaves out spaces before punctuation
  };

  WordPiece(TokenTable table, Rules rules);
  static Rules rules_of(const TokenReader& reader, const WideJson& file);
  void encode_words(std::string_view text, WordCache& cache, std::vector<int32_t>& ids) const;
  void encode_word(std::string_view word, std::vector<int32_t>& ids) const;

  const Rules rules_;
  const AddedSplitter added_;
  using Pieces = std::unordered_map<std::string_view, int32_t>;  // keys view the table's tokens
  Pieces first_, inner_;                                         // pieces at the start of a word; pieces behind it, without their prefix
  size_t longest_ = 0;                                           // bytes of the longest key
};

}  // namespace comera
