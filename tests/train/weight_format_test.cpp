// Runs whose weights are stored in bf16 or int8, under every form and optimizer: they take the planned memory, go on and are captured byte
// for byte, and learn as runs in full precision do.
#include "tests/ops/cases/recording_device.h"
#include "tests/train/course.h"

namespace comera::test {
namespace {

struct Stored {
  std::string name;
  RunConfig config;
};

std::vector<Stored> stored_runs() {
  std::vector<Stored> runs;
  for (const char* format : {"bf16", "int8"})
    for (const char* weights : choices_of("method.weights"))
      for (const char* optimizer : choices_of("method.optimizer")) {
        RunConfig config = scripted(text_config());
        config.method.weights = weights;
        config.method.optimizer = optimizer;
        shrink(config.method);
        config.method.weight_format = format;
        if (config_problems(config).empty()) runs.push_back({std::string(format) + " " + weights + " " + optimizer, config});
      }
  return runs;
}

// Fewer bytes of what is coded; vectors stay, under int8 all but matrices inside blocks.
TEST(WeightFormat, TakesWhatItPlanned) {
  for (const Stored& run : stored_runs()) {
    SCOPED_TRACE(run.name);
    const auto device = open_cpu_device(2);
    Log log;
    Trainer trainer(run.config, data_of(run.config), nullptr, *device, log);
    trainer.start();
    EXPECT_EQ(trainer.engine().memory().now().bytes, trainer.engine().planned().bytes);
    int64_t coded = 0;
    for (const Param& param : trainer.engine().params().params()) {
      const bool int8 = run.config.method.weight_format == "int8";
      const bool is_coded = int8 ? param.kind == ParamKind::weight && param.shape.rank() == 2 : param.shape.rank() > 1;
      EXPECT_EQ(param.value.dtype(), !is_coded ? DType::f32 : int8 ? DType::u8 : DType::bf16) << param.name;
      coded += is_coded ? 1 : 0;
    }
    if (run.config.method.weights != "tt" || run.config.method.weight_format == "bf16") {
      EXPECT_GT(coded, 3);
    }
    int64_t planned = 0;  // the largest plan: after a cut, temporaries in another order may need a few more bytes
    while (!trainer.finished()) {
      planned = std::max(planned, trainer.engine().planned().total());
      trainer.step();
    }
    EXPECT_EQ(trainer.engine().memory().peak().total(), std::max(planned, trainer.engine().planned().total()));
    for (const double loss : log.losses) ASSERT_TRUE(std::isfinite(loss));
  }
}

// The end of a course, from a checkpoint on where one is given.
std::string end_of(const RunConfig& config, Device& device, const std::string& from, const std::string& to, const std::string& middle = "",
                   bool replay = true) {
  TrainObserver silent;
  Trainer trainer(from.empty() ? config : checkpoint_config(from), data_of(config), nullptr, device, silent);
  trainer.engine().replay(replay);
  from.empty() ? trainer.start() : trainer.restore(from);
  while (!trainer.finished()) {
    if (trainer.state().step == 17 && !middle.empty()) trainer.save(middle);
    trainer.step();
  }
  trainer.save(to);
  return to;
}

// Across cuts, growth and whatever else the course has.
TEST(WeightFormat, GoesOnByteForByteAndIsCapturedSo) {
  for (const Stored& run : stored_runs()) {
    SCOPED_TRACE(run.name);
    const auto device = open_cpu_device(2);
    const std::string middle = file("middle");
    const std::string whole = end_of(run.config, *device, "", file("whole"), middle);
    const std::string resumed = end_of(run.config, *device, middle, file("resumed"));
    EXPECT_EQ(difference(whole, resumed), "");
    RecordingDevice recording(2);
    const std::string one_by_one = end_of(run.config, recording, "", file("eager"), "", false);
    const std::string captured = end_of(run.config, recording, "", file("captured"));
    EXPECT_EQ(difference(one_by_one, captured), "");
    for (const std::string& path : {middle, whole, resumed, one_by_one, captured}) std::filesystem::remove(path);
  }
}

TEST(WeightFormat, LearnsAsFullPrecisionDoes) {
  std::map<std::string, double> last;
  for (const char* format : {"full", "bf16", "int8"}) {
    RunConfig config = image_config();
    config.method.weights = "dense";
    config.method.weight_format = format;
    const auto device = open_cpu_device(2);
    Log log;
    Trainer trainer(config, data_of(config), nullptr, *device, log);
    trainer.start();
    while (!trainer.finished()) trainer.step();
    for (size_t i = log.losses.size() - 5; i < log.losses.size(); ++i) last[format] += log.losses[i] / 5;
    EXPECT_LT(last[format], 0.7 * log.losses.front()) << format;
  }
  EXPECT_NEAR(last["bf16"], last["full"], 0.1);
  EXPECT_NEAR(last["int8"], last["full"], 0.1);
}

TEST(WeightFormat, AMergeIsNotRoundedAway) {
  RunConfig config = text_config();
  config.method.weights = "lte";
  config.method.weight_format = "bf16";
  const std::vector<Problem> problems = config_problems(config);
  ASSERT_EQ(problems.size(), 1u);
  EXPECT_EQ(problems[0].path, "method.weight_format");
}

}  // namespace
}  // namespace comera::test
