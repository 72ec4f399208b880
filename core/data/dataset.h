// A data set: rows that fill named fields (token ids, pixels, a label), read on demand from a mapped file, so a set may be larger
// than memory. Immutable after construction; any thread may read rows.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/tensor/batch.h"

namespace comera {

// The label column of a text file: numbers, names with given numbers (by labels.txt, GLUE, or the training file), or names that were
// numbered in alphabetical order.
enum class LabelTexts : unsigned char { none, numbers, known_names, learned_names };

struct DatasetInfo {
  std::string name;        // file or set name, for people
  const char* holds = "";  // "text", "images", kJoinedTexts, for people
  BatchLayout fields;      // that it fills, each with the range of its values
  int64_t rows = 0;
  int64_t classes = 0;
  bool labelled = true;                                        // a test file may carry no labels; then every label is -1
  int64_t left_out = 0;                                        // rows of the file that are not rows of the set
  int64_t height = 0, width = 0, channels = 1;                 // images
  std::vector<int64_t> tables;                                 // a click log: rows of the table of each category
  int64_t vocab_size = 0;                                      // text
  std::string vocab_fingerprint;                               // text: sha256 (hex) of the vocabulary's file
  int32_t unknown_token = -1, cls_token = -1, sep_token = -1;  // ids of [UNK], [CLS], [SEP]
  int32_t mask_token = -1;                                     // -1: the tokenizer has none
  std::vector<int32_t> special_tokens;                         // of texts: are never masked; ascending
  std::vector<std::string> label_names;                        // index = label; empty where the format has only numbers
  LabelTexts label_texts = LabelTexts::none;
  std::string fingerprint;  // sha256 (hex) of the content that training depends on
};

// Say that a set holds texts or images: its fields, from the other members. Texts fill `ids` (i32 a token, with BERT's tokenizer [CLS] a
// [SEP] or [CLS] a [SEP] b [SEP]), `segments` (i32 a token, there 0 up to and with the first [SEP], then 1) and `labels` (i32); images
// fill `pixels` (height*width*channels reals, 0..1, the channels of a pixel side by side) and `labels`. `masked`: the labels are a
// token's, -1 until tokens are masked.
void describe_texts(DatasetInfo& info, bool masked = false);
void describe_images(DatasetInfo& info);
inline constexpr const char* kJoinedTexts = "joined texts";  // DatasetInfo::holds of them
// Joined texts in pieces, for language models: `ids` and `labels`, which are the next tokens (i32 a token; -1: none). `masked`: also
// `segments`, all 0.
void describe_stream(DatasetInfo& info, bool masked = false);

// Advice where a file with rows was written in place.
inline constexpr const char* kChangedData = "put it back as it was and resume the run, or train a new run on the new data";

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetInfo& info() const = 0;
  // Fills the fields of row 0..rows-1. At most `max_length` tokens: of a text the last token of the longer side is dropped (the first
  // side's on a tie) until both fit (METHODS.md 1.3).
  virtual void read(int64_t row, int64_t max_length, Columns& out) const = 0;
  // Of a set whose rows have tokens: how many read() would give, where the set knows it without reading the row; else it is read.
  virtual int64_t tokens(int64_t row, int64_t max_length) const;
  // A row as the model gets it, for people: its tokens, or what the set can say of it, and what counts in the loss.
  virtual std::string shown(int64_t row, int64_t max_length) const;
  // Throws Error(config) if a file with rows was written in place since the set was opened. make_batch() calls it.
  virtual void check_unchanged() const {}

 protected:
  std::string label_text(int32_t label) const;  // its name, its number, or "no label"
};

struct BatchOptions {
  int64_t batch_size = 32;  // S, sequences or images a batch; of a batch in parts: a part
  int64_t parts = 1;        // of a batch, computed one after another: S, T and `token_budget` are a part's
  int64_t process = 0;      // of several processes: a loader makes parts process, process + processes, ... alone
  int64_t processes = 1;
  int64_t length = 128;      // tokens a sequence at most
  bool pack = false;         // whole sequences into `token_budget` tokens; fewer than S when they do not fit
  int64_t token_budget = 0;  // T when packing; 0 = batch_size*length/2
  double mask_share = 0;     // share of the tokens that are masked and become the labels (METHODS.md 22)
  double token_dropout = 0;  // training: this share of the tokens, [CLS] and [SEP] left out, is read as [UNK]
  bool shuffle = true;       // a new order each epoch, a pure function of (seed, epoch)
  bool drop_last = true;     // training: skip the partial batch at the end of an epoch; evaluation scores it
  uint64_t seed = 0;
};

// Makes the batch that starts at `cursor` examples, or part `part` of it. An epoch with fewer rows left than a batch is
// left before the first part. No part has rows of two epochs: where a packed batch meets the end of one, that part is not full.
// A pure function of (set, options, cursor, part): that is why a resumed run sees the same batches. Returns false at the end of the set
// when not shuffling (evaluation). Throws as check_unchanged().
bool make_batch(const Dataset& data, const BatchOptions& options, int64_t cursor, Batch& out, int64_t part = 0);
// Where the next part begins, without this one: of a packed one Dataset::tokens() of its rows is asked for, else nothing.
int64_t cursor_behind(const Dataset& data, const BatchOptions& options, int64_t cursor, int64_t part);

}  // namespace comera
