// A text file as one long run of tokens, for language models: those of a tokenizer, or its bytes, 256 different ones. Row r is tokens
// r L .. r L + L - 1, and behind each the next one as its label; the last token of the file has none. Bytes stay in the mapped file, tokens
// of a long text in a mapped file of the cache (token_pack.h).
#pragma once
#include "core/data/dataset.h"
#include "core/data/mapped_file.h"
#include "core/data/token_pack.h"
#include "core/data/tokenizer.h"

namespace comera {

class TextStream final : public Dataset {
 public:
  // `length` L, at least 1. `tokenizer`: what open_tokenizer takes; "" = bytes. `masked`: for a masked language model, which may read
  // segments. `progress` gets the share of the text that is tokenized, 0..1. Throws Error as MappedFile and open_tokenizer do.
  TextStream(const std::string& path, int64_t length, const std::string& tokenizer = "", bool masked = false,
             const std::function<void(double)>& progress = {});

  static bool is(const std::string& path);  // by its name: .txt

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override;
  int64_t tokens(int64_t row, int64_t max_length) const override;
  std::string shown(int64_t row, int64_t max_length) const override;

 private:
  size_t count() const { return tokenizer_ ? tokens_.size() : file_.bytes().size(); }
  int32_t token(size_t i) const { return tokenizer_ ? tokens_[i] : static_cast<unsigned char>(file_.bytes()[i]); }

  const MappedFile file_;
  const int64_t length_;
  const bool masked_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // null: tokens are bytes
  std::unique_ptr<const TokenPack> pack_;       // null: the text is short
  std::vector<int32_t> held_;                   // of a short text
  std::span<const int32_t> tokens_;
  DatasetInfo info_;
};

}  // namespace comera
