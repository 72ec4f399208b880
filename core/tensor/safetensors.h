// safetensors files: an 8-byte little-endian header size, a JSON header (dtype, shape, data_offsets; text metadata),
// then the tensors, row-major and little-endian, without overlap or hole. The reader treats a file as hostile.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/mapped_file.h"

namespace comera {

struct SafetensorsEntry {
  std::string dtype;  // F64 F32 F16 BF16 I64 I32 I16 I8 U8 BOOL
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  // bytes after the header

  int64_t count() const;
};

// A mapped file. Throws as MappedFile, Error(storage) when it is not a sound file.
class SafetensorsFile {
 public:
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  bool has(const std::string& name) const { return entries_.count(name) > 0; }
  // Throws Error(storage) that names the file when there is no such tensor.
  const SafetensorsEntry& entry(const std::string& name) const;
  // Mapped, not read: valid as long as this object, aligned to nothing. Who has read it calls check_unchanged().
  const void* data(const std::string& name) const;
  // Throws as MappedFile::check_unchanged().
  void check_unchanged() const;
  // Values of any number type as double (BOOL and integers included). Throws as entry() and check_unchanged().
  std::vector<double> values(const std::string& name) const;

 private:
  void read_header();
  void read_entry(const std::string& name, const nlohmann::json& json);

  int64_t bytes() const { return std::ssize(file_.bytes()); }

  MappedFile file_;
  std::map<std::string, SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
  int64_t data_begin_ = 0;
};

// While it lives it is told how far the files are that this thread writes: bytes that the system has taken, of all. Once
// more with all of them before the wait for the disk. At most one a thread.
class WatchWrites {
 public:
  explicit WatchWrites(std::function<void(int64_t done, int64_t total)> tell);
  ~WatchWrites();
  WatchWrites(const WatchWrites&) = delete;

 private:
  std::function<void(int64_t done, int64_t total)> tell_;
};

// Writes a file at once or not at all: a temporary beside it, fsync, rename. Tensors are streamed in the order added;
// their memory is read in finish(). Throws Error(storage) (disk full, no permission); the temporary is removed then.
class SafetensorsWriter {
 public:
  void metadata(const std::string& key, const std::string& value) { metadata_[key] = value; }
  // `data` must live until finish().
  void add(const std::string& name, const std::string& dtype, std::vector<int64_t> shape, const void* data);
  // The same, from values kept inside the writer, stored as F64, F32, F16 or BF16.
  void add_values(const std::string& name, const std::string& dtype, std::vector<int64_t> shape, const std::vector<double>& values);
  // Bytes of the finished file.
  int64_t finish(const std::string& path);

 private:
  struct Item {
    std::string name, dtype;
    std::vector<int64_t> shape;
    const void* data;
    int64_t bytes;
  };
  std::vector<Item> items_;
  std::vector<std::unique_ptr<char[]>> owned_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace comera
