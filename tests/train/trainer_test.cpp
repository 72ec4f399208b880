// The training loop on a small made-up set: planned = used memory with every method, bit-equal restore anywhere (also
// across an edit, a stage switch and a cut), and no allocation in a steady step.
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>

#include "core/base/rng.h"
#include "core/train/checkpoint.h"
#include "core/train/trainer.h"

namespace {
std::atomic<int64_t> g_allocations{0};
}
// Counts every heap allocation of this test program; the sanitizers bring allocators of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kCounting = false;
#else
constexpr bool kCounting = true;
// noinline: GCC else sees malloc and free through them and warns of a mismatch.
__attribute__((noinline)) void* operator new(std::size_t bytes) {
  ++g_allocations;
  if (void* data = std::malloc(bytes ? bytes : 1)) return data;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* data) noexcept { std::free(data); }
__attribute__((noinline)) void operator delete(void* data, std::size_t) noexcept { std::free(data); }
#endif

namespace comera {
namespace {

// Images whose label is where the light is; learnable in a few steps.
class Blobs final : public Dataset {
 public:
  Blobs() {
    info_.rows = 96;
    info_.classes = 4;
    info_.height = info_.width = 8;
    info_.fingerprint = "blobs";
  }
  const DatasetInfo& info() const override { return info_; }
  void text_row(int64_t, int64_t, TextRow&) const override { CHECK(false); }
  void image_row(int64_t row, ImageRow& out) const override {
    const Philox random{5, 0, static_cast<uint32_t>(row)};
    out.label = static_cast<int32_t>(row % 4);
    out.pixels.assign(64, 0);
    for (size_t i = 0; i < 64; ++i) {
      const bool lit = static_cast<int32_t>(i / 32 * 2 + i % 8 / 4) == out.label;
      out.pixels[i] = 0.3f * uniform_half(random.word(i)) + (lit ? 0.5f : 0.0f);
    }
  }

 private:
  DatasetInfo info_;
};

// Sentences of made-up tokens; the label is the second token's parity.
class Sentences final : public Dataset {
 public:
  Sentences() {
    info_.rows = 64;
    info_.classes = 2;
    info_.text = true;
    info_.vocab_size = 60;
    info_.fingerprint = "sentences";
  }
  const DatasetInfo& info() const override { return info_; }
  void text_row(int64_t row, int64_t max_length, TextRow& out) const override {
    const Philox random{6, 0, static_cast<uint32_t>(row)};
    const int64_t length = 3 + random.word(0) % static_cast<uint32_t>(max_length - 2);
    out.ids.assign(1, 1);
    out.segments.assign(static_cast<size_t>(length), 0);
    for (int64_t i = 1; i < length; ++i) out.ids.push_back(static_cast<int32_t>(2 + random.word(static_cast<uint64_t>(i)) % 58));
    out.label = out.ids[1] % 2;
  }
  void image_row(int64_t, ImageRow&) const override { CHECK(false); }

 private:
  DatasetInfo info_;
};

RunConfig image_config() {
  RunConfig config;
  config.model.kind = "mlp";
  config.model.classes = 4;
  config.model.mlp = {.inputs = 64, .hidden = {24, 16}, .dropout = 0.2};
  config.model.tt.ffn_in.rank = 6;
  config.model.tt.ffn_in.cores = 2;
  config.train.steps = 120;
  config.train.batch = 16;
  config.train.lr_core = config.train.lr_rest = 5e-3;
  config.train.lr_rank = 3e-2;
  config.train.eval_every = 0;
  config.method.comera.cut_every = 10;
  return config;
}

RunConfig text_config() {
  RunConfig config;
  config.model.kind = "encoder";
  config.model.classes = 2;
  config.model.length = 10;
  config.model.encoder = {.layers = 2,
                          .d_model = 24,
                          .heads = 3,
                          .d_ff = 48,
                          .vocab = 60,
                          .positions = 10,
                          .segments = 2,
                          .dropout = 0.1,
                          .attention_dropout = 0.1,
                          .norm_eps = 1e-9,
                          .keep_probabilities = true};
  config.model.tt.attention.rank = config.model.tt.ffn_in.rank = config.model.tt.ffn_out.rank = config.model.tt.classifier.rank = 5;
  config.model.tt.embedding.rank = 6;
  config.train.steps = 40;
  config.train.batch = 8;
  config.train.lr_core = config.train.lr_rest = 3e-3;
  config.train.lr_rank = 3e-2;
  config.train.eval_every = 0;
  config.method.comera.cut_every = 10;
  return config;
}

class Log : public TrainObserver {
 public:
  std::vector<double> losses, accuracies;
  std::vector<std::string> events;
  void on_step(const StepRecord& record) override {
    losses.push_back(record.results.loss);
    accuracies.push_back(record.accuracy);
  }
  void on_event(int64_t, const char* kind, const Json&) override { events.push_back(kind); }
  int64_t count(const std::string& kind) const { return std::count(events.begin(), events.end(), kind); }
};

std::shared_ptr<const Dataset> data_of(const RunConfig& config) {
  if (config.model.kind == "mlp") return std::make_shared<Blobs>();
  return std::make_shared<Sentences>();
}

class Combination : public testing::TestWithParam<std::tuple<const char*, const char*, const char*, const char*>> {
 public:
  RunConfig config() const {
    const auto& [model, weights, stash, optimizer] = GetParam();
    RunConfig config = std::string(model) == "mlp" ? image_config() : text_config();
    config.method.weights = weights;
    config.method.stash = stash;
    config.method.optimizer = optimizer;
    config.method.adam8bit.min_size = 64;
    config.method.galore = {.rank = 4, .gap = 25, .scale = 1, .eight_bit = false};
    return config;
  }
};

TEST_P(Combination, PlannedIsUsedAndTheLossFalls) {
  RunConfig config = this->config();
  if (config.model.kind == "encoder") {  // a slower model: more steps, and ranks that live long enough to learn
    config.train.steps = 150;
    config.train.lr_rank = 4e-3;
  }
  const auto device = open_device("cpu", 2);
  Log log;
  Trainer trainer(config, data_of(config), nullptr, *device, log);
  const int64_t planned = trainer.engine().planned().total();
  trainer.start();
  EXPECT_EQ(trainer.engine().memory().now().total(), planned);
  while (!trainer.finished()) trainer.step();
  EXPECT_EQ(trainer.engine().memory().now().total(), trainer.engine().planned().total()) << "also after cuts";
  EXPECT_EQ(trainer.engine().memory().peak().total(), planned) << "nothing beyond the plan, ever";
  double first = 0, last = 0;
  for (size_t i = 0; i < 5; ++i) {
    first += log.losses[i] / 5;
    last += log.losses[log.losses.size() - 1 - i] / 5;
  }
  EXPECT_LT(last, first - 0.02) << "from " << first << " to " << last;
}

std::string file(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("comera-" + std::to_string(::getpid()) + "-" + name)).string();
}

std::string difference(const std::string& a, const std::string& b) {
  const SafetensorsFile first(a), second(b);
  if (first.entries().size() != second.entries().size()) return "another number of tensors";
  for (const auto& [name, entry] : first.entries()) {
    const SafetensorsEntry& other = second.entry(name);
    if (entry.shape != other.shape || std::memcmp(first.data(name), second.data(name), static_cast<size_t>(entry.end - entry.begin)) != 0)
      return name;
  }
  return first.metadata() == second.metadata() ? "" : "metadata";
}

// The same changes at the same steps, wherever the run was stopped.
void one_step(Trainer& trainer) {
  if (trainer.config().tensorised()) {
    if (trainer.state().step == 12) trainer.edit("method.comera.rank_weight", "0.05");
    if (trainer.state().step == 20) trainer.request_late();
    const std::string cap = "rank.cap." + trainer.engine().params().rank_layers()[0].name + ".1";
    if (trainer.state().step == 24) trainer.edit(cap, "2");
    if (trainer.state().step == 30) trainer.edit(cap, "5");
    if (trainer.state().step == 35) trainer.edit("method.comera.target", "0.95");
  }
  if (trainer.state().step == 15) trainer.edit("train.lr_rest", "2e-3");
  trainer.step();
}

TEST_P(Combination, RestoredAnywhereItEndsByteForByteTheSame) {
  RunConfig config = this->config();
  config.train.steps = 40;
  config.method.galore.gap = 7;
  config.method.comera.cut_every = 5;
  const auto device = open_device("cpu", 2);
  Log log;
  Trainer whole(config, data_of(config), nullptr, *device, log);
  whole.start();
  const std::string end = file("end"), again = file("again"), middle = file("middle");
  std::vector<std::string> stops;
  for (int64_t stop : {1, 11, 12, 20, 21, 26, 30, 31, 33, 36}) {
    while (whole.state().step < stop) one_step(whole);
    stops.push_back(middle + std::to_string(stop));
    whole.save(stops.back());
  }
  while (!whole.finished()) one_step(whole);
  whole.save(end);
  if (config.tensorised()) {
    EXPECT_GE(log.count("truncation"), 1) << "the test wants a cut on its way";
    EXPECT_EQ(log.count("stage"), 1);
    EXPECT_GE(log.count("regrowth"), 1) << "and a growth";
    EXPECT_EQ(whole.engine().memory().now().total(), whole.engine().planned().total());
  }
  for (const std::string& stop : stops) {
    TrainObserver silent;
    const RunConfig stored = checkpoint_config(stop);
    Trainer resumed(stored, data_of(config), nullptr, *device, silent);
    resumed.restore(stop);
    while (!resumed.finished()) one_step(resumed);
    resumed.save(again);
    EXPECT_EQ(difference(end, again), "") << "resumed from " << stop;
    std::filesystem::remove(stop);
  }
  std::filesystem::remove(end);
  std::filesystem::remove(again);
}

INSTANTIATE_TEST_SUITE_P(Methods, Combination,
                         testing::Combine(testing::Values("mlp", "encoder"), testing::Values("tt", "dense"),
                                          testing::Values("exact", "int8"), testing::Values("adamw", "adam8bit", "galore")),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param) + "_" + std::get<2>(info.param) +
                                  "_" + std::get<3>(info.param);
                         });

TEST(Trainer, ASteadyStepAllocatesNothing) {
  if (!kCounting) GTEST_SKIP() << "allocations are not counted under the sanitizers";
  for (RunConfig config : {image_config(), text_config()}) {
    const auto device = open_device("cpu", 2);
    Engine engine(config, *device);
    engine.allocate();
    Batch batch;
    BatchOptions options;
    options.batch_size = config.train.batch;
    options.length = config.model.length;
    options.token_budget = config.token_capacity();
    make_batch(*data_of(config), options, 0, batch);
    StepScalars scalars;
    scalars.learning_rate[0] = 1e-3;
    for (int i = 0; i < 5; ++i) {
      scalars.step = ++scalars.optimizer_step;
      engine.step(batch, scalars);
    }
    const int64_t before = g_allocations;
    for (int i = 0; i < 10; ++i) {
      scalars.step = ++scalars.optimizer_step;
      engine.step(batch, scalars);
    }
    EXPECT_EQ(g_allocations - before, 0) << config.model.kind;
  }
}

TEST(Trainer, RanksRestWhileTheSizeIsAtItsTarget) {
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
  explicit AtTarget(const RunConfig& config = small_config())
      : device(open_device("cpu", 1)), trainer(config, std::make_shared<Blobs>(), nullptr, *device, log) {
    trainer.start();
    first = trainer.live_ranks();
    while (trainer.state().step < 120) trainer.step();
    EXPECT_LE(entries(), target()) << "the test wants the target reached";
  }
  double entries() { return trainer.size().entries; }
  double target() { return trainer.config().method.comera.target * trainer.state().late_entries; }
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
  const double size = run.entries() / run.trainer.state().late_entries;
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
  trainer.request_late();
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
  config.method.comera.prune = false;
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
    Batch batch;
    BatchOptions options;
    options.batch_size = config.train.batch;
    options.length = config.model.length;
    options.token_budget = config.token_capacity();
    make_batch(*data_of(config), options, 0, batch);
    StepScalars scalars;
    scalars.step = 1;
    std::vector<double> before, after;
    engine.score(batch, scalars, &before);
    engine.grow(plan_growth(engine.params(), *device, scalars.threshold, first), scalars.threshold, 13);
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

TEST(Trainer, DifferentThreadCountsGiveTheSameRun) {
  std::vector<std::vector<double>> losses;
  for (int threads : {1, 2, 3}) {
    const auto device = open_device("cpu", threads);
    Log log;
    Trainer trainer(image_config(), std::make_shared<Blobs>(), nullptr, *device, log);
    trainer.start();
    for (int i = 0; i < 30; ++i) trainer.step();
    losses.push_back(log.losses);
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]);
}

TEST(Trainer, NotANumberStopsBeforeTheWeightsChange) {
  const auto device = open_device("cpu", 1);
  Log log;
  Trainer trainer(image_config(), std::make_shared<Blobs>(), nullptr, *device, log);
  trainer.start();
  trainer.step();
  Param& head = *trainer.engine().params().find("head.weight");
  std::vector<double> values = to_host(*device, head.value);
  values[3] = std::nan("");
  from_host(*device, head.value, values);
  const std::vector<double> other = to_host(*device, trainer.engine().params().find("head.bias")->value);
  try {
    trainer.step();
    FAIL() << "a NaN loss went unnoticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::diverged);
    EXPECT_NE(error.why().find("head.weight"), std::string::npos) << error.why();
  }
  EXPECT_EQ(trainer.state().step, 1);
  EXPECT_EQ(to_host(*device, trainer.engine().params().find("head.bias")->value), other);
  EXPECT_EQ(log.count("alert"), 1);
}

TEST(Trainer, PackedAndPaddedBatchesGiveTheSameLossAndGradients) {
  RunConfig padded = text_config(), packed = text_config();
  for (RunConfig* config : {&padded, &packed}) {
    config->train.precision = "f64";
    config->model.encoder.dropout = config->model.encoder.attention_dropout = 0;
  }
  packed.data.pack = true;
  packed.data.token_budget = 80;
  const auto device = open_device("cpu", 2);
  Engine a(padded, *device), b(packed, *device);
  a.allocate();
  b.allocate();
  const Sentences data;
  BatchOptions options;
  options.batch_size = 8;
  options.length = 10;
  options.shuffle = false;
  Batch batch_a, batch_b;
  make_batch(data, options, 0, batch_a);
  options.pack = true;
  options.token_budget = 80;
  make_batch(data, options, 0, batch_b);
  ASSERT_EQ(batch_a.sequences, batch_b.sequences);
  StepScalars scalars;
  scalars.step = scalars.optimizer_step = 1;
  const StepResults ra = a.step(batch_a, scalars), rb = b.step(batch_b, scalars);
  EXPECT_NEAR(ra.ce, rb.ce, 1e-13);
  for (const Param& param : a.params().params()) {
    const std::vector<double> ga = to_host(*device, param.grad), gb = to_host(*device, b.params().find(param.name)->grad);
    double scale = 1e-12, error = 0;
    for (size_t i = 0; i < ga.size(); ++i) {
      scale = std::max(scale, std::fabs(ga[i]));
      error = std::max(error, std::fabs(ga[i] - gb[i]));
    }
    EXPECT_LE(error / scale, 1e-10) << param.name;
  }
}

TEST(Trainer, PublishedSizesOfTheSixEncoderModel) {
  const RunConfig config = load_config("encoder6-mnli", {});
  const auto device = open_device("cpu", 1);
  Engine engine(config, *device);
  int64_t cores = 0, ranks = 0, dense = 0;
  for (const RankLayer& layer : engine.params().rank_layers()) {
    for (const Param* core : layer.cores) cores += core->count();
    for (const Param* rank : layer.ranks) ranks += rank->count();
    dense += layer.dense_entries();
  }
  EXPECT_EQ(engine.params().count(), 1'490'157);
  EXPECT_EQ(cores, 1'026'528);
  EXPECT_EQ(ranks, 4'362);
  EXPECT_EQ(dense, 66'498'048);
  EXPECT_EQ(engine.params().dense_equivalent(), 66'957'315);
}

}  // namespace
}  // namespace comera
