// A file that is derived from a data file and kept in the cache folder, which may be deleted at any time. It is written under another name
// first, so it is complete or not there.
#pragma once
#include <cstddef>
#include <fstream>
#include <functional>
#include <string>

namespace comera {

// Where a packed file is written. Every error names the data file `source`.
class PackedOutput {
 public:
  PackedOutput(std::string source, std::ofstream& out) : source_(std::move(source)), out_(out) {}
  // Throw Error(storage) where the disk is full.
  void write(const void* data, size_t bytes);
  void write_at_begin(const void* data, size_t bytes);  // over what stands there
  void close();

 private:
  [[noreturn]] void no_room() const;
  const std::string source_;
  std::ofstream& out_;
};

// Has open(PATH) map the file `name` of the cache folder. Where there is none, or `open` refuses it (false), write(OUTPUT) makes it first.
// Throws Error(storage) where neither the cache folder nor the folder of temporary files can be written to.
void open_packed(const std::string& name, const std::string& source, const std::function<bool(const std::string&)>& open,
                 const std::function<void(PackedOutput&)>& write);

}  // namespace comera
