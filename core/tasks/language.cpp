// The next token of each token: softmax and cross-entropy over the vocabulary. A token with label -1 is followed by nothing that counts.
#include <algorithm>
#include <cmath>

#include "core/tasks/task.h"

namespace comera {
namespace {

class LanguageScores final : public MeanScores {
 public:
  Score values() const override {
    Score score = MeanScores::values();
    if (score.examples > 0) score.more.emplace_back("perplexity", std::exp(score.loss));
    return score;
  }
};

class Language final : public Task {
 public:
  explicit Language(int64_t vocab) : vocab_(vocab) {}
  void targets(BatchLayout& layout) const override {
    layout.add({.name = "labels",
                .per = Per::token,
                .low = -1,
                .high = vocab_,
                .title = "next token",
                .setting = "model.decoder.vocab",
                .why = "a token would be out of range",
                .hint = "the data set needs a model with a larger vocabulary"});
  }
  Per rows() const override { return Per::token; }
  void loss(Ctx& ctx, const Tensor& out, const DeviceBatch& batch, const Tensor& dout) const override {
    ctx.ops.cross_entropy(ctx.results, dout, {}, out, batch.at("labels"));
  }
  std::unique_ptr<Scores> scores() const override { return std::make_unique<LanguageScores>(); }
  int64_t predicted(std::span<const double> outputs) const override {
    return std::max_element(outputs.begin(), outputs.end()) - outputs.begin();
  }

 private:
  const int64_t vocab_;
};

}  // namespace

std::unique_ptr<Task> make_language(const ModelConfig& config) { return std::make_unique<Language>(config.decoder.vocab); }

}  // namespace comera
