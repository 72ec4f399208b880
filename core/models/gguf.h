// GGUF files (version 3) of LLaMA models, as llama.cpp reads them: metadata as typed keys, then tensors whose first size is the one that
// changes fastest. Rows of queries and keys stand in the order of its rotary positions: pairs side by side.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/config/model.h"

namespace comera {

// How matrices are stored; vectors are always F32. q8_0: blocks of 32 values with a scale in F16; a matrix whose rows do not divide into
// blocks is stored as F16.
enum class GgufType : unsigned char { f32, f16, q8_0 };

// values(parameter): of each dense parameter. `tokenizer`: a tokenizer.json, "" = none: the file has no vocabulary then.
// `ids`: of special tokens, as of put_tokenizer(). Throws Error(config) for a model that is no LLaMA or a tokenizer that has another form,
// Error(storage).
void write_gguf(const std::string& path, const ModelConfig& model, GgufType type, const std::string& name, const std::string& tokenizer,
                const Json& ids, const std::function<std::vector<double>(const std::string& param)>& values);

// A file of this form, read whole: its metadata as JSON, and tensors as doubles in the order of the file.
class GgufFile {
 public:
  // Throws Error(not_found | storage).
  explicit GgufFile(const std::string& path);

  struct Entry {
    std::vector<int64_t> shape;  // row-major: the last size changes fastest
    uint32_t type = 0;           // 0 F32, 1 F16, 8 Q8_0
    uint64_t offset = 0;         // behind the header
  };
  const Json& metadata() const { return metadata_; }
  const std::map<std::string, Entry>& entries() const { return entries_; }
  std::vector<double> values(const std::string& name) const;

 private:
  [[noreturn]] void unsound(const std::string& why) const;
  const std::string path_;
  std::string bytes_;
  size_t data_ = 0;
  Json metadata_;
  std::map<std::string, Entry> entries_;
};

// put(parameter, values) for each dense parameter of a file that write_gguf() wrote.
void read_gguf(const GgufFile& file, const ModelConfig& model,
               const std::function<void(const std::string& param, const std::vector<double>& values)>& put);

}  // namespace comera
