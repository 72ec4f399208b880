// The points of a sweep, what a file may say, and the arithmetic of halving.
#include "core/session/sweep_plan.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/error.h"
#include "core/base/json.h"

namespace comera {
namespace {

Sweep sweep_of(const std::string& text) { return read_sweep(parse_json(text, "test"), "test", "file"); }

std::string settings_text(const SweepSettings& settings) {
  std::string text;
  for (const auto& [path, value] : settings) text += (text.empty() ? "" : " ") + path + "=" + value;
  return text;
}

RunConfig load(const std::vector<std::string>& sets) {
  RunConfig config;
  config.model.kind = "mlp";
  config.model.classes = 10;
  config.model.mlp = {.inputs = 784, .hidden = {32, 16}};
  config.data.set = "fashion-mnist-demo";
  set_config(config, sets);
  return config;
}

TEST(SweepPlan, AGridIsInTheOrderOfTheFileTheLastListFastest) {
  const Sweep sweep = sweep_of(
      R"({"base": "demo", "grid": {"train.lr": [1e-2, 1e-3], "model.mlp.hidden": [[8], [16, 8]], "method": ["adamw", "comera"]}})");
  const std::vector<SweepSettings> points = points_of(sweep);
  ASSERT_EQ(points.size(), 8u);
  EXPECT_EQ(settings_text(points[0]), R"(train.lr=0.01 model.mlp.hidden=[8] method="adamw")");
  EXPECT_EQ(settings_text(points[1]), R"(train.lr=0.01 model.mlp.hidden=[8] method="comera")");
  EXPECT_EQ(settings_text(points[2]), R"(train.lr=0.01 model.mlp.hidden=[16,8] method="adamw")");
  EXPECT_EQ(settings_text(points[7]), R"(train.lr=0.001 model.mlp.hidden=[16,8] method="comera")");
  EXPECT_EQ(sweep.name, "file");
  EXPECT_EQ(sweep.tag(), "sweep:file");
}

TEST(SweepPlan, EachPointUnderEachSeedIsTheBaseWithItsSettings) {
  const Sweep sweep = sweep_of(
      R"({"base": "demo", "name": "s", "set": {"train.steps": 7}, "grid": {"train.lr": [0.1, 0.2], "train.lr_core": [0.3]}, "seeds": [4, 2]})");
  const std::vector<SweepPoint> points = plan_sweep(sweep, load);
  ASSERT_EQ(points.size(), 2u);
  ASSERT_EQ(points[1].runs.size(), 2u);
  const RunConfig& run = points[1].runs[0];
  EXPECT_EQ(run.name, "s lr=0.2 lr_core=0.3 seed 4");
  EXPECT_EQ(run.train.lr, 0.2);
  EXPECT_EQ(run.train.lr_core, 0.3);
  EXPECT_EQ(run.train.steps, 7);
  EXPECT_EQ(run.train.seed, 4);
  EXPECT_EQ(points[1].runs[1].train.seed, 2);
  const std::vector<const RunConfig*> tasks = tasks_of(points);
  ASSERT_EQ(tasks.size(), 4u);
  EXPECT_EQ(tasks[2], &run);
}

TEST(SweepPlan, SettingsThatEndAlikeAreNamedInFull) {
  const Sweep sweep = sweep_of(R"({"base": "demo", "grid": {"model.tt.ffn_in.rank": [4], "method.galore.rank": [8], "train.lr": [1]}})");
  EXPECT_EQ(text_of(points_of(sweep)[0], sweep.varied()), "model.tt.ffn_in.rank=4 method.galore.rank=8 lr=1");
}

TEST(SweepPlan, AMethodByNameComesBeforeItsSettings) {
  const Sweep sweep = sweep_of(R"({"base": "demo", "set": {"method.galore.rank": 3}, "grid": {"method": ["galore", "adamw"]}})");
  const std::vector<SweepPoint> points = plan_sweep(sweep, load);
  EXPECT_EQ(points[0].runs[0].method.optimizer, "galore");
  EXPECT_EQ(points[0].runs[0].method.galore.rank, 3);
  EXPECT_EQ(points[1].runs[0].method.weights, "dense");
}

constexpr const char* kRandom = R"({"base": "demo", "random": {"runs": 400, "seed": 9, "ranges": {
  "train.lr": {"log": [1e-4, 1e-1]}, "method.comera.target": {"uniform": [0.2, 0.8]}, "train.batch": {"uniform": [3, 6]},
  "model.tt.ffn_in.rank": {"log": [2, 64]}, "train.schedule": ["constant", "linear", "cosine"]}}})";

TEST(SweepPlan, DrawsAreInTheirRangesAndFillThem) {
  const std::vector<SweepSettings> points = points_of(sweep_of(kRandom));
  ASSERT_EQ(points.size(), 400u);
  std::set<std::string> schedules, batches;
  int below = 0, of_low_ranks = 0;
  double sum = 0;
  for (const SweepSettings& point : points) {
    const double lr = std::stod(point[0].second), target = std::stod(point[1].second), rank = std::stod(point[3].second);
    EXPECT_TRUE(lr >= 1e-4 && lr <= 1e-1) << lr;
    EXPECT_TRUE(target >= 0.2 && target <= 0.8) << target;
    EXPECT_TRUE(rank >= 2 && rank <= 64 && rank == std::floor(rank)) << rank;
    EXPECT_EQ(point[3].second.find('.'), std::string::npos);
    below += lr < std::sqrt(1e-5);  // the middle of the logarithms
    of_low_ranks += rank < 11;      // near it
    sum += target;
    batches.insert(point[2].second);
    schedules.insert(point[4].second);
  }
  // Four standard deviations.
  EXPECT_NEAR(below, 200, 40);
  EXPECT_NEAR(of_low_ranks, 200, 45);
  EXPECT_NEAR(sum / 400, 0.5, 4 * 0.6 / std::sqrt(12.0 * 400));
  EXPECT_EQ(batches, (std::set<std::string>{"3", "4", "5", "6"}));
  EXPECT_EQ(schedules.size(), 3u);
}

TEST(SweepPlan, ADrawDependsOnSeedPathAndNumberAlone) {
  const std::vector<SweepSettings> points = points_of(sweep_of(kRandom));
  EXPECT_EQ(points, points_of(sweep_of(kRandom)));
  // Other ranges, fewer runs: the same draws.
  const std::vector<SweepSettings> few = points_of(sweep_of(
      R"({"base": "demo", "random": {"runs": 5, "seed": 9, "ranges": {"train.batch": {"uniform": [3, 6]}, "train.lr": {"log": [1e-4, 1e-1]}}}})"));
  for (size_t i = 0; i < few.size(); ++i) {
    EXPECT_EQ(few[i][0], points[i][2]);
    EXPECT_EQ(few[i][1], points[i][0]);
  }
  const std::vector<SweepSettings> other =
      points_of(sweep_of(R"({"base": "demo", "random": {"runs": 5, "seed": 10, "ranges": {"train.lr": {"log": [1e-4, 1e-1]}}}})"));
  EXPECT_NE(other[0][0], points[0][0]);
  // Written down once: a draw must be the same on every machine and in every later version.
  EXPECT_EQ(settings_text(points[0]),
            R"(train.lr=0.000858619 method.comera.target=0.51857 train.batch=4 model.tt.ffn_in.rank=8 train.schedule="linear")");
}

TEST(SweepPlan, RefusedPointsAreLeftOutWithTheirReason) {
  const Sweep sweep = sweep_of(R"({"base": "demo", "grid": {"train.batch": [8, 9], "train.micro_batches": [1, 2]}})");
  const std::vector<SweepPoint> points = plan_sweep(sweep, load);
  EXPECT_EQ(tasks_of(points).size(), 3u);
  EXPECT_TRUE(points[3].runs.empty());
  EXPECT_EQ(points[3].refusal.rfind("train.", 0), 0u) << points[3].refusal;
  const Sweep draws = sweep_of(R"({"base": "demo", "random": {"runs": 9, "ranges": {"train.schedule": ["constant", "linear"]}}})");
  const std::vector<SweepPoint> drawn = plan_sweep(draws, load);
  EXPECT_EQ(tasks_of(drawn).size(), 2u);
  EXPECT_EQ(drawn[8].refusal.rfind("the same values as point ", 0), 0u);
}

Error sweep_error(const std::string& text) {
  try {
    plan_sweep(sweep_of(text), load);
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error: " << text;
  return {ErrorCode::other, ""};
}

TEST(SweepPlan, AFileThatIsWrongIsRefusedWithThePlace) {
  const struct {
    const char *text, *what, *hint;
  } cases[] = {
      {R"([1])", "must be a JSON object, is array", ""},
      {R"({"grid": {"train.lr": [1]}})", "base is missing", "\"base\": \"demo\""},
      {R"({"base": "demo"})", "nothing varies", "grid"},
      {R"({"base": "demo", "gird": {}})", "'gird' is not a key", "did you mean 'grid'?"},
      {R"({"base": "demo", "name": "a b", "seeds": [1]})", "name must be of letters", ""},
      {R"({"base": "demo", "seeds": []})", "seeds must be a list with at least one value", ""},
      {R"({"base": "demo", "seeds": [1, 1]})", "seeds has 1 twice", ""},
      {R"({"base": "demo", "seeds": [-1]})", "at least 0, is -1", ""},
      {R"({"base": "demo", "grid": {}})", "grid is empty", ""},
      {R"({"base": "demo", "grid": {"train.lrr": [1]}})", "grid: train.lrr is not a known setting", "did you mean 'train.lr'?"},
      {R"({"base": "demo", "grid": {"name": ["a"]}})", "name cannot vary", ""},
      {R"({"base": "demo", "grid": {"train.lr": 1}})", "train.lr must be a list", ""},
      {R"({"base": "demo", "grid": {"train.lr": ["a"]}})", "train.lr must be a number, is \"a\"", "config explain train.lr"},
      {R"({"base": "demo", "grid": {"train.batch": [1.5]}})", "train.batch must be a whole number, is 1.5", ""},
      {R"({"base": "demo", "grid": {"train.lr": [1, 1]}})", "has 1 twice", "once"},
      {R"({"base": "demo", "grid": {"train.lr": [1]}, "random": {}})", "grid and random are both given", ""},
      {R"({"base": "demo", "set": {"train.lr": 1}, "grid": {"train.lr": [1]}})", "train.lr is given twice", ""},
      {R"({"base": "demo", "grid": {"train.seed": [1]}, "seeds": [1]})", "train.seed is given twice", ""},
      {R"({"base": "demo", "random": {"ranges": {}}})", "random.runs is missing", ""},
      {R"({"base": "demo", "random": {"runs": 0, "ranges": {}}})", "random.runs must be a whole number of at least 1", ""},
      {R"({"base": "demo", "random": {"runs": 1, "ranges": {"train.lr": {"logg": [1, 2]}}}})", "logg' is not a key", "log'?"},
      {R"({"base": "demo", "random": {"runs": 1, "ranges": {"train.lr": {"log": [0, 2]}}}})", "must be above 0", ""},
      {R"({"base": "demo", "random": {"runs": 1, "ranges": {"train.lr": {"uniform": [2, 1]}}}})", "must rise", ""},
      {R"({"base": "demo", "random": {"runs": 1, "ranges": {"train.lr": {"uniform": [2]}}}})", "needs [low, high]", ""},
      {R"({"base": "demo", "random": {"runs": 1, "ranges": {"train.batch": {"uniform": [1, 2.5]}}}})", "needs whole numbers", ""},
      {R"({"base": "demo", "random": {"runs": 1, "ranges": {"train.schedule": {"uniform": [1, 2]}}}})", "cannot be uniform",
       "list of values"},
      {R"({"base": "demo", "seeds": [1], "halving": {"rungs": [1, 2]}})", "halving.metric is missing", ""},
      {R"({"base": "demo", "seeds": [1], "halving": {"metric": "val_acuracy", "rungs": [1, 2]}})", "cannot be 'val_acuracy'",
       "did you mean 'val_accuracy'?"},
      {R"({"base": "demo", "seeds": [1], "halving": {"metric": "epoch", "rungs": [1, 2]}})", "cannot be 'epoch'", ""},
      {R"({"base": "demo", "seeds": [1], "halving": {"metric": "val_loss", "rungs": [2, 2]}})", "halving.rungs must rise", ""},
      {R"({"base": "demo", "seeds": [1], "halving": {"metric": "val_loss", "rungs": [2]}})", "at least two", ""},
      {R"({"base": "demo", "seeds": [1], "halving": {"metric": "val_loss", "rungs": [1, 2], "keep": 1}})",
       "halving.keep must be above 0 and below 1", ""},
      {R"({"base": "demo", "grid": {"train.steps": [1]}, "halving": {"metric": "val_loss", "rungs": [1, 2]}})",
       "cannot be given with halving", ""},
      {R"({"base": "demo", "grid": {"train.batch": [0, -1]}})", "no point of the sweep can be trained", "config show"},
  };
  for (const auto& one : cases) {
    SCOPED_TRACE(one.text);
    const Error error = sweep_error(one.text);
    EXPECT_EQ(error.code(), ErrorCode::config);
    EXPECT_NE(std::string(error.what()).find(one.what), std::string::npos) << error.what();
    EXPECT_NE(error.hint().find(one.hint), std::string::npos) << error.hint();
  }
  EXPECT_EQ(sweep_error(R"({"base": "demo", "grid": {"method": ["galor"]}})").hint(), "did you mean 'galore'?");
}

TEST(SweepPlan, HalvingKeepsTheWholePartOfTheShareAndAtLeastOne) {
  EXPECT_EQ(kept_of(8, 0.5), 4);
  EXPECT_EQ(kept_of(9, 0.5), 4);
  EXPECT_EQ(kept_of(1, 0.5), 1);
  EXPECT_EQ(kept_of(3, 0.1), 1);
  EXPECT_EQ(kept_of(100, 0.29), 29);  // 28.999999999999996
  EXPECT_EQ(kept_of(27, 1.0 / 3), 9);
  EXPECT_EQ(rung_sizes({.metric = "val_loss", .rungs = {1, 2, 4, 8}, .keep = 0.5}, 12), (std::vector<int64_t>{12, 6, 3, 1}));
  const Sweep sweep = sweep_of(R"({"base": "demo", "seeds": [1], "halving": {"metric": "val_loss", "rungs": [5, 9]}})");
  EXPECT_EQ(plan_sweep(sweep, load)[0].runs[0].train.steps, 5);
  EXPECT_EQ(sweep.halving->keep, 0.5);
}

TEST(SweepPlan, TheBestHaveTheHighestOrLowestScoresAndNeverNone) {
  const double none = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(best_of({0.1, 0.4, none, 0.4, 0.2}, Better::higher, 3), (std::vector<size_t>{1, 3, 4}));
  EXPECT_EQ(best_of({0.1, 0.4, none, 0.4, infinite}, Better::lower, 2), (std::vector<size_t>{0, 1}));
  EXPECT_EQ(best_of({none, 2, infinite}, Better::higher, 3), (std::vector<size_t>{1}));
  EXPECT_TRUE(best_of({none}, Better::lower, 1).empty());
}

TEST(SweepPlan, LanguageModelsAreComparedByTheirLoss) {
  const Sweep sweep = sweep_of(R"({"base": "demo", "seeds": [1]})");
  std::vector<SweepPoint> points = plan_sweep(sweep, load);
  EXPECT_STREQ(metric_of(sweep, points).name, "val_accuracy");
  points[0].runs[0].model.task = "masked";
  EXPECT_STREQ(metric_of(sweep, points).name, "val_loss");
}

}  // namespace
}  // namespace comera
