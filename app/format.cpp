#include "app/format.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace comera {

std::string thousands(double value) {
  char digits[64];
  std::snprintf(digits, sizeof digits, "%.0f", value);
  std::string text = digits;
  for (int at = static_cast<int>(text.size()) - 3; at > (text[0] == '-' ? 1 : 0); at -= 3) text.insert(static_cast<size_t>(at), 1, ',');
  return text;
}

std::string significant(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string three_figures(double value) { return value >= 1000 ? thousands(value) : significant(value, 3); }

std::string mebibytes(double bytes) {
  const double value = bytes / (1024.0 * 1024.0);
  char text[64];
  std::snprintf(text, sizeof text, value >= 1000 ? "%.0f MiB" : value >= 100 ? "%.1f MiB" : value >= 10 ? "%.2f MiB" : "%.3f MiB", value);
  return text;
}

std::string duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "-";
  const long total = std::lround(seconds);
  if (total >= 3600) return std::to_string(total / 3600) + " h " + std::to_string(total % 3600 / 60) + " m";
  if (total >= 60) return std::to_string(total / 60) + " m " + std::to_string(total % 60) + " s";
  return std::to_string(total) + " s";
}

std::string ago(double seconds) {
  seconds = std::max(0.0, seconds);  // another clock may be ahead
  if (seconds >= 10) return duration(seconds);
  char text[32];
  std::snprintf(text, sizeof text, "%.1f s", seconds);
  return text;
}

}  // namespace comera
