// What the form of a new run says of its data and of how long it takes, and the values it offers where one is wrong.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "app/studio/form/data_facts.h"
#include "app/studio/form/new_run.h"
#include "app/studio/form/pace.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/preferences.h"
#include "core/base/json.h"
#include "core/config/suggest.h"
#include "core/store/run_writer.h"
#include "tests/store/support.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {
using test::Folder;

// Texts of 1, 2, ... words.
std::string text_set(const Folder& folder, int rows) {
  const std::string path = folder.file("train.tsv");
  std::string text = "sentence\tlabel\n";
  for (int i = 1; i <= rows; ++i) {
    for (int word = 0; word < i; ++word) text += word ? " the" : "the";
    text += "\t" + std::to_string(i % 2) + "\n";
  }
  test::write_text(path, text);
  return path;
}

TEST(DataFacts, AreThoseOfTheLoader) {
  const Folder folder;
  const DataFacts facts = read_data_facts({text_set(folder, 40), ""});
  ASSERT_EQ(facts.problem, "");
  EXPECT_TRUE(facts.text);
  EXPECT_EQ(facts.rows, 40);
  EXPECT_EQ(facts.classes, 2);
  ASSERT_EQ(facts.lengths.size(), 40u);
  EXPECT_EQ(facts.lengths.front(), 3) << "one word between [CLS] and [SEP]";
  EXPECT_EQ(facts.longest(), 42);
  EXPECT_EQ(facts.median(), 23);
  EXPECT_DOUBLE_EQ(facts.share_beyond(32), 0.25);
  EXPECT_DOUBLE_EQ(facts.share_beyond(42), 0);
}

TEST(DataFacts, JoinedTextsHaveTokensAndNoRows) {
  const Folder folder;
  test::write_text(folder.file("a.csv"), "body\n" + std::string(300, 'x') + "\n");
  const DataFacts facts = read_data_facts({folder.file("a.csv"), "", {"body", "", ""}, TextTask::language});
  ASSERT_EQ(facts.problem, "");
  EXPECT_EQ(facts.joined_tokens, 301) << "bytes, and a line end";
  EXPECT_EQ(facts.first.size(), 3u);
  EXPECT_TRUE(facts.lengths.empty());
}

TEST(DataFacts, OfImagesAndOfNothing) {
  setenv("COMERA_ASSETS", COMERA_SOURCE_DIR "/assets", 0);
  const RunConfig demo = load_config("demo", {});
  const DataFacts facts = read_data_facts({demo.data.set, demo.data.vocab});
  ASSERT_EQ(facts.problem, "");
  EXPECT_FALSE(facts.text);
  EXPECT_EQ(facts.rows, 10000);
  EXPECT_EQ(facts.classes, 10);
  EXPECT_EQ(facts.height, 28);
  EXPECT_TRUE(facts.lengths.empty());
  EXPECT_NE(read_data_facts({"there-is-no-such-set", ""}).problem, "");
}

void store_run(const std::string& store, const RunConfig& config, double step_ms, const std::string& name) {
  RunStart start;
  start.name = name;
  start.config = config_to_json(config).dump();
  start.device = "CPU, 2 threads";
  RunWriter writer(store, start);
  RunSummary summary;
  summary.step = 50;
  summary.step_ms = step_ms;
  writer.summary(summary);
  writer.finish("finished", "");
  ASSERT_TRUE(writer.flush());
}

TEST(Pace, IsThatOfTheNewestRunOfTheSameShape) {
  setenv("COMERA_ASSETS", COMERA_SOURCE_DIR "/assets", 0);
  const Folder folder;
  const RunConfig config = load_config("demo", {});
  EXPECT_EQ(find_pace({config, ""}).step_ms, 0);
  EXPECT_EQ(find_pace({config, folder.store()}).step_ms, 0) << "no store yet";
  store_run(folder.store(), load_config("demo", {"train.batch=7"}), 99, "another batch");
  EXPECT_EQ(find_pace({config, folder.store()}).step_ms, 0);
  store_run(folder.store(), load_config("demo", {"train.lr_core=0.5", "train.seed=9"}), 12.5, "the same step");
  store_run(folder.store(), load_config("demo", {"model.mlp.hidden=[784]"}), 99, "another model");
  store_run(folder.store(), load_config("demo", {"method.weights=dense"}), 99, "another method");
  const Pace pace = find_pace({config, folder.store()});
  EXPECT_EQ(pace.step_ms, 12.5);
  EXPECT_EQ(pace.name, "the same step");
  EXPECT_EQ(pace.device, "CPU, 2 threads");
}

TEST(Pace, StepsOfAWholeRun) {
  RunConfig config;
  config.train.batch = 32;
  config.train.epochs = 3;
  EXPECT_EQ(planned_steps(config, 0, false), 0) << "the rows are not known";
  EXPECT_EQ(planned_steps(config, 1000, false), 93);
  EXPECT_EQ(planned_steps(config, 1000, true), 84) << "100 rows validate";
  config.data.train_rows = 320;
  EXPECT_EQ(planned_steps(config, 1000, false), 30);
  config.train.steps = 7;
  EXPECT_EQ(planned_steps(config, 1000, false), 7);
}

TEST(Guess, TheSameStepElseTheNearestByItsWork) {
  setenv("COMERA_ASSETS", COMERA_SOURCE_DIR "/assets", 0);
  const RunConfig config = load_config("demo", {});
  const RunConfig other = load_config("demo", {"train.batch=7"}), third = load_config("demo", {"train.batch=9"});
  std::vector<MeasuredStep> known;
  EXPECT_EQ(guess_step(known, "here", config, 10).step_ms, 0);
  remember_step(known, {.machine = "here", .shape = shape_text(other), .name = "small", .step_ms = 2, .gflop = 1, .problem = ""});
  remember_step(known, {.machine = "here", .shape = shape_text(third), .name = "large", .step_ms = 30, .gflop = 20, .problem = ""});
  Guess guess = guess_step(known, "here", config, 10);
  EXPECT_DOUBLE_EQ(guess.step_ms, 15) << "by the one with about as much work";
  EXPECT_EQ(guess.from, "large");
  EXPECT_FALSE(guess.same);
  EXPECT_EQ(guess_step(known, "another machine", config, 10).step_ms, 0);
  EXPECT_EQ(guess_step(known, "here", config, 0).step_ms, 0) << "its work is not known";
  remember_step(known, {.machine = "here",
                        .shape = shape_text(load_config("demo", {"train.seed=9"})),
                        .name = "demo",
                        .step_ms = 4,
                        .gflop = 9,
                        .problem = ""});
  guess = guess_step(known, "here", config, 10);
  EXPECT_EQ(guess.step_ms, 4) << "the seed does not matter";
  EXPECT_TRUE(guess.same);
  remember_step(known, {.machine = "here", .shape = shape_text(config), .name = "demo", .step_ms = 5, .gflop = 9, .problem = ""});
  EXPECT_EQ(known.size(), 3u);
  EXPECT_EQ(guess_step(known, "here", config, 10).step_ms, 5) << "the newest one";
}

TEST(Suggestions, BalancedModesOfEachKind) {
  RunConfig config;  // six encoders of 768 and 3072
  const auto modes = chosen_modes(config);
  EXPECT_EQ(modes.at("model.tt.attention.in_modes"), (std::vector<int64_t>{12, 8, 8}));
  EXPECT_EQ(modes.at("model.tt.attention.out_modes"), (std::vector<int64_t>{8, 8, 12}));
  EXPECT_EQ(modes.at("model.tt.ffn_in.out_modes"), (std::vector<int64_t>{12, 16, 16}));
  EXPECT_EQ(modes.count("model.tt.embedding.in_modes"), 1u);
  config.model.kind = "mlp";
  config.model.mlp.hidden = {512, 256};
  EXPECT_TRUE(chosen_modes(config).count("model.tt.ffn_in.in_modes") == 0) << "784 and 512 are different sizes";
  config.model.mlp.hidden = {512};
  EXPECT_EQ(chosen_modes(config).count("model.tt.ffn_in.in_modes"), 1u);
}

// Every problem that a value can solve is solved by the value that is offered.
TEST(Suggestions, TheNearestValueIsRight) {
  RunConfig config;
  config.model.encoder.heads = 7;
  config.model.encoder.positions = 4;
  config.model.tt.attention.in_modes = {10, 10, 10};
  config.train.batch = 0;
  config.train.lr_core = -1;
  config.data.pack = true;
  config.data.token_budget = 5;
  const std::vector<Problem> problems = config_problems(config);
  EXPECT_GE(problems.size(), 6u);
  EXPECT_EQ(nearest_value(config, "model.encoder.heads"), "6");
  for (const Problem& problem : problems) {
    const std::string near = nearest_value(config, problem.path);
    ASSERT_NE(near, "") << problem.path;
    std::vector<Problem> wrong;
    fields_set(fields_of(config), problem.path, near, wrong);
    EXPECT_TRUE(wrong.empty()) << problem.path << " = " << near;
  }
  EXPECT_TRUE(config_problems(config).empty());
  EXPECT_EQ(nearest_value(config, "train.schedule"), "");
}

class OutlookStage : public Stage {
 public:
  using Stage::Stage;
  void open(const std::string& source) {
    open_form(ui, source);
    ASSERT_TRUE(until([&] { return ui.form.source == source && ui.form.all_looked(); }));
    frames(4);
  }
};

TEST(FormOutlook, ShowsDataAndTimeInEverySize) {
  const Folder folder;
  const std::string set = text_set(folder, 40);
  for (const auto& [size, scale] :
       {std::pair{ImVec2(960, 600), 1.0f}, {ImVec2(1600, 900), 1.0f}, {ImVec2(1920, 1200), 2.0f}, {ImVec2(3840, 2160), 1.0f}}) {
    OutlookStage stage(size, scale);
    stage.ui.store_path = folder.store();
    stage.open("demo");
    ASSERT_NE(stage.ui.form.facts(), nullptr);
    EXPECT_EQ(stage.ui.form.facts()->rows, 10000);
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
    stage.ui.form.config.data.set = set;
    form_changed(stage.ui, "data.set");
    EXPECT_EQ(stage.ui.form.facts(), nullptr) << "not those of another set";
    ASSERT_TRUE(stage.until([&] { return stage.ui.form.all_looked(); }));
    stage.frames(4);
    EXPECT_EQ(stage.ui.form.facts()->rows, 40);
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
    // A set that was read is not read again.
    stage.ui.form.config.data.set = load_config("demo", {}).data.set;
    form_changed(stage.ui, "data.set");
    ASSERT_NE(stage.ui.form.facts(), nullptr);
    EXPECT_EQ(stage.ui.form.facts()->rows, 10000);
  }
}

TEST(FormOutlook, TheStoreTellsHowFastItIs) {
  const Folder folder;
  OutlookStage stage;
  stage.ui.store_path = folder.store();
  stage.open("demo");
  EXPECT_EQ(stage.ui.form.pace.step_ms, 0);
  store_run(folder.store(), stage.ui.form.config, 4, "like this one");
  form_changed(stage.ui, "");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.pace.step_ms == 4; }));
  // What it is known from, and more that stands in no line, can be copied.
  std::vector<NamedItem> items;
  collect_items(&items);
  const auto press_on = [&](const std::string& name, int button) {
    for (int i = 0; i < 3; ++i) {
      items.clear();
      stage.frames(1);
    }
    const auto found = std::find_if(items.begin(), items.end(), [&](const NamedItem& item) { return item.name == name; });
    ASSERT_NE(found, items.end()) << name;
    ImGui::GetIO().AddMousePosEvent((found->low.x + found->high.x) / 2, (found->low.y + found->high.y) / 2);
    stage.frames(2);
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddMouseButtonEvent(button, down);
      stage.frames(2);
    }
  };
  press_on("pace", ImGuiMouseButton_Right);
  press_on("copy:Copy tooltip", ImGuiMouseButton_Left);
  const std::string copied = ImGui::GetClipboardText();
  EXPECT_TRUE(copied.starts_with("30 it/s, 2 m 30 s for")) << "not 250, since the demo has a step limit: " << copied;
  EXPECT_NE(copied.find("like this one"), std::string::npos) << copied;
  EXPECT_NE(copied.find("Median time of the last steps"), std::string::npos) << copied;
  collect_items(nullptr);
  stage.ui.form.config.train.batch += 1;
  form_changed(stage.ui, "train.batch");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.all_looked() && stage.ui.form.pace.step_ms == 0; }));
}

// A config that never ran: a step of it is timed when somebody asks, and kept for others.
TEST(FormOutlook, AStepIsMeasuredOnRequest) {
  const Folder folder;
  OutlookStage stage;
  stage.ui.store_path = folder.store();
  stage.ui.sets = {"train.threads=1"};
  stage.open("demo");
  EXPECT_EQ(stage.ui.form.guess.step_ms, 0);
  measure_form(stage.ui);
  EXPECT_TRUE(stage.ui.form.measuring);
  ASSERT_TRUE(stage.until([&] { return !stage.ui.form.measuring; }));
  EXPECT_EQ(stage.ui.form.measure_problem, "");
  EXPECT_GT(stage.ui.form.guess.step_ms, 0);
  EXPECT_TRUE(stage.ui.form.guess.same);
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  ASSERT_EQ(stage.ui.settings.measured.size(), 1u);
  set_field(stage.ui, "model.mlp.hidden", "[784]");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.all_looked(); }));
  EXPECT_GT(stage.ui.form.guess.step_ms, 0) << "an estimate";
  EXPECT_FALSE(stage.ui.form.guess.same);
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  save_preferences(stage.ui, folder.file("studio.json"));
  UiState later;
  load_preferences(later, folder.file("studio.json"));
  ASSERT_EQ(later.settings.measured.size(), 1u);
  EXPECT_EQ(later.settings.measured[0].shape, stage.ui.settings.measured[0].shape);
  EXPECT_EQ(later.settings.measured[0].step_ms, stage.ui.settings.measured[0].step_ms);
}

// The slider of the batch goes over powers of two; typing takes what is typed.
TEST(FormOutlook, TheBatchSnapsToPowersOfTwo) {
  OutlookStage stage;
  stage.open("demo");
  stage.ui.form.config.train.batch = 48;
  form_changed(stage.ui, "train.batch");
  stage.frames(2);
  jump_to(stage.ui.form, "train.batch");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.jump.empty(); }));
  stage.frames(3);
  ImGuiWindow* window = ImGui::GetCurrentContext()->ActiveIdWindow;
  ASSERT_NE(window, nullptr);
  const ImVec2 at = ImGui::WindowRectRelToAbs(window, window->NavRectRel[0]).GetCenter();
  stage.press(ImGuiKey_Escape);
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(at.x, at.y);
  stage.frames(2);
  io.AddMouseButtonEvent(0, true);
  stage.frames(2);
  std::set<int64_t> seen;
  for (int i = 1; i <= 200; ++i) {
    io.AddMousePosEvent(at.x - 20 + static_cast<float>(i), at.y);
    stage.frames(1);
    seen.insert(stage.ui.form.config.train.batch);
  }
  io.AddMouseButtonEvent(0, false);
  stage.frames(2);
  EXPECT_GT(stage.ui.form.config.train.batch, 48);
  EXPECT_GE(seen.size(), 3u);
  seen.erase(48);
  for (const int64_t batch : seen) EXPECT_EQ(batch & (batch - 1), 0) << batch;
}

TEST(FormOutlook, AFieldTakesTheValueThatIsOffered) {
  OutlookStage stage;
  stage.open("encoder6-mnli");
  stage.ui.form.config.model.encoder.heads = 7;
  form_changed(stage.ui, "model.encoder.heads");
  EXPECT_FALSE(stage.ui.form.problems.empty());
  set_field(stage.ui, "model.encoder.heads", nearest_value(stage.ui.form.config, "model.encoder.heads"));
  EXPECT_EQ(stage.ui.form.config.model.encoder.heads, 6);
  EXPECT_TRUE(stage.ui.form.problems.empty());
  set_field(stage.ui, "model.encoder.heads", "\"many\"");
  EXPECT_EQ(stage.ui.form.config.model.encoder.heads, 6) << "a text is no number";
}

}  // namespace
}  // namespace comera::studio
