// A small run on a thread of its own, waiting for it, and what a replay of it must show. Also under the thread sanitizer.
#pragma once
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>

#include "core/session/session.h"
#include "tests/store/support.h"

namespace comera {

// Small and quick, with everything in it: late stage, falling ranks, cuts, scores, checkpoints.
inline SessionStart start_in(const test::Folder& folder, int64_t steps = 80) {
  SessionStart start;
  start.store = folder.store();
  RunConfig& config = start.config;
  config.name = "small";
  config.model.kind = "mlp";
  config.model.classes = 10;
  config.model.mlp = {.inputs = 784, .hidden = {32, 16}, .dropout = 0.1};
  config.model.tt.ffn_in.rank = 8;
  config.data.set = "fashion-mnist-demo";
  config.data.train_rows = 256;
  config.data.validation_rows = 64;
  config.method.comera.late_after = 30;
  config.method.comera.target = 0.3;
  config.method.comera.prune_every = 10;
  config.method.comera.prune_dead_share = 0.05;
  config.train.steps = steps;
  config.train.batch = 32;
  config.train.threads = 1;
  config.train.lr_core = config.train.lr = 2e-3;
  config.train.lr_rank = 5e-2;
  config.train.eval_every = 20;
  config.train.checkpoint_every = 25;
  validate_config(config, "test");
  return start;
}

inline bool until(const Session& session, const std::function<bool(const Snapshot&)>& condition) {
  return test::wait_for([&] { return condition(*session.latest()); }, 60);
}
inline bool until_done(const Session& session, Ticket ticket) {
  return until(session, [&](const Snapshot& s) { return s.last_ticket >= ticket; });
}

inline std::map<int64_t, std::map<std::string, double>> by_step(const std::map<std::string, Series>& metrics) {
  std::map<int64_t, std::map<std::string, double>> out;
  for (const auto& [name, series] : metrics)
    for (size_t i = 0; i < series.steps.size(); ++i) out[series.steps[i]][name] = series.values[i];
  return out;
}

// What a replay must show as it was shown live. Not times.
inline void expect_same(const Snapshot& live, const Snapshot& stored) {
  SCOPED_TRACE("step " + std::to_string(live.step));
  EXPECT_EQ(stored.run, live.run);
  EXPECT_EQ(stored.name, live.name);
  EXPECT_EQ(stored.step, live.step);
  EXPECT_EQ(stored.total_steps, live.total_steps);
  EXPECT_DOUBLE_EQ(stored.epoch, live.epoch);
  EXPECT_NEAR(stored.total_epochs, live.total_epochs, 1e-9);
  EXPECT_EQ(stored.late, live.late);
  EXPECT_EQ(stored.target_entries, live.target_entries);
  EXPECT_EQ(stored.last.step, live.last.step);
  EXPECT_EQ(stored.last.results.ce, live.last.results.ce);
  EXPECT_EQ(stored.last.results.loss, live.last.results.loss);
  EXPECT_EQ(stored.last.results.rho, live.last.results.rho);
  EXPECT_EQ(stored.last.results.lambda, live.last.results.lambda);
  EXPECT_EQ(stored.last.results.entries, live.last.results.entries);
  EXPECT_EQ(stored.last.accuracy, live.last.accuracy);
  for (int group = 0; group < kRates; ++group) EXPECT_EQ(stored.last.learning_rate[group], live.last.learning_rate[group]);
  EXPECT_EQ(stored.last.tokens, live.last.tokens);
  EXPECT_EQ(stored.eval.step, live.eval.step);
  EXPECT_EQ(stored.eval.loss, live.eval.loss);
  EXPECT_EQ(stored.eval.accuracy, live.eval.accuracy);
  EXPECT_EQ(stored.eval.examples, live.eval.examples);
  EXPECT_EQ(stored.best_step, live.best_step);
  EXPECT_EQ(stored.best_loss, live.best_loss);
  EXPECT_EQ(stored.best_accuracy, live.best_accuracy);
  EXPECT_TRUE(stored.size == live.size) << stored.size.entries << " " << live.size.entries << " held " << stored.size.held_entries << " "
                                        << live.size.held_entries;
  ASSERT_EQ(stored.ranks.size(), live.ranks.size());
  for (size_t i = 0; i < live.ranks.size(); ++i) {
    EXPECT_EQ(stored.ranks[i].name, live.ranks[i].name);
    EXPECT_EQ(stored.ranks[i].live, live.ranks[i].live);
    EXPECT_EQ(stored.ranks[i].held, live.ranks[i].held);
    EXPECT_EQ(stored.ranks[i].initial, live.ranks[i].initial);
    EXPECT_EQ(stored.ranks[i].in_modes, live.ranks[i].in_modes);
    EXPECT_EQ(stored.ranks[i].out_modes, live.ranks[i].out_modes);
    EXPECT_EQ(stored.ranks[i].caps, live.ranks[i].caps);
    EXPECT_EQ(stored.ranks[i].weight, live.ranks[i].weight);
  }
  EXPECT_EQ(stored.memory_now.bytes, live.memory_now.bytes);
  EXPECT_EQ(stored.memory_planned.bytes, live.memory_planned.bytes);
  EXPECT_EQ(stored.last_checkpoint_step, live.last_checkpoint_step);
  EXPECT_EQ(stored.device, live.device);
}

}  // namespace comera
