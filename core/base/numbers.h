// Numbers in texts. As people type them on a command line: decimal and finite. Not "nan", "inf" or "0x10", which strtod takes.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace comera {

struct Decimal {
  double value = 0;
  std::string_view rest;  // the text behind it
};

// The number that `text` begins with; none when there is none, or one that a double cannot hold.
inline std::optional<Decimal> read_decimal(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return {};
  return Decimal{value, text.substr(static_cast<size_t>(end - text.data()))};
}

// Seconds of "90s", "30m", "1.5h" or "45"; none when it is not such a time.
inline std::optional<double> read_duration(std::string_view text) {
  const auto number = read_decimal(text);
  if (!number || number->value < 0) return {};
  const std::string_view unit = number->rest;
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  const double seconds = number->value * factor;
  if (factor == 0 || !std::isfinite(seconds)) return {};
  return seconds;
}

// Bytes of "64MiB", "1.5 GiB", "64 MB" or "4096"; none when it is not a size of at least one byte. KiB, MiB, GiB and TiB are powers of
// 1024, kB, MB, GB and TB of 1000.
inline std::optional<int64_t> read_bytes(std::string_view text) {
  const auto number = read_decimal(text);
  if (!number) return {};
  std::string_view unit = number->rest;
  if (unit.starts_with(' ')) unit.remove_prefix(1);
  constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1},     {"B", 1},    {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1024.0 * (1 << 30)},
      {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9},      {"TB", 1e12}};
  for (const auto& [name, factor] : kUnits)
    if (const double bytes = number->value * factor; unit == name && bytes >= 1 && bytes < 9e18) return static_cast<int64_t>(bytes);
  return {};
}

// Whether two texts differ in their digits at most: the same message, of another step.
inline bool same_but_for_numbers(std::string_view a, std::string_view b) {
  const auto words = [](std::string_view text) {
    std::string out;
    for (const char c : text)
      if (c < '0' || c > '9') out += c;
    return out;
  };
  return words(a) == words(b);
}

}  // namespace comera
