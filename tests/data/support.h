// What the data tests share: a folder that goes away, small files, errors as values.
#pragma once
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/data/tokenizer.h"

namespace comera::test {

inline const std::string kAssets = std::string(COMERA_SOURCE_DIR) + "/assets";
inline const std::string kVocab = kAssets + "/vocab/bert-uncased.txt";
inline const std::string kHere = std::string(COMERA_SOURCE_DIR) + "/tests/data";

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "comera-data-XXXXXX").string();
    if (!mkdtemp(name.data())) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  std::string write(const std::string& name, const std::string& content) const {
    const std::string path = path_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

 private:
  std::string path_;
};

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

inline std::shared_ptr<const Tokenizer> tokenizer() {
  static const auto shared = open_tokenizer(kVocab);
  return shared;
}

struct Caught {
  bool thrown = false;
  ErrorCode code = ErrorCode::other;
  std::string what, why, hint;
};
template <class Action>
Caught caught(Action action) {
  try {
    action();
  } catch (const Error& e) {
    return {true, e.code(), e.what(), e.why(), e.hint()};
  }
  return {};
}

// An error for people: all three texts, each one line without a final full stop.
inline void expect_told(const Caught& error, ErrorCode code, const std::string& in_what, const std::string& in_why) {
  ASSERT_TRUE(error.thrown) << "expected an error with " << in_what;
  EXPECT_EQ(error.code, code) << error.what;
  EXPECT_NE(error.what.find(in_what), std::string::npos) << error.what;
  EXPECT_NE(error.why.find(in_why), std::string::npos) << error.why;
  for (const std::string& text : {error.what, error.why, error.hint}) {
    EXPECT_FALSE(text.empty()) << error.what;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_FALSE(text.ends_with(".")) << text;
  }
}

inline std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8), static_cast<char>(value)};
}
inline std::string idx_images(uint32_t rows, uint32_t height, uint32_t width, const std::string& pixels) {
  return std::string("\0\0\x08\x03", 4) + big_endian(rows) + big_endian(height) + big_endian(width) + pixels;
}
inline std::string idx_labels(const std::string& labels) {
  return std::string("\0\0\x08\x01", 4) + big_endian(static_cast<uint32_t>(labels.size())) + labels;
}
inline std::string gzip(const std::string& data) {
  z_stream stream = {};
  deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, data.size()) + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(data.data()));
  stream.avail_in = static_cast<uInt>(data.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace comera::test
