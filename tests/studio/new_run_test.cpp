// The form of a new run: its forecast is the planner's, its errors are the config's, and what it starts is what it shows.
#include "app/studio/form/new_run.h"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/plan_rows.h"
#include "app/studio/actions.h"
#include "app/studio/parts/named_items.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

class FormStage : public Stage {
 public:
  using Stage::Stage;
  // The form with everything that is worked out for it.
  void open(const std::string& source) {
    open_form(ui, source);
    ASSERT_TRUE(until([&] { return ui.form.source == source && (ui.form.ready || !ui.form.problem.empty()); }));
    settle();
  }
  void settle() {
    ASSERT_TRUE(until([&] { return !ui.form.looking; }));
    frames(4);
  }
  template <class Change>
  void change(const std::string& path, Change change) {
    change(ui.form.config);
    form_changed(ui, path);
    settle();
  }
};

// The item of a setting; its id depends on nothing but the path.
ImGuiID item_of(const std::string& path) {
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && std::string(window->Name).find("/settings_") != std::string::npos)
      return ImHashStr("##value", 0, ImHashStr(path.c_str(), 0, window->ID));
  return 0;
}

std::vector<std::string> words(const std::vector<PlanRow>& rows) {
  std::vector<std::string> all;
  for (const PlanRow& row : rows) all.push_back(row.what + "|" + row.count + "|" + row.note);
  return all;
}

bool has_problem(const std::vector<Problem>& problems, const std::string& path) {
  return std::any_of(problems.begin(), problems.end(), [&](const Problem& problem) { return problem.path == path; });
}

struct FormSize {
  const char* name;
  ImVec2 pixels;
  float scale;
};

class FormSizes : public testing::TestWithParam<std::tuple<FormSize, ThemeKind>> {};

TEST_P(FormSizes, DrawsInside) {
  const auto& [size, kind] = GetParam();
  FormStage stage(size.pixels, size.scale, kind);
  stage.ui.layout = "new";
  stage.frames(1);  // nothing is read yet
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << "while it is read";
  for (const char* preset : {"demo", "encoder6-mnli"}) {
    stage.open(preset);
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << preset;
  }
  stage.ui.form.methods.shown = true;
  stage.frames(1);
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << "methods, before all are planned";
  stage.change("train.clip_norm", [](RunConfig& c) { c.train.clip_norm = 1; });
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.methods.done(); }));
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << "methods";
  for (MethodMemory::Row& row : stage.ui.form.methods.rows)
    if (row.plan.forecast) row.plan.forecast->available = 100 << 20;  // less than some of them take
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << "methods that do not fit";
  stage.ui.form.methods.shown = false;
  stage.ui.form.search = "rank";
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << "searched";
  stage.ui.form.search = "nothing like this";
  stage.frames();
  stage.ui.form.search.clear();
  stage.change("model.encoder.heads", [](RunConfig& c) {
    c.model.encoder.heads = 7;
    c.train.batch = 0;
  });
  start_form(stage.ui);
  stage.frames();
  EXPECT_TRUE(stage.ui.form.listing);
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << "with problems";
  open_form(stage.ui, "there-is-no-such-file.json");
  ASSERT_TRUE(stage.until([&] { return !stage.ui.form.problem.empty(); }));
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << "not read";
}

INSTANTIATE_TEST_SUITE_P(
    All, FormSizes,
    testing::Combine(testing::Values(FormSize{"800x500", {800, 500}, 1}, FormSize{"960x600", {960, 600}, 1},
                                     FormSize{"960x600_at_3", {960, 600}, 3}, FormSize{"1600x900", {1600, 900}, 1},
                                     FormSize{"1920x1200_at_2", {1920, 1200}, 2}, FormSize{"2880x1800_at_3", {2880, 1800}, 3},
                                     FormSize{"3840x2160", {3840, 2160}, 1}, FormSize{"3840x2160_at_3", {3840, 2160}, 3}),
                     testing::Values(ThemeKind::dark, ThemeKind::light)),
    [](const auto& info) {
      return std::string(std::get<0>(info.param).name) + (std::get<1>(info.param) == ThemeKind::dark ? "_dark" : "_light");
    });

// After a config that cannot be read another one can, and the same one once it was mended.
TEST(NewRun, GoesOnFromAConfigThatCannotBeRead) {
  const test::Folder folder;
  const std::string path = folder.file("mine.json");
  test::write_text(path, "{\"train\": ");
  FormStage stage({960, 600}, 1);
  for (const std::string& next : {std::string("demo"), path}) {
    open_form(stage.ui, path);
    ASSERT_TRUE(stage.until([&] { return !stage.ui.form.problem.empty(); }));
    if (next == path) test::write_text(path, "{\"train\": {\"batch\": 17}}");
    open_form(stage.ui, next);
    ASSERT_TRUE(stage.until([&] { return stage.ui.form.ready; })) << next;
    EXPECT_EQ(stage.ui.form.problem, "");
  }
  EXPECT_EQ(stage.ui.form.config.train.batch, 17);
}

// In the smallest window with the largest text Start is there as a whole, and can be pressed.
TEST(NewRun, StartsFromTheSmallestWindow) {
  FormStage stage({960, 600}, 3);
  stage.open("demo");
  std::vector<NamedItem> items;
  collect_items(&items);
  stage.frames(1);
  collect_items(nullptr);
  const auto start = std::find_if(items.begin(), items.end(), [](const NamedItem& item) { return item.name == "start-run"; });
  ASSERT_NE(start, items.end());
  EXPECT_GT(start->high.y - start->low.y, 1.5f * Stage::line()) << "whole";
  EXPECT_GT(start->high.x - start->low.x, 10 * Stage::line());
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent((start->low.x + start->high.x) / 2, (start->low.y + start->high.y) / 2);
  stage.frames(2);
  for (const bool down : {true, false}) {
    io.AddMouseButtonEvent(0, down);
    stage.frames(2);
  }
  EXPECT_TRUE(stage.until([&] { return stage.ui.live != nullptr; }));
  EXPECT_EQ(stage.started.config.name, "demo");
}

// The size target is one row: what is set in one unit shows in the others, and each of them can be typed.
TEST(NewRun, TheSizeTargetIsOneRowInThreeUnits) {
  FormStage stage;
  stage.open("demo");
  const auto type = [&](const char* path, const char* text) {
    jump_to(stage.ui.form, path);
    ASSERT_TRUE(stage.until([&] { return stage.ui.form.jump.empty(); }));
    stage.frames(3);
    stage.press(ImGuiMod_Ctrl | ImGuiKey_A);
    stage.type(text);
    stage.press(ImGuiKey_Enter);
    stage.settle();
  };
  const auto row_of = [&](const char* path) {
    jump_to(stage.ui.form, path);
    EXPECT_TRUE(stage.until([&] { return stage.ui.form.jump.empty(); }));
    stage.frames(3);
    const ImGuiContext& context = *ImGui::GetCurrentContext();
    const ImRect row = ImGui::WindowRectRelToAbs(context.NavWindow, context.NavWindow->NavRectRel[0]);
    stage.press(ImGuiKey_Escape);
    return row;
  };
  const ImRect share = row_of("method.comera.target"), mib = row_of("method.comera.target_mib"),
               times = row_of("method.comera.target_compression");
  EXPECT_EQ(share.Min.y, mib.Min.y);
  EXPECT_EQ(share.Min.y, times.Min.y);
  EXPECT_LT(share.Max.x, mib.Min.x);
  EXPECT_LT(mib.Max.x, times.Min.x);
  const ComeraConfig& comera = stage.ui.form.config.method.comera;
  type("method.comera.target_compression", "50");
  EXPECT_EQ(comera.target_compression, 50);
  EXPECT_EQ(comera.target, 0);
  type("method.comera.target", "0.5");
  EXPECT_EQ(comera.target, 0.5);
  EXPECT_EQ(comera.target_compression, 0);
  // Typed over, what a field shows becomes the target: half of the first size is this many times smaller than dense.
  const Forecast& forecast = *stage.ui.form.forecast;
  const double derived = 2 * forecast.tensorised_compression();
  jump_to(stage.ui.form, "method.comera.target_compression");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.jump.empty(); }));
  stage.frames(3);
  EXPECT_NEAR(std::atof(ImGui::GetInputTextState(ImGui::GetActiveID())->TextA.Data), derived, derived * 0.01);
}

TEST(NewRun, TheForecastIsThatOfPlan) {
  FormStage stage;
  for (const std::string& preset : preset_names()) {
    stage.open(preset);
    ASSERT_TRUE(stage.ui.form.forecast) << preset;
    EXPECT_EQ(words(plan_rows(*stage.ui.form.forecast)), words(plan_rows(make_forecast(load_config(preset, {}))))) << preset;
  }
  // As `comera plan encoder6-mnli` prints it (README.md, "Measured").
  stage.open("encoder6-mnli");
  EXPECT_EQ(stage.ui.form.forecast->trainable, 1'490'157);
  EXPECT_EQ(stage.ui.form.forecast->tensorised, 1'026'528);
  EXPECT_EQ(stage.ui.form.forecast->dense_equivalent, 66'957'315);
}

TEST(NewRun, TheNewestForecastWins) {
  FormStage stage;
  stage.open("demo");
  for (const int64_t batch : {1, 300, 2, 500, 3, 128}) {
    stage.ui.form.config.train.batch = batch;
    form_changed(stage.ui, "train.batch");
  }
  stage.settle();
  RunConfig wanted = load_config("demo", {"train.batch=128"});
  EXPECT_EQ(stage.ui.form.forecast->memory.bytes, make_forecast(wanted).memory.bytes);
}

// A setting that is added to a config struct has a row here without anything else being done.
TEST(NewRun, EverySettingHasARowThatCanBeReached) {
  FormStage stage({960, 600});
  stage.open("demo");
  RunConfig config;
  size_t count = 0;
  for (const FieldEntry& entry : fields_list(fields_of(config))) {
    jump_to(stage.ui.form, entry.path);
    ASSERT_TRUE(stage.until([&] { return stage.ui.form.jump.empty(); }));
    stage.frames(2);
    const ImGuiContext& context = *ImGui::GetCurrentContext();
    EXPECT_EQ(context.NavId, item_of(entry.path)) << entry.path;
    ASSERT_NE(context.NavWindow, nullptr);
    const ImRect row = ImGui::WindowRectRelToAbs(context.NavWindow, context.NavWindow->NavRectRel[0]);
    EXPECT_TRUE(context.NavWindow->InnerRect.Contains(row)) << entry.path << " is out of sight";
    stage.press(ImGuiKey_Escape);
    ++count;
  }
  EXPECT_GT(count, 80u);
  EXPECT_TRUE(stage.ui.form.changed.empty()) << "looking changes nothing";
}

TEST(NewRun, SearchShowsWhatFits) {
  FormStage stage;
  stage.open("demo");
  const auto height = [&] {
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
      if (window->WasActive && std::string(window->Name).find("/settings_") != std::string::npos) return window->ContentSize.y;
    return 0.0f;
  };
  const float all = height();
  stage.ui.form.search = "Learning RATE";
  stage.frames();
  const float some = height();
  stage.ui.form.search = "lr_core";
  stage.frames();
  EXPECT_LT(some, all / 3);
  EXPECT_LT(height(), some);
  EXPECT_GT(height(), 0);
}

TEST(NewRun, ATypedValueIsTaken) {
  FormStage stage;
  stage.open("demo");
  for (const auto& [path, typed, value] : {std::tuple<const char*, const char*, FieldValue>{"train.batch", "48", int64_t{48}},
                                           {"train.lr_core", "0.0125", 0.0125},
                                           {"method.comera.target_mib", "0.25", 0.25},
                                           {"model.tt.ffn_in.in_modes", "28, 28", std::vector<int64_t>{28, 28}},
                                           {"name", "of my own", std::string("of my own")}}) {
    jump_to(stage.ui.form, path);
    ASSERT_TRUE(stage.until([&] { return stage.ui.form.jump.empty(); }));
    stage.frames(3);
    EXPECT_EQ(ImGui::GetActiveID(), item_of(path)) << path;
    stage.press(ImGuiMod_Ctrl | ImGuiKey_A);
    stage.type(typed);
    stage.press(ImGuiKey_Enter);
    EXPECT_EQ(field_values(stage.ui.form.config).at(path), value) << path;
    EXPECT_TRUE(stage.ui.form.is_changed(path)) << path;
  }
  EXPECT_EQ(stage.ui.form.config.method.comera.target, 0) << "only the last size target is in force";
}

TEST(NewRun, StartsWithExactlyTheseValues) {
  FormStage stage;
  stage.ui.sets = {"train.threads=1"};
  stage.open("demo");
  EXPECT_EQ(stage.ui.form.config.train.threads, 1);
  stage.change("method.comera.target_compression", [](RunConfig& c) {
    c.name = "it's mine";
    c.train.batch = 24;
    c.train.lr_core = 0.00123;
    c.train.schedule = "cosine";
    c.model.mlp.hidden = {784, 784};
    c.method.comera.floor_rank = true;
    c.method.comera.target_compression = 20;
  });
  new_seed(stage.ui);
  stage.settle();
  const Json shown = config_to_json(stage.ui.form.config);
  EXPECT_EQ(parse_json(form_json(stage.ui.form), "copied"), shown);
  stage.press(ImGuiKey_F5);
  ASSERT_TRUE(stage.until([&] { return stage.ui.live != nullptr; })) << "not started";
  EXPECT_EQ(config_to_json(stage.started.config), shown);
  EXPECT_TRUE(stage.ui.ending.empty()) << "and no other run was started before it";
  EXPECT_EQ(stage.ui.layout, "train");
}

// The values of --set of a command, as a shell reads it.
std::vector<std::string> sets_of(const std::string& command) {
  std::vector<std::string> sets;
  if (command.find("--set") == std::string::npos) return sets;
  std::FILE* shell = popen(("printf '%s\\n' " + command.substr(command.find("--set"))).c_str(), "r");
  if (!shell) return sets;
  char line[256];
  while (std::fgets(line, sizeof line, shell)) {
    line[std::strcspn(line, "\n")] = 0;
    if (std::string(line) != "--set") sets.push_back(line);
  }
  EXPECT_EQ(pclose(shell), 0);
  return sets;
}

TEST(NewRun, TheCommandStartsTheSameRun) {
  FormStage stage;
  stage.open("demo");
  EXPECT_EQ(form_command(stage.ui.form, ""), "comera train demo");
  stage.change("method.comera.target_mib", [](RunConfig& c) {
    c.name = "it's mine";
    c.train.lr_core = 0.00123;
    c.model.mlp.hidden = {784, 784};
    c.method.comera.target_mib = 0.5;
  });
  const std::string command = form_command(stage.ui.form, "elsewhere/runs.db");
  EXPECT_TRUE(command.starts_with("comera --store elsewhere/runs.db train demo --set ")) << command;
  EXPECT_NE(command.find("'name=it'\\''s mine'"), std::string::npos) << command;
  EXPECT_NE(command.find("'model.mlp.hidden=[784,784]'"), std::string::npos) << command;
  // A shell makes of it what is set.
  EXPECT_EQ(config_to_json(load_config("demo", sets_of(command))), config_to_json(stage.ui.form.config));
}

// Another optimizer brings its own eps, here as on the command line; and one that is set stays.
TEST(NewRun, AnotherOptimizerBringsItsEps) {
  FormStage stage;
  stage.open("demo");
  const auto eps_after = [&](const char* path, const std::function<void(RunConfig&)>& change) {
    stage.change(path, change);
    EXPECT_EQ(config_to_json(load_config("demo", sets_of(form_command(stage.ui.form, "")))), config_to_json(stage.ui.form.config)) << path;
    return stage.ui.form.config.method.adam.eps;
  };
  EXPECT_EQ(eps_after("method.optimizer", [](RunConfig& c) { c.method.optimizer = "galore"; }), 1e-6);
  EXPECT_EQ(eps_after("method.adam.eps", [](RunConfig& c) { c.method.adam.eps = 1e-8; }), 1e-8);
  EXPECT_EQ(eps_after("method.galore.rule", [](RunConfig& c) { c.method.galore.rule = "adam8bit"; }), 1e-8);
  EXPECT_EQ(eps_after("method.optimizer", [](RunConfig& c) { c.method.optimizer = "adamw"; }), 1e-8);
}

// No settings of a config: the run begins with them as with an edit before its first step.
TEST(NewRun, CapsOfRanks) {
  FormStage stage;
  stage.open("demo");
  NewRun& form = stage.ui.form;
  EXPECT_TRUE(caps_of(form).empty());
  form.caps = {{"fc0.2", 8}, {"fc1.1", 1000}, {"fc9.1", 3}};
  EXPECT_EQ(caps_of(form), std::vector<std::string>{"rank.cap.fc0.2=8"}) << "no more than there is, and of bonds that there are";
  EXPECT_EQ(form_command(form, ""), "comera train demo --set rank.cap.fc0.2=8");
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  start_form(stage.ui);
  ASSERT_TRUE(stage.until([&] { return stage.ui.live != nullptr; }));
  EXPECT_EQ(stage.started.sets, std::vector<std::string>{"rank.cap.fc0.2=8"});
  open_form(stage.ui);
  reset_form(stage.ui);
  EXPECT_TRUE(form.caps.empty());
}

TEST_F(Clicked, CapsAreMovedInTheListOfTensorTrains) {
  open_form(ui(), "demo");
  ASSERT_TRUE(stage_.until([&] { return ui().form.ready && !ui().form.looking; }));
  if (!sees("caps:fc0")) click("tensor-trains");
  click("caps:fc0");
  ASSERT_TRUE(sees("cap:fc0.1"));
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  click("cap:fc0.1");  // near its middle: its title stands beside it
  ASSERT_TRUE(ui().form.caps.contains("fc0.1"));
  EXPECT_GT(ui().form.caps.at("fc0.1"), 8);
  EXPECT_LT(ui().form.caps.at("fc0.1"), 64);
}

TEST(NewRun, WhatIsWrongStandsAtItsFieldAndStartGoesThere) {
  FormStage stage({960, 600});
  stage.open("encoder6-mnli");
  stage.change("model.encoder.heads", [](RunConfig& c) {
    c.model.encoder.heads = 7;
    c.train.lr = -1;
  });
  EXPECT_TRUE(has_problem(stage.ui.form.problems, "model.encoder.heads"));
  EXPECT_TRUE(has_problem(stage.ui.form.problems, "train.lr"));
  EXPECT_FALSE(stage.ui.form.forecast) << "there is none of a config that is wrong";
  start_form(stage.ui);
  stage.frames(1);
  EXPECT_TRUE(stage.ui.form.listing);
  EXPECT_EQ(stage.ui.form.jump, blocking_problems(stage.ui.form).front().path);
  EXPECT_FALSE(stage.ui.live);
  stage.frames();
  EXPECT_EQ(ImGui::GetActiveID(), item_of(blocking_problems(stage.ui.form).front().path)) << "ready to be typed over";
  stage.press(ImGuiKey_Escape);
  reset_form(stage.ui);
  stage.settle();
  EXPECT_TRUE(stage.ui.form.problems.empty());
  EXPECT_TRUE(stage.ui.form.forecast);
}

TEST(NewRun, DataThatIsNotThereAndDevicesStopAStart) {
  FormStage stage;
  stage.open("demo");
  stage.change("data.set", [](RunConfig& c) {
    c.data.set = "there-is-no-such-set";
    c.train.device = "cuda:99";
  });
  EXPECT_TRUE(has_problem(stage.ui.form.outlook_problems, "data.set"));
  EXPECT_TRUE(has_problem(stage.ui.form.outlook_problems, "train.device"));
  EXPECT_TRUE(stage.ui.form.forecast) << "sizes need neither";
  start_form(stage.ui);
  ASSERT_TRUE(stage.until([&] { return !stage.ui.form.start_wanted; })) << "the disk is looked at once more";
  EXPECT_TRUE(stage.ui.form.listing);
  EXPECT_FALSE(stage.ui.live);
}

TEST(NewRun, ChangesCanBeTakenBackAndOutliveAnotherPreset) {
  FormStage stage;
  stage.open("demo");
  const int64_t batch = stage.ui.form.base.train.batch;
  stage.change("train.batch", [](RunConfig& c) {
    c.train.batch = 7;
    c.train.epochs = 5;
    c.train.seed = 1234;
  });
  EXPECT_EQ(stage.ui.form.changed, (std::set<std::string>{"train.batch", "train.epochs", "train.seed"}));
  stage.open("mlp-fashion");
  EXPECT_TRUE(stage.ui.form.changed.empty());
  stage.open("demo");
  EXPECT_EQ(stage.ui.form.config.train.batch, 7) << "the changes are there again";
  reset_field(stage.ui, "train.batch");
  EXPECT_EQ(stage.ui.form.config.train.batch, batch);
  EXPECT_EQ(stage.ui.form.config.train.epochs, 5);
  reset_form(stage.ui);
  EXPECT_EQ(stage.ui.form.changed, (std::set<std::string>{"train.seed"})) << "a reset keeps the seed";
  EXPECT_EQ(stage.ui.form.config.train.seed, 1234);
}

// The slider of a learning rate goes over decades and leaves short numbers.
TEST(NewRun, RatesAreSlidOverDecades) {
  FormStage stage;
  stage.open("demo");
  jump_to(stage.ui.form, "train.lr_core");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.jump.empty(); }));
  stage.frames(3);
  ASSERT_EQ(ImGui::GetActiveID(), item_of("train.lr_core"));
  ImGuiWindow* window = ImGui::GetCurrentContext()->ActiveIdWindow;
  const ImRect shown = ImGui::WindowRectRelToAbs(window, window->NavRectRel[0]);
  stage.press(ImGuiKey_Escape);
  const double before = stage.ui.form.config.train.lr_core;
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(shown.GetCenter().x, shown.GetCenter().y);
  stage.frames(2);
  io.AddMouseButtonEvent(0, true);
  stage.frames(2);
  for (int i = 1; i <= 40; ++i) {
    io.AddMousePosEvent(shown.GetCenter().x + static_cast<float>(i), shown.GetCenter().y);
    stage.frames(1);
  }
  io.AddMouseButtonEvent(0, false);
  stage.frames(2);
  const double after = stage.ui.form.config.train.lr_core;
  const double decades = 5 * 40 / static_cast<double>(shown.GetWidth());  // from the middle of 1e-6 to 0.1, 40 pixels on
  EXPECT_NEAR(std::log10(after), -3.5 + decades, 0.2) << before;
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", after);
  EXPECT_DOUBLE_EQ(std::atof(text), after) << "three digits";
}

// A file that could not be read is mended with another program: the form reads it again by itself, and starts the run.
TEST(NewRun, ReadsDataAgainThatChangedOnTheDisk) {
  const test::Folder folder;
  const auto write = [&](const std::string& text) { std::ofstream(folder.file("texts.csv")) << text; };
  write("text,label\n\"not closed");
  Stage stage;
  open_form(stage.ui, "demo");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.ready; }));
  RunConfig& config = stage.ui.form.config;
  config = load_config("encoder6-mnli", {"data.set=" + folder.file("texts.csv"), "train.batch=2", "train.steps=2"});
  form_changed(stage.ui, "");
  const auto problem = [&] {
    const DataFacts* facts = stage.ui.form.facts();
    return facts ? facts->problem : "unknown";
  };
  ASSERT_TRUE(stage.until([&] { return problem() != "unknown"; }));
  EXPECT_NE(problem(), "");
  std::string rows = "text,label\n";
  for (int i = 0; i < 40; ++i) rows += "a good text," + std::to_string(i % 3) + "\n";
  write(rows);
  EXPECT_TRUE(stage.until([&] { return problem().empty(); })) << problem();
  ASSERT_TRUE(stage.until([&] { return !stage.ui.form.looking; }));
  for (const Problem& one : blocking_problems(stage.ui.form)) ADD_FAILURE() << one.path << ": " << one.text;
  write("text,label\n");
  start_form(stage.ui);
  ASSERT_TRUE(stage.until([&] { return !stage.ui.form.start_wanted && problem() != "unknown"; }));
  EXPECT_NE(problem(), "") << "looked at when it starts";
}

TEST(NewRun, OnlyNumbersCanBeTyped) {
  FormStage stage;
  stage.open("demo");
  for (const char* path : {"train.clip_norm", "train.epochs", "train.lr_core", "train.steps"}) {
    const FieldValues before = field_values(stage.ui.form.config);
    for (const char* text : {"nan", "inf"}) {
      jump_to(stage.ui.form, path);
      stage.frames(6);
      ImGui::ActivateItemByID(item_of(path));
      ImGui::GetCurrentContext()->NavNextActivateFlags = ImGuiActivateFlags_PreferInput;
      stage.frames();
      EXPECT_TRUE(ImGui::GetIO().WantTextInput) << path;
      stage.press(ImGuiMod_Ctrl | ImGuiKey_A);
      stage.type(text);
      stage.press(ImGuiKey_Enter);
      for (const auto& [at, value] : field_values(stage.ui.form.config))
        if (const auto* number = std::get_if<double>(&value); number && !std::isfinite(*number)) ADD_FAILURE() << at << " " << text;
      EXPECT_TRUE(std::string(text) == "inf" || field_values(stage.ui.form.config) == before) << path;
    }
  }
}

TEST(NewRun, ARunWithoutANameGetsThatOfItsPreset) {
  FormStage stage;
  stage.open("demo");
  stage.change("name", [](RunConfig& c) { c.name = "  "; });
  start_form(stage.ui);
  ASSERT_TRUE(stage.until([&] { return stage.ui.live != nullptr; }));
  EXPECT_EQ(stage.started.config.name, "demo");
}

}  // namespace
}  // namespace comera::studio
