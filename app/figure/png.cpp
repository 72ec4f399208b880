#include "app/figure/png.h"

#include <zlib.h>

#include <cstdio>
#include <cstring>
#include <memory>

#include "core/base/error.h"

namespace comera {
namespace {

void append_u32(std::vector<uint8_t>& out, uint32_t value) {
  for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<uint8_t>(value >> shift));
}

void append_chunk(std::vector<uint8_t>& out, const char* type, const std::vector<uint8_t>& data) {
  append_u32(out, static_cast<uint32_t>(data.size()));
  const size_t begin = out.size();
  out.insert(out.end(), type, type + 4);
  out.insert(out.end(), data.begin(), data.end());
  append_u32(out, static_cast<uint32_t>(crc32(0, out.data() + begin, static_cast<uInt>(out.size() - begin))));
}

}  // namespace

std::string png_file(const Picture& picture) {
  const size_t row = static_cast<size_t>(picture.width) * 3, rows = static_cast<size_t>(picture.height);
  CHECK(picture.rgb.size() == row * rows, picture.rgb.size() << " bytes for " << picture.width << "x" << picture.height);
  std::vector<uint8_t> lines;
  lines.reserve((row + 1) * rows);
  for (size_t y = 0; y < rows; ++y) {  // filter 1 (difference to the previous pixel): flat areas become zeros, which compress well
    const uint8_t* line = picture.rgb.data() + y * row;
    lines.push_back(1);
    for (size_t x = 0; x < row; ++x) lines.push_back(static_cast<uint8_t>(line[x] - (x >= 3 ? line[x - 3] : 0)));
  }
  uLongf packed = compressBound(static_cast<uLong>(lines.size()));
  std::vector<uint8_t> data(packed);
  CHECK(compress2(data.data(), &packed, lines.data(), static_cast<uLong>(lines.size()), 6) == Z_OK, "zlib");
  data.resize(packed);
  std::vector<uint8_t> header;
  append_u32(header, static_cast<uint32_t>(picture.width));
  append_u32(header, static_cast<uint32_t>(picture.height));
  header.insert(header.end(), {8, 2, 0, 0, 0});  // 8 bits, RGB
  std::vector<uint8_t> file = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  append_chunk(file, "IHDR", header);
  append_chunk(file, "IDAT", data);
  append_chunk(file, "IEND", {});
  return {file.begin(), file.end()};
}

void write_png(const Picture& picture, const std::string& path) {
  const std::string file = png_file(picture);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> out(std::fopen(path.c_str(), "wb"), std::fclose);
  if (!out || std::fwrite(file.data(), 1, file.size(), out.get()) != file.size() || std::fflush(out.get()) != 0)
    throw Error(ErrorCode::storage, "cannot write " + path, std::strerror(errno), "choose another path");
}

}  // namespace comera
