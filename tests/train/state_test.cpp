// The plain state of a run in its checkpoint: whole, and read as before where an older program wrote it.
#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "core/base/json.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

// Every value another one than at the start.
TrainState a_state() {
  TrainState state;
  state.step = 41;
  state.cursor = 987;
  state.best_loss = 0.25;
  state.best_accuracy = 0.875;
  state.best_step = 40;
  state.worse = 3;
  return state;
}

ComeraState a_comera_state() {
  ComeraState state;
  state.late = true;
  state.late_at = 21;
  state.late_entries = 5000.5;
  state.pace = 4321.25;
  state.late_requested = true;
  state.early_requested = true;
  state.left_late_at = 17;
  for (int loss = 0; loss < 120; ++loss) state.plateau.update(1.0 / (1 + loss));
  state.overrides.caps = {{"fc0.1", 3}, {"fc1.2", 5}};
  state.overrides.weights = {{"fc0", 0.5}};
  state.last_target = 2500;
  state.last_caps = {{"fc0.1", 2}};  // the cap was raised since
  state.unknown = {{39, 0.5, {{1, 2}, {3}}}, {40, 0.625, {{2, 2}, {3}}}};
  state.live_ranks = {{2, 1}, {3}};
  return state;
}

Json json_of(const ComeraState& state) {
  Json json = a_state().to_json();
  state.save(json);
  return parse_valid_json(json.dump());
}

TEST(TrainState, ComesBackWhole) {
  const TrainState read = TrainState::from_json(parse_valid_json(a_state().to_json().dump()));
  EXPECT_EQ(read.step, 41);
  EXPECT_EQ(read.cursor, 987);
  EXPECT_EQ(read.best_loss, 0.25);
  EXPECT_EQ(read.best_accuracy, 0.875);
  EXPECT_EQ(read.best_step, 40);
  EXPECT_EQ(read.worse, 3);
}

TEST(ComeraState, ComesBackWhole) {
  const ComeraState state = a_comera_state(), read = ComeraState::from_json(json_of(state));
  EXPECT_TRUE(read.late);
  EXPECT_EQ(read.late_at, 21);
  EXPECT_EQ(read.late_entries, 5000.5);
  EXPECT_EQ(read.pace, 4321.25);
  EXPECT_TRUE(read.late_requested);
  EXPECT_TRUE(read.early_requested);
  EXPECT_EQ(read.left_late_at, 17);
  EXPECT_EQ(read.plateau.to_json(), state.plateau.to_json());
  EXPECT_EQ(read.plateau.best_step, 120);
  EXPECT_EQ(read.overrides.caps, state.overrides.caps);
  EXPECT_EQ(read.overrides.weights, state.overrides.weights);
  EXPECT_EQ(read.last_target, 2500);
  EXPECT_EQ(read.last_caps, state.last_caps) << "not the caps of now";
  ASSERT_EQ(read.unknown.size(), 2u);
  EXPECT_EQ(read.unknown[0].step, 39);
  EXPECT_EQ(read.unknown[1].ce, 0.625);
  EXPECT_EQ(read.unknown[0].ranks, (LiveRanks{{1, 2}, {3}}));
  EXPECT_EQ(read.live_ranks, (LiveRanks{{2, 1}, {3}}));
}

TEST(ComeraState, OfAnOlderProgramHasNothingRaisedAndNoWayBack) {
  Json json = json_of(a_comera_state());
  for (const char* key : {"pace", "early_requested", "left_late_at", "last_target", "last_caps", "unknown", "live_ranks"}) json.erase(key);
  const ComeraState read = ComeraState::from_json(json);
  EXPECT_EQ(read.pace, 5000.5) << "the size at the start of the stage";
  EXPECT_FALSE(read.early_requested);
  EXPECT_EQ(read.left_late_at, 0);
  EXPECT_EQ(read.last_target, 0);
  EXPECT_EQ(read.last_caps, read.overrides.caps);
  EXPECT_TRUE(read.unknown.empty());
  EXPECT_TRUE(read.live_ranks.empty());
}

TEST(TrainState, WithoutAValueIsRefused) {
  const auto device = open_device("cpu", 1);
  Log log;
  const RunConfig config = image_config();
  Engine engine(config, *device);
  engine.allocate();
  Json whole = TrainState().to_json();
  engine.method().save(whole);
  const std::string path = file("incomplete");
  const auto restores = [&](const Json& state) {
    save_checkpoint(engine, config, state, {.vocabulary = "blobs"}, path);
    Trainer(config, std::make_shared<Blobs>(), nullptr, *device, log).restore(path);
  };
  restores(whole);
  for (const char* key : {"step", "cursor", "late", "late_at", "late_entries", "late_requested", "plateau", "best_loss", "best_accuracy",
                          "best_step", "caps", "weights"}) {
    Json json = whole;
    json.erase(key);
    if (std::string(key) == "step") json["step"] = "first";  // the writer reads it, too
    EXPECT_THROW(restores(json), Error) << key;
  }
  std::filesystem::remove(path);
}

// A dense model has no stages and no ranks to keep.
TEST(TrainState, OfADenseModelKeepsNothingOfAnotherMethod) {
  RunConfig config = image_config();
  config.method.weights = "dense";
  const auto device = open_device("cpu", 1);
  Engine engine(config, *device);
  Json state = TrainState().to_json();
  const Json alone = state;
  engine.method().save(state);
  EXPECT_EQ(state, alone);
}

// A cap is raised, and the run is saved before the step that grows: the restored one grows in that step, too.
TEST(TrainState, ARaisedCapIsStillRaisedAfterARestore) {
  const auto device = open_device("cpu", 1);
  Log log;
  Trainer trainer(image_config(), std::make_shared<Blobs>(), nullptr, *device, log);
  trainer.start();
  const std::string cap = "rank.cap." + trainer.engine().params().rank_layers()[0].name + ".1", saved = file("raised"), end = file("end"),
                    again = file("again");
  trainer.edit(cap, "2");
  for (int step = 0; step < 3; ++step) trainer.step();
  ASSERT_EQ(trainer.live_ranks()[0][0], 2);
  trainer.edit(cap, "4");
  trainer.save(saved);
  trainer.step();
  ASSERT_EQ(trainer.live_ranks()[0][0], 4);
  trainer.save(end);
  Log resumed_log;
  Trainer resumed(checkpoint_config(saved), std::make_shared<Blobs>(), nullptr, *device, resumed_log);
  resumed.restore(saved);
  EXPECT_EQ(resumed.live_ranks()[0][0], 2);
  resumed.step();
  EXPECT_EQ(resumed.live_ranks()[0][0], 4);
  EXPECT_EQ(resumed_log.count("regrowth"), 1);
  resumed.save(again);
  EXPECT_EQ(difference(end, again), "");
  for (const std::string& path : {saved, end, again}) std::filesystem::remove(path);
}

}  // namespace
}  // namespace comera::test
