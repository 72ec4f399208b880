// Layouts of one's own: kept as a tree, shown again, kept with the settings; and what a broken file leaves of them.
#include "app/studio/saved_layouts.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "app/studio/action_table.h"
#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/preferences.h"
#include "core/base/json.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {
namespace fs = std::filesystem;

const ImGuiWindow* docked_window(const char* id) {
  for (const Panel& panel : panels())
    if (panel.id == std::string(id)) return ImGui::FindWindowByName(window_name(panel).c_str());
  return nullptr;
}

// Where every panel is, and whether it is to be seen.
std::map<std::string, ImVec4> places() {
  std::map<std::string, ImVec4> found;
  for (const Panel& panel : panels()) {
    const ImGuiWindow* window = docked_window(panel.id);
    if (window && window->WasActive && !window->Hidden) found[panel.id] = {window->Pos.x, window->Pos.y, window->Size.x, window->Size.y};
  }
  return found;
}

void expect_same(const std::map<std::string, ImVec4>& now, const std::map<std::string, ImVec4>& before) {
  std::vector<std::string> ids[2];
  for (const auto& [id, at] : now) ids[0].push_back(id);
  for (const auto& [id, at] : before) ids[1].push_back(id);
  ASSERT_EQ(ids[0], ids[1]) << "the panels in sight";
  for (const auto& [id, at] : now) {
    const ImVec4 was = before.at(id);
    for (const auto& [a, b] : {std::pair(at.x, was.x), {at.y, was.y}, {at.z, was.z}, {at.w, was.w}}) EXPECT_NEAR(a, b, 3) << id;
  }
}

class SavedLayouts : public Clicked {
 protected:
  SavedLayouts() {
    stage_.begin_run(Phase::paused);
    stage_.frames(6);
    file_ = (fs::temp_directory_path() / ("comera-layouts-" + std::to_string(::getpid()) + ".json")).string();
  }
  ~SavedLayouts() override {
    fs::remove(file_);
    fs::remove(file_ + ".damaged");
  }
  void frames(int count = 6) {
    for (int i = 0; i < count; ++i) frame();
  }
  // The log under the controls, the ranks in front of nothing, tensor trains in front of the metrics; no memory.
  void rearrange() {
    const ImGuiID side = docked_window("controls")->DockId;
    ImGuiID below = 0, above = 0;
    ImGui::DockBuilderSplitNode(side, ImGuiDir_Down, 0.3f, &below, &above);
    ImGui::DockBuilderDockWindow("Log###log", below);
    ImGui::DockBuilderDockWindow("Live controls###controls", above);
    ui().closed_panels["memory"] = true;
    ui().front_panel = "tt";
    frames();
  }
  std::string file_;
};

TEST_F(SavedLayouts, AreShownAsTheyWereSaved) {
  const auto shipped = places();
  rearrange();
  const auto mine = places();
  ASSERT_TRUE(mine.contains("tt") && !mine.contains("metrics") && !mine.contains("memory"));
  ASSERT_GT(mine.at("log").y, mine.at("controls").y);
  save_layout(ui(), "  by night ");
  ASSERT_EQ(ui().layouts.size(), 1u);
  EXPECT_EQ(ui().layouts[0].name, "by night");
  frames();
  expect_same(places(), mine);
  choose_layout(ui(), "train");
  ui().closed_panels.clear();
  frames();
  expect_same(places(), shipped);
  choose_saved_layout(ui(), "by night");
  frames();
  expect_same(places(), mine);
  EXPECT_STREQ(chosen_layout(ui()), "") << "none of those that ship";
  // Moved about, and back.
  ui().closed_panels["log"] = true;
  frames();
  for (const Action& action : actions(ui()))
    if (action.id == "view.reset") action.act(ui());
  frames();
  expect_same(places(), mine);
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  // It fits other sizes, and in the narrowest window everything is one stack of tabs.
  stage_.resize({1920, 1080}, 1.5f);
  frames();
  EXPECT_EQ(places().size(), mine.size());
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  stage_.resize({960, 600}, 3);
  frames();
  EXPECT_EQ(places().size(), 1u);
}

TEST_F(SavedLayouts, OfFloatingPanelsToo) {
  ImGui::DockBuilderDockWindow("Log###log", 0);
  ImGui::SetWindowPos("Log###log", {300, 320});
  ImGui::SetWindowSize("Log###log", {500, 200});
  frames();
  ASSERT_FALSE(docked_window("log")->DockIsActive);
  const auto mine = places();
  save_layout(ui(), "floating");
  choose_layout(ui(), "replay");
  frames();
  ASSERT_TRUE(docked_window("log")->DockIsActive);
  choose_saved_layout(ui(), "floating");
  frames();
  EXPECT_FALSE(docked_window("log")->DockIsActive);
  expect_same(places(), mine);
}

TEST_F(SavedLayouts, AreKeptWithTheSettings) {
  rearrange();
  const auto mine = places();
  save_layout(ui(), "by night");
  choose_layout(ui(), "replay");
  frames();
  save_layout(ui(), "of replay");
  save_preferences(ui(), file_);
  UiState later;
  load_preferences(later, file_);
  ASSERT_EQ(later.layouts.size(), 2u);
  EXPECT_EQ(layout_to_json(later.layouts[0]), layout_to_json(ui().layouts[0]));
  EXPECT_EQ(later.arrangement, arrangement_of("of replay")) << "the one that was shown";
  ui().layouts = later.layouts;
  choose_saved_layout(ui(), "by night");
  frames();
  expect_same(places(), mine);
}

TEST_F(SavedLayouts, ABrokenOneLeavesTheOthers) {
  save_layout(ui(), "good");
  save_preferences(ui(), file_);
  const Json kept = read_json_file(file_);
  const auto with = [&](auto change) {
    Json json = kept;
    Json bad = json["layouts"][0];
    bad["name"] = "bad";
    change(bad);
    json["layouts"] = {bad, json["layouts"][0]};
    test::write_text(file_, json.dump());
    UiState later;
    load_preferences(later, file_);
    std::vector<std::string> names;
    for (const SavedLayout& layout : later.layouts) names.push_back(layout.name);
    return names;
  };
  const std::vector<std::string> good = {"good"}, both = {"bad", "good"};
  EXPECT_EQ(with([](Json&) {}), both) << "nothing is wrong with it";
  EXPECT_EQ(with([](Json& bad) { bad = 7; }), good);
  EXPECT_EQ(with([](Json& bad) { bad.erase("docked"); }), good);
  EXPECT_EQ(with([](Json& bad) { bad["docked"]["share"] = "wide"; }), good);
  EXPECT_EQ(with([](Json& bad) { bad["docked"]["share"] = 1e30; }), good);
  EXPECT_EQ(with([](Json& bad) { bad["docked"]["parts"].erase(size_t{0}); }), good);
  EXPECT_EQ(with([](Json& bad) { bad["docked"] = {{"panels", {"no such panel"}}, {"front", ""}}; }), good) << "nothing is left of it";
  EXPECT_EQ(with([](Json& bad) { bad["name"] = "good"; }), good) << "a name twice";
  EXPECT_EQ(with([](Json& bad) { bad["name"] = std::string(1000, 'x'); }), good);
  EXPECT_EQ(with([](Json& bad) { bad["floating"] = Json::array({Json{{"panel", "log"}, {"at", 7}}}); }), good);
  EXPECT_EQ(with([](Json& bad) {
              Json deep = bad["docked"];
              const Json leaf = {{"panels", {"log"}}, {"front", ""}};
              for (int i = 0; i < 100; ++i) deep = {{"split", "beside"}, {"share", 0.5}, {"parts", {leaf, deep}}};
              bad["docked"] = deep;
            }),
            good);
  EXPECT_EQ(with([](Json& bad) {
              bad["docked"] = {{"panels", {"log", "log", "ranks", "of later"}}, {"front", "of later"}};
            }),
            both)
      << "what this program does not know is left out";
  EXPECT_FALSE(fs::exists(file_ + ".damaged"));
}

TEST_F(SavedLayouts, ADamagedFileIsKept) {
  test::write_text(file_, R"({"theme": "light", "layouts": [)");
  UiState later;
  load_preferences(later, file_);
  EXPECT_TRUE(later.layouts.empty());
  EXPECT_TRUE(later.rebuild_layout) << "the shipped layout";
  save_preferences(ui(), file_);
  EXPECT_EQ(test::read_text(file_ + ".damaged"), R"({"theme": "light", "layouts": [)") << "the next save wrote over the other";
}

// A tree in which a panel has no place, as of a program that had fewer: it is with the first.
TEST_F(SavedLayouts, APanelThatIsNewHasAPlace) {
  const auto layout = layout_from_json(parse_valid_json(
      R"({"name": "old", "docked": {"split": "under", "share": 0.7, "parts": [{"panels": ["metrics"], "front": "metrics"},
          {"panels": ["ranks"], "front": "ranks"}]}, "closed": [], "floating": []})"));
  ASSERT_TRUE(layout);
  ui().layouts = {*layout};
  choose_saved_layout(ui(), "old");
  frames();
  for (const Panel& panel : panels()) {
    ASSERT_TRUE(docked_window(panel.id)->DockIsActive) << panel.id;
    EXPECT_EQ(docked_window(panel.id)->DockId == docked_window("ranks")->DockId, panel.id == std::string("ranks")) << panel.id;
  }
  EXPECT_TRUE(places().contains("metrics")) << "the one in front is still the one that was saved";
}

// By hand: under a name, from the menu, under another one, gone, and back.
TEST_F(SavedLayouts, AreSavedRenamedAndDeletedInADialog) {
  const auto act = [&](const std::string& id) {
    for (const Action& action : actions(ui()))
      if (action.id == id && action.why_not.empty()) {
        action.act(ui());
        frames();
        return true;
      }
    return false;
  };
  ASSERT_TRUE(act("layout.save"));
  stage_.type("mine");
  stage_.press(ImGuiKey_Enter);
  ASSERT_EQ(ui().layouts.size(), 1u);
  EXPECT_EQ(ui().dialogs.open, Dialog::none);
  EXPECT_FALSE(KeyBindings::known("layout.saved.mine")) << "it has no key to change";
  choose_layout(ui(), "replay");
  frames();
  ASSERT_TRUE(act("layout.saved.mine"));
  EXPECT_EQ(ui().arrangement, arrangement_of("mine"));

  ASSERT_TRUE(act("layout.save"));
  click("layout:mine");
  stage_.press(ImGuiMod_Ctrl | ImGuiKey_A);
  stage_.type("yours");
  stage_.press(ImGuiKey_Enter);
  ASSERT_EQ(ui().layouts[0].name, "yours");
  EXPECT_EQ(ui().arrangement, arrangement_of("yours")) << "it is still the one that is shown";
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  const SavedLayout before = ui().layouts[0];
  click("delete-layout:yours");
  EXPECT_TRUE(ui().layouts.empty());
  stage_.press(ImGuiKey_Escape);
  frames();
  EXPECT_EQ(ui().arrangement, "train");
  click("layout:Undo");
  ASSERT_EQ(ui().layouts.size(), 1u);
  EXPECT_EQ(layout_to_json(ui().layouts[0]), layout_to_json(before));

  show_layout(ui(), "start");
  frames();
  EXPECT_NE(no_saving(ui(), "another"), "") << "no panels are in sight";
  show_layout(ui(), "train");
  frames();
  EXPECT_EQ(no_saving(ui(), "another"), "");
  EXPECT_NE(no_saving(ui(), "   "), "");
  rename_layout(ui(), "yours", std::string(100, 'x'));
  EXPECT_EQ(ui().layouts[0].name, "yours");
}

}  // namespace
}  // namespace comera::studio
