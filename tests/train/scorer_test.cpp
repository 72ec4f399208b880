// A trained model without its training: scores of a checkpoint, models that do not fit, and values that would.
#include "core/train/scorer.h"

#include <chrono>
#include <filesystem>

#include "core/base/error.h"
#include "core/config/suggest.h"
#include "core/train/checkpoint.h"
#include "core/train/model_export.h"
#include "core/train/model_import.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

// The sentences, read with a vocabulary.
class ReadWith final : public Dataset {
 public:
  explicit ReadWith(const std::string& vocabulary) : info_(sentences_.info()) { info_.vocab_fingerprint = vocabulary; }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override { sentences_.read(row, max_length, out); }

 private:
  const Sentences sentences_;
  DatasetInfo info_;
};

// A checkpoint after a few steps, and what the trainer says of the validation data then.
struct TrainedScorer {
  TrainedScorer(RunConfig config, const std::shared_ptr<const Dataset>& data, int64_t steps) {
    config.train.steps = steps;
    Trainer trainer(config, data, data, *device, log);
    trainer.start();
    while (!trainer.finished()) trainer.step();
    eval = trainer.last_eval();
    trainer.save(path);
  }
  ~TrainedScorer() { std::filesystem::remove(path); }
  const std::unique_ptr<Device> device = open_device("cpu", 1);
  const std::string path = file("scored");
  Log log;
  EvalRecord eval;
};

TEST(Scorer, ScoresEveryRowAsTheTrainerDid) {
  RunConfig config = image_config();
  config.train.batch = 14;  // the last batch is not full
  const TrainedScorer trained(config, std::make_shared<Blobs>(), 40);
  Scorer scorer(trained.path, *trained.device);
  std::vector<int64_t> rows;
  const Score score = scorer.score(Blobs(), [&](int64_t row, const std::vector<double>& logits) {
    rows.push_back(row);
    EXPECT_EQ(logits.size(), 4u);
  });
  EXPECT_EQ(score.examples, 96);
  EXPECT_EQ(score.loss, trained.eval.loss);
  EXPECT_EQ(score.accuracy, trained.eval.accuracy);
  EXPECT_GT(score.accuracy, 0.3);
  ASSERT_EQ(rows.size(), 96u);
  for (size_t i = 0; i < 96; ++i) EXPECT_EQ(rows[i], static_cast<int64_t>(i)) << "in order";
}

// The blobs, of classes with names.
class NamedBlobs final : public Dataset {
 public:
  explicit NamedBlobs(const std::vector<std::string>& names) : info_(blobs_.info()) { info_.label_names = names; }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override { blobs_.read(row, max_length, out); }

 private:
  const Blobs blobs_;
  DatasetInfo info_;
};

// Names of classes are kept where the data that a run goes on with have none.
TEST(Scorer, ACheckpointThatIsWrittenWhileItIsReadIsAnError) {
  const TrainedScorer trained(image_config(), std::make_shared<Blobs>(), 2);
  const SafetensorsFile file(trained.path);
  Engine engine(checkpoint_config(trained.path), *trained.device);
  engine.allocate();
  load_parameters(engine, file);
  std::filesystem::last_write_time(trained.path, std::filesystem::last_write_time(trained.path) + std::chrono::seconds(1));
  EXPECT_THROW(load_parameters(engine, file), Error);
}

TEST(Scorer, KnowsTheNamesOfClasses) {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  const TrainedScorer trained(image_config(), std::make_shared<NamedBlobs>(names), 2);
  EXPECT_EQ(Scorer(trained.path, *trained.device).label_names(), names);
  Log log;
  Trainer trainer(image_config(), std::make_shared<Blobs>(), nullptr, *trained.device, log);
  trainer.restore(trained.path);
  trainer.save(trained.path);
  EXPECT_EQ(Scorer(trained.path, *trained.device).label_names(), names);
}

// Classes of other names are another task for the same head; a name with another number is a mistake.
TEST(Trainer, RefusesTheClassesOfACheckpointInAnotherOrder) {
  const TrainedScorer trained(image_config(), std::make_shared<NamedBlobs>(std::vector<std::string>{"a", "b", "c", "d"}), 2);
  const auto restore = [&](const std::vector<std::string>& names) {
    Log log;
    Trainer trainer(image_config(), std::make_shared<NamedBlobs>(names), nullptr, *trained.device, log);
    trainer.restore(trained.path);
  };
  EXPECT_NO_THROW(restore({"e", "f", "g", "h"}));
  EXPECT_NO_THROW(restore({"a", "b", "g", "d"}));
  EXPECT_THROW(restore({"b", "f", "g", "h"}), Error);
  try {
    restore({"a", "c", "b", "d"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config);
    EXPECT_EQ(error.why(), "'c' is class 2 of the model and class 1 of the data");
  }
}

TEST(Scorer, RefusesTextThatWasReadWithAnotherVocabulary) {
  const TrainedScorer trained(text_config(), std::make_shared<ReadWith>("aaaabbbbcccc"), 2);
  Scorer scorer(trained.path, *trained.device);
  EXPECT_EQ(scorer.score(ReadWith("aaaabbbbcccc")).loss, trained.eval.loss);
  try {
    scorer.score(ReadWith("ddddeeeeffff"));
    ADD_FAILURE() << "scored with another vocabulary";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config);
    EXPECT_NE(error.why().find("ddddeeeeffff"), std::string::npos) << error.why();
  }
  EXPECT_THROW(scorer.score(Blobs()), Error) << "images";
}

TEST(ImportModel, RefusesRanksAboveThoseOfTheConfig) {
  const TrainedScorer trained(image_config(), std::make_shared<Blobs>(), 1);
  const std::string out = file("imported");
  RunConfig config = image_config();
  import_model(trained.path, config, out);  // rank 6 in both
  std::filesystem::remove(out);
  config.model.tt.ffn_in.rank = 5;
  try {
    import_model(trained.path, config, out);
    ADD_FAILURE() << "a rank of 6 was taken for 5";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::config);
    EXPECT_NE(std::string(error.what()).find("is 6 in the file"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(std::filesystem::exists(out));
}

// A layer that the model lacks is an error, since it would be dropped silently.
TEST(Checkpoint, WithMoreLayersThanTheModelIsRefused) {
  const TrainedScorer trained(text_config(), std::make_shared<Sentences>(), 1);
  RunConfig config = text_config();
  config.model.encoder.layers = 1;
  const auto text = [](const auto& act) -> std::string {
    try {
      act();
    } catch (const Error& error) {
      return std::string(error.what()) + "; " + error.why();
    }
    return "taken";
  };
  Log log;
  Trainer trainer(config, std::make_shared<Sentences>(), std::make_shared<Sentences>(), *trained.device, log);
  EXPECT_NE(text([&] { trainer.restore(trained.path); }).find("enc1."), std::string::npos);
  const std::string out = file("imported");
  EXPECT_NE(text([&] { import_model(trained.path, config, out); }).find("enc1."), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(out));
  import_model(trained.path, text_config(), out);
  std::filesystem::remove(out);
}

TEST(Suggest, TheNearestDivisorIsTheSmallerOfTwo) {
  RunConfig config = text_config();  // d_model 24
  for (const auto& [heads, near] : {std::pair(5, "4"), {7, "6"}, {10, "8"}, {11, "12"}, {23, "24"}}) {
    config.model.encoder.heads = heads;
    EXPECT_EQ(nearest_value(config, "model.encoder.heads"), near) << heads;
  }
}

TEST(Suggest, ModesAreThoseOfLayersOfOneSize) {
  RunConfig config = image_config();  // 64 -> 24 -> 16: two sizes of one kind
  EXPECT_EQ(chosen_modes(config).count("model.tt.ffn_in.in_modes"), 0u);
  config.model.mlp.hidden = {64, 64};
  EXPECT_EQ(chosen_modes(config).at("model.tt.ffn_in.in_modes"), (std::vector<int64_t>{8, 8}));
  config.method.weights = "dense";
  EXPECT_TRUE(chosen_modes(config).empty());
}

}  // namespace
}  // namespace comera::test
