// Texts as one long run of tokens, for language models: those of a tokenizer, or bytes, 256 different ones. Row r is tokens
// r L .. r L + L - 1, and behind each the next one as its label; the last token of all has none. Rows know nothing of where a text ends but
// for the tokens there. Bytes of a text file stay in the mapped file, tokens of long texts in a mapped file of the cache (token_pack.h).
#pragma once
#include "core/data/dataset.h"
#include "core/data/documents.h"
#include "core/data/token_pack.h"
#include "core/data/tokenizer.h"

namespace comera {

class TextStream final : public Dataset {
 public:
  struct Options {
    int64_t length = 128;                       // L, at least 1
    std::string tokenizer = {};                 // what open_tokenizer takes; "" = bytes
    bool masked = false;                        // for a masked language model, which may read segments
    std::function<void(double)> progress = {};  // the share of the texts that is tokenized, 0..1
  };
  // Throws Error as open_tokenizer and Documents::ids() do.
  TextStream(std::unique_ptr<const Documents> texts, const Options& options);

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override;
  int64_t tokens(int64_t row, int64_t max_length) const override;
  std::string shown(int64_t row, int64_t max_length) const override;

 private:
  void tokenize(const std::function<void(double)>& progress);
  size_t count() const { return bytes_.empty() ? tokens_.size() : bytes_.size(); }
  int32_t token(size_t i) const { return bytes_.empty() ? tokens_[i] : static_cast<unsigned char>(bytes_[i]); }

  const std::unique_ptr<const Documents> texts_;
  const int64_t length_;
  const bool masked_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // null: tokens are bytes
  std::string_view bytes_;                      // of one text whose tokens are its bytes
  std::unique_ptr<const TokenPack> pack_;       // null: the texts are short
  std::vector<int32_t> held_;                   // of short texts
  std::span<const int32_t> tokens_;
  DatasetInfo info_;
};

}  // namespace comera
