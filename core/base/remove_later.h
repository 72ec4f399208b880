// Takes an unfinished file away at the end of a scope, whatever happened in it; harmless once the file was renamed.
#pragma once
#include <filesystem>
#include <string>
#include <utility>

namespace comera {

class RemoveLater {
 public:
  explicit RemoveLater(std::string path) : path_(std::move(path)) {}
  RemoveLater(const RemoveLater&) = delete;
  RemoveLater& operator=(const RemoveLater&) = delete;
  ~RemoveLater() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

 private:
  std::string path_;
};

}  // namespace comera
