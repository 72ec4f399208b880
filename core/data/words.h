// BERT's basic text normalisation (uncased): what comes before WordPiece.
#pragma once
#include <string>
#include <string_view>

namespace comera {

// Writes the words of `text` (UTF-8) to `out`, with one space between them: cleaned, lower case, without accents;
// each punctuation mark and each CJK character is a word of its own. "Naïve, no?" -> "naive , no ?".
// Never fails: a byte that is not valid UTF-8 counts as U+FFFD, which is dropped like NUL and control characters.
// Accents: canonical decomposition of each character, then marks (Mn) are dropped. Marks that stay keep the order
// they were written in: Unicode's reordering takes quadratic time on hostile text and no vocabulary has such words.
void normalize_words(std::string_view text, std::string& out);

}  // namespace comera
