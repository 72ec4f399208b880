// Ranks that grow back: when, how far, and that the model says the same at that moment.
#include <cmath>

#include "tests/config/choices.h"
#include "tests/train/small_runs.h"
#include "tests/train/tight_device.h"

namespace comera::test {
namespace {

MemoryByPurpose planned_with(Engine& engine, const LiveRanks& ranks) {
  return engine.planned_with([&](ParamSet& params) { set_ranks(params, ranks); });
}

void grow(Engine& engine, const LiveRanks& wanted, double threshold, uint64_t step) {
  const BondEntries bonds = plan_growth(engine.params(), engine.device(), threshold, wanted);
  const auto seed = static_cast<uint64_t>(engine.config().train.seed);
  engine.reshape([&](Memory& memory, Ctx& ctx) {
    apply_growth(engine.device(), memory, engine.params(), engine.optimizer(), ctx, bonds, threshold, seed, step);
  });
}

// Late from step 5 on, the target reached and held at step 120.
RunConfig small_config() {
  RunConfig config = image_config();
  config.method.comera.late_after = 5;
  config.method.comera.target = 0.3;
  config.method.comera.loss_target = 5;  // the size is always further from its target
  config.train.lr_rank = 3e-2;
  config.train.steps = 200;
  return config;
}

// A trainer in the state of small_config() at its target.
struct AtTarget {
  explicit AtTarget(const RunConfig& config = small_config(), std::unique_ptr<Device> on = open_device("cpu", 1))
      : device(std::move(on)), trainer(config, std::make_shared<Blobs>(), nullptr, *device, log) {
    trainer.start();
    first = trainer.live_ranks();
    while (trainer.state().step < 120) trainer.step();
    EXPECT_LE(entries(), target()) << "the test wants the target reached";
  }
  double entries() { return trainer.size().entries; }
  double target() { return trainer.config().method.comera.target * comera_of(trainer).late_entries; }
  std::string bond(size_t layer, int bond) { return trainer.engine().params().rank_layers()[layer].name + "." + std::to_string(bond); }

  std::unique_ptr<Device> device;
  Log log;
  Trainer trainer;
  LiveRanks first;
};

TEST(Regrowth, ARaisedTargetGivesEntriesBack) {
  AtTarget run;
  const int64_t planned_first = run.trainer.engine().memory().peak().total();
  const LiveRanks low = run.trainer.live_ranks();
  run.trainer.edit("method.comera.target", "0.7");
  EXPECT_EQ(run.trainer.live_ranks(), low) << "with the next step, not with the edit";
  run.trainer.step();
  EXPECT_EQ(run.log.count("regrowth"), 1);
  EXPECT_LE(run.entries(), run.target());
  EXPECT_GE(run.entries(), 0.93 * run.target());
  const LiveRanks high = run.trainer.live_ranks();
  for (size_t i = 0; i < high.size(); ++i)
    for (size_t bond = 0; bond < high[i].size(); ++bond) {
      EXPECT_GE(high[i][bond], low[i][bond]);
      EXPECT_LE(high[i][bond], run.first[i][bond]);
    }
  EXPECT_EQ(run.trainer.engine().memory().now().total(), run.trainer.engine().planned().total());
  EXPECT_EQ(run.trainer.engine().memory().peak().total(), planned_first) << "no more than at the start";
  EXPECT_EQ(run.trainer.last_step().learning_rate[static_cast<int>(ParamGroup::rank)], 0) << "at the new target ranks rest";
  run.trainer.edit("method.comera.target", "0.3");
  while (!run.trainer.finished()) run.trainer.step();
  EXPECT_LE(run.entries(), run.target()) << "and down again";
  EXPECT_EQ(run.log.count("regrowth"), 1);
}

TEST(Regrowth, OnlyWhatIsInForceWhenTheStepBeginsCounts) {
  AtTarget run;
  const LiveRanks low = run.trainer.live_ranks();
  const double size = run.entries() / comera_of(run.trainer).late_entries;
  run.trainer.edit("method.comera.target", "0.9");
  run.trainer.edit("method.comera.target", "0.25");
  run.trainer.edit("method.comera.target", "0.3");
  run.trainer.step();
  EXPECT_EQ(run.log.count("regrowth"), 0) << "up and down again";
  run.trainer.edit("method.comera.target", "0.1");
  run.trainer.step();
  run.trainer.edit("method.comera.target", std::to_string(size * 0.8));
  run.trainer.step();
  EXPECT_EQ(run.log.count("regrowth"), 0) << "raised, but still under the size";
}

TEST(Regrowth, TheEarlyStageHasNoTarget) {
  RunConfig config = small_config();
  config.method.comera.late_after = 0;
  const auto device = open_device("cpu", 1);
  Log log;
  Trainer trainer(config, std::make_shared<Blobs>(), nullptr, *device, log);
  trainer.start();
  while (trainer.state().step < 60) trainer.step();
  const LiveRanks low = trainer.live_ranks();
  trainer.edit("method.comera.target", "0.9");
  trainer.step();
  EXPECT_EQ(log.count("regrowth"), 0);
  trainer.edit("stage", "late");
  trainer.step();
  EXPECT_EQ(log.count("regrowth"), 0) << "nor does the late stage begin with a raised one";
}

TEST(Regrowth, ARaisedCapGivesItsBondEntriesBack) {
  AtTarget run;
  const auto rank = [&] { return run.trainer.live_ranks()[0][0]; };
  run.trainer.edit("rank.cap." + run.bond(0, 1), "1");
  run.trainer.step();
  ASSERT_EQ(rank(), 1);
  const LiveRanks low = run.trainer.live_ranks();
  run.trainer.edit("rank.cap." + run.bond(0, 1), "4");
  run.trainer.step();
  EXPECT_EQ(rank(), 4);
  LiveRanks expected = low;
  expected[0][0] = 4;
  EXPECT_EQ(run.trainer.live_ranks(), expected) << "no other bond";
  run.trainer.edit("rank.cap." + run.bond(0, 1), "null");
  run.trainer.step();
  EXPECT_EQ(rank(), 4) << "without a cap nothing is asked for";
  run.trainer.edit("rank.cap." + run.bond(0, 1), "5");
  run.trainer.step();
  EXPECT_EQ(rank(), 4) << "a first cap under the rank at the start is a limit, it raises nothing";
  EXPECT_EQ(run.log.count("regrowth"), 1);
  ASSERT_EQ(run.first[0][1], 6);
  run.trainer.edit("rank.cap." + run.bond(0, 2), "9");
  run.trainer.step();
  EXPECT_EQ(run.trainer.live_ranks()[0][1], 9) << "beyond the start when the cap says so";
  run.trainer.edit("rank.cap." + run.bond(0, 1), "1000");
  run.trainer.step();
  EXPECT_EQ(rank(), 8) << "8 by 8 images: more than the modes can use is not taken";
  EXPECT_EQ(run.trainer.engine().memory().now().total(), run.trainer.engine().planned().total());
  const std::string saved = file("beyond");
  run.trainer.save(saved);
  TrainObserver silent;
  Trainer again(checkpoint_config(saved), std::make_shared<Blobs>(), nullptr, *run.device, silent);
  again.restore(saved);
  EXPECT_EQ(again.live_ranks(), run.trainer.live_ranks());
  again.step();
  run.trainer.step();
  EXPECT_EQ(again.last_step().results.loss, run.trainer.last_step().results.loss);
  std::filesystem::remove(saved);
}

// A target above the size at the start is asked for by nobody who does not want it: bonds grow beyond their first ranks then.
TEST(Regrowth, ATargetAboveTheStartGoesBeyondTheFirstRanks) {
  AtTarget run;
  run.trainer.edit("rank.cap." + run.bond(0, 2), std::to_string(run.first[0][1]));
  run.trainer.edit("rank.weight." + run.trainer.engine().params().rank_layers()[1].name, "0");
  const LiveRanks low = run.trainer.live_ranks();
  run.trainer.edit("method.comera.target", "1.4");
  run.trainer.step();
  EXPECT_EQ(run.log.count("regrowth"), 1);
  const LiveRanks high = run.trainer.live_ranks();
  EXPECT_EQ(high[1], low[1]) << "locked";
  EXPECT_EQ(high[0][1], run.first[0][1]) << "capped";
  EXPECT_GT(high[0][0] + high[0][2], run.first[0][0] + run.first[0][2]);
  for (size_t bond = 0; bond < high[0].size(); ++bond)
    EXPECT_LE(high[0][bond], std::max(run.first[0][bond], rank_limit(run.trainer.engine().params().rank_layers()[0], bond)));
  EXPECT_LE(run.entries(), run.target());
  EXPECT_EQ(run.trainer.engine().memory().now().total(), run.trainer.engine().planned().total());
  EXPECT_THROW(run.trainer.edit("method.comera.target", "11"), Error);
}

TEST(Regrowth, CapsAndLocksAreRespected) {
  AtTarget run;
  const LiveRanks low = run.trainer.live_ranks();
  const int64_t cap = low[0][1] + 1;
  run.trainer.edit("rank.weight." + run.trainer.engine().params().rank_layers()[1].name, "0");
  run.trainer.edit("rank.cap." + run.bond(0, 2), std::to_string(cap));
  run.trainer.edit("method.comera.target", "1");
  run.trainer.step();
  EXPECT_EQ(run.log.count("regrowth"), 1);
  const LiveRanks high = run.trainer.live_ranks();
  EXPECT_EQ(high[1], low[1]) << "locked";
  EXPECT_EQ(high[0][1], cap);
  EXPECT_EQ(high[0][0], run.first[0][0]);
  EXPECT_EQ(high[0][2], run.first[0][2]);
}

TEST(Regrowth, OffWherePruningIsOff) {
  RunConfig config = small_config();
  config.method.comera.train_ranks = false;
  const auto device = open_device("cpu", 1);
  Log log;
  Trainer trainer(config, std::make_shared<Blobs>(), nullptr, *device, log);
  trainer.start();
  while (trainer.state().step < 10) trainer.step();
  trainer.edit("rank.cap." + trainer.engine().params().rank_layers()[0].name + ".2", "9");
  trainer.edit("method.comera.target", "0.9");
  trainer.step();
  EXPECT_EQ(log.count("regrowth"), 0);
}

// A checkpoint between the edits and the step: who goes on from it makes the edits again, as they are in the log.
TEST(Regrowth, EditsMadeAgainAfterARestoreChangeNothing) {
  AtTarget run;
  const std::string saved = file("edited"), end = file("grown"), again = file("grown-again");
  const auto edits = [&](Trainer& trainer) {
    trainer.edit("rank.cap." + run.bond(0, 1), "1");
    trainer.edit("rank.cap." + run.bond(0, 1), "5");
    trainer.edit("rank.cap." + run.bond(1, 2), "6");
    trainer.edit("rank.cap." + run.bond(1, 2), "5");
    trainer.edit("method.comera.target", "0.8");
    trainer.edit("method.comera.target", "0.6");
  };
  edits(run.trainer);
  run.trainer.save(saved);
  TrainObserver silent;
  Trainer other(checkpoint_config(saved), std::make_shared<Blobs>(), nullptr, *run.device, silent);
  other.restore(saved);
  edits(other);
  for (Trainer* trainer : {&run.trainer, &other}) {
    for (int i = 0; i < 12; ++i) trainer->step();
    trainer->save(trainer == &other ? again : end);
  }
  EXPECT_EQ(run.log.count("regrowth"), 1);
  EXPECT_EQ(difference(end, again), "");
  for (const std::string& path : {saved, end, again}) std::filesystem::remove(path);
}

// By a dry run of a model of its own, which takes nothing and changes nothing of this one.
TEST(Regrowth, WhatItWillTakeIsKnownBefore) {
  for (RunConfig config : {image_config(), text_config()})
    for (const char* optimizer : choices_of("method.optimizer"))
      for (const char* stash : {"exact", "int8"}) {
        SCOPED_TRACE(config.model.kind + " " + optimizer + " " + stash);
        config.method.optimizer = optimizer;
        config.method.stash = stash;
        config.method.adam8bit.min_size = 64;
        config.method.galore = {.rank = 4, .gap = 25, .scale = 1};
        const auto device = open_device("cpu", 1);
        Log log;
        Trainer trainer(config, data_of(config), nullptr, *device, log);
        trainer.start();
        while (trainer.state().step < 3) trainer.step();
        Engine& engine = trainer.engine();
        const MemoryByPurpose before = engine.planned(), held = engine.memory().now(), peak = engine.memory().peak();
        LiveRanks wanted = held_ranks(engine.params());
        EXPECT_EQ(planned_with(engine, wanted).bytes, before.bytes) << "those it has";
        for (std::vector<int64_t>& layer : wanted)
          for (int64_t& rank : layer) rank += 2;
        const MemoryByPurpose foreseen = planned_with(engine, wanted);
        EXPECT_GT(foreseen.total(), before.total());
        EXPECT_EQ(engine.planned().bytes, before.bytes);
        EXPECT_EQ(engine.memory().now().bytes, held.bytes);
        EXPECT_EQ(engine.memory().peak().bytes, peak.bytes);
        trainer.step();  // as if nothing had been asked
        grow(engine, wanted, config.method.comera.threshold, 5);
        EXPECT_EQ(engine.planned().bytes, foreseen.bytes);
        EXPECT_EQ(engine.memory().now().total(), foreseen.total());
      }
}

// An edit is refused, or where it was made already taken back by another one: the log alone says what was trained.
TEST(Regrowth, WhatFindsNoRoomIsRefusedOrTakenBack) {
  const auto room = std::make_shared<Room>();
  AtTarget run(small_config(), std::make_unique<TightDevice>(room)), other;
  run.trainer.guard_growth();
  room->fill();
  const LiveRanks low = run.trainer.live_ranks();
  const std::vector<std::pair<std::string, std::string>> raises = {{"method.comera.target", "0.7"}, {"rank.cap." + run.bond(0, 2), "9"}};
  for (const auto& [path, value] : raises) try {
      run.trainer.check_room(path, value);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::memory) << path;
      EXPECT_EQ(error.what(), "cannot change " + path);
      EXPECT_NE(error.why().find("MiB more are needed, 0.0 MiB are free"), std::string::npos) << error.why();
      EXPECT_TRUE(run.trainer.take_refusal());
      EXPECT_FALSE(run.trainer.take_refusal());
    }
  EXPECT_EQ(run.log.count("alert"), 2);
  EXPECT_EQ(run.log.count("edit"), 0);
  EXPECT_THROW(run.trainer.check_room("method.comera.target", "much"), Error);
  EXPECT_FALSE(run.trainer.take_refusal()) << "that is no matter of room";
  run.trainer.check_room("method.comera.target", "0.2");
  run.trainer.check_room("train.lr_core", "1e-3");

  // There was room when the edit was made.
  const double mib = 0.7 * comera_of(run.trainer).late_entries * 4 / (1024 * 1024);
  run.trainer.edit("method.comera.target_mib", std::to_string(mib));
  run.trainer.check_room("train.lr_core", "1e-3");  // what waits is not of this edit
  run.trainer.check_room("method.comera.target", "0.25");
  for (int i = 0; i < 3; ++i) {
    run.trainer.step();
    other.trainer.step();
    EXPECT_EQ(run.log.count("alert"), 3) << "once";
    EXPECT_EQ(run.trainer.live_ranks(), low);
    EXPECT_EQ(run.trainer.last_step().results.loss, other.trainer.last_step().results.loss) << "as if nobody had asked";
  }
  EXPECT_TRUE(run.trainer.take_refusal());
  EXPECT_EQ(run.log.count("edit"), 2) << "there and back";
  EXPECT_EQ(run.log.count("regrowth"), 0);
  EXPECT_EQ(run.trainer.config().method.comera.target, 0.3);
  EXPECT_EQ(run.trainer.config().method.comera.target_mib, 0);
  run.trainer.edit("rank.cap." + run.bond(0, 2), "9");
  run.trainer.step();
  EXPECT_TRUE(comera_of(run.trainer).overrides.caps.empty()) << "there was none before";

  room->bytes = int64_t{1} << 30;
  run.trainer.check_room("method.comera.target", "0.7");
  run.trainer.edit("method.comera.target", "0.7");
  run.trainer.step();
  EXPECT_EQ(run.log.count("regrowth"), 1) << "a new edit tries again";
  EXPECT_EQ(run.log.count("alert"), 4);
}

TEST(Regrowth, OnlyAsManyEditsAreTakenBackAsMustBe) {
  const auto room = std::make_shared<Room>();
  AtTarget run(small_config(), std::make_unique<TightDevice>(room)), other;
  run.trainer.guard_growth();
  other.trainer.edit("method.comera.target", "0.5");
  other.trainer.step();
  ASSERT_EQ(other.log.count("regrowth"), 1);
  room->bytes = std::max(room->taken.load(), other.trainer.engine().memory().now().total());
  run.trainer.edit("method.comera.target", "0.5");
  run.trainer.edit("train.lr_core", "5e-3");
  run.trainer.edit("method.comera.target", "0.9");
  run.trainer.step();
  EXPECT_EQ(run.trainer.config().method.comera.target, 0.5);
  EXPECT_EQ(run.log.count("alert"), 1);
  EXPECT_EQ(run.log.count("regrowth"), 1);
  EXPECT_EQ(run.trainer.live_ranks(), other.trainer.live_ranks());
  EXPECT_EQ(run.trainer.last_step().results.loss, other.trainer.last_step().results.loss);
}

// A checkpoint between the edit and the step, and less memory where the run goes on: what was in force before is not known.
TEST(Regrowth, WhatARestoredRunStillHasToGrowNeedsItsRoom) {
  const auto room = std::make_shared<Room>();
  AtTarget run;
  const std::string saved = file("to-grow");
  run.trainer.edit("method.comera.target", "0.7");
  run.trainer.save(saved);
  TightDevice device(room);
  TrainObserver silent;
  Trainer other(checkpoint_config(saved), std::make_shared<Blobs>(), nullptr, device, silent);
  other.restore(saved);
  other.guard_growth();
  room->fill();
  other.edit("method.comera.target", "0.7");  // made again, as it is in the log
  try {
    other.step();
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory) << error.what();
    EXPECT_NE(error.why(), "");
  }
  EXPECT_EQ(other.state().step, 120);
  other.edit("method.comera.target", "0.3");
  other.step();
  EXPECT_EQ(other.state().step, 121) << "nothing was changed";
  std::filesystem::remove(saved);
}

// Whole models, embedding table and attention among them: what they say is the same after every bond grew.
TEST(Regrowth, TheModelSaysTheSame) {
  for (RunConfig config : {image_config(), text_config()}) {
    config.train.precision = "f64";
    const auto device = open_device("cpu", 1);
    Log log;
    Trainer trainer(config, data_of(config), nullptr, *device, log);
    trainer.start();
    const LiveRanks first = trainer.live_ranks();
    while (trainer.state().step < 12) trainer.step();
    Engine& engine = trainer.engine();
    for (const RankLayer& layer : engine.params().rank_layers())  // every bond keeps its first two
      for (const Param* ranks : layer.ranks) {
        std::vector<double> values = to_host(*device, ranks->value);
        for (size_t i = 2; i < values.size(); ++i) values[i] = 0;
        from_host(*device, ranks->value, values);
      }
    const Batch batch = first_batch(config);
    StepScalars scalars;
    scalars.step = 1;
    std::vector<double> before, after;
    engine.score(batch, scalars, &before);
    grow(engine, first, scalars.threshold, 13);
    EXPECT_EQ(comera::live_ranks(engine.params(), *device, scalars.threshold), first);
    EXPECT_EQ(engine.memory().now().total(), engine.planned().total());
    engine.score(batch, scalars, &after);
    double size = 1, largest = 0;
    for (size_t i = 0; i < before.size(); ++i) {
      size = std::max(size, std::fabs(before[i]));
      largest = std::max(largest, std::fabs(before[i] - after[i]));
    }
    // A dozen layers, each with sums of up to 60 terms, and norms between them.
    EXPECT_LE(largest, 12 * 2 * 60 * 2.3e-16 * size) << config.model.kind;
  }
}

}  // namespace
}  // namespace comera::test
