// Ranks over the steps: the order of layers, sizes by hand, and the panel in every size.
#include "app/studio/shown_run/rank_history.h"

#include "app/studio/panels.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

// A layer of two modes each way and three bonds: entries 2 r1 + 3 r1 r2 + 4 r2 r3 + 5 r3.
LayerRanks layer(const char* name, std::vector<int64_t> live) {
  LayerRanks out{name, live, live, {4, 6, 4}};
  out.in_modes = {4, 5};
  out.out_modes = {2, 3};
  return out;
}
int64_t entries(int64_t a, int64_t b, int64_t c, const LayerRanks& of) {
  const std::vector<int64_t>&out = of.out_modes, &in = of.in_modes;
  return of.in_modes.empty() ? 0 : in[0] * a + in[1] * a * b + out[0] * b * c + out[1] * c;
}

TEST(RankHistory, LayersByDepthSizeAndDrop) {
  const std::vector<LayerRanks> layers{layer("small", {4, 1, 1}), layer("large", {4, 6, 4}), layer("fallen", {1, 1, 1})};
  EXPECT_EQ(ordered_layers(layers, RankOrder::depth), (std::vector<size_t>{0, 1, 2}));
  EXPECT_EQ(ordered_layers(layers, RankOrder::size), (std::vector<size_t>{1, 0, 2}));
  EXPECT_EQ(ordered_layers(layers, RankOrder::drop), (std::vector<size_t>{2, 0, 1}));
}

TEST(RankHistory, SizesAtEachStepByModule) {
  RunView view;
  Snapshot s;
  s.step = 100;
  s.ranks = {layer("enc0.a", {2, 3, 1}), layer("enc0.b", {4, 6, 4}), layer("enc1.a", {4, 5, 4})};
  Records records;
  for (const LayerRanks& of : s.ranks)
    for (size_t bond = 0; bond < 3; ++bond) records.ranks.push_back({0, of.name, static_cast<int64_t>(bond) + 1, of.initial[bond]});
  records.ranks.push_back({10, "enc0.a", 1, 2});
  records.ranks.push_back({10, "enc0.a", 3, 1});
  records.ranks.push_back({40, "enc0.a", 2, 3});
  records.ranks.push_back({50, "enc1.a", 2, 5});
  view.take(std::make_shared<const Snapshot>(s), records);
  EXPECT_EQ(rank_steps(view, 0, 100, 1000), (std::vector<double>{0, 10, 40, 50, 100}));
  EXPECT_EQ(rank_steps(view, 10, 45, 1000), (std::vector<double>{10, 40, 45}));
  EXPECT_EQ(rank_steps(view, 0, 100, 3), (std::vector<double>{0, 50, 100}));
  const std::vector<double> steps{0, 10, 39, 40, 100};
  const LayerRanks& any = s.ranks[0];
  const auto full = static_cast<double>(entries(4, 6, 4, any));
  const std::vector<ModuleSize> single = module_sizes(view, s.ranks, steps, 8);
  ASSERT_EQ(single.size(), 3u);
  EXPECT_EQ(single[0].name, "enc0.a");
  const auto fallen = static_cast<double>(entries(2, 6, 1, any));
  EXPECT_EQ(single[0].entries, (std::vector<double>{full, fallen, fallen, static_cast<double>(entries(2, 3, 1, any)),
                                                    static_cast<double>(entries(2, 3, 1, any))}));
  EXPECT_EQ(single[1].entries, std::vector<double>(5, full));
  const std::vector<ModuleSize> groups = module_sizes(view, s.ranks, steps, 2);
  ASSERT_EQ(groups.size(), 2u);
  EXPECT_EQ(groups[0].name, "enc0");
  EXPECT_EQ(groups[0].entries[1], full + fallen);
  EXPECT_EQ(groups[1].name, "others");
  EXPECT_EQ(groups[1].entries.back(), static_cast<double>(entries(4, 5, 4, any)));
}

TEST(RanksPanel, EveryViewFitsEverySize) {
  for (const auto& [size, scale, layers] : {std::tuple(ImVec2(960, 600), 1.0f, 3), std::tuple(ImVec2(1600, 900), 1.0f, 60),
                                            std::tuple(ImVec2(3840, 2160), 2.0f, 6), std::tuple(ImVec2(3840, 2160), 3.0f, 36)}) {
    Stage stage(size, scale);
    stage.begin_run(Phase::running, 900, layers);
    stage.frames(2);
    for (const RanksView view : {RanksView::now, RanksView::over_steps, RanksView::drops})
      for (int order = 0; order < kRankOrders; ++order) {
        stage.ui.front_panel = "ranks";
        stage.ui.ranks_view = view;
        stage.ui.rank_order = static_cast<RankOrder>(order);
        stage.frames(3);
        EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << size.x << " " << scale << " " << static_cast<int>(view);
      }
  }
}

class RankHeatmap : public Clicked {};

TEST_F(RankHeatmap, ItShowsAndChoosesBondsWhateverTheirNumber) {
  stage_.begin_run(Phase::running, 900, 60);
  ui().ranks_view = RanksView::over_steps;
  ui().front_panel = "ranks";
  ASSERT_TRUE(sees("chart:rank-history"));
  const NamedItem map = *find("chart:rank-history");
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(map.low.x + 0.6f * (map.high.x - map.low.x), map.low.y + em(1));
  frame();
  frame();
  EXPECT_GT(ui().plots.cursor, 100) << "the step under the mouse is marked in all plots";
  click("chart:rank-history");
  const std::string chosen = ui().selected_layer;
  EXPECT_TRUE(chosen.starts_with("enc")) << chosen;
  EXPECT_GE(ui().tt.bond, 1);
  // Further down there are others.
  for (int i = 0; i < 20; ++i) {
    io.AddMouseWheelEvent(0, -5);
    frame();
  }
  click("chart:rank-history");
  EXPECT_NE(ui().selected_layer, chosen);
  // What is exported is in the order of the screen.
  ui().rank_order = RankOrder::drop;
  const std::vector<Chart> charts = drawn(ranks_charts(ui()));
  ASSERT_GE(charts.size(), 3u);
  EXPECT_EQ(charts.back().name, "size-by-module");
  EXPECT_NE(charts.back().csv().find("enc0"), std::string::npos);
}

class RankDrops : public Clicked {};

TEST_F(RankDrops, NewestFirstAndAClickShowsTheirBond) {
  stage_.begin_run(Phase::running, 900, 1);
  stage_.script->records.ranks.push_back({880, "enc0.attn.q", 1, 28});
  ui().ranks_view = RanksView::drops;
  ui().front_panel = "ranks";
  ASSERT_TRUE(sees("drop:880 enc0.attn.q bond 1: 30 -> 28"));
  std::vector<std::string> lines;
  for (const NamedItem& item : items_)
    if (item.name.starts_with("drop:")) lines.push_back(item.name);
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[1], "drop:510 enc0.attn.q bond 4: 30 -> 7") << "of a step the last bond comes first";
  EXPECT_EQ(lines[3], "drop:510 enc0.attn.q bond 2: 30 -> 12");
  click(lines[1]);
  EXPECT_EQ(ui().selected_layer, "enc0.attn.q");
  EXPECT_EQ(ui().tt.bond, 4);
  // What a line says can be copied.
  ASSERT_TRUE(sees("drop:880"));
  const NamedItem line = *find("drop:880");
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent(line.low.x + em(1), (line.low.y + line.high.y) / 2);
  frame();
  for (const bool down : {true, false}) {
    io.AddMouseButtonEvent(1, down);
    frame();
  }
  click("copy:Copy line");
  EXPECT_STREQ(ImGui::GetClipboardText(), "step 880  enc0.attn.q bond 1: 30 -> 28");
  // What is shown of the past knows nothing of what came later.
  Snapshot past = *stage_.script->snapshot;
  past.step = 700;
  ui().timeline.snapshot = std::make_shared<const Snapshot>(past);
  ui().timeline.view = &ui().shown();
  EXPECT_TRUE(sees("drop:510"));
  EXPECT_EQ(find("drop:880"), nullptr);
}

}  // namespace
}  // namespace comera::studio
