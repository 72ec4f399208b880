// Masked language models on data as people have them: rows of texts, and running text, each with any tokenizer.
#include <fstream>

#include "core/data/dataset.h"
#include "core/session/stored_run.h"
#include "core/train/batch_fit.h"
#include "tests/session/support.h"

namespace comera {
namespace {

class Masked : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder.file(name)) << content;
    return folder.file(name);
  }
  SessionStart start_on(const std::string& set, const std::string& vocab) const {
    SessionStart start;
    start.store = folder.store();
    RunConfig& config = start.config;
    config.name = "masked";
    config.model.task = "masked";
    config.model.length = 12;
    config.model.encoder = {.layers = 1, .d_model = 16, .heads = 2, .d_ff = 16, .vocab = 12, .positions = 12};
    config.method.weights = "dense";
    config.data.set = set;
    config.data.vocab = vocab;
    config.data.mask_share = 0.4;
    config.train.steps = 6;
    config.train.batch = 4;
    config.train.threads = 1;
    config.train.eval_every = 3;
    return start;
  }

  const test::Folder folder;
  const std::string vocab = file("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nthe\ntide\nis\nlow\nhigh\nnow\n.\n");
};

TEST_F(Masked, TrainsOnRowsOfTextsAndOnRunningText) {
  std::string rows, text;
  for (int i = 0; i < 40; ++i) {
    const std::string line = std::string("the tide is ") + (i % 3 ? "low" : "high") + " now.";
    rows += "{\"code\": \"" + line + "\", \"label\": [1]}\n";
    text += line + "\n";
  }
  SessionStart by_rows = start_on(file("rows.jsonl", rows), vocab);
  by_rows.config.data.text_column = "code";
  for (SessionStart start : {by_rows, start_on(file("text.txt", text), vocab)}) {
    validate_config(start.config, "test");
    ASSERT_EQ(start.config.model.encoder.segments, 2) << "which running text has too";
    Session session(std::move(start));
    EXPECT_TRUE(session.wait(60));
    session.join();
    const auto end = session.latest();
    EXPECT_EQ(end->phase, Phase::finished) << end->error_why;
    EXPECT_GT(end->eval.examples, 0);
    EXPECT_TRUE(std::isfinite(end->eval.loss));
  }
}

TEST_F(Masked, ATokenizerWithoutAMaskIsRefused) {
  const std::string none = file("other.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n");
  const RunConfig config = start_on(file("text.csv", "text\nthe\nthe\nthe\nthe\nthe\nthe\nthe\nthe\nthe\nthe\n"), none).config;
  try {
    check_fit(config, open_run_data(config).train->info(), nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the tokenizer of text.csv has no mask token");
  }
}

}  // namespace
}  // namespace comera
