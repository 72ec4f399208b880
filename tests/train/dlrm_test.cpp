// Recommendation models in whole runs: steps against facebookresearch/dlrm (tests/golden_models, or $COMERA_GOLDEN_MODELS), gradients of
// rows, memory as planned.
#include "core/base/json.h"
#include "tests/models/golden_dlrm.h"
#include "tests/train/course.h"

namespace comera::test {
namespace {

struct Published {
  const char *name, *optimizer, *gradients;
};

// Three steps, each on another batch.
void check_steps(const GoldenDlrm& golden, const Published& published, const std::string& precision) {
  SCOPED_TRACE(std::string(published.name) + " with gradients of " + published.gradients + ", " + precision);
  RunConfig config;
  config.model = golden.config;
  config.method.weights = "dense";
  config.method.optimizer = published.optimizer;
  config.method.adagrad.rowwise = std::string(published.name) == "rwsadagrad";
  config.method.update = "after";
  config.method.table_gradients = published.gradients;
  config.train.precision = precision;
  config.train.batch = static_cast<int64_t>(golden.batch(0).labels.size());
  const auto device = open_cpu_device(2);
  Engine engine(config, *device);
  engine.allocate();
  for (const auto& [ours, theirs] : golden.names()) from_host(*device, *engine.params().find(ours), golden.weights.values(theirs));
  StepScalars scalars;
  scalars.learning_rate[static_cast<int>(ParamGroup::rest)] =
      parse_valid_json(golden.file.metadata().at("learning_rate")).at(published.name);
  for (int64_t step = 1; step <= 3; ++step) {
    const GoldenClicks clicks = golden.batch(step - 1);
    Batch batch;
    batch.sequences = batch.tokens = config.train.batch;
    batch.reals["numbers"].assign(clicks.numbers.begin(), clicks.numbers.end());
    for (size_t t = 0; t < clicks.categories.size(); ++t) batch.ints["category" + std::to_string(t)] = clicks.categories[t];
    batch.ints["labels"] = clicks.labels;
    scalars.step = scalars.optimizer_step = static_cast<uint64_t>(step);
    const double loss = engine.step(batch, scalars).ce,
                 theirs = golden.file.values(std::string("losses_") + published.name)[static_cast<size_t>(step - 1)];
    EXPECT_NEAR(loss, theirs, precision == "f64" ? 1e-9 : 1e-4) << "loss of step " << step;
  }
  for (const auto& [ours, theirs] : golden.names())
    golden.expect_close(to_host(*device, *engine.params().find(ours)),
                        golden.file.values(std::string("after_") + published.name + "/" + theirs), precision == "f64" ? 1e-9 : 1e-4,
                        theirs);
}

TEST(DlrmSteps, AreThoseOfThePublishedProgram) {
  const GoldenDlrm golden;
  for (const Published& published : {Published{"sgd", "lomo", "dense"},
                                     {"sgd", "lomo", "rows"},
                                     {"adam", "adamw", "dense"},
                                     {"adagrad", "adagrad", "dense"},
                                     {"adagrad", "adagrad", "rows"},
                                     {"rwsadagrad", "adagrad", "dense"},
                                     {"rwsadagrad", "adagrad", "rows"}})
    for (const char* precision : {"f64", "f32"}) check_steps(golden, published, precision);
}

std::vector<RunConfig> some_runs() {
  std::vector<RunConfig> runs;
  for (const char* optimizer : {"adamw", "galore", "apollo", "adagrad"}) {
    RunConfig config = clicks_config();
    config.method.weights = "dense";
    config.method.optimizer = optimizer;
    config.method.table_gradients = "rows";
    shrink(config.method);
    runs.push_back(config);
  }
  runs.push_back(clicks_config());
  runs.back().method.table_gradients = "rows";  // of the small table
  return runs;
}

TEST(DlrmRuns, TrainInPlannedMemory) {
  for (const RunConfig& config : some_runs()) {
    SCOPED_TRACE(config.method.weights + " " + config.method.optimizer);
    const auto device = open_cpu_device(2);
    Log log;
    Trainer trainer(config, data_of(config), data_of(config), *device, log);
    const int64_t planned = trainer.engine().planned().total();
    trainer.start();
    EXPECT_EQ(trainer.engine().memory().now().total(), planned);
    const EvalRecord before = trainer.evaluate();
    while (!trainer.finished()) trainer.step();
    EXPECT_EQ(trainer.engine().memory().peak().total(), planned);
    EXPECT_LT(trainer.last_eval().loss, before.loss - 0.05);
  }
}

TEST(DlrmRuns, RowsTakeLessMemory) {
  RunConfig config = clicks_config();
  config.method.weights = "dense";
  config.model.dlrm.tables = {5000, 3, 4000};
  const auto device = open_cpu_device(1);
  const auto gradients = [&](const char* of) {
    config.method.table_gradients = of;
    return Engine(config, *device).planned()[Purpose::gradient];
  };
  EXPECT_EQ(gradients("dense") - gradients("rows"), (5000 + 4000 - 2 * 16) * 8 * 4) << "16 lookups, 8 columns";
}

TEST(DlrmRuns, AResumedRunIsTheSame) {
  for (RunConfig config : some_runs()) {
    SCOPED_TRACE(config.method.weights + " " + config.method.optimizer);
    config.train.steps = 20;
    const auto device = open_cpu_device(2);
    expect_the_same_when_resumed(config, "dlrm", *device, *device);
  }
}

}  // namespace
}  // namespace comera::test
