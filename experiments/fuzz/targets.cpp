// Targets of libFuzzer, one for each format that users bring: an input becomes a file (or a folder) and is read as the program reads it.
// What is wrong must be one Error; anything else (a crash, a hang, memory beyond the limits, another exception) is a find.
// experiments/fuzz/run.sh.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/base/error.h"
#include "core/config/config.h"
#include "core/data/criteo.h"
#include "core/data/datasets.h"
#include "core/data/gzip.h"
#include "core/data/idx.h"
#include "core/data/parquet.h"
#include "core/data/picture.h"
#include "core/data/text_file.h"
#include "core/data/text_lines.h"
#include "core/data/tokenizer.h"
#include "core/models/huggingface.h"
#include "core/tensor/safetensors.h"
#include "core/train/checkpoint.h"
#include "core/train/model_import.h"

namespace {

using namespace comera;
namespace fs = std::filesystem;

const std::string kSource = COMERA_SOURCE_DIR;

// Of this process, in memory.
const std::string& folder() {
  static const std::string kFolder = [] {
    const std::string path = "/dev/shm/comera-fuzz-" + std::to_string(::getpid());
    fs::create_directories(path);
    setenv("XDG_CACHE_HOME", (path + "/cache").c_str(), 1);
    std::atexit([] { fs::remove_all("/dev/shm/comera-fuzz-" + std::to_string(::getpid())); });
    return path;
  }();
  return kFolder;
}

std::string write(const std::string& name, std::string_view bytes) {
  const std::string path = folder() + "/" + name;
  fs::create_directories(fs::path(path).parent_path());
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return path;
}

void read_rows(const Dataset& data) {
  for (int64_t row = 0; row < std::min<int64_t>(data.info().rows, 20); ++row) {
    Columns columns;
    data.read(row, 16, columns);
    data.shown(row, 16);
  }
}

const std::string& vocabulary() {
  static const std::string kPath = write("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\none\ngood\n##s\na\n");
  return kPath;
}

void read_texts(const std::string& ending, std::string_view bytes) {
  const std::string path = write("rows" + ending, bytes);
  const ColumnNames columns = TextLayout::guess(path, bytes);
  try {
    read_rows(*open_dataset({.path = path, .columns = {columns.first, "", ""}, .task = TextTask::language, .length = 8}));
  } catch (const Error&) {  // joined or by rows: each may be wrong alone
  }
  read_rows(*open_dataset({.path = path, .vocab = vocabulary(), .columns = columns}));
}

void encode_some(const std::string& path) {
  const auto tokenizer = open_tokenizer(path);
  const std::vector<int32_t> ids = tokenizer->encode_with_specials("one Two 3,\xff \xe2\x80\xa6 <s>", "b");
  for (const int32_t id : ids) CHECK(id >= 0 && id < tokenizer->size(), "id " << id);
  tokenizer->decode(ids);
}

void read_folder(const std::string& model, const std::string& file, std::string_view bytes) {
  const std::string good = kSource + "/tests/golden_models/" + model + "/", path = folder() + "/" + model;
  fs::create_directories(path);
  for (const char* name : {"config.json", "model.safetensors"})
    if (file != name) fs::copy_file(good + name, path + "/" + name, fs::copy_options::skip_existing);
  write(model + "/" + file, bytes);
  RunConfig config = config_of_folder(path, "");
  validate_config(config, path);
  write_start(read_weights(path, config), config, folder() + "/start");
}

// Two shards of one byte string each where an index says what they hold.
void read_index(std::string_view bytes) {
  const std::string good = kSource + "/tests/golden_models/gpt2/";
  fs::create_directories(folder() + "/index");
  fs::copy_file(good + "config.json", folder() + "/index/config.json", fs::copy_options::skip_existing);
  fs::copy_file(good + "model.safetensors", folder() + "/index/model-00001-of-00001.safetensors", fs::copy_options::skip_existing);
  write("index/model.safetensors.index.json", bytes);
  const HuggingFaceFolder read(folder() + "/index");
  model_of_folder(read);
}

// Where this program has no Arrow nothing is read: run.sh says so.
void read_parquet(std::string_view bytes) {
  if (!parquet_status().here) return;
  const std::string path = write("rows.parquet", bytes);
  fs::remove_all(folder() + "/cache");  // of rows that were decoded before
  const TextFile file(path);
  read_rows(*open_dataset({.path = path, .vocab = vocabulary(), .columns = TextLayout::guess(file.path(), file.bytes())}));
}

const std::map<std::string, void (*)(std::string_view)> kTargets = {
    {"tsv", [](std::string_view bytes) { read_texts(".tsv", bytes); }},
    {"csv", [](std::string_view bytes) { read_texts(".csv", bytes); }},
    {"jsonl", [](std::string_view bytes) { read_texts(".jsonl", bytes); }},
    {"parquet", read_parquet},
    {"text", [](std::string_view bytes) { read_rows(*open_dataset({.path = write("book.txt", bytes), .length = 8})); }},
    {"clicks",
     [](std::string_view bytes) {
       const std::string path = write(is_gzip(bytes) ? "clicks.txt.gz" : "clicks.txt", bytes);
       read_rows(CriteoDataset(path, path, 1, {}));
     }},
    {"idx", [](std::string_view bytes) { read_rows(IdxDataset(write("train-images-idx3-ubyte", bytes))); }},
    {"picture", [](std::string_view bytes) { fitted(read_picture("picture", bytes), 4, 4); }},
    {"tokenizer", [](std::string_view bytes) { encode_some(write("tokenizer.json", bytes)); }},
    {"vocabulary", [](std::string_view bytes) { encode_some(write("some/vocab.txt", bytes)); }},
    {"config",
     [](std::string_view bytes) { validate_config(config_from_json(parse_json(std::string(bytes), "input"), "input"), "input"); }},
    {"checkpoint",
     [](std::string_view bytes) {
       const std::string path = write("step.safetensors", bytes);
       checkpoint_config(path);
     }},
    {"folder_config", [](std::string_view bytes) { read_folder("gpt2", "config.json", bytes); }},
    {"folder_bert", [](std::string_view bytes) { read_folder("bert_mlm", "config.json", bytes); }},
    {"folder_weights", [](std::string_view bytes) { read_folder("llama_bf16", "model.safetensors", bytes); }},
    {"folder_index", [](std::string_view bytes) { read_index(bytes); }},
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const auto kTarget = [] {
    const char* name = std::getenv("COMERA_FUZZ_TARGET");
    const auto found = kTargets.find(name ? name : "");
    if (found == kTargets.end()) {
      for (const auto& target : kTargets) std::cerr << target.first << '\n';
      std::_Exit(2);
    }
    return found->second;
  }();
  try {
    kTarget({reinterpret_cast<const char*>(data), size});
  } catch (const Error& error) {
    const std::string said = error.what() + error.why() + error.hint();
    CHECK(error.code() != ErrorCode::other && said.find('\n') == std::string::npos, said);
  }
  return 0;
}
