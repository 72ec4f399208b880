// Live changes while a run trains: rank, gap and scale of the projections of every optimizer that has them, and LoRA's rank.
#include "core/layers/lora.h"
#include "tests/config/choices.h"
#include "tests/ops/cases/recording_device.h"
#include "tests/train/course.h"
#include "tests/train/tight_device.h"

namespace comera::test {
namespace {

struct Edits {
  std::string name;
  RunConfig config;
  std::string rank;                // the path of its rank
  std::vector<std::string> paths;  // live settings of its projection
};

// The states of their factors: whole, in 8 bits, of rows and columns, none, and a sum that new entries take the mean of.
void add_lora(std::vector<Edits>& runs, RunConfig config) {
  config.method.weights = "lora";
  config.method.lora.rank = 4;
  for (const char* optimizer : {"adamw", "adam8bit", "adafactor", "lomo", "adagrad"}) {
    config.method.optimizer = optimizer;
    shrink(config.method);
    config.method.update = std::string(optimizer) == "lomo" ? "backward" : "after";
    runs.push_back({std::string("lora ") + optimizer, config, "method.lora.rank", {}});
  }
  config.method.optimizer = "adamw";
  config.method.update = "after";
  config.method.lora.tables = true;
  runs.push_back({"lora of tables", config, "method.lora.rank", {}});
}

// Every optimizer with a live rank, around every rule.
std::vector<Edits> projected_runs() {
  std::vector<Edits> runs;
  RunConfig config = scripted(text_config());
  config.train.steps = 24;
  config.method.weights = "dense";
  for (const char* optimizer : choices_of("method.optimizer")) {
    config.method.optimizer = optimizer;
    const std::string group = std::string("method.") + optimizer + ".";
    const FieldEntry* rank = find_setting(group + "rank");
    if (!rank) continue;
    EXPECT_EQ(rank->info.live, Live::replans) << optimizer;
    std::vector<std::string> paths;
    for (const FieldEntry& entry : all_settings())
      if (entry.path.starts_with(group) && entry.info.is_live()) paths.push_back(entry.path);
    const FieldEntry* variants = variants_of(optimizer);
    for (const Choice& choice : variants ? variants->info.choices : std::vector<Choice>{{""}}) {
      RunConfig one = config;
      if (variants) set_field_values(fields_of(one), {{variants->path, std::string(choice.id)}});
      runs.push_back({std::string(optimizer) + " " + choice.id, one, group + "rank", paths});
    }
  }
  add_lora(runs, config);
  shrink(config.method);
  config.method.flora.sums = config.method.galore.sums = config.method.coap.sums = "projected";
  config.train.micro_batches = 2;
  for (const char* optimizer : {"flora", "galore", "coap"}) {
    config.method.optimizer = optimizer;
    const std::string group = std::string("method.") + optimizer + ".";
    runs.push_back({std::string(optimizer) + " with projected sums", config, group + "rank", {group + "gap"}});
  }
  RunConfig images = scripted(convolution_config());
  images.train.steps = 24;
  images.method.weights = "dense";
  images.method.optimizer = "coap";
  for (const char* rule : {"adam", "adam8bit", "adafactor"}) {
    images.method.coap.rule = rule;
    shrink(images.method);
    runs.push_back({std::string("coap of convolutions ") + rule, images, "method.coap.rank", {"method.coap.gap", "method.coap.scale"}});
  }
  EXPECT_GE(runs.size(), 11u);
  return runs;
}

// Ranks up and down, two before one step, then every other live setting.
void edit(Trainer& trainer, const Edits& run) {
  const int64_t step = trainer.state().step;
  if (step == 5) trainer.edit(run.rank, "6");
  if (step == 9) trainer.edit(run.rank, "2");
  if (step == 12) {
    trainer.edit(run.rank, "1");
    trainer.edit(run.rank, "3");
  }
  if (step == 15)
    for (const std::string& path : run.paths)
      if (path.ends_with(".gap") || path.ends_with(".reset_every")) trainer.edit(path, "5");
  if (step == 17)
    for (const std::string& path : run.paths)
      if (path.ends_with(".scale") || path.ends_with(".alpha")) trainer.edit(path, "0.5");
}

void train(
    Trainer& trainer, const Edits& run, const std::function<void()>& each = [] {}) {
  while (!trainer.finished()) {
    edit(trainer, run);
    each();
    trainer.step();
  }
}

TEST(OptimizerEdits, TakeExactlyThePlanOfTheNewSettings) {
  for (const Edits& run : projected_runs()) {
    SCOPED_TRACE(run.name);
    const auto device = open_cpu_device(2);
    Log log;
    Trainer trainer(run.config, data_of(run.config), nullptr, *device, log);
    trainer.start();
    std::set<int64_t> totals;
    train(trainer, run, [&] {
      EXPECT_EQ(trainer.engine().memory().now().bytes, trainer.engine().planned().bytes) << trainer.state().step;
      totals.insert(trainer.engine().memory().now().total());
    });
    EXPECT_GE(totals.size(), 3u) << "ranks 4, 6 and 2 take different memory";
    RunConfig from_start = trainer.config();
    Trainer other(from_start, data_of(from_start), nullptr, *device, log);
    EXPECT_EQ(other.engine().planned().bytes, trainer.engine().memory().now().bytes) << "as if it had begun so";
    for (const Param& param : trainer.engine().params().params())
      for (const double value : to_host(*device, param.value)) ASSERT_TRUE(std::isfinite(value)) << param.name;
  }
}

// A checkpoint between the edit and the step, where the states are still those of the old rank, and one after it.
TEST(OptimizerEdits, GoOnBitForBitFromACheckpointOnEitherSide) {
  for (const Edits& run : projected_runs()) {
    SCOPED_TRACE(run.name);
    const auto device = open_cpu_device(2);
    TrainObserver silent;
    const std::string end = file("end"), again = file("again");
    Trainer whole(run.config, data_of(run.config), nullptr, *device, silent);
    whole.start();
    std::map<int64_t, std::string> saved;
    train(whole, run, [&] {
      const int64_t step = whole.state().step;
      if (step == 5 || step == 10 || step == 12 || step == 16) whole.save(saved[step] = file(("at" + std::to_string(step)).c_str()));
    });
    whole.save(end);
    for (const auto& [step, path] : saved) {
      Trainer resumed(checkpoint_config(path), data_of(run.config), nullptr, *device, silent);
      resumed.restore(path);
      resumed.step();  // its edits are in the checkpoint
      train(resumed, run);
      resumed.save(again);
      EXPECT_EQ(difference(end, again), "") << "from step " << step;
      std::filesystem::remove(path);
    }
    for (const std::string& path : {end, again}) std::filesystem::remove(path);
  }
}

TEST(OptimizerEdits, AnEditAndItsReverseBeforeTheStepChangeNothing) {
  for (const Edits& run : projected_runs()) {
    SCOPED_TRACE(run.name);
    const auto device = open_cpu_device(2);
    TrainObserver silent;
    std::vector<std::string> ends;
    for (const bool edited : {false, true}) {
      Trainer trainer(run.config, data_of(run.config), nullptr, *device, silent);
      trainer.start();
      while (!trainer.finished()) {
        if (edited && trainer.state().step == 7) {
          trainer.edit(run.rank, "1");
          trainer.edit(run.rank, "4");
        }
        trainer.step();
      }
      trainer.save(ends.emplace_back(file(edited ? "edited" : "plain")));
    }
    EXPECT_EQ(difference(ends[0], ends[1]), "");
    for (const std::string& path : ends) std::filesystem::remove(path);
  }
}

// What a larger rank adds computes nothing at first; a smaller one leaves the largest directions as they were.
TEST(LoraRank, FollowsTheFunction) {
  const auto device = open_cpu_device(1);
  TrainObserver silent;
  RunConfig config = scripted(text_config());
  config.method.weights = "lora";
  config.method.lora.rank = 5;
  config.method.lora.alpha = 7;
  config.method.lora.tables = true;
  config.train.precision = "f64";
  Trainer trainer(config, data_of(config), data_of(config), *device, silent);
  trainer.start();
  for (int i = 0; i < 6; ++i) trainer.step();
  const double before = trainer.evaluate().loss;
  const auto factors = [&] { return lora_factors(trainer.engine().params())[1]; };
  const auto values = [&](const Param& param) { return to_host(*device, param.value); };
  const std::vector<double> a = values(*factors().a), b = values(*factors().b);
  const size_t in = a.size() / 5, out = b.size() / 5;

  trainer.edit("method.lora.rank", "8");
  EXPECT_DOUBLE_EQ(trainer.config().method.lora.alpha, 7.0 * 8 / 5);
  trainer.engine().change_method(trainer.config().method, 7);
  EXPECT_NEAR(trainer.evaluate().loss, before, 1e-14);
  const std::vector<double> larger_a = values(*factors().a), larger_b = values(*factors().b);
  ASSERT_EQ(larger_a.size(), 8 * in);
  EXPECT_TRUE(std::equal(a.begin(), a.end(), larger_a.begin()));
  double drawn = 0;
  for (size_t i = a.size(); i < larger_a.size(); ++i) drawn += larger_a[i] * larger_a[i];
  EXPECT_GT(drawn, 0);
  for (size_t row = 0; row < out; ++row)
    for (size_t k = 0; k < 8; ++k) EXPECT_EQ(larger_b[row * 8 + k], k < 5 ? b[row * 5 + k] : 0) << row << ", " << k;

  trainer.edit("method.lora.rank", "5");
  trainer.engine().change_method(trainer.config().method, 7);
  EXPECT_EQ(values(*factors().a), a) << "the new directions are the smallest";
  EXPECT_EQ(values(*factors().b), b);
  EXPECT_NEAR(trainer.evaluate().loss, before, 1e-14);

  std::vector<double> length(5);
  for (size_t k = 0; k < 5; ++k) {
    double of_a = 0, of_b = 0;
    for (size_t i = 0; i < in; ++i) of_a += a[k * in + i] * a[k * in + i];
    for (size_t row = 0; row < out; ++row) of_b += b[row * 5 + k] * b[row * 5 + k];
    length[k] = of_a * of_b;
  }
  std::vector<size_t> order = {0, 1, 2, 3, 4};
  std::sort(order.begin(), order.end(), [&](size_t i, size_t k) { return length[i] > length[k]; });
  std::sort(order.begin(), order.begin() + 2);
  trainer.edit("method.lora.rank", "2");
  trainer.engine().change_method(trainer.config().method, 7);
  const std::vector<double> smaller = values(*factors().a);
  ASSERT_EQ(smaller.size(), 2 * in);
  for (size_t k = 0; k < 2; ++k)
    for (size_t i = 0; i < in; ++i) EXPECT_EQ(smaller[k * in + i], a[order[k] * in + i]);
}

// A config that could not be read again would lose the run.
TEST(LoraRank, AnAlphaOutOfItsRangeIsRefused) {
  RunConfig config = text_config();
  config.method.weights = "lora";
  config.method.lora = {.rank = 1, .alpha = 1e5};
  RankOverrides none;
  EXPECT_NO_THROW(apply_edit(config, none, "method.lora.rank", "10"));
  EXPECT_EQ(config.method.lora.alpha, 1e6);
  try {
    apply_edit(config, none, "method.lora.rank", "11");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(error.why().find("method.lora.alpha"), std::string::npos) << error.why();
  }
  EXPECT_EQ(config.method.lora.rank, 10);
  EXPECT_EQ(config.method.lora.alpha, 1e6);
}

TEST(OptimizerEdits, WithoutRoomNothingChanges) {
  const auto room = std::make_shared<Room>();
  TightDevice device(room);
  Log log;
  RunConfig config = scripted(text_config());
  config.method.weights = "dense";
  config.method.optimizer = "galore";
  Trainer trainer(config, data_of(config), nullptr, device, log);
  trainer.start();
  trainer.step();
  room->fill();
  const auto before = trainer.engine().memory().now().bytes;
  try {
    trainer.check_room("method.galore.rank", "16");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory);
    EXPECT_NE(std::string(error.what()).find("method.galore.rank stays as it is"), std::string::npos) << error.what();
  }
  EXPECT_NO_THROW(trainer.check_room("method.galore.rank", "2"));
  EXPECT_NO_THROW(trainer.check_room("method.adam.weight_decay", "0.1"));
  // Without the check the step ends before anything is given back.
  trainer.edit("method.galore.rank", "16");
  EXPECT_THROW(trainer.step(), Error);
  EXPECT_EQ(trainer.engine().memory().now().bytes, before);
}

TEST(OptimizerEdits, ACapturedStepIsCapturedAgain) {
  for (const Edits& run : projected_runs()) {
    SCOPED_TRACE(run.name);
    const auto plain = open_cpu_device(2);
    RecordingDevice recording(2);
    TrainObserver silent;
    const std::string ends[] = {file("eager"), file("captured")};
    int64_t captures = 0;
    for (Device* device : {static_cast<Device*>(plain.get()), static_cast<Device*>(&recording)}) {
      Trainer trainer(run.config, data_of(run.config), nullptr, *device, silent);
      trainer.start();
      train(trainer, run);
      trainer.save(ends[device == &recording]);
      captures = trainer.engine().captures();
    }
    EXPECT_GT(captures, 2);
    EXPECT_EQ(difference(ends[0], ends[1]), "");
    for (const std::string& path : ends) std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace comera::test
