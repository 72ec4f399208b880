// Captured training is eager training, byte for byte: the same runs on the recording device op by op, and with steps that
// are captured and replayed (recording_device.h says what would show as a difference).
// To cover a new method: nothing, it is in the table of methods; a new preset: nothing; a new optimizer or
// weights: nothing; a new model: its small run; a new stash: one word in the list below.
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/config/named_methods.h"
#include "core/train/scorer.h"
#include "tests/config/choices.h"
#include "tests/ops/cases/recording_device.h"
#include "tests/train/captured_on.h"

namespace comera::test {
namespace {

void run(const RunConfig& config, Device& device, Course& course, const std::string& saved, bool replay = true,
         int64_t* captures = nullptr) {
  Trainer trainer(config, data_of(config), data_of(config), device, course);
  trainer.engine().replay(replay);
  trainer.start();
  while (!trainer.finished()) one_step(trainer);
  trainer.save(saved);
  EXPECT_EQ(trainer.engine().memory().now().total(), trainer.engine().planned().total()) << device.name();
  if (captures) *captures = trainer.engine().captures();
}

// Of each plan: the gradients, the update and what lies between them once it has lived long enough, the scores once the validation set,
// which has more than enough batches, was scored.
int64_t expected_captures(const RunConfig& config, const Course& course) {
  const int64_t of_steps = config.train.micro_batches > 1 || config.train.clip_norm > 0 ? 3 : 2;
  int64_t captures = 0;
  for (size_t i = 0; i < course.plans.size(); ++i) {
    const int64_t begin = course.plans[i], end = i + 1 < course.plans.size() ? course.plans[i + 1] : 4 * kSteps + 4;
    const auto inside = [&](int64_t time) { return time >= begin && time < end; };
    if (std::count_if(course.steps.begin(), course.steps.end(), inside) > StepProgram::kEagerRuns) captures += of_steps;
    if (std::any_of(course.scores.begin(), course.scores.end(), inside)) captures += 1;
  }
  return captures;
}

void expect_captured_is_eager(const RunConfig& config) {
  const std::string eager = file("eager"), captured = file("captured");
  Course a, b;
  RecordingDevice plain, device;
  run(config, plain, a, eager, false);
  EXPECT_EQ(plain.captured, 0);
  int64_t captures = 0;
  run(config, device, b, captured, true, &captures);
  ASSERT_EQ(a.lines.size(), b.lines.size());
  for (size_t i = 0; i < a.lines.size(); ++i) ASSERT_EQ(a.lines[i], b.lines[i]);
  EXPECT_EQ(difference(eager, captured), "");
  if (config.tensorised()) {
    EXPECT_GE(b.events["truncation"], 1) << "the test wants a cut on its way";
    EXPECT_GE(b.events["regrowth"], 1) << "and a growth";
    EXPECT_EQ(b.events["stage"], 2) << "there and back";
  } else {
    EXPECT_EQ(b.plans.size(), 1u);
  }
  EXPECT_EQ(captures, expected_captures(config, b)) << b.plans.size() << " plans";
  EXPECT_EQ(device.captured, captures);
  EXPECT_GT(device.launches, 2 * kSteps / 3) << "else little was replayed";
  std::filesystem::remove(eager);
  std::filesystem::remove(captured);
}

// ---- methods ------------------------------------------------------------------------------------------------------

using Point = std::tuple<const char*, const char*, const char*, const char*>;

class CapturedMethods : public testing::TestWithParam<Point> {};

TEST_P(CapturedMethods, IsEagerTrainingByteForByte) {
  const auto& [model, weights, stash, optimizer] = GetParam();
  RunConfig config = scripted(std::string(model) == "mlp" ? image_config() : text_config());
  config.method.weights = weights;
  config.method.stash = stash;
  config.method.optimizer = optimizer;
  expect_captured_is_eager(config);
}

INSTANTIATE_TEST_SUITE_P(All, CapturedMethods,
                         testing::ValuesIn(methods_of(std::vector{"mlp", "encoder"}, choices_of("method.weights"),
                                                      std::vector{"exact", "int8"}, choices_of("method.optimizer"))),
                         name_of_choices);

TEST(Captured, EveryTask) {
  for (const char* task : choices_of("model.task")) {
    SCOPED_TRACE(task);
    RunConfig config = scripted(task_config(task));
    expect_captured_is_eager(config);
  }
}

TEST(Captured, EveryModeOfComera) {
  for (const char* mode : {"reference", "selective", "paper"})
    for (const RunConfig& small : {image_config(), text_config()}) {
      SCOPED_TRACE(std::string(mode) + " " + small.model.kind);
      RunConfig config = scripted(small);
      config.method.comera.mode = mode;
      expect_captured_is_eager(config);
    }
}

TEST(Captured, TrainsThatAreTableAndHead) {
  for (const char* task : {"masked", "language"}) {
    SCOPED_TRACE(task);
    RunConfig config = scripted(task_config(task));
    config.model.encoder.tied = config.model.decoder.tied = true;
    expect_captured_is_eager(config);
  }
}

TEST(Captured, OptionsOfMethodsAndModels) {
  const std::pair<const char*, std::function<void(RunConfig&)>> options[] = {
      {"both sides of GaLore",
       [](RunConfig& config) {
         config.method.weights = "dense";
         config.method.optimizer = "galore";
         config.method.galore.side = "both";
       }},
      {"projections refreshed during backward",
       [](RunConfig& config) {
         config.method.weights = "dense";
         config.method.optimizer = "galore";
         config.method.galore.refresh = "together";  // else there is one in every step, and none is captured
         config.method.update = "backward";
       }},
      {"8-bit moments of tables",
       [](RunConfig& config) {
         config.method.weights = "dense";
         config.method.optimizer = "adam8bit";
         config.method.adam8bit.embeddings = true;
       }},
      {"sums of projected gradients",
       [](RunConfig& config) {
         config.method.weights = "dense";
         config.method.optimizer = "galore";
         shrink(config.method);
         config.method.galore.gap = 40;  // others are captured in between
         config.method.galore.sums = "projected";
         config.train.micro_batches = 2;
       }},
      {"gradients of rows of tables",
       [](RunConfig& config) {
         if (config.model.kind == "mlp") config = scripted(clicks_config());
         config.method.weights = "dense";
         config.method.table_gradients = "rows";
       }},
      {"groups of the int8 stash",
       [](RunConfig& config) {
         config.method.stash = "int8";
         config.method.mesa.groups = 3;
       }},
      {"the bf16 stash", [](RunConfig& config) { config.method.stash = "bf16"; }},
      {"the bf16 stash of dense weights",
       [](RunConfig& config) {
         config.method.weights = "dense";
         config.method.stash = "bf16";
       }},
      {"sampled rows", [](RunConfig& config) { config.method.wta.ratio = 0.2; }},
      {"sampled rows of dense weights in int8, in checkpointed blocks",
       [](RunConfig& config) {
         config.method.weights = "dense";
         config.method.stash = "int8";
         config.method.wta.ratio = 0.2;
         config.method.checkpoint = 1;
       }},
      {"probabilities computed again", [](RunConfig& config) { config.model.encoder.keep_probabilities = false; }},
      {"the waist", [](RunConfig& config) { config.method.waist = true; }},
      {"the waist over the int8 stash",
       [](RunConfig& config) {
         config.method.waist = true;
         config.method.stash = "int8";
       }},
      {"checkpointed blocks", [](RunConfig& config) { config.method.checkpoint = 1; }},
      {"checkpointed blocks with the waist",
       [](RunConfig& config) {
         config.method.waist = true;
         config.method.checkpoint = 2;
       }},
      {"double precision", [](RunConfig& config) { config.train.precision = "f64"; }},
      {"a course of the rates",
       [](RunConfig& config) {
         config.train.schedule = "cosine";
         config.train.warmup = 5;
       }},
      {"a floor under the ranks", [](RunConfig& config) { config.method.comera.floor_rank = true; }},
      {"more ranks than modes can use",  // more than four times as many as any matrix has inputs; images have no attention
       [](RunConfig& config) {
         config.model.tt.attention = {.in_modes = {24}, .out_modes = {24}, .ranks = {1, 4 * 48 + 3, 1}};
       }},
  };
  for (const auto& [name, change] : options)
    for (const RunConfig& small : {image_config(), text_config()}) {
      SCOPED_TRACE(std::string(name) + ", " + small.model.kind);
      RunConfig config = scripted(small);
      change(config);
      expect_captured_is_eager(config);
    }
}

TEST(Captured, Convolutions) {
  const std::pair<const char*, std::function<void(RunConfig&)>> options[] = {
      {"batch norm", [](RunConfig&) {}},
      {"group norm, max pooling, int8 stash",
       [](RunConfig& config) {
         config.model.cnn.norm = "group";
         config.model.cnn.pooling = "max";
         config.method.stash = "int8";
       }},
      {"residual blocks, checkpointed, with the waist",
       [](RunConfig& config) {
         config.model.cnn.residual = true;
         config.model.cnn.convolutions = 2;
         config.method.checkpoint = 2;
         config.method.waist = true;
       }},
  };
  for (const char* weights : choices_of("method.weights"))
    for (const auto& [name, change] : options) {
      SCOPED_TRACE(std::string(weights) + ", " + name);
      RunConfig config = scripted(convolution_config());
      config.method.weights = weights;
      change(config);
      expect_captured_is_eager(config);
    }
}

// ---- presets ------------------------------------------------------------------------------------------------------

// The preset's model, method and course, with sizes of at most those of the small run, for its made-up data.
RunConfig shrunk(const std::string& preset) {
  RunConfig config = load_config(preset, {});
  ModelConfig small = small_run(config.model.kind).model;
  const FieldValues least = field_values(fields_of(small));
  FieldValues values = field_values(fields_of(config.model));
  for (auto& [path, value] : values) {
    if (path != "length" && !path.starts_with(config.model.kind + ".")) continue;
    if (int64_t* size = std::get_if<int64_t>(&value)) *size = std::min(*size, std::get<int64_t>(least.at(path)));
    if (std::holds_alternative<std::vector<int64_t>>(value)) value = least.at(path);
  }
  set_field_values(fields_of(config.model), values);
  if (config.model.cnn.residual) config.model.cnn.convolutions = 2;
  config.train.micro_batches = std::min<int64_t>(config.train.micro_batches, 2);
  TTKinds& tt = config.model.tt;
  for (TTOptions* options : {&tt.attention, &tt.ffn_in, &tt.ffn_out, &tt.classifier, &tt.convolution, &tt.embedding}) {
    options->in_modes.clear();
    options->out_modes.clear();
    options->ranks.clear();
    options->rank = 6;
  }
  return scripted(config);
}

// Every preset under a third of the methods, the next preset under another third.
TEST(Captured, EveryPresetUnderAThirdOfTheMethods) {
  std::vector<std::pair<std::string, RunConfig>> runs;
  for (const std::string& preset : preset_names()) runs.emplace_back(preset, shrunk(preset));
  ASSERT_FALSE(runs.empty());
  for (const RunConfig& small : small_runs())
    if (std::none_of(runs.begin(), runs.end(), [&](const auto& run) { return run.second.model.kind == small.model.kind; }))
      runs.emplace_back(small.model.kind, scripted(small));
  std::set<std::string> seen;  // sizes of one model are the same when they are shrunk
  for (size_t preset = 0; preset < runs.size(); ++preset)
    for (size_t i = preset % 3; i < named_methods().size(); i += 3) {
      const auto& [name, run] = runs[preset];
      const NamedMethod& method = named_methods()[i];
      SCOPED_TRACE(name + " under " + method.id);
      RunConfig config = run;
      RunConfig key = config;
      key.train = {};
      key.data = {};
      if (!seen.insert(method.id + config_to_json(key).dump()).second) continue;
      const ComeraConfig comera = config.method.comera;
      config.method = method.config;
      config.method.comera = comera;
      expect_captured_is_eager(scripted(config));
    }
}

// ---- lists --------------------------------------------------------------------------------------------------------

// What one step calls, op by op.
std::map<std::string, int64_t> calls_of_a_step(const RunConfig& config, Device& device) {
  Engine engine(config, device);
  engine.allocate();
  OpProfile profile;
  engine.profile(&profile);
  StepScalars scalars;
  scalars.step = scalars.optimizer_step = 1;
  engine.step(first_batch(config), scalars);
  std::map<std::string, int64_t> calls;
  for (const auto& [name, entry] : profile.ops) calls[name] = entry.calls;
  return calls;
}

// Where the device gathers, the core merges of all layers are a few calls: more layers add only the products with the
// batch, two forward and four backward each; queries, keys and values share one forward and two backward.
TEST(Captured, CoreMergesOfAllLayersAreMadeTogether) {
  std::map<std::string, int64_t> calls[2], one_by_one;
  for (const int64_t more : {0, 1}) {
    RunConfig config = text_config();
    config.model.encoder.layers = 1 + 2 * more;
    RecordingDevice device;
    calls[more] = calls_of_a_step(config, device);
    if (more) one_by_one = calls_of_a_step(config, *open_cpu_device(1));
  }
  constexpr int64_t kMoreEncoders = 2, kProducts = 3 * 6 + (3 * 3 + 3);
  for (auto& step : calls) step["gemm"] += step["linear"];
  EXPECT_EQ(calls[1]["gemm"] - calls[0]["gemm"], kMoreEncoders * kProducts);
  for (const char* op : {"fill", "rank_mask", "rank_mask_backward", "copy", "adam"}) EXPECT_EQ(calls[1][op], calls[0][op]) << op;
  EXPECT_GT(one_by_one["gemm"], calls[1]["gemm"] + kMoreEncoders * kProducts) << "else there was nothing to gather";
  EXPECT_GT(one_by_one["rank_mask"], calls[1]["rank_mask"]);
}

// What that costs in memory, planned and not taken: two thousandths of six encoders, whose halves are all there at the turn
// to backward anyway, and 3.5 % of a small MLP: halves are rounded up to lines of 16 bytes.
TEST(Captured, GatheringTakesLittleMemory) {
  for (const auto& [preset, most] : {std::pair{"encoder6-mnli", 1.002}, {"mlp-fashion", 1.036}}) {
    const RunConfig config = load_config(preset, {});
    RecordingDevice device;
    const int64_t gathered = Engine(config, device).planned().total(), plain = Engine(config, *open_cpu_device(1)).planned().total();
    EXPECT_LE(static_cast<double>(gathered), most * static_cast<double>(plain)) << preset;
  }
}

// ---- batches ------------------------------------------------------------------------------------------------------

// Packed: another number of sequences and tokens in every batch. The buffers on the device have the sizes of the config,
// what is not in use is marked in them, so one program serves all batches.
TEST(Captured, PackedBatchesOfEveryFilling) {
  RunConfig config = scripted(text_config());
  config.data.pack = true;
  config.data.token_budget = 40;
  expect_captured_is_eager(config);
  std::set<std::pair<int64_t, int64_t>> fillings;
  Batch batch;
  for (int64_t cursor = 0; fillings.size() < 8 && cursor < 640; cursor = batch.next_cursor) {
    make_batch(Sentences(), batch_options(config), cursor, batch);
    fillings.insert({batch.sequences, batch.tokens});
    EXPECT_EQ(batch.ints["ids"].size(), 40u);
    EXPECT_EQ(batch.ints["lengths"].size(), 7u);
  }
  EXPECT_GE(fillings.size(), 8u) << "else the batches were all alike";
}

// A replayed op cannot throw for what it finds in a tensor, and a wrong id would read somewhere else.
TEST(Captured, ABatchThatDoesNotFitTheModelIsRefusedBeforeItIsSent) {
  const RunConfig config = text_config();
  RecordingDevice device;
  Engine engine(config, device);
  engine.allocate();
  const Batch good = first_batch(config);
  StepScalars scalars;
  for (int i = 0; i < 5; ++i) {
    scalars.step = ++scalars.optimizer_step;
    engine.step(good, scalars);
  }
  const std::pair<const char*, std::function<void(Batch&)>> faults[] = {
      {"token id 60 is outside", [](Batch& batch) { batch.ints["ids"][3] = 60; }},
      {"token id -1 is outside", [](Batch& batch) { batch.ints["ids"][0] = -1; }},
      {"segment 2 is outside", [](Batch& batch) { batch.ints["segments"][7] = 2; }},
      {"position 10 is outside", [](Batch& batch) { batch.ints["positions"][2] = 10; }},
      {"label 2 is outside", [](Batch& batch) { batch.ints["labels"][1] = 2; }},
      {"label -2 is outside", [](Batch& batch) { batch.ints["labels"][1] = -2; }},
      {"length of a sequence 11 is outside", [](Batch& batch) { batch.ints["lengths"][0] = 11; }},
      {"sequence 7 of the batch lies outside", [](Batch& batch) { batch.ints["starts"][7] = 80; }},
      {"another capacity", [](Batch& batch) { batch.ints["ids"].pop_back(); }},
  };
  const int64_t launches = device.launches, eager = device.eager_calls;
  for (const auto& [text, spoil] : faults) {
    Batch bad = good;
    spoil(bad);
    const auto said = [&](const std::function<void()>& call) {
      try {
        call();
      } catch (const Error& error) {
        return std::string(error.what());
      }
      return std::string("nothing");
    };
    for (const std::string& message : {said([&] { engine.step(bad, scalars); }), said([&] { engine.score(bad, scalars); })})
      EXPECT_NE(message.find(text), std::string::npos) << message;
  }
  EXPECT_EQ(device.launches, launches);
  EXPECT_EQ(device.eager_calls, eager);
  engine.step(good, scalars);
  EXPECT_EQ(device.launches, launches + 2);
}

// ---- what may and what may not capture anew -----------------------------------------------------------------------

TEST(Captured, TwoHundredLiveEditsCaptureNothing) {
  for (RunConfig config : {image_config(), text_config()}) {
    config.train.steps = 400;
    config.train.lr_rank = 0;  // the ranks stay, so that nothing is cut
    config.method.comera.late_after = 10;
    RecordingDevice device;
    Log log;
    Trainer trainer(config, data_of(config), nullptr, device, log);
    trainer.start();
    while (trainer.state().step < 20) trainer.step();
    ASSERT_EQ(device.captured, 2);
    const std::vector<RankLayer*> layers = [&] {
      std::vector<RankLayer*> out;
      for (RankLayer& layer : trainer.engine().params().rank_layers()) out.push_back(&layer);
      return out;
    }();
    const char* paths[] = {"train.lr_core",
                           "train.lr",
                           "method.adam.weight_decay",
                           "method.comera.threshold",
                           "method.comera.rank_weight",
                           "method.comera.target",
                           "method.comera.late_loss_weight",
                           "method.comera.late_weight",
                           "method.comera.loss_target"};
    const int64_t eager = device.eager_calls;
    double last = trainer.last_step().results.loss;
    int64_t seen = 0;
    for (int edit = 0; edit < 200; ++edit) {
      const std::string value = Json(0.001 + 0.0001 * ((edit * 37) % 50)).dump();
      const RankLayer& layer = *layers[static_cast<size_t>(edit) % layers.size()];
      if (edit % 11 == 9)
        trainer.edit("rank.weight." + layer.name, value);
      else if (edit % 11 == 10)  // as many as there are: a limit that holds back nothing
        trainer.edit("rank.cap." + layer.name + ".1", std::to_string(layer.ranks[0]->count()));
      else
        trainer.edit(paths[edit % 11], value);
      trainer.step();
      seen += trainer.last_step().results.loss != last;
      last = trainer.last_step().results.loss;
    }
    EXPECT_EQ(log.count("truncation") + log.count("regrowth"), 0);
    EXPECT_EQ(device.captured, 2) << config.model.kind;
    EXPECT_EQ(device.eager_calls, eager);
    EXPECT_GT(seen, 190) << "the steps were no steps";
  }
}

// As a GPU is tested, where there is one.
TEST(Captured, WhatIsAskedOfAGpu) {
  RecordingDevice device;
  for (const RunConfig& small : {image_config(), text_config()}) captured_is_eager_on(device, scripted(small));
  edits_capture_nothing_on(device, 100);
  captures_leak_nothing_on(device, 40, 0);
}

TEST(Captured, ACutAndAGrowthCaptureTheTwoProgramsOfAStepOnceEach) {
  RunConfig config = image_config();
  config.train.lr_rank = 0;
  config.train.steps = 400;
  RecordingDevice device;
  Course course;
  Trainer trainer(config, data_of(config), nullptr, device, course);
  trainer.start();
  const std::string cap = "rank.cap." + trainer.engine().params().rank_layers()[0].name + ".2";
  const auto steps = [&](int64_t count) {
    for (int64_t i = 0; i < count; ++i) trainer.step();
  };
  steps(15);
  EXPECT_EQ(device.captured, 2);
  trainer.edit(cap, "2");
  steps(4);
  EXPECT_EQ(device.captured, 2) << "a cap sets entries to 0, nothing more";
  EXPECT_EQ(course.events["truncation"], 0);
  steps(1);
  EXPECT_EQ(course.events["truncation"], 1);
  steps(StepProgram::kEagerRuns);
  EXPECT_EQ(device.captured, 2) << "eager after the new plan";
  steps(1);
  EXPECT_EQ(device.captured, 4);
  steps(30);
  EXPECT_EQ(device.captured, 4);
  trainer.edit(cap, "6");
  steps(StepProgram::kEagerRuns);
  EXPECT_EQ(course.events["regrowth"], 1);
  EXPECT_EQ(device.captured, 4);
  steps(20);
  EXPECT_EQ(device.captured, 6);
  EXPECT_EQ(trainer.engine().captures(), 6);
}

TEST(Captured, AProfiledStepIsEagerAndChangesNothing) {
  const RunConfig config = scripted(text_config());
  RecordingDevice plain, looked_at;
  double losses[2] = {};
  for (RecordingDevice* device : {&plain, &looked_at}) {
    Log log;
    Trainer trainer(config, data_of(config), nullptr, *device, log);
    trainer.start();
    for (int i = 0; i < 8; ++i) trainer.step();
    OpProfile profile;
    const int64_t eager = device->eager_calls;
    EXPECT_EQ(trainer.last_step().times.forward, 0) << "not known of a replayed step";
    if (device == &looked_at) trainer.engine().profile(&profile);
    trainer.step();
    if (device == &looked_at) {
      int64_t calls = 0;
      for (const auto& [name, entry] : profile.ops) calls += entry.calls;
      EXPECT_EQ(calls, device->eager_calls - eager);
      EXPECT_GT(calls, 100);
      EXPECT_EQ(profile.ops["adam"].calls, 1) << "all parameters in one call";
      EXPECT_GT(trainer.last_step().times.forward, 0);
    } else {
      EXPECT_EQ(device->eager_calls, eager);
    }
    trainer.engine().profile(nullptr);
    for (int i = 0; i < 4; ++i) trainer.step();
    losses[device == &looked_at] = log.losses.back();
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(plain.captured, 2);
  EXPECT_EQ(looked_at.captured, 2);
}

TEST(Captured, WithoutReplayTheSameDeviceComputesTheSame) {
  const RunConfig config = scripted(text_config());
  const std::string replayed = file("replayed"), op_by_op = file("op-by-op");
  RecordingDevice a, b;
  Course first, second;
  run(config, a, first, replayed);
  run(config, b, second, op_by_op, false);
  EXPECT_EQ(first.lines, second.lines);
  EXPECT_EQ(difference(replayed, op_by_op), "");
  EXPECT_EQ(b.captured, 0);
  EXPECT_EQ(b.launches, 0);
  std::filesystem::remove(replayed);
  std::filesystem::remove(op_by_op);
}

TEST(Captured, TheConfigMaySayOpByOp) {
  RunConfig config = scripted(text_config());
  config.train.cuda_graph = false;
  RecordingDevice device;
  Log log;
  Trainer trainer(config, data_of(config), nullptr, device, log);
  trainer.start();
  for (int step = 0; step < 5; ++step) trainer.step();
  trainer.drain();
  EXPECT_EQ(trainer.engine().captures(), 0);
  EXPECT_EQ(device.launches, 0);
}

TEST(Captured, ARestoredRunGoesOnByteForByte) {
  const RunConfig config = scripted(text_config());
  const std::string middle = file("captured-middle"), end = file("captured-end"), again = file("captured-again");
  RecordingDevice device;
  TrainObserver silent;
  {
    Trainer whole(config, data_of(config), nullptr, device, silent);
    whole.start();
    while (!whole.finished()) {
      one_step(whole);
      if (whole.state().step == 33) whole.save(middle);  // eager steps after it here, replayed ones there
    }
    whole.save(end);
  }
  Trainer resumed(checkpoint_config(middle), data_of(config), nullptr, device, silent);
  resumed.restore(middle);
  while (!resumed.finished()) one_step(resumed);
  resumed.save(again);
  EXPECT_EQ(difference(end, again), "");
  for (const std::string& path : {middle, end, again}) std::filesystem::remove(path);
}

TEST(Captured, NotANumberStopsBeforeTheWeightsChange) {
  RecordingDevice device;
  Log log;
  Trainer trainer(image_config(), std::make_shared<Blobs>(), nullptr, device, log);
  trainer.start();
  for (int i = 0; i < 6; ++i) trainer.step();
  Param& head = *trainer.engine().params().find("head.weight");
  std::vector<double> values = to_host(device, head.value);
  values[3] = std::nan("");
  from_host(device, head.value, values);
  const std::vector<double> other = to_host(device, trainer.engine().params().find("head.bias")->value);
  EXPECT_THROW(trainer.step(), Error);
  EXPECT_EQ(to_host(device, trainer.engine().params().find("head.bias")->value), other);
}

TEST(Captured, ScoresOfAFileAreTheSame) {
  const RunConfig config = scripted(text_config());
  const std::string saved = file("scored");
  TrainObserver silent;
  const auto cpu = open_cpu_device(1);
  Trainer trainer(config, data_of(config), nullptr, *cpu, silent);
  trainer.start();
  trainer.step();
  trainer.save(saved);
  RecordingDevice device;
  std::vector<double> logits[2];
  Score scores[2];
  for (const bool captured : {false, true}) {
    Scorer scorer(saved, captured ? static_cast<Device&>(device) : *cpu);
    scores[captured] = scorer.score(*data_of(config), [&](int64_t, const std::vector<double>& row) {
      logits[captured].insert(logits[captured].end(), row.begin(), row.end());
    });
  }
  ASSERT_EQ(logits[0].size(), logits[1].size());
  for (size_t i = 0; i < logits[0].size(); ++i) EXPECT_NEAR(logits[0][i], logits[1][i], 2e-6);
  EXPECT_NEAR(scores[0].loss, scores[1].loss, 1e-6);
  EXPECT_EQ(scores[0].examples, 64);
  EXPECT_EQ(device.captured, 1);
  std::filesystem::remove(saved);
}

}  // namespace
}  // namespace comera::test
