// comera generate RUN|FILE: text that a language model writes.
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "app/cli/cli.h"
#include "core/ops/device.h"
#include "core/train/text_writer.h"

namespace comera::cli {
namespace {

struct GenerateOptions {
  std::string model, prompt = "\n", vocab, device = "auto";
  int64_t step = -1, tokens = 200, top = 0, seed = 0;
  double temperature = 1;
};

int generate(const Context& context, const GenerateOptions& options) {
  if (options.prompt.empty())
    throw Error(ErrorCode::usage, "the prompt is empty", "a model continues a given text",
                "leave out --prompt to begin with a line of its own");
  const std::unique_ptr<Device> device = open_device(device_to_begin_on(options.device));
  TextWriter writer(model_file(context, options.model, options.step).path, options.vocab, *device);
  const Sampling sampling{options.temperature, options.top, static_cast<uint64_t>(options.seed)};
  const std::string text = writer.write(options.prompt, options.tokens, sampling, [&](std::string_view more) {
    if (!context.json) std::cout << more << std::flush;
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
  const auto options = std::make_shared<GenerateOptions>();
  Verb verb = program.verb("generate", "write text with a language model");
  verb.option("model", options->model, "run id or name, or a checkpoint file").required();
  verb.option("--prompt", options->prompt, "text to continue (default: a new line)");
  verb.option("--tokens", options->tokens, "tokens to write").shows_default().positive();
  verb.option("--temperature", options->temperature, "logits are divided by it; 0: always the most likely token")
      .shows_default()
      .not_negative();
  verb.option("--top", options->top, "choose among so many of the most likely tokens only; 0: all").shows_default().not_negative();
  verb.option("--seed", options->seed, "seed of the choices").shows_default().not_negative();
  verb.option("--vocab", options->vocab,
              "vocab.txt, tokenizer.json or a folder with one (default: the run's; without one tokens are bytes)");
  verb.option("--step", options->step, "checkpoint at this step (default: the last)").not_negative();
  verb.option("--device", options->device, "auto, cpu or cuda:N");
  verb.does([&context, options] { return generate(context, *options); });
}

}  // namespace comera::cli
