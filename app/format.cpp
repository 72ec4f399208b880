#include "app/format.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/base/error.h"
#include "core/records/sizes.h"

namespace comera {

std::string thousands(double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.0f", value);
  std::string text = digits;
  for (int at = static_cast<int>(text.size()) - 3; at > (text[0] == '-' ? 1 : 0); at -= 3) text.insert(static_cast<size_t>(at), 1, ',');
  return text;
}

std::string grouped(int64_t value) { return thousands(static_cast<double>(value)); }

std::string counted(int64_t count, const std::string& noun) { return grouped(count) + " " + noun + (count == 1 ? "" : "s"); }

std::string smaller_than_dense(const ModelSize& size) {
  return size.entries > 0 ? significant(size.compression, 3) + "x smaller than dense" : "all pruned";
}

std::string lower_case(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

std::string significant(double value, int digits) {
  if (std::abs(value) >= std::pow(10, digits) && std::abs(value) < 1e15) return thousands(value);
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  const std::string said = text;
  if (!std::isfinite(value) || std::abs(value) < 999.5 || std::abs(value) >= 1e15) return said;
  if (said.find('e') != std::string::npos) return thousands(value);  // 9,999.7 rounds to 1e+04 in four figures
  const size_t point = said.find('.');
  return thousands(std::trunc(std::strtod(text, nullptr))) + (point == std::string::npos ? "" : said.substr(point));
}

std::string axis_number(double value) {
  const double size = std::abs(value);
  char text[64];
  if (size >= 1e9) {
    std::snprintf(text, sizeof text, "%.3g", value);
    return text;
  }
  if (size >= 1e6) return significant(value / 1e6, 4) + "M";
  if (size > 0 && size < 1e-3) {
    std::snprintf(text, sizeof text, "%.2g", value);
    return text;
  }
  return significant(value, size >= 1000 ? 6 : 4);
}

std::string three_figures(double value) { return value >= 1000 ? thousands(value) : significant(value, 3); }

namespace {

// Four significant figures, at most four after the decimal point.
std::string with_unit(double value, const char* unit) {
  const double size = std::abs(value);
  if (size >= 999.95) return thousands(value) + unit;
  char text[64];
  std::snprintf(text, sizeof text, "%.*f%s", size >= 99.995 ? 1 : size >= 9.9995 ? 2 : size >= 0.99995 ? 3 : size > 0 ? 4 : 0, value, unit);
  return text;
}

}  // namespace

std::string mebibytes(double bytes) { return with_unit(bytes / (1024.0 * 1024.0), " MiB"); }
std::string megabytes(double bytes) { return with_unit(bytes / 1e6, " MB"); }
std::string exact_bytes(double bytes) { return mebibytes(bytes) + " = " + megabytes(bytes) + " (" + thousands(bytes) + " bytes)"; }

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  const long total = std::lround(seconds);
  if (total >= 3600) return std::to_string(total / 3600) + " h " + std::to_string(total % 3600 / 60) + " m";
  if (total >= 60) return std::to_string(total / 60) + " m " + std::to_string(total % 60) + " s";
  return std::to_string(total) + " s";
}

std::string shell_word(const std::string& text) {
  const auto plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("_-./=:,+%@", c); };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string ago(double seconds) {
  seconds = std::max(0.0, seconds);  // the event may come from a clock that is ahead
  if (seconds >= 10) return duration(seconds);
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

std::string full_text(const Error& error) {
  return std::string(error.what()) + (error.why().empty() ? "" : ": " + error.why()) +
         (error.hint().empty() ? "" : ". Try: " + error.hint());
}

}  // namespace comera
