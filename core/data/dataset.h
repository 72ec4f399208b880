// What a loader gives: rows of text (token ids) or images with a label, read on demand from a mapped file, so a
// set may be larger than memory. Immutable after construction; any thread may read rows.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace comera {

struct DatasetInfo {
  std::string name;         // file or set name, for people
  bool text = false;        // text rows (token ids) or image rows (pixels)
  int64_t rows = 0;
  int64_t classes = 0;
  bool labelled = true;     // a test file may carry no labels; then every label is -1
  int64_t height = 0, width = 0;           // images
  int64_t vocab_size = 0;                  // text
  std::string vocab_fingerprint;           // text: sha256 (hex) of the vocabulary's file
  int32_t unknown_token = -1, cls_token = -1, sep_token = -1;  // ids of [UNK], [CLS], [SEP]
  std::vector<std::string> label_names;    // index = label; empty where the format has only numbers
  std::string fingerprint;                 // sha256 (hex) of the content that training depends on
};

struct TextRow {
  std::vector<int32_t> ids;       // [CLS] a [SEP] or [CLS] a [SEP] b [SEP], cut to the asked length
  std::vector<int32_t> segments;  // 0 up to and with the first [SEP], then 1
  int32_t label = -1;
};

struct ImageRow {
  std::vector<float> pixels;  // height*width, 0..1
  int32_t label = -1;
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetInfo& info() const = 0;
  // Row `row` of 0..rows-1. At most `max_length` tokens: the last token of the longer side is dropped (the first
  // side's on a tie) until both fit (METHODS.md 1.3). Throws Error(config) for a text call on images and vice versa.
  virtual void text_row(int64_t row, int64_t max_length, TextRow& out) const = 0;
  virtual void image_row(int64_t row, ImageRow& out) const = 0;
};

// One minibatch on the host. Sequences lie one after another in a flat run of `token_capacity` tokens: sequence s
// is tokens starts[s] .. starts[s]+lengths[s]. Padded batches put sequence s at s*length; packed batches put them
// back to back, so padding costs nothing. Unused tokens are some of the table's rows; unused sequences have length 0 and label -1.
struct Batch {
  int64_t sequences = 0;                        // in use, <= capacity
  int64_t tokens = 0;                           // in use: the sum of lengths
  std::vector<int32_t> ids, segments, positions;  // (T) T = token capacity; positions count from 0 in each sequence
  std::vector<int32_t> starts, lengths, labels;   // (S) S = sequence capacity
  std::vector<float> pixels;                      // (S, F) images
  std::vector<int64_t> rows;                      // (S) which row of the set, for methods that remember samples
  int64_t epoch = 0;
  int64_t cursor = 0, next_cursor = 0;  // examples drawn before and after this batch: the loader's whole state
};

struct BatchOptions {
  int64_t batch_size = 32;    // S, sequences or images a batch; of a batch in parts: a part
  int64_t parts = 1;          // of a batch, computed one after another: S, T and `token_budget` are a part's
  int64_t length = 128;       // tokens a sequence at most
  bool pack = false;          // whole sequences into `token_budget` tokens; fewer than S when they do not fit
  int64_t token_budget = 0;   // T when packing; 0 = batch_size*length/2
  double token_dropout = 0;   // training: this share of the tokens, [CLS] and [SEP] left out, is read as [UNK]
  bool shuffle = true;        // a new order each epoch, a pure function of (seed, epoch)
  bool drop_last = true;      // training: skip the partial batch at the end of an epoch; evaluation scores it
  uint64_t seed = 0;
};

// Makes the batch that starts at `cursor` examples, or part `part` of it. An epoch with fewer rows left than a batch is
// left before the first part. No part has rows of two epochs: where a packed batch meets the end of one, that part is not full.
// A pure function of (set, options, cursor, part): that is why a resumed run sees the same batches. Returns false at the end of the set when not shuffling (evaluation).
bool make_batch(const Dataset& data, const BatchOptions& options, int64_t cursor, Batch& out, int64_t part = 0);

}  // namespace comera
