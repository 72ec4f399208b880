#include "core/train/config.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/base/error.h"
#include "core/base/numbers.h"
#include "core/base/paths.h"
#include "core/train/renamed_settings.h"

namespace comera {
namespace fs = std::filesystem;
namespace {
constexpr const char* kVariables[] = {"COMERA_MODEL_", "COMERA_DATA_", "COMERA_METHOD_", "COMERA_TRAIN_"};
}

void DataConfig::fields(FieldVisitor& v) {
  v.field("set", set, {.title = "Data set", .help = "data set: a name (comera data list) or a path"});
  v.field("vocab", vocab,
          {.title = "Vocabulary file", .help = "vocab.txt of text sets; empty = the BERT vocabulary that ships with the program"});
  v.field("pack", pack, {.title = "Pack sequences", .help = "pack whole sequences into a token budget: no padding"});
  v.field("token_budget", token_budget,
          {.title = "Token budget",
           .help = "tokens of a packed batch; 0 = half of batch * length",
           .range = {0, 1 << 24},
           .when = {"data.pack", {"true"}}});
  v.field("token_dropout", token_dropout,
          {.title = "Token dropout", .help = "share of training tokens replaced by [UNK], drawn again each epoch", .range = {0, 0.9}});
  v.field("train_rows", train_rows, {.title = "Training rows", .help = "train on the first rows only; 0 = all", .range = {0, 1e12}});
  v.field("validation_rows", validation_rows,
          {.title = "Validation rows", .help = "validate on the first rows only; 0 = all", .range = {0, 1e12}});
}

void TrainConfig::fields(FieldVisitor& v) {
  const When tt = {"method.weights", {"tt"}};
  const char* before = "Before warm-up and schedule.";
  v.field("steps", steps, {.title = "Steps", .help = "steps to train; 0 = from epochs", .range = {0, 1e12}, .live = Live::yes});
  v.field("epochs", epochs, {.title = "Epochs", .help = "passes over the data when steps is 0", .range = {0, 1e6}, .live = Live::yes});
  v.field("batch", batch,
          {.title = "Batch size",
           .unit = "rows",
           .help = "sequences or images per step",
           .range = {1, 65536},
           .usual = {1, 1024},
           .scale = Scale::powers});
  v.field("seed", seed, {.title = "Seed", .help = "random seed", .range = {0, 9e15}});
  v.field("lr_core", lr_core,
          {.title = "Learning rate, TT cores",
           .help = "learning rate of TT cores",
           .more = before,
           .range = {0, 10},
           .usual = {1e-6, 0.1},
           .scale = Scale::log,
           .live = Live::yes,
           .when = tt});
  v.field("lr_rank", lr_rank,
          {.title = "Learning rate, ranks",
           .help = "learning rate of rank vectors",
           .more = before,
           .range = {0, 10},
           .usual = {1e-6, 0.1},
           .scale = Scale::log,
           .live = Live::yes,
           .when = tt});
  v.field("lr_rank_late", lr_rank_late,
          {.title = "Learning rate, late ranks",
           .help = "learning rate of rank vectors in the late stage; 0 = as in the early one",
           .more = before,
           .range = {0, 10},
           .usual = {0, 0.1},
           .scale = Scale::log,
           .live = Live::yes,
           .when = tt});
  v.field("lr", lr,
          {.title = "Learning rate",
           .help = "learning rate of all other parameters",
           .more = "Biases, norms and dense matrices. Before warm-up and schedule.",
           .range = {0, 10},
           .usual = {1e-6, 0.1},
           .scale = Scale::log,
           .live = Live::yes});
  v.field("schedule", schedule,
          {.title = "Schedule",
           .help = "schedule of the learning rates",
           .choices = {{"constant", "Constant", "The full rate in every step after the warm-up."},
                       {"linear", "Linear", "Falls on a straight line to its final fraction."},
                       {"cosine", "Cosine", "Falls on half a cosine to its final fraction."}}});
  v.field("warmup", warmup, {.title = "Warm-up", .unit = "steps", .help = "steps of linear warm-up", .range = {0, 1e9}});
  v.field("lr_final_fraction", lr_final_fraction,
          {.title = "Final LR fraction",
           .help = "learning rate at the last step of a linear or cosine schedule, as a fraction of the full rate",
           .range = {0, 1},
           .when = {"train.schedule", {"linear", "cosine"}}});
  v.field("eval_every", eval_every,
          {.title = "Evaluate every",
           .unit = "steps",
           .help = "steps between evaluations; 0 = only at the end",
           .range = {0, 1e12},
           .usual = {0, 10000},
           .scale = Scale::log,
           .live = Live::yes});
  v.field("checkpoint_every", checkpoint_every,
          {.title = "Checkpoint every",
           .unit = "steps",
           .help = "steps between checkpoints; 0 = only at the end",
           .range = {0, 1e12},
           .usual = {0, 10000},
           .scale = Scale::log,
           .live = Live::yes});
  v.field("checkpoint_minutes", checkpoint_minutes,
          {.title = "Checkpoint every",
           .unit = "min",
           .help = "minutes between checkpoints; 0 = off",
           .more = "The settings of the window can set it for all runs.",
           .range = {0, 1e6},
           .usual = {0, 120},
           .live = Live::yes});
  v.field("keep_checkpoints", keep_checkpoints,
          {.title = "Checkpoints to keep",
           .help = "newest checkpoints to keep; the best one is kept too",
           .range = {1, 1000},
           .usual = {1, 100},
           .scale = Scale::log,
           .live = Live::yes});
  v.field("max_steps_per_s", max_steps_per_s,
          {.title = "Step limit",
           .unit = "per s",
           .help = "limit on steps per second, so that a run can be watched; results do not change; 0 = no limit",
           .range = {0, 1e6},
           .usual = {0, 1000},
           .scale = Scale::log,
           .live = Live::yes});
  v.field("precision", precision,
          {.title = "Precision",
           .help = "number format of training",
           .choices = {{"f32", "f32", "32-bit floating point."},
                       {"f64", "f64", "64-bit floating point: twice the memory, for checks of the arithmetic."}}});
  v.field("matmul", matmul,
          {.title = "Matmul precision",
           .help = "precision of f32 matrix products: tf32, bf16 and fp8 round the operands, CUDA devices only",
           .choices = {{"fp32", "fp32", "Operands are not rounded."},
                       {"tf32", "TF32", "Operands have 10 bits of mantissa and the range of f32."},
                       {"bf16", "bf16", "Operands have 7 bits of mantissa and the range of f32."},
                       {"fp8", "fp8", "Operands have 8 bits."}}});
  v.field("device", device, {.title = "Device", .help = "auto, cpu or cuda:N"});
  v.field("threads", threads, {.title = "CPU threads", .help = "CPU threads; 0 = every core", .range = {0, 1024}});
  v.field("cuda_graph", cuda_graph,
          {.title = "CUDA graph", .help = "capture the step as a CUDA graph and replay it; false: op by op, same results"});
}

void RunConfig::fields(FieldVisitor& v) {
  v.field("name", name, {.title = "Name", .help = "name of the run"});
  v.group("model", model, {.title = "Model"});
  v.group("data", data, {.title = "Data"});
  v.group("method", method, {.title = "Method"});
  v.group("train", train, {.title = "Train"});
}

int64_t RunConfig::token_capacity() const {
  if (!data.pack) return train.batch * model.length;
  return data.token_budget > 0 ? data.token_budget : std::max(model.length, train.batch * model.length / 2);
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
  fields_from_json(fields_of(config), with_current_names(json, source_name), problems);
  throw_problems(problems, source_name);
  return config;
}

std::vector<Problem> config_problems(const RunConfig& config) {
  RunConfig copy = config;
  std::vector<Problem> problems;
  fields_from_json(fields_of(copy), config_to_json(config), problems);  // ranges and choices
  for (Problem& problem : copy.model.problems(config.tensorised())) {
    problem.path = "model." + problem.path;
    const bool known = std::any_of(problems.begin(), problems.end(), [&](const Problem& p) { return p.path == problem.path; });
    if (!known) problems.push_back(problem);
  }
  if (config.data.pack && config.data.token_budget > 0 && config.data.token_budget < config.model.length)
    problems.push_back({"data.token_budget", "must hold at least one sequence of model.length " + std::to_string(config.model.length), ""});
  if (const std::string& matmul = config.train.matmul; matmul != "fp32") {
    if (config.train.precision == "f64")
      problems.push_back({"train.matmul", matmul + " rounds f32 products, train.precision is f64", "use train.precision f32"});
    else if (config.train.device.rfind("cuda:", 0) != 0)
      problems.push_back({"train.matmul", matmul + " is not supported: the device '" + config.train.device + "' computes products in fp32",
                          "use --set train.device=cuda:0, or train.matmul=fp32"});
  }
  return problems;
}

void validate_config(const RunConfig& config, const std::string& source_name) { throw_problems(config_problems(config), source_name); }

namespace {

void apply_sets(RunConfig& config, const std::vector<std::string>& sets, const std::string& source) {
  std::vector<Problem> problems;
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    if (equals == std::string::npos)
      throw Error(ErrorCode::usage, source + " " + set + ": not of the form path=value", "", "for example --set train.batch=8");
    const std::string path_set = current_path(set.substr(0, equals));
    fields_set(fields_of(config), path_set, set.substr(equals + 1), problems);
    if (path_set.rfind("method.comera.", 0) == 0) config.method.comera.only_target(path_set.substr(14));
  }
  throw_problems(problems, source);
}

}  // namespace

void set_config(RunConfig& config, const std::vector<std::string>& sets) {
  apply_sets(config, sets, "--set");
  validate_config(config, "--set");
}

namespace {

std::string path_of_config(const std::string& name_or_path) {
  if (name_or_path == "-") return name_or_path;
  if (fs::exists(name_or_path)) return name_or_path;
  const std::vector<std::string> presets = preset_names();
  const std::string stem = fs::path(name_or_path).stem().string();
  if (name_or_path.find('/') == std::string::npos && std::find(presets.begin(), presets.end(), stem) != presets.end())
    return assets_folder() + "/presets/" + stem + ".json";
  const std::string near = nearest_name(stem, presets);
  if (presets.empty())
    throw Error(ErrorCode::not_found, "no config '" + name_or_path + "'",
                "it is not a file, and there are no presets in " + assets_folder(),
                "set COMERA_ASSETS to the folder assets of the sources or of the installation (share/comera/assets)");
  std::string all;
  for (const std::string& preset : presets) all += (all.empty() ? "" : ", ") + preset;
  throw Error(ErrorCode::not_found, "no config '" + name_or_path + "'", "it is neither a file nor a preset (" + all + ")",
              near.empty() ? "give a path or a preset's name" : "did you mean '" + near + "'?");
}

void note_origins(const Json& json, const std::string& prefix, const std::string& source, ConfigOrigins* origins) {
  if (!origins || !json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    if (value.is_object())
      note_origins(value, prefix + key + ".", source, origins);
    else
      (*origins)[prefix + key] = source;
  }
}

void read_layer(RunConfig& config, const std::string& path, const std::string& source, ConfigOrigins* origins) {
  std::ostringstream piped;
  if (path == "-") piped << std::cin.rdbuf();
  const std::string name = path == "-" ? "stdin" : path;
  const Json json = with_current_names(path == "-" ? parse_json(piped.str(), name) : read_json_file(path), name);
  std::vector<Problem> problems;
  fields_from_json(fields_of(config), json, problems);
  throw_problems(problems, name);
  note_origins(json, "", source, origins);
}

std::string variable_of(const std::string& path) {
  std::string name = "COMERA_" + path;
  for (char& c : name) c = c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

// COMERA_MODEL_..., COMERA_DATA_..., COMERA_METHOD_... and COMERA_TRAIN_... as path=value.
std::vector<std::string> environment_sets(RunConfig& config) {
  std::map<std::string, std::string> paths;  // name of the variable -> path of the setting
  std::vector<std::string> names, sets;
  for (const FieldEntry& field : fields_list(fields_of(config))) {
    if (field.path.find('.') == std::string::npos) continue;  // the name belongs to one run
    names.push_back(variable_of(field.path));
    CHECK(paths.emplace(names.back(), field.path).second, "two settings share the variable " << names.back());
  }
  for (const RenamedSetting& setting : renamed_settings()) paths.emplace(variable_of(setting.old_path), setting.path);
  for (char** entry = environ; entry && *entry; ++entry) {
    const std::string text = *entry;
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == text.size()) continue;  // empty: as if it were not set
    const bool ours =
        std::any_of(std::begin(kVariables), std::end(kVariables), [&](const char* prefix) { return name.rfind(prefix, 0) == 0; });
    if (!ours) continue;
    const auto found = paths.find(name);
    if (found == paths.end()) {
      const std::string near = nearest_name(name, names);
      throw Error(ErrorCode::config, "the environment variable " + name + " names no setting", "",
                  near.empty() ? "comera config show lists the settings" : "did you mean " + near + "?");
    }
    sets.push_back(found->second + text.substr(equals));
  }
  std::sort(sets.begin(), sets.end());
  return sets;
}

}  // namespace

RunConfig load_config(const std::string& name_or_path, const std::vector<std::string>& sets, ConfigOrigins* origins) {
  RunConfig config;
  ConfigOrigins unasked;
  if (!origins) origins = &unasked;
  for (const std::string& path : paths::config_files())
    if (fs::exists(path)) read_layer(config, path, path, origins);
  std::string named;
  if (!name_or_path.empty()) {
    named = path_of_config(name_or_path);
    read_layer(config, named, name_or_path, origins);
    if (config.name.empty()) config.name = named == "-" ? "stdin" : fs::path(named).stem().string();
  }
  const std::vector<std::string> variables = environment_sets(config);
  apply_sets(config, variables, "the environment");
  apply_sets(config, sets, "--set");
  for (const std::string& set : variables) (*origins)[current_path(set.substr(0, set.find('=')))] = "environment";
  for (const std::string& set : sets) (*origins)[current_path(set.substr(0, set.find('=')))] = "--set";
  if (!origins->contains("method.adam.eps")) config.method.adam.eps = published_eps(config.method);
  validate_config(config, !sets.empty() ? "--set" : !variables.empty() ? "the environment" : named);
  return config;
}

std::string assets_folder() {
  if (const char* folder = std::getenv("COMERA_ASSETS"); folder && *folder) return folder;
  std::error_code ignored;
  const fs::path bin = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  const fs::path installed = bin.parent_path() / "share/comera/assets";
  // Installed, copied with its assets, in the build folder of a source folder, or built from one that is still there.
  for (const fs::path& folder : {installed, bin / "assets", bin.parent_path().parent_path() / "assets", fs::path(COMERA_SOURCE_ASSETS)})
    if (!folder.empty() && fs::exists(folder / "presets", ignored)) return folder.string();
  return installed.string();
}

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(assets_folder() + "/presets", ignored))
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  std::sort(names.begin(), names.end());
  return names;
}

namespace {
bool starts_with(const std::string& text, const char* prefix) { return text.rfind(prefix, 0) == 0; }

[[noreturn]] void refuse(const std::string& path, const std::string& why, const std::string& hint = "") {
  throw Error(ErrorCode::usage, "cannot change " + path, why, hint);
}

constexpr double kMostRank = 1e9;

double number_of(const std::string& path, const std::string& value) {
  const auto number = read_decimal(value);
  if (!number || !number->rest.empty() || number->value < 0)
    refuse(path, "'" + value + "' is not a number of 0 or more", "for example " + path + "=0.5, or null for 1");
  return number->value;
}

int64_t rank_of(const std::string& path, const std::string& value) {
  const auto number = read_decimal(value);
  if (!number || !number->rest.empty() || number->value < 0 || number->value > kMostRank || number->value != std::floor(number->value))
    refuse(path, "'" + value + "' is not a number of ranks: a whole number from 1 to 1e9",
           "for example " + path + "=8, or null for no cap");
  return std::max<int64_t>(1, static_cast<int64_t>(number->value));
}
}  // namespace

std::string apply_edit(RunConfig& config, RankOverrides& overrides, const std::string& given_path, const std::string& value) {
  const std::string path = current_path(given_path);
  if (starts_with(path, "rank.cap.")) {
    const std::string bond = path.substr(9);
    const auto found = overrides.caps.find(bond);
    const std::string old = found == overrides.caps.end() ? "null" : std::to_string(found->second);
    if (value == "null")
      overrides.caps.erase(bond);
    else
      overrides.caps[bond] = rank_of(path, value);
    return old;
  }
  if (starts_with(path, "rank.weight.")) {
    const std::string layer = path.substr(12);
    const auto found = overrides.weights.find(layer);
    const std::string old = found == overrides.weights.end() ? "null" : Json(found->second).dump();
    if (value == "null")
      overrides.weights.erase(layer);
    else
      overrides.weights[layer] = number_of(path, value);
    return old;
  }
  RunConfig changed = config;
  std::string old;
  std::vector<std::string> live;
  bool known = false;
  for (const FieldEntry& entry : fields_list(fields_of(changed))) {
    if (entry.info.live == Live::yes) live.push_back(entry.path);
    if (entry.path != path) continue;
    known = true;
    old = entry.value;
    if (entry.info.live == Live::no) refuse(path, "it is fixed when a run starts", "fork the run with --set " + path + "=" + value);
  }
  if (!known) {
    const std::string near = nearest_name(path, live);
    refuse(path, "it is not a known setting", near.empty() ? "" : "did you mean '" + near + "'?");
  }
  std::vector<Problem> problems;
  fields_set(fields_of(changed), path, value, problems);
  if (!problems.empty()) refuse(path, problems.front().text);
  if (starts_with(path, "method.comera.")) changed.method.comera.only_target(path.substr(14));
  config = changed;
  return old;
}

}  // namespace comera
