#include "core/data/utf8.h"

#include <utf8proc.h>

#include "core/base/error.h"

namespace comera {

std::string utf8_of(int32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(code, bytes);
  return {reinterpret_cast<const char*>(bytes), static_cast<size_t>(count)};
}

size_t character_length(std::string_view text, size_t at, size_t& bad) {
  const auto byte = [&](size_t i) { return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u; };
  const unsigned first = byte(0);
  bad = 1;
  if (first < 0x80) return 1;
  unsigned low = 0x80, high = 0xBF;
  size_t length = 0;
  if (first >= 0xC2 && first <= 0xDF) length = 2;
  if (first >= 0xE0 && first <= 0xEF) length = 3, low = first == 0xE0 ? 0xA0 : 0x80, high = first == 0xED ? 0x9F : 0xBF;
  if (first >= 0xF0 && first <= 0xF4) length = 4, low = first == 0xF0 ? 0x90 : 0x80, high = first == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (byte(i) < low || byte(i) > high) {
      bad = i;
      return 0;
    }
    low = 0x80, high = 0xBF;
  }
  return length;
}

std::string_view valid_utf8(std::string_view text, std::string& buffer) {
  buffer.clear();
  size_t copied = 0;  // bytes of `text` that are in `buffer`
  for (size_t at = 0, bad = 0; at < text.size();) {
    if (const size_t length = character_length(text, at, bad); length > 0) {
      at += length;
      continue;
    }
    buffer.append(text.substr(copied, at - copied)).append(kReplacement);
    copied = at += bad;
  }
  if (copied == 0) return text;
  return buffer.append(text.substr(copied));
}

int32_t code_at(std::string_view text, size_t at, size_t& length) {
  int32_t code = static_cast<unsigned char>(text[at]);
  length = 1;
  if (code < 0x80) return code;
  const auto read =
      utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()) + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
  CHECK(read > 0, "text that is not UTF-8");
  length = static_cast<size_t>(read);
  return code;
}

bool is_white_space(int32_t c) {
  return (c >= 9 && c <= 13) || c == 32 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

}  // namespace comera
