// The largest method in a number of bytes: what is found fits, and what is a little larger does not.
#include "core/train/memory_fit.h"

#include <nlohmann/json.hpp>

#include "core/train/forecast.h"
#include "core/train/rank_setting.h"
#include "tests/config/choices.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

RunConfig wide_config() {
  RunConfig config = text_config();
  config.model.encoder = two_blocks(48, 96, 60, 10, 0.1);
  config.train.batch = 12;
  return config;
}

int64_t planned(const RunConfig& config) { return make_forecast(config).memory.total(); }

RunConfig with_parts(RunConfig config, int64_t parts) {
  config.train.micro_batches = parts;
  return config;
}

struct RankCase {
  std::string weights, optimizer, path;
};

// Weights that have a rank, and optimizers that have one, with dense matrices.
std::vector<RankCase> rank_cases() {
  std::vector<RankCase> cases;
  for (const std::string weights : choices_of("method.weights")) {
    if (weights == "tt") cases.push_back({weights, "adamw", "model.tt"});
    if (const std::string path = "method." + weights + ".rank"; find_setting(path)) cases.push_back({weights, "adamw", path});
  }
  for (const std::string optimizer : choices_of("method.optimizer"))
    if (const std::string path = "method." + optimizer + ".rank"; find_setting(path)) cases.push_back({"dense", optimizer, path});
  return cases;
}

class RankFit : public testing::TestWithParam<RankCase> {
 protected:
  RunConfig config(int64_t rank) const {
    RunConfig config = wide_config();
    config.method.weights = GetParam().weights;
    config.method.optimizer = GetParam().optimizer;
    return with_rank(config, rank);
  }
};

TEST_P(RankFit, ThePlanRisesWithTheRank) {
  const std::optional<RankSetting> setting = rank_setting(config(5));
  ASSERT_TRUE(setting);
  EXPECT_EQ(setting->path, GetParam().path);
  EXPECT_EQ(setting->configured, 5);
  EXPECT_EQ(setting->largest, 48);
  for (int64_t rank = 1; rank < 12; ++rank) EXPECT_LT(planned(config(rank)), planned(config(rank + 1))) << rank;
}

TEST_P(RankFit, SpareBytesGoIntoTheLargestRankThatFits) {
  const int64_t bytes = planned(config(9));
  for (const int64_t given : {bytes, bytes + 1, planned(config(10)) - 1}) {
    const auto fitted = fit_to_memory(config(5), given);
    ASSERT_TRUE(fitted);
    EXPECT_TRUE(fitted->fits);
    EXPECT_EQ(fitted->bytes, planned(fitted->config));
    EXPECT_LE(fitted->bytes, given);
    EXPECT_EQ(rank_setting(fitted->config)->configured, 9);
    EXPECT_EQ(fitted->config.train.micro_batches, 1);
  }
  EXPECT_EQ(rank_setting(fit_to_memory(config(5), int64_t{1} << 40)->config)->configured, 48) << "no larger one changes anything";
  EXPECT_EQ(rank_setting(fit_to_memory(config(5), int64_t{1} << 40, true)->config)->configured, 5) << "it is kept";
}

TEST_P(RankFit, TheRankFallsOnlyWhereNoNumberOfMicroBatchesFits) {
  const auto least = [&](int64_t rank) {
    int64_t bytes = planned(config(rank));
    for (const int64_t parts : {2, 3, 4, 6, 12}) bytes = std::min(bytes, planned(with_parts(config(rank), parts)));
    return bytes;
  };
  const auto in_place = fit_to_memory(config(5), least(5));
  ASSERT_TRUE(in_place && in_place->fits);
  EXPECT_EQ(rank_setting(in_place->config)->configured, 5);
  for (const int64_t bytes : {least(3), least(4) - 1}) {
    const auto lowered = fit_to_memory(config(5), bytes);
    ASSERT_TRUE(lowered && lowered->fits);
    EXPECT_EQ(rank_setting(lowered->config)->configured, 3) << "with no number of micro-batches one more fits";
    EXPECT_EQ(lowered->bytes, planned(lowered->config));
    EXPECT_LE(lowered->bytes, bytes);
    for (int64_t parts = 1; parts < lowered->config.train.micro_batches; ++parts)
      EXPECT_TRUE(12 % parts != 0 || planned(with_parts(config(3), parts)) > bytes) << parts << " micro-batches would do";
  }
  const auto none = fit_to_memory(config(5), least(1) - 1);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->fits);
  EXPECT_EQ(none->bytes, least(1));
}

INSTANTIATE_TEST_SUITE_P(Methods, RankFit, testing::ValuesIn(rank_cases()),
                         [](const auto& info) { return test_name(info.param.weights + "_" + info.param.optimizer); });

TEST(MemoryFit, TheFewestMicroBatchesThatFitAreUsed) {
  RunConfig config = wide_config();
  config.method.weights = "dense";
  EXPECT_FALSE(rank_setting(config));
  for (const int64_t parts : {1, 2, 3, 4, 6, 12}) {
    const auto fitted = fit_to_memory(with_parts(config, 6), planned(with_parts(config, parts)));
    ASSERT_TRUE(fitted && fitted->fits);
    EXPECT_EQ(fitted->config.train.micro_batches, parts);
    EXPECT_EQ(fitted->config.train.batch, 12) << "every step sees the same examples";
  }
}

TEST(MemoryFit, AMethodThatRefusesMicroBatchesKeepsTheBatchWhole) {
  RunConfig config = wide_config();
  config.method.weights = "dense";
  config.method.optimizer = "adalomo";
  config.method.update = "backward";
  const auto fitted = fit_to_memory(config, planned(config) - 1);
  ASSERT_TRUE(fitted);
  EXPECT_FALSE(fitted->fits);
  EXPECT_EQ(fitted->bytes, planned(config));
}

TEST(RankSetting, TensorTrainsKeepTheirProportions) {
  RunConfig config = wide_config();
  config.model.tt.attention.rank = 24;
  config.model.tt.ffn_in.rank = 12;
  config.model.tt.ffn_out.rank = config.model.tt.classifier.rank = 1;
  config.model.tt.embedding.ranks = {1, 32, 16, 32, 1};
  ASSERT_EQ(rank_setting(config)->configured, 24) << "of the matrices";
  EXPECT_EQ(config_to_json(with_rank(config, 24)), config_to_json(config));
  const TTKinds half = with_rank(config, 12).model.tt, twice = with_rank(config, 48).model.tt;
  EXPECT_EQ(half.attention.rank, 12);
  EXPECT_EQ(half.ffn_in.rank, 6);
  EXPECT_EQ(half.ffn_out.rank, 1) << "no rank falls below 1";
  EXPECT_EQ(half.embedding.ranks, (std::vector<int64_t>{1, 16, 8, 16, 1}));
  EXPECT_EQ(twice.attention.rank, 48);
  EXPECT_EQ(twice.ffn_in.rank, 24);
  EXPECT_EQ(twice.embedding.ranks, (std::vector<int64_t>{1, 32, 16, 32, 1})) << "given bond by bond they are the largest";
}

TEST(RankSetting, OfAMatrixIsAtMostItsShorterSideInAProjection) {
  RunConfig config = wide_config();
  EXPECT_EQ(rank_of_matrix(config, 64, 48), 0) << "ranks of bonds";
  config.method.weights = "dense";
  EXPECT_EQ(rank_of_matrix(config, 64, 48), 0) << "AdamW";
  config.method.optimizer = "galore";
  config.method.galore.rank = 50;
  EXPECT_EQ(rank_of_matrix(config, 64, 48), 48);
  EXPECT_EQ(rank_of_matrix(config, 64, 96), 50);
  config.method.optimizer = "coap";
  config.method.coap.rank_ratio = 10;
  EXPECT_EQ(rank_of_matrix(config, 64, 48), 4);
  EXPECT_EQ(rank_of_matrix(config, 8, 48), 1);
  config.method.weights = "lora";
  config.method.lora.rank = 60;
  EXPECT_EQ(rank_of_matrix(config, 64, 48), 60) << "factors may be wider than their matrix";
}

TEST(RankSetting, IsThatOfTheFormWhereThereIsOne) {
  RunConfig config = wide_config();
  config.method.optimizer = "galore";
  EXPECT_EQ(rank_setting(config)->path, "model.tt");
  for (TTOptions TTKinds::*kind : {&TTKinds::attention, &TTKinds::ffn_in, &TTKinds::ffn_out, &TTKinds::classifier})
    (config.model.tt.*kind).tensorise = false;
  EXPECT_EQ(rank_setting(config)->configured, config.model.tt.embedding.rank) << "only the table is a tensor train";
  config.model.tt.embedding.tensorise = false;
  EXPECT_EQ(rank_setting(config)->path, "method.galore.rank") << "none is";
  config.method.optimizer = "coap";
  config.method.coap.rank_ratio = 4;
  EXPECT_FALSE(rank_setting(config)) << "the ranks follow the matrices";
}

}  // namespace
}  // namespace comera::test
