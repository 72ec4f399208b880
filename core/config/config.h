// Everything that defines a run: model + data + method + training, all as fields. The resolved config is stored with
// the run; with the seed and the event log it reproduces the run bit for bit.
#pragma once
#include <map>
#include <string>

#include "core/base/fields.h"
#include "core/base/json.h"
#include "core/config/method.h"
#include "core/config/model.h"
#include "core/tensor/dtype.h"

namespace comera {

struct DataConfig {
  std::string set = "";    // name of a known set, or a path
  std::string vocab = "";  // what open_tokenizer takes; "" = the BERT vocabulary that ships with the program, joined texts are bytes
  std::string text_column = "", second_column = "", label_column = "";  // of text sets; "" = found by the usual names
  bool join = false;                                                    // of masked language models: a run of tokens, not a sequence a row
  bool pack = false;                                                    // whole sequences into a token budget: padding costs nothing
  int64_t token_budget = 0;                                             // tokens of a packed batch; 0 = half of batch * length
  double mask_share = 0.15;                                             // share of the tokens that a masked language model predicts
  double token_dropout = 0;              // share of the training tokens that are read as [UNK], drawn anew each epoch
  int64_t min_count = 1;                 // of click logs: rarer values of a category share a row of its table
  double pixel_mean = 0, pixel_std = 1;  // of images: pixels 0..1 become (pixel - mean) / std
  double holdout = 0.1;                  // share of the rows of a single file, which has no other split, that validate; 0 = none
  int64_t train_rows = 0;                // use only the first rows; 0 = all
  int64_t validation_rows = 0;
  void fields(FieldVisitor& v);
};

struct TrainConfig {
  int64_t steps = 0;  // 0 = as many as `epochs` say
  double epochs = 3;
  int64_t batch = 32;
  int64_t micro_batches = 1;  // parts of a batch, computed one after another: gradients are summed
  int64_t sync_every = 1;     // steps between two averages of what processes trained; 1: they share the gradients of every step
  double clip_norm = 0;       // largest norm of all gradients together; 0 = no limit
  int64_t seed = 1;
  double lr_core = 1e-4, lr_rank = 1e-3, lr = 5e-5;
  double lr_rank_late = 0;            // of rank vectors in the late stage, where they have a way to go; 0 = lr_rank
  std::string schedule = "constant";  // constant | linear | cosine
  int64_t warmup = 0;
  double lr_final_fraction = 0.1;  // share of the rate left at the end of a linear or cosine schedule
  int64_t eval_every = 500;
  int64_t patience = 0;             // evaluations in a row without a better validation loss that end the run; 0 = never
  int64_t checkpoint_every = 1000;  // steps; 0 = only at the end
  double checkpoint_minutes = 10;   // 0 = off
  int64_t keep_checkpoints = 3;     // the newest ones; the one nearest after the best score is kept besides
  bool checkpoint_best = false;     // one at each evaluation with the best validation loss so far
  double max_steps_per_s = 0;       // 0 = no limit; changes no number (core/session/step_rate_limit.h)
  std::string precision = "f32";    // f32 | f64
  std::string matmul = "fp32";      // fp32 | tf32 | bf16 | fp8: products of an f32 run
  std::string device = "auto";      // auto | cpu | cuda:N
  int64_t threads = 0;              // 0 = every core
  bool cuda_graph = true;           // the step is captured and replayed where the device can; else op by op
  void fields(FieldVisitor& v);
};

struct RunConfig {
  std::string name;
  ModelConfig model;
  DataConfig data;
  MethodConfig method;
  TrainConfig train;
  void fields(FieldVisitor& v);

  bool tensorised() const { return method.weights == "tt"; }
  std::vector<ModelMatrix> trains() const;  // of the model, that may be tensor trains; none with other weights
  DType dtype() const { return train.precision == "f64" ? DType::f64 : DType::f32; }
  int64_t part_batch() const { return train.batch / train.micro_batches; }  // S of a part
  double mask_share() const { return model.task == "masked" ? data.mask_share : 0; }
  int64_t token_capacity() const;  // T of a part of a training batch
  // C: room for the tokens of a part that count in the loss. Of a masked language model six standard deviations above their mean number;
  // of other models all tokens.
  int64_t counted_capacity() const;
};

// Live settings that belong to one layer or one bond: edit paths rank.cap.LAYER.BOND and rank.weight.LAYER
// (0 = locked: the penalty does not act on it). Bonds count from 1.
struct RankOverrides {
  std::map<std::string, int64_t> caps;    // "enc0.attn.q.2" -> cap
  std::map<std::string, double> weights;  // "enc0.attn.q" -> factor
};

// Every setting with its description, in the order of the fields; the values are the built-in ones.
const std::vector<FieldEntry>& all_settings();
const FieldEntry* find_setting(const std::string& path);  // null = no such setting

// Where a setting of a run can come from, the later before the earlier: built-in, the system's config.json, the user's
// config.json, ./comera.json of the project, the preset or file that is named, the environment (COMERA_TRAIN_LR_CORE
// sets train.lr_core), `sets` (path=value, in order). `name_or_path` "" names no file, "-" is stdin. `origins`, if
// given, tells for each setting that is not built-in where it came from. Throws Error(config) that names every problem of a source.
using ConfigOrigins = std::map<std::string, std::string>;  // path of the setting -> source
RunConfig load_config(const std::string& name_or_path, const std::vector<std::string>& sets, ConfigOrigins* origins = nullptr);
// The same with settings that are in no file in place of the named one; `source` is their name in `origins` and messages.
RunConfig load_config(const Json& named, const std::string& source, const std::vector<std::string>& sets, ConfigOrigins* origins = nullptr);
// path=value texts, in order, then the check of the whole.
void set_config(RunConfig& config, const std::vector<std::string>& sets);
RunConfig config_from_json(const Json& json, const std::string& source_name);
Json config_to_json(const RunConfig& config);
// All that is wrong with a config, each at its field: values out of range and sizes that do not fit together. What needs
// the data to be known, e.g. its classes, is the trainer's to check.
std::vector<Problem> config_problems(const RunConfig& config);
// Throws Error(config) when there are any.
void validate_config(const RunConfig& config, const std::string& source_name);
// assets/presets of the installation: $COMERA_ASSETS, or beside the program, or the source tree.
std::string assets_folder();
std::vector<std::string> preset_names();

// One live change. Throws Error(usage) when the path is unknown, not live, or the value is out of range; then nothing
// has changed. Returns the value before, as JSON text.
std::string apply_edit(RunConfig& config, RankOverrides& overrides, const std::string& path, const std::string& value);

}  // namespace comera
