// BERT's basic text normalization: what comes before WordPiece.
#pragma once
#include <string>
#include <string_view>

namespace comera {

struct WordRules {
  bool clean = true;          // NUL, U+FFFD and control characters are dropped
  bool ideographs = true;     // each CJK ideograph is a word of its own
  bool strip_accents = true;  // canonical decomposition, then marks (Mn) are dropped
  bool lowercase = true;
  // As the tokenizers library reads a tokenizer.json: characters for private use are dropped, too, U+2B820 to U+2B91F are not taken for
  // ideographs, and marks that stay are put into Unicode's order. Without: as stored runs read their vocab.txt.
  bool library = false;
  bool operator==(const WordRules&) const = default;
};

// Writes the words of `text` (UTF-8) to `out`, with one space between them; each punctuation mark is a word of its own. By the rules above
// "Naïve, no?" -> "naive , no ?". Never fails: a byte that is not valid UTF-8 is dropped.
void normalize_words(std::string_view text, const WordRules& rules, std::string& out);

}  // namespace comera
