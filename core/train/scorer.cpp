#include "core/train/scorer.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/train/checkpoint.h"

namespace comera {

Scorer::Scorer(const std::string& path, Device& device) {
  const SafetensorsFile file(path);
  const Json metadata = checkpoint_metadata(file);
  if (metadata.contains("vocabulary") && metadata["vocabulary"].is_string()) vocabulary_ = metadata["vocabulary"];
  engine_ = std::make_unique<Engine>(config_from_json(metadata.at("config"), path), device);
  engine_->allocate();
  load_parameters(*engine_, file);
}

Scorer::~Scorer() = default;
const RunConfig& Scorer::config() const { return engine_->config(); }

Score Scorer::score(const Dataset& data, const std::function<void(int64_t, const std::vector<double>&)>& each) {
  const RunConfig& config = engine_->config();
  const DatasetInfo& info = data.info();
  if (info.text != (config.model.kind == "encoder"))
    throw Error(ErrorCode::config, "the data do not fit the model",
                info.text ? "the file holds text, the model reads images" : "the file holds images, the model reads text", "");
  if (!info.text && info.height * info.width != config.model.mlp.inputs)
    throw Error(ErrorCode::config, "the data do not fit the model",
                "the images have " + std::to_string(info.height * info.width) + " pixels, the model reads " +
                    std::to_string(config.model.mlp.inputs),
                "");
  const int64_t rows_of_table = config.model.encoder.vocab;
  if (info.text && info.vocab_size > rows_of_table)
    throw Error(ErrorCode::config, "the vocabulary does not fit the model",
                "it has " + std::to_string(info.vocab_size) + " tokens, the model has rows for " + std::to_string(rows_of_table),
                "give the vocab.txt that the model was trained with: --vocab");
  if (info.text && !vocabulary_.empty() && info.vocab_fingerprint != vocabulary_)
    throw Error(ErrorCode::config, "the vocabulary is not the one the model was trained with",
                "its sha256 begins with " + info.vocab_fingerprint.substr(0, 12) + ", the model's with " + vocabulary_.substr(0, 12),
                "leave out --vocab, or give that vocab.txt");
  BatchOptions options;
  options.batch_size = config.part_batch();
  options.length = config.model.length;
  options.pack = config.data.pack;
  options.token_budget = config.token_capacity();
  options.shuffle = options.drop_last = false;
  StepScalars scalars;
  scalars.step = 1;
  scalars.threshold = config.method.comera.threshold;
  scalars.pruning = config.method.comera.train_ranks ? 1 : 0;
  EvalSums sums;
  Batch batch;
  std::vector<double> logits;
  int64_t cursor = 0;
  while (make_batch(data, options, cursor, batch)) {
    const EvalSums part = engine_->score(batch, scalars, each ? &logits : nullptr);
    sums.loss_sum += part.loss_sum;
    sums.correct += part.correct;
    sums.examples += part.examples;
    if (each) {
      const size_t classes = static_cast<size_t>(config.model.classes);
      for (size_t s = 0; s < static_cast<size_t>(batch.sequences); ++s)
        each(batch.rows[s], {logits.begin() + static_cast<long>(s * classes), logits.begin() + static_cast<long>((s + 1) * classes)});
    }
    cursor = batch.next_cursor;
  }
  Score score;
  score.examples = static_cast<int64_t>(sums.examples);
  if (sums.examples > 0) {
    score.loss = sums.loss_sum / sums.examples;
    score.accuracy = sums.correct / sums.examples;
  }
  return score;
}

}  // namespace comera
