#include "core/data/words.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdint>
#include <vector>

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

class Normalizer {
 public:
  Normalizer(const WordRules& rules, std::string& out) : rules_(rules), writer_(out) {}

  void plain(char c) {  // a small letter or a digit
    end_marks();
    writer_.put(c);
  }
  void take(int32_t c) {
    const utf8proc_category_t category = utf8proc_category(c);
    if (is_space(c, category, rules_)) {
      end_marks();
      return writer_.space();
    }
    if (is_dropped(c, category, rules_)) return;
    const bool alone = is_ideograph(c, rules_);
    if (alone) end_marks(), writer_.space();
    if (rules_.strip_accents)
      decompose(c);
    else
      fold(c);
    if (alone) end_marks(), writer_.space();
  }
  // Unicode's order of the marks behind a character: by their combining class.
  void end_marks() {
    if (marks_.empty()) return;
    std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) { return a.order < b.order; });
    for (const Mark& mark : marks_) fold(mark.code);
    marks_.clear();
  }

 private:
  struct Mark {
    int order;
    int32_t code;
  };

  void decompose(int32_t c) {
    constexpr int kMost = 16;  // code points of one canonical decomposition; Unicode's longest has 4
    utf8proc_int32_t parts[kMost];
    int last_class = 0;
    const auto count = utf8proc_decompose_char(c, parts, kMost, UTF8PROC_DECOMPOSE, &last_class);
    for (utf8proc_ssize_t i = 0; i < count && i < kMost; ++i) {
      const int order = rules_.library ? utf8proc_get_property(parts[i])->combining_class : 0;
      if (order > 0) {
        marks_.push_back({order, parts[i]});
        continue;
      }
      end_marks();
      fold(parts[i]);
    }
  }
  void fold(int32_t c) {  // one character after decomposition
    const utf8proc_category_t category = utf8proc_category(c);
    if (rules_.strip_accents && category == UTF8PROC_CATEGORY_MN) return;
    const int32_t lower = rules_.lowercase ? utf8proc_tolower(c) : c;
    if (is_punctuation(lower, category))
      writer_.alone(lower);
    else
      writer_.put(lower);
    if (rules_.lowercase && c == 0x130) writer_.put(0x307);  // the only letter whose lower case is two characters
  }

  const WordRules& rules_;
  Writer writer_;
  std::vector<Mark> marks_;  // behind the last character
};

}  // namespace

void normalize_words(std::string_view text, const WordRules& rules, std::string& out) {
  Normalizer normalizer(rules, out);
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (size_t i = 0; i < text.size();) {
    if ((bytes[i] >= 'a' && bytes[i] <= 'z') || (bytes[i] >= '0' && bytes[i] <= '9')) {  // most of any text
      normalizer.plain(text[i++]);
      continue;
    }
    utf8proc_int32_t c = 0;
    const auto used = utf8proc_iterate(bytes + i, static_cast<utf8proc_ssize_t>(text.size() - i), &c);
    if (used <= 0) {
      ++i;
      continue;
    }
    i += static_cast<size_t>(used);
    normalizer.take(c);
  }
  normalizer.end_marks();
}

}  // namespace comera
