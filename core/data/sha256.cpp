#include "core/data/sha256.h"

#include <cstdint>

namespace comera {

void Sha256::update(std::string_view bytes) { sha256_update(&state_, bytes.size(), reinterpret_cast<const uint8_t*>(bytes.data())); }

std::string Sha256::hex() {
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_digest(&state_, sizeof digest, digest);
  std::string out;
  for (const uint8_t byte : digest) {
    static const char* digits = "0123456789abcdef";
    out.push_back(digits[byte >> 4]);
    out.push_back(digits[byte & 15]);
  }
  return out;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 sum;
  sum.update(bytes);
  return sum.hex();
}

}  // namespace comera
