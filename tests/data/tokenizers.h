// Where the tokenizers of the golden models are: tests/golden_models/tokenizers, or $COMERA_GOLDEN_MODELS/tokenizers.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "core/base/json.h"
#include "core/data/tokenizer.h"
#include "tests/data/support.h"

namespace comera::test {

inline std::filesystem::path tokenizers() {
  const char* given = std::getenv("COMERA_GOLDEN_MODELS");
  return std::filesystem::path(given ? given : COMERA_SOURCE_DIR "/tests/golden_models") / "tokenizers";
}

inline Json tokenizer_json(const std::string& name) { return read_json_file(tokenizers() / name / "tokenizer.json"); }

inline std::shared_ptr<const Tokenizer> published(const std::string& name) { return open_tokenizer((tokenizers() / name).string()); }

// The folder's vocab.json and merges.txt as the tokenizer.json has them.
inline void write_vocabulary_and_merges(const Folder& folder, const Json& file) {
  Json vocabulary = file["model"]["vocab"];
  for (const Json& added : file["added_tokens"]) vocabulary[added["content"].get<std::string>()] = added["id"];
  folder.write("vocab.json", vocabulary.dump());
  std::string merges = "#version: 0.2\n";
  for (const Json& merge : file["model"]["merges"]) merges += merge[0].get<std::string>() + " " + merge[1].get<std::string>() + "\n";
  folder.write("merges.txt", merges);
}

}  // namespace comera::test
