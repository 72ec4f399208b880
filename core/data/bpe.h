// Byte-pair encoding over bytes (GPT-2, RoBERTa), or over characters with bytes for unknown ones (LLaMA).
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/base/wide_json.h"
#include "core/data/tokenizer.h"

namespace comera {

class WordCache;

// Bytes that are not UTF-8 count as U+FFFD, one for each maximal part of a character. The text of a special token is that token.
class BpeTokenizer final : public Tokenizer {
 public:
  // Of a tokenizer.json. Throws as open_tokenizer, or WideJson::exception where a part is missing.
  static std::shared_ptr<const BpeTokenizer> of_json(const std::string& path, const WideJson& file, const std::string& fingerprint);
  // Of the vocab.json and merges.txt of a folder: bytes, with RoBERTa's special tokens around texts where the vocabulary has them. What a
  // tokenizer_config.json says of add_prefix_space counts.
  static std::shared_ptr<const BpeTokenizer> of_files(const std::string& folder);

  using Tokenizer::encode;
  void encode(std::string_view text, std::vector<int32_t>& ids) const override;
  std::string decode(const std::vector<int32_t>& ids) const override;

 private:
  struct Merge {
    int32_t rank, made;
  };
  enum class Spaces : unsigned char { kept, before_each, before_first };  // where U+2581 is put in front
  struct Model {
    TokenIds ids;
    std::unordered_map<uint64_t, Merge> merges;  // by both ids
    std::array<int32_t, 256> bytes{};            // id of each byte; -1: none
    bool by_bytes = false, prefix_space = false;
    Spaces spaces = Spaces::kept;
    int32_t unknown = -1;  // for characters without an id
  };

  BpeTokenizer(TokenTable table, Model model);
  static void read_merges(const TokenReader& reader, const WideJson& merges, Model& model);
  static void add_merge(const TokenReader& reader, std::string_view left, std::string_view right, const std::string& where, Model& model);
  static void read_steps(const TokenReader& reader, const WideJson& file, Model& model);
  static void take_bytes(const TokenReader& reader, Model& model);
  void encode_plain(std::string_view text, bool first, WordCache& cache, std::vector<int32_t>& ids) const;
  void encode_by_words(std::string_view text, WordCache& cache, std::vector<int32_t>& ids) const;
  void encode_characters(std::string_view text, std::vector<int32_t>& ids) const;
  void merge(std::vector<int32_t>& symbols) const;
  void merge_few(std::vector<int32_t>& symbols) const;
  std::string decode_bytes(const std::vector<int32_t>& ids) const;

  const Model model_;
  const AddedSplitter added_;
};

}  // namespace comera
