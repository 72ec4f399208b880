// A text file as one long run of tokens, for language models: those of a tokenizer, or its bytes, 256 different ones. Row r is tokens
// r L .. r L + L - 1, and behind each the next one as its label; the last token of the file has none. Bytes stay in the mapped file; tokens
// are held in memory.
#pragma once
#include "core/data/bpe.h"
#include "core/data/dataset.h"
#include "core/data/mapped_file.h"

namespace comera {

class TextStream final : public Dataset {
 public:
  // `length` L, at least 1. `tokenizer`: a tokenizer.json; "" = bytes. Throws Error as MappedFile and BpeTokenizer do.
  TextStream(const std::string& path, int64_t length, const std::string& tokenizer = "");

  static bool is(const std::string& path);  // by its name: .txt

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override;
  std::string shown(int64_t row, int64_t max_length) const override;

 private:
  size_t count() const { return info_.vocab_fingerprint.empty() ? file_.bytes().size() : tokens_.size(); }
  int32_t token(size_t i) const { return info_.vocab_fingerprint.empty() ? static_cast<unsigned char>(file_.bytes()[i]) : tokens_[i]; }

  const MappedFile file_;
  const int64_t length_;
  std::unique_ptr<const BpeTokenizer> tokenizer_;  // null: tokens are bytes
  std::vector<int32_t> tokens_;
  DatasetInfo info_;
};

}  // namespace comera
