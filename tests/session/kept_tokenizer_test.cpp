// A run keeps a copy of its tokenizer: it goes on, is forked, computed again, writes text and is exported after the file is gone or
// changed.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/data/tokenizer.h"
#include "core/ops/device.h"
#include "core/session/model_run.h"
#include "core/session/reproduce.h"
#include "core/store/run_admin.h"
#include "core/train/model_export.h"
#include "core/train/text_writer.h"
#include "tests/session/support.h"

namespace comera {
namespace {
namespace fs = std::filesystem;

fs::path published(const std::string& name) {
  return fs::path(COMERA_SOURCE_DIR "/tests/golden_models/tokenizers") / name / "tokenizer.json";
}

std::string written(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  return path.string();
}

class KeptTokenizer : public testing::Test {
 protected:
  KeptTokenizer() {
    fs::create_directories(model_folder);
    fs::copy_file(published("llama"), vocab);
    std::string text;
    for (int i = 0; i < 60; ++i) text += std::string("The tide is ") + (i % 3 ? "low" : "high") + " now.\n";
    const std::string tokens = std::to_string(open_tokenizer(vocab)->size());
    written(model_folder + "/config.json", R"({"vocab_size": )" + tokens + R"(, "bos_token_id": 5, "eos_token_id": 6})");
    RunConfig& config = start.config;
    start.store = folder.store();
    config.name = "text";
    config.model.kind = "decoder";
    config.model.task = "language";
    config.model.length = 12;
    config.model.decoder = {.layers = 1, .d_model = 16, .d_ff = 16, .vocab = std::stol(tokens), .heads = 2};
    config.method.weights = "dense";
    config.data.set = written(folder.file("text.txt"), text);
    config.data.vocab = vocab;
    config.train.steps = 6;
    config.train.batch = 4;
    config.train.threads = 1;
    config.train.eval_every = 3;
    config.train.checkpoint_every = 3;
    validate_config(config, "test");
  }
  std::string trained(SessionStart with) const {
    Session session(std::move(with));
    EXPECT_TRUE(session.wait(60));
    session.join();
    EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message << ": " << session.latest()->error_why;
    return session.latest()->run;
  }
  std::string checkpoint(const std::string& run) const { return RunReader(folder.store()).checkpoints(run).back().path; }
  std::string copy_of(const std::string& run) const { return folder.file("checkpoints/" + run + "/tokenizer/tokenizer.json"); }
  std::string text_of(const std::string& run) const {
    const std::unique_ptr<Device> device = open_device("cpu");
    return TextWriter(checkpoint(run), "", *device).write("The tide", 8, {.temperature = 0}, {});
  }

  const test::Folder folder;
  const std::string model_folder = folder.file("model"), vocab = model_folder + "/tokenizer.json";
  SessionStart start;
};

TEST_F(KeptTokenizer, ServesTheRunAfterTheFileIsGone) {
  const std::string run = trained(start), before = text_of(run);
  EXPECT_EQ(load_stored_run(folder.store(), run).config.data.vocab, vocab) << "the file itself while it is the same";
  fs::remove_all(model_folder);

  const StoredRun stored = load_stored_run(folder.store(), run);
  EXPECT_EQ(stored.config.data.vocab, copy_of(run));
  EXPECT_EQ(text_of(run), before);
  EXPECT_TRUE(reproduce_run(folder.store(), run).identical);

  SessionStart again;
  again.store = folder.store();
  again.resume_run = run;
  again.extend = 2;
  EXPECT_EQ(trained(again), run);

  SessionStart forked;
  forked.store = folder.store();
  forked.fork_run = run;
  forked.at_step = 3;
  const std::string child = trained(forked);
  EXPECT_TRUE(fs::exists(copy_of(child)));
  RunAdmin(folder.store()).purge(run, "text");
  EXPECT_FALSE(fs::exists(folder.file("checkpoints/" + run)));
  EXPECT_FALSE(text_of(child).empty()) << "it has a copy of its own";

  const std::string exported = folder.file("exported");
  EXPECT_EQ(export_folder(checkpoint(child), exported, "float32").missing, "");
  EXPECT_EQ(open_tokenizer(exported)->fingerprint(), open_tokenizer(copy_of(child))->fingerprint());
  const Json config = read_json_file(exported + "/config.json");
  EXPECT_EQ(config["bos_token_id"], 5) << "as in the config.json next to the tokenizer";
  EXPECT_EQ(config["eos_token_id"], 6);
}

TEST_F(KeptTokenizer, ServesTheRunAfterTheFileHasChanged) {
  const std::string run = trained(start), before = text_of(run);
  fs::copy_file(published("gpt2"), vocab, fs::copy_options::overwrite_existing);
  EXPECT_EQ(load_stored_run(folder.store(), run).config.data.vocab, copy_of(run));
  EXPECT_EQ(text_of(run), before);
  EXPECT_TRUE(reproduce_run(folder.store(), run).identical);
}

TEST_F(KeptTokenizer, IsMadeForTheWayThatARunWentBefore) {
  const std::string run = trained(start);
  SessionStart back;
  back.store = folder.store();
  back.resume_run = run;
  back.at_step = 3;
  back.sets = {"train.lr=5e-4"};
  trained(back);
  for (const RunRow& row : RunReader(folder.store()).runs()) EXPECT_TRUE(fs::exists(copy_of(row.id))) << row.name;
}

TEST_F(KeptTokenizer, IsThatOfAnImportedModelToo) {
  const std::string model = checkpoint(trained(start)), other = folder.file("other.db");
  const std::string with = store_model(other, model, nullptr, "with", nullptr);
  EXPECT_TRUE(fs::exists(folder.file("checkpoints/" + with + "/tokenizer/tokenizer.json")));
  fs::remove_all(model_folder);
  const std::string alone = folder.file("alone.safetensors");
  fs::copy_file(model, alone);
  const std::string without = store_model(other, alone, nullptr, "without", nullptr);
  EXPECT_FALSE(fs::exists(folder.file("checkpoints/" + without + "/tokenizer")));
}

}  // namespace
}  // namespace comera
