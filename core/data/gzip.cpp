#include "core/data/gzip.h"

#include <zlib.h>

#include <algorithm>

#include "core/base/error.h"

namespace comera {

struct GzipReader::Stream {
  z_stream z = {};
  ~Stream() { inflateEnd(&z); }
};

GzipReader::GzipReader(std::string path, std::string_view packed)
    : path_(std::move(path)), size_(packed.size()), rest_(packed), stream_(std::make_unique<Stream>()) {
  constexpr int kGzip = 15 + 16;  // the largest window, gzip header
  CHECK(inflateInit2(&stream_->z, kGzip) == Z_OK);
}

GzipReader::~GzipReader() = default;

std::string_view GzipReader::next(size_t most) {
  const auto damaged = [&](const std::string& why) { throw Error(ErrorCode::config, path_ + " is damaged", why, "get the file again"); };
  z_stream& z = stream_->z;
  buffer_.resize(most);
  z.next_out = reinterpret_cast<Bytef*>(buffer_.data());
  z.avail_out = static_cast<uInt>(most);
  while (!ended_ && z.avail_out > 0) {
    if (z.avail_in == 0 && !rest_.empty()) {
      const size_t take = std::min<size_t>(rest_.size(), 1 << 30);  // avail_in is 32 bits wide
      z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(rest_.data()));
      z.avail_in = static_cast<uInt>(take);
      rest_.remove_prefix(take);
    }
    const int status = inflate(&z, Z_NO_FLUSH);
    if (status == Z_BUF_ERROR) damaged("the gzip data end too early, after " + std::to_string(made_ + most - z.avail_out) + " bytes");
    if (status != Z_OK && status != Z_STREAM_END) damaged(z.msg ? std::string("gzip: ") + z.msg : "gzip: bad data");
    if (status != Z_STREAM_END) continue;
    // A gzip file may have several members, as `cat a.gz b.gz` makes. Other bytes behind them are padding.
    const std::string_view left(reinterpret_cast<const char*>(z.next_in), z.avail_in);
    ended_ = !is_gzip(left.empty() ? rest_ : left);
    if (!ended_) CHECK(inflateReset(&z) == Z_OK);
  }
  const size_t count = most - z.avail_out;
  made_ += count;
  return std::string_view(buffer_).substr(0, count);
}

double GzipReader::share() const {
  return size_ == 0 ? 1 : 1 - static_cast<double>(rest_.size() + stream_->z.avail_in) / static_cast<double>(size_);
}

std::string unpack_gzip(const std::string& path, std::string_view packed) {
  GzipReader reader(path, packed);
  std::string out;
  for (std::string_view piece = reader.next(); !piece.empty(); piece = reader.next()) out += piece;
  if (out.empty()) throw Error(ErrorCode::config, path + " is empty", "it unpacks to 0 bytes", "get the file again");
  return out;
}

}  // namespace comera
