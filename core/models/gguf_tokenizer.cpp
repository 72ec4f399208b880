#include "core/models/gguf_tokenizer.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/models/folder_errors.h"

namespace comera {

using folder_errors::refuse;
using folder_errors::shown;

void GgufMetadata::text(const std::string& key, const std::string& value) {
  gguf_bytes::text(key, bytes);
  gguf_bytes::number<uint32_t>(gguf_bytes::kText, bytes);
  gguf_bytes::text(value, bytes);
  ++count;
}

namespace {

void put_value(const std::string& value, std::string& out) { gguf_bytes::text(value, out); }
template <class T>
void put_value(T value, std::string& out) {
  gguf_bytes::number(value, out);
}

template <class T>
void put_one(const std::string& key, gguf_bytes::Type type, T value, GgufMetadata& to) {
  gguf_bytes::text(key, to.bytes);
  gguf_bytes::number<uint32_t>(type, to.bytes);
  put_value(value, to.bytes);
  ++to.count;
}

template <class T>
void put_list(const std::string& key, gguf_bytes::Type type, const std::vector<T>& values, GgufMetadata& to) {
  gguf_bytes::text(key, to.bytes);
  gguf_bytes::number<uint32_t>(gguf_bytes::kList, to.bytes);
  gguf_bytes::number<uint32_t>(type, to.bytes);
  gguf_bytes::number(static_cast<uint64_t>(values.size()), to.bytes);
  for (const T& value : values) put_value(value, to.bytes);
  ++to.count;
}

enum Kind : int32_t { kNormal = 1, kUnknown = 2, kControl = 3, kUser = 4, kUnused = 5, kByte = 6 };

// A vocabulary as GGUF has it: by id.
struct Vocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;

  Vocabulary(const std::string& path, int64_t size) : path_(path), size_(size) {
    for (int64_t id = 0; id < size; ++id) tokens.push_back("[PAD" + std::to_string(id) + "]");
    kinds.assign(static_cast<size_t>(size), kUnused);
  }
  void put(const std::string& token, const Json& id, int32_t kind) {
    if (!id.is_number_integer() || id < 0 || id >= size_)
      refuse(path_, "token " + shown(token) + " has the id " + shown(id), "the model has " + std::to_string(size_) + " tokens");
    tokens[id.get<size_t>()] = token;
    kinds[id.get<size_t>()] = kind;
    ids_[token] = id.get<uint32_t>();
  }
  const uint32_t* find(const std::string& token) const {
    const auto found = ids_.find(token);
    return found == ids_.end() ? nullptr : &found->second;
  }

 private:
  const std::string path_;
  const int64_t size_;
  std::map<std::string, uint32_t> ids_;
};

bool is_byte(const std::string& token) { return token.size() == 6 && token.starts_with("<0x") && token.back() == '>'; }

// "a b", or ["a", "b"] in newer files.
std::vector<std::pair<std::string, std::string>> merges_of(const std::string& path, const Json& merges) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Json& merge : merges) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      all.emplace_back(merge[0], merge[1]);
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t space = text.find(' ');
    if (space == std::string::npos) refuse(path, "merge " + shown(merge) + " is not a pair", "");
    all.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
  return all;
}

Vocabulary read_tokens(const std::string& path, const Json& file, int64_t vocab, bool by_characters) {
  Vocabulary tokens(path, vocab);
  const Json& model = file["model"];
  const Json unknown = model.value("unk_token", Json());
  for (const auto& [token, id] : model["vocab"].items())
    tokens.put(token, id, Json(token) == unknown ? kUnknown : by_characters && is_byte(token) ? kByte : kNormal);
  for (const Json& added : file.value("added_tokens", Json::array())) {
    if (!added.is_object() || !added.contains("content") || !added["content"].is_string() || !added.contains("id"))
      refuse(path, "an added token has no content and id", "");
    if (added["content"] == unknown) continue;
    tokens.put(added["content"], added["id"], added.value("special", Json(false)) == true ? kControl : kUser);
  }
  return tokens;
}

void put_specials(const Vocabulary& tokens, const Json& ids, GgufMetadata& to) {
  const auto put = [&](const std::string& key, const char* of_config, std::initializer_list<const char*> names) {
    Json id = ids.value(of_config, Json());
    if (id.is_array() && !id.empty()) id = id.front();
    if (id.is_number_integer() && id >= 0 && id < tokens.tokens.size()) return to.number("tokenizer.ggml." + key, id.get<uint32_t>());
    for (const char* name : names)
      if (const uint32_t* named = tokens.find(name)) return to.number("tokenizer.ggml." + key, *named);
  };
  put("bos_token_id", "bos_token_id", {"<s>", "<|begin_of_text|>", "<|endoftext|>"});
  put("eos_token_id", "eos_token_id", {"</s>", "<|end_of_text|>", "<|endoftext|>"});
  put("unknown_token_id", "", {"<unk>"});
  put("padding_token_id", "pad_token_id", {"<pad>"});
}

}  // namespace

void GgufMetadata::number(const std::string& key, uint32_t value) { put_one(key, gguf_bytes::kU32, value, *this); }
void GgufMetadata::number(const std::string& key, float value) { put_one(key, gguf_bytes::kFloat, value, *this); }
void GgufMetadata::boolean(const std::string& key, bool value) { put_one(key, gguf_bytes::kBool, static_cast<uint8_t>(value), *this); }
void GgufMetadata::list(const std::string& key, const std::vector<std::string>& values) { put_list(key, gguf_bytes::kText, values, *this); }
void GgufMetadata::list(const std::string& key, const std::vector<float>& values) { put_list(key, gguf_bytes::kFloat, values, *this); }
void GgufMetadata::list(const std::string& key, const std::vector<int32_t>& values) { put_list(key, gguf_bytes::kI32, values, *this); }

void put_tokenizer(const std::string& path, int64_t vocab, const Json& ids, GgufMetadata& to) {
  const Json file = read_json_file(path);
  const auto is = [&](const char* key, const auto& test) { return file["model"].contains(key) && test(file["model"][key]); };
  if (!file.is_object() || !file.contains("model") || !file["model"].is_object() ||
      !is("vocab", [](const Json& v) { return v.is_object(); }) || !is("merges", [](const Json& v) { return v.is_array(); }))
    refuse(path, "not a tokenizer of byte pairs", "it has no model with a vocabulary and merges",
           "use the tokenizer.json of a LLaMA model");
  const bool by_characters = file["model"].value("byte_fallback", Json(false)) == true;
  const Vocabulary tokens = read_tokens(path, file, vocab, by_characters);
  const auto merges = merges_of(path, file["model"]["merges"]);
  to.text("tokenizer.ggml.model", by_characters ? "llama" : "gpt2");
  to.text("tokenizer.ggml.pre", by_characters ? "default" : "gpt-2");
  to.list("tokenizer.ggml.tokens", tokens.tokens);
  if (by_characters) {  // the earlier a merge, the higher the score of the token that it makes
    std::vector<float> scores(tokens.tokens.size(), 0);
    for (size_t i = merges.size(); i-- > 0;)
      if (const uint32_t* id = tokens.find(merges[i].first + merges[i].second)) scores[*id] = -static_cast<float>(i + 1);
    to.list("tokenizer.ggml.scores", scores);
  }
  to.list("tokenizer.ggml.token_type", tokens.kinds);
  std::vector<std::string> pairs;
  for (const auto& [first, second] : merges) pairs.push_back(first + " " + second);
  if (!by_characters) to.list("tokenizer.ggml.merges", pairs);
  put_specials(tokens, ids, to);
}

}  // namespace comera
