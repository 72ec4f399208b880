// Memory by layer: sums that must come out, tiles that must fit, and the panel in every size.
#include "app/studio/shown_run/layer_memory.h"

#include <cmath>

#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

double area(const Tile& tile) { return static_cast<double>(tile.width) * static_cast<double>(tile.height); }

TEST(Squarify, AreasAreTheSizesAndFillTheRectangle) {
  const std::vector<double> sizes{6, 6, 4, 3, 2, 2, 1, 0};  // the example of the paper, and nothing
  const Tile into{10, 20, 600, 400};
  const std::vector<Tile> tiles = squarify(sizes, into);
  ASSERT_EQ(tiles.size(), sizes.size());
  for (size_t i = 0; i < sizes.size(); ++i) {
    EXPECT_NEAR(area(tiles[i]), sizes[i] / 24 * 240000, 1) << i;
    if (sizes[i] == 0) continue;
    EXPECT_GE(tiles[i].x, into.x - 0.01f);
    EXPECT_GE(tiles[i].y, into.y - 0.01f);
    EXPECT_LE(tiles[i].x + tiles[i].width, into.x + into.width + 0.01f);
    EXPECT_LE(tiles[i].y + tiles[i].height, into.y + into.height + 0.01f);
    for (size_t k = 0; k < i; ++k) {
      const float wide = std::min(tiles[i].x + tiles[i].width, tiles[k].x + tiles[k].width) - std::max(tiles[i].x, tiles[k].x);
      const float high = std::min(tiles[i].y + tiles[i].height, tiles[k].y + tiles[k].height) - std::max(tiles[i].y, tiles[k].y);
      EXPECT_FALSE(wide > 0.01f && high > 0.01f) << i << " covers " << k;
    }
  }
  // Slices would be up to 14 times as long as wide.
  for (size_t i = 0; i + 1 < sizes.size(); ++i)
    EXPECT_LE(std::max(tiles[i].width / tiles[i].height, tiles[i].height / tiles[i].width), 3) << i;
  EXPECT_EQ(area(squarify({}, into).empty() ? Tile{} : Tile{0, 0, 1, 1}), 0);
  EXPECT_EQ(area(squarify({0, 0}, into)[0]), 0);
  EXPECT_EQ(area(squarify({1}, {0, 0, 0, 5})[0]), 0);
}

TEST(LayerMemory, LayersAndTheRestAreAllThereIs) {
  Snapshot s = a_snapshot(Phase::running, 900);
  s.memory_now.bytes.fill(40'000'000);
  const ModelMemory memory = memory_by_layer(s);
  ASSERT_TRUE(memory.known);
  ASSERT_EQ(memory.layers.size(), 3u);
  // By hand: ranks in memory 30 16 3 8 30, modes 12 8 8 8 8 12, 4 bytes a value.
  const int64_t cores = 12 * 30 + 30 * 8 * 16 + 16 * 8 * 3 + 3 * 8 * 8 + 8 * 8 * 30 + 30 * 12;
  EXPECT_EQ(memory.layers[0].bytes[Purpose::tt_core], cores * 4);
  EXPECT_EQ(memory.layers[0].bytes[Purpose::rank_vector], (30 + 16 + 3 + 8 + 30) * 4);
  EXPECT_GT(memory.layers[0].dense, 768.0 * 768 * 4) << "with gradient and moments";
  for (int i = 0; i < kPurposes; ++i) {
    int64_t sum = memory.rest.bytes[static_cast<size_t>(i)];
    for (const LayerMemory& layer : memory.layers) sum += layer.bytes.bytes[static_cast<size_t>(i)];
    EXPECT_NEAR(static_cast<double>(sum), 40e6, 1) << i;
  }
  s.memory_now = {};
  EXPECT_FALSE(memory_by_layer(s).known) << "not recorded";
  s = a_snapshot(Phase::running, 900);
  s.ranks.clear();
  EXPECT_FALSE(memory_by_layer(s).known);
}

// Of a real model: what the layers are told to take is what the trainer's allocator counted for tensor trains.
TEST(LayerMemory, OfARealRun) {
  SessionStart start;
  start.config = load_config("demo", {"train.threads=1", "train.steps=3"});
  Session session(std::move(start));
  ASSERT_TRUE(session.wait(120));
  const Snapshot& s = *session.latest();
  ASSERT_EQ(s.phase, Phase::finished) << s.message;
  const ModelMemory memory = memory_by_layer(s);
  ASSERT_TRUE(memory.known);
  int64_t cores = 0;
  for (const LayerMemory& layer : memory.layers) cores += layer.bytes[Purpose::tt_core];
  const int64_t alignment = 64 * 8 * static_cast<int64_t>(memory.layers.size());  // of each core
  EXPECT_LE(cores, s.memory_now[Purpose::tt_core]);
  EXPECT_NEAR(static_cast<double>(cores), static_cast<double>(s.memory_now[Purpose::tt_core]), static_cast<double>(alignment));
}

TEST(LayerMemory, ThePanelInEverySize) {
  for (const auto& [size, scale] :
       {std::pair(ImVec2(960, 600), 1.0f), std::pair(ImVec2(1600, 900), 1.0f), std::pair(ImVec2(1920, 1080), 1.0f),
        std::pair(ImVec2(1920, 1200), 2.0f), std::pair(ImVec2(3840, 2160), 1.0f)})
    for (const int layers : {0, 3, 38})
      for (const bool whole : {false, true}) {
        Stage stage(size, scale);
        stage.begin_run(Phase::running, 900, layers);
        stage.ui.memory_view = 1;
        stage.ui.memory_counts = whole ? 2 : 0;
        stage.frames(2);
        stage.ui.front_panel = "memory";
        stage.frames();
        EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << size.x << " at " << scale << ", " << layers << " layers";
      }
}

TEST(LayerMemory, AClickChoosesTheLayerEverywhere) {
  Stage stage({1920, 1200});
  stage.begin_run(Phase::paused);
  stage.ui.memory_view = 1;
  stage.frames(2);
  stage.ui.front_panel = "memory";
  stage.frames(3);
  ImGuiIO& io = ImGui::GetIO();
  const ImGuiWindow* panel = ImGui::FindWindowByName("Memory###memory");
  ASSERT_NE(panel, nullptr);
  // Somewhere in the right half of the panel is the map of all layers.
  io.AddMousePosEvent(panel->Pos.x + panel->Size.x * 0.9f, panel->Pos.y + panel->Size.y * 0.8f);
  stage.frames(2);
  io.AddMouseButtonEvent(0, true);
  stage.frames(2);
  io.AddMouseButtonEvent(0, false);
  stage.frames(2);
  EXPECT_EQ(stage.ui.selected_layer.rfind("enc", 0), 0u) << stage.ui.selected_layer;
}

}  // namespace
}  // namespace comera::studio
