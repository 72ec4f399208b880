// comera eval RUN|FILE and comera predict RUN|FILE: evaluate a trained model on any data.
#include <iostream>
#include <memory>

#include "app/cli/cli.h"
#include "core/session/evaluation.h"

namespace comera::cli {
namespace {

struct EvalOptions {
  std::string model, data, split = "dev", vocab, output = "-", device = "auto";
  int64_t step = -1;
};

struct Opened {
  std::unique_ptr<InputFile> input;  // must outlive the evaluation
  Evaluation evaluation;
};

Opened open(const Context& context, const EvalOptions& options, bool needs_labels) {
  auto input = std::make_unique<InputFile>(options.data);
  const ModelPath model = model_file(context, options.model, options.step);
  const EvaluationOf of{input->path(), options.split, options.vocab, options.device, needs_labels};
  return {std::move(input), Evaluation(model, of)};
}

int eval(const Context& context, const EvalOptions& options) {
  Opened opened = open(context, options, true);
  const Score score = opened.evaluation.score();
  const DatasetInfo& info = opened.evaluation.info();
  Json document = {{"model", options.model}, {"data", info.name},          {"accuracy", score.accuracy},
                   {"loss", score.loss},     {"examples", score.examples}, {"left_out", info.left_out}};
  std::vector<std::vector<std::string>> rows = {{"accuracy", significant(score.accuracy)}, {"loss", significant(score.loss)}};
  for (const auto& [name, value] : score.more) {
    document[name] = value;
    rows.push_back({name, significant(value)});
  }
  rows.push_back({opened.evaluation.per_token() ? "tokens" : "rows", thousands(static_cast<double>(score.examples))});
  if (info.left_out > 0) rows.push_back({"rows left out, without a text or a label", thousands(static_cast<double>(info.left_out))});
  if (context.json)
    print_json(document);
  else
    print_table(context, {"metric", "value"}, rows);
  return 0;
}

int predict(const Context& context, const EvalOptions& options) {
  check_stdout(context, options.output);
  Opened opened = open(context, options, false);
  OutputFile file(options.output);
  std::ostream& out = file.stream();
  const int64_t rows = opened.evaluation.predict([&](const Evaluation::Prediction& one) {
    const Json line = {{"row", one.row}, {"label", one.name ? Json(*one.name) : Json(one.label)}, {"logits", one.logits}};
    out << line.dump() << "\n";
  });
  file.finish();
  if (options.output != "-") {
    if (context.json)
      print_json({{"rows", rows}, {"file", options.output}});
    else
      note(context, "wrote " + thousands(static_cast<double>(rows)) + " rows to " + options.output);
  }
  return 0;
}

}  // namespace

void add_eval(Verb& program, Context& context) {
  const auto options = std::make_shared<EvalOptions>();
  const auto shared = [options](Verb verb) {
    verb.option("model", options->model, "run id or name, or a checkpoint file").required();
    verb.option("--data", options->data, "file, folder or data set (default: the run's own); - for stdin");
    verb.option("--split", options->split, "split of a data set: train, dev or test").shows_default();
    verb.option("--vocab", options->vocab, "vocab.txt, tokenizer.json or a folder with one (default: the run's)");
    verb.option("--step", options->step, "checkpoint at this step (default: the last)").not_negative();
    verb.option("--device", options->device, "auto, cpu or cuda:N");
  };
  Verb eval_verb = program.verb("eval", "evaluate a trained model on labelled data: accuracy and loss");
  shared(eval_verb);
  eval_verb.does([&context, options] { return eval(context, *options); });
  Verb predict_verb = program.verb("predict", "print one JSON line per row with logits and the most likely label");
  shared(predict_verb);
  predict_verb.option("-o,--output", options->output, "file; - for stdout").shows_default();
  predict_verb.does([&context, options] { return predict(context, *options); });
}

}  // namespace comera::cli
