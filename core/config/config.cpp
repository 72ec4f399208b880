#include "core/config/config.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/config/renamed_settings.h"

namespace comera {

void DataConfig::fields(FieldVisitor& v) {
  v.field("set", set, {.title = "Data set", .help = "data set: a name (comera data list) or a path"});
  v.field(
      "vocab", vocab,
      {.title = "Vocabulary file",
       .help = "vocab.txt, tokenizer.json or a folder with one; empty = the BERT vocabulary; joined texts are bytes",
       .more =
           "A folder may also have vocab.json and merges.txt of GPT-2 or RoBERTa. The name of a downloaded set stands for its folder."});
  const When texts = models_that_read({Reads::texts});
  v.field(
      "text_column", text_column,
      {.title = "Text column",
       .help = "column (TSV, CSV, Parquet) or key (JSONL) with the text; empty = sentence, text, sentence1, question, premise, docstring",
       .when = models_that_read({Reads::texts, Reads::stream})});
  v.field("second_column", second_column,
          {.title = "Second text column",
           .help = "column or key with the second text of a pair; empty = sentence2, sentence, question2, hypothesis, code",
           .when = texts});
  v.field("label_column", label_column,
          {.title = "Label column", .help = "column or key with the label, a number or a name; empty = gold_label, label", .when = texts});
  v.field("join", join,
          {.title = "Join texts",
           .help = "join the texts of all rows and cut them into sequences of model.length; false: a sequence a row",
           .more = "The tokenizer's special tokens stand between texts. Language models always join them.",
           .when = {"model.task", {"masked"}}});
  v.field("pack", pack, {.title = "Pack sequences", .help = "pack whole sequences into a token budget: no padding"});
  v.field("token_budget", token_budget,
          {.title = "Token budget",
           .help = "tokens of a packed batch; 0 = half of batch * length",
           .range = {0, 1 << 24},
           .when = {"data.pack", {"true"}}});
  v.field("mask_share", mask_share,
          {.title = "Masked tokens",
           .help = "share of tokens that are masked and predicted, drawn again each epoch",
           .range = {0.01, 0.9},
           .when = {"model.task", {"masked"}}});
  v.field("token_dropout", token_dropout,
          {.title = "Token dropout", .help = "share of training tokens replaced by [UNK], drawn again each epoch", .range = {0, 0.9}});
  v.field("min_count", min_count,
          {.title = "Minimum count of a value",
           .help = "categorical values with fewer rows in the training file share one table row",
           .range = {1, 1e9},
           .when = models_that_read({Reads::clicks})});
  const When images = models_that_read({Reads::images});
  v.field("pixel_mean", pixel_mean,
          {.title = "Pixel mean", .help = "subtracted from pixels, which are 0 to 1", .range = {0, 1}, .when = images});
  v.field("pixel_std", pixel_std,
          {.title = "Pixel std",
           .help = "pixels are divided by it",
           .more = "Models of the transformers library mostly have mean 0.5 and std 0.5.",
           .range = {0.001, 1000},
           .when = images});
  v.field("holdout", holdout,
          {.title = "Holdout",
           .help = "share of rows held out for validation where data.set is one file or a folder of classes; 0 = none",
           .more = "Every n-th row, n = 1 / share. Other folders have their own validation split.",
           .range = {0, 0.5}});
  v.field("train_rows", train_rows, {.title = "Training rows", .help = "train on the first rows only; 0 = all", .range = {0, 1e12}});
  v.field("validation_rows", validation_rows,
          {.title = "Validation rows", .help = "validate on the first rows only; 0 = all", .range = {0, 1e12}});
}

namespace {

void length_fields(TrainConfig& c, FieldVisitor& v) {
  v.field("steps", c.steps, {.title = "Steps", .help = "steps to train; 0 = from epochs", .range = {0, 1e12}, .live = Live::yes});
  v.field("epochs", c.epochs, {.title = "Epochs", .help = "passes over the data when steps is 0", .range = {0, 1e6}, .live = Live::yes});
  v.field("batch", c.batch,
          {.title = "Batch size",
           .unit = "rows",
           .help = "sequences or images per step",
           .range = {1, 1048576},
           .usual = {1, 1024},
           .scale = Scale::powers});
  v.field("micro_batches", c.micro_batches,
          {.title = "Micro-batches",
           .help = "parts of a batch, computed one after another; their gradients are summed, activations take the memory of one part",
           .range = {1, 65536}});
  v.field("sync_every", c.sync_every,
          {.title = "Average every",
           .symbol = "H",
           .unit = "steps",
           .help = "steps that each process makes with gradients of its own part of the batch, before all continue with the mean weights; "
                   "1: they share the gradients of every step",
           .more = "There is one process for each micro-batch: those of mpirun -n P, or threads of this one. The mean is taken before "
                   "evaluations, checkpoints, edits and cuts of ranks, too.",
           .range = {1, 1e6}});
  v.field("clip_norm", c.clip_norm,
          {.title = "Gradient norm limit",
           .help = "gradients are scaled down to this Euclidean norm of all gradients together; 0: never",
           .range = {0, 1e9}});
  v.field("seed", c.seed, {.title = "Seed", .help = "random seed", .range = {0, 9e15}});
}

void rate_fields(TrainConfig& c, FieldVisitor& v) {
  const When tt = {"method.weights", {"tt"}};
  const char* before = "Before warm-up and schedule.";
  v.field("lr_core", c.lr_core,
          {.title = "Learning rate, TT cores",
           .symbol = "lr",
           .help = "learning rate of TT cores",
           .more = before,
           .range = {0, 10},
           .usual = {1e-6, 0.1},
           .scale = Scale::log,
           .live = Live::yes,
           .when = tt});
  v.field("lr_rank", c.lr_rank,
          {.title = "Learning rate, ranks",
           .help = "learning rate of rank vectors",
           .more = before,
           .range = {0, 10},
           .usual = {1e-6, 0.1},
           .scale = Scale::log,
           .live = Live::yes,
           .when = tt});
  v.field("lr_rank_late", c.lr_rank_late,
          {.title = "Learning rate, late ranks",
           .help = "learning rate of rank vectors in the late stage; 0 = as in the early one",
           .more = before,
           .range = {0, 10},
           .usual = {0, 0.1},
           .scale = Scale::log,
           .live = Live::yes,
           .when = tt});
  v.field("lr", c.lr,
          {.title = "Learning rate",
           .help = "learning rate of all other parameters",
           .more = "Biases, norms and dense matrices. Before warm-up and schedule.",
           .range = {0, 10},
           .usual = {1e-6, 0.1},
           .scale = Scale::log,
           .live = Live::yes});
  v.field("schedule", c.schedule,
          {.title = "Schedule",
           .help = "schedule of the learning rates",
           .choices = {{"constant", "Constant", "The full rate in every step after the warm-up."},
                       {"linear", "Linear", "Falls on a straight line to its final fraction."},
                       {"cosine", "Cosine", "Falls on half a cosine to its final fraction."}}});
  v.field("warmup", c.warmup, {.title = "Warm-up", .unit = "steps", .help = "steps of linear warm-up", .range = {0, 1e9}});
  v.field("lr_final_fraction", c.lr_final_fraction,
          {.title = "Final LR fraction",
           .help = "learning rate at the last step of a linear or cosine schedule, as a fraction of the full rate",
           .range = {0, 1},
           .when = {"train.schedule", {"linear", "cosine"}}});
}

void interval_fields(TrainConfig& c, FieldVisitor& v) {
  v.field("eval_every", c.eval_every,
          {.title = "Evaluate every",
           .unit = "steps",
           .help = "steps between evaluations; 0 = only at the end",
           .range = {0, 1e12},
           .usual = {0, 10000},
           .scale = Scale::log,
           .live = Live::yes});
  v.field("patience", c.patience,
          {.title = "Patience",
           .unit = "evaluations",
           .help = "early stopping: the run ends after so many evaluations in a row without a better validation loss; 0 = never",
           .range = {0, 1e6},
           .live = Live::yes});
  v.field("checkpoint_best", c.checkpoint_best,
          {.title = "Checkpoint at the best score",
           .help = "write a checkpoint at each evaluation with the best validation loss so far",
           .live = Live::yes});
  v.field("checkpoint_every", c.checkpoint_every,
          {.title = "Checkpoint every",
           .unit = "steps",
           .help = "steps between checkpoints; 0 = only at the end",
           .range = {0, 1e12},
           .usual = {0, 10000},
           .scale = Scale::log,
           .live = Live::yes});
  v.field("checkpoint_minutes", c.checkpoint_minutes,
          {.title = "Checkpoint every",
           .unit = "min",
           .help = "minutes between checkpoints; 0 = off",
           .more = "The settings of the window can set it for all runs.",
           .range = {0, 1e6},
           .usual = {0, 120},
           .live = Live::yes});
  v.field("keep_checkpoints", c.keep_checkpoints,
          {.title = "Checkpoints to keep",
           .help = "newest checkpoints to keep; the best one is kept too",
           .range = {1, 1000},
           .usual = {1, 100},
           .scale = Scale::log,
           .live = Live::yes});
  v.field("max_steps_per_s", c.max_steps_per_s,
          {.title = "Step limit",
           .unit = "per s",
           .help = "limit on steps per second, so that a run can be watched; results do not change; 0 = no limit",
           .range = {0, 1e6},
           .usual = {0, 1000},
           .scale = Scale::log,
           .live = Live::yes});
}

void machine_fields(TrainConfig& c, FieldVisitor& v) {
  v.field("precision", c.precision,
          {.title = "Precision",
           .help = "number format of training",
           .choices = {{"f32", "f32", "32-bit floating point."},
                       {"f64", "f64", "64-bit floating point: twice the memory, for checks of the arithmetic."}}});
  v.field("matmul", c.matmul,
          {.title = "Matmul precision",
           .help = "precision of f32 matrix products: all but fp32 round the operands; tf32 and fp8 on CUDA devices only",
           .more = "bf16 on a CPU needs oneDNN. It is faster on processors with AMX; with AVX512_BF16 alone it is slower than fp32.",
           .choices = {{"fp32", "fp32", "Operands are not rounded."},
                       {"tf32", "TF32", "Operands have 10 bits of mantissa and the range of f32."},
                       {"bf16", "bf16", "Operands have 7 bits of mantissa and the range of f32."},
                       {"fp8", "fp8", "Operands have 8 bits."}}});
  v.field("device", c.device, {.title = "Device", .help = "auto, cpu or cuda:N"});
  v.field("threads", c.threads, {.title = "CPU threads", .help = "CPU threads; 0 = every core", .range = {0, 1024}});
  v.field("cuda_graph", c.cuda_graph,
          {.title = "CUDA graph", .help = "capture the step as a CUDA graph and replay it; false: op by op, same results"});
}

}  // namespace

void TrainConfig::fields(FieldVisitor& v) {
  length_fields(*this, v);
  rate_fields(*this, v);
  interval_fields(*this, v);
  machine_fields(*this, v);
}

void RunConfig::fields(FieldVisitor& v) {
  v.field("name", name, {.title = "Name", .help = "name of the run"});
  v.group("model", model, {.title = "Model"});
  v.group("data", data, {.title = "Data"});
  v.group("method", method, {.title = "Method"});
  v.group("train", train, {.title = "Train"});
}

int64_t RunConfig::token_capacity() const {
  if (!data.pack) return part_batch() * model.length;
  if (data.token_budget > 0) return data.token_budget / train.micro_batches;
  return std::max(model.length, part_batch() * model.length / 2);
}

int64_t RunConfig::counted_capacity() const {
  const int64_t tokens = token_capacity();
  if (mask_share() == 0) return tokens;
  const double share = mask_share(), mean = share * static_cast<double>(tokens);
  return std::min(tokens, static_cast<int64_t>(std::ceil(mean + 6 * std::sqrt(mean * (1 - share)))));
}

const std::vector<FieldEntry>& all_settings() {
  static const std::vector<FieldEntry> kAll = [] {
    RunConfig config;
    return fields_list(fields_of(config));
  }();
  return kAll;
}

const FieldEntry* find_setting(const std::string& path) {
  for (const FieldEntry& entry : all_settings())
    if (entry.path == path) return &entry;
  return nullptr;
}

Json config_to_json(const RunConfig& config) {
  RunConfig copy = config;
  return fields_to_json(fields_of(copy));
}

RunConfig config_from_json(const Json& json, const std::string& source_name) {
  RunConfig config;
  std::vector<Problem> problems;
  // A run that was stored before refreshes were staggered, or computed by subspace iteration, goes on as it began.
  const auto lacks = [&](const char* group, const char* key) {
    const Json of_group =
        json.is_object() && json.contains("method") && json["method"].is_object() ? json["method"].value(group, Json()) : Json();
    return of_group.contains("gap") && !of_group.contains(key);
  };
  if (lacks("galore", "refresh")) config.method.galore.refresh = "together";
  if (lacks("galore", "decomposition")) config.method.galore.decomposition = "exact";
  if (lacks("q-galore", "decomposition")) config.method.q_galore.decomposition = "exact";
  // And one that was stored before there was a holdout has none.
  if (json.is_object() && json.contains("data") && json["data"].is_object() && json["data"].contains("validation_rows") &&
      !json["data"].contains("holdout"))
    config.data.holdout = 0;
  fields_from_json(fields_of(config), with_current_names(json, source_name), problems);
  throw_problems(problems, source_name);
  return config;
}

namespace {

// Combinations that are refused, each with the reason. Everything else combines.
struct Refusal {
  bool (*when)(const RunConfig& config);
  const char *path, *why, *hint;
};
bool updates_during_backward(const RunConfig& c) { return c.method.update == "backward"; }
bool uses(RunConfig c, const char* group) { return !unused_settings(fields_of(c)).contains(group); }
constexpr Refusal kRefusals[] = {
    {[](const RunConfig& c) { return updates_during_backward(c) && c.train.micro_batches > 1; }, "method.update",
     "backward: a gradient would be gone before the next micro-batch adds to it", "use train.micro_batches 1, or update after"},
    {[](const RunConfig& c) { return updates_during_backward(c) && c.train.clip_norm > 0; }, "method.update",
     "backward: the norm of all gradients is known when they are gone", "use train.clip_norm 0, or update after"},
    {[](const RunConfig& c) { return updates_during_backward(c) && c.method.comera.mode == "paper" && uses(c, "method.comera"); },
     "method.update", "backward: the penalty on cores of the paper's mode is added to kept gradients", "use another mode, or update after"},
    {[](const RunConfig& c) { return c.train.sync_every > 1 && c.method.weights == "lte"; }, "train.sync_every",
     "above 1: heads of LTE are sent at their merges (method.lte.merge_every) as it is", "use 1"},
    {[](const RunConfig& c) { return c.train.sync_every > 1 && c.method.weight_format != "full"; }, "train.sync_every",
     "above 1: the mean of weights is rounded where they are not full, and small steps would be lost",
     "use 1, or method.weight_format full"},
    {[](const RunConfig& c) { return c.method.weights == "lte" && c.method.weight_format != "full"; }, "method.weight_format",
     "not full: a merge of LTE adds a small product to a matrix once, and rounding would take it away", "use full"},
    {[](const RunConfig& c) { return c.method.weights == "lte" && c.method.lte.heads > 1 && c.data.pack; }, "method.lte.heads",
     "above 1: heads split a batch by examples, and a packed batch has other numbers of examples and tokens each time",
     "use 1 head, or data.pack false"},
};

}  // namespace

std::vector<ModelMatrix> RunConfig::trains() const { return tensorised() ? matrices_of(model) : std::vector<ModelMatrix>(); }

std::vector<Problem> config_problems(const RunConfig& config) {
  RunConfig copy = config;
  std::vector<Problem> problems;
  fields_from_json(fields_of(copy), config_to_json(config), problems);  // ranges and choices
  for (Problem& problem : copy.model.problems(config.tensorised())) {
    problem.path = "model." + problem.path;
    const bool known = std::any_of(problems.begin(), problems.end(), [&](const Problem& p) { return p.path == problem.path; });
    if (!known) problems.push_back(problem);
  }
  if (config.data.pack && config.data.token_budget > 0 && config.token_capacity() < config.model.length)
    problems.push_back({"data.token_budget",
                        "must be at least " + std::to_string(config.model.length * config.train.micro_batches) +
                            ": a sequence of model.length for each micro-batch",
                        ""});
  if (config.train.batch % config.train.micro_batches != 0)
    problems.push_back({"train.micro_batches", "must divide train.batch " + std::to_string(config.train.batch), ""});
  if (const int64_t heads = heads_of_part(config.method.lte.heads, 0, config.train.micro_batches).count;
      config.method.weights == "lte" && config.part_batch() % heads != 0)
    problems.push_back({"method.lte.heads",
                        std::to_string(heads) + " must divide the " + std::to_string(config.part_batch()) +
                            " examples of a micro-batch (train.batch / train.micro_batches): each head has an equal share",
                        "use another train.batch, or fewer heads"});
  for (const Refusal& refusal : kRefusals)
    if (refusal.when(config)) problems.push_back({refusal.path, refusal.why, refusal.hint});
  if (const std::string& matmul = config.train.matmul; matmul != "fp32") {
    if (config.train.precision == "f64")
      problems.push_back({"train.matmul", matmul + " rounds f32 products, train.precision is f64", "use train.precision f32"});
    else if (matmul != "bf16" && config.train.device.rfind("cuda:", 0) != 0)
      problems.push_back({"train.matmul",
                          matmul + " is not supported: the device '" + config.train.device + "' computes products in fp32 or bf16",
                          "use --set train.device=cuda:0, or train.matmul=bf16 or fp32"});
  }
  return problems;
}

void validate_config(const RunConfig& config, const std::string& source_name) { throw_problems(config_problems(config), source_name); }

}  // namespace comera
