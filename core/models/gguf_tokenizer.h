// Metadata of a GGUF file, and a tokenizer as such.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/json.h"

namespace comera {

namespace gguf_bytes {  // little-endian

enum Type : uint32_t { kU32 = 4, kI32 = 5, kFloat = 6, kBool = 7, kText = 8, kList = 9 };

template <class T>
void number(T value, std::string& out) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
inline void text(const std::string& value, std::string& out) {
  number(static_cast<uint64_t>(value.size()), out);
  out += value;
}

}  // namespace gguf_bytes

struct GgufMetadata {
  std::string bytes;
  uint64_t count = 0;

  void text(const std::string& key, const std::string& value);
  void number(const std::string& key, uint32_t value);
  void number(const std::string& key, float value);
  void boolean(const std::string& key, bool value);
  void list(const std::string& key, const std::vector<std::string>& values);
  void list(const std::string& key, const std::vector<float>& values);
  void list(const std::string& key, const std::vector<int32_t>& values);
};

// The tokens, kinds of tokens, merges or scores of a tokenizer.json: that of LLaMA 2 (BPE over characters, bytes for unknown ones) becomes
// "llama", whose scores are the order of merges; one over bytes becomes "gpt2". Tokens that are missing up to `vocab` are filled up.
// Special tokens have the ids of `ids`, as config.json names them (bos_token_id; of several the first), and where it has none those of
// LLaMA's and GPT-2's names. Throws Error(config) for a tokenizer of another form, or with more tokens than the model.
void put_tokenizer(const std::string& path, int64_t vocab, const Json& ids, GgufMetadata& to);

}  // namespace comera
