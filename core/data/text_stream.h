// A text file as one long run of tokens, for language models: its bytes, 256 different ones. Row r is tokens r L .. r L + L - 1, and
// behind each the next one as its label; the last token of the file has none.
#pragma once
#include "core/data/dataset.h"
#include "core/data/mapped_file.h"

namespace comera {

class TextStream final : public Dataset {
 public:
  // `length` L, at least 1. Throws Error as MappedFile does.
  TextStream(const std::string& path, int64_t length);

  static bool is(const std::string& path);  // by its name: .txt

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override;

 private:
  const MappedFile file_;
  const int64_t length_;
  DatasetInfo info_;
};

}  // namespace comera
