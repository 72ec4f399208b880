// The language model at toy size: gradients in every form, what a token sees, layouts of a batch, parameters.
#include "core/layers/tt_export.h"
#include "tests/layers/five_points.h"
#include "tests/models/net.h"

namespace comera::model_test {
namespace {

ModelConfig toy_decoder() {
  ModelConfig config;
  config.kind = "decoder";
  config.task = "language";
  config.length = 6;
  config.decoder = {.layers = 2, .d_model = 12, .d_ff = 16, .vocab = 20, .heads = 3, .embedding_std = 0.5};
  for (TTOptions* options : {&config.tt.attention, &config.tt.ffn_in, &config.tt.ffn_out}) {
    options->cores = 2;
    options->rank = 3;
  }
  config.tt.embedding.cores = 3;
  config.tt.embedding.rank = 4;
  return config;
}

ModelConfig gpt2() {
  ModelConfig config = toy_decoder();
  config.decoder.positions = "learned";
  config.decoder.position_rows = 7;
  config.decoder.feed_forward = "gelu_tanh";
  config.decoder.norm = "layer";
  config.decoder.bias = config.decoder.tied = true;
  config.tt.embedding.tensorise = false;
  return config;
}

ModelConfig grouped() {
  ModelConfig config = toy_decoder();
  config.decoder.heads = 4;
  config.decoder.key_heads = 2;
  config.decoder.head_width = 6;
  config.decoder.tied = config.decoder.keep_probabilities = true;
  config.tt.embedding.tensorise = false;
  return config;
}

// Logits from a tensor train.
ModelConfig train_head() {
  ModelConfig config = toy_decoder();
  config.tt.head = {.rank = 3, .cores = 2};
  return config;
}

// One tensor train as table and head.
ModelConfig tied_train() {
  ModelConfig config = toy_decoder();
  config.decoder.tied = true;
  config.tt.embedding = {.rank = 4, .cores = 2};
  return config;
}

const std::vector<int64_t> kTextLengths = {5, 2, 6, 1};

void put(Net& net, const TextBatch& text) {
  net.put(text);
  std::vector<int32_t> next(text.ids.size(), -1);  // of the same sequence; the last token of each has none
  for (size_t s = 0; s < text.starts.size(); ++s)
    for (int32_t t = 0; t + 1 < text.lengths[s]; ++t) {
      const auto at = static_cast<size_t>(text.starts[s] + t);
      next[at] = text.ids[at + 1];
    }
  net.batch["labels"] = net.rig.put_ids(next);
}

using Form = std::pair<const char*, ModelConfig (*)()>;
class EveryDecoder : public testing::TestWithParam<Form> {};
INSTANTIATE_TEST_SUITE_P(All, EveryDecoder,
                         testing::Values(Form{"llama", toy_decoder}, Form{"gpt2", gpt2}, Form{"grouped", grouped},
                                         Form{"train_head", train_head}, Form{"tied_train", tied_train}),
                         [](const auto& info) { return info.param.first; });

TEST_P(EveryDecoder, GradientsAgreeWithFiniteDifferences) {
  for (const bool tensorise : {false, true})
    for (const double dropout : {0.0, 0.2}) {
      ModelConfig config = GetParam().second();
      config.decoder.dropout = config.decoder.attention_dropout = dropout;
      Net net(config, tensorise);
      shake(net);
      put(net, lay_out(some_rows(kTextLengths, 20, 3), 17, 6, true));  // 14 tokens in 17: three of nobody
      check_directions(net.rig, net.probe(), {.step = 3e-4, .tolerance = 1e-9, .directions = 1});
    }
}

TEST_P(EveryDecoder, ATokenSeesItselfAndThoseBeforeIt) {
  Net net(GetParam().second(), false);
  TextRows rows = some_rows({6, 6}, 20, 3);
  put(net, padded(rows, 6));
  const Values before = net.evaluate();
  rows.ids[0][3] = (rows.ids[0][3] + 1) % 20;
  put(net, padded(rows, 6));
  const Values after = net.evaluate();
  for (int64_t token = 0; token < 12; ++token) {
    const auto logits = [&](const Values& all) { return Values(all.begin() + token * 20, all.begin() + (token + 1) * 20); };
    EXPECT_EQ(logits(before) == logits(after), token < 3 || token >= 6) << token;
  }
}

TEST_P(EveryDecoder, PackedAndPaddedBatchesGiveTheSameLogitsAndGradients) {
  Net net(GetParam().second(), false);
  shake(net);
  const TextRows rows = some_rows(kTextLengths, 20, 3);
  std::vector<Values> logits;
  std::vector<std::map<std::string, Values>> gradients;
  for (const TextBatch& batch : {padded(rows, 6), lay_out(rows, 14, 6, true)}) {
    put(net, batch);
    const Values all = net.gradients();
    gradients.push_back(net.all_gradients());
    logits.emplace_back();
    for (size_t s = 0; s < batch.starts.size(); ++s)
      logits.back().insert(logits.back().end(), all.begin() + 20 * batch.starts[s],
                           all.begin() + 20 * (batch.starts[s] + batch.lengths[s]));
  }
  EXPECT_LE(relative_difference(logits[0], logits[1]), 1e-13);
  for (const auto& [name, values] : gradients[0]) {
    if (name.ends_with("attn.k.bias")) continue;  // 0 but for rounding
    EXPECT_LE(relative_difference(gradients[1].at(name), values, 1e-3), 1e-12) << name;
  }
}

TEST(Decoder, HasTheParametersOfItsForm) {
  Net llama(toy_decoder(), false), other(gpt2(), false), groups(grouped(), false), trains(toy_decoder(), true);
  const auto shape = [](Net& net, const char* name) {
    const Param* param = net.rig.params.find(name);
    return param ? param->shape : Shape();
  };
  EXPECT_EQ(shape(llama, "head.weight"), (Shape{20, 12}));
  EXPECT_EQ(shape(llama, "dec1.ffn.gate.weight"), (Shape{16, 12}));
  for (const char* none : {"head.bias", "dec0.attn.q.bias", "dec0.ffn.down.bias", "emb.position", "final.norm.beta"})
    EXPECT_EQ(llama.rig.params.find(none), nullptr) << none;
  // 2 V D + L (4 D^2 + 3 D F + 2 D) + D, as of LLaMA.
  EXPECT_EQ(llama.rig.params.count(), 2 * 20 * 12 + 2 * (4 * 144 + 3 * 12 * 16 + 24) + 12);
  EXPECT_EQ(other.rig.params.find("head.weight"), nullptr);
  EXPECT_EQ(other.rig.params.find("emb.token.weight")->uses, 2);
  EXPECT_EQ(shape(other, "emb.position"), (Shape{7, 12}));
  EXPECT_EQ(shape(other, "dec0.ffn.in.bias"), (Shape{16}));
  EXPECT_EQ(shape(groups, "dec0.attn.q.weight"), (Shape{24, 12}));
  EXPECT_EQ(shape(groups, "dec0.attn.v.weight"), (Shape{12, 12}));
  EXPECT_EQ(shape(groups, "dec0.attn.o.weight"), (Shape{12, 24}));
  EXPECT_FALSE(trains.rig.params.find("dec0.attn.q.bias")->trainable);
  EXPECT_EQ(trains.value("dec0.attn.q.bias"), Values(12, 0.0));
}

// The same logits and the same gradients of all other parameters, with 23 rows, which modes pad. The head of a masked model has a bias.
TEST(Decoder, ATiedTrainIsTheTableThatItStandsFor) {
  ModelConfig decoder = tied_train();
  decoder.decoder.vocab = 23;
  for (TTOptions* options : {&decoder.tt.attention, &decoder.tt.ffn_in, &decoder.tt.ffn_out, &decoder.tt.classifier})
    options->tensorise = false;
  ModelConfig masked = decoder;
  masked.kind = "encoder";
  masked.task = "masked";
  masked.encoder = {.layers = 1, .d_model = 12, .heads = 3, .d_ff = 16, .vocab = 23, .positions = 6};
  masked.encoder.tied = true;
  masked.encoder.dropout = masked.encoder.attention_dropout = 0;
  for (const ModelConfig& config : {decoder, masked}) {
    SCOPED_TRACE(config.kind);
    Net train(config, true), dense(config, false);
    shake(train);
    const HostTensor table = dense_weight(train.rig.params.rank_layers()[0], *train.rig.device, 1e-2);
    EXPECT_EQ(table.shape, (Shape{23, 12}));
    for (Param& param : dense.rig.params.params())
      dense.rig.set(param.value, param.name == "emb.token.weight" ? table.values : train.value(param.name));
    for (Net* net : {&train, &dense}) put(*net, padded(some_rows(kTextLengths, 20, 3), 6));
    EXPECT_LE(relative_difference(train.gradients(), dense.gradients()), 1e-12);
    const auto of_train = train.all_gradients();
    for (const auto& [name, values] : dense.all_gradients()) {
      if (name == "emb.token.weight" || name.ends_with("attn.k.bias")) continue;  // 0 but for rounding
      EXPECT_LE(relative_difference(of_train.at(name), values, 1e-3), 1e-11) << name;
    }
    EXPECT_EQ(train.rig.params.find("head.bias")->trainable, config.kind == "encoder");
    EXPECT_EQ(train.rig.params.find("emb.token.core.0")->uses, 2);
  }
}

TEST(Decoder, SaysWhatIsWrong) {
  const auto problem_of = [](const std::function<void(ModelConfig&)>& change) {
    ModelConfig config = toy_decoder();
    change(config);
    const std::vector<Problem> problems = config.problems(true);
    return problems.empty() ? "" : problems.front().path + ": " + problems.front().text;
  };
  EXPECT_EQ(problem_of([](ModelConfig&) {}), "");
  EXPECT_EQ(problem_of([](ModelConfig& c) { c.decoder.heads = 5; }), "decoder.heads: must divide d_model 12, is 5");
  EXPECT_EQ(problem_of([](ModelConfig& c) { c.decoder.key_heads = 2; }), "decoder.key_heads: must divide heads 3, is 2");
  EXPECT_EQ(problem_of([](ModelConfig& c) { c.decoder.head_width = 3; }), "decoder.head_width: must be even with rotary positions, is 3");
  EXPECT_EQ(problem_of([](ModelConfig& c) { c.task = "classification"; }),
            "task: must be language with model.kind decoder, is classification");
  EXPECT_EQ(problem_of([](ModelConfig& c) { c.kind = "encoder", c.encoder = test::two_blocks(12, 16, 20, 8, 0); }),
            "task: language needs model.kind decoder, is encoder");
  EXPECT_EQ(problem_of([](ModelConfig& c) { c.decoder.positions = "learned", c.decoder.position_rows = 5; }),
            "decoder.position_rows: must be at least model.length 6, is 5");
}

}  // namespace
}  // namespace comera::model_test
