#include "core/train/scorer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/train/batch_fit.h"
#include "core/train/checkpoint.h"

namespace comera {

Scorer::Scorer(const std::string& path, Device& device) {
  const SafetensorsFile file(path);
  const Json metadata = checkpoint_metadata(file);
  data_ = trained_on(metadata);
  engine_ = std::make_unique<Engine>(checkpoint_config(file, metadata), device);
  engine_->allocate();
  load_parameters(*engine_, file);
}

Scorer::~Scorer() = default;
const RunConfig& Scorer::config() const { return engine_->config(); }
int64_t Scorer::predicted(const std::vector<double>& outputs) const { return engine_->task().predicted(outputs); }

Score Scorer::score(const Dataset& data, const std::function<void(int64_t, const std::vector<double>&)>& each,
                    const std::function<void(double)>& progress) {
  const RunConfig& config = engine_->config();
  const DatasetInfo& info = data.info();
  if (const std::optional<Misfit> found = misfit(engine_->layout(), info))
    throw Error(ErrorCode::config, "the data do not fit the model",
                found->filled ? found->text()
                              : std::string("the file holds ") + info.holds + ", the model reads " +
                                    (engine_->layout().has_tokens() ? "text" : "images"),
                info.vocab_size > 0 && found->filled ? "give the tokenizer that the model was trained with: --vocab" : "");
  if (info.vocab_size > 0 && !data_.vocabulary.empty() && info.vocab_fingerprint != data_.vocabulary)
    throw Error(ErrorCode::config, "the vocabulary is not the one the model was trained with",
                "its sha256 begins with " + info.vocab_fingerprint.substr(0, 12) + ", the model's with " + data_.vocabulary.substr(0, 12),
                "leave out --vocab, or give that file");
  if (each && engine_->task().rows() == Per::token)
    throw Error(ErrorCode::config, "a language model predicts no labels of rows", "its outputs are tokens, one or more a row",
                config.model.task == "language" ? "use comera eval or comera generate" : "use comera eval");
  BatchOptions options;
  options.batch_size = config.part_batch();
  options.length = config.model.length;
  options.pack = config.data.pack;
  options.token_budget = config.token_capacity();
  options.mask_share = config.mask_share();
  options.seed = static_cast<uint64_t>(config.train.seed);
  options.shuffle = options.drop_last = false;
  StepScalars scalars;
  scalars.step = 1;
  scalars.threshold = config.method.comera.threshold;
  scalars.pruning = config.method.comera.train_ranks ? 1 : 0;
  const Task& task = engine_->task();
  const std::unique_ptr<Scores> scores = task.scores();
  Batch batch;
  std::vector<double> outputs;
  for (int64_t cursor = 0; make_batch(data, options, cursor, batch); cursor = batch.next_cursor) {
    const StepResults results = engine_->score(batch, scalars, each || task.wants_outputs() ? &outputs : nullptr);
    scores->add(results, outputs, batch);
    const long width = static_cast<long>(config.model.outputs());
    for (long s = 0; each && s < static_cast<long>(batch.sequences); ++s)
      each(batch.rows[static_cast<size_t>(s)], {outputs.begin() + s * width, outputs.begin() + (s + 1) * width});
    if (progress)
      progress(static_cast<double>(std::min(batch.next_cursor, info.rows)) / static_cast<double>(std::max<int64_t>(1, info.rows)));
  }
  return scores->values();
}

}  // namespace comera
