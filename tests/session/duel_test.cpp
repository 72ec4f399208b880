// The plan of a duel, and its runs found again in a store.
#include "core/session/duel.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "core/config/named_methods.h"
#include "core/data/dataset.h"
#include "core/session/stored_run.h"
#include "core/train/forecast.h"
#include "core/train/memory_fit.h"
#include "core/train/rank_setting.h"
#include "tests/session/support.h"

namespace comera {
namespace {
using test::Folder;

Duel duel_in(const Folder& folder, std::vector<std::string> methods = {"adamw", "comera"}) {
  Duel duel{.config = start_in(folder, 6).config, .methods = std::move(methods)};
  duel.config.train.eval_every = 0;
  duel.config.model.mlp.hidden = {96, 64};
  return duel;
}

std::string data_of(const RunConfig& config) { return open_run_data(config).train->info().fingerprint; }

int64_t planned(const RunConfig& config) { return make_forecast(config).memory.total(); }

Phase train(const Folder& folder, const RunConfig& config, std::vector<std::string> tags = {kDuelTag},
            std::vector<ScheduledChange> changes = {}) {
  SessionStart start;
  start.store = folder.store();
  start.config = config;
  start.tags = std::move(tags);
  start.changes = std::move(changes);
  Session session(std::move(start));
  EXPECT_TRUE(session.wait(60));
  session.join();
  return session.latest()->phase;
}

template <class Function>
Error error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorCode::other, ""};
}

TEST(DuelPlan, OnlyTheAxesOfTheMethodAreReplaced) {
  const Folder folder;
  Duel duel = duel_in(folder, {"adamw", "galore", "wta-crs", "comera"});
  duel.config.method.adam.weight_decay = 0.03;
  duel.config.method.galore.rank = 7;
  duel.config.method.adam.eps = 1e-5;
  const auto methods = plan_duel(duel);
  ASSERT_EQ(methods.size(), 4u);
  for (const DuelMethod& method : methods) {
    ASSERT_EQ(method.runs.size(), 1u) << method.id << ": " << method.refusal;
    Json run = config_to_json(method.runs[0]), given = config_to_json(duel.config);
    const MethodConfig recipe = find_method(method.id).config;
    EXPECT_EQ(run["method"]["weights"], recipe.weights);
    EXPECT_EQ(run["method"]["optimizer"], recipe.optimizer);
    EXPECT_EQ(run["method"]["wta"]["ratio"], recipe.wta.ratio);
    for (Json* config : {&run, &given}) {
      config->erase("name");
      for (const char* axis : {"name", "weights", "stash", "optimizer", "update"}) (*config)["method"].erase(axis);
      (*config)["method"]["wta"].erase("ratio");
    }
    EXPECT_EQ(run, given) << method.id;
    EXPECT_EQ(method.planned, planned(method.runs[0]));
  }
  EXPECT_EQ(methods[0].rank, std::nullopt);
  EXPECT_EQ(methods[1].rank, 7);
  EXPECT_EQ(methods[3].rank, duel.config.model.tt.ffn_in.rank);
  EXPECT_GT(methods[0].parameters, methods[3].parameters);
}

TEST(DuelPlan, ARunASeedUnderNamesOfTheirOwn) {
  const Folder folder;
  Duel duel = duel_in(folder);
  duel.seeds = 3;
  duel.config.train.seed = 5;
  std::set<std::string> names;
  for (const DuelMethod& method : plan_duel(duel)) {
    ASSERT_EQ(method.runs.size(), 3u);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(method.runs[i].train.seed, static_cast<int64_t>(5 + i));
      names.insert(method.runs[i].name);
    }
  }
  EXPECT_EQ(names, (std::set<std::string>{"small adamw seed 5", "small adamw seed 6", "small adamw seed 7", "small comera seed 5",
                                          "small comera seed 6", "small comera seed 7"}));
}

TEST(DuelPlan, EveryMethodFitsOrSaysWhatItNeeds) {
  const Folder folder;
  Duel duel = duel_in(folder, {});
  RunConfig dense = duel.config;
  dense.method.weights = "dense";
  duel.bytes = planned(dense) * 2 / 3;
  const auto methods = plan_duel(duel);
  EXPECT_EQ(methods.size(), comera::named_methods().size());
  int64_t trained = 0, too_large = 0, lower = 0;
  for (const DuelMethod& method : methods) {
    SCOPED_TRACE(method.id);
    EXPECT_EQ(method.refusal, "");
    if (!method.fits) {
      ++too_large;
      EXPECT_TRUE(method.runs.empty());
      EXPECT_GT(method.planned, duel.bytes);
      continue;
    }
    ++trained;
    const RunConfig& run = method.runs.at(0);
    EXPECT_EQ(run.train.batch, duel.config.train.batch);
    EXPECT_EQ(method.planned, planned(run));
    EXPECT_LE(method.planned, duel.bytes);
    if (!method.rank || method.id == "apollo-mini") continue;
    RunConfig given = duel.config;
    set_method(given, method.id);
    if (*method.rank < rank_setting(given)->configured) ++lower;
    if (*method.rank == rank_setting(run)->largest) continue;
    EXPECT_GT(planned(with_rank(run, *method.rank + 1)), duel.bytes) << "one rank more does not fit";
  }
  EXPECT_GT(trained, 0);
  EXPECT_GT(too_large, 0);
  EXPECT_GT(lower, 0) << "the rank of some projection is lowered";
}

TEST(DuelPlan, ARecipeOfOneRankKeepsIt) {
  const Folder folder;
  Duel duel = duel_in(folder, {"apollo", "apollo-mini"});
  duel.config.method.apollo.rank = 16;
  duel.bytes = int64_t{1} << 40;
  const auto methods = plan_duel(duel);
  EXPECT_EQ(methods[0].rank, 96) << "the narrower side of the widest matrix";
  EXPECT_EQ(methods[1].rank, 1);
}

TEST(DuelPlan, WhatCannotBeCombinedIsRefusedWithTheReason) {
  const Folder folder;
  Duel duel = duel_in(folder, {"adamw", "adalomo"});
  duel.config.train.micro_batches = 2;
  const auto methods = plan_duel(duel);
  EXPECT_TRUE(methods[0].trains());
  EXPECT_FALSE(methods[1].trains());
  EXPECT_TRUE(methods[1].refusal.starts_with("method.update: backward")) << methods[1].refusal;
  duel.bytes = int64_t{1} << 40;
  EXPECT_TRUE(plan_duel(duel)[1].trains()) << "at equal memory the number of micro-batches is chosen";
}

TEST(DuelPlan, UnknownAndRepeatedMethodsAreErrors) {
  const Folder folder;
  const Error unknown = error_of([&] { plan_duel(duel_in(folder, {"adamw", "galor"})); });
  EXPECT_EQ(unknown.code(), ErrorCode::not_found);
  EXPECT_EQ(unknown.hint(), "did you mean 'galore'?");
  EXPECT_EQ(error_of([&] { plan_duel(duel_in(folder, {"adamw", "adamw"})); }).code(), ErrorCode::usage);
}

TEST(DuelRuns, AreFoundByTheirConfigUnlessTheyWereEdited) {
  const Folder folder;
  const auto methods = plan_duel(duel_in(folder));
  const std::string data = data_of(methods[0].config);
  const RunConfig &dense = methods[0].runs[0], &tensor_trains = methods[1].runs[0];
  ASSERT_EQ(train(folder, dense, {}), Phase::finished);
  EXPECT_EQ(DuelRuns(RunReader(folder.store()), data).find(dense), nullptr) << "a run of its own";
  ASSERT_EQ(train(folder, tensor_trains, {kDuelTag}, {{3, "train.lr_core", "1e-4"}}), Phase::finished);
  EXPECT_EQ(DuelRuns(RunReader(folder.store()), data).find(tensor_trains), nullptr) << "its course was changed by hand";
  ASSERT_EQ(train(folder, dense), Phase::finished);
  const RunReader reader(folder.store());
  const DuelRuns stored(reader, data);
  const RunRow* found = stored.find(dense);
  ASSERT_NE(found, nullptr);
  EXPECT_TRUE(is_over(*found));
  RunConfig other = dense;
  other.train.lr *= 2;
  EXPECT_EQ(stored.find(other), nullptr);
  EXPECT_EQ(DuelRuns(reader, "others").find(dense), nullptr) << "the data has changed since";

  const DuelResult result = duel_result(reader, stored, methods[0]);
  ASSERT_EQ(result.runs.size(), 1u);
  EXPECT_EQ(result.runs[0].id, found->id);
  EXPECT_EQ(result.finished, 1);
  EXPECT_EQ(result.val_accuracy.mean, reader.metric(found->id, "val_accuracy").values.back());
  EXPECT_EQ(result.peak_bytes, static_cast<double>(methods[0].planned)) << "planned equals taken";
  EXPECT_GT(result.step_ms, 0);
  EXPECT_TRUE(duel_result(reader, stored, methods[1]).runs.empty());
}

// The summary of a resumed run knows the memory since then: less, where ranks were cut before.
TEST(DuelRuns, ThePeakIsThatOfTheWholeRun) {
  const Folder folder;
  Duel duel{.config = start_in(folder).config, .methods = {"comera"}};
  duel.config.train.checkpoint_every = 70;
  duel.config.method.comera.late_after = 20;
  duel.config.method.comera.target = 0.2;
  const DuelMethod method = plan_duel(duel)[0];
  SessionStart start;
  start.store = folder.store();
  start.config = method.runs[0];
  start.tags = {kDuelTag};
  start.paused = true;
  int64_t before = 0;
  {
    Session session(start);
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.phase == Phase::paused; }));
    session.post(StepCommand{75});
    ASSERT_TRUE(until(session, [](const Snapshot& s) { return s.step == 75 && s.phase == Phase::paused; }));
    before = session.latest()->memory_peak.total();
    session.post(StopCommand{});
    ASSERT_TRUE(session.wait(60));
  }
  SessionStart again;
  again.store = folder.store();
  again.resume_run = method.runs[0].name;
  Session session(again);
  ASSERT_TRUE(session.wait(60));
  ASSERT_EQ(session.latest()->phase, Phase::finished);
  ASSERT_LT(session.latest()->memory_peak.total(), before) << "ranks were cut";
  const RunReader reader(folder.store());
  EXPECT_EQ(duel_result(reader, DuelRuns(reader, data_of(duel.config)), method).peak_bytes, static_cast<double>(before));
}

TEST(Spread, HasADeviationFromTwoValuesOn) {
  EXPECT_TRUE(std::isnan(spread_of({}).mean));
  EXPECT_EQ(spread_of({3}).mean, 3);
  EXPECT_TRUE(std::isnan(spread_of({3}).deviation));
  const Spread spread = spread_of({1, 2, 6});
  EXPECT_EQ(spread.count, 3);
  EXPECT_DOUBLE_EQ(spread.mean, 3);
  EXPECT_DOUBLE_EQ(spread.deviation, std::sqrt(7.0));
}

}  // namespace
}  // namespace comera
