// The text classifier at toy size: gradients, layouts of a batch, evaluation, stashes.
#include <cmath>
#include <sstream>

#include "tests/layers/five_points.h"
#include "tests/models/net.h"

namespace comera::model_test {
namespace {

const std::vector<int64_t> kLengths = {5, 2, 6, 1};

void expect_near(const std::map<std::string, Values>& actual, const std::map<std::string, Values>& expected, double tolerance) {
  double largest = 0;
  for (const auto& [name, values] : expected)
    for (double value : values) largest = std::max(largest, std::fabs(value));
  for (const auto& [name, values] : expected) EXPECT_LE(relative_difference(actual.at(name), values, 1e-3 * largest), tolerance) << name;
}

TEST(Encoder, GradientsOfDenseAndTensorisedModels) {
  for (const bool tensorise : {false, true})
    for (const double dropout : {0.0, 0.2}) {
      Net net(toy_encoder(dropout), tensorise);
      shake(net);
      const TextRows rows = some_rows(kLengths, 20, 3);
      net.put(lay_out(rows, 17, 6, true));  // 14 tokens in 17: three of nobody
      const double worst = check_directions(net.rig, net.probe(), {.tolerance = 1e-9, .directions = 1});
      std::ostringstream text;
      text << worst;
      RecordProperty((tensorise ? "tensorised_" : "dense_") + std::string(dropout > 0 ? "dropout" : "plain"), text.str());
    }
}

TEST(Encoder, GradientsWithRmsNorms) {
  for (const bool tensorise : {false, true}) {
    ModelConfig config = toy_encoder(0.2);
    config.encoder.norm = "rms";
    Net net(config, tensorise);
    shake(net);
    EXPECT_EQ(net.rig.params.find("emb.norm.beta"), nullptr);
    net.put(lay_out(some_rows(kLengths, 20, 3), 17, 6, true));
    check_directions(net.rig, net.probe(), {.tolerance = 1e-9, .directions = 1});
  }
}

TEST(Encoder, GradientsWithRotaryPositions) {
  for (const bool tensorise : {false, true})
    for (const int64_t segments : {0, 2}) {
      ModelConfig config = toy_encoder(0.2);
      config.encoder.rotary = true;
      config.encoder.segments = segments;
      config.encoder.embedding_std = 0.7;
      Net net(config, tensorise);
      shake(net);
      EXPECT_EQ(net.rig.params.find("emb.position"), nullptr);
      net.put(lay_out(some_rows(kLengths, 20, 3), 17, 6, true));
      check_directions(net.rig, net.probe(), {.tolerance = 1e-9, .directions = 1});
    }
}

// The loss the engine minimises: cross-entropy and the rank penalty.
TEST(Encoder, GradientsOfTheWholeLoss) {
  Net net(toy_encoder(0.1), true);
  shake(net);
  net.put(padded(some_rows(kLengths, 20, 3), 6));
  net.rig.scalars.rank_weight = 0.3;
  net.gradients();
  const std::map<std::string, Values> gradients = net.all_gradients();
  for (const char* name :
       {"enc0.attn.q.rank.1", "emb.token.rank.0", "enc1.ffn.in.core.2", "head.weight", "emb.segment", "classifier.fc.rank.2"}) {
    const Tensor value = net.rig.params.find(name)->value;
    const Values start = net.rig.get(value), &gradient = gradients.at(name);
    Values direction = noise_values(value.count(), 77);
    const auto loss = [&](double distance) {
      Values moved = start;
      for (size_t i = 0; i < moved.size(); ++i) moved[i] += distance * direction[i];
      net.rig.set(value, moved);
      net.gradients();
      return net.rig.results.loss;
    };
    const double h = 5e-4, slope = (8 * (loss(h) - loss(-h)) - (loss(2 * h) - loss(-2 * h))) / (12 * h);
    EXPECT_NEAR(slope, dot(gradient, direction), 1e-9) << name;
    net.rig.set(value, start);
  }
}

TEST(Encoder, PackedAndPaddedBatchesAgree) {
  for (const bool tensorise : {false, true}) {
    Net net(toy_encoder(), tensorise);
    shake(net);
    const TextRows rows = some_rows(kLengths, 20, 3);
    net.put(padded(rows, 6));
    const Values logits = net.gradients();
    const std::map<std::string, Values> gradients = net.all_gradients();
    for (const int64_t tokens : {14, 20}) {
      net.put(lay_out(rows, tokens, 6, true));
      EXPECT_LE(relative_difference(net.gradients(), logits), 1e-13);
      expect_near(net.all_gradients(), gradients, 1e-11);
    }
  }
}

// An unused sequence has length 0 and no label; it is as if it were not there.
TEST(Encoder, EmptySequencesDoNotCount) {
  Net net(toy_encoder(), true);
  shake(net);
  TextRows rows = some_rows(kLengths, 20, 3);
  net.put(padded(rows, 6));
  Values logits = net.gradients();
  const double ce = net.rig.results.ce;
  const std::map<std::string, Values> gradients = net.all_gradients();
  rows.ids.emplace_back();
  rows.segments.emplace_back();
  rows.labels.push_back(-1);
  net.put(padded(rows, 6));
  Values more = net.gradients();
  for (double value : more) EXPECT_TRUE(std::isfinite(value));
  more.resize(logits.size());
  EXPECT_LE(relative_difference(more, logits), 1e-13);
  EXPECT_NEAR(net.rig.results.ce, ce, 1e-13);
  EXPECT_EQ(net.rig.results.examples, 4);
  expect_near(net.all_gradients(), gradients, 1e-11);
}

TEST(Encoder, TokensOfNobodyChangeNothing) {
  for (const bool tensorise : {false, true}) {
    Net net(toy_encoder(0.2), tensorise);
    shake(net);
    const TextRows rows = some_rows({5, 2, 6}, 20, 3);
    net.put(padded(rows, 6));
    const Values logits = net.gradients();
    const std::map<std::string, Values> gradients = net.all_gradients();
    TextBatch other = lay_out(rows, 18, 6, false, 1);  // id, segment and position 1 instead of 0
    for (size_t t = 0; t < other.ids.size(); ++t)
      if (static_cast<int32_t>(t % 6) >= other.lengths[t / 6]) other.ids[t] = static_cast<int32_t>(t % 20);
    net.put(other);
    EXPECT_EQ(net.gradients(), logits);
    expect_near(net.all_gradients(), gradients, 1e-13);
  }
}

TEST(Encoder, OneSequenceOfOneToken) {
  for (const bool tensorise : {false, true}) {
    ModelConfig config = toy_encoder(0.1);
    Net net(config, tensorise);
    shake(net);
    net.put(padded(some_rows({1}, 20, 3), 1));
    EXPECT_EQ(net.evaluate().size(), 3u);
    check_directions(net.rig, net.probe(), {.tolerance = 1e-6, .directions = 1});
  }
}

TEST(Encoder, EvaluationIsTrainingWithoutDropout) {
  Net dropping(toy_encoder(0.3), true), plain(toy_encoder(), true);
  shake(dropping);
  shake(plain);
  const TextRows rows = some_rows(kLengths, 20, 3);
  dropping.put(padded(rows, 6));
  plain.put(padded(rows, 6));
  const Values logits = dropping.evaluate();
  EXPECT_EQ(logits, plain.gradients());
  EXPECT_NE(logits, dropping.gradients());
  EXPECT_EQ(logits, dropping.evaluate());
  for (const Arena::Block& block : dropping.rig.arena.blocks()) EXPECT_GE(block.died, 0) << block.tag;
}

// With and without kept probabilities, and in 8-bit codes, the model computes the same; codes move gradients a little.
TEST(Encoder, WhatIsKeptDoesNotChangeWhatIsComputed) {
  for (const bool tensorise : {false, true}) {
    ModelConfig config = toy_encoder(0.1), recomputing = config;
    recomputing.encoder.keep_probabilities = false;
    Net net(config, tensorise), lean(recomputing, tensorise), coded(config, tensorise, DType::f64, make_int8_stash(3, 0.9)),
        both(recomputing, tensorise, DType::f64, make_int8_stash(1, 0.9));
    const TextRows rows = some_rows(kLengths, 20, 3);
    std::vector<Values> logits;
    std::vector<int64_t> kept;
    std::vector<std::map<std::string, Values>> gradients;
    for (Net* each : {&net, &lean, &coded, &both}) {
      shake(*each);
      each->put(padded(rows, 6));
      logits.push_back(each->gradients());
      gradients.push_back(each->all_gradients());
      kept.push_back(each->rig.arena.peak_by_purpose()[Purpose::activation]);
    }
    EXPECT_EQ(logits[0], logits[1]);
    EXPECT_EQ(logits[0], logits[2]);
    EXPECT_EQ(logits[0], logits[3]);
    expect_near(gradients[1], gradients[0], 1e-11);
    double largest = 0;
    for (const auto& [name, values] : gradients[0])
      for (double value : values) largest = std::max(largest, std::fabs(value));
    for (const auto& [name, values] : gradients[0]) {
      EXPECT_LE(relative_difference(gradients[2].at(name), values, largest / 20), 0.15) << name;
      EXPECT_LE(relative_difference(gradients[3].at(name), values, largest / 20), 0.15) << name;
    }
    EXPECT_LT(kept[1], kept[0]);
    EXPECT_LT(kept[2] * 2, kept[0]);
    EXPECT_LT(kept[3], kept[2]);
  }
}

TEST(Encoder, EveryParameterLearns) {
  for (const bool tensorise : {false, true}) {
    Net net(toy_encoder(0.1), tensorise);
    net.put(padded(some_rows(kLengths, 20, 3), 6));
    net.gradients();
    for (const auto& [name, gradient] : net.all_gradients())
      EXPECT_GT(length(gradient), name.find(".k.bias") == std::string::npos ? 1e-6 : -1) << name;  // scores shifted alike: 0
  }
}

TEST(Encoder, LearnsToyLabels) {
  for (const bool tensorise : {false, true}) {
    Net net(toy_encoder(), tensorise, DType::f32);
    net.put(padded(some_rows({5, 2, 6, 1, 4, 3}, 20, 3, 9), 6));
    for (double& rate : net.rig.scalars.learning_rate) rate = 0.01;
    net.gradients();
    const double before = net.rig.results.ce;
    for (int i = 0; i < 60; ++i) net.step();
    EXPECT_LT(net.rig.results.ce, before / 5);
    EXPECT_EQ(net.rig.results.correct, 6);
  }
}

}  // namespace
}  // namespace comera::model_test
