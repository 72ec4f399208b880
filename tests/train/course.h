// A run of 60 steps with a change of every live kind on its way, and all that it tells: for tests that compare two runs.
#pragma once
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/config/choices.h"
#include "tests/train/small_runs.h"

namespace comera::test {

inline constexpr int64_t kSteps = 60;

// All that a run tells but its times, one line each, numbers to the last bit.
class Course : public TrainObserver {
 public:
  std::vector<std::string> lines;
  std::map<std::string, int> events;

  // When it was planned, stepped and scored: 4 for each step, a growth before it, a cut and the scores behind it.
  std::vector<int64_t> plans{0}, steps, scores;

  void on_step(const StepRecord& record) override {
    const StepResults& r = record.results;
    std::string line = "step " + std::to_string(record.step);
    for (const double value : {r.loss, r.ce, r.examples, r.correct, r.rho, r.entries, r.surrogate, r.core_norm2, r.lambda, r.ce_weight,
                               r.rho_weight, record.learning_rate[0], record.learning_rate[1], record.learning_rate[2],
                               static_cast<double>(record.tokens), record.target_entries})
      line += bits(value);
    lines.push_back(line);
    steps.push_back(4 * record.step);
  }
  void on_eval(const EvalRecord& record) override {
    lines.push_back("eval " + std::to_string(record.step) + bits(record.loss) + bits(record.accuracy) +
                    bits(static_cast<double>(record.examples)));
    for (const auto& [name, value] : record.more) lines.back() += " " + name + bits(value);
    scores.push_back(4 * record.step + 2);
  }
  void on_ranks(int64_t step, const std::vector<RankChange>& changes) override {
    for (const RankChange& change : changes)
      lines.push_back("rank " + std::to_string(step) + " " + std::to_string(change.layer) + "." + std::to_string(change.bond) + " " +
                      std::to_string(change.from) + " " + std::to_string(change.to));
  }
  // How much is the device's own: one that gathers small calls keeps what they need for longer.
  void on_memory(int64_t step, const MemoryByPurpose&) override { lines.push_back("memory " + std::to_string(step)); }
  void on_event(int64_t step, const char* kind, const Json& body) override {
    lines.push_back(std::string(kind) + " " + std::to_string(step) + " " + body.dump());
    ++events[kind];
    if (std::string(kind) == "regrowth") plans.push_back(4 * step - 1);
    if (std::string(kind) == "truncation") plans.push_back(4 * step + 1);
  }

 private:
  static std::string bits(double value) {
    char text[40];
    std::snprintf(text, sizeof(text), " %a", value);
    return text;
  }
};

// A change of every live kind between the steps, the late stage and back, a bond cut and grown, and the target raised.
inline void one_step(Trainer& trainer) {
  const int64_t step = trainer.state().step;
  const auto at = [&](int64_t when, const std::string& path, const std::string& value) {
    if (step == when) trainer.edit(path, value);
  };
  at(4, "train.lr", "2e-3");
  at(9, "method.adam.weight_decay", "0.02");
  at(14, "train.lr_core", "4e-3");
  if (trainer.config().tensorised()) {
    const auto& layers = trainer.engine().params().rank_layers();
    const std::string bond = "rank.cap." + layers[0].name + ".1", other = "rank.cap." + layers.back().name + ".1";
    at(6, "method.comera.rank_weight", "0.05");
    at(7, "rank.weight." + layers.back().name, "0.5");
    at(12, "method.comera.threshold", "0.02");
    at(16, "method.comera.gamma", "0.001");
    at(17, "method.comera.beta", "0.001");
    if (step == 20) trainer.edit("stage", "late");
    at(22, "method.comera.loss_target", "5");
    at(23, "method.comera.late_loss_weight", "0.2");
    at(24, bond, "2");
    at(25, other, "2");
    at(26, "method.comera.late_weight", "1.5");
    at(34, bond, "5");
    at(36, "method.comera.target", "0.5");
    at(42, "method.comera.target", "0.95");
    at(44, "method.comera.late_halving", "40");
    at(46, "rank.weight." + layers.back().name, "0");
    at(48, "method.comera.hold_at_target", "false");
    at(50, other, "1");
    if (step == 54) trainer.edit("stage", "early");
  }
  trainer.step();
}

inline RunConfig scripted(RunConfig config) {
  config.train.steps = kSteps;
  config.train.lr_core = config.train.lr = 3e-3;
  config.train.lr_rank = 3e-2;
  config.train.warmup = std::min<int64_t>(config.train.warmup, 5);
  config.train.eval_every = 15;
  config.train.batch = config.model.info().reads == Reads::images ? 14 : 7;  // the last batch of a score is not full
  shrink(config.method);
  config.method.galore.gap = 7;
  config.method.coap.reset_every = 2;
  config.method.comera.prune_every = 10;
  config.method.comera.late_after = 0;
  return config;
}

}  // namespace comera::test
