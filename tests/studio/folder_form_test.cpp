// The form of a run that begins with the weights of a folder of the transformers library: its settings, data for another head, the errors
// of its tensor trains, and what is started.
#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/studio/sweeping.h"
#include "core/records/events.h"
#include "core/session/folder_run.h"
#include "core/session/stored_run.h"
#include "tests/studio/form_window.h"
#include "tests/train/tight_device.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;

class FolderForm : public FormWindow {
 protected:
  // A copy of a golden model with a vocabulary that knows the words below.
  std::string folder(const std::string& name) {
    const fs::path copy = folder_ / name;
    fs::create_directories(copy);
    for (const char* file : {"config.json", "model.safetensors"})
      fs::copy_file(fs::path(COMERA_SOURCE_DIR "/tests/golden_models") / name / file, copy / file, fs::copy_options::overwrite_existing);
    std::ifstream config_file(copy / "config.json");
    const auto tokens = Json::parse(config_file).at("vocab_size").get<int>();
    std::ofstream vocab(copy / "vocab.txt");
    for (const char* token : {"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "is", "good", "bad", "dog"}) vocab << token << '\n';
    for (int i = 10; i < tokens; ++i) vocab << "[unused" << i << "]\n";
    return copy.string();
  }
  std::string moods() {
    const std::string path = (folder_ / "moods.csv").string();
    std::ofstream rows(path);
    rows << "mood,review\n";
    for (int i = 0; i < 60; ++i) rows << (i % 2 ? "good,the dog is good\n" : "bad,the dog is bad\n");
    return path;
  }
  void open(const std::string& path) {
    open_form_from_folder(ui(), path);
    ASSERT_TRUE(until([&] { return ui().form.ready && !ui().form.looking; })) << ui().form.problem;
    settle();
  }
  void as_trains(const std::string& path, int64_t rank) {
    open(path);
    choose_method(ui(), "comera");
    TTKinds& kinds = ui().form.config.model.tt;
    for (TTOptions* kind : {&kinds.attention, &kinds.ffn_in, &kinds.ffn_out, &kinds.classifier}) kind->cores = 1, kind->rank = rank;
    kinds.embedding.rank = rank;
    ui().form.config.train.batch = 4;
    ui().form.config.model.length = 8;
    form_changed(ui(), "");
    settle();
    ASSERT_TRUE(has_trains(ui().form));
  }
  void compute() {
    click("fit");
    ASSERT_TRUE(until([&] { return ui().form.fit.number == 0 && !ui().form.looking; }));
    frame();
    const auto& answer = ui().form.fit.answer;
    ASSERT_TRUE(answer && answer->weights) << (answer ? answer->problem : "");
  }
  void choose(RanksFrom from) {
    ui().form.fit.ranks_from = from;
    frame();
  }
  FolderWeights read(FolderStart from) {
    RunConfig config = ui().form.config;
    return *weights_of_folder(from, config);
  }
  static void expect_same(const FolderWeights& a, const FolderWeights& b) {
    ASSERT_EQ(a.compressed.size(), b.compressed.size());
    for (size_t i = 0; i < a.compressed.size(); ++i) {
      EXPECT_EQ(a.compressed[i].layer, b.compressed[i].layer);
      EXPECT_EQ(a.compressed[i].ranks, b.compressed[i].ranks);
      EXPECT_EQ(a.compressed[i].error, b.compressed[i].error);
      EXPECT_EQ(a.compressed[i].weighted_error, b.compressed[i].weighted_error);
    }
  }
};

TEST_F(FolderForm, HasTheModelOfTheFolder) {
  const std::string path = folder("bert_mlm");
  open(path + "/");
  const NewRun& form = ui().form;
  EXPECT_EQ(form.source, "hf:" + path);
  EXPECT_EQ(form.config.model.encoder.d_model, 28);
  EXPECT_EQ(form.config.model.task, "masked");
  EXPECT_EQ(form.config.method.weights, "dense");
  EXPECT_EQ(form.config.data.vocab, path + "/vocab.txt");
  EXPECT_EQ(form.new_head, "");
  EXPECT_TRUE(form.forecast);
  EXPECT_EQ(find("fit"), nullptr) << "its matrices are dense";
  EXPECT_EQ(find("sweep"), nullptr);
  EXPECT_NE(no_sweep(ui()), "");
  EXPECT_TRUE(form_command(form, "").starts_with("comera train hf:" + path)) << form_command(form, "");
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
}

TEST_F(FolderForm, IsOpenedByADroppedFolderAndTakesDataForAnotherHead) {
  const std::string path = folder("bert_mlm");
  ui().dialogs.dropped = {path};
  ASSERT_TRUE(until([&] { return !ui().toasts.empty(); }));
  EXPECT_NE(ui().toasts.back().text.find("bert_mlm is a model of the transformers library"), std::string::npos) << ui().toasts.back().text;
  ASSERT_EQ(ui().toasts.back().offers.front().label, "New run from it");
  ui().toasts.back().offers.front().act(ui());
  ASSERT_TRUE(until([&] { return ui().form.ready && ui().form.source == "hf:" + path; }));
  ui().dialogs.dropped = {moods()};
  ASSERT_TRUE(until([&] { return !ui().form.config.data.set.empty(); }));
  settle();
  const NewRun& form = ui().form;
  EXPECT_EQ(form.source, "hf:" + path) << "no preset takes its place";
  EXPECT_EQ(form.config.model.task, "classification");
  EXPECT_EQ(form.config.model.classes, 2);
  EXPECT_EQ(form.config.data.label_column, "mood");
  EXPECT_EQ(form.config.model.encoder.positions, form.base.model.encoder.positions) << "the table of positions is the folder's";
  EXPECT_LE(form.config.model.length, form.base.model.length);
  EXPECT_NE(form.new_head.find("classifier"), std::string::npos) << form.new_head;
  for (const Problem& problem : blocking_problems(form)) ADD_FAILURE() << problem.path << ": " << problem.text;
}

TEST_F(FolderForm, IsOpenedByAFolderThatIsDroppedTogetherWithItsData) {
  const std::string path = folder("bert_mlm");
  for (const auto& dropped : {std::vector<std::string>{moods(), path}, {path, moods()}}) {
    open_form(ui(), "demo");
    ui().dialogs.dropped = dropped;
    ASSERT_TRUE(until([&] { return ui().form.ready && ui().form.source == "hf:" + path && !ui().form.config.data.set.empty(); }));
    settle();
    EXPECT_EQ(ui().form.config.data.set, moods());
    EXPECT_EQ(ui().form.config.data.label_column, "mood");
    EXPECT_EQ(ui().form.config.model.classes, 2);
  }
}

TEST_F(FolderForm, IsOfferedWhereNoDataAreDroppedWithIt) {
  const std::string path = folder("bert_mlm"), noise = (folder_ / "noise").string();
  std::ofstream(noise) << "\x07\x07";
  ui().dialogs.dropped = {path, noise};
  ASSERT_TRUE(until([&] { return ui().toasts.size() >= 2 && ui().dialogs.to_open.empty(); }));
  EXPECT_NE(ui().toasts.back().text.find("bert_mlm is a model of the transformers library"), std::string::npos) << ui().toasts.back().text;
  EXPECT_EQ(ui().toasts.back().offers.front().label, "New run from it");
}

TEST_F(FolderForm, StaysWithItsFolderForTextsWithoutLabelsAndWhereItCannotBeRead) {
  const std::string path = folder("bert_mlm"), texts = (folder_ / "texts.txt").string();
  std::ofstream file(texts);
  for (int i = 0; i < 40; ++i) file << "the dog is good\nthe dog is bad\n";
  file.close();
  open(path);
  ui().dialogs.dropped = {texts};
  ASSERT_TRUE(until([&] { return ui().form.config.data.set == texts; }));
  EXPECT_EQ(ui().form.source, "hf:" + path) << "no preset takes its place";
  EXPECT_EQ(ui().form.config.model.task, "masked");
  fs::remove(fs::path(path) / "model.safetensors");
  const std::string broken = folder("bert_classifier");
  fs::remove(fs::path(broken) / "config.json");
  open_form_from_folder(ui(), broken);
  ASSERT_TRUE(until([&] { return !ui().form.problem.empty(); }));
  ui().dialogs.dropped = {moods()};
  ASSERT_TRUE(until([&] { return ui().dialogs.to_open.empty() && ui().dialogs.open_number == 0 && ui().dialogs.data_for_form.empty(); }));
  EXPECT_EQ(ui().form.source, "hf:" + broken);
  EXPECT_NE(ui().form.problem, "");
}

TEST_F(FolderForm, AComputationThatNobodyWaitsForEnds) {
  as_trains(folder("bert_mlm"), 6);
  fit_folder(ui());
  const auto stopped = ui().form.fit.stopped;
  EXPECT_NE(ui().form.fit.number, 0u);
  set_field(ui(), "model.tt.ffn_in.rank", "4");
  ASSERT_TRUE(until([&] { return ui().form.fit.number == 0; }));
  EXPECT_TRUE(*stopped);
  EXPECT_FALSE(ui().form.fit.answer);
  RunConfig config = ui().form.config;
  const FolderStart start = folder_start(ui().form);
  EXPECT_THROW(weights_of_folder(start, config, [] { return true; }), Error);
}

TEST_F(FolderForm, ShowsTheErrorOfEachTensorTrainBeforeItStarts) {
  as_trains(folder("bert_mlm"), 6);
  EXPECT_FALSE(is_fitted(ui().form));
  EXPECT_FALSE(folder_start(ui().form).weights);
  compute();
  ASSERT_TRUE(is_fitted(ui().form));
  expect_same(*ui().form.fit.answer->weights, read({.path = folder_of(ui().form).value()}));
  EXPECT_NE(find("fit-totals"), nullptr);
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
  set_field(ui(), "train.lr", "0.002");
  settle();
  EXPECT_TRUE(is_fitted(ui().form)) << "the learning rate changes no error";
  set_field(ui(), "model.tt.ffn_in.rank", "4");
  settle();
  EXPECT_FALSE(is_fitted(ui().form));
  EXPECT_FALSE(folder_start(ui().form).weights);
  EXPECT_EQ(find("fit-totals"), nullptr) << "no figures of other settings";
}

TEST_F(FolderForm, TakesTheRanksThatAnErrorAsksFor) {
  as_trains(folder("bert_mlm"), 6);
  choose(RanksFrom::error);
  ui().form.fit.most_error = 0.3;
  compute();
  ASSERT_TRUE(is_fitted(ui().form));
  const FolderWeights& weights = *ui().form.fit.answer->weights;
  int64_t largest = 0;
  for (const Compressed& layer : weights.compressed) {
    EXPECT_LE(layer.error, 0.3) << layer.layer;
    if (layer.layer.ends_with("ffn.in")) largest = std::max(largest, layer.ranks.front());
  }
  EXPECT_EQ(ui().form.config.model.tt.ffn_in.rank, largest);
  EXPECT_GT(ui().form.config.model.tt.attention.rank, 6) << "24 x 24 drawn values have no smaller rank at this error";
  const FolderStart start = folder_start(ui().form);
  EXPECT_EQ(start.most_error, 0.3);
  EXPECT_EQ(start.weights, ui().form.fit.answer->weights);
  EXPECT_NE(form_command(ui().form, "").find("--tt-error 0.3"), std::string::npos) << form_command(ui().form, "");
  expect_same(weights, read({.path = start.path, .most_error = 0.3}));
  // The forecast is that of these ranks, and so of the memory that the run takes.
  ASSERT_EQ(ui().form.forecast->layers.size(), weights.ranks.size());
}

TEST_F(FolderForm, StartsWithTheTrainsThatItShows) {
  as_trains(folder("bert_mlm"), 6);
  choose(RanksFrom::compression);
  EXPECT_EQ(no_fit(ui().form), nullptr) << "a size alone needs no data";
  click("by-gradients");
  EXPECT_NE(no_fit(ui().form), nullptr) << "there are no data yet";
  ui().dialogs.dropped = {moods()};
  ASSERT_TRUE(until([&] { return !ui().form.config.data.set.empty(); }));
  ui().form.config.train.steps = 2;
  ui().form.config.train.batch = 4;
  ui().form.config.train.threads = 1;
  ui().form.config.train.epochs = 0;
  ui().form.config.train.eval_every = 0;
  form_changed(ui(), "");
  settle();
  ui().form.fit.batches = 3;
  compute();
  ASSERT_TRUE(is_fitted(ui().form));
  const FolderStart start = folder_start(ui().form);
  EXPECT_EQ(start.compression, 4);
  EXPECT_EQ(start.gradient_batches, 3);
  EXPECT_NE(form_command(ui().form, "").find("--tt-compression 4 --tt-gradients 3"), std::string::npos) << form_command(ui().form, "");
  int64_t dense = 0, entries = 0;
  for (const Compressed& layer : start.weights->compressed) dense += layer.dense, entries += layer.entries;
  EXPECT_LE(4 * entries, dense);
  EXPECT_GT(5 * entries, dense) << "and not much smaller than was asked";
  for (const Compressed& layer : start.weights->compressed)
    EXPECT_TRUE(layer.layer == "emb.token" || std::isfinite(layer.weighted_error.value_or(NAN))) << layer.layer;
  const int64_t planned = ui().form.forecast->memory.total();
  train();
  start_form(ui());
  ASSERT_TRUE(until([&] { return ui().live && ui().live->ended(); }));
  const Snapshot& end = *ui().live->view().snapshot;
  ASSERT_EQ(end.phase, Phase::finished) << end.message << end.error_why;
  EXPECT_EQ(end.memory_planned.total(), planned);
  const StoredRun run = load_stored_run(store_, end.run);
  EXPECT_EQ(run.imported, start.path);
  for (const EventRow& event : RunReader(store_).events(end.run)) {
    if (event.kind != StartEvent::kind) continue;
    const auto began = read_event<StartEvent>(event.body);
    EXPECT_EQ(began.gradient_batches, 3);
    EXPECT_EQ(began.compression, 4);
    EXPECT_FALSE(began.most_error.has_value());
    ASSERT_TRUE(began.held);
    EXPECT_EQ(*began.held, start.weights->ranks);
  }
  EXPECT_FALSE(ui().last_start.folder.weights || ui().form.fit.answer || ui().form.fit.worker) << "their memory is free while it trains";
  EXPECT_EQ(ui().last_start.folder.gradient_batches, 3) << "and it can be started again";
}

// Its weights are in no checkpoint, so only its log says where they are from.
TEST_F(FolderForm, ARunForWhichThereWasNoMemoryIsTriedAgainFromItsFolder) {
  const std::string path = folder("bert_mlm");
  const auto room = std::make_shared<test::Room>();
  room->bytes = 10'000;
  SessionStart start;
  start.store = store_;
  start.config = folder_config(
      path, {"model.task=classification", "data.set=" + moods(), "data.text_column=review", "data.label_column=mood", "method.weights=tt",
             "model.tt.attention.rank=4", "model.length=8", "train.batch=4", "train.steps=2", "train.threads=1"});
  start.folder = {.path = path, .most_error = 0.5};
  start.open = [room](const std::string&, int) { return std::make_unique<test::TightDevice>(room); };
  std::string id;
  {
    Session session(start);
    ASSERT_TRUE(session.wait(60));
    ASSERT_EQ(session.latest()->error_code, static_cast<int>(ErrorCode::memory)) << session.latest()->message;
    id = session.latest()->run;
  }
  SessionStart resume;
  resume.store = store_;
  resume.resume_run = id;
  Session resumed(resume);
  ASSERT_TRUE(resumed.wait(60));
  EXPECT_EQ(resumed.latest()->phase, Phase::failed) << "it would begin with drawn weights";
  EXPECT_NE(resumed.latest()->error_hint.find(path), std::string::npos) << resumed.latest()->error_hint;
  ui().store->refresh(0);
  ASSERT_TRUE(until([&] { return find_row(*ui().runs, id) != nullptr; }));
  retry_run(ui(), id, Retry::half_batch);
  ASSERT_TRUE(until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(stage_->started.config.train.batch, 2);
  EXPECT_EQ(stage_->started.folder.path, path);
  EXPECT_EQ(stage_->started.folder.most_error, 0.5);
}

// The config has the largest rank of each kind of matrix; a resumed run knows those that each began with, which growth depends on.
TEST_F(FolderForm, AResumedRunKnowsTheRanksThatItBeganWith) {
  const std::string path = folder("bert_mlm");
  SessionStart start;
  start.store = store_;
  start.config = folder_config(path, {"model.task=classification", "data.set=" + moods(), "data.text_column=review",
                                      "data.label_column=mood", "method.weights=tt", "model.length=8", "train.batch=4", "train.steps=2",
                                      "train.threads=1", "train.eval_every=0", "method.comera.train_ranks=false"});
  start.folder = {.path = path, .most_error = 0.4};
  RunConfig config = start.config;
  const LiveRanks began = weights_of_folder(start.folder, config)->ranks;
  const auto initial = [](SessionStart from) {
    Session session(std::move(from));
    EXPECT_TRUE(session.wait(60));
    const Snapshot& end = *session.latest();
    EXPECT_EQ(end.phase, Phase::finished) << end.message << end.error_why;
    LiveRanks ranks;
    for (const LayerRanks& layer : end.ranks) ranks.push_back(layer.initial);
    return std::pair(end.run, ranks);
  };
  const auto [id, first] = initial(start);
  EXPECT_EQ(first, began);
  SessionStart resume;
  resume.store = store_;
  resume.resume_run = id;
  resume.extend = 1;
  EXPECT_EQ(initial(resume).second, began);
  SessionStart fork;
  fork.store = store_;
  fork.fork_run = id;
  fork.extend = 1;
  EXPECT_EQ(initial(fork).second, began);
  const RunConfig stored = load_stored_run(store_, id).config;
  bool smaller = false;  // else the test shows nothing
  for (size_t i = 0; i < began.size(); ++i)
    for (const int64_t rank : began[i]) smaller = smaller || rank < stored.model.tt.attention.rank;
  EXPECT_TRUE(smaller);
}

TEST_F(FolderForm, RefusesAModelThatTheFolderDoesNotHave) {
  open(folder("bert_mlm"));
  set_field(ui(), "model.encoder.d_ff", "64");
  settle();
  const std::vector<Problem> problems = blocking_problems(ui().form);
  EXPECT_TRUE(std::any_of(problems.begin(), problems.end(),
                          [](const Problem& one) { return one.path == "model" && one.text.find("(42, 28)") != std::string::npos; }));
  EXPECT_NE(no_fit(ui().form), nullptr);
  open_form_from_folder(ui(), (folder_ / "nothing").string());
  ASSERT_TRUE(until([&] { return !ui().form.problem.empty(); }));
  EXPECT_NE(ui().form.problem.find("config.json"), std::string::npos) << ui().form.problem;
}

}  // namespace
}  // namespace comera::studio
