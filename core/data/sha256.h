// SHA-256 (FIPS 180-4) by Nettle, for the fingerprints of data files.
#pragma once
#include <nettle/sha2.h>

#include <string>
#include <string_view>

namespace comera {

// Thread: its owner's.
class Sha256 {
 public:
  Sha256() { sha256_init(&state_); }
  void update(std::string_view bytes);
  std::string hex();  // of all bytes so far, 64 characters; ends the use of this object

 private:
  sha256_ctx state_;
};

std::string sha256_hex(std::string_view bytes);

}  // namespace comera
