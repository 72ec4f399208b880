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
#include <map>
#include <new>
#include <nlohmann/json.hpp>

#include "core/config/named_methods.h"
#include "tests/config/choices.h"
#include "tests/train/small_runs.h"

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

namespace comera::test {
namespace {

class Combination : public testing::TestWithParam<std::tuple<const char*, const char*, const char*, const char*>> {
 public:
  RunConfig config() const {
    const auto& [model, weights, stash, optimizer] = GetParam();
    RunConfig config = std::string(model) == "mlp" ? image_config() : text_config();
    config.method.weights = weights;
    config.method.stash = stash;
    config.method.optimizer = optimizer;
    shrink(config.method);
    config.method.adam8bit.min_size = 64;
    const double factor = take_rates_of_adamw(config.method);
    for (double* rate : {&config.train.lr, &config.train.lr_core}) *rate *= factor;
    config.method.galore = {.rank = 4, .gap = 25, .scale = 1};
    return config;
  }
};

void expect_planned_is_used_and_the_loss_falls(RunConfig config) {
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

TEST_P(Combination, PlannedIsUsedAndTheLossFalls) { expect_planned_is_used_and_the_loss_falls(config()); }

// The same changes at the same steps, wherever the run was stopped.
void one_step(Trainer& trainer) {
  if (trainer.config().tensorised()) {
    if (trainer.state().step == 12) trainer.edit("method.comera.rank_weight", "0.05");
    if (trainer.state().step == 20) trainer.edit("stage", "late");
    const std::string cap = "rank.cap." + trainer.engine().params().rank_layers()[0].name + ".1";
    if (trainer.state().step == 24) trainer.edit(cap, "2");
    if (trainer.state().step == 30) trainer.edit(cap, "5");
    if (trainer.state().step == 35) trainer.edit("method.comera.target", "0.95");
  }
  if (trainer.state().step == 15) trainer.edit("train.lr", "2e-3");
  trainer.step();
}

void expect_the_same_from_anywhere(RunConfig config) {
  config.train.steps = 40;
  config.method.galore.gap = 7;
  config.method.comera.prune_every = 5;
  const auto device = open_device("cpu", 2);
  Log log;
  Trainer whole(config, data_of(config), nullptr, *device, log);
  whole.start();
  const std::string end = file("end"), again = file("again"), middle = file("middle");
  std::vector<std::string> stops;
  // Of tensor trains between the changes, a cut and a growth; of others within and between refreshes of projections.
  const std::vector<int64_t> at =
      config.tensorised() ? std::vector<int64_t>{1, 11, 12, 20, 21, 26, 30, 31, 33, 36} : std::vector<int64_t>{1, 11, 21, 33};
  for (const int64_t stop : at) {
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

TEST_P(Combination, RestoredAnywhereItEndsByteForByteTheSame) { expect_the_same_from_anywhere(config()); }

// The running statistics of batch norm are part of a checkpoint.
TEST(Convolutions, RestoredAnywhereTheyEndByteForByteTheSame) {
  for (const char* weights : choices_of("method.weights")) {
    SCOPED_TRACE(weights);
    RunConfig config = convolution_config();
    config.method.weights = weights;
    shrink(config.method);
    expect_the_same_from_anywhere(config);
  }
}

TEST(Convolutions, PlannedIsUsedAndTheLossFalls) {
  for (const char* weights : choices_of("method.weights")) {
    SCOPED_TRACE(weights);
    RunConfig config = convolution_config();
    config.method.weights = weights;
    shrink(config.method);
    expect_planned_is_used_and_the_loss_falls(config);
  }
}

TEST(Patches, RestoredAnywhereTheyEndByteForByteTheSame) {
  for (const char* weights : choices_of("method.weights")) {
    SCOPED_TRACE(weights);
    RunConfig config = patches_config();
    config.method.weights = weights;
    shrink(config.method);
    expect_the_same_from_anywhere(config);
  }
}

TEST(Patches, PlannedIsUsedAndTheLossFalls) {
  for (const char* weights : choices_of("method.weights"))
    for (const char* stash : choices_of("method.stash")) {
      SCOPED_TRACE(std::string(weights) + " " + stash);
      RunConfig config = patches_config();
      config.method.weights = weights;
      config.method.stash = stash;
      shrink(config.method);
      expect_planned_is_used_and_the_loss_falls(config);
    }
}

INSTANTIATE_TEST_SUITE_P(Methods, Combination,
                         testing::ValuesIn(methods_of(std::vector{"mlp", "encoder"}, choices_of("method.weights"),
                                                      std::vector{"exact", "int8"}, choices_of("method.optimizer"))),
                         name_of_choices);

// A thread takes its scratch with the first piece that it computes, and one that is late may compute its first piece in any step. So one
// thread takes nothing from the sixth step on, and two are steady at some time.
TEST(Trainer, ASteadyStepAllocatesNothing) {
  if (!kCounting) GTEST_SKIP() << "allocations are not counted under the sanitizers";
  std::vector<RunConfig> configs = small_runs();
  configs.push_back(task_config("masked"));
  for (const RunConfig& config : configs)
    for (const int threads : {1, 2}) {
      const auto device = open_device("cpu", threads);
      Engine engine(config, *device);
      engine.allocate();
      const Batch batch = first_batch(config);
      StepScalars scalars;
      scalars.learning_rate[0] = 1e-3;
      const auto allocations_of = [&](int steps) {
        const int64_t before = g_allocations;
        for (int i = 0; i < steps; ++i) {
          scalars.step = ++scalars.optimizer_step;
          engine.step(batch, scalars);
        }
        return g_allocations - before;
      };
      allocations_of(5);
      int64_t taken = allocations_of(10);
      for (int again = 0; threads > 1 && taken > 0 && again < 20; ++again) taken = allocations_of(10);
      EXPECT_EQ(taken, 0) << config.model.kind << ", " << threads << " threads";
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

// Where weights change during backward it is too late for them, and the error says so.
TEST(Trainer, NotANumberStopsBeforeTheWeightsChangeUnderEveryMethod) {
  for (const NamedMethod& method : named_methods()) {
    SCOPED_TRACE(method.id);
    const auto device = open_device("cpu", 1);
    Log log;
    RunConfig config = image_config();
    set_method(config.method, method.id);
    shrink(config.method);
    Trainer trainer(config, std::make_shared<Blobs>(), nullptr, *device, log);
    trainer.start();
    trainer.step();
    const auto values_of = [&] {
      std::map<std::string, std::vector<double>> out;
      for (Param& param : trainer.engine().params().params())
        if (param.name != "head.weight") out[param.name] = to_host(*device, param.value);
      return out;
    };
    Param& head = *trainer.engine().params().find("head.weight");
    const bool during = head.way == GradWay::given;
    std::vector<double> values = to_host(*device, head.value);
    values[3] = std::nan("");
    from_host(*device, head.value, values);
    const auto others = values_of();
    try {
      trainer.step();
      ADD_FAILURE() << "a NaN loss went unnoticed";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::diverged);
      EXPECT_NE(error.why().find(during ? "already updated the weights" : "head.weight"), std::string::npos) << error.why();
    }
    EXPECT_EQ(trainer.state().step, 1);
    if (!during) {
      EXPECT_EQ(values_of(), others);
    }
    EXPECT_EQ(log.count("alert"), 1);
  }
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
  const Batch batch_a = first_batch(padded), batch_b = first_batch(packed);
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
}  // namespace comera::test
