// SHA-256 (FIPS 180-4), for the fingerprints of data files.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace comera {

// Thread: its owner's.
class Sha256 {
 public:
  void update(std::string_view bytes);
  std::string hex();  // of all bytes so far, 64 characters; ends the use of this object

 private:
  void block(const unsigned char* bytes);  // 64 bytes
  std::array<uint32_t, 8> state_ = {0x6a09e667u, 0xbb67ae85u, 0x3c6ef372u, 0xa54ff53au, 0x510e527fu, 0x9b05688cu, 0x1f83d9abu, 0x5be0cd19u};
  std::array<unsigned char, 64> rest_{};
  uint64_t bytes_ = 0;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace comera
