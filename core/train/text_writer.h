// Text from a trained language model: a generator with the tokenizer of its run.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/train/generator.h"

namespace comera {

class Tokenizer;

class TextWriter {
 public:
  // `file` and `device` as of Generator. `tokenizer`: what open_tokenizer takes; "" = that of the run, and where it has none tokens are bytes.
  // Throws Error(config) where the tokenizer has more tokens than the model, and as Generator and open_tokenizer do.
  TextWriter(const std::string& file, const std::string& tokenizer, Device& device);
  ~TextWriter();

  // The text of `count` tokens behind `prompt`. `told` gets it in parts of whole characters as they come; false ends it. Throws
  // Error(config) where the prompt has no token.
  std::string write(const std::string& prompt, int64_t count, const Sampling& sampling,
                    const std::function<bool(std::string_view more)>& told = {});

 private:
  std::vector<int32_t> encode(const std::string& text) const;
  std::string decode(const std::vector<int32_t>& tokens) const;

  Generator generator_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // null: tokens are bytes
};

// Bytes that are not UTF-8 become U+FFFD.
std::string readable(const std::string& text);

}  // namespace comera
