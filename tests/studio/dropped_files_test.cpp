// Files that are dropped onto the window: what they are is told by their content, and each gets an answer.
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "app/studio/actions.h"
#include "core/session/session.h"
#include "core/store/run_reader.h"
#include "core/store/tfevents.h"
#include "core/tensor/safetensors.h"
#include "core/train/model_export.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;
using namespace std::string_literals;

constexpr const char* kTsv = "sentence\tlabel\nwell done\t1\nnot so\t0\n";
constexpr const char* kJsonl = "{\"text\": \"well done\", \"label\": 1}\n{\"text\": \"not so\", \"label\": 0}\n";
constexpr const char* kCsv = "step,train_loss,val_loss\n1,0.9,1.1\n2,0.8,\n";
const std::string kIdx = "\0\0\x08\x03\0\0\0\x01\0\0\0\x02\0\0\0\x02"s + "abcd";

class DroppedFiles : public Clicked {
 protected:
  ~DroppedFiles() override {
    ui().store.reset();  // before the folder goes
    ui().dialogs = {};
  }
  std::string write(const std::string& name, const std::string& bytes) {
    test::write_text(folder_.file(name), bytes);
    return folder_.file(name);
  }
  std::string write_events(const std::string& name) {
    fs::create_directories(fs::path(folder_.file(name)).parent_path());
    std::ofstream file(folder_.file(name), std::ios::binary);
    TfeventsWriter writer(file, 100);
    for (int64_t step = 1; step <= 3; ++step) writer.scalars(step, 100.0 + static_cast<double>(step), {{"loss", 1.0}});
    return folder_.file(name);
  }
  std::string write_gzip(const std::string& name, const std::string& bytes) {
    gzFile file = gzopen(folder_.file(name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return folder_.file(name);
  }
  // A real one; returns its id. Its checkpoint is of step 2.
  std::string train(const std::string& store) {
    setenv("COMERA_ASSETS", COMERA_SOURCE_DIR "/assets", 0);
    SessionStart start;
    start.config = load_config("demo", {"train.threads=1", "train.steps=2", "train.eval_every=0", "name=little", "data.train_rows=512",
                                        "data.validation_rows=64"});
    start.store = store;
    Session session(std::move(start));
    EXPECT_TRUE(session.wait(60));
    session.join();
    return session.latest()->run;
  }
  static std::string checkpoint_of(const std::string& store, const std::string& id) { return RunReader(store).checkpoints(id).at(0).path; }
  void open(const std::string& store) {
    ui().store_path = store;
    ui().store = std::make_unique<StoreClient>(store, std::function<void()>{});
    ASSERT_TRUE(stage_.until([&] { return ui().runs->loaded; }));
  }
  void drop(const std::vector<std::string>& files) { ui().dialogs.dropped = files; }
  const Toast* toast_with(const std::string& words) const {
    for (const Toast& toast : stage_.ui.toasts)
      if (toast.text.find(words) != std::string::npos) return &toast;
    return nullptr;
  }
  ::testing::AssertionResult told(const std::string& words) {
    if (stage_.until([&] { return toast_with(words) != nullptr; })) return ::testing::AssertionSuccess();
    auto failure = ::testing::AssertionFailure() << "'" << words << "' is not told;";
    for (const Toast& toast : ui().toasts) failure << " " << toast.text;
    return failure;
  }
  std::vector<std::string> offers_of(const std::string& words) const {
    std::vector<std::string> labels;
    for (const Offer& offer : toast_with(words)->offers) labels.push_back(offer.label);
    return labels;
  }
  void take(const std::string& words, const std::string& label) {
    for (const Offer& offer : std::vector<Offer>(toast_with(words)->offers))
      if (offer.label == label && offer.act) offer.act(ui());
  }
  test::Folder folder_;
};

TEST_F(DroppedFiles, AreToldByTheirContent) {
  for (const auto& [name, bytes, kind] :
       {std::tuple<const char*, std::string, FileKind>{"a.tsv", kTsv, FileKind::data},
        {"without_ending", kTsv, FileKind::data},
        {"a.jsonl", kJsonl, FileKind::data},
        {"looks.json", kJsonl, FileKind::data},
        {"one.json", "{\"train\": {\"batch\": 17}}", FileKind::config},
        {"lines.json", "{\n  \"train\": {}\n}\n", FileKind::config},
        {"train-images-idx3-ubyte", kIdx, FileKind::data},
        {"labels", "\0\0\x08\x01\0\0\0\x01\x05"s, FileKind::other},
        {"a.csv", kCsv, FileKind::table},
        {"tidy.txt", "run,step,wall_time,metric,value\na,1,,loss,2\n", FileKind::table},
        {"other.csv", "name,age\na,1\n", FileKind::data},
        {"steps.csv", "step\n1\n", FileKind::other},
        {"poem.tsv", "roses\tred\nviolets\tblue\n", FileKind::data},
        {"long.jsonl", "{\"body\": \"" + std::string(9000, 'x') + "\"}\n{\"body\": \"y\"}\n", FileKind::data},
        {"poem.txt", "Roses are red,\nviolets are blue.\n", FileKind::data},
        {"zero.txt", "a\0b"s, FileKind::other},
        {"header.tsv", "sentence\tlabel\n", FileKind::other},
        {"quote.csv", "\"step,value\n1,2\n", FileKind::other}})
    EXPECT_EQ(kind_of_file(write(name, bytes)), kind) << name;
  EXPECT_EQ(kind_of_file(write_events("curves")), FileKind::events) << "whatever its name";
  EXPECT_EQ(kind_of_file(write_gzip("images.gz", kIdx)), FileKind::data);
  EXPECT_EQ(kind_of_file(write_gzip("text.gz", kTsv)), FileKind::other);
  std::string clicks;  // in Criteo's format
  for (int row = 0; row < 500; ++row) clicks += "1" + std::string(13, '\t') + std::string(26, '\t') + std::to_string(row) + "\n";
  EXPECT_EQ(kind_of_file(write("clicks.txt", clicks)), FileKind::data);
  EXPECT_EQ(kind_of_file(write_gzip("clicks.gz", clicks)), FileKind::data);
  write_events("logs/run1/events.out.tfevents.1");
  EXPECT_EQ(kind_of_file(folder_.file("logs")), FileKind::events);
  fs::create_directories(folder_.file("set"));
  EXPECT_EQ(kind_of_file(folder_.file("set")), FileKind::folder);
  write("set/picture.bin", "\0\1"s);
  EXPECT_EQ(kind_of_file(folder_.file("set")), FileKind::folder);
  fs::create_directories(folder_.file("set/below"));
  write("set/below/a.py", "print()");
  EXPECT_EQ(kind_of_file(folder_.file("set")), FileKind::data);
  write("set/train.tsv", kTsv);
  EXPECT_EQ(kind_of_file(folder_.file("set")), FileKind::data);
}

TEST_F(DroppedFiles, GarbageIsNoneOfThemAndSaysSo) {
  open(folder_.store());
  std::mt19937 random(7);
  for (int i = 0; i < 300; ++i) {
    std::string bytes(random() % 600, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    if (i % 3 == 0) bytes = "\0\0\0\0\0\0\0\0{"s + bytes;
    if (i % 3 == 1) bytes = "sentence\tlabel" + bytes;
    kind_of_file(write("garbage", bytes));
  }
  for (const auto& [name, bytes, words] :
       {std::tuple<const char*, std::string, const char*>{"a.safetensors", "\x20\0\0\0\0\0\0\0{\"x\": 1"s, "a.safetensors"},
        {"bad.csv", "step,loss\n1,many\n", "'many' is not a number"},
        {"noise", std::string(300, '\x07'), "is not a database of runs"}}) {
    ui().toasts.clear();
    drop({write(name, bytes)});
    ASSERT_TRUE(told(words));
    EXPECT_EQ(toast_with(words)->level, Level::error);
  }
  EXPECT_FALSE(fs::exists(folder_.store()) && !RunReader(folder_.store()).runs().empty()) << "nothing was half imported";
}

TEST_F(DroppedFiles, CurvesBecomeRuns) {
  open(folder_.store());
  drop({write_events("events.out.tfevents.1"), write("metrics.csv", kCsv)});
  ASSERT_TRUE(told("metrics.csv: 1 run with 3 points imported"));
  ASSERT_TRUE(told("events.out.tfevents.1: 1 run with 3 points imported"));
  ASSERT_TRUE(stage_.until([&] { return ui().runs->rows.size() == 2; }));
  EXPECT_EQ(offers_of("metrics.csv: 1 run"), (std::vector<std::string>{"Show", "Dismiss"}));
  take("metrics.csv: 1 run", "Show");
  ASSERT_TRUE(stage_.until([&] { return ui().stored != nullptr; }));
  EXPECT_EQ(ui().stored->metric("train_loss").size(), 2u);
}

TEST_F(DroppedFiles, CurvesThatAreThereAreImportedAgainOnlyWhenAsked) {
  open(folder_.store());
  const std::string path = write("metrics.csv", kCsv);
  drop({path});
  ASSERT_TRUE(told("metrics.csv: 1 run with 3 points imported"));
  const std::string id = RunReader(folder_.store()).runs().at(0).id;
  ui().toasts.clear();
  drop({path});
  ASSERT_TRUE(told("metrics.csv is already in this database: run metrics (" + id + ") has the same curves."));
  EXPECT_EQ(offers_of("already in"), (std::vector<std::string>{"Show", "Import again", "Dismiss"}));
  EXPECT_EQ(RunReader(folder_.store()).runs().size(), 1u);
  take("already in", "Show");
  ASSERT_TRUE(stage_.until([&] { return ui().stored != nullptr; }));
  EXPECT_EQ(ui().stored->snapshot->run, id);
  take("already in", "Import again");
  ASSERT_TRUE(told("metrics.csv: 1 run with 3 points imported"));
  EXPECT_EQ(RunReader(folder_.store()).runs().size(), 2u);
}

TEST_F(DroppedFiles, NothingIsImportedWhereNothingMayBeWritten) {
  open(folder_.store());
  auto list = std::make_shared<RunList>(*ui().runs);
  list->read_only = "the file may not be written";
  ui().store.reset();
  ui().runs = list;
  drop({write("metrics.csv", kCsv)});
  ASSERT_TRUE(told("is read-only"));
  EXPECT_FALSE(fs::exists(folder_.store()));
}

TEST_F(DroppedFiles, ADataSetFillsTheForm) {
  for (const std::string& path : {write("a.tsv", kTsv), write("b.jsonl", kJsonl), write("c-images-idx3-ubyte", kIdx)}) {
    drop({path});
    ASSERT_TRUE(stage_.until([&] { return ui().form.ready && ui().form.config.data.set == path; })) << path;
    EXPECT_EQ(ui().layout, "new");
    EXPECT_TRUE(ui().form.is_changed("data.set"));
    EXPECT_TRUE(told(fs::path(path).filename().string() + " is now the data set of the new run"));
  }
}

TEST_F(DroppedFiles, TextsWithoutLabelsBringALanguageModel) {
  std::string jsonl;
  for (int i = 0; i < 400; ++i)
    jsonl += R"({"number": )" + std::to_string(i) + R"(, "code": "def f)" + std::to_string(i) + "(): return 0\"}\n";
  fs::create_directories(folder_.file("sources/below"));
  write("sources/below/a.py", jsonl);
  for (const auto& [file, column] : {std::pair(write("functions.jsonl", jsonl), "code"), {folder_.file("sources"), ""}}) {
    const std::string path = file;  // lambdas of Clang 14 cannot take a part of a pair
    open_form(ui(), "demo");
    ASSERT_TRUE(stage_.until([&] { return ui().form.ready; }));
    drop({path});
    ASSERT_TRUE(stage_.until([&] { return ui().form.ready && ui().form.config.data.set == path; })) << path;
    EXPECT_EQ(ui().form.source, "llama-10m");
    EXPECT_EQ(ui().form.config.data.text_column, column);
    EXPECT_TRUE(told("for a language model"));
    ASSERT_TRUE(stage_.until([&] { return ui().form.all_looked(); }));
    for (const Problem& problem : blocking_problems(ui().form)) ADD_FAILURE() << problem.path << ": " << problem.text;
  }
}

// A file of somebody who has read nothing: the form gets a model that takes it, its columns, classes and length, and trains.
TEST_F(DroppedFiles, ATableOfTextsBringsThePresetAndItsColumns) {
  std::string csv = "id,topic,note\n", jsonl;
  for (int i = 0; i < 60; ++i) {
    const std::string topic = i % 3 == 0   ? "sea"
                              : i % 3 == 1 ? "wood"
                                           : "air",
                      note = "a note of number " + std::to_string(i) + " on the " + topic;
    csv += std::to_string(i) + "," + topic + ",\"" + note + ", and more\"\n";
    jsonl += R"({"about": ")" + note + R"(", "topic": ")" + topic + "\"}\n";
  }
  for (const auto& [file, text] : {std::pair(write("notes.csv", csv), "note"), {write("notes.jsonl", jsonl), "about"}}) {
    const std::string path = file;  // lambdas of Clang 14 cannot take a part of a pair
    open_form(ui(), "demo");
    ASSERT_TRUE(stage_.until([&] { return ui().form.ready; }));
    drop({path});
    ASSERT_TRUE(stage_.until([&] { return ui().form.ready && ui().form.config.data.set == path; })) << path;
    const RunConfig& config = ui().form.config;
    EXPECT_EQ(ui().form.source, "encoder2-nli");
    EXPECT_EQ(config.data.text_column, text);
    EXPECT_EQ(config.data.label_column, "topic");
    EXPECT_EQ(config.model.classes, 3);
    EXPECT_EQ(config.model.length, 16);
    EXPECT_TRUE(told("3 classes (topic)"));
    ASSERT_TRUE(stage_.until([&] { return ui().form.all_looked(); }));
    EXPECT_TRUE(blocking_problems(ui().form).empty());
  }
  // A model that takes other data, or has too few classes, is a problem before the start.
  set_field(ui(), "model.classes", "2");
  ASSERT_TRUE(stage_.until([&] { return ui().form.all_looked(); }));
  ASSERT_EQ(blocking_problems(ui().form).size(), 1u);
  EXPECT_NE(blocking_problems(ui().form)[0].text.find("model.classes is 2"), std::string::npos) << blocking_problems(ui().form)[0].text;
  set_field(ui(), "model.classes", "3");
  // A model of the user's that takes such data stays.
  set_field(ui(), "model.encoder.layers", "1");
  drop({write("others.csv", csv)});
  ASSERT_TRUE(told("others.csv is now the data set"));
  EXPECT_EQ(ui().form.config.model.encoder.layers, 1);
  set_field(ui(), "train.steps", "4");
  ui().open_session = start_session;
  start_form(ui());
  ASSERT_TRUE(stage_.until([&] { return ui().live && ui().live->view().ended(); }));
  EXPECT_EQ(ui().live->view().snapshot->phase, Phase::finished) << ui().live->view().snapshot->message;
}

TEST_F(DroppedFiles, SeveralAreHandledOneAfterTheOther) {
  open(folder_.store());
  const std::string config = write("config.json", "{\"train\": {\"batch\": 17}}"), data = write("a.tsv", kTsv);
  drop({write("noise", "\x07\x07"), config, data, write("metrics.csv", kCsv), folder_.file("not-there")});
  ASSERT_TRUE(stage_.until([&] { return ui().form.config.data.set == data; })) << "data come last";
  EXPECT_TRUE(told("does not exist"));
  EXPECT_TRUE(told("metrics.csv: 1 run with 3 points imported"));
  EXPECT_EQ(ui().form.source, config);
  EXPECT_EQ(ui().form.config.train.batch, 17);
  EXPECT_EQ(std::count_if(ui().window_log.begin(), ui().window_log.end(), [](const LogLine& line) { return line.level == Level::error; }),
            2);
}

TEST_F(DroppedFiles, ACheckpointOfAStoredRunLeadsToThatRun) {
  const std::string id = train(folder_.store()), path = checkpoint_of(folder_.store(), id);
  open(folder_.store());
  const std::string copy = folder_.file("copy.safetensors");
  fs::copy_file(path, copy);
  for (const std::string& file : {path, copy}) {
    ui().toasts.clear();
    drop({file});
    ASSERT_TRUE(told("is a checkpoint of little at step 2."));
    EXPECT_EQ(offers_of("is a checkpoint"), (std::vector<std::string>{"Fork", "Show", "Dismiss"})) << "a finished run is not resumed";
  }
  take("is a checkpoint", "Fork");
  ASSERT_TRUE(stage_.until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(stage_.started.fork_run, id);
  EXPECT_EQ(stage_.started.at_step, 2);
  // One that was stopped there goes on.
  { Database(folder_.store(), Database::Mode::write).run("UPDATE runs SET status = 'stopped'"); }
  ASSERT_TRUE(stage_.until([&] {
    ui().store->refresh(0);
    return ui().runs->rows.at(0).status == "stopped";
  }));
  ui().toasts.clear();
  drop({path});
  ASSERT_TRUE(told("is a checkpoint"));
  EXPECT_EQ(offers_of("is a checkpoint"), (std::vector<std::string>{"Resume", "Fork", "Show", "Dismiss"}));
}

TEST_F(DroppedFiles, ACheckpointOfAnotherStoreBecomesARunThatIsForked) {
  const std::string path = checkpoint_of(folder_.file("other.db"), train(folder_.file("other.db")));
  fs::create_directories(folder_.file("here"));
  const std::string store = folder_.file("here/runs.db");
  open(store);
  drop({path});
  ASSERT_TRUE(told("is a checkpoint of little at step 2, which is not in this database."));
  take("is a checkpoint", "Train from it");
  ASSERT_TRUE(stage_.until([&] { return ui().live != nullptr; }));
  const std::vector<RunRow> runs = RunReader(store).runs();
  ASSERT_EQ(runs.size(), 1u);
  EXPECT_EQ(runs[0].name, "little");
  EXPECT_EQ(runs[0].summary.step, 2);
  EXPECT_EQ(stage_.started.fork_run, runs[0].id);
  EXPECT_EQ(stage_.started.at_step, 2);
  // The real core goes on from it, to the same weights as where it came from.
  SessionStart start = stage_.started;
  start.sets = {"train.steps=4"};
  Session session(std::move(start));
  ASSERT_TRUE(session.wait(60));
  session.join();
  EXPECT_EQ(session.latest()->phase, Phase::finished) << session.latest()->message;
  EXPECT_EQ(session.latest()->step, 4);
  EXPECT_TRUE(fs::exists(path)) << "the file itself stays where it is";
}

TEST_F(DroppedFiles, AnExportedModelIsTrainedOn) {
  const std::string path = checkpoint_of(folder_.file("other.db"), train(folder_.file("other.db")));
  const std::string model = folder_.file("model.safetensors");
  export_model(path, model, ExportNames::own, false, false);
  open(folder_.store());
  drop({model});
  ASSERT_TRUE(told("model.safetensors is an exported model of little"));
  take("exported model", "Train from it");
  ASSERT_TRUE(stage_.until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(stage_.started.at_step, 0);
  EXPECT_EQ(RunReader(folder_.store()).run(stage_.started.fork_run).name, "little");
}

TEST_F(DroppedFiles, AModelFolderIsTrainedOn) {
  open(folder_.store());
  drop({COMERA_SOURCE_DIR "/tests/golden_models/gpt2"});
  ASSERT_TRUE(told("gpt2 is a model of the transformers library"));
  take("transformers library", "Import as a run");
  ASSERT_TRUE(stage_.until([&] { return !stage_.started.fork_run.empty() || ui().form.fork; }));
  EXPECT_EQ(RunReader(folder_.store()).runs().front().name, "gpt2");
}

TEST_F(DroppedFiles, WeightsOfAnotherProgramAreSaidToBe) {
  SafetensorsWriter writer;
  writer.add_values("bert.weight", "F32", {2}, {1, 2});
  writer.finish(folder_.file("bert.safetensors"));
  open(folder_.store());
  drop({folder_.file("bert.safetensors")});
  ASSERT_TRUE(told("holds weights of another program"));
  EXPECT_NE(toast_with("holds weights")->text.find("comera import"), std::string::npos);
}

// The form's preset has modes and a batch for its own data; where those of the user are of another size, they are chosen anew.
TEST_F(DroppedFiles, DataOfAnotherSizeFitTheForm) {
  open_form(ui(), "demo");
  ASSERT_TRUE(stage_.until([&] { return ui().form.ready; }));
  const std::string images = "\0\0\x08\x03\0\0\0\x28\0\0\0\x10\0\0\0\x10"s + std::string(40 * 256, 'a');
  std::string labels = "\0\0\x08\x01\0\0\0\x28"s;
  for (int i = 0; i < 40; ++i) labels += static_cast<char>(i % 3);
  fs::create_directories(folder_.file("small"));
  write("small/train-images-idx3-ubyte", images), write("small/train-labels-idx1-ubyte", labels);
  write("small/t10k-images-idx3-ubyte", images), write("small/t10k-labels-idx1-ubyte", labels);
  drop({folder_.file("small")});
  ASSERT_TRUE(told("small is now the data set of the new run"));
  ASSERT_TRUE(stage_.until([&] { return ui().form.all_looked(); }));
  EXPECT_EQ(ui().form.config.model.mlp.inputs, 256);
  EXPECT_LE(ui().form.config.train.batch, 20);
  for (const Problem& problem : blocking_problems(ui().form)) ADD_FAILURE() << problem.path << ": " << problem.text;
}

}  // namespace
}  // namespace comera::studio
