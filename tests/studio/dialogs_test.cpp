// The palette, the list of keys, the browser of files, files that are dropped, settings and About.
#include "app/studio/dialogs.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/preferences.h"
#include "core/base/error.h"
#include "core/ops/device.h"
#include "core/session/session.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;

class Files : public testing::Test {
 protected:
  Files() {
    folder_ = fs::temp_directory_path() / ("comera-dialogs-" + std::to_string(::getpid()));
    fs::create_directories(folder_ / "inner");
    write("config.json", "// a comment\n/* another */ {\"train\": {\"batch\": 17}}\n");
    write("bare.json", "{}");
    write("weights.safetensors", std::string("\x10\0\0\0\0\0\0\0{\"__metadata__\"", 23));
    write("fake.json", "SQLite format 3, said by a text");
    write("runs.db", std::string("SQLite format 3\0 and so on", 26));
    write("picture.png", "\x89PNG\r\n\x1a\n");
    write("empty", "");
    write("comment", "// only");
  }
  ~Files() override { fs::remove_all(folder_); }
  void write(const char* name, const std::string& text) { std::ofstream(folder_ / name, std::ios::binary) << text; }
  std::string path(const char* name) const { return (folder_ / name).string(); }
  fs::path folder_;
};

TEST_F(Files, AreToldByTheirContent) {
  EXPECT_EQ(kind_of_file(path("config.json")), FileKind::config);
  EXPECT_EQ(kind_of_file(path("bare.json")), FileKind::config);
  EXPECT_EQ(kind_of_file(path("weights.safetensors")), FileKind::weights);
  EXPECT_EQ(kind_of_file(path("fake.json")), FileKind::other);
  EXPECT_EQ(kind_of_file(path("runs.db")), FileKind::store);
  EXPECT_EQ(kind_of_file(path("picture.png")), FileKind::other);
  EXPECT_EQ(kind_of_file(path("empty")), FileKind::other);
  EXPECT_EQ(kind_of_file(path("comment")), FileKind::other);
  EXPECT_EQ(kind_of_file(std::string(COMERA_SOURCE_DIR) + "/tests/data/parquet/pairs.parquet"), FileKind::data);
  EXPECT_EQ(kind_of_file(path("inner")), FileKind::folder);
  EXPECT_EQ(kind_of_file(path("not-there")), FileKind::missing);
}

TEST_F(Files, ADroppedConfigFillsTheForm) {
  Stage stage;
  stage.ui.dialogs.dropped = {path("config.json")};
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.ready; }));
  EXPECT_EQ(stage.ui.layout, "new");
  EXPECT_EQ(stage.ui.form.source, path("config.json"));
  EXPECT_EQ(stage.ui.form.config.train.batch, 17);
  EXPECT_TRUE(stage.ui.toasts.empty());
}

TEST_F(Files, SettingsOfTheWindowAreRemembered) {
  Stage stage;
  Settings& settings = stage.ui.settings;
  settings.max_fps = 24;
  settings.line_width = 2.5f;
  settings.line_markers = false;
  settings.training_fps = 30;
  settings.autosave_minutes = 7;
  settings.alerts.not_finite.on = false;
  settings.alerts.collapsed.pause = true;
  settings.alerts.patience = 321;
  settings.alerts.memory_margin.pause = true;
  settings.alerts.margin = 0.25;
  stage.ui.timeline.by_time = true;
  save_preferences(stage.ui, path("studio.json"));
  UiState later;
  load_preferences(later, path("studio.json"));
  EXPECT_EQ(later.settings.max_fps, 24);
  EXPECT_EQ(later.settings.line_width, 2.5f);
  EXPECT_FALSE(later.settings.line_markers);
  EXPECT_EQ(later.settings.training_fps, 30);
  EXPECT_EQ(later.settings.autosave_minutes, 7);
  EXPECT_FALSE(later.settings.alerts.not_finite.on);
  EXPECT_FALSE(later.settings.alerts.not_finite.pause);
  EXPECT_TRUE(later.settings.alerts.collapsed.on);
  EXPECT_TRUE(later.settings.alerts.collapsed.pause);
  EXPECT_TRUE(later.settings.alerts.no_progress.on);
  EXPECT_EQ(later.settings.alerts.patience, 321);
  EXPECT_TRUE(later.settings.alerts.memory_margin.pause);
  EXPECT_EQ(later.settings.alerts.margin, 0.25);
  EXPECT_TRUE(later.timeline.by_time);
  // One of before there were these settings has the defaults.
  test::write_text(path("old.json"), R"({"version": 1, "theme": "light"})");
  UiState old;
  load_preferences(old, path("old.json"));
  EXPECT_EQ(old.settings.theme, ThemeKind::light);
  EXPECT_EQ(old.settings.max_fps, 60);
  EXPECT_EQ(old.settings.line_width, 1);
  EXPECT_TRUE(old.settings.line_markers);
  EXPECT_TRUE(old.settings.alerts.collapsed.on);
  EXPECT_EQ(old.settings.autosave_minutes, 0);
}

TEST(SettingsOfTheWindow, TheFrameRateIsCapped) {
  Settings settings;
  EXPECT_DOUBLE_EQ(settings.shortest_frame(false), 1.0 / 60);
  EXPECT_DOUBLE_EQ(settings.shortest_frame(true), 1.0 / 20);
  settings.max_fps = 5;
  EXPECT_DOUBLE_EQ(settings.shortest_frame(false), 1.0 / 5);
  EXPECT_DOUBLE_EQ(settings.shortest_frame(true), 1.0 / 5);
  settings.max_fps = 60;
  settings.gui_share = 0.25;  // of a core: three times as long as a frame took nothing is drawn
  EXPECT_DOUBLE_EQ(settings.shortest_frame(false, 0.030), 0.120);
  EXPECT_DOUBLE_EQ(settings.shortest_frame(false, 0.001), 1.0 / 60) << "frames that cost little come as often as before";
  settings.gui_share = 1;
  EXPECT_DOUBLE_EQ(settings.shortest_frame(true, 0.080), 0.080);
}

// A device that is not here is no dead end.
class NoSuchDevice : public Clicked {
 protected:
  void fail() {
    say([](Snapshot& s) {
      s.phase = Phase::failed;
      s.message = "there is no CUDA device";
      s.error_why = "the driver says none";
      s.error_code = static_cast<int>(ErrorCode::device);
    });
  }
};

TEST_F(NoSuchDevice, TheRunIsOfferedOnTheProcessor) {
  RunConfig config = load_config("demo", {});
  config.train.device = "cuda:0";
  config.train.batch = 17;
  ASSERT_TRUE(start_config(ui(), config));
  fail();
  ASSERT_TRUE(sees("says:This run needs cuda:0"));
  EXPECT_FALSE(stage_.script->posted.size() > 0);
  say([](Snapshot& s) { s = {}; });
  click("Train on CPU");
  EXPECT_EQ(stage_.started.config.train.device, "cpu");
  EXPECT_EQ(stage_.started.config.train.batch, 17) << "the rest as it was";
  EXPECT_EQ(ui().dialogs.open, Dialog::none);
}

TEST_F(NoSuchDevice, CancelLeavesItFailed) {
  RunConfig config = load_config("demo", {});
  config.train.device = "cuda:0";
  ASSERT_TRUE(start_config(ui(), config));
  fail();
  click("Cancel");
  EXPECT_EQ(ui().dialogs.open, Dialog::none);
  EXPECT_EQ(stage_.started.config.train.device, "cuda:0");
}

TEST_F(NoSuchDevice, AnotherFailureOfARunOnTheProcessorAsksNothing) {
  ASSERT_TRUE(start_config(ui(), load_config("demo", {})));
  fail();
  EXPECT_FALSE(sees("Train on CPU"));
}

TEST_F(NoSuchDevice, TheFormAsksBeforeItStarts) {
  if (!cuda_status().devices.empty()) GTEST_SKIP() << "there is a CUDA device here";
  open_form(ui(), "demo");
  ASSERT_TRUE(stage_.until([&] { return ui().form.ready; }));
  set_field(ui(), "train.device", "\"cuda:0\"");
  start_form(ui());
  ASSERT_TRUE(stage_.until([&] { return ui().dialogs.open == Dialog::no_device; }));
  click("Train on CPU");
  ASSERT_TRUE(stage_.until([&] { return ui().live != nullptr; }));
  EXPECT_EQ(stage_.started.config.train.device, "cpu");
}

TEST_F(Files, ADroppedDatabaseIsListed) {
  Stage stage;
  stage.ui.store = std::make_unique<StoreClient>(path("none.db"), std::function<void()>{});
  stage.ui.layout = "train";
  SessionStart start;  // a real database, with one run in it
  start.config = load_config("demo", {"train.threads=1", "train.steps=2", "train.eval_every=0"});
  start.store = path("other.db");
  Session session(std::move(start));
  ASSERT_TRUE(session.wait(60));
  session.join();
  stage.ui.dialogs.dropped = {path("other.db")};
  ASSERT_TRUE(stage.until([&] { return stage.ui.runs->rows.size() == 1; }));
  EXPECT_EQ(stage.ui.runs->rows[0].id, session.latest()->run);
  EXPECT_EQ(stage.ui.layout, "start");
  EXPECT_EQ(stage.ui.store_path, path("other.db")) << "new runs go there";
  // It is remembered.
  save_preferences(stage.ui, path("studio.json"));
  UiState later;
  load_preferences(later, path("studio.json"));
  EXPECT_EQ(later.settings.store, path("other.db"));
  EXPECT_EQ(chosen_store(path("studio.json")), path("other.db")) << "also before there is a window";
  for (const char* none : {"not-there", "picture.png", "bare.json", "inner"}) EXPECT_EQ(chosen_store(path(none)), "") << none;
}

TEST_F(Files, WhatCannotBeOpenedIsSaidPlainly) {
  for (const auto& [name, words] : {std::pair{"weights.safetensors", "weights.safetensors"},
                                    {"picture.png", "is not a database of runs"},
                                    {"inner", "folder"},
                                    {"not-there", "does not exist"}}) {
    Stage stage;
    stage.ui.dialogs.dropped = {path(name)};
    ASSERT_TRUE(stage.until([&] { return !stage.ui.toasts.empty(); })) << name;
    EXPECT_EQ(stage.ui.toasts.front().level, Level::error);
    EXPECT_NE(stage.ui.toasts.front().text.find(words), std::string::npos) << stage.ui.toasts.front().text;
    EXPECT_EQ(stage.ui.layout, "start");
  }
}

TEST_F(Files, TheBrowserListsFoldersFirst) {
  const Folder folder = read_folder(folder_.string());
  ASSERT_GT(folder.rows.size(), 5u);
  EXPECT_TRUE(folder.rows[0].folder);
  EXPECT_EQ(folder.rows[0].name, "inner");
  EXPECT_EQ(folder.rows[1].name, "bare.json");
  EXPECT_EQ(folder.rows[1].bytes, 2);
  EXPECT_FALSE(read_folder(path("not-there")).problem.empty());
}

// A desktop's dialog, played by a script that is found in $PATH.
class DesktopFiles : public Files {
 protected:
  void play(const std::string& program, const std::string& script) {
    const std::string file = path(program.c_str());
    test::write_text(file, "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    ::setenv("PATH", (folder_.string() + ":" + usual_).c_str(), 1);
  }
  ~DesktopFiles() override { ::setenv("PATH", usual_.c_str(), 1); }
  const std::string usual_ = std::getenv("PATH") ? std::getenv("PATH") : "";
};

TEST_F(DesktopFiles, WhatIsChosenThereIsOpened) {
  play("zenity", "[ \"$1\" = --file-selection ] && echo " + path("config.json"));
  Stage stage;
  stage.ui.dialogs.may_use_desktop = true;
  stage.frames();
  stage.press(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_O);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::none) << "not inside of the window";
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.ready; }));
  EXPECT_EQ(stage.ui.form.config.train.batch, 17);
}

TEST_F(DesktopFiles, ADataSetIsAFileOrAFolder) {
  write("train.tsv", "label\ttext\n0\ta\n");
  const std::string asked = path("asked");
  play("zenity",
       "echo \"$@\" > " + asked + "; case \"$*\" in *--directory*) echo " + path("inner") + ";; *) echo " + path("train.tsv") + ";; esac");
  for (const Choose choose : {Choose::file, Choose::folder}) {
    Stage stage;
    stage.ui.dialogs.may_use_desktop = true;
    stage.frames();
    open_browser(stage.ui, BrowseFor::data, choose);
    EXPECT_EQ(stage.ui.dialogs.open, Dialog::none) << "not inside of the window";
    const std::string wanted = path(choose == Choose::file ? "train.tsv" : "inner");
    ASSERT_TRUE(stage.until([&] { return stage.ui.form.ready && stage.ui.form.config.data.set == wanted; }))
        << stage.ui.form.config.data.set;
    std::ifstream said(asked);
    std::string words;
    std::getline(said, words);
    EXPECT_EQ(words.find("--directory") != std::string::npos, choose == Choose::folder) << words;
  }
}

TEST_F(DesktopFiles, OneThatCannotBeShownIsReplacedByOurOwn) {
  play("zenity", "exit 127");  // as a library that is missing
  Stage stage;
  stage.ui.dialogs.may_use_desktop = true;
  stage.frames();
  stage.press(ImGuiMod_Ctrl | ImGuiKey_O);
  ASSERT_TRUE(stage.until([&] { return stage.ui.dialogs.open == Dialog::browser; })) << "never nothing";
  EXPECT_EQ(stage.ui.dialogs.browse_for, BrowseFor::store);
}

TEST_F(DesktopFiles, ItGoesWithTheWindowAndOnlyWhenItIsWanted) {
  play("zenity", "exec sleep 1000");
  {
    Stage stage;
    stage.ui.dialogs.may_use_desktop = true;
    open_browser(stage.ui, BrowseFor::store);
    ASSERT_TRUE(stage.ui.dialogs.desktop);
    stage.frames();
    EXPECT_TRUE(stage.ui.dialogs.desktop) << "it is open, and no frame waits for it";
  }
  Stage stage;
  stage.ui.dialogs.may_use_desktop = true;
  stage.ui.settings.desktop_dialogs = false;
  open_browser(stage.ui, BrowseFor::store);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::browser);
}

TEST_F(Files, APathThatIsTypedIsOpened) {
  Stage stage;
  stage.frames();
  stage.press(ImGuiMod_Ctrl | ImGuiMod_Shift | ImGuiKey_O);
  ASSERT_EQ(stage.ui.dialogs.open, Dialog::browser);
  stage.frames();
  stage.press(ImGuiMod_Ctrl | ImGuiKey_A);
  stage.type(folder_.string() + "/");
  stage.press(ImGuiKey_Enter);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::browser) << "a folder is gone into";
  EXPECT_EQ(stage.ui.dialogs.folder, folder_.string());
  stage.ui.dialogs.path = path("config.json");
  ImGui::ActivateItemByID(ImHashStr("##path", 0, ImGui::GetTopMostPopupModal()->ID));
  ImGui::GetCurrentContext()->NavNextActivateFlags = ImGuiActivateFlags_PreferInput;
  stage.frames();
  stage.press(ImGuiKey_Enter);
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.ready; }));
  EXPECT_EQ(stage.ui.form.config.train.batch, 17);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::none);
}

TEST_F(Files, ADataSetIsChosenForTheForm) {
  Stage stage;
  open_form(stage.ui, "demo");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.ready; }));
  open_file(stage.ui, {.path = path("inner"), .as = BrowseFor::data});
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.config.data.set == path("inner"); }));
  EXPECT_TRUE(stage.ui.form.is_changed("data.set"));
}

TEST(Palette, FuzzyMatch) {
  EXPECT_LT(fuzzy_score("xq", "Checkpoint"), 0);
  EXPECT_LT(fuzzy_score("pc", "Checkpoint p") - fuzzy_score("cp", "Checkpoint p"), 0) << "order counts";
  EXPECT_GE(fuzzy_score("chk", "Checkpoint"), 0);
  EXPECT_GE(fuzzy_score("CHECK", "checkpoint"), 0);
  EXPECT_GT(fuzzy_score("st", "Show Train"), fuzzy_score("st", "Last")) << "words that begin with it first";
  EXPECT_GT(fuzzy_score("step", "One step"), fuzzy_score("step", "Stop the panel")) << "letters in a row first";
  EXPECT_GT(fuzzy_score("log", "Log"), fuzzy_score("log", "Log panel")) << "then the shorter one";
}

TEST(Palette, ActsOnWhatIsTyped) {
  Stage stage;
  stage.frames();
  stage.press(ImGuiMod_Ctrl | ImGuiKey_P);
  ASSERT_EQ(stage.ui.dialogs.open, Dialog::palette);
  stage.type("show train");
  EXPECT_EQ(stage.ui.dialogs.query, "show train");
  stage.press(ImGuiKey_Enter);
  EXPECT_EQ(stage.ui.layout, "train");
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::none);
  stage.press(ImGuiMod_Ctrl | ImGuiKey_P);
  stage.type("light th");
  stage.press(ImGuiKey_Enter);
  EXPECT_EQ(stage.ui.settings.theme, ThemeKind::light);
}

TEST(Palette, ArrowsChooseAndEscLeaves) {
  Stage stage;
  stage.frames();
  stage.press(ImGuiMod_Ctrl | ImGuiKey_P);
  stage.type("text");  // larger, smaller, normal
  const int first = stage.ui.dialogs.chosen;
  stage.press(ImGuiKey_DownArrow);
  stage.press(ImGuiKey_DownArrow);
  stage.press(ImGuiKey_UpArrow);
  EXPECT_EQ(stage.ui.dialogs.chosen, first + 1);
  stage.press(ImGuiKey_Escape);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::none);
  EXPECT_EQ(stage.ui.settings.user_scale, 1);
}

TEST(Palette, PresetsPanelsAndRunsAreInIt) {
  Stage stage;
  auto list = std::make_shared<RunList>();
  list->loaded = true;
  RunRow row;
  row.id = "r-abc";
  row.name = "little-orange";
  list->rows = {row};
  stage.ui.runs = list;
  stage.frames();
  stage.press(ImGuiMod_Ctrl | ImGuiKey_P);
  stage.type("panel log");
  EXPECT_EQ(stage.ui.dialogs.query, "panel log");
  stage.press(ImGuiKey_Escape);
  stage.press(ImGuiMod_Ctrl | ImGuiKey_P);
  stage.type("log panel");
  stage.press(ImGuiKey_Enter);
  EXPECT_TRUE(stage.ui.closed_panels["log"]);
  stage.press(ImGuiMod_Ctrl | ImGuiKey_P);
  stage.type("new run from mlp");
  stage.press(ImGuiKey_Enter);
  EXPECT_EQ(stage.ui.form.source, "mlp-fashion");
  stage.press(ImGuiMod_Ctrl | ImGuiKey_P);
  stage.type("orange");
  stage.press(ImGuiKey_Enter);
  EXPECT_EQ(stage.ui.selected_run, "r-abc");
}

TEST(Palette, WhatCannotBeDoneIsNotDone) {
  Stage stage;
  stage.frames();
  stage.press(ImGuiMod_Ctrl | ImGuiKey_P);
  stage.type("checkpoint");
  stage.press(ImGuiKey_Enter);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::palette) << "it stays and says why";
  EXPECT_TRUE(stage.script->posted.empty());
}

TEST(Keys, QuestionMarkShowsThem) {
  Stage stage;
  stage.frames();
  stage.press(ImGuiMod_Shift | ImGuiKey_Slash, '?');
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::keys);
  stage.press(ImGuiKey_Escape);
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::none);
}

TEST(Keys, AQuestionMarkInATextFieldIsText) {
  Stage stage;
  open_form(stage.ui, "demo");
  ASSERT_TRUE(stage.until([&] { return stage.ui.form.ready; }));
  stage.frames();
  stage.press(ImGuiMod_Ctrl | ImGuiKey_F);
  ASSERT_TRUE(ImGui::GetIO().WantTextInput) << "the search has the keyboard";
  stage.press(ImGuiMod_Shift | ImGuiKey_Slash, '?');
  stage.press(ImGuiKey_L, 'l');
  EXPECT_EQ(stage.ui.dialogs.open, Dialog::none);
  EXPECT_EQ(stage.ui.form.search, "?l");
}

TEST(About, TellsWhatIsNeededForAReport) {
  Stage stage;
  open_dialog(stage.ui, Dialog::about);
  stage.frames();
  ASSERT_TRUE(stage.until([&] { return stage.ui.dialogs.facts && stage.ui.dialogs.facts->latest(); }));
  stage.frames();
  ImGui::ActivateItemByID(ImHashStr("##button", 0, ImHashStr("Copy diagnostics", 0, ImGui::GetTopMostPopupModal()->ID)));
  stage.frames();
  const std::string copied = ImGui::GetClipboardText();
  for (const char* what : {"CoMERA Studio: ", "CUDA: ", "BLAS: ", "Dear ImGui: " IMGUI_VERSION, "threads: ", "store: "})
    EXPECT_NE(copied.find(what), std::string::npos) << what << " in\n" << copied;
}

// The lower right corner of the one in front is dragged by so many pixels.
void drag_corner(Stage& stage, ImVec2 by) {
  const ImGuiWindow* window = ImGui::GetTopMostPopupModal();
  ASSERT_NE(window, nullptr);
  ImGuiIO& io = ImGui::GetIO();
  const ImVec2 corner(window->Pos.x + window->Size.x - 3, window->Pos.y + window->Size.y - 3);
  io.AddMousePosEvent(corner.x, corner.y);
  stage.frames(2);
  io.AddMouseButtonEvent(0, true);
  stage.frames(2);
  io.AddMousePosEvent(corner.x + by.x, corner.y + by.y);
  stage.frames(20);
  io.AddMouseButtonEvent(0, false);
  stage.frames(2);
}

TEST_F(Files, TheSizeOfADialogCanBeChangedAndIsKept) {
  const std::string file = path("studio.json");
  ImVec2 larger;
  {
    Stage stage({1920, 1200});
    stage.frames();
    open_dialog(stage.ui, Dialog::settings);
    stage.frames();
    const ImVec2 before = ImGui::GetTopMostPopupModal()->Size;
    drag_corner(stage, {100, 80});
    larger = ImGui::GetTopMostPopupModal()->Size;
    EXPECT_GT(larger.x, before.x + 100);
    EXPECT_GT(larger.y, before.y + 80);
    stage.press(ImGuiKey_Escape);
    open_dialog(stage.ui, Dialog::about);
    stage.frames();
    EXPECT_NE(ImGui::GetTopMostPopupModal()->Size.y, larger.y) << "each has its own";
    drag_corner(stage, {-3000, -3000});
    EXPECT_GE(ImGui::GetTopMostPopupModal()->Size.x, 20 * Stage::line()) << "it cannot vanish";
    stage.press(ImGuiKey_Escape);
    save_preferences(stage.ui, file);
  }
  Stage later({1920, 1200});
  load_preferences(later.ui, file);
  later.frames();
  open_dialog(later.ui, Dialog::settings);
  later.frames();
  EXPECT_NEAR(ImGui::GetTopMostPopupModal()->Size.x, larger.x, 1);
  EXPECT_NEAR(ImGui::GetTopMostPopupModal()->Size.y, larger.y, 1);
  later.resize({960, 600});
  later.frames();
  EXPECT_LE(ImGui::GetTopMostPopupModal()->Size.y, 600) << "never larger than the window";
}

struct Size {
  ImVec2 pixels;
  float scale;
};

TEST(Dialogs, DrawInsideOfEverySize) {
  for (const Size& size :
       {Size{{960, 600}, 1}, {{1600, 900}, 1}, {{1920, 1200}, 2}, {{2880, 1800}, 3}, {{3840, 2160}, 1}, {{3840, 2160}, 3}})
    for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
      Stage stage(size.pixels, size.scale, kind);
      stage.begin_run(Phase::running);
      stage.frames();
      std::vector<Dialog> all = {Dialog::palette, Dialog::keys, Dialog::browser, Dialog::settings, Dialog::about};
      if (kind == ThemeKind::dark) all.insert(all.end(), {Dialog::run_to, Dialog::no_device, Dialog::salvage});
      for (const Dialog dialog : all) {
        if (dialog == Dialog::browser)
          open_browser(stage.ui, BrowseFor::config);
        else
          open_dialog(stage.ui, dialog);
        stage.frames();
        const ImGuiWindow* window = ImGui::GetTopMostPopupModal();
        ASSERT_NE(window, nullptr) << static_cast<int>(dialog);
        EXPECT_GE(window->Pos.x, 0);
        EXPECT_GE(window->Pos.y, 0);
        EXPECT_LE(window->Pos.x + window->Size.x, size.pixels.x);
        EXPECT_LE(window->Pos.y + window->Size.y, size.pixels.y);
        EXPECT_EQ(stage.overflowing(), std::vector<std::string>{})
            << static_cast<int>(dialog) << " at " << size.pixels.x << " x " << size.scale;
        stage.press(ImGuiKey_Escape);
        EXPECT_EQ(stage.ui.dialogs.open, Dialog::none);
        EXPECT_EQ(ImGui::GetTopMostPopupModal(), nullptr);
      }
    }
}

TEST_F(Files, APathThatDoesNotExistIsNotShownOverAnotherFolder) {
  Stage stage;
  stage.frames();
  for (int i = 0; i < 2; ++i) {
    open_browser(stage.ui, BrowseFor::config);
    stage.frames();
    ASSERT_EQ(stage.ui.dialogs.open, Dialog::browser);
    ASSERT_TRUE(stage.until([&] { return stage.ui.dialogs.folders->latest() != nullptr && !stage.ui.dialogs.folders->busy(); }));
    stage.frames(5);
    EXPECT_TRUE(stage.ui.dialogs.path.starts_with(stage.ui.dialogs.folder)) << stage.ui.dialogs.path << ", " << stage.ui.dialogs.folder;
    EXPECT_EQ(stage.ui.dialogs.folder.find("gone"), std::string::npos);
    if (i == 1) break;
    stage.press(ImGuiMod_Ctrl | ImGuiKey_A);
    stage.type(folder_.string() + "/gone/deep/file.json");
    stage.press(ImGuiKey_Enter);
    ASSERT_TRUE(stage.until([&] { return stage.ui.dialogs.open == Dialog::none && !stage.ui.toasts.empty(); }));
  }
}

}  // namespace
}  // namespace comera::studio
