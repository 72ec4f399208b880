// Every panel in every state, in small and large windows, without a display.
#include <map>
#include <tuple>

#include <implot.h>
#include <implot_internal.h>

#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/theme.h"
#include "tests/studio/clicked.h"
#include "tests/studio/overlaps.h"

namespace comera::studio {
namespace {

struct PanelSize {
  const char* name;
  ImVec2 pixels;
  float scale;
};

class Panels : public testing::TestWithParam<std::tuple<Phase, PanelSize, ThemeKind>> {};

const ImGuiWindow* window_of(const Panel& panel) { return ImGui::FindWindowByName((std::string(panel.title) + "###" + panel.id).c_str()); }

TEST_P(Panels, DrawsInside) {
  const auto [phase, size, kind] = GetParam();
  Stage stage(size.pixels, size.scale, kind);
  if (phase == Phase::idle)
    stage.ui.layout = "train";
  else
    stage.begin_run(phase, phase == Phase::preparing ? 0 : 900);
  stage.frames();
  EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, 1000);
  for (const Panel& panel : panels()) {
    const ImGuiWindow* window = window_of(panel);
    ASSERT_NE(window, nullptr) << panel.id;
    EXPECT_TRUE(window->DockIsActive) << panel.id << " is not docked";
    EXPECT_GE(window->Pos.x, -0.5f) << panel.id;
    EXPECT_LE(window->Pos.x + window->Size.x, size.pixels.x + 0.5f) << panel.id;
    EXPECT_LE(window->Pos.y + window->Size.y, size.pixels.y + 0.5f) << panel.id;
    // A tab behind another one is brought to the front and drawn too.
    ImGui::FocusWindow(const_cast<ImGuiWindow*>(window));
    stage.frames(2);
    EXPECT_TRUE(window->WasActive && !window->Hidden) << panel.id << " was not drawn";
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << panel.id;
  }
}

std::string name_of_case(const testing::TestParamInfo<Panels::ParamType>& info) {
  const auto& [phase, size, kind] = info.param;
  return std::string(phase == Phase::idle ? "empty" : name_of(phase)) + "_" + size.name + (kind == ThemeKind::dark ? "_dark" : "_light");
}

INSTANTIATE_TEST_SUITE_P(All, Panels,
                         testing::Combine(testing::Values(Phase::idle, Phase::preparing, Phase::running, Phase::paused, Phase::failed,
                                                          Phase::diverged, Phase::finished),
                                          testing::Values(PanelSize{"960x600", {960, 600}, 1}, PanelSize{"1920x1080", {1920, 1080}, 1},
                                                          PanelSize{"1920x1200_at_2", {1920, 1200}, 2}),
                                          testing::Values(ThemeKind::dark, ThemeKind::light)),
                         name_of_case);

// Visible windows and children that cannot be scrolled, and whose content is higher than they are.
std::vector<std::string> cut_below() {
  constexpr ImGuiWindowFlags kOther = ImGuiWindowFlags_Tooltip | ImGuiWindowFlags_AlwaysAutoResize | ImGuiWindowFlags_MenuBar;
  std::vector<std::string> found;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    const bool holds_panels = std::string(window->Name).find("DockSpace") != std::string::npos;
    if (!window->WasActive || window->Hidden || (window->Flags & kOther) || !(window->Flags & ImGuiWindowFlags_NoScrollbar) || holds_panels)
      continue;
    const float room = window->InnerRect.GetHeight() - window->WindowPadding.y;  // the lower padding may be used
    if (window->ContentSize.y > room + 1.5f)
      found.push_back(std::string(window->Name) + ": " + std::to_string(window->ContentSize.y) + " high in " + std::to_string(room));
  }
  return found;
}

enum class Situation { empty, live, paused, failed, diverged, replay, read_only };
constexpr std::pair<Situation, const char*> kSituations[] = {
    {Situation::empty, "empty"},       {Situation::live, "live"},     {Situation::paused, "paused"},      {Situation::failed, "failed"},
    {Situation::diverged, "diverged"}, {Situation::replay, "replay"}, {Situation::read_only, "read_only"}};

// A store that may only be read, and a run out of it.
void show_read_only(UiState& ui) {
  auto list = std::make_shared<RunList>();
  list->loaded = true;
  list->read_only = "the file may not be written";
  RunRow row;
  row.id = "r-test02";
  row.name = "kept";
  row.status = "stopped";
  list->rows = {row};
  ui.runs = list;
  ui.store_path = "/kept/runs.db";
  auto view = std::make_shared<RunView>(RunConfig{});
  view->store = ui.store_path;
  view->take(std::make_shared<const Snapshot>(a_snapshot(Phase::stopped, 900)), {});
  ui.stored = view;
  ui.show_stored = true;
  ui.layout = "train";
}

void bring_about(Stage& stage, Situation situation) {
  switch (situation) {
    case Situation::empty:
      stage.ui.layout = "train";
      break;
    case Situation::live:
      return stage.begin_run(Phase::running);
    case Situation::paused:
      return stage.begin_run(Phase::paused);
    case Situation::failed:
      return stage.begin_run(Phase::failed);
    case Situation::diverged:
      return stage.begin_run(Phase::diverged);
    case Situation::replay:
      stage.begin_run(Phase::running);
      stage.frames(1);
      stage.ui.timeline.snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 400));
      stage.ui.timeline.config = stage.ui.shown().config;
      break;
    case Situation::read_only:
      return show_read_only(stage.ui);
  }
}

// Every panel in every situation, from the smallest window with the largest text to the largest one: nothing is cut off,
// neither at the right nor, where it cannot be scrolled, below.
class Matrix : public testing::TestWithParam<std::pair<Situation, const char*>> {};

TEST_P(Matrix, NothingIsCutOff) {
  Stage stage;
  bring_about(stage, GetParam().first);
  for (const auto& [size, scale] : {std::pair(ImVec2(960, 600), 1.0f),
                                    {ImVec2(960, 600), 2.0f},
                                    {ImVec2(960, 600), 3.0f},
                                    {ImVec2(1600, 900), 1.5f},
                                    {ImVec2(1920, 1080), 1.5f},
                                    {ImVec2(1920, 1080), 3.0f},
                                    {ImVec2(3840, 2160), 1.0f},
                                    {ImVec2(3840, 2160), 3.0f}}) {
    stage.resize(size, scale);
    stage.frames(5);  // scroll bars come and go
    for (const Panel& panel : panels()) {
      const ImGuiWindow* window = window_of(panel);
      ASSERT_NE(window, nullptr) << panel.id;
      if (!window->WasActive || window->Hidden) {  // behind another tab
        stage.ui.front_panel = panel.id;
        stage.frames(3);
      }
      EXPECT_TRUE(window->WasActive && !window->Hidden) << panel.id;
      EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << panel.id << " at " << size.x << " x " << scale;
      EXPECT_EQ(cut_below(), std::vector<std::string>{}) << panel.id << " at " << size.x << " x " << scale;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Matrix, testing::ValuesIn(kSituations), [](const auto& info) { return info.param.second; });

// A check that cannot fail proves nothing: texts and a button in one window, each at its place.
TEST(Overlaps, AreSeen) {
  Stage stage;
  ImVec2 first, second, third;
  bool filled = false, child = false;
  stage.extra = [&] {
    ImGui::SetNextWindowPos({100, 100});
    ImGui::SetNextWindowSize({800, 400});
    ImGui::Begin("planted");
    ImGui::SetCursorPos(first);
    ImGui::TextUnformatted("validation loss");
    ImGui::SetCursorPos(second);
    if (child) ImGui::BeginChild("inside", {300, 60}, ImGuiChildFlags_AlwaysUseWindowPadding);
    ImGui::TextUnformatted("0.4321");
    if (child) ImGui::EndChild();
    ImGui::SetCursorPos(third);
    if (filled)
      ImGui::Button("Stop", {80, 30});
    else
      ImGui::Dummy({80, 30});
    ImGui::End();
  };
  const auto found = [&](ImVec2 one, ImVec2 two, ImVec2 three = {600, 300}) {
    std::tie(first, second, third) = std::tie(one, two, three);
    stage.frames(3);
    return overlapping_texts();
  };
  const std::vector<std::string> none;
  constexpr float kBeside = 200;  // more than either text has
  EXPECT_EQ(found({20, 50}, {20 + kBeside, 50}), none) << "beside each other";
  EXPECT_EQ(found({20, 50}, {20, 50 + Stage::line()}), none) << "under each other";
  const std::vector<std::string> over = found({20, 50}, {60, 50 + Stage::line() / 3});
  ASSERT_EQ(over.size(), 1u) << "once for two texts";
  EXPECT_NE(over[0].find("over 'validationloss' in planted at "), std::string::npos) << over[0];
  filled = true;
  EXPECT_EQ(found({20, 50}, {20 + kBeside, 50}), none);
  EXPECT_FALSE(found({20, 50}, {20 + kBeside, 50}, {30, 45}).empty()) << "under a button";
  filled = false;
  child = true;
  EXPECT_EQ(found({20, 50}, {20 + kBeside, 50}), none);
  EXPECT_FALSE(found({20, 60}, {20, 50}).empty()) << "in a child over its parent";
  EXPECT_EQ(stage.overflowing(), overlapping_texts());
}

// The part of a plot that curves are drawn in, as far as it is to be seen; an empty one when there is none.
ImRect visible_plot(const char* id) {
  ImRect found;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows) {
    if (!window->WasActive || window->Hidden || std::string(window->Name).find("/grid_") == std::string::npos) continue;
    for (const ImGuiWindow* card : window->DC.ChildWindows) {
      if (std::string(card->Name).find(std::string("/") + id + "_") == std::string::npos) continue;
      const ImPlotPlot* plot = ImPlot::GetCurrentContext()->Plots.GetByKey(ImHashStr(id, 0, card->ID));
      if (!plot) continue;
      found = plot->PlotRect;
      found.ClipWithFull(window->ClipRect);
    }
  }
  return found;
}

// In the smallest window with the largest text there is still a plot to be seen, with its toolbar in its menu.
TEST_F(Clicked, TheSmallestWindowShowsAPlot) {
  stage_.begin_run(Phase::running);
  stage_.resize({960, 600}, 3);
  ui().front_panel = "metrics";
  for (int i = 0; i < 6; ++i) frame();
  const ImRect plot = visible_plot("loss");
  EXPECT_GT(plot.GetHeight(), 1.3f * Stage::line()) << "13 lines are all that there is";
  EXPECT_GT(plot.GetWidth(), 8 * Stage::line());
  EXPECT_FALSE(find("says:CPU")) << "the line of the status gave its room";
  const NamedItem* start = find("start");
  ASSERT_NE(start, nullptr) << "and the bar above did not";
  EXPECT_GT(start->high.y - start->low.y, 1.5f * Stage::line());
  stage_.resize({1600, 900});
  EXPECT_TRUE(sees("says:CPU"));
}

std::shared_ptr<const RunList> one_run() {
  auto list = std::make_shared<RunList>();
  list->loaded = true;
  RunRow row;
  row.id = "r-1";
  row.name = "fashion-mnist | CoMERA late 0.2 | 3";
  row.status = "finished";
  list->rows = {row};
  return list;
}

// The first screen in a window where its cards have no room beside each other.
TEST_F(Clicked, TheSmallestStartScreenStacksItsCards) {
  ui().runs = one_run();
  stage_.resize({960, 600}, 3);
  for (int i = 0; i < 4; ++i) frame();
  const ImGuiWindow* page = nullptr;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (const std::string name = window->Name;
        name.find("/start-page_") != std::string::npos && name.find('/', name.find("/start-page_") + 1) == std::string::npos)
      page = window;  // not one of its cards
  ASSERT_NE(page, nullptr);
  EXPECT_GT(page->ScrollMax.y, 0);
  const float line = Stage::line();
  for (const char* name : {"Run the demo", "Settings ...", "open-last", "run:r-1"}) {
    for (float y = 0; y <= page->ScrollMax.y && !(find(name) && find(name)->high.y - find(name)->low.y > 0.9f * line); y += line) {
      ImGui::SetScrollY(const_cast<ImGuiWindow*>(page), y);
      frame();
      frame();
    }
    ASSERT_TRUE(find(name)) << name << " cannot be reached";
    EXPECT_GT(find(name)->high.x - find(name)->low.x, 3 * line) << name;
  }
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
}

// Where names would be cut, columns that nobody asked for go; one that was asked for stays.
TEST_F(Clicked, NamesOfRunsHaveTheRoomTheyNeed) {
  ui().runs = one_run();
  const auto columns = [&] {
    for (int i = 0; i < 4; ++i) frame();
    for (int i = 0; i < ImGui::GetCurrentContext()->Tables.GetMapSize(); ++i) {
      const ImGuiTable* table = ImGui::GetCurrentContext()->Tables.TryGetMapData(i);
      if (!table || !table->OuterWindow || std::string(table->OuterWindow->Name).find("card-runs") == std::string::npos) continue;
      return std::pair(table->ColumnsCount, table->Columns[3].WidthGiven);
    }
    return std::pair(0, 0.0f);
  };
  stage_.resize({1600, 900});
  const auto [all, wide] = columns();
  stage_.resize({960, 600});
  const auto [some, narrow] = columns();
  EXPECT_LT(some, all);
  EXPECT_GT(narrow, 15 * Stage::line());
  EXPECT_GT(wide, narrow);
  ui().run_table.toggled_columns.insert("seed");
  EXPECT_LE(columns().first, some + 1);
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
}

// The train layout shows the log beside all that it showed before.
TEST_F(Clicked, TheLogIsInSight) {
  stage_.begin_run(Phase::running);
  for (int i = 0; i < 6; ++i) frame();
  for (const char* panel : {"Metrics###metrics", "Ranks###ranks", "Memory###memory", "Log###log", "Live controls###controls"}) {
    const ImGuiWindow* window = ImGui::FindWindowByName(panel);
    ASSERT_NE(window, nullptr) << panel;
    EXPECT_TRUE(window->WasActive && !window->Hidden) << panel;
    EXPECT_GT(window->Size.y, 7 * Stage::line()) << panel;
  }
  EXPECT_TRUE(find("log:late stage"));
}

// Its usual lines are whole in the default window.
TEST_F(Clicked, TheLogHasRoomForItsUsualLines) {
  stage_.begin_run(Phase::running);
  frame();
  const std::string layer = stage_.script->snapshot->ranks[0].name;
  say([](Snapshot& s) { s.step = 906; });
  auto& ranks = stage_.script->records.ranks;
  ranks.push_back({903, "enc5.attn.q", 1, 4000});  // so that the sum has as many figures as that of six encoders
  ranks.push_back({903, "enc5.attn.q", 4, 26});
  ranks.push_back({904, "enc5.attn.q", 4, 25});
  ranks.push_back({905, layer, 1, 29});
  stage_.script->records.events.push_back({0, 906, "truncation", 0, R"({"entries_before": 303408, "entries_after": 272048})"});
  for (int i = 0; i < 6; ++i) frame();
  const ImGuiWindow* lines = nullptr;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && std::string(window->Name).find("/lines_") != std::string::npos) lines = window;
  ASSERT_NE(lines, nullptr);
  for (const std::string& line : {std::string("late stage (steps)"), std::string("enc5.attn.q bond 4: 26 -> 25, sum 4,"),
                                  layer + " bond 1: 30 -> 29, sum ", std::string("pruned: 303,408 -> 272,048")}) {
    const NamedItem* item = find("log:" + line);
    ASSERT_NE(item, nullptr) << line;
    EXPECT_LT(item->high.x, lines->WorkRect.Max.x) << item->name;
  }
}

// Of the past that is shown, what came later is told as what it is, or not at all.
TEST_F(Clicked, TheLogDimsWhatComesAfterTheCursor) {
  stage_.begin_run(Phase::running);
  ui().front_panel = "log";
  ASSERT_TRUE(sees("log:checkpoint written"));  // of step 600
  EXPECT_FALSE(find("log-later")) << "only of the past";
  ui().timeline.snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 550));
  ui().timeline.config = ui().shown().config;
  const auto color_of = [&](const std::string& name) {  // of its last letter
    for (int i = 0; i < 4; ++i) frame();
    const NamedItem* item = find(name);
    ImU32 color = 0;
    for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
      if (item && window->Active && std::string(window->Name).find("/lines_") != std::string::npos)
        for (const ImDrawVert& vertex : window->DrawList->VtxBuffer)
          if (ImRect(item->low, item->high).Contains(vertex.pos)) color = vertex.col;
    return color;
  };
  EXPECT_EQ(color_of("log:late stage"), theme().good) << "step 501 has happened";
  EXPECT_EQ(color_of("log:checkpoint written"), theme().dim) << "step 600 has not";
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  click("log-later");
  EXPECT_TRUE(sees("log:late stage"));
  EXPECT_FALSE(find("log:checkpoint written"));
  click("log-later");
  EXPECT_TRUE(sees("log:checkpoint written"));
  ui().timeline.snapshot.reset();
  EXPECT_EQ(color_of("log:checkpoint written"), theme().text) << "at the newest step nothing is later";
  // With many lines the one at the cursor is in sight.
  for (int64_t step = 1000; step < 2000; ++step)
    stage_.script->records.events.push_back({0, step, "alert", 0, R"({"kind": "k", "text": "line )" + std::to_string(step) + "\"}"});
  frame();
  ui().timeline.snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 1500));
  EXPECT_TRUE(sees("log:line 1500"));
  EXPECT_FALSE(find("log:line 1999"));
  EXPECT_FALSE(find("log:line 1001"));
}

// Whatever can be clicked has an id of its own, which is the same in the next frame.
TEST_F(Clicked, IdsAreUniqueAndStable) {
  stage_.begin_run(Phase::paused);
  ui().runs = [] {
    auto list = std::make_shared<RunList>();
    list->loaded = true;
    for (const char* id : {"r-1", "r-2", "r-3"}) {
      RunRow row;
      row.id = id;
      row.name = "the same name";
      row.status = "stopped";
      list->rows.push_back(row);
    }
    return list;
  }();
  const ImGuiContext& context = *ImGui::GetCurrentContext();
  size_t looked = 0;
  for (const char* layout : {"train", "analyse", "start", "new"}) {
    choose_layout(ui(), layout);
    for (int i = 0; i < 4; ++i) frame();
    std::map<std::string, ImVec2> there;
    for (const NamedItem& item : items_)
      if (!item.name.starts_with("says:")) there[item.name] = {(item.low.x + item.high.x) / 2, (item.low.y + item.high.y) / 2};
    for (const auto& [name, at] : there) {
      ImGui::GetIO().AddMousePosEvent(at.x, at.y);
      frame();
      frame();
      const ImGuiID id = context.HoveredId;
      EXPECT_LE(context.HoveredIdPreviousFrameItemCount, 1) << name << " shares its id with another one";
      frame();
      EXPECT_EQ(context.HoveredId, id) << name << " has another id in the next frame";
      looked += id != 0;
    }
  }
  EXPECT_GT(looked, 60u);
}

// A check that cannot fail proves nothing.
TEST_F(Clicked, FindsIdsThatAreShared) {
  stage_.extra = [] {
    ImGui::SetNextWindowPos({100, 100});
    ImGui::Begin("twice");
    for (int i = 0; i < 2; ++i) ImGui::Button("Same", {100, 30});
    ImGui::End();
  };
  for (int i = 0; i < 3; ++i) frame();
  const ImGuiWindow* window = ImGui::FindWindowByName("twice");
  ImGui::GetIO().AddMousePosEvent(window->DC.CursorStartPos.x + 10, window->DC.CursorStartPos.y + 10);
  for (int i = 0; i < 3; ++i) frame();
  EXPECT_GT(ImGui::GetCurrentContext()->HoveredIdPreviousFrameItemCount, 1);
}

// The log is read by level, by words and by regular expressions, followed or not, and copied.
TEST_F(Clicked, TheLogIsFilteredFollowedAndCopied) {
  stage_.begin_run(Phase::running);
  ui().front_panel = "log";
  toast(ui(), Level::warning, "the disk is nearly full");
  ASSERT_TRUE(sees("log:the disk is nearly full"));
  EXPECT_TRUE(find("log:late stage"));
  ui().log.filter.set("DISK");
  ASSERT_TRUE(sees("log:the disk")) << "whatever the case is";
  EXPECT_FALSE(find("log:late stage"));
  ui().log.filter.set("/^late.*target|checkpoint/");
  ASSERT_TRUE(sees("log:late stage"));
  EXPECT_FALSE(find("log:the disk"));
  click("log-more");
  click("copy-log");
  const std::string copied = ImGui::GetClipboardText();
  EXPECT_NE(copied.find("step 501  late stage"), std::string::npos) << copied;
  EXPECT_EQ(copied.find("disk"), std::string::npos);
  ui().log.filter.set("/(/");
  EXPECT_TRUE(sees("log:the disk")) << "what is no expression hides nothing, and says so";
  EXPECT_NE(ui().log.filter.problem(), "");
  ui().log.filter.set("");
  frame();
  EXPECT_EQ(ui().log.filter.problem(), "");
  // Many lines: the newest one is in sight until somebody wants to stay.
  for (int i = 0; i < 500; ++i) ui().window_log.push_back({Level::warning, -1, "line " + std::to_string(i)});
  EXPECT_TRUE(sees("log:line 499"));
  click("follow-log");
  EXPECT_FALSE(ui().log.follow);
  for (int i = 500; i < 1000; ++i) ui().window_log.push_back({Level::warning, -1, "line " + std::to_string(i)});
  EXPECT_TRUE(sees("log:line 499"));
  EXPECT_FALSE(find("log:line 999"));
  click("follow-log");
  EXPECT_TRUE(sees("log:line 999"));
}

// A check that cannot fail proves nothing.
TEST(Stage, FindsWhatIsCutBelow) {
  Stage stage;
  stage.frames();
  EXPECT_TRUE(cut_below().empty());
  stage.extra = [] {
    ImGui::SetNextWindowSize({200, 100});
    ImGui::Begin("low", nullptr, ImGuiWindowFlags_NoScrollbar);
    ImGui::Dummy({10, 300});
    ImGui::End();
  };
  stage.frames();
  EXPECT_FALSE(cut_below().empty());
}

// A check that cannot fail proves nothing.
TEST(Stage, FindsWhatIsTooWide) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  EXPECT_TRUE(stage.overflowing().empty());
  stage.extra = [] {
    ImGui::Begin("Metrics###metrics");
    ImGui::Dummy({5000, 1});
    ImGui::End();
  };
  stage.frames();
  EXPECT_FALSE(stage.overflowing().empty());
}

// The font moves some letters under the one before them, as in "Aj"; two texts at one place differ from that.
TEST(Stage, FindsTextsThatOverlapAndNoLettersOfOne) {
  std::string text;
  for (char first = '!'; first <= '~'; ++first) {
    for (char second = '!'; second <= '~'; ++second) (text += first) += second;
    text += '\n';
  }
  for (const float scale : {1.0f, 1.5f, 2.0f}) {
    Stage stage({1600, 900}, scale);
    bool twice = false;
    stage.extra = [&] {
      int count = 0;
      for (ImFont* font : {fonts().text, fonts().bold, fonts().numbers}) {
        ImGui::PushFont(font, 0);
        ImGui::SetNextWindowPos({0, 0});
        ImGui::SetNextWindowSize({8000, 8000});
        ImGui::Begin(("font " + std::to_string(count++)).c_str(), nullptr, ImGuiWindowFlags_NoDocking);
        const ImVec2 at = ImGui::GetCursorScreenPos();
        ImGui::TextUnformatted(text.c_str());
        if (twice) ImGui::GetWindowDrawList()->AddText({at.x + 2 * scale, at.y}, ImGui::GetColorU32(ImGuiCol_Text), "Aj");
        ImGui::End();
        ImGui::PopFont();
      }
    };
    stage.resize({8000, 8000}, scale);
    stage.frames();
    EXPECT_EQ(overlapping_texts(), std::vector<std::string>{}) << scale;
    twice = true;
    stage.frames();
    EXPECT_EQ(overlapping_texts().size(), 3u) << scale;
  }
}

TEST(Stage, FindsWhatIsCutInATable) {
  Stage stage;
  const char* text = "12 MiB";
  stage.extra = [&] {
    ImGui::SetNextWindowSize({400, 200});
    ImGui::Begin("a window");
    if (ImGui::BeginTable("values", 2)) {
      for (int i = 0; i < 2; ++i) {
        ImGui::TableNextColumn();
        ImGui::TextUnformatted(text);
      }
      ImGui::EndTable();
    }
    ImGui::End();
  };
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  text = "a text that is wider than half of a narrow window";
  stage.frames();
  EXPECT_EQ(stage.overflowing().size(), 2u);
}

TEST(Start, EmptyAndManyRuns) {
  for (const ImVec2 size : {ImVec2(960, 600), ImVec2(1920, 1080)}) {
    Stage stage(size);
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
    auto list = std::make_shared<RunList>();
    list->loaded = true;
    for (int i = 0; i < 5000; ++i) {
      RunRow row;
      row.id = "r-" + std::to_string(100000 + i);
      row.name = "a name that is much longer than the column it stands in, as people like to write them";
      row.status = i % 3 == 0 ? "finished" : i % 3 == 1 ? "interrupted" : "diverged";
      row.summary.step = i;
      row.summary.total_steps = 5000;
      row.summary.val_accuracy = 0.9;
      list->rows.push_back(row);
    }
    stage.ui.runs = list;
    stage.frames();
    stage.ui.run_table.filter = "interrupted";
    stage.frames();
    stage.ui.run_table.filter = "nothing like this";
    stage.frames();
    auto broken = std::make_shared<RunList>();
    broken->loaded = true;
    broken->problem = "the store is damaged: page 12 cannot be read";
    stage.ui.runs = broken;
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  }
}

TEST(Ranks, ManyLayersAndOddNumbersOfBonds) {
  Stage stage({960, 600});
  stage.begin_run(Phase::running, 300, 38);
  Snapshot odd = *stage.script->snapshot;
  odd.ranks[1].live = {5};
  odd.ranks[1].initial = {};  // not known
  odd.ranks[1].held.clear();
  odd.ranks[2].live.clear();
  stage.script->snapshot = std::make_shared<const Snapshot>(odd);
  ImGui::SetWindowFocus("Ranks###ranks");
  stage.frames();
  ImGui::SetWindowFocus("Ranks###ranks");
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
}

TEST(Metrics, ARunThatFailedAtOnce) {
  Stage stage({960, 600});
  stage.begin_run(Phase::failed, 0);
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
}

TEST(Metrics, BadValuesAreDrawn) {
  Stage stage;
  stage.begin_run(Phase::running, 400);
  stage.script->records.add(
      401, {{"train_loss", std::numeric_limits<double>::quiet_NaN()}, {"step_ms", std::numeric_limits<double>::infinity()}});
  stage.frames();
  EXPECT_EQ(stage.ui.live->view().metric("train_loss").gaps(), std::vector<double>{401});
}

TEST(Metrics, ManyBadValuesAreAsManySignsAsFit) {
  Stage stage;
  stage.begin_run(Phase::running, 100);
  stage.frames();
  const int before = ImGui::GetDrawData()->TotalVtxCount;
  for (int64_t step = 101; step <= 50'100; ++step)
    stage.script->records.add(step, {{"train_loss", std::numeric_limits<double>::quiet_NaN()}});
  auto last = a_snapshot(Phase::running, 50'100);
  stage.script->snapshot = std::make_shared<const Snapshot>(last);
  stage.frames();
  EXPECT_EQ(stage.ui.live->view().metric("train_loss").gaps().size(), 50'000u);
  EXPECT_GT(ImGui::GetDrawData()->TotalVtxCount, before + 200);
  EXPECT_LT(ImGui::GetDrawData()->TotalVtxCount, before + 10'000);
}

TEST(Metrics, MillionsOfPointsAreSmoothedOverSomeFrames) {
  Stage stage;
  stage.begin_run(Phase::paused, 2);
  constexpr size_t kPoints = 1'250'000;
  Series& loss = stage.script->records.metrics["train_loss"];
  loss = {};
  for (size_t i = 1; i <= kPoints; ++i) {
    loss.steps.push_back(static_cast<int64_t>(i));
    loss.values.push_back(1 / static_cast<double>(i));
  }
  stage.frames(1);
  const Curve& curve = stage.ui.live->view().metric("train_loss");
  ASSERT_EQ(curve.size(), kPoints);
  const auto smoothed = [&] { return stage.ui.plots.smoothed.at(&curve).curve().size(); };
  EXPECT_LE(smoothed(), PlotView::kSmoothedAFrame);
  EXPECT_GT(smoothed(), PlotView::kSmoothedAFrame / 2);
  EXPECT_TRUE(stage.ui.busy()) << "the next frame must come by itself";
  stage.frames(3);
  EXPECT_EQ(smoothed(), kPoints);
  EXPECT_FALSE(stage.ui.busy());
}

// Where the panels are tabs of one place, the one that had the keyboard would be in front of them.
TEST(Frame, TheMainPanelOfALayoutIsInFront) {
  Stage stage({960, 600}, 2);
  stage.begin_run(Phase::paused);
  stage.ui.front_panel = "controls";
  stage.frames(6);
  for (const auto& [layout, front] : {std::pair("analyse", "ranks"), {"replay", "metrics"}, {"train", "metrics"}}) {
    choose_layout(stage.ui, layout);
    stage.frames(8);
    for (const Panel& panel : panels()) {
      const ImGuiWindow* window = ImGui::FindWindowByName(window_name(panel).c_str());
      ASSERT_NE(window, nullptr) << panel.id;
      if (panel.id != std::string(front)) continue;
      EXPECT_FALSE(window->Hidden) << front << " of " << layout;
    }
  }
}

TEST(Frame, SwitchesThemeScaleAndSizeWhileItRuns) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  const float line = Stage::line();
  const ImVec4 dark = ImGui::GetStyle().Colors[ImGuiCol_WindowBg];
  const auto shows = [](const char* title) {
    const ImGuiWindow* window = ImGui::FindWindowByName(title);
    return window && window->WasActive;
  };
  EXPECT_TRUE(shows("Metrics###metrics"));
  set_theme(stage.ui, ThemeKind::light);
  stage.frames();
  EXPECT_GT(ImGui::GetStyle().Colors[ImGuiCol_WindowBg].x, dark.x + 0.3f) << "a light window";
  for (const float scale : {0.75f, 1.5f, 3.0f}) {
    set_user_scale(stage.ui, scale);
    stage.frames();
    EXPECT_NEAR(Stage::line(), line * scale, 1) << scale;
  }
  set_user_scale(stage.ui, 1);
  stage.resize({960, 600});
  stage.frames();
  EXPECT_LE(ImGui::FindWindowByName("Metrics###metrics")->Rect().Max.x, 960) << "panels follow the size of the window";
  show_layout(stage.ui, "start");
  stage.frames();
  EXPECT_FALSE(shows("Metrics###metrics"));
  show_layout(stage.ui, "train");
  stage.ui.rebuild_layout = true;
  stage.frames();
  EXPECT_TRUE(shows("Metrics###metrics"));
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
}

TEST(Frame, QuittingWhileTrainingAsksFirst) {
  Stage stage;
  stage.begin_run(Phase::running);
  stage.ui.close_requested = true;
  stage.frames();
  EXPECT_FALSE(stage.ui.quit);
  EXPECT_NE(ImGui::FindWindowByName("Quit while training?###quit"), nullptr);
  Snapshot stopped = *stage.script->snapshot;
  stopped.phase = Phase::stopped;
  stage.script->snapshot = std::make_shared<const Snapshot>(stopped);
  stage.frames();
  EXPECT_TRUE(stage.ui.quit);
}

TEST(Frame, QuittingAnIdleWindowQuits) {
  Stage stage;
  stage.ui.close_requested = true;
  stage.frames();
  EXPECT_TRUE(stage.ui.quit);
}

}  // namespace
}  // namespace comera::studio
