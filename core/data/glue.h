// Text sets: GLUE's TSV files (MNLI, QNLI, SST-2 and their like), CSV, JSONL and Parquet files, with the same names or with columns that
// are named.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/data/dataset.h"
#include "core/data/labels.h"
#include "core/data/text_file.h"
#include "core/data/text_lines.h"
#include "core/data/tokenizer.h"

namespace comera {

// The file is mapped; kept in memory are 16 bytes a row (where it starts, its label, once it was read its tokens). Rows are parsed and
// tokenised when asked for. Rows with an empty sentence, and rows labelled "-" (MNLI's and SNLI's mark for no agreement), are
// left out. A test file without a label column takes its labels from NAME.labels.tsv beside it, when that is there
// ("index<tab>prediction", one line a row); labels.txt beside it names the classes.
class GlueDataset final : public Dataset {
 public:
  struct Options {
    int64_t classes = 0;  // 0 = the names' count, else the largest label in the file + 1
    ColumnNames columns = {};
    std::vector<std::string> label_names = {};  // of the training file, where no labels.txt names the classes
    bool labels = true;                         // false: labels are not read, and a row with an empty text or the label "-" counts
    bool masked = false;  // rows for a masked language model: labels are a token's (describe_texts), and those of the file are not read
    std::function<void(double)> progress = {};  // of a Parquet file that is read for the first time (text_file.h)
  };
  // Labels that are names become classes in alphabetical order; MNLI's and QNLI's have GLUE's order where no columns are asked for and the
  // file is neither a CSV nor a Parquet file. Reads the whole file once.
  // Throws Error(config) naming file and line (of a Parquet file the row) for the first row that is not right;
  // Error(not_found) for a missing file. Throws as TextFile does.
  GlueDataset(const std::string& path, std::shared_ptr<const Tokenizer> tokenizer, const Options& options);
  GlueDataset(const std::string& path, std::shared_ptr<const Tokenizer> tokenizer, int64_t classes = 0)
      : GlueDataset(path, std::move(tokenizer), Options{.classes = classes}) {}

  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override;
  int64_t tokens(int64_t row, int64_t max_length) const override;
  std::string shown(int64_t row, int64_t max_length) const override;
  void check_unchanged() const override { file_.check_unchanged(); }

 private:
  void scan(Labels& labels, const std::vector<std::string>& joined, bool all);
  std::vector<std::string> read_joined_labels(const std::string& path) const;
  void describe(const Labels& labels, const std::string& labels_content);
  struct Texts {
    std::vector<int32_t> first, second;
  };
  Texts texts(int64_t row) const;
  int64_t room(int64_t max_length) const;

  const TextFile file_;
  const TextLayout layout_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const bool masked_;
  DatasetInfo info_;
  std::vector<int64_t> offsets_;  // (rows) where it starts
  std::vector<int32_t> labels_;   // (rows)
  // (rows) tokens of its texts before they are cut, plus 1; 0: not known yet.
  mutable std::vector<std::atomic<uint32_t>> known_tokens_;
};

// Cuts (a, b) to at most `budget` tokens in all: the last token of the longer side goes, the first side's on a tie.
void cut_pair(std::vector<int32_t>& a, std::vector<int32_t>& b, int64_t budget);

}  // namespace comera
