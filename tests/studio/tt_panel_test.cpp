// The diagram in the window: what is clicked is chosen, a cap reaches the session and comes back, and every state can
// be drawn in windows of every size.
#include <cmath>

#include "app/figure/tt_layout.h"
#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/shown_run/timeline.h"
#include "core/session/inspect.h"
#include "core/tensor/safetensors.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

constexpr const char* kWindow = "Tensor trains###tt";

void show_panel(Stage& stage, const char* panel = "tt") {
  stage.frames(2);
  stage.ui.front_panel = panel;
  stage.frames(3);
}

const ImGuiWindow* child(const std::string& part) {
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && std::string(window->Name).find(part) != std::string::npos) return window;
  return nullptr;
}

void mouse(Stage& stage, ImVec2 at, bool down) {
  ImGui::GetIO().AddMousePosEvent(at.x, at.y);
  stage.frames(1);
  ImGui::GetIO().AddMouseButtonEvent(0, down);
  stage.frames(2);
}
void click(Stage& stage, ImVec2 at) {
  mouse(stage, at, true);
  mouse(stage, at, false);
}

// Where a point of the diagram is on the screen: the canvas fills the rest of its card.
ImVec2 on_screen(const Stage& stage, double x, double y) {
  const ImGuiWindow* card = child("tt-card");
  if (!card) return {};
  const float scale = stage.ui.tt.zoom * ImGui::GetFontSize();
  const ImVec2 corner = stage.ui.tt.canvas;
  return {corner.x + (static_cast<float>(x) - stage.ui.tt.corner.x) * scale,
          corner.y + (static_cast<float>(y) - stage.ui.tt.corner.y) * scale};
}

// Charts of the panel besides the diagram itself.
std::vector<std::string> chart_names(Stage& stage) {
  std::vector<std::string> names;
  for (const Chart& chart : drawn(tt_charts(stage.ui)))
    if (chart.name != "tensor-trains") names.push_back(chart.name);
  return names;
}

TEST(TTPanel, AClickChoosesABondForEveryPanelAndAsksForItsEntries) {
  Stage stage;
  stage.begin_run(Phase::running);
  show_panel(stage);
  const TTLayout layout = lay_out(stage.ui.snapshot().ranks, stage.ui.tt.collapsed);
  const TTBond& bond = layout.bonds[6];  // the second one of the second layer
  click(stage, on_screen(stage, (bond.x0 + bond.x1) / 2, bond.y));
  EXPECT_EQ(stage.ui.selected_layer, "enc1.attn.q");
  EXPECT_EQ(stage.ui.tt.bond, 2);
  stage.frames();
  ASSERT_FALSE(stage.script->posted.empty());
  const auto* asked = std::get_if<InspectCommand>(&stage.script->posted.back());
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(asked->layer, "enc1.attn.q");
  EXPECT_EQ(asked->bond, 2);
  const size_t posted = stage.script->posted.size();
  stage.say([](Snapshot& s) {
    s.last_ticket = 1;
    s.inspected = {"enc1.attn.q", 2, s.step, {0.9, 0.5, 0.02, 0.009, 0, -0.1}};
  });
  stage.frames();
  EXPECT_EQ(stage.script->posted.size(), posted) << "it asks again and again";
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  // A core, then nothing: the entries are given up.
  const TTCore& core = layout.cores[0];
  click(stage, on_screen(stage, core.x, core.y));
  EXPECT_EQ(stage.ui.selected_layer, "enc0.attn.q");
  EXPECT_EQ(stage.ui.tt.core, 1);
  EXPECT_EQ(stage.ui.tt.bond, 0);
  stage.frames();
  asked = std::get_if<InspectCommand>(&stage.script->posted.back());
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(asked->bond, 0);
  EXPECT_EQ(asked->core, 1);
  EXPECT_EQ(asked->layer, "enc0.attn.q");
  EXPECT_TRUE(chart_names(stage).empty()) << "nothing is known of its values yet";
  stage.say([](Snapshot& s) {
    s.last_ticket = 2;
    s.inspected_core = describe_core("enc0.attn.q", 1, s.step, {1, 12, 30}, {-1, 0, 0.5, 2});
    s.inspected_core.gradient_norm = 0.25;
  });
  stage.frames();
  EXPECT_EQ(chart_names(stage), std::vector<std::string>{"core-values"});
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  // Another layer's values are not shown for it.
  stage.say([](Snapshot& s) { s.inspected_core.core = 2; });
  stage.frames();
  EXPECT_TRUE(chart_names(stage).empty());
  click(stage, on_screen(stage, core.x, core.y + 4));  // beside everything
  stage.frames();
  stage.say([](Snapshot& s) { s.last_ticket = 3; });
  stage.frames();
  asked = std::get_if<InspectCommand>(&stage.script->posted.back());
  ASSERT_NE(asked, nullptr);
  EXPECT_EQ(asked->core, 0) << "they are given up";
}

class TTPast : public StoreStage {};

// Of the past, values are those of the nearest checkpoint, and where there is none that is said.
TEST_F(TTPast, ValuesOfTheNearestCheckpoint) {
  SessionStart start;
  start.config = load_config("demo", {"train.threads=1", "train.steps=30", "train.checkpoint_every=10", "train.eval_every=0"});
  start.store = store_;
  Session session(std::move(start));
  ASSERT_TRUE(session.wait(120));
  const std::string id = session.latest()->run, layer = session.latest()->ranks.front().name;
  ui().store_path = store_;
  ui().store = std::make_unique<StoreClient>(store_, [] {});
  open_run(ui(), id, 12);
  ASSERT_TRUE(until([&] { return ui().load_request == 0; }));
  ASSERT_TRUE(ui().replaying());
  show_panel(*stage_);
  ui().selected_layer = layer;
  ui().tt.bond = 1;
  const auto answered = [&] {
    const auto latest = ui().tt.past ? ui().tt.past->latest() : nullptr;
    return latest && latest->answer.question == ui().tt.past_question;
  };
  ASSERT_TRUE(until(answered));
  CheckpointValues values = ui().tt.past->latest()->answer;
  EXPECT_EQ(values.problem, "");
  EXPECT_EQ(values.question.step, 10) << "the nearest one";
  const SafetensorsFile file(values.question.path);
  EXPECT_EQ(values.bond.values, file.values(layer + ".rank.1"));
  EXPECT_EQ(chart_names(*stage_), (std::vector<std::string>{"bond-history", "bond-entries"}));
  seek(ui(), 17);
  stage_->frames(2);
  ASSERT_TRUE(until(answered));
  EXPECT_EQ(ui().tt.past->latest()->answer.question.step, 20);
  // A core as well.
  ui().tt.bond = 0;
  ui().tt.core = 2;
  stage_->frames(2);
  ASSERT_TRUE(until(answered));
  values = ui().tt.past->latest()->answer;
  EXPECT_EQ(values.core.shape, file.entry(layer + ".core.2").shape);
  EXPECT_TRUE(std::isnan(values.core.gradient_norm)) << "checkpoints have none";
  EXPECT_EQ(chart_names(*stage_), std::vector<std::string>{"core-values"});
  stage_->frames(3);  // a scroll bar may have come
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
  // The files are gone: it says so, and nothing of another step is shown.
  std::filesystem::remove_all(std::filesystem::path(values.question.path).parent_path());
  ui().tt.bond = 1;
  ui().tt.core = 0;
  seek(ui(), 28);
  stage_->frames(2);
  ASSERT_TRUE(until(answered));
  EXPECT_NE(ui().tt.past->latest()->answer.problem, "");
  EXPECT_EQ(chart_names(*stage_), std::vector<std::string>{"bond-history"});
  stage_->frames(3);  // a scroll bar may have come
  EXPECT_EQ(stage_->overflowing(), std::vector<std::string>{});
}

TEST(TTPanel, ACapFromTheSliderReachesTheSessionAndComesBackApplied) {
  Stage stage({1920, 1200});
  stage.begin_run(Phase::running);
  stage.ui.selected_layer = "enc0.attn.q";
  stage.ui.tt.bond = 1;
  show_panel(stage);
  stage.say([](Snapshot& s) { s.last_ticket = 1; });  // the question for its entries
  stage.frames();
  const ImGuiWindow* side = child("tt-side");
  ASSERT_NE(side, nullptr);
  // The slider is found by its id, so this test holds wherever it stands.
  const std::string path = "rank.cap.enc0.attn.q.1";
  const ImGuiID id = ImHashStr("##slider", 0, const_cast<ImGuiWindow*>(side)->GetID(path.c_str()));
  ImVec2 at;
  ImGui::GetCurrentContext()->NavId = 0;
  for (float y = side->Pos.y; y < side->Pos.y + side->Size.y && at.x == 0; y += 2) {
    ImGui::GetIO().AddMousePosEvent(side->Pos.x + side->Size.x * 0.3f, y);
    stage.frames(2);
    if (ImGui::GetCurrentContext()->HoveredIdPreviousFrame == id) at = {side->Pos.x + side->Size.x * 0.3f, y};
  }
  ASSERT_NE(at.x, 0) << "no slider for the cap";
  click(stage, at);
  const auto* edit = std::get_if<EditCommand>(&stage.script->posted.back());
  ASSERT_NE(edit, nullptr);
  EXPECT_EQ(edit->path, path);
  const int cap = std::stoi(edit->value);
  EXPECT_EQ(edit->value, std::to_string(cap)) << "a rank is a whole number";
  EXPECT_GT(cap, 1);
  EXPECT_LT(cap, 30);
  EXPECT_EQ(stage.ui.live->edits().at(path).stage, EditState::pending);
  stage.frames();
  stage.say([&](Snapshot& s) {
    s.last_ticket = stage.script->tickets;
    s.last_ticket_step = 901;
    s.ranks[0].caps[0] = cap;
    s.ranks[0].live[0] = cap;
  });
  stage.frames();
  EXPECT_EQ(stage.ui.live->edits().at(path).stage, EditState::applied);
  EXPECT_EQ(stage.ui.live->edits().at(path).step, 901);
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
}

TEST(TTPanel, DraggingACellOfTheRankMapSetsACap) {
  Stage stage({1920, 1080});
  stage.begin_run(Phase::running);
  stage.frames();
  const ImGuiWindow* cells = child("cells");
  ASSERT_NE(cells, nullptr);
  const ImVec2 at(cells->Pos.x + cells->Size.x * 0.3f, cells->Pos.y + cells->Size.y * 0.5f);
  mouse(stage, at, true);
  ImGui::GetIO().AddMousePosEvent(at.x, at.y + 60);
  stage.frames(3);
  EXPECT_TRUE(stage.script->posted.empty()) << "in force before it was let go";
  ImGui::GetIO().AddMouseButtonEvent(0, false);
  stage.frames(2);
  ASSERT_EQ(stage.script->posted.size(), 1u);
  const auto* edit = std::get_if<EditCommand>(&stage.script->posted.back());
  ASSERT_NE(edit, nullptr);
  EXPECT_EQ(edit->path.rfind("rank.cap.enc", 0), 0u) << edit->path;
  EXPECT_TRUE(stage.ui.selected_layer.empty()) << "a drag is no click";
}

// What a tooltip tells of a bar can be kept, and all bars as a table.
TEST_F(Clicked, BarsOfTheCardAreCopied) {
  stage_.resize({1920, 1400});
  stage_.begin_run(Phase::paused);
  ui().selected_layer = "enc0.attn.q";
  ui().tt.bond = 1;
  show_panel(stage_);
  stage_.say([](Snapshot& s) { s.inspected = {"enc0.attn.q", 1, s.step, {0.25, 0.9, 0.001}}; });
  const auto copied = [&](const std::string& picture, const char* what, float across) {
    if (!sees(picture)) return picture + " is not seen";
    const NamedItem item = *find(picture);
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent(item.low.x + (item.high.x - item.low.x) * across, (item.low.y + item.high.y) / 2);
    frame();
    for (const bool down : {true, false}) {
      io.AddMouseButtonEvent(1, down);
      frame();
    }
    click(std::string("copy:") + what);
    return std::string(ImGui::GetClipboardText());
  };
  EXPECT_EQ(copied("card:entries", "Copy value", 0.1f), "entry 1: 0.9");
  EXPECT_EQ(copied("card:entries", "Copy value", 0.9f), "entry 3: 0.001, dead");
  EXPECT_EQ(copied("card:entries", "Copy data", 0.5f), "entry,value\n1,0.9\n2,0.25\n3,0.001\n");
  const std::string history = copied("card:history", "Copy data", 0.5f);
  EXPECT_EQ(history.substr(0, history.find('\n', 10)), "step,rank\n0,30");
  EXPECT_NE(copied("card:history", "Copy value", 0.5f).find(": rank "), std::string::npos);
  ui().tt.bond = 0;
  ui().tt.core = 1;
  stage_.say([](Snapshot& s) { s.inspected_core = {"enc0.attn.q", 1, s.step, {1, 12, 30}, 0.5, {1, 0, 2, 7}, 1.5}; });
  EXPECT_EQ(copied("card:values", "Copy value", 0.95f), "0.25 to 0.5: 7 values");
  EXPECT_EQ(copied("card:values", "Copy data", 0.1f), "from,to,values\n-0.5,-0.25,1\n-0.25,0,0\n0,0.25,2\n0.25,0.5,7\n");
}

TEST(TTPanel, ThePastAndStoredRunsCannotBeChanged) {
  Stage stage;
  stage.begin_run(Phase::finished);
  stage.ui.selected_layer = "enc0.attn.q";
  stage.ui.tt.bond = 2;
  show_panel(stage);
  EXPECT_TRUE(stage.script->posted.empty());
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  // Also as a run out of the store.
  auto view = std::make_shared<RunView>(stage.ui.shown());
  view->live = false;
  stage.ui.stored = view;
  stage.ui.show_stored = true;
  for (const int64_t bond : {0, 1, 5, 99}) {
    stage.ui.tt.bond = bond;
    stage.ui.tt.core = bond == 0 ? 6 : 0;
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  }
  EXPECT_TRUE(stage.script->posted.empty());
}

TEST(TTPanel, ManyLayersStartFoldedAndTheZoomHoldsThePlaceUnderTheMouse) {
  Stage stage({960, 600});
  stage.begin_run(Phase::running, 600, 38);
  Snapshot many = *stage.script->snapshot;
  for (size_t i = 0; i < many.ranks.size(); ++i) many.ranks[i].name = "enc" + std::to_string(i / 6) + ".part" + std::to_string(i % 6);
  stage.script->snapshot = std::make_shared<const Snapshot>(many);
  show_panel(stage);
  EXPECT_EQ(stage.ui.tt.collapsed.size(), 7u);
  stage.ui.selected_layer = "enc5.part2";  // chosen elsewhere: its group opens, and it comes into view
  stage.frames();
  EXPECT_EQ(stage.ui.tt.collapsed.size(), 6u);
  const TTLayout layout = lay_out(many.ranks, stage.ui.tt.collapsed);
  for (const TTRow& row : layout.rows) {
    if (row.name != "enc5.part2") continue;
    const ImVec2 at = on_screen(stage, 1, row.y);
    EXPECT_GT(at.y, stage.ui.tt.canvas.y);
    EXPECT_LT(at.y, 600);
    ImGui::GetIO().AddMousePosEvent(at.x + 20, at.y);
    stage.frames(2);
    const float before = stage.ui.tt.zoom;
    const double x = stage.ui.tt.corner.x + (at.x + 20 - stage.ui.tt.canvas.x) / (before * ImGui::GetFontSize());
    ImGui::GetIO().AddMouseWheelEvent(0, 1);
    stage.frames(2);
    EXPECT_GT(stage.ui.tt.zoom, before);
    EXPECT_NEAR(on_screen(stage, x, row.y).x, at.x + 20, 0.5);
    EXPECT_NEAR(on_screen(stage, x, row.y).y, at.y, 0.5);
  }
  stage.ui.tt.search = "no such name";
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
}

TEST(TTPanel, EveryChoiceInEverySizeAndScale) {
  struct Case {
    ImVec2 pixels;
    float scale;
  };
  for (const Case& c : {Case{{960, 600}, 1}, Case{{1600, 900}, 1}, Case{{1920, 1200}, 2}, Case{{3840, 2160}, 1}, Case{{3840, 2160}, 3}}) {
    Stage stage(c.pixels, c.scale);
    stage.begin_run(Phase::paused);
    stage.say([](Snapshot& s) { s.inspected = {"enc0.attn.q", 2, s.step, std::vector<double>(30, 0.4)}; });
    for (const auto& [bond, core] : {std::pair<int, int>{0, 0}, {2, 0}, {3, 0}, {0, 1}, {0, 6}}) {
      stage.ui.selected_layer = "enc0.attn.q";
      stage.ui.tt.bond = bond;
      stage.ui.tt.core = core;
      show_panel(stage);
      const ImGuiWindow* window = ImGui::FindWindowByName(kWindow);
      ASSERT_NE(window, nullptr);
      EXPECT_FALSE(window->Hidden);
      EXPECT_EQ(stage.overflowing(), std::vector<std::string>{})
          << c.pixels.x << " at " << c.scale << ", bond " << bond << ", core " << core;
    }
  }
}

}  // namespace
}  // namespace comera::studio
