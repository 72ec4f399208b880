// Small runs on made-up data, for the tests of this folder: perceptron, convolutions, encoder and decoder that train in milliseconds.
#pragma once
#include <gtest/gtest.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/base/rng.h"
#include "core/methods/comera.h"
#include "core/methods/rank_grow.h"
#include "core/train/checkpoint.h"
#include "core/train/trainer.h"
#include "tests/models/two_blocks.h"

namespace comera::test {

// Images whose label is where the light is; learnable in a few steps.
class Blobs final : public Dataset {
 public:
  Blobs() {
    info_.rows = 96;
    info_.classes = 4;
    info_.height = info_.width = 8;
    info_.fingerprint = "blobs";
    describe_images(info_);
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t, Columns& out) const override {
    const Philox random{5, 0, static_cast<uint32_t>(row)};
    const auto label = static_cast<int32_t>(row % 4);
    out.ints["labels"] = {label};
    std::vector<float>& pixels = out.reals["pixels"];
    pixels.assign(64, 0);
    for (size_t i = 0; i < 64; ++i) {
      const bool lit = static_cast<int32_t>(i / 32 * 2 + i % 8 / 4) == label;
      pixels[i] = 0.3f * uniform_half(random.word(i)) + (lit ? 0.5f : 0.0f);
    }
  }

 private:
  DatasetInfo info_;
};

// Sentences of made-up tokens; the label is the second token's parity.
class Sentences final : public Dataset {
 public:
  Sentences() {
    info_.rows = 64;
    info_.classes = 2;
    info_.vocab_size = 60;
    info_.unknown_token = 1;
    info_.fingerprint = "sentences";
    describe_texts(info_);
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override {
    const Philox random{6, 0, static_cast<uint32_t>(row)};
    const int64_t length = 3 + random.word(0) % static_cast<uint32_t>(max_length - 2);
    std::vector<int32_t>& ids = out.ints["ids"];
    ids.assign(1, 1);
    out.ints["segments"].assign(static_cast<size_t>(length), 0);
    for (int64_t i = 1; i < length; ++i) ids.push_back(static_cast<int32_t>(2 + random.word(static_cast<uint64_t>(i)) % 58));
    out.ints["labels"] = {ids[1] % 2};
  }

 private:
  DatasetInfo info_;
};

// Pieces of a made-up text: each token says the next one, but for one in eight.
class Pieces final : public Dataset {
 public:
  Pieces() {
    info_.rows = 48;
    info_.vocab_size = 24;
    info_.mask_token = 0;
    info_.fingerprint = "pieces";
    describe_stream(info_);
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t max_length, Columns& out) const override {
    const Philox random{7, 0, static_cast<uint32_t>(row)};
    std::vector<int32_t>&ids = out.ints["ids"], &labels = out.ints["labels"];
    ids.assign(1, static_cast<int32_t>(row % 24));
    for (int64_t i = 1; i < max_length - row % 3; ++i) {
      const uint32_t word = random.word(static_cast<uint64_t>(i));
      ids.push_back(word % 8 == 0 ? static_cast<int32_t>(word / 8 % 24) : (ids.back() * 5 + 7) % 24);
    }
    labels.assign(ids.begin() + 1, ids.end());
    labels.push_back(-1);
  }

 private:
  DatasetInfo info_;
};

// Clicks: two categories say the label but for one in eight, the others and the numbers are noise.
class Clicks final : public Dataset {
 public:
  static constexpr int64_t kRows[] = {50, 3, 40};
  Clicks() {
    info_.rows = 96;
    info_.classes = 2;
    info_.fingerprint = "clicks";
    info_.fields.add({.name = "numbers", .dtype = DType::f32, .width = 4});
    for (size_t c = 0; c < std::size(kRows); ++c) info_.fields.add({.name = "category" + std::to_string(c), .high = kRows[c]});
    info_.fields.add({.name = "labels", .low = -1, .high = 2});
  }
  const DatasetInfo& info() const override { return info_; }
  void read(int64_t row, int64_t, Columns& out) const override {
    const Philox random{8, 0, static_cast<uint32_t>(row)};
    std::vector<float>& numbers = out.reals["numbers"];
    numbers.clear();
    for (uint64_t i = 0; i < 4; ++i) numbers.push_back(uniform_half(random.word(i)));
    for (size_t c = 0; c < std::size(kRows); ++c)
      out.ints["category" + std::to_string(c)] = {static_cast<int32_t>(random.word(4 + c) % static_cast<uint32_t>(kRows[c]))};
    const bool noise = random.word(9) % 8 == 0;
    out.ints["labels"] = {(out.ints["category0"][0] + out.ints["category1"][0]) % 2 == (noise ? 1 : 0)};
  }

 private:
  DatasetInfo info_;
};

// How they train: fast enough to see something, with a look for dead slices every ten steps.
inline void set_course(RunConfig& config, int64_t steps, int64_t batch, double rate) {
  config.train.steps = steps;
  config.train.batch = batch;
  config.train.lr_core = config.train.lr = rate;
  config.train.lr_rank = 3e-2;
  config.train.eval_every = 0;
  config.method.comera.prune_every = 10;
}

inline RunConfig image_config() {
  RunConfig config;
  config.model.kind = "mlp";
  config.model.classes = 4;
  config.model.mlp = {.inputs = 64, .hidden = {24, 16}, .dropout = 0.2};
  config.model.tt.ffn_in.rank = 6;
  config.model.tt.ffn_in.cores = 2;
  set_course(config, 120, 16, 5e-3);
  return config;
}

inline RunConfig convolution_config() {
  RunConfig config;
  config.model.kind = "cnn";
  config.model.classes = 4;
  config.model.cnn = {.height = 8, .width = 8, .widths = {8, 12}, .strides = {2, 2}, .convolutions = 1, .groups = 2, .dropout = 0.1};
  config.model.tt.convolution.rank = 6;
  config.model.tt.convolution.cores = 2;
  set_course(config, 60, 16, 5e-3);
  return config;
}

inline RunConfig patches_config() {
  RunConfig config;
  config.model.kind = "vit";
  config.model.classes = 4;
  config.model.vit = {.height = 8, .width = 8, .patch = 4, .layers = 2, .d_model = 16, .heads = 2, .d_ff = 24, .dropout = 0.1};
  for (TTOptions* options : {&config.model.tt.attention, &config.model.tt.ffn_in, &config.model.tt.ffn_out, &config.model.tt.convolution}) {
    options->rank = 5;
    options->cores = 2;
  }
  set_course(config, 60, 16, 5e-3);
  return config;
}

inline RunConfig text_config() {
  RunConfig config;
  config.model.kind = "encoder";
  config.model.classes = 2;
  config.model.length = 10;
  config.model.encoder = two_blocks(24, 48, 60, 10, 0.1);
  config.model.tt.attention.rank = config.model.tt.ffn_in.rank = config.model.tt.ffn_out.rank = config.model.tt.classifier.rank = 5;
  config.model.tt.embedding.rank = 6;
  set_course(config, 40, 8, 3e-3);
  return config;
}

inline RunConfig language_config() {
  RunConfig config;
  config.model.kind = "decoder";
  config.model.task = "language";
  config.model.length = 10;
  config.model.decoder = {.layers = 2, .d_model = 24, .d_ff = 40, .vocab = 24, .heads = 4, .key_heads = 2, .embedding_std = 1};
  config.model.decoder.dropout = config.model.decoder.attention_dropout = 0.1;
  config.model.tt.attention.rank = config.model.tt.ffn_in.rank = config.model.tt.ffn_out.rank = 5;
  config.model.tt.embedding.rank = 6;
  set_course(config, 60, 8, 5e-3);
  return config;
}

inline RunConfig clicks_config() {
  RunConfig config;
  config.model.kind = "dlrm";
  config.model.task = "binary";
  config.model.classes = 2;
  config.model.dlrm = {.inputs = 4,
                       .tables = {std::begin(Clicks::kRows), std::end(Clicks::kRows)},
                       .width = 8,
                       .bottom = {12},
                       .top = {16},
                       .min_tt_rows = 10};
  config.model.tt.ffn_in.rank = 5;
  config.model.tt.ffn_in.cores = 2;
  config.model.tt.embedding.rank = 6;
  config.model.tt.embedding.cores = 2;
  set_course(config, 120, 16, 1e-2);
  return config;
}

// One of each kind of model.
inline std::vector<RunConfig> small_runs() {
  return {image_config(), convolution_config(), patches_config(), text_config(), language_config(), clicks_config()};
}

inline RunConfig small_run(const std::string& kind) {
  for (const RunConfig& run : small_runs())
    if (run.model.kind == kind) return run;
  throw std::invalid_argument("no small run of model.kind " + kind);
}

// Of a task; where none is its own, that of the encoder.
inline RunConfig task_config(const std::string& task) {
  const TaskInfo info = find_task(task);
  RunConfig config = small_run(info.per_token ? info.per_token : "encoder");
  config.model.task = task;
  if (info.classes > 0) config.model.classes = info.classes;
  if (config.mask_share() == 0) return config;
  config.model.encoder.vocab = 24;  // of Pieces
  config.model.encoder.segments = 0;
  config.model.encoder.tied = false;
  config.data.mask_share = 0.2;
  return config;
}

inline const ComeraState& comera_of(Trainer& trainer) { return dynamic_cast<Comera&>(trainer.engine().method()).state(); }

class Log : public TrainObserver {
 public:
  std::vector<double> losses, accuracies;
  std::vector<std::string> events;
  void on_step(const StepRecord& record) override {
    losses.push_back(record.results.loss);
    accuracies.push_back(record.accuracy);
  }
  void on_event(int64_t, const char* kind, const Json&) override { events.push_back(kind); }
  int64_t count(const std::string& kind) const { return std::count(events.begin(), events.end(), kind); }
};

inline std::shared_ptr<const Dataset> data_of(const RunConfig& config) {
  const Reads reads = config.model.info().reads;
  if (reads == Reads::images) return std::make_shared<Blobs>();
  if (reads == Reads::clicks) return std::make_shared<Clicks>();
  if (config.model.per_token()) return std::make_shared<Pieces>();
  return std::make_shared<Sentences>();
}

// As a trainer's, without tokens that are dropped.
inline BatchOptions batch_options(const RunConfig& config) {
  BatchOptions options;
  options.batch_size = config.train.batch;
  options.length = config.model.length;
  options.pack = config.data.pack;
  options.token_budget = config.token_capacity();
  return options;
}

inline Batch first_batch(const RunConfig& config) {
  Batch batch;
  make_batch(*data_of(config), batch_options(config), 0, batch);
  return batch;
}

// A path of this process for a checkpoint.
inline std::string file(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("comera-" + std::to_string(::getpid()) + "-" + name)).string();
}

// The first tensor in which two checkpoints differ; empty: none.
inline std::string difference(const std::string& a, const std::string& b) {
  const SafetensorsFile first(a), second(b);
  if (first.entries().size() != second.entries().size()) return "another number of tensors";
  for (const auto& [name, entry] : first.entries()) {
    const SafetensorsEntry& other = second.entry(name);
    if (entry.shape != other.shape || std::memcmp(first.data(name), second.data(name), static_cast<size_t>(entry.end - entry.begin)) != 0)
      return name;
  }
  return first.metadata() == second.metadata() ? "" : "metadata";
}

// A run on `device` and one on `other` that resumes it from step 11 end with the same bytes.
inline void expect_the_same_when_resumed(const RunConfig& config, const std::string& name, Device& device, Device& other) {
  const std::string middle = file(name + "-middle"), end = file(name + "-end"), again = file(name + "-again");
  TrainObserver silent;
  Trainer trainer(config, data_of(config), nullptr, device, silent);
  trainer.start();
  while (trainer.state().step < 11) trainer.step();
  trainer.save(middle);
  while (!trainer.finished()) trainer.step();
  trainer.save(end);
  Trainer resumed(config, data_of(config), nullptr, other, silent);
  resumed.restore(middle);
  while (!resumed.finished()) resumed.step();
  resumed.save(again);
  EXPECT_EQ(difference(end, again), "");
  for (const std::string& path : {middle, end, again}) std::filesystem::remove(path);
}

}  // namespace comera::test
