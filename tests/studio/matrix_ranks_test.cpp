// The rank map of a run without tensor trains: a row a matrix, its rank now and over the steps, and the export of it.
#include "app/studio/ranks/matrix_ranks.h"

#include "app/studio/panels.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

class MatrixRanks : public Clicked {
 protected:
  // A run of GaLore at step 100, whose rank was cut from 128 to 20 at step 51.
  void begin(const std::vector<std::string>& sets) {
    stage_.begin_run(Phase::running, 100);
    ui().live = std::make_unique<LiveRun>(std::make_unique<FakeLink>(stage_.script), load_config("demo", sets));
    say([](Snapshot& s) {
      s.step = 100;
      s.ranks.clear();
      s.ranked = {{"fc0.weight", 512, 784}, {"fc1.weight", 16, 512}};
    });
    stage_.script->records.events.push_back({0, 51, "edit", 0, R"({"path": "method.galore.rank", "value": "20"})"});
    stage_.frames(4);
  }
  void replay(int64_t step) {
    Snapshot then = *stage_.script->snapshot;
    then.step = step;
    ui().timeline.snapshot = std::make_shared<const Snapshot>(then);
    stage_.frames(2);
  }
  std::string csv() {
    for (const Panel& panel : panels())
      if (std::string_view(panel.id) == "ranks") {
        const std::vector<ListedChart> charts = panel.charts(ui());
        EXPECT_EQ(charts.size(), 1u);
        return charts.empty() ? "" : charts[0].draw().csv();
      }
    return "";
  }
};

TEST_F(MatrixRanks, HasARowAMatrixAndItsRanksOverTheSteps) {
  begin({"method=galore", "train.steps=0"});
  EXPECT_TRUE(sees("matrix:fc0.weight"));
  EXPECT_TRUE(sees("matrix:fc1.weight"));
  EXPECT_EQ(csv(),
            "matrix,rows,columns,step,rank\n"
            "fc0.weight,512,784,0,128\nfc0.weight,512,784,51,20\n"
            "fc1.weight,16,512,0,16\nfc1.weight,16,512,51,16\n");
}

TEST_F(MatrixRanks, ShowsTheRanksOfTheStepThatIsReplayed) {
  begin({"method=galore", "train.steps=0"});
  replay(50);
  EXPECT_EQ(csv(), "matrix,rows,columns,step,rank\nfc0.weight,512,784,0,128\nfc1.weight,16,512,0,16\n");
  replay(51);
  EXPECT_NE(csv().find("fc0.weight,512,784,51,20"), std::string::npos);
}

// In turn: the first matrix at steps 1, 31, 61 and 91, the second at 1, 16, 46 and 76. From step 92 on every 10 steps.
TEST_F(MatrixRanks, SaysWhenProjectionsWereRefreshed) {
  begin({"method=galore", "train.steps=0", "method.galore.gap=30"});
  EXPECT_TRUE(sees("says:projections, rank 20, last refresh at step 91"));
  stage_.script->records.events.push_back({0, 92, "edit", 0, R"({"path": "method.galore.gap", "value": "10"})"});
  stage_.frames(4);
  EXPECT_TRUE(sees("says:projections, rank 20, last refresh at step 96"));
  replay(91);
  EXPECT_TRUE(sees("says:projections, rank 20, last refresh at step 91"));
  replay(75);
  EXPECT_TRUE(sees("says:projections, rank 20, last refresh at step 61"));
}

TEST_F(MatrixRanks, SaysNothingOfRefreshesWithoutThem) {
  begin({"method=apollo", "train.steps=0"});
  EXPECT_TRUE(sees("says:projections, rank "));
  EXPECT_FALSE(sees("says:projections, rank 128, last"));
}

TEST_F(MatrixRanks, IsNotThereWithoutRanks) {
  begin({"method=adamw", "train.steps=0"});
  say([](Snapshot& s) { s.ranked.clear(); });
  EXPECT_FALSE(sees("matrix:fc0.weight"));
}

TEST_F(MatrixRanks, FitsIntoEverySize) {
  for (const ImVec2 size : {ImVec2(960, 600), ImVec2(1600, 900), ImVec2(2560, 1440)})
    for (const float scale : {1.0f, 2.0f}) {
      stage_.resize(size, scale);
      begin({"method=galore", "train.steps=0"});
      EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{}) << size.x << " at " << scale;
    }
}

}  // namespace
}  // namespace comera::studio
