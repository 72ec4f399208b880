#include "core/train/text_writer.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "core/data/tokenizer.h"

namespace comera {

TextWriter::TextWriter(const std::string& file, const std::string& tokenizer, Device& device) : generator_(file, device) {
  const std::string path = tokenizer.empty() ? generator_.config().data.vocab : tokenizer;
  if (!path.empty()) tokenizer_ = open_tokenizer(path);
  const int64_t known = tokenizer_ ? tokenizer_->size() : 256, tokens = generator_.config().model.outputs();
  if (known > tokens)
    throw Error(ErrorCode::config, "the tokenizer does not fit the model",
                "it has " + std::to_string(known) + " tokens, the model " + std::to_string(tokens),
                "give the tokenizer that the model was trained with: --vocab");
}

TextWriter::~TextWriter() = default;

std::vector<int32_t> TextWriter::encode(const std::string& text) const {
  if (tokenizer_) return tokenizer_->encode_with_specials(text);
  std::vector<int32_t> tokens;
  for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
  return tokens;
}

std::string TextWriter::decode(const std::vector<int32_t>& tokens) const {
  if (tokenizer_) return tokenizer_->decode(tokens);
  std::string text;
  for (const int32_t token : tokens) text += static_cast<char>(token);
  return text;
}

std::string TextWriter::write(const std::string& prompt, int64_t count, const Sampling& sampling,
                              const std::function<bool(std::string_view more)>& told) {
  std::vector<int32_t> tokens = encode(prompt);
  if (tokens.empty())
    throw Error(ErrorCode::config, "the prompt has no token",
                prompt.empty() ? "it is empty, and no token stands for the begin of a text" : "no character of it is in the vocabulary");
  const std::string before = decode(tokens);
  std::string text;
  generator_.continue_with(tokens, count, sampling, [&](int32_t token) {
    tokens.push_back(token);
    const std::string all = decode(tokens), now = all.starts_with(before) ? all.substr(before.size()) : all;
    const bool grows = now.starts_with(text) && !now.ends_with("\xEF\xBF\xBD");  // else the rest of a character is to come
    const bool goes_on = !told || told(grows ? std::string_view(now).substr(text.size()) : std::string_view());
    if (grows) text = now;
    return goes_on;
  });
  return text;
}

std::string readable(const std::string& text) {
  return parse_valid_json(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
}

}  // namespace comera
