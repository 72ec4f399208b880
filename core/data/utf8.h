// Characters of UTF-8 text.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace comera {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

std::string utf8_of(int32_t code);
// Length of the character at `at`, 0 if it is not valid; `bad` is then the length of its maximal part (Unicode 3.9, table 3-7).
size_t character_length(std::string_view text, size_t at, size_t& bad);
// The text with U+FFFD for each maximal part of a character that is not valid: `text` itself, or in `buffer`.
std::string_view valid_utf8(std::string_view text, std::string& buffer);
// The character at `at` of valid text, and its length.
int32_t code_at(std::string_view text, size_t at, size_t& length);
bool is_white_space(int32_t code);  // Unicode's White_Space

}  // namespace comera
