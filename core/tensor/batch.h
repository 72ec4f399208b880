// The fields of a batch. A model declares the fields that it reads, a task its targets, a data set the fields that it fills;
// collator, upload and check of ranges know fields only.
#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/tensor/tensor.h"

namespace comera {

enum class Per : unsigned char { example, token };

struct BatchField {
  std::string name;          // "ids", "pixels", "labels"
  DType dtype = DType::i32;  // i32, or f32: reals, on the device in the format of the run
  Per per = Per::example;
  int64_t width = 1;          // values an example or token
  int64_t low = 0, high = 0;  // i32: values are in low..high-1; `low` fills places that are not in use
  bool spread = false;        // padding tokens take values from all over the range: scatters of a GPU then do not serialise on one row
  bool collated = false;      // filled by the collator, not by a data set (Batch)
  bool sparse = false;        // of targets: most are `low` and do not count, so the device gets the others alone (DeviceBatch::places)
  std::string about = {};     // by a data set: "the vocabulary has 30522 tokens"
  // By a model or task, for messages.
  std::string title = {};    // "token id"
  std::string setting = {};  // that bounds high or width: "model.encoder.vocab"
  std::string why = {};      // a data set with a larger one does not fit: "a token would be out of range"
  std::string hint = {};     // a value is out of range: "the data set needs a model with a larger vocabulary"
};

struct BatchLayout {
  std::vector<BatchField> fields;

  void add(BatchField field) {
    CHECK(!find(field.name), "two batch fields " << field.name);
    fields.push_back(std::move(field));
  }
  const BatchField* find(const std::string& name) const&& = delete;  // it would point into a layout that is gone
  const BatchField* find(const std::string& name) const& {
    const auto found = std::find_if(fields.begin(), fields.end(), [&](const BatchField& field) { return field.name == name; });
    return found == fields.end() ? nullptr : &*found;
  }
  // Examples are sequences of tokens. The collator then adds the fields positions, starts and lengths (Batch).
  bool has_tokens() const {
    return std::any_of(fields.begin(), fields.end(), [](const BatchField& field) { return field.per == Per::token; });
  }
};

// Values by field, on the host. Of a row: `width` values, of a token field as many a token.
struct Columns {
  std::map<std::string, std::vector<int32_t>> ints;
  std::map<std::string, std::vector<float>> reals;
};

// One minibatch on the host. An example field holds S x width values, a token field T x width. Sequences lie one after another in a
// flat run of T tokens: sequence s is tokens starts[s] .. starts[s]+lengths[s]. Padded batches put sequence s at s*length; packed
// batches put them back to back, so padding costs nothing. Unused tokens are some of the table's rows; unused sequences have length 0
// and label -1. Fields that the collator makes where there are tokens: positions (T), from 0 in each sequence; starts, lengths (S).
struct Batch : Columns {
  int64_t sequences = 0;      // in use, <= capacity
  int64_t tokens = 0;         // in use: the sum of lengths
  std::vector<int64_t> rows;  // (S) which row of the set, for methods that remember samples
  int64_t epoch = 0;
  int64_t cursor = 0, next_cursor = 0;  // examples drawn before and after this batch: the loader's whole state
};

// The batch on the device; fixed addresses. A field of width 1 is (S) or (T) in i32, any other (S, width) or (T, width). A sparse field
// has C of its T values.
struct DeviceBatch {
  std::map<std::string, Tensor> fields;
  Tensor places;                     // (C) i32: the tokens to which the values of sparse fields belong; none: all tokens
  int64_t examples = 0, tokens = 0;  // S, T; without tokens T = S
  int64_t longest = 0;               // upper bound of a length

  Tensor& operator[](const std::string& name) { return fields[name]; }
  const Tensor& at(const std::string& name) const {
    const auto found = fields.find(name);
    CHECK(found != fields.end(), "the batch has no field " << name);
    return found->second;
  }
};

}  // namespace comera
