// Language models as runs: every weight form and stash trains as planned, goes on bit for bit, in parts as at once; scores.
#include <cmath>

#include "core/data/first_rows.h"
#include "core/train/batch_fit.h"
#include "core/train/forecast.h"
#include "core/train/generator.h"
#include "tests/config/choices.h"
#include "tests/train/course.h"

namespace comera::test {
namespace {

class LanguageRun : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  static RunConfig config() {
    RunConfig config = language_config();
    config.method.weights = std::get<0>(GetParam());
    config.method.stash = std::get<1>(GetParam());
    config.model.tt.head = {.rank = 12, .cores = 2};
    config.method.lora.rank = config.method.lte.rank = 4;
    config.method.lora.rest = config.method.lte.rest = true;  // the embeddings are random, too
    return config;
  }
};
INSTANTIATE_TEST_SUITE_P(All, LanguageRun,
                         testing::Combine(testing::ValuesIn(choices_of("method.weights")), testing::ValuesIn(choices_of("method.stash"))),
                         name_of_choices);

TEST_P(LanguageRun, TrainsAsPlannedAndLearns) {
  for (const bool waist : {false, true}) {
    RunConfig config = this->config();
    config.method.waist = waist;
    if (!config_problems(config).empty()) continue;
    const auto device = open_cpu_device(2);
    Log log;
    Trainer trainer(config, data_of(config), data_of(config), *device, log);
    const int64_t planned = trainer.engine().planned().total();
    trainer.start();
    const double before = trainer.evaluate().loss;
    EXPECT_NEAR(before, std::log(24), 2) << "of a model that knows nothing";
    while (!trainer.finished()) trainer.step();
    EXPECT_EQ(trainer.engine().memory().peak().total(), planned);
    const Score score = trainer.evaluate();
    EXPECT_LT(score.loss, before - 0.3);
    ASSERT_EQ(score.more.size(), 1u);
    EXPECT_EQ(score.more[0].first, "perplexity");
    EXPECT_DOUBLE_EQ(score.more[0].second, std::exp(score.loss));
    int64_t tokens = 0;
    for (int64_t row = 0; row < 48; ++row) tokens += 10 - row % 3 - 1;
    EXPECT_EQ(score.examples, tokens) << "tokens with a next one";
  }
}

TEST_P(LanguageRun, GoesOnBitForBit) {
  RunConfig config = this->config();
  config.train.steps = 20;
  const auto device = open_cpu_device(2);
  Log log;
  Trainer whole(config, data_of(config), nullptr, *device, log);
  whole.start();
  const std::string half = file("language-half"), end = file("language-end"), again = file("language-again");
  while (!whole.finished()) {
    if (whole.state().step == 9) whole.save(half);
    whole.step();
  }
  whole.save(end);
  Trainer on(config, data_of(config), nullptr, *device, log);
  on.restore(half);
  while (!on.finished()) on.step();
  on.save(again);
  EXPECT_EQ(difference(end, again), "");
  for (const std::string& path : {half, end, again}) std::filesystem::remove(path);
}

TEST(Language, PartsAndPackedBatchesAreTheWholeBatch) {
  RunConfig config = language_config();
  config.train.precision = "f64";
  config.train.steps = 4;
  config.train.batch = 12;
  config.method.weights = "dense";
  config.model.decoder.dropout = config.model.decoder.attention_dropout = 0;
  const auto losses_of = [&](const std::function<void(RunConfig&)>& change) {
    RunConfig one = config;
    change(one);
    const auto device = open_cpu_device(2);
    Log log;
    Trainer trainer(one, data_of(one), nullptr, *device, log);
    trainer.start();
    while (!trainer.finished()) trainer.step();
    return log.losses;
  };
  const std::vector<double> whole = losses_of([](RunConfig&) {});
  for (const std::vector<double>& other : {losses_of([](RunConfig& c) { c.train.micro_batches = 3; }),
                                           losses_of([](RunConfig& c) { c.data.pack = true, c.data.token_budget = 120; })}) {
    ASSERT_EQ(other.size(), whole.size());
    for (size_t i = 0; i < whole.size(); ++i) EXPECT_NEAR(other[i], whole[i], 1e-12) << "step " << i + 1;
  }
}

TEST(Language, CheckpointedBlocksComputeTheSame) {
  RunConfig config = language_config();
  config.train.steps = 6;
  const auto losses_of = [&](int64_t every) {
    config.method.checkpoint = every;
    const auto device = open_cpu_device(2);
    Log log;
    Trainer trainer(config, data_of(config), nullptr, *device, log);
    trainer.start();
    while (!trainer.finished()) trainer.step();
    return log.losses;
  };
  EXPECT_EQ(losses_of(0), losses_of(1));
}

// A model that has learned the made-up text goes on by its rule, the same for the same seed.
TEST(Generator, ContinuesWhatItIsGiven) {
  RunConfig config = language_config();
  config.method.weights = "dense";
  config.train.steps = 300;
  config.model.decoder.dropout = config.model.decoder.attention_dropout = 0;
  const auto device = open_cpu_device(2);
  Log log;
  Trainer trainer(config, data_of(config), nullptr, *device, log);
  trainer.start();
  while (!trainer.finished()) trainer.step();
  const std::string path = file("language-model");
  trainer.save(path);
  Generator generator(path, *device);
  const std::vector<int32_t> greedy = generator.continue_with({3}, 14, {.temperature = 0});
  ASSERT_EQ(greedy.size(), 14u);
  int32_t before = 3, right = 0;
  for (const int32_t token : greedy) right += token == (std::exchange(before, token) * 5 + 7) % 24;
  EXPECT_GE(right, 12) << "also behind the tokens that the model sees at once";
  EXPECT_EQ(generator.continue_with({3}, 14, {.temperature = 1, .top = 1}), greedy);
  const auto drawn = [&](uint64_t seed) { return generator.continue_with({3}, 14, {.temperature = 3, .seed = seed}); };
  EXPECT_EQ(drawn(1), drawn(1));
  EXPECT_NE(drawn(1), drawn(2));
  int told = 0;
  EXPECT_EQ(generator.continue_with({3}, 14, {.temperature = 0}, [&](int32_t) { return ++told < 4; }).size(), 4u);
  EXPECT_THROW(generator.continue_with({24}, 1, {}), Error);
  // The same function as that which was trained: of the tokens of a row, each with those before it.
  Columns row;
  Pieces().read(5, 10, row);
  const std::vector<int32_t>& ids = row.ints["ids"];
  double loss = 0;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    const std::vector<double> logits = generator.logits({ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(i) + 1});
    double sum = 0;
    for (const double z : logits) sum += std::exp(z);
    loss += std::log(sum) - logits[static_cast<size_t>(ids[i + 1])];
  }
  Batch batch;
  make_batch(FirstRows(data_of(config), 6), {.batch_size = 8, .length = 10, .shuffle = false, .drop_last = false}, 5, batch);
  StepScalars scalars;
  scalars.step = 1;
  const StepResults results = trainer.engine().score(batch, scalars);
  EXPECT_NEAR(results.ce, loss / static_cast<double>(ids.size() - 1), 1e-5);
  std::filesystem::remove(path);
}

TEST(Generator, ChoosesByTheLogits) {
  const std::vector<double> logits = {0, std::log(3.0), -100, std::log(6.0)};  // 0.1, 0.3, 0, 0.6
  EXPECT_EQ(sampled(logits, {.temperature = 0}, 0.99), 3);
  EXPECT_EQ(sampled(logits, {}, 0.59), 3);
  EXPECT_EQ(sampled(logits, {}, 0.61), 1);
  EXPECT_EQ(sampled(logits, {}, 0.91), 0);
  EXPECT_EQ(sampled(logits, {.top = 2}, 0.91), 1) << "2 / 3 and 1 / 3";
  EXPECT_EQ(sampled(logits, {.temperature = 1e-3}, 0.99), 3);
}

TEST(Generator, IsForLanguageModels) {
  const auto device = open_cpu_device(1);
  Log log;
  const RunConfig config = image_config();
  Trainer trainer(config, data_of(config), nullptr, *device, log);
  trainer.start();
  const std::string path = file("no-language");
  trainer.save(path);
  EXPECT_THROW(Generator(path, *device), Error);
  std::filesystem::remove(path);
}

// The parameters of GaLore's LLaMA configurations (Zhao et al. 2024), as the transformers library counts them.
TEST(Language, PresetsHaveThePublishedSizes) {
  const std::pair<const char*, int64_t> sizes[] = {{"llama-60m", 58'073'600},
                                                   {"llama-130m", 134'105'856},
                                                   {"llama-350m", 367'969'280},
                                                   {"llama-1b", 1'339'082'752},
                                                   {"llama-7b", 6'738'415'616}};
  for (const auto& [preset, parameters] : sizes) {
    const RunConfig config = load_config(preset, {"method=adamw"});
    const Forecast forecast = make_forecast(config);
    EXPECT_EQ(forecast.parameters, parameters) << preset;
    EXPECT_EQ(forecast.memory[Purpose::dense_weight], 4 * parameters) << preset;
  }
}

// What an outsider would take for a language model must be one.
TEST(Language, DataOfOtherKindsAreRefused) {
  const RunConfig language = language_config(), text = text_config();
  const auto refused = [](const RunConfig& config, const Dataset& data) {
    try {
      check_fit(config, data.info(), nullptr);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused(language, Pieces()), "");
  EXPECT_NE(refused(text, Pieces()).find("does not fit the data set"), std::string::npos);
  EXPECT_NE(refused(language, Blobs()).find("does not fit the data set"), std::string::npos);
  EXPECT_NE(refused(language, Sentences()), "");
}

}  // namespace
}  // namespace comera::test
