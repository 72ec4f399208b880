// A batch in parts: the summed gradients equal the gradients of the whole batch, for every optimizer; and clipping by the norm of all
// gradients.
#include <cmath>

#include "core/config/method.h"
#include "tests/config/choices.h"
#include "tests/train/course.h"

namespace comera::test {
namespace {

struct TrainedInParts {
  std::vector<double> losses;
  std::map<std::string, std::vector<double>> values;
};

TrainedInParts trained_in_parts(const RunConfig& config, int64_t steps) {
  const auto device = open_cpu_device(2);
  Log log;
  Trainer trainer(config, data_of(config), nullptr, *device, log);
  trainer.start();
  EXPECT_EQ(trainer.engine().planned().total(), trainer.engine().memory().now().total());
  for (int64_t i = 0; i < steps; ++i) trainer.step();
  TrainedInParts out{log.losses, {}};
  for (Param& param : trainer.engine().params().params()) out.values[param.name] = to_host(*device, param.value);
  return out;
}

// Its gradient is 0 but for rounding, which an optimizer may scale up: softmax does not see a shift of all keys.
bool is_rounding(const std::string& name) { return name.ends_with("attn.k.bias"); }

void expect_near(const TrainedInParts& a, const TrainedInParts& b) {
  ASSERT_EQ(a.losses.size(), b.losses.size());
  for (size_t i = 0; i < a.losses.size(); ++i)
    EXPECT_NEAR(a.losses[i], b.losses[i], 1e-12 * (1 + std::fabs(a.losses[i]))) << "step " << i + 1;
  for (const auto& [name, values] : a.values) {
    if (is_rounding(name)) continue;
    double worst = 0;
    for (size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::fabs(values[i] - b.values.at(name)[i]));
    EXPECT_LE(worst, 1e-12) << name;
  }
}

class Parts : public testing::TestWithParam<std::tuple<const char*, const char*, const char*>> {};

TEST_P(Parts, EqualTheWholeBatch) {
  const auto& [model, weights, optimizer] = GetParam();
  RunConfig config = scripted(std::string(model) == "mlp" ? image_config() : text_config());
  config.train.precision = "f64";
  config.train.batch = 12;
  config.train.eval_every = 0;
  config.model.encoder.attention_dropout = 0.1;
  config.method.weights = weights;
  config.method.optimizer = optimizer;
  config.method.adam.eps = 1e-4;  // where v is near 0, m / sqrt(v) makes much of a last bit
  const TrainedInParts whole = trained_in_parts(config, 4);
  for (const int64_t parts : {2, 3, 12}) {
    SCOPED_TRACE(std::to_string(parts) + " parts");
    config.train.micro_batches = parts;
    expect_near(whole, trained_in_parts(config, 4));
  }
}

// But for batch norm, whose statistics are those of a part.
TEST(PartsOfConvolutions, WithGroupNormEqualTheWholeBatch) {
  for (const char* weights : choices_of("method.weights")) {
    SCOPED_TRACE(weights);
    RunConfig config = scripted(convolution_config());
    config.model.cnn.norm = "group";
    config.train.precision = "f64";
    config.train.batch = 12;
    config.train.eval_every = 0;
    config.method.weights = weights;
    config.method.adam.eps = 1e-4;
    const TrainedInParts whole = trained_in_parts(config, 4);
    config.train.micro_batches = 3;
    expect_near(whole, trained_in_parts(config, 4));
  }
}

RunConfig adamw_in_parts(int64_t parts) {
  RunConfig config = scripted(text_config());
  config.train.batch = 12;
  config.train.micro_batches = parts;
  config.train.eval_every = 0;
  config.train.precision = "f64";
  config.model.encoder.attention_dropout = 0.1;
  return config;
}

// All gradients of the first step one after another, and its results.
std::vector<double> gradients_of(const RunConfig& config, StepResults& results) {
  struct Last : Log {
    explicit Last(StepResults& to) : to(to) {}
    void on_step(const StepRecord& record) override { to = record.results; }
    StepResults& to;
  } last(results);
  const auto device = open_cpu_device(2);
  Trainer trainer(config, data_of(config), nullptr, *device, last);
  trainer.start();
  trainer.step();
  std::vector<double> all;
  for (Param& param : trainer.engine().params().params()) {
    const std::vector<double> grad = to_host(*device, param.grad);
    all.insert(all.end(), grad.begin(), grad.end());
  }
  return all;
}

TEST(Clipping, ScalesAllGradientsToTheLimit) {
  for (const int64_t parts : {1, 3}) {
    RunConfig config = adamw_in_parts(parts);
    StepResults results;
    const std::vector<double> raw = gradients_of(config, results);
    double norm2 = 0;
    for (const double g : raw) norm2 += g * g;
    ASSERT_GT(norm2, 0);
    EXPECT_EQ(results.grad_norm2, 0) << "computed only where it is needed";
    for (const double share : {0.25, 4.0}) {
      config.train.clip_norm = share * std::sqrt(norm2);
      const std::vector<double> clipped = gradients_of(config, results);
      const double factor = std::min(1.0, config.train.clip_norm / (std::sqrt(norm2) + 1e-6));
      EXPECT_NEAR(results.grad_norm2, norm2, 1e-12 * norm2);
      ASSERT_EQ(clipped.size(), raw.size());
      for (size_t i = 0; i < raw.size(); ++i) ASSERT_NEAR(clipped[i], factor * raw[i], 1e-12 * std::fabs(raw[i])) << i << ", " << share;
    }
  }
}

// A run ends after a part, when its process is killed: it goes on from its checkpoint with the bits of one that was not.
TEST(PartsOfABatch, ResumeBitForBit) {
  const auto device = open_cpu_device(2);
  for (const char* optimizer : {"adamw", "galore", "coap"}) {
    SCOPED_TRACE(optimizer);
    RunConfig config = adamw_in_parts(3);
    config.train.precision = "f32";
    config.train.clip_norm = 0.5;
    config.method.stash = "int8";
    config.method.optimizer = optimizer;
    config.method.galore.sums = config.method.coap.sums = "projected";
    shrink(config.method);
    Log log;
    Trainer trainer(config, data_of(config), nullptr, *device, log);
    trainer.start();
    const std::string saved = file("parts"), end = file("parts_end"), again = file("parts_again");
    for (int step = 0; step < 12; ++step) {
      if (step == 5) trainer.save(saved);
      trainer.step();
    }
    trainer.save(end);
    Trainer resumed(checkpoint_config(saved), data_of(config), nullptr, *device, log);
    resumed.restore(saved);
    for (int step = 5; step < 12; ++step) resumed.step();
    resumed.save(again);
    EXPECT_EQ(difference(end, again), "");
    for (const std::string& path : {saved, end, again}) std::filesystem::remove(path);
  }
}

class OneSentence final : public Dataset {
 public:
  const DatasetInfo& info() const override { return set_.info(); }
  void read(int64_t, int64_t length, Columns& out) const override { set_.read(5, length, out); }

 private:
  Sentences set_;
};

// Where all parts are the same, the projection from the first one is that of the whole batch.
TEST(ProjectedSums, OfEqualPartsEqualWholeSums) {
  RunConfig config = text_config();
  config.train.precision = "f64";
  config.train.batch = 12;
  config.train.micro_batches = 3;
  config.train.eval_every = 0;
  config.model.encoder.dropout = config.model.encoder.attention_dropout = 0;
  config.method.weights = "dense";
  config.method.adam.eps = 1e-4;
  shrink(config.method);
  set_each(config.method, "rank", int64_t{1});  // one sentence has one class token: more directions of some gradients mean nothing
  const auto device = open_cpu_device(2);
  const auto trained = [&](const char* optimizer, const char* sums, int64_t& gradient_bytes) {
    config.method.optimizer = optimizer;
    config.method.galore.sums = config.method.coap.sums = sums;
    Log log;
    const auto data = std::make_shared<OneSentence>();
    Trainer trainer(config, data, nullptr, *device, log);
    trainer.start();
    EXPECT_EQ(trainer.engine().planned().total(), trainer.engine().memory().now().total());
    gradient_bytes = trainer.engine().planned()[Purpose::gradient];
    for (int step = 0; step < 8; ++step) trainer.step();
    TrainedInParts out{log.losses, {}};
    for (Param& param : trainer.engine().params().params()) out.values[param.name] = to_host(*device, param.value);
    return out;
  };
  for (const char* optimizer : {"galore", "coap"}) {
    SCOPED_TRACE(optimizer);
    int64_t full = 0, projected = 0;
    const TrainedInParts whole = trained(optimizer, "full", full), small = trained(optimizer, "projected", projected);
    EXPECT_LT(projected, full / 2);
    ASSERT_EQ(whole.losses.size(), small.losses.size());
    EXPECT_LT(whole.losses.back(), whole.losses.front());
    for (size_t i = 0; i < whole.losses.size(); ++i) EXPECT_NEAR(whole.losses[i], small.losses[i], 1e-10);
    for (const auto& [name, values] : whole.values)
      for (size_t i = 0; i < values.size() && !is_rounding(name); ++i) ASSERT_NEAR(values[i], small.values.at(name)[i], 1e-9) << name;
  }
}

// Running statistics and ranges become the mean of what each part alone would have made of those before the step.
TEST(PartsOfABatch, FollowWithTheMeanOfTheirStates) {
  const auto device = open_cpu_device(2);
  RunConfig config = convolution_config();
  config.model.cnn.norm = "batch";
  config.model.cnn.dropout = 0;  // whose masks continue from part to part
  config.method.stash = "int8";
  config.train.precision = "f64";
  config.train.lr = config.train.lr_core = config.train.lr_rank = 0;
  config.train.batch = 12;
  config.train.eval_every = 0;
  Log log;
  const auto begin = [&](int64_t parts) {
    config.train.micro_batches = parts;
    auto trainer = std::make_unique<Trainer>(config, data_of(config), nullptr, *device, log);
    trainer->start();
    return trainer;
  };
  const auto states_of = [&](Trainer& trainer) {
    std::map<std::string, std::vector<double>> states;
    for (const State& state : trainer.engine().params().states()) states[state.name] = to_host(*device, state.value);
    return states;
  };
  const auto together = begin(3);
  config.train.batch = 4;
  const auto alone = begin(1);  // batch after batch, each from the first states
  std::map<std::string, std::vector<double>> sum, first = states_of(*alone);
  for (int step = 0; step < 2; ++step) {
    together->step();
    sum.clear();
    for (int part = 0; part < 3; ++part) {
      for (State& state : alone->engine().params().states()) from_host(*device, state.value, first.at(state.name));
      alone->step();
      for (const auto& [name, values] : states_of(*alone)) {
        sum[name].resize(values.size());
        for (size_t i = 0; i < values.size(); ++i) sum[name][i] += values[i];
      }
    }
    first.clear();
    for (auto& [name, values] : sum) {
      for (double& value : values) value /= 3;
      first[name] = values;
    }
    const auto followed = states_of(*together);
    ASSERT_EQ(followed.size(), first.size());
    for (const auto& [name, values] : first)
      for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(followed.at(name)[i], values[i], 1e-12) << name << ", step " << step;
  }
}

// Parts of one batch never mix two passes over the data, and no row of a pass is in two batches.
TEST(PartsOfABatch, HoldTheRowsOfTheWholeBatch) {
  const Sentences set;
  BatchOptions options;
  options.length = 10;
  options.shuffle = options.drop_last = true;
  options.batch_size = 12;
  BatchOptions in_parts = options;
  in_parts.batch_size = 4;
  in_parts.parts = 3;
  Batch whole, part;
  int64_t cursor = 0, cursor_of_parts = 0;
  for (int batch = 0; batch < 12; ++batch) {  // two passes and more over 64 rows
    make_batch(set, options, cursor, whole);
    std::vector<int32_t> labels;
    for (int64_t p = 0; p < 3; ++p) {
      make_batch(set, in_parts, cursor_of_parts, part, p);
      labels.insert(labels.end(), part.ints["labels"].begin(), part.ints["labels"].end());
      cursor_of_parts = part.next_cursor;
    }
    cursor = whole.next_cursor;
    EXPECT_EQ(labels, whole.ints["labels"]) << batch;
    EXPECT_EQ(cursor, cursor_of_parts) << batch;
  }
}

// Each part is read by one process; all know where the next batch begins.
TEST(PartsOfABatch, AreReadByOneProcessEach) {
  const Sentences set;
  for (const bool pack : {false, true}) {
    BatchOptions options;
    options.length = 10;
    options.batch_size = 4;
    options.parts = 5;
    options.pack = pack;
    Prefetcher whole(set, options, 0);
    options.processes = 3;
    std::vector<std::unique_ptr<Prefetcher>> shared;
    for (options.process = 0; options.process < 3; ++options.process) shared.push_back(std::make_unique<Prefetcher>(set, options, 0));
    for (int batch = 0; batch < 8; ++batch) {  // two passes and more over 64 rows
      std::vector<int64_t> cursors(3);
      int64_t cursor = 0;
      for (size_t part = 0; part < 5; ++part) {
        const Batch &one = whole.next(), &other = shared[part % 3]->next();
        EXPECT_EQ(one.rows, other.rows);
        EXPECT_EQ(one.ints, other.ints);
        cursors[part % 3] = other.next_cursor;
        cursor = one.next_cursor;
      }
      EXPECT_EQ(cursors, std::vector<int64_t>(3, cursor)) << batch;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Parts,
                         testing::Combine(testing::Values("mlp", "encoder"), testing::ValuesIn(choices_of("method.weights")),
                                          testing::ValuesIn(choices_of("method.optimizer"))),
                         name_of_choices);

}  // namespace
}  // namespace comera::test
