// A file that was damaged at random.
#pragma once
#include <algorithm>
#include <random>
#include <string>

namespace comera::test {

// One to four changes: a byte, a piece that is taken out, moved or repeated, an end that is cut off, numbers and quotes of other places.
inline std::string damaged(const std::string& good, std::mt19937_64& random) {
  std::string bytes = good;
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % std::max<size_t>(n, 1)); };
  for (size_t changes = 1 + below(4); changes > 0 && !bytes.empty(); --changes) {
    const size_t at = below(bytes.size()), length = below(std::min<size_t>(bytes.size() - at, 40));
    static const char* const kPieces[] = {"\"", "\n", "\t", ",", "-1", "99999999999999999999", "{", "]", "\xff", "null", "\\u0000", ""};
    switch (below(6)) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes.erase(at, length);
        break;
      case 2:
        bytes.insert(below(bytes.size()), bytes.substr(at, length));
        break;
      case 3:
        bytes.resize(at);
        break;
      case 4:
        bytes.replace(at, length, kPieces[below(std::size(kPieces))]);
        break;
      default:
        bytes.insert(at, kPieces[below(std::size(kPieces))]);
    }
  }
  return bytes;
}

}  // namespace comera::test
