// Writes pictures as PNG files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace comera {

struct Picture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows from top to bottom, 3 bytes per pixel
};

// The bytes of the file.
std::string png_file(const Picture& picture);
// Throws Error(storage).
void write_png(const Picture& picture, const std::string& path);

}  // namespace comera
