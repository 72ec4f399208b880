// What a stored run is evaluated on: its checkpoints, its rows, its scores and predictions.
#include "core/session/evaluation.h"

#include <cmath>
#include <fstream>

#include "core/session/model_run.h"
#include "tests/session/support.h"

namespace comera {
namespace {

class EvaluationOfARun : public testing::Test {
 protected:
  std::string trained(SessionStart start) const {
    Session session(std::move(start));
    EXPECT_TRUE(session.wait(60));
    session.join();
    EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message << ": " << session.latest()->error_why;
    return session.latest()->run;
  }
  // A classifier of a few words in one file, of which every fourth row is held out.
  SessionStart texts(const std::string& rows) const {
    std::ofstream(folder_.file("words.txt")) << "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ntide\nis\nlow\nhigh\nnow\n";
    std::ofstream(folder_.file("rows.csv")) << rows;
    SessionStart start;
    start.store = folder_.store();
    RunConfig& config = start.config;
    config.model.classes = 2;
    config.model.length = 12;
    EncoderConfig& encoder = config.model.encoder;
    encoder.layers = 1, encoder.d_model = encoder.d_ff = 16, encoder.heads = 2;
    encoder.vocab = 11, encoder.positions = 12;
    config.method.weights = "dense";
    config.data.set = folder_.file("rows.csv");
    config.data.vocab = folder_.file("words.txt");
    config.data.holdout = 0.25;
    config.train.steps = 4;
    config.train.batch = 8;
    config.train.threads = 1;
    config.train.eval_every = 2;
    config.train.checkpoint_every = 2;
    validate_config(config, "test");
    return start;
  }
  static std::string rows(int count) {
    std::string text = "text,label\n";
    for (int i = 0; i < count; ++i) text += std::string("the tide is ") + (i % 3 ? "low" : "high") + (i % 3 ? ",0\n" : ",1\n");
    return text;
  }
  Evaluation of(const std::string& run, const EvaluationOf& what, int64_t step = -1) const {
    return Evaluation(model_of_run(load_stored_run(folder_.store(), run), step), what);
  }
  std::string error_of(const std::function<void()>& act) const {
    try {
      act();
    } catch (const Error& error) {
      return std::to_string(static_cast<int>(error.code())) + "|" + error.what() + "|" + error.why();
    }
    return "";
  }
  const test::Folder folder_;
};

TEST_F(EvaluationOfARun, GivesTheScoreThatTheRunRecorded) {
  SessionStart start = start_in(folder_, 80);
  start.config.train.checkpoint_every = 20;
  start.config.train.keep_checkpoints = 10;
  start.config.data.validation_rows = 0;  // all of them, as here
  const std::string run = trained(std::move(start));
  const EvaluationChoices choices = evaluation_choices(folder_.store(), "small");
  EXPECT_EQ(choices.steps.back(), 80);
  ASSERT_EQ(choices.splits, (std::vector<std::string>{"dev", "train"}));
  EXPECT_FALSE(choices.whole);
  EXPECT_TRUE(choices.predicts);
  const RunReader reader(folder_.store());
  const Series losses = reader.metric(run, "val_loss"), accuracies = reader.metric(run, "val_accuracy");
  std::vector<double> by_step(81, NAN);
  for (size_t i = 0; i < losses.steps.size(); ++i) by_step[static_cast<size_t>(losses.steps[i])] = losses.values[i];
  const size_t lowest = static_cast<size_t>(std::min_element(losses.values.begin(), losses.values.end()) - losses.values.begin());
  EXPECT_EQ(choices.best, std::max(losses.steps[lowest], choices.steps.front()));
  const Score score = of(run, {}).score();
  EXPECT_EQ(score.loss, losses.values.back());
  EXPECT_EQ(score.accuracy, accuracies.values.back());
  EXPECT_EQ(of(run, {}, 40).score().loss, by_step[40]);
  std::vector<double> shares;
  EXPECT_EQ(of(run, {}).score([&](double share) { shares.push_back(share); }).loss, score.loss);
  ASSERT_GT(shares.size(), 1u);
  EXPECT_TRUE(std::is_sorted(shares.begin(), shares.end()));
  EXPECT_EQ(shares.back(), 1);
  struct Enough {};
  EXPECT_THROW(of(run, {}).score([](double) { throw Enough(); }), Enough);
  EXPECT_TRUE(error_of([&] { of(run, {}, 41); }).find("no checkpoint at step 41|its checkpoints are at steps: ") != std::string::npos);
}

TEST_F(EvaluationOfARun, TakesTheRowsThatItHeldOut) {
  const std::string run = trained(texts(rows(120)));
  const EvaluationChoices choices = evaluation_choices(folder_.store(), run);
  EXPECT_TRUE(choices.whole);
  EXPECT_EQ(choices.splits, (std::vector<std::string>{"dev", "train"}));
  EXPECT_EQ(choices.data, folder_.file("rows.csv"));
  EXPECT_EQ(of(run, {}).score().examples, 30);
  EXPECT_EQ(of(run, {.split = "train"}).score().examples, 90);
  EXPECT_EQ(of(run, {}).score().loss, RunReader(folder_.store()).metric(run, "val_loss").values.back());
  EXPECT_TRUE(error_of([&] { of(run, {.split = "test"}); }).starts_with("2|the data of the run have no split 'test'"));
  // Other data, all rows of them; without labels they have predictions alone.
  std::ofstream(folder_.file("other.csv")) << "text,label\nthe tide is low,0\nthe tide is high,1\nlow,0\n";
  std::ofstream(folder_.file("bare.csv")) << "text\nthe tide is low\nthe tide is high\n";
  EXPECT_EQ(of(run, {.data = folder_.file("other.csv")}).score().examples, 3);
  EXPECT_NE(error_of([&] { of(run, {.data = folder_.file("bare.csv")}).score(); }), "");
  std::vector<int64_t> seen;
  EXPECT_EQ(of(run, {.data = folder_.file("bare.csv"), .labels = false}).predict([&](const Evaluation::Prediction& one) {
    seen.push_back(one.row);
    EXPECT_EQ(one.logits.size(), 2u);
    EXPECT_EQ(one.label, one.logits[1] > one.logits[0] ? 1 : 0);
  }),
            2);
  EXPECT_EQ(seen, (std::vector<int64_t>{0, 1}));
  // Rows that were added may be among those that it was trained on.
  std::ofstream(folder_.file("rows.csv")) << rows(160);
  EXPECT_TRUE(error_of([&] { of(run, {}); }).starts_with("3|the data of the run have changed since it was trained"));
  EXPECT_EQ(of(run, {.data = folder_.file("rows.csv")}).score().examples, 160) << "named as a file, all rows count";
}

TEST_F(EvaluationOfARun, SaysWhyThereIsNothingToChoose) {
  const std::string run = trained(texts(rows(40)));
  std::filesystem::remove(folder_.file("rows.csv"));
  const EvaluationChoices choices = evaluation_choices(folder_.store(), run);
  EXPECT_TRUE(choices.splits.empty());
  EXPECT_NE(choices.no_splits.find("rows.csv"), std::string::npos) << choices.no_splits;
  EXPECT_FALSE(choices.steps.empty()) << "other data can still be chosen";
}

}  // namespace
}  // namespace comera
