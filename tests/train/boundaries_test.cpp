// At which step something happens, and what a run says of itself there: one step, one row or one entry more is a fault.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "core/methods/rank_grow.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

class Records : public Log {
 public:
  std::vector<StepRecord> steps;
  std::vector<EvalRecord> evals;
  std::map<std::string, std::vector<int64_t>> at;  // steps of events, by kind
  void on_step(const StepRecord& record) override { steps.push_back(record); }
  void on_eval(const EvalRecord& record) override { evals.push_back(record); }
  void on_event(int64_t step, const char* kind, const Json& body) override {
    Log::on_event(step, kind, body);
    at[kind].push_back(step);
  }
};

struct SmallRun {
  explicit SmallRun(const RunConfig& config, bool validate = false)
      : trainer(config, std::make_shared<Blobs>(), validate ? std::make_shared<Blobs>() : nullptr, *device, records) {
    trainer.start();
  }
  void steps(int64_t count) {
    for (int64_t i = 0; i < count; ++i) trainer.step();
  }
  // The first `live` entries of each bond are alive, the others dead.
  void set_live(int64_t live) {
    for (const RankLayer& layer : trainer.engine().params().rank_layers())
      for (Param* rank : layer.ranks) {
        std::vector<double> values(static_cast<size_t>(rank->count()), 0);
        std::fill(values.begin(), values.begin() + std::min(live, rank->count()), 1.0);
        from_host(*device, rank->value, values);
      }
  }
  std::string cap(int bond) { return "rank.cap." + trainer.engine().params().rank_layers()[0].name + "." + std::to_string(bond); }

  const std::unique_ptr<Device> device = open_device("cpu", 1);
  Records records;
  Trainer trainer;
};

TEST(Boundaries, EvaluationsComeAtTheirStepsAndAtTheEnd) {
  RunConfig config = image_config();
  config.train.steps = 10;
  config.train.eval_every = 4;
  config.train.batch = 14;  // the last of 7 batches is not full
  config.train.lr = config.train.lr_core = config.train.lr_rank = 0;
  SmallRun run(config, true);
  run.steps(10);
  ASSERT_EQ(run.records.evals.size(), 3u);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(run.records.evals[i].step, (std::vector<int64_t>{4, 8, 10})[i]);
    EXPECT_EQ(run.records.evals[i].examples, 96) << "every row";
    EXPECT_EQ(run.records.evals[i].loss, run.records.evals[0].loss) << "at a rate of 0 nothing changes";
  }
  const TrainState& state = run.trainer.state();
  EXPECT_EQ(state.best_step, 4) << "the first of equal ones";
  EXPECT_EQ(state.best_loss, run.records.evals[0].loss);
  EXPECT_EQ(state.best_accuracy, run.records.evals[0].accuracy);
}

TEST(Boundaries, ARunWithoutABetterLossStopsEarlyAlsoWhenItIsResumed) {
  RunConfig config = image_config();
  config.train.steps = 40;
  config.train.eval_every = 4;
  config.train.patience = 2;
  config.train.lr = config.train.lr_core = config.train.lr_rank = 0;
  SmallRun run(config, true);
  run.steps(10);
  EXPECT_EQ(run.trainer.state().worse, 1);
  const std::string path = file("patience");
  run.trainer.save(path);
  EXPECT_FALSE(run.trainer.finished());
  run.steps(2);
  EXPECT_TRUE(run.trainer.finished()) << "the best at step 4, none at 8 and 12";
  EXPECT_EQ(run.records.at["alert"], std::vector<int64_t>{12});
  Trainer resumed(config, std::make_shared<Blobs>(), std::make_shared<Blobs>(), *run.device, run.records);
  resumed.restore(path);
  while (!resumed.finished()) resumed.step();
  EXPECT_EQ(resumed.state().step, 12);
  resumed.edit("train.patience", "5");
  EXPECT_FALSE(resumed.finished()) << "it goes on when more patience is asked for";
  std::filesystem::remove(path);
}

TEST(Boundaries, AnEvaluationCountsEveryCorrectRow) {
  RunConfig config = image_config();
  config.train.steps = 60;
  config.train.batch = 14;
  config.method.weights = "dense";
  SmallRun run(config, true);
  run.steps(60);
  ASSERT_EQ(run.records.evals.size(), 1u);
  EXPECT_GT(run.records.evals[0].accuracy, 0.5);
  const double correct = run.records.evals[0].accuracy * 96;
  EXPECT_NEAR(correct, std::round(correct), 1e-9);
}

TEST(Boundaries, CutsComeAtTheirStepsOnly) {
  RunConfig config = image_config();
  config.method.comera.rank_weight = 1;
  config.train.lr_rank = 5e-2;
  config.train.steps = 70;
  SmallRun run(config);
  run.steps(70);
  ASSERT_GE(run.records.at["truncation"].size(), 1u);
  for (const int64_t step : run.records.at["truncation"]) EXPECT_EQ(step % 10, 0) << step;
}

TEST(Boundaries, EpochsAndStepsFollowTheRows) {
  RunConfig config = image_config();  // 6 batches of 16 rows
  config.train.steps = 0;
  config.train.epochs = 2.5;
  SmallRun run(config);
  EXPECT_EQ(run.trainer.steps_per_epoch(), 6);
  EXPECT_EQ(run.trainer.total_steps(), 15);
  run.steps(7);
  for (size_t i = 0; i < 7; ++i) EXPECT_DOUBLE_EQ(run.records.steps[i].epoch, 16.0 * static_cast<double>(i + 1) / 96);
}

TEST(Boundaries, ADivergedStepIsNotPartOfTheState) {
  SmallRun run(image_config());
  run.steps(2);
  const int64_t cursor = run.trainer.state().cursor;
  Param& head = *run.trainer.engine().params().find("head.weight");
  std::vector<double> values = to_host(*run.device, head.value);
  values[3] = std::nan("");
  from_host(*run.device, head.value, values);
  EXPECT_THROW(run.trainer.step(), Error);
  EXPECT_EQ(run.trainer.state().step, 2);
  EXPECT_EQ(run.trainer.state().cursor, cursor) << "its rows are drawn again";
}

// ---- size and its target ------------------------------------------------------------------------------------------

TEST(Boundaries, SizesCountWhatIsAliveAndWhatIsHeld) {
  SmallRun run(image_config());
  const ParamSet& params = run.trainer.engine().params();
  const auto& layers = params.rank_layers();
  const LiveRanks held = held_ranks(params);
  double cores = 0, dense = 0;
  for (const RankLayer& layer : layers) {
    for (const Param* core : layer.cores) cores += static_cast<double>(core->count());
    dense += static_cast<double>(layer.dense_entries());
  }
  const ModelSize whole = run.trainer.size();
  EXPECT_EQ(whole.entries, cores);
  EXPECT_EQ(whole.bytes, 4 * cores);
  EXPECT_EQ(static_cast<double>(whole.held_entries), cores);
  EXPECT_EQ(whole.model_entries, static_cast<double>(params.count())) << "cores, rank parameters and all else";
  EXPECT_DOUBLE_EQ(whole.compression, dense / cores);
  LiveRanks live = held;
  --live[0][1];
  const ModelSize size = model_size(params, live, held, DType::f64);
  const double gone = static_cast<double>(layers[0].cores[1]->shape[0] * layers[0].mode_sizes[1] + layers[0].mode_sizes[2] * held[0][2]);
  EXPECT_EQ(size.entries, cores - gone) << "a slice of the two cores at the bond";
  EXPECT_EQ(size.bytes, 8 * size.entries);
  EXPECT_EQ(static_cast<double>(size.held_entries), cores) << "it is in memory all the same";
  EXPECT_EQ(size.model_entries, whole.model_entries - gone - 1);
}

TEST(Boundaries, ATargetIsAShareMebibytesOrACompression) {
  for (const auto& [path, value] :
       {std::pair("method.comera.target", 0.5), {"method.comera.target_mib", 0.002}, {"method.comera.target_compression", 3.0}}) {
    RunConfig config = image_config();
    config.train.precision = "f64";
    set_config(config, {std::string(path) + "=" + std::to_string(value)});
    SmallRun run(config);
    run.steps(1);
    EXPECT_EQ(run.records.steps.back().target_entries, 0) << "none in the early stage";
    const double entries = run.trainer.size().entries;
    double dense = 0;
    for (const RankLayer& layer : run.trainer.engine().params().rank_layers()) dense += static_cast<double>(layer.dense_entries());
    run.trainer.edit("stage", "late");
    run.steps(1);
    const std::map<std::string, double> expected{{"method.comera.target", 0.5 * entries},
                                                 {"method.comera.target_mib", 0.002 * 1048576 / 8},
                                                 {"method.comera.target_compression", dense / 3}};
    EXPECT_DOUBLE_EQ(run.records.steps.back().target_entries, expected.at(path)) << path;
  }
}

TEST(Boundaries, RanksRestAtExactlyTheTarget) {
  const auto rank_rate = [](double target) {
    RunConfig config = image_config();
    config.method.comera.target = target;
    SmallRun run(config);
    run.trainer.edit("stage", "late");
    run.steps(1);
    return run.records.steps.back().learning_rate[static_cast<int>(ParamGroup::rank)];
  };
  EXPECT_EQ(rank_rate(1), 0);
  EXPECT_EQ(rank_rate(0.999), 3e-2);
}

// ---- growth -------------------------------------------------------------------------------------------------------

TEST(Boundaries, ACapThatStaysGivesNothingBack) {
  RunConfig config = image_config();
  config.train.lr_rank = 0;  // first moments would lift dead entries
  SmallRun run(config);
  run.trainer.edit(run.cap(1), "4");
  run.steps(1);
  run.set_live(2);
  run.steps(1);
  ASSERT_EQ(run.trainer.live_ranks()[0][0], 2);
  run.trainer.edit(run.cap(2), "5");  // another cap changes, under the rank at the start: a limit
  run.steps(1);
  EXPECT_EQ(run.trainer.live_ranks()[0][0], 2);
  EXPECT_EQ(run.trainer.live_ranks()[0][1], 2);
  EXPECT_EQ(run.records.count("regrowth"), 0);
}

TEST(Boundaries, WhatACappedBondMayNotHaveGoesToTheOthers) {
  RunConfig config = image_config();
  config.method.comera.target = 0.3;
  config.method.comera.hold_at_target = true;
  SmallRun run(config);
  const LiveRanks first = run.trainer.live_ranks();
  run.trainer.edit("stage", "late");
  run.steps(1);
  run.set_live(2);
  run.trainer.edit(run.cap(2), "3");
  run.steps(1);
  const LiveRanks low = run.trainer.live_ranks();
  ASSERT_EQ(low[0][1], 2);
  run.trainer.edit("method.comera.target", "0.7");
  run.steps(1);
  LiveRanks limits = first;
  limits[0][1] = 3;
  EXPECT_EQ(run.records.count("regrowth"), 1);
  EXPECT_EQ(run.trainer.live_ranks(),
            grown_to_size(run.trainer.engine().params().rank_layers(), low, limits, 0.7 * comera_of(run.trainer).late_entries));
}

// The target that counts as raised is one of the late stage: in the early one none is in force, whichever way it is given.
TEST(Boundaries, TheLateStageBeginsWithoutAGrowth) {
  RunConfig config = image_config();
  config.method.comera.target = 0;
  config.method.comera.target_mib = 0.001;
  SmallRun run(config);
  run.set_live(2);
  run.steps(1);
  run.trainer.edit("method.comera.target_mib", "1");
  run.trainer.edit("stage", "late");
  run.steps(1);
  EXPECT_TRUE(comera_of(run.trainer).late);
  EXPECT_EQ(run.records.count("regrowth"), 0);
  run.trainer.edit("method.comera.target_mib", "2");
  run.steps(1);
  EXPECT_EQ(run.records.count("regrowth"), 1) << "else this shows nothing";
}

// ---- engine -------------------------------------------------------------------------------------------------------

StepScalars first_step() {
  StepScalars scalars;
  scalars.step = scalars.optimizer_step = 1;
  scalars.threshold = 1e-2;
  scalars.pruning = 1;
  scalars.rank_weight = 1;
  return scalars;
}

TEST(Boundaries, LabelsOutsideTheClassesAreRefused) {
  const RunConfig config = image_config();  // 4 classes
  const auto device = open_device("cpu", 1);
  Engine engine(config, *device);
  engine.allocate();
  for (const auto& [label, fits] : {std::pair(-2, false), {-1, true}, {0, true}, {3, true}, {4, false}}) {
    Batch batch = first_batch(config);
    batch.ints["labels"][5] = label;
    if (fits) {
      EXPECT_NO_THROW(engine.step(batch, first_step())) << label;
    } else {
      try {
        engine.submit(batch, first_step());
        ADD_FAILURE() << label << " was taken";
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::config) << label;
        EXPECT_EQ(error.why(), "place 5 of the batch") << "before anything is computed with it, on every device";
      }
      EXPECT_EQ(engine.underway(), 0);
    }
  }
}

TEST(Boundaries, WeightsOfLayersSurviveACut) {
  const RunConfig config = image_config();
  const auto device = open_device("cpu", 1);
  // Gradients of all rank parameters after a cut of one entry, with the weights set before it, after it, or not at all.
  const auto gradients = [&](bool before, bool after) {
    Engine engine(config, *device);
    engine.allocate();
    if (before) dynamic_cast<Comera&>(engine.method()).rank_objective().set_layer_weights(*device, {0.25, 4});
    BondEntries bonds;
    for (const std::vector<int64_t>& layer : held_ranks(engine.params())) {
      bonds.emplace_back();
      for (const int64_t rank : layer) {
        bonds.back().emplace_back();
        for (int64_t i = 1; i < rank; ++i) bonds.back().back().push_back(i);
      }
    }
    resize_bonds(engine, bonds);
    if (after) dynamic_cast<Comera&>(engine.method()).rank_objective().set_layer_weights(*device, {0.25, 4});
    engine.step(first_batch(config), first_step());
    return to_host(*device, engine.params().rank_grads());
  };
  const std::vector<double> kept = gradients(true, false);
  EXPECT_EQ(kept, gradients(false, true));
  EXPECT_NE(kept, gradients(false, false));
}

}  // namespace
}  // namespace comera::test
