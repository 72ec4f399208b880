// comera generate RUN|FILE: text that a language model writes.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/cli.h"
#include "core/data/bpe.h"
#include "core/ops/device.h"
#include "core/train/generator.h"

namespace comera::cli {
namespace {

struct Options {
  std::string model, prompt = "\n", vocab, device = "auto";
  int64_t step = -1, tokens = 200, top = 0, seed = 0;
  double temperature = 1;
};

// Bytes that are not UTF-8 become U+FFFD.
Json readable(const std::string& text) { return Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)); }

// The tokens of a text and the text of tokens: by the tokenizer that the data of the run had, or bytes (core/data/text_stream.h).
class Codec {
 public:
  Codec(const std::string& tokenizer, int64_t tokens) {
    if (!tokenizer.empty()) bpe_ = std::make_unique<BpeTokenizer>(tokenizer);
    const int64_t known = bpe_ ? bpe_->size() : 256;
    if (known > tokens)
      throw Error(ErrorCode::config, "the tokenizer does not fit the model",
                  "it has " + std::to_string(known) + " tokens, the model " + std::to_string(tokens),
                  "give the tokenizer.json that the model was trained with: --vocab");
  }
  std::vector<int32_t> encode(const std::string& text) const {
    if (bpe_) return bpe_->encode_with_specials(text);
    std::vector<int32_t> tokens;
    for (const char byte : text) tokens.push_back(static_cast<unsigned char>(byte));
    return tokens;
  }
  std::string decode(const std::vector<int32_t>& tokens) const {
    if (bpe_) return bpe_->decode(tokens);
    std::string text;
    for (const int32_t token : tokens) text += static_cast<char>(token);
    return text;
  }

 private:
  std::unique_ptr<BpeTokenizer> bpe_;
};

int generate(const Context& context, const Options& options) {
  if (options.prompt.empty())
    throw Error(ErrorCode::usage, "the prompt is empty", "a model continues a given text",
                "leave out --prompt to begin with a line of its own");
  const std::unique_ptr<Device> device = open_device(options.device);
  Generator generator(model_file(context, options.model, options.step).path, *device);
  const Codec codec(options.vocab.empty() ? generator.config().data.vocab : options.vocab, generator.config().model.outputs());
  std::vector<int32_t> tokens = codec.encode(options.prompt);
  if (tokens.empty()) throw Error(ErrorCode::config, "the prompt has no token", "no character of it is in the vocabulary");
  const std::string before = codec.decode(tokens);
  std::string text;
  generator.continue_with(
      tokens, options.tokens, {options.temperature, options.top, static_cast<uint64_t>(options.seed)}, [&](int32_t token) {
        tokens.push_back(token);
        const std::string all = codec.decode(tokens), now = all.starts_with(before) ? all.substr(before.size()) : all;
        const bool grows = now.starts_with(text) && !now.ends_with("\xEF\xBF\xBD");  // else the rest of a character is to come
        if (!grows) return std::cout.good();
        if (!context.json) std::cout << now.substr(text.size()) << std::flush;
        text = now;
        return std::cout.good();
      });
  if (context.json)
    print_json({{"model", options.model}, {"prompt", readable(options.prompt)}, {"text", readable(text)}});
  else
    std::cout << "\n";
  return 0;
}

}  // namespace

void add_generate(Verb& program, Context& context) {
  const auto options = std::make_shared<Options>();
  Verb verb = program.verb("generate", "write text with a language model");
  verb.option("model", options->model, "run id or name, or a checkpoint file").required();
  verb.option("--prompt", options->prompt, "text to continue (default: a new line)");
  verb.option("--tokens", options->tokens, "tokens to write").shows_default().positive();
  verb.option("--temperature", options->temperature, "logits are divided by it; 0: always the most likely token")
      .shows_default()
      .not_negative();
  verb.option("--top", options->top, "choose among so many of the most likely tokens only; 0: all").shows_default().not_negative();
  verb.option("--seed", options->seed, "seed of the choices").shows_default().not_negative();
  verb.option("--vocab", options->vocab, "tokenizer.json (default: the run's; without one tokens are bytes)");
  verb.option("--step", options->step, "checkpoint at this step (default: the last)");
  verb.option("--device", options->device, "auto, cpu or cuda:N");
  verb.does([&context, options] { return generate(context, *options); });
}

}  // namespace comera::cli
