// Gzip files, unpacked a piece at a time.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace comera {

inline bool is_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

// Thread: its owner's.
class GzipReader {
 public:
  // `packed`, of the file `path`, must outlive it.
  GzipReader(std::string path, std::string_view packed);
  ~GzipReader();
  GzipReader(const GzipReader&) = delete;
  GzipReader& operator=(const GzipReader&) = delete;

  // The next bytes, at most `most`; empty at the end. Valid until the next call. Throws Error(config) for damaged data.
  std::string_view next(size_t most = 1 << 18);
  double share() const;  // of the packed bytes that have been read, 0..1

 private:
  struct Stream;
  const std::string path_;
  const size_t size_;
  std::string_view rest_;
  std::unique_ptr<Stream> stream_;
  std::string buffer_;
  uint64_t made_ = 0;
  bool ended_ = false;
};

// All of it. Throws Error(config) where that is nothing.
std::string unpack_gzip(const std::string& path, std::string_view packed);

}  // namespace comera
