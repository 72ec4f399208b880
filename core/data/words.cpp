#include "core/data/words.h"

#include <utf8proc.h>

#include <cstdint>

#include "core/data/utf8.h"

namespace comera {
namespace {

bool is_space(int32_t c, utf8proc_category_t category, const WordRules& rules) {
  if (!rules.clean) return is_white_space(c);
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
         category == UTF8PROC_CATEGORY_ZP;
}

bool is_dropped(int32_t c, utf8proc_category_t category, const WordRules& rules) {
  if (!rules.clean) return false;
  if (category == UTF8PROC_CATEGORY_CO) return rules.library;
  return c == 0 || c == 0xFFFD || category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF || category == UTF8PROC_CATEGORY_CS;
}

bool is_punctuation(int32_t c, utf8proc_category_t category) {
  // All ASCII that is neither letter, digit nor space counts, also what Unicode calls a symbol ("$", "^", "`").
  if (c < 128) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
  return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
}

bool is_ideograph(int32_t c, const WordRules& rules) {  // Hangul and Kana are written with spaces or pieces
  if (!rules.ideographs || (rules.library && c >= 0x2B820 && c < 0x2B920)) return false;
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

class Writer {
 public:
  explicit Writer(std::string& out) : out_(out) { out_.clear(); }
  void space() { pending_ = !out_.empty(); }
  void put(int32_t c) {
    if (pending_) out_.push_back(' ');
    pending_ = false;
    if (c < 128) {
      out_.push_back(static_cast<char>(c));
      return;
    }
    utf8proc_uint8_t bytes[4];
    const auto count = utf8proc_encode_char(c, bytes);
    out_.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
  }
  void alone(int32_t c) {
    space();
    put(c);
    space();
  }

 private:
  std::string& out_;
  bool pending_ = false;
};

void put_folded(int32_t c, const WordRules& rules, Writer& writer) {  // one character after decomposition
  const utf8proc_category_t category = utf8proc_category(c);
  if (rules.strip_accents && category == UTF8PROC_CATEGORY_MN) return;
  const int32_t lower = rules.lowercase ? utf8proc_tolower(c) : c;
  if (is_punctuation(lower, category))
    writer.alone(lower);
  else
    writer.put(lower);
  if (rules.lowercase && c == 0x130) writer.put(0x307);  // the only letter whose lower case is two characters
}

void put_character(int32_t c, const WordRules& rules, Writer& writer) {
  const utf8proc_category_t category = utf8proc_category(c);
  if (is_space(c, category, rules)) return writer.space();
  if (is_dropped(c, category, rules)) return;
  const bool alone = is_ideograph(c, rules);
  if (alone) writer.space();
  if (!rules.strip_accents) {
    put_folded(c, rules, writer);
  } else {
    constexpr int kMost = 16;  // code points of one canonical decomposition; Unicode's longest has 4
    utf8proc_int32_t parts[kMost];
    int last_class = 0;
    const auto count = utf8proc_decompose_char(c, parts, kMost, UTF8PROC_DECOMPOSE, &last_class);
    for (utf8proc_ssize_t i = 0; i < count && i < kMost; ++i) put_folded(parts[i], rules, writer);
  }
  if (alone) writer.space();
}

}  // namespace

void normalize_words(std::string_view text, const WordRules& rules, std::string& out) {
  Writer writer(out);
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    if ((bytes[i] >= 'a' && bytes[i] <= 'z') || (bytes[i] >= '0' && bytes[i] <= '9')) {  // most of any text
      writer.put(bytes[i++]);
      continue;
    }
    utf8proc_int32_t c = 0;
    const auto used = utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &c);
    if (used <= 0) {
      ++i;
      continue;
    }
    i += static_cast<size_t>(used);
    put_character(c, rules, writer);
  }
}

}  // namespace comera
