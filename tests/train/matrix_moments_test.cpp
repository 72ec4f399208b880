// Moments of gradients of a model folder, and the tensor trains that they choose.
#include "core/train/matrix_moments.h"

#include <cmath>
#include <filesystem>

#include "core/config/named_methods.h"
#include "core/train/model_import.h"
#include "core/train/scorer.h"
#include "tests/train/small_runs.h"

namespace comera::test {
namespace {

const std::string kFolder = std::string(COMERA_SOURCE_DIR) + "/tests/golden_models/bert_classifier";
constexpr int32_t kRareTokens = 100;  // no row has one from here on

class TokenRows final : public Dataset {
 public:
  explicit TokenRows(int64_t rows = 64) {
    info_.rows = rows;
    info_.classes = 3;
    info_.vocab_size = 113;
    info_.unknown_token = 1;
    info_.fingerprint = "rows";
    describe_texts(info_);
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override {
    const Philox random{6, 0, static_cast<uint32_t>(row)};
    std::vector<int32_t>& ids = out.ints["ids"];
    ids.clear();
    for (int64_t i = 0; i < std::min<int64_t>(max_length, 12); ++i)
      ids.push_back(static_cast<int32_t>(2 + random.word(static_cast<uint64_t>(i)) % (kRareTokens - 2)));
    out.ints["segments"].assign(ids.size(), 0);
    out.ints["labels"] = {ids[1] % 3};
  }

 private:
  DatasetInfo info_;
};

RunConfig folder_config() {
  RunConfig config = config_of_folder(kFolder);
  config.train.batch = 8;
  config.model.length = 12;
  return config;
}

double trace_of(const std::vector<float>& moments, int64_t side) {
  double sum = 0;
  const int64_t step = std::ssize(moments) == side ? 1 : side + 1;
  for (int64_t i = 0; i < side; ++i) sum += moments[static_cast<size_t>(i * step)];
  return sum;
}

TEST(MatrixMoments, AreThoseOfGradientsOverBatches) {
  const auto data = std::make_shared<TokenRows>();
  const std::set<std::string> names = {"emb.token.weight", "enc0.attn.q.weight", "enc1.ffn.in.weight"};
  const auto one = matrix_moments(kFolder, folder_config(), names, data, 1),
             three = matrix_moments(kFolder, folder_config(), names, data, 3);
  ASSERT_EQ(one.size(), 3u);
  const std::map<std::string, std::pair<int64_t, int64_t>> sides = {
      {"emb.token.weight", {24, 113}}, {"enc0.attn.q.weight", {24, 24}}, {"enc1.ffn.in.weight", {24, 44}}};
  for (const auto& [name, side] : sides) {
    const GradientMoments& moments = one.at(name);
    ASSERT_EQ(std::ssize(moments.shorter), side.first * side.first) << name;
    ASSERT_EQ(std::ssize(moments.longer), side.second == side.first ? side.second * side.second : side.second) << name;
    const double square = trace_of(moments.shorter, side.first);
    EXPECT_GT(square, 0) << name;
    EXPECT_NEAR(trace_of(moments.longer, side.second), square, 1e-5 * square) << "both are the square of the gradient's length";
    EXPECT_GT(trace_of(three.at(name).shorter, side.first), square) << name;
  }
  const std::vector<float>& tokens = three.at("emb.token.weight").longer;
  for (int32_t token = 0; token < 113; ++token)
    EXPECT_TRUE((token >= 2 && token < kRareTokens) || tokens[static_cast<size_t>(token)] == 0) << token;
  EXPECT_GT(trace_of(tokens, 113), 0);
}

// Batches of the same rows have the same gradients as long as the weights stay.
TEST(MatrixMoments, TheModelDoesNotMove) {
  const auto data = std::make_shared<TokenRows>(8);
  const std::set<std::string> names = {"enc0.attn.q.weight"};
  const auto one = matrix_moments(kFolder, folder_config(), names, data, 1), three = matrix_moments(kFolder, folder_config(), names, data, 3);
  const double square = trace_of(one.begin()->second.shorter, 24);
  EXPECT_NEAR(trace_of(three.begin()->second.shorter, 24), 3 * square, 1e-4 * square);
}

// How far the outputs of tensor trains are from those of the dense model, in the mean of all rows.
double distance(const TrainFit& fit) {
  RunConfig config = folder_config(), dense = config;
  config.method.weights = "tt";
  for (TTOptions* kind : {&config.model.tt.attention, &config.model.tt.ffn_in, &config.model.tt.ffn_out}) kind->cores = 1, kind->rank = 8;
  config.model.tt.embedding.tensorise = config.model.tt.classifier.tensorise = false;
  const std::unique_ptr<Device> device = open_device("cpu", 1);
  std::vector<std::vector<double>> outputs[2];
  for (const bool as_trains : {false, true}) {
    RunConfig& used = as_trains ? config : dense;
    const std::string path = file("weighted");
    write_start(read_weights(kFolder, used, as_trains ? fit : TrainFit()), used, path);
    Scorer(path, *device).score(TokenRows(), [&](int64_t, const std::vector<double>& row) { outputs[as_trains].push_back(row); });
    std::filesystem::remove(path);
  }
  double sum = 0;
  for (size_t row = 0; row < outputs[0].size(); ++row)
    for (size_t k = 0; k < 3; ++k) sum += std::pow(outputs[0][row][k] - outputs[1][row][k], 2);
  return std::sqrt(sum / static_cast<double>(outputs[0].size()));
}

TEST(MatrixMoments, TrainsByGradientsKeepTheOutputs) {
  const double plain = distance({}), by_gradients = distance({.gradient_batches = 16, .data = std::make_shared<TokenRows>()});
  EXPECT_LT(by_gradients, 0.7 * plain);
}

}  // namespace
}  // namespace comera::test
