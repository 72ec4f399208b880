#include "core/session/data_suit.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <optional>

#include "core/base/error.h"
#include "core/data/datasets.h"
#include "core/data/holdout.h"
#include "core/data/labels.h"
#include "core/data/text_file.h"
#include "core/train/batch_fit.h"

namespace comera {
namespace {

constexpr int64_t kLeastBatches = 8;  // of an epoch, else the batch is made smaller
constexpr int64_t kLooked = 2000;     // rows whose lengths are counted
constexpr int64_t kEpochs = 10;       // of a set that nobody knows
constexpr double kWhole = 0.95;       // share of the rows that are not cut
constexpr int64_t kLengths[] = {16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512};

std::string set(const char* path, int64_t value) { return std::string(path) + "=" + std::to_string(value); }
std::string text_set(const char* path, const std::string& value) { return std::string(path) + "=" + value; }

std::string list_of(const std::vector<int64_t>& values) {
  std::string text;
  for (const int64_t value : values) text += (text.empty() ? "" : ",") + std::to_string(value);
  return "[" + text + "]";
}

// Tokens of a row that is longer than most.
int64_t usual_length(const Dataset& data) {
  const int64_t rows = data.info().rows, looked = std::min(rows, kLooked);
  std::vector<int64_t> lengths;
  Columns row;
  for (int64_t i = 0; i < looked; ++i) {
    data.read(i * rows / looked, 1'000'000, row);
    lengths.push_back(static_cast<int64_t>(row.ints.at("ids").size()));
  }
  std::sort(lengths.begin(), lengths.end());
  const int64_t most = lengths.empty() ? 0 : lengths[static_cast<size_t>(kWhole * static_cast<double>(lengths.size() - 1))];
  const auto* fits = std::find_if(std::begin(kLengths), std::end(kLengths), [&](int64_t length) { return length >= most; });
  return fits == std::end(kLengths) ? *std::prev(std::end(kLengths)) : *fits;
}

// The batch, or for few rows a power of two that leaves the least number of batches an epoch.
int64_t fitted_batch(int64_t batch, int64_t rows) {
  if (rows >= kLeastBatches * batch) return batch;
  return std::max<int64_t>(1, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(rows / kLeastBatches))));
}

// Evaluations once an epoch.
void add_course(DataSuit& suit, int64_t usual_batch) {
  const int64_t rows = suit.trained_on, batch = fitted_batch(usual_batch, rows);
  suit.more.push_back(set("train.steps", 0));
  suit.more.push_back(set("train.epochs", kEpochs));
  suit.more.push_back(set("train.batch", batch));
  suit.more.push_back(set("train.eval_every", std::max<int64_t>(1, rows / batch)));
  suit.more.push_back(set("train.checkpoint_every", std::max<int64_t>(1, rows / batch)));
}

void suit_text(DataSuit& suit, const Dataset& data, const ColumnNames& columns) {
  const DatasetInfo& info = data.info();
  refuse_one_class(info.label_names);
  const int64_t length = usual_length(data);
  suit.preset = "encoder2-nli";
  if (!columns.first.empty()) suit.sets.push_back(text_set("data.text_column", columns.first));
  if (!columns.second.empty()) suit.sets.push_back(text_set("data.second_column", columns.second));
  if (!columns.label.empty()) suit.sets.push_back(text_set("data.label_column", columns.label));
  suit.sets.push_back(set("model.classes", info.classes));
  suit.more.push_back(set("model.length", length));
  suit.more.push_back(set("model.encoder.positions", std::max<int64_t>(64, length)));
  add_course(suit, 32);
  suit.about = std::to_string(info.rows) + (columns.second.empty() ? " texts" : " pairs of texts");
  if (!columns.first.empty()) suit.about += " (" + columns.first + (columns.second.empty() ? "" : ", " + columns.second) + ")";
  suit.about += ", " + std::to_string(info.classes) + " classes";
  if (!columns.label.empty()) suit.about += " (" + columns.label + ")";
  if (info.left_out > 0) suit.about += "; " + std::to_string(info.left_out) + " without a text or a label left out";
}

void suit_images(DataSuit& suit, const DatasetInfo& info, bool folder) {
  suit.preset = folder ? "cnn-fashion" : "mlp-fashion";
  suit.sets.push_back(set("model.classes", info.classes));
  suit.sets.push_back(set("model.mlp.inputs", info.height * info.width * info.channels));
  for (const std::string model : {"model.cnn.", "model.vit."}) {
    suit.sets.push_back(set((model + "height").c_str(), info.height));
    suit.sets.push_back(set((model + "width").c_str(), info.width));
    suit.sets.push_back(set((model + "channels").c_str(), info.channels));
  }
  add_course(suit, 64);
  suit.about = std::to_string(info.rows) + " images of " + std::to_string(info.width) + " x " + std::to_string(info.height) + ", " +
               std::to_string(info.classes) + " classes";
}

// With the usual names of columns, else with those that the file seems to have; texts without a label are for a language model.
std::unique_ptr<Dataset> open_with_columns(DataSpec& spec, const std::string& file) {
  const std::filesystem::path path = file;
  const bool is_table =
      path.extension() == ".csv" || path.extension() == ".tsv" || path.extension() == ".jsonl" || path.extension() == ".parquet";
  std::unique_ptr<Dataset> data;
  try {
    data = open_dataset(spec);
  } catch (const Error& error) {
    if (!is_table || error.code() != ErrorCode::config) throw;
  }
  if (data && (!is_table || data->info().labelled)) return data;
  const std::string name = path.filename().string();
  spec.columns = TextLayout::guess(name, TextFile(file).bytes());
  if (spec.columns.label.empty()) {
    spec.columns.second.clear();
    spec.task = TextTask::language;
  }
  return open_dataset(spec);
}

// Without checks: the sizes that are still to come may make them fit.
void put(RunConfig& config, const std::vector<std::string>& sets) {
  std::vector<Problem> problems;
  for (const std::string& set : sets) {
    const size_t equals = set.find('=');
    fields_set(fields_of(config), set.substr(0, equals), set.substr(equals + 1), problems);
  }
}

// The file, or a folder of text files, which only a language model reads.
std::string find_file(DataSpec& spec) {
  try {
    return find_data_file(spec);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::config) throw;
    spec.task = TextTask::language;
    return find_data_file(spec);
  }
}

}  // namespace

DataSuit suit_data(const std::string& path) {
  DataSuit suit;
  suit.sets.push_back(text_set("data.set", path));
  DataSpec spec{.path = path, .assets = assets_folder()};
  const std::string file = find_file(spec);
  const std::unique_ptr<Dataset> data = open_with_columns(spec, file);
  const DatasetInfo& info = suit.info = data->info();
  suit.trained_on = info.rows - (is_whole(spec) ? Holdout::held_of(info.rows, DataConfig().holdout) : 0);
  if (info.fields.find("pixels")) {
    suit_images(suit, info, std::filesystem::is_directory(file));
  } else if (!info.tables.empty()) {
    suit.preset = "dlrm-criteo";
    suit.sets.push_back("model.dlrm.tables=" + list_of(info.tables));
    suit.about = std::to_string(info.rows) + " rows of a click log, " + std::to_string(info.tables.size()) + " categories";
  } else if (info.classes > 0) {
    suit_text(suit, *data, spec.columns);
  } else {
    suit.preset = "llama-10m";
    suit.about = "a text for a language model";
    if (!spec.columns.first.empty()) {
      suit.sets.push_back(text_set("data.text_column", spec.columns.first));
      suit.about = "texts (" + spec.columns.first + ") for a language model";
    } else if (std::filesystem::is_directory(file)) {
      suit.about = "text files for a language model";
    }
  }
  RunConfig config = load_config(suit.preset, {});
  for (const std::vector<std::string>& some : {sets_for(suit, config), suit.more}) put(config, some);
  const std::vector<std::string> sizes = sizes_for(config, suit.trained_on);
  suit.more.insert(suit.more.end(), sizes.begin(), sizes.end());
  return suit;
}

std::vector<std::string> sizes_for(const RunConfig& config, int64_t rows, const std::set<std::string>& kept) {
  std::vector<std::string> sets;
  for (const Problem& problem : config_problems(config))
    if (problem.path.ends_with("_modes") && !kept.contains(problem.path)) sets.push_back(problem.path + "=[]");
  // Rows of a language model are pieces of a text, whose number follows from the length.
  const int64_t batch = fitted_batch(config.train.batch, rows);
  if (config.model.task != "language" && rows > 0 && batch != config.train.batch && !kept.contains("train.batch"))
    sets.push_back(set("train.batch", batch));
  return sets;
}

bool takes(const RunConfig& config, const DataSuit& suit) {
  const std::optional<Misfit> found = misfit(batch_layout(config.model), suit.info);
  return !found || found->filled;
}

std::vector<std::string> sets_for(const DataSuit& suit, const RunConfig& config) {
  RunConfig copy = config;
  const UnusedSettings unused = unused_settings(fields_of(copy));
  std::vector<std::string> sets;
  for (const std::string& set : suit.sets)
    if (!unused.contains(set.substr(0, set.find('=')))) sets.push_back(set);
  return sets;
}

}  // namespace comera
