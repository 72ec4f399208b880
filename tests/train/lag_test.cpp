// Results that come late: told completely and in order, with the values they have at once, and no step waits for its own
// (trainer.h says what waits). What is decided depends on the step alone, whenever somebody looked.
#include <cmath>
#include <set>

#include "core/config/named_methods.h"
#include "tests/ops/cases/recording_device.h"
#include "tests/train/course.h"
#include "tests/train/lagging_device.h"

namespace comera::test {
namespace {

// The course up to here does not decide anything by results, so lag changes no value of it.
RunConfig undecided(RunConfig config) {
  config = scripted(config);
  config.train.steps = 43;
  config.method.comera.hold_at_target = false;
  return config;
}

void run_late(const RunConfig& config, Device& device, Course& course, const std::string& saved, const std::set<int64_t>& drained = {}) {
  Trainer trainer(config, data_of(config), data_of(config), device, course);
  trainer.start();
  while (!trainer.finished()) {
    one_step(trainer);
    if (drained.contains(trainer.state().step)) trainer.drain();
  }
  trainer.save(saved);
}

TEST(Lag, TheSameIsToldInTheSameOrder) {
  const std::string at_once = file("at-once"), late = file("late");
  RunConfig projected = text_config(), merged = image_config();
  projected.method = find_method("galore").config;
  merged.method = find_method("lte").config;
  merged.method.lte.heads = 2;
  merged.method.lte.merge_every = 4;
  for (const RunConfig& small : {image_config(), text_config(), projected, merged}) {
    const RunConfig config = undecided(small);
    Course expected;
    RecordingDevice prompt;
    run_late(config, prompt, expected, at_once);
    EXPECT_EQ(expected.events["truncation"] > 0, config.tensorised());
    EXPECT_EQ(expected.events["regrowth"] > 0, config.tensorised());
    for (const int lag : {1, 2, 3}) {
      SCOPED_TRACE(lag);
      LaggingDevice device(lag, std::make_unique<RecordingDevice>());
      Course found;
      run_late(config, device, found, late);
      ASSERT_EQ(found.lines.size(), expected.lines.size());
      for (size_t i = 0; i < found.lines.size(); ++i) ASSERT_EQ(found.lines[i], expected.lines[i]);
      // Of tensor trains the last steps that no decision knows yet are kept, and nothing else differs.
      EXPECT_EQ(difference(at_once, late), config.tensorised() ? "metadata" : "");
      EXPECT_EQ(*std::max_element(device.newer.begin(), device.newer.end()), lag);
    }
  }
  for (const std::string& path : {at_once, late}) std::filesystem::remove(path);
}

// Its matrices are refreshed in nearly every step then.
TEST(Lag, NoRefreshWaits) {
  RunConfig config = image_config();
  config.method = find_method("galore").config;
  config.method.galore.gap = 3;
  for (const char* refresh : {"staggered", "together"}) {
    config.method.galore.refresh = refresh;
    LaggingDevice device;
    Log log;
    Trainer trainer(config, data_of(config), nullptr, device, log);
    trainer.start();
    const int64_t before = device.waits;
    for (int i = 1; i <= 10; ++i) trainer.step();
    EXPECT_EQ(device.waits, before) << refresh;
  }
}

TEST(Lag, NoStepWaitsForItsOwnResults) {
  RunConfig config = image_config();
  LaggingDevice device;
  Log log;
  Trainer trainer(config, data_of(config), nullptr, device, log);
  trainer.start();
  const auto waits_of_a_step = [&] {
    const int64_t before = device.waits;
    trainer.step();
    return device.waits - before;
  };
  for (int i = 1; i <= 29; ++i) {
    const int64_t waits = waits_of_a_step();
    if (i % 10 == 0)
      EXPECT_GT(waits, 0) << "step " << i << " looks for dead slices";
    else
      EXPECT_EQ(waits, 0) << "step " << i;
    const int64_t told = i % 10 == 0 ? i : i < 3 ? 0 : std::max<int64_t>(i - 2, i / 10 * 10);
    EXPECT_EQ(trainer.steps_told(), told);
    EXPECT_EQ(static_cast<int64_t>(log.losses.size()), told);
    EXPECT_EQ(trainer.last_step().step, told);
  }
  EXPECT_EQ(device.newer.front(), 2);
  const std::string bond = trainer.engine().params().rank_layers()[0].name + ".1";
  trainer.edit("rank.cap." + bond, "3");
  EXPECT_EQ(trainer.steps_told(), 29) << "an edit waits";
  EXPECT_GT(waits_of_a_step(), 0);
  EXPECT_GT(waits_of_a_step(), 0) << "a cap must hold before the next step";
  EXPECT_EQ(device.newer.back(), 0);

  OpProfile profile;
  LaggingDevice other;
  Trainer profiled(config, data_of(config), nullptr, other, log);
  profiled.start();
  profiled.step();
  EXPECT_EQ(profiled.steps_told(), 0);
  profiled.engine().profile(&profile);
  profiled.step();
  EXPECT_EQ(profiled.steps_told(), 2);
  EXPECT_GT(profiled.last_step().times.forward, 0);
  EXPECT_GT(profiled.last_step().times.update, 0);
}

// Time that passes with each op of the device, and not otherwise.
class CountingClock final : public WorkClock {
 public:
  void mark() override { marks_.push_back(static_cast<double>(marks_.size() * marks_.size())); }
  double ms(size_t mark, size_t later) override { return marks_.at(later) - marks_.at(mark); }
  void clear() override { marks_.clear(); }

 private:
  std::vector<double> marks_;
};

TEST(Lag, AProfileHasItsTimesFromTheDevicesClock) {
  CountingClock clock;
  OpProfile profile;
  clock.mark();  // of something before
  profile.start(clock, 1000, 70);
  profile.enter("gemm", 1600, 70);
  profile.enter("copy", 1600, 100);
  profile.enter("gemm", 1700, 100);
  profile.leave();
  EXPECT_EQ(profile.ops.size(), 2u);
  EXPECT_EQ(profile.ops["gemm"].calls, 2);
  EXPECT_EQ(profile.ops["gemm"].ms, 1 + 5);  // marks at 0, 1, 4 and 9
  EXPECT_EQ(profile.ops["copy"].ms, 3);
  EXPECT_EQ(profile.ops["gemm"].gemm_flops, 700);
  EXPECT_EQ(profile.ops["copy"].bytes, 30);
  profile.start(clock, 0, 0);
  profile.enter("copy", 0, 5);
  profile.leave();
  EXPECT_EQ(profile.ops["copy"].ms, 4) << "what was told before stays";
  EXPECT_EQ(profile.ops["copy"].calls, 2);
}

// A late stage that rests at its target, has a pace and begins by plateau: all of it decided by results.
RunConfig decided() {
  RunConfig config = image_config();
  config.train.steps = 240;
  config.train.eval_every = 50;
  config.train.lr_rank = 2e-2;
  config.method.comera.late_on_plateau = 1;
  config.method.comera.target = 0.6;
  config.method.comera.late_halving = 60;
  config.method.comera.prune_every = 40;
  return config;
}

void run_decided(Device& device, Course& course, const std::string& saved, const std::map<int64_t, std::string>& checkpoints = {},
                 bool look = false, const std::string& from = "") {
  Trainer trainer(from.empty() ? decided() : checkpoint_config(from), data_of(decided()), data_of(decided()), device, course);
  if (from.empty())
    trainer.start();
  else
    trainer.restore(from);
  while (!trainer.finished()) {
    if (trainer.state().step == 130) trainer.edit("method.comera.target", "0.4");
    trainer.step();
    const int64_t step = trainer.state().step;
    if (look && step % 3 == 1) trainer.drain();
    if (const auto path = checkpoints.find(step); path != checkpoints.end()) trainer.save(path->second);
  }
  trainer.save(saved);
}

std::vector<std::string> lines_after(std::vector<std::string> lines, int64_t step) {
  std::erase_if(lines, [&](const std::string& line) { return std::stoll(line.substr(line.find(' '))) <= step; });
  return lines;
}

TEST(Lag, DecisionsDependOnTheStepAlone) {
  const std::string at_once = file("decided-at-once"), plain = file("decided"), looked = file("decided-looked"),
                    again = file("decided-again");
  Course cpu, expected, seen;
  run_decided(*open_cpu_device(1), cpu, at_once);
  LaggingDevice first, second;
  run_decided(first, expected, plain);
  EXPECT_EQ(expected.events["stage"], 1);
  EXPECT_NE(cpu.lines, expected.lines) << "nothing was decided by results: the test shows too little";
  const std::map<int64_t, std::string> checkpoints{{101, file("decided-101")}, {125, file("decided-125")}, {131, file("decided-131")}};
  run_decided(second, seen, looked, checkpoints, true);
  EXPECT_EQ(seen.lines, expected.lines);
  EXPECT_EQ(difference(plain, looked), "");
  for (const auto& [step, path] : checkpoints) {
    SCOPED_TRACE(step);
    const Json state = checkpoint_metadata(SafetensorsFile(path)).at("state");
    EXPECT_EQ(state.at("unknown").size(), step == 131 ? 1u : 2u) << "an edit makes all known";
    LaggingDevice third;
    Course resumed;
    run_decided(third, resumed, again, {}, false, path);
    EXPECT_EQ(difference(plain, again), "");
    EXPECT_EQ(lines_after(resumed.lines, step), lines_after(expected.lines, step));
  }
  // Without lag all of it is known when it goes on.
  Course silent;
  const auto device = open_cpu_device(1);
  Trainer trainer(decided(), data_of(decided()), nullptr, *device, silent);
  trainer.restore(checkpoints.at(101));
  EXPECT_EQ(comera_of(trainer).plateau.steps, 101);
  EXPECT_TRUE(comera_of(trainer).unknown.empty());
  EXPECT_EQ(comera_of(trainer).live_ranks, trainer.live_ranks());
  for (const auto& [step, path] : checkpoints) std::filesystem::remove(path);
  for (const std::string& path : {at_once, plain, looked, again}) std::filesystem::remove(path);
}

TEST(Lag, ALossThatIsNotFiniteIsToldWithItsStepAndCheckpointsStay) {
  const std::string before = file("before-nan"), after = file("after-nan");
  const std::pair<const char*, std::function<void(Trainer&)>> ways[] = {
      {"steps", [](Trainer& trainer) { trainer.step(), trainer.step(), trainer.step(); }},
      {"drain", [](Trainer& trainer) { trainer.step(), trainer.drain(); }},
      {"edit", [](Trainer& trainer) { trainer.step(), trainer.edit("train.lr_core", "1e-3"); }},
      {"score", [](Trainer& trainer) { trainer.step(), trainer.evaluate(); }},
      {"save", [&](Trainer& trainer) { trainer.step(), trainer.step(), trainer.save(after); }},
  };
  for (const auto& [name, way] : ways) {
    SCOPED_TRACE(name);
    LaggingDevice device;
    Course course;
    Trainer trainer(image_config(), data_of(image_config()), data_of(image_config()), device, course);
    trainer.start();
    for (int i = 0; i < 6; ++i) trainer.step();
    trainer.save(before);
    const double rate = trainer.config().train.lr_core;
    Param& head = *trainer.engine().params().find("head.weight");
    std::vector<double> values = to_host(device, head.value);
    values[3] = std::nan("");
    from_host(device, head.value, values);
    try {
      way(trainer);
      FAIL() << "nothing was noticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::diverged);
      EXPECT_EQ(std::string(error.what()), "the loss is NaN at step 7");
    }
    EXPECT_EQ(trainer.state().step, 6);
    EXPECT_EQ(trainer.steps_told(), 6);
    EXPECT_EQ(trainer.config().train.lr_core, rate) << "the edit was not made";
    EXPECT_EQ(course.steps.size(), 6u);
    EXPECT_EQ(course.events["alert"], 1);
    EXPECT_FALSE(std::filesystem::exists(after));
    Trainer resumed(image_config(), data_of(image_config()), nullptr, device, course);
    resumed.restore(before);
    resumed.step();
    resumed.drain();
    EXPECT_TRUE(std::isfinite(resumed.last_step().results.loss));
    std::filesystem::remove(before);
  }
}

}  // namespace
}  // namespace comera::test
