// The late stage: how fast the size falls, and where it stops.
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

TEST(LateStage, RanksRestWhileTheSizeIsAtItsTarget) {
  const auto data = std::make_shared<const Blobs>();
  const auto device = open_device("cpu", 1);
  double reached[2] = {}, final[2] = {}, raised = 0;
  for (const bool hold : {false, true}) {
    RunConfig config = image_config();
    config.method.comera.late_after = 5;
    config.method.comera.target = 0.6;
    config.method.comera.hold_at_target = hold;
    config.train.lr_rank = 5e-2;
    config.train.steps = 200;
    Log log;
    Trainer trainer(config, data, nullptr, *device, log);
    trainer.start();
    const double target = 0.6 * trainer.size().entries;
    while (!trainer.finished()) {
      trainer.step();
      const double entries = trainer.size().entries;
      if (reached[hold] == 0 && entries <= target) reached[hold] = entries;
    }
    final[hold] = trainer.size().entries;
    ASSERT_GT(reached[hold], 0) << "the target was never reached";
    if (!hold) continue;
    EXPECT_EQ(trainer.last_step().learning_rate[static_cast<int>(ParamGroup::rank)], 0);
    trainer.edit("train.steps", "260");  // a lower target moves them again
    trainer.edit("method.comera.target", "0.3");
    trainer.step();
    raised = trainer.last_step().learning_rate[static_cast<int>(ParamGroup::rank)];
  }
  EXPECT_EQ(final[true], reached[true]);
  EXPECT_LT(final[false], reached[false]) << "as published they go on falling, else this shows nothing";
  EXPECT_GT(raised, 0);
}

// The size after each late step, with the pace of that step.
struct LateCourse {
  std::vector<double> sizes, paces;
  std::vector<bool> pushed;
  double target = 0;
};

// `halving_at`: the step before which the pace is set; until then there is none.
LateCourse late_course(int64_t halving, int64_t steps, const std::string& saved = "", int64_t save_at = 0, int64_t halving_at = 0) {
  RunConfig config = image_config();
  config.method.comera.late_after = 5;
  config.method.comera.target = 0.2;
  config.method.comera.loss_target = 5;  // the size is always further from its target
  config.method.comera.mode = "selective";
  config.method.comera.late_halving = halving_at > 0 ? 0 : halving;
  config.train.lr_rank = 3e-2;
  config.train.seed = 3;
  config.train.steps = steps;
  const auto device = open_device("cpu", 1);
  Log log;
  Trainer trainer(config, std::make_shared<Blobs>(), nullptr, *device, log);
  trainer.start();
  LateCourse course;
  while (!trainer.finished()) {
    if (halving_at > 0 && trainer.state().step + 1 == halving_at) trainer.edit("method.comera.late_halving", std::to_string(halving));
    trainer.step();
    course.target = trainer.last_step().target_entries;
    if (comera_of(trainer).late) {
      course.sizes.push_back(trainer.size().entries);
      course.paces.push_back(comera_of(trainer).pace);
      course.pushed.push_back(trainer.last_step().results.lambda > 0);
    }
    if (trainer.state().step == save_at) trainer.save(saved);
  }
  if (!saved.empty()) trainer.save(saved + "-end");
  return course;
}

TEST(LateStage, ThePushPausesWhileTheSizeIsAheadOfItsPace) {
  const LateCourse free = late_course(0, 200), paced = late_course(300, 1200);
  EXPECT_EQ(free.target, paced.target);
  EXPECT_EQ(paced.paces.back(), paced.target) << "it ends at the target";
  int64_t pauses = 0;
  for (size_t i = 1; i < paced.sizes.size(); ++i) {
    EXPECT_EQ(paced.pushed[i], paced.sizes[i - 1] > paced.paces[i]) << "late step " << i;
    if (paced.paces[i] > paced.paces.back()) {
      EXPECT_NEAR(paced.paces[i] / paced.paces[i - 1], std::exp2(-1.0 / 300), 1e-12);
      pauses += paced.pushed[i] ? 0 : 1;
    }
  }
  EXPECT_GT(pauses, 10) << "else the push was too weak to show anything";
  EXPECT_LE(paced.sizes.back(), paced.paces.back()) << "the target is reached all the same";
  size_t fell = 0;
  while (free.sizes[fell] > free.target) ++fell;
  EXPECT_GT(paced.sizes[fell], 2 * free.sizes[fell]) << "without a pace the size falls at once, late step " << fell;
}

// Ranks have a way to go there and none before.
TEST(LateStage, RankVectorsMayHaveALearningRateOfTheirOwn) {
  RunConfig config = image_config();
  config.method.comera.late_after = 5;
  config.train.lr_rank = 1e-3;
  config.train.lr_rank_late = 4e-2;
  const auto device = open_device("cpu", 1);
  Log log;
  Trainer trainer(config, std::make_shared<Blobs>(), nullptr, *device, log);
  trainer.start();
  const auto rate = [&] {
    trainer.step();
    return trainer.last_step().learning_rate[static_cast<int>(ParamGroup::rank)];
  };
  for (int step = 1; step <= 5; ++step) EXPECT_EQ(rate(), 1e-3) << step;
  EXPECT_EQ(rate(), 4e-2);
  trainer.edit("train.lr_rank_late", "0");
  EXPECT_EQ(rate(), 1e-3);
}

// Set in the middle of the late stage it begins with the size of that moment.
TEST(LateStage, APaceThatIsSetLaterBeginsWithTheSize) {
  const LateCourse course = late_course(300, 60, "", 0, 40);
  const size_t first = 40 - 5 - 1;  // late steps before: from step 6 on
  EXPECT_EQ(course.paces[first - 1], course.sizes[first - 2]) << "without one it follows the size";
  EXPECT_NEAR(course.paces[first], std::max(course.target, course.sizes[first - 2] * std::exp2(-1.0 / 300)), 1e-9);
  EXPECT_GT(course.paces[first], course.target) << "else the run shows nothing";
}

RunConfig canonical_config(bool canonical) {
  RunConfig config = image_config();
  config.method.comera.late_after = 5;
  config.method.comera.target = 0.4;
  config.method.comera.mode = "selective";
  config.method.comera.late_canonical = canonical;
  config.train.steps = 60;
  return config;
}

// The stage begins in canonical form: the first late step has the loss that it has without, the next ones go another way.
TEST(LateStage, BeginsInCanonicalForm) {
  const auto device = open_device("cpu", 1);
  double first[2] = {}, tenth[2] = {};
  for (const bool canonical : {false, true}) {
    Log log;
    Trainer trainer(canonical_config(canonical), std::make_shared<Blobs>(), nullptr, *device, log);
    trainer.start();
    while (trainer.state().step < 15) {
      trainer.step();
      if (trainer.state().step == 6) {
        first[canonical] = trainer.last_step().results.ce;
        EXPECT_TRUE(comera_of(trainer).late);
        EXPECT_EQ(comera_of(trainer).late_entries, trainer.size().entries) << "nothing died of it";
      }
    }
    tenth[canonical] = trainer.last_step().results.ce;
  }
  EXPECT_NEAR(first[true], first[false], 1e-5);
  EXPECT_NE(tenth[true], tenth[false]);
}

TEST(LateStage, ACanonicalRunIsRestoredByteForByte) {
  for (const int64_t save_at : {5, 6, 30}) {  // before the stage, after its first step, later
    const auto device = open_device("cpu", 1);
    const std::string saved = file("canonical"), again = file("canonical-again");
    Log log;
    Trainer trainer(canonical_config(true), std::make_shared<Blobs>(), nullptr, *device, log);
    trainer.start();
    while (!trainer.finished()) {
      trainer.step();
      if (trainer.state().step == save_at) trainer.save(saved);
    }
    trainer.save(saved + "-end");
    TrainObserver silent;
    Trainer resumed(checkpoint_config(saved), std::make_shared<Blobs>(), nullptr, *device, silent);
    resumed.restore(saved);
    while (!resumed.finished()) resumed.step();
    resumed.save(again);
    EXPECT_EQ(difference(saved + "-end", again), "") << "saved after step " << save_at;
    for (const std::string& path : {saved, saved + "-end", again}) std::filesystem::remove(path);
  }
}

// ---- and back to the early one ------------------------------------------------------------------------------------

RunConfig two_stages() {
  RunConfig config = image_config();
  config.method.comera.target = 0.4;
  config.method.comera.rank_weight = 0.02;
  config.train.lr_rank = 1e-3;
  config.train.lr_rank_late = 4e-2;
  config.train.steps = 60;
  return config;
}

class Stages : public Log {
 public:
  std::vector<std::pair<int64_t, std::string>> switches;  // step, and what its event says
  std::vector<double> late;                               // of each step: 1 late, 0 early, by what it minimised; else the weight
  void on_step(const StepRecord& record) override {
    Log::on_step(record);
    const bool early = record.results.ce_weight == 1 && record.results.rho_weight == 0.02 && record.results.lambda == 0 &&
                       record.target_entries == 0 && record.learning_rate[static_cast<int>(ParamGroup::rank)] == 1e-3;
    const bool late_rate = record.learning_rate[static_cast<int>(ParamGroup::rank)] != 1e-3 && record.target_entries > 0;
    late.push_back(early ? 0 : late_rate ? 1 : 0.5);
  }
  void on_event(int64_t step, const char* kind, const Json& body) override {
    Log::on_event(step, kind, body);
    if (std::string(kind) == "stage")
      switches.emplace_back(step, body.at("stage").get<std::string>() + " " + body.at("reason").get<std::string>() +
                                      (body.contains("stays") ? " stays" : ""));
  }
};

using Switches = std::vector<std::pair<int64_t, std::string>>;

// After `step` steps the stage is asked for: "late", "early", or both in this order.
using Requests = std::multimap<int64_t, std::string>;

void ask(Trainer& trainer, const Requests& requests) {
  const auto [first, last] = requests.equal_range(trainer.state().step);
  for (auto it = first; it != last; ++it) trainer.edit("stage", it->second);
}

Switches course_of(const RunConfig& config, const Requests& requests, Stages& log) {
  const auto device = open_device("cpu", 1);
  Trainer trainer(config, std::make_shared<Blobs>(), nullptr, *device, log);
  trainer.start();
  while (!trainer.finished()) {
    ask(trainer, requests);
    trainer.step();
  }
  return log.switches;
}

TEST(LateStage, GoesBackToTheEarlyStageAndComesAgain) {
  Stages log;
  const Switches switches = course_of(two_stages(), {{10, "late"}, {30, "early"}, {45, "late"}}, log);
  EXPECT_EQ(switches, (Switches{{11, "late command"}, {31, "early command"}, {46, "late command"}}));
  ASSERT_EQ(log.late.size(), 60u);
  for (size_t step = 1; step <= 60; ++step)
    EXPECT_EQ(log.late[step - 1], (step > 10 && step <= 30) || step > 45 ? 1 : 0) << "step " << step;
}

// What it minimises is all that changes: the parameters stay as they are, and what ranks lost stays lost.
TEST(LateStage, GoingBackChangesNoValue) {
  const auto device = open_device("cpu", 1);
  TrainObserver silent;
  RunConfig config = two_stages();
  Trainer trainer(config, std::make_shared<Blobs>(), nullptr, *device, silent);
  trainer.start();
  trainer.edit("stage", "late");
  const double before = trainer.size().entries;
  while (trainer.state().step < 50) trainer.step();
  const double fallen = trainer.size().entries;
  ASSERT_LT(fallen, before) << "nothing fell: the test shows too little";
  const LiveRanks ranks = trainer.live_ranks();
  const std::string late = file("still-late"), early = file("early-again");
  trainer.save(late);
  trainer.edit("stage", "early");
  EXPECT_EQ(trainer.live_ranks(), ranks);
  trainer.save(early);
  EXPECT_EQ(difference(late, early), "metadata") << "the request alone";
  trainer.step();
  EXPECT_LE(trainer.size().entries, fallen);
  for (const std::string& path : {late, early}) std::filesystem::remove(path);
}

TEST(LateStage, ARunThatWentBackIsRestoredByteForByte) {
  RunConfig config = two_stages();
  config.method.comera.late_after = 20;
  config.method.comera.late_canonical = true;
  config.method.comera.mode = "selective";
  const Requests requests{{8, "late"}, {14, "early"}, {40, "early"}, {50, "late"}, {52, "early"}, {52, "late"}};
  const auto device = open_device("cpu", 1);
  Stages log;
  Trainer whole(config, std::make_shared<Blobs>(), nullptr, *device, log);
  whole.start();
  std::map<int64_t, std::string> saved;
  while (!whole.finished()) {
    ask(whole, requests);
    // Between what is asked for and its step, and behind that.
    for (const int64_t at : {8, 9, 14, 15, 20, 21, 40, 41, 52})
      if (whole.state().step == at) whole.save(saved[at] = file("stages-" + std::to_string(at)));
    whole.step();
  }
  EXPECT_EQ(log.switches, (Switches{{9, "late command"},
                                    {15, "early command"},
                                    {21, "late steps"},
                                    {41, "early command"},
                                    {51, "late command"},
                                    {53, "late command stays"}}));
  const std::string end = file("stages-end"), again = file("stages-again");
  whole.save(end);
  for (const auto& [step, path] : saved) {
    TrainObserver silent;
    Trainer resumed(checkpoint_config(path), std::make_shared<Blobs>(), nullptr, *device, silent);
    resumed.restore(path);
    Requests rest = requests;
    rest.erase(rest.begin(), rest.upper_bound(step));  // those are in the checkpoint
    while (!resumed.finished()) {
      ask(resumed, rest);
      resumed.step();
    }
    resumed.save(again);
    EXPECT_EQ(difference(end, again), "") << "saved after step " << step;
    std::filesystem::remove(path);
  }
  for (const std::string& path : {end, again}) std::filesystem::remove(path);
}

// Of one that is taken back before its step there is no trace but for what a checkpoint in between needs.
TEST(LateStage, ARequestThatIsTakenBackChangesNothing) {
  Stages plain, taken_back;
  course_of(two_stages(), {}, plain);
  const Switches switches = course_of(two_stages(), {{10, "late"}, {10, "early"}, {12, "early"}}, taken_back);
  EXPECT_EQ(switches, (Switches{{11, "early command stays"}}));
  EXPECT_EQ(taken_back.losses, plain.losses);
}

// By itself the late stage begins again only by a count that was not over yet, or by a plateau that comes after the way back.
TEST(LateStage, DoesNotComeBackByItselfForWhatIsPast) {
  RunConfig config = two_stages();
  config.method.comera.late_after = 20;
  {
    Stages log;
    EXPECT_EQ(course_of(config, {{5, "late"}, {9, "early"}}, log),
              (Switches{{6, "late command"}, {10, "early command"}, {21, "late steps"}}));
  }
  {
    Stages log;
    EXPECT_EQ(course_of(config, {{5, "late"}, {20, "early"}}, log),
              (Switches{{6, "late command"}, {21, "early command"}, {21, "late steps"}}))
        << "it would begin there anyway";
  }
  {
    Stages log;
    EXPECT_EQ(course_of(config, {{30, "early"}}, log), (Switches{{21, "late steps"}, {31, "early command"}}));
  }
  const auto device = open_device("cpu", 1);
  TrainObserver silent;
  Trainer trainer(two_stages(), std::make_shared<Blobs>(), nullptr, *device, silent);
  trainer.start();
  trainer.edit("stage", "late");
  while (trainer.state().step < 30) trainer.step();
  EXPECT_EQ(comera_of(trainer).plateau.steps, 30);
  trainer.edit("stage", "early");
  trainer.step();
  EXPECT_EQ(comera_of(trainer).plateau.steps, 1) << "the losses of the late stage tell nothing of it";
}

TEST(LateStage, APacedRunIsRestoredByteForByte) {
  const std::string saved = file("paced"), again = file("paced-again");
  late_course(50, 90, saved, 40);
  const auto device = open_device("cpu", 1);
  TrainObserver silent;
  Trainer resumed(checkpoint_config(saved), std::make_shared<Blobs>(), nullptr, *device, silent);
  resumed.restore(saved);
  while (!resumed.finished()) resumed.step();
  resumed.save(again);
  EXPECT_EQ(difference(saved + "-end", again), "");
  for (const std::string& path : {saved, saved + "-end", again}) std::filesystem::remove(path);
}

}  // namespace
}  // namespace comera::test
