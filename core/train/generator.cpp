#include "core/train/generator.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/error.h"
#include "core/base/rng.h"
#include "core/train/checkpoint.h"

namespace comera {

namespace {
constexpr uint32_t kSamplingSite = 0x67656e65;  // "gene": the layers' random sites count up from 1
}

Generator::Generator(const std::string& path, Device& device) {
  const SafetensorsFile file(path);
  RunConfig config = checkpoint_config(file, checkpoint_metadata(file));
  if (config.model.task != "language")
    throw Error(ErrorCode::config, "the model writes no text", "its task is " + config.model.task, "use a run with model.task=language");
  config.train.batch = config.train.micro_batches = 1;
  config.data.pack = false;
  engine_ = std::make_unique<Engine>(config, device);
  engine_->keep_token_outputs();
  engine_->allocate();
  load_parameters(*engine_, file);
}

Generator::~Generator() = default;
const RunConfig& Generator::config() const { return engine_->config(); }

std::vector<double> Generator::logits(const std::vector<int32_t>& tokens) {
  const RunConfig& config = engine_->config();
  const int64_t length = config.model.length, vocab = config.model.outputs();
  CHECK(!tokens.empty(), "logits behind no token");
  for (const int32_t token : tokens)
    if (token < 0 || token >= vocab)
      throw Error(ErrorCode::config, "token " + std::to_string(token) + " is not in the vocabulary",
                  "the model has " + std::to_string(vocab) + " tokens", "");
  const auto used = static_cast<size_t>(std::min<int64_t>(length, static_cast<int64_t>(tokens.size())));
  Batch batch;
  std::vector<int32_t>&ids = batch.ints["ids"], &positions = batch.ints["positions"];
  ids.assign(tokens.end() - static_cast<std::ptrdiff_t>(used), tokens.end());
  ids.resize(static_cast<size_t>(length), 0);
  positions.resize(static_cast<size_t>(length));
  std::iota(positions.begin(), positions.end(), 0);
  batch.ints["labels"].assign(static_cast<size_t>(length), -1);
  batch.ints["starts"] = {0};
  batch.ints["lengths"] = {static_cast<int32_t>(used)};
  batch.sequences = 1;
  batch.tokens = static_cast<int64_t>(used);
  batch.rows = {0};
  StepScalars scalars;
  scalars.step = 1;
  scalars.threshold = config.method.comera.threshold;
  scalars.pruning = config.method.comera.train_ranks ? 1 : 0;
  std::vector<double> outputs;
  engine_->score(batch, scalars, &outputs);
  const auto row = outputs.begin() + static_cast<std::ptrdiff_t>(static_cast<int64_t>(used - 1) * vocab);
  return {row, row + vocab};
}

std::vector<int32_t> Generator::continue_with(std::vector<int32_t> tokens, int64_t count, const Sampling& sampling,
                                              const std::function<bool(int32_t token)>& told) {
  std::vector<int32_t> out;
  for (int64_t i = 0; i < count; ++i) {
    const Philox random{sampling.seed, 0, kSamplingSite};
    out.push_back(sampled(logits(tokens), sampling, static_cast<double>(random.word(static_cast<uint64_t>(i))) * 0x1p-32));
    tokens.push_back(out.back());
    if (told && !told(out.back())) break;
  }
  return out;
}

int32_t sampled(const std::vector<double>& logits, const Sampling& sampling, double uniform) {
  std::vector<int32_t> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int32_t a, int32_t b) { return logits[static_cast<size_t>(a)] > logits[static_cast<size_t>(b)]; });
  if (sampling.temperature <= 0) return order.front();
  if (sampling.top > 0 && sampling.top < static_cast<int64_t>(order.size())) order.resize(static_cast<size_t>(sampling.top));
  const double largest = logits[static_cast<size_t>(order.front())];
  double sum = 0;
  std::vector<double> weights;
  for (const int32_t token : order) {
    weights.push_back(std::exp((logits[static_cast<size_t>(token)] - largest) / sampling.temperature));
    sum += weights.back();
  }
  double left = uniform * sum;
  for (size_t i = 0; i < order.size(); ++i) {
    left -= weights[i];
    if (left < 0) return order[i];
  }
  return order.back();
}

}  // namespace comera
