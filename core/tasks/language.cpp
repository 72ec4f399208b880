// Tokens as classes: the next token of each, or tokens that are masked. Softmax and cross-entropy over the vocabulary; a token with label
// -1 does not count.
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
  // `sparse`: as BatchField's, of the labels.
  Language(int64_t vocab, const char* title, const char* setting, bool sparse)
      : vocab_(vocab), title_(title), setting_(setting), sparse_(sparse) {}
  void targets(BatchLayout& layout) const override {
    layout.add({.name = "labels",
                .per = Per::token,
                .low = -1,
                .high = vocab_,
                .sparse = sparse_,
                .title = title_,
                .setting = setting_,
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
  const char *const title_, *const setting_;
  const bool sparse_;
};

}  // namespace

std::unique_ptr<Task> LanguageTask::make(const ModelConfig& config) {
  return std::make_unique<Language>(config.decoder.vocab, "next token", "model.decoder.vocab", false);
}
std::unique_ptr<Task> MaskedTask::make(const ModelConfig& config) {
  return std::make_unique<Language>(config.encoder.vocab, "masked token", "model.encoder.vocab", true);
}

}  // namespace comera
