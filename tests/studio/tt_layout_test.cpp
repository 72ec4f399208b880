// The diagram of tensor trains as pure geometry, and as a picture.
#include "app/figure/tt_layout.h"

#include <algorithm>

#include "app/figure/tt_drawing.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

LayerRanks linear(const std::string& name, std::vector<int64_t> live = {12, 14, 30, 20, 12}) {
  return {name, std::move(live), {12, 16, 30, 24, 12}, {12, 30, 30, 30, 12}, {12, 8, 8}, {8, 8, 12}};
}
LayerRanks table(const std::string& name) { return {name, {32, 20, 32}, {32, 24, 32}, {32, 32, 32}, {16, 20, 10, 10}, {4, 4, 8, 6}}; }

TEST(TTLayout, CoresStandInOrderWithTheirRanksAndModes) {
  const std::vector<LayerRanks> layers{linear("enc0.attn.q")};
  const TTLayout layout = lay_out(layers, {});
  ASSERT_EQ(layout.cores.size(), 6u);
  std::vector<std::string> labels;
  for (const TTCore& core : layout.cores) labels.push_back(core_label(core));
  EXPECT_EQ(labels, (std::vector<std::string>{"1 \xc3\x97 12 \xc3\x97 12", "12 \xc3\x97 8 \xc3\x97 14", "14 \xc3\x97 8 \xc3\x97 30",
                                              "30 \xc3\x97 8 \xc3\x97 20", "20 \xc3\x97 8 \xc3\x97 12", "12 \xc3\x97 12 \xc3\x97 1"}));
  for (size_t i = 1; i < layout.cores.size(); ++i)
    EXPECT_GT(layout.cores[i].x - layout.cores[i].width / 2, layout.cores[i - 1].x + layout.cores[i - 1].width / 2);
  // Bonds join the cores beside them; the one between inputs and outputs is longer.
  ASSERT_EQ(layout.bonds.size(), 5u);
  for (size_t i = 0; i < layout.bonds.size(); ++i) {
    EXPECT_DOUBLE_EQ(layout.bonds[i].x0, layout.cores[i].x + layout.cores[i].width / 2);
    EXPECT_DOUBLE_EQ(layout.bonds[i].x1, layout.cores[i + 1].x - layout.cores[i + 1].width / 2);
    if (i == 2) continue;
    EXPECT_LT(layout.bonds[i].x1 - layout.bonds[i].x0, layout.bonds[2].x1 - layout.bonds[2].x0);
  }
  // Inputs point up, outputs down, one leg a core.
  ASSERT_EQ(layout.legs.size(), 6u);
  for (const TTLeg& leg : layout.legs) {
    EXPECT_EQ(leg.input, leg.core < 3);
    EXPECT_EQ(leg.to < leg.from, leg.input);
  }
  EXPECT_GT(layout.cores.front().x - layout.cores.front().width / 2, layout.names) << "the name would be under the first core";
  EXPECT_LT(layout.cores.back().x + layout.cores.back().width / 2, layout.width);
}

TEST(TTLayout, CoresOfAnEmbeddingHaveTwoLegs) {
  const std::vector<LayerRanks> layers{table("emb.token")};
  const TTLayout layout = lay_out(layers, {});
  ASSERT_EQ(layout.cores.size(), 4u);
  EXPECT_EQ(layout.legs.size(), 8u);
  EXPECT_TRUE(layout.rows.front().table);
  EXPECT_EQ(core_label(layout.cores[1]),
            "32 \xc3\x97 20\xc2\xb7"
            "4 \xc3\x97 20");
}

// The published sizes (METHODS 1.1, 1.2): 20,448 entries of a 768 -> 768 layer, 167,808 of the embedding.
TEST(TTLayout, CountsParametersAsTheCoreDoes) {
  LayerRanks q = linear("q");
  q.live = q.held = q.initial = {12, 30, 30, 30, 12};
  EXPECT_EQ(layer_entries(q, q.live), 20'448);
  LayerRanks emb = table("emb");
  emb.live = emb.held = emb.initial = {32, 32, 32};
  EXPECT_EQ(layer_entries(emb, emb.live), 167'808);
  q.live[3] = 0;  // a dead bond: the layer gives 0
  EXPECT_EQ(layer_entries(q, q.live), 0);
  const TTLayout layout = lay_out(std::vector<LayerRanks>{q, emb}, {});
  EXPECT_EQ(layout.rows[0].entries, 0);
  EXPECT_EQ(layout.rows[0].first_entries, 20'448);
  int64_t sum = 0;
  for (const TTCore& core : layout.cores) sum += core.first_entries;
  EXPECT_EQ(sum, 20'448 + 167'808);
}

TEST(TTLayout, ThicknessGrowsWithEachDoubling) {
  EXPECT_EQ(bond_thickness(0), 0);
  EXPECT_GT(bond_thickness(1), 0);
  EXPECT_NEAR(bond_thickness(8) - bond_thickness(4), bond_thickness(32) - bond_thickness(16), 1e-12);
  const TTLayout layout = lay_out(std::vector<LayerRanks>{linear("q")}, {});
  for (const TTBond& bond : layout.bonds) EXPECT_EQ(bond.ghost >= bond.thickness, bond.initial >= bond.live);
  EXPECT_GT(layout.bonds[1].ghost, layout.bonds[1].thickness);
}

TEST(TTLayout, GroupsFoldAndASearchShowsWhatItFinds) {
  std::vector<LayerRanks> layers{table("emb.token")};
  for (const char* name : {"enc0.attn.q", "enc0.attn.k", "enc1.attn.q", "enc1.attn.k", "classifier"}) layers.push_back(linear(name));
  EXPECT_EQ(groups_of(layers), (std::set<std::string>{"enc0", "enc1"}));
  const TTLayout folded = lay_out(layers, groups_of(layers));
  ASSERT_EQ(folded.rows.size(), 4u);
  EXPECT_TRUE(folded.rows[1].collapsed);
  EXPECT_EQ(folded.rows[1].name, "enc0");
  EXPECT_EQ(folded.rows[1].layers, 2u);
  EXPECT_EQ(folded.rows[1].entries, 2 * layer_entries(layers[1], layers[1].live));
  EXPECT_EQ(folded.cores.size(), 4u + 6u);
  EXPECT_EQ(folded.row_of(4), &folded.rows[2]);
  for (size_t i = 1; i < folded.rows.size(); ++i)
    EXPECT_NEAR(folded.rows[i].y - folded.rows[i].height / 2, folded.rows[i - 1].y + folded.rows[i - 1].height / 2, 1e-9);
  const TTLayout found = lay_out(layers, groups_of(layers), "ATTN.K");
  ASSERT_EQ(found.rows.size(), 2u);
  EXPECT_EQ(found.rows[0].name, "enc0.attn.k");
  EXPECT_FALSE(found.rows[0].collapsed);
  EXPECT_TRUE(lay_out(layers, {}, "nothing").rows.empty());
}

TEST(TTLayout, WhatIsAtAPoint) {
  const std::vector<LayerRanks> layers{linear("a.q"), linear("a.k")};
  const TTLayout layout = lay_out(layers, {});
  for (size_t i = 0; i < layout.bonds.size(); ++i) {
    const TTHit at = hit(layout, (layout.bonds[i].x0 + layout.bonds[i].x1) / 2, layout.bonds[i].y, 0.5);
    EXPECT_EQ(at.kind, TTHit::bond);
    EXPECT_EQ(at.index, i);
  }
  for (size_t i = 0; i < layout.cores.size(); ++i) {
    const TTHit at = hit(layout, layout.cores[i].x, layout.cores[i].y, 0.5);
    EXPECT_EQ(at.kind, TTHit::core);
    EXPECT_EQ(at.index, i);
  }
  EXPECT_EQ(hit(layout, 1.5, layout.rows[1].y, 0.5).kind, TTHit::row);
  EXPECT_EQ(hit(layout, 1.5, layout.rows[1].y, 0.5).index, 1u);
  EXPECT_EQ(hit(layout, -50, -50, 0.5).kind, TTHit::nothing);
}

TEST(TTLayout, ALayerOfUnknownShapeIsLeftOut) {
  LayerRanks odd = linear("odd");
  odd.in_modes.clear();
  odd.out_modes.clear();
  LayerRanks short_one = linear("short", {5});  // fewer ranks than bonds
  const TTLayout layout = lay_out(std::vector<LayerRanks>{odd, short_one}, {});
  ASSERT_EQ(layout.rows.size(), 1u);
  EXPECT_EQ(layout.rows[0].name, "short");
  EXPECT_EQ(layout.cores.size(), 6u);
}

TEST(TTDrawing, ShowsEveryRankWithTheOneAtTheStart) {
  Stage stage;
  LayerRanks layer = linear("enc0.attn.q");
  layer.live[4] = 0;
  layer.caps = {0, 14, 0, 0, 0};
  const Drawing drawing = tt_drawing(lay_out(std::vector<LayerRanks>{layer}, {}), {});
  const auto has = [&](const std::string& text) {
    return std::any_of(drawing.shapes.begin(), drawing.shapes.end(), [&](const DrawnShape& shape) { return shape.words == text; });
  };
  for (const char* text : {"12/12", "14/30", "30/30", "20/30", "0/12", "cap 14", "enc0.attn.q"}) EXPECT_TRUE(has(text)) << text;
  EXPECT_FALSE(has("cap 0"));
  EXPECT_TRUE(std::any_of(drawing.shapes.begin(), drawing.shapes.end(), [](const DrawnShape& shape) { return shape.color == theme().bad; }))
      << "a dead bond looks like any other";
  for (const DrawnShape& shape : drawing.shapes)
    for (const Point point : shape.points) {
      EXPECT_GE(point.x, 0);
      EXPECT_LE(point.x, drawing.size.x);
      EXPECT_GE(point.y, 0);
      EXPECT_LE(point.y, drawing.size.y);
    }
}

}  // namespace
}  // namespace comera::studio
