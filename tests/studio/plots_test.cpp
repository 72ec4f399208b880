// Plots: what they are drawn over, how curves are made smooth, what is hidden, and what a person does to one of them.
#include "app/studio/parts/plots.h"
#include "app/studio/parts/plot_layers.h"

#include <implot.h>
#include <implot_internal.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "app/studio/actions.h"
#include "app/studio/panels.h"
#include "app/studio/parts/x_axis.h"
#include "app/studio/preferences.h"
#include "tests/store/support.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

Curve noisy(size_t points) {
  Curve curve;
  uint32_t state = 7;
  for (size_t i = 0; i < points; ++i) {
    state = state * 1664525 + 1013904223;
    curve.append(static_cast<double>(i), std::sin(static_cast<double>(i) / 40) + static_cast<double>(state % 1000) / 1000);
  }
  return curve;
}

TEST(SmoothedCurves, TheMeanIsThatOfTheLastPoints) {
  const Curve curve = noisy(500);
  Smoothed smoothed;
  smoothed.update(curve, 0.9, Smoothing::mean);
  const auto window = static_cast<size_t>(points_of(0.9));
  EXPECT_EQ(window, 19u);
  for (const size_t i : {size_t{0}, size_t{5}, size_t{18}, size_t{19}, size_t{499}}) {
    double sum = 0;
    const size_t from = i + 1 > window ? i + 1 - window : 0;
    for (size_t k = from; k <= i; ++k) sum += curve.y()[k];
    EXPECT_NEAR(smoothed.curve().y()[i], sum / static_cast<double>(i + 1 - from), 1e-12) << i;
  }
}

// Three boxes in a row, each over as many points as there are.
std::vector<double> boxes(std::vector<double> y, size_t half) {
  for (int pass = 0; pass < 3; ++pass) {
    std::vector<double> next(y.size());
    for (size_t i = 0; i < y.size(); ++i) {
      const size_t from = i > half ? i - half : 0, to = std::min(y.size() - 1, i + half);
      double sum = 0;
      for (size_t k = from; k <= to; ++k) sum += y[k];
      next[i] = sum / static_cast<double>(to - from + 1);
    }
    y = next;
  }
  return y;
}

TEST(SmoothedCurves, TheGaussianIsTheSameHoweverThePointsCame) {
  const Curve whole = noisy(700);
  const auto half = static_cast<size_t>(std::llround((static_cast<double>(points_of(0.95)) / std::sqrt(3.0) - 1) / 2));
  ASSERT_GT(half, 5u);
  const std::vector<double> wanted = boxes(whole.y(), half);
  for (const size_t at_once : {size_t{700}, size_t{1}, size_t{3}, size_t{50}}) {
    Curve curve;
    Smoothed smoothed;
    for (size_t i = 0; i < whole.size(); ++i) {
      curve.append(whole.x()[i], whole.y()[i]);
      if ((i + 1) % at_once == 0 || i + 1 == whole.size()) smoothed.update(curve, 0.95, Smoothing::gauss);
    }
    ASSERT_EQ(smoothed.curve().size(), wanted.size());
    for (size_t i = 0; i < wanted.size(); ++i)
      ASSERT_NEAR(smoothed.curve().y()[i], wanted[i], 1e-9) << i << " of " << at_once << " at once";
  }
}

TEST(SmoothedCurves, EveryKindKeepsAConstantAndLeavesOutWhatIsNotFinite) {
  Curve curve;
  for (int i = 0; i < 300; ++i) curve.append(i, i % 50 == 7 ? std::numeric_limits<double>::quiet_NaN() : 2.5);
  Smoothed smoothed;
  for (const Smoothing kind : {Smoothing::ema, Smoothing::mean, Smoothing::gauss}) {
    smoothed.update(curve, 0.97, kind);
    EXPECT_EQ(smoothed.curve().size(), 294u);
    for (const double y : smoothed.curve().y()) EXPECT_NEAR(y, 2.5, 1e-12);
  }
  // Two plots that look at a curve in their own ways do not disturb each other.
  smoothed.update(curve, 0.97, Smoothing::ema);
  EXPECT_EQ(smoothed.curve().rewrites(), 0u);
}

TEST(HiddenPoints, AreCountedExactly) {
  const Curve curve = noisy(50'000);
  size_t wanted = 0;
  for (size_t i = 1000; i <= 40'000; ++i) wanted += curve.y()[i] > 1.9 || curve.y()[i] < -0.9;
  EXPECT_GT(wanted, 100u);
  EXPECT_EQ(curve.outside(1000, 40'000, -0.9, 1.9, 1'000'000), wanted);
  EXPECT_EQ(curve.outside(1000, 40'000, -0.9, 1.9, 50), 50u) << "no more than was asked for";
  EXPECT_EQ(curve.outside(0, 50'000, -10, 10, 100), 0u);
}

TEST(StepAxes, GoOnEvenlyBeyondTheirCurve) {
  Curve wall;
  for (int step = 1; step <= 10; ++step) wall.append(step, 1000 + 2 * step + (step > 5 ? 600 : 0));  // a pause after step 5
  const StepAxis axis{&wall, 1, 1002};
  EXPECT_EQ(axis.at(1), 0);
  EXPECT_EQ(axis.at(6), 610);
  EXPECT_NEAR(axis.step(610), 6, 1e-9);
  EXPECT_GT(axis.along(20), axis.along(10));
  for (const double step : {-3.0, 1.0, 4.5, 9.0, 10.0, 17.0}) EXPECT_NEAR(axis.step_along(axis.along(step)), step, 1e-6) << step;
}

TEST(MetricsAxes, EveryAxisDrawsAndStaysAtTheSameSteps) {
  for (const ImVec2 size : {ImVec2(960, 600), ImVec2(1920, 1080), ImVec2(3840, 2160)}) {
    Stage stage(size);
    stage.begin_run(Phase::running, 400);
    stage.script->records.add(401, {{"train_loss", 0.2}, {"epoch", 1.5}}, 1.7e9 + 600);
    stage.frames();
    for (int i = 0; i < kXAxesOfOne; ++i) {
      stage.ui.metrics.axis = static_cast<XAxis>(i);
      stage.frames(2);
      EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << name_of(stage.ui.metrics.axis);
      EXPECT_TRUE(stage.ui.plots.follow) << "another axis is no move of the user's: " << name_of(stage.ui.metrics.axis);
      EXPECT_EQ(stage.ui.plots.x_low, 0);
    }
  }
}

TEST(MetricsAxes, PlacesAreThoseOfTheRun) {
  Stage stage;
  stage.script->snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::running, 1));
  RunView view;
  Records records;
  for (int64_t step = 1; step <= 100; ++step)
    records.add(step, {{"train_loss", 1}, {"step_ms", 20}, {"epoch", static_cast<double>(step) / 50}},
                5000 + static_cast<double>(step) * 0.02 + (step > 60 ? 90 : 0));
  view.config.train.batch = 16;
  view.take(stage.script->snapshot, records);
  EXPECT_EQ(axis_of(view, XAxis::step).at(50), 50);
  EXPECT_EQ(axis_of(view, XAxis::samples).at(50), 800);
  EXPECT_NEAR(axis_of(view, XAxis::time).at(50), 1.0, 1e-9);
  EXPECT_NEAR(axis_of(view, XAxis::epoch).at(50), 1.0, 1e-9);
  EXPECT_NEAR(axis_of(view, XAxis::relative).at(61), 60 * 0.02 + 90, 1e-6) << "a pause counts";
  EXPECT_NEAR(axis_of(view, XAxis::wall).at(61), 5000 + 61 * 0.02 + 90, 1e-6);
  const RunView nothing;
  EXPECT_EQ(no_axis(nothing, XAxis::step), nullptr);
  for (const XAxis axis : {XAxis::time, XAxis::epoch, XAxis::relative, XAxis::wall})
    EXPECT_NE(no_axis(nothing, axis), nullptr) << name_of(axis);
}

// The card of a plot.
const ImGuiWindow* card_of(const char* id) {
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && std::string(window->Name).find(std::string("/") + id + "_") != std::string::npos &&
        std::string(window->Name).find("/grid_") != std::string::npos)
      return window;
  return nullptr;
}

ImVec2 middle_of(const char* id) {
  const ImGuiWindow* card = card_of(id);
  EXPECT_NE(card, nullptr) << id;
  return card ? ImVec2(card->Pos.x + card->Size.x * 0.55f, card->Pos.y + card->Size.y * 0.6f) : ImVec2();
}

TEST(MetricsPlots, TheWheelZoomsStepsAndWithShiftOnlyTheOtherAxis) {
  Stage stage;
  stage.begin_run(Phase::running, 900);
  stage.frames();
  ImGuiIO& io = ImGui::GetIO();
  const ImVec2 at = middle_of("loss");
  io.AddMousePosEvent(at.x, at.y);
  stage.frames(2);
  const double before = stage.ui.plots.x_high - stage.ui.plots.x_low;
  io.AddKeyEvent(ImGuiMod_Shift, true);
  stage.frames(1);
  io.AddMouseWheelEvent(0, 1);
  stage.frames(3);
  io.AddKeyEvent(ImGuiMod_Shift, false);
  stage.frames(2);
  EXPECT_EQ(stage.ui.plots.x_high - stage.ui.plots.x_low, before);
  EXPECT_TRUE(stage.ui.plots.looks["loss"].locked) << "y is where the user put it";
  EXPECT_FALSE(stage.ui.plots.looks["step_ms"].locked) << "of this plot alone";
  io.AddMouseWheelEvent(0, 1);
  stage.frames(3);
  EXPECT_LT(stage.ui.plots.x_high - stage.ui.plots.x_low, before * 0.99);
  EXPECT_FALSE(stage.ui.plots.follow);
  // A double click shows everything again.
  for (int i = 0; i < 2; ++i) {
    io.AddMouseButtonEvent(0, true);
    stage.frames(1);
    io.AddMouseButtonEvent(0, false);
    stage.frames(1);
  }
  stage.frames(2);
  EXPECT_TRUE(stage.ui.plots.follow);
  EXPECT_FALSE(stage.ui.plots.looks["loss"].locked);
}

TEST(MetricsPlots, OneMayBeLookedAtDifferently) {
  PlotView view;
  PlotTile loss{.id = "loss"}, size{.id = "size"};
  loss.can_log = true;
  EXPECT_FALSE(log_scale_of(view, loss));
  view.log_scale = true;
  EXPECT_TRUE(log_scale_of(view, loss));
  EXPECT_FALSE(log_scale_of(view, size)) << "only losses follow the switch of all plots";
  view.looks["size"].log_scale = true;
  view.looks["loss"].log_scale = false;
  view.looks["loss"].outliers = false;
  EXPECT_TRUE(log_scale_of(view, size));
  EXPECT_FALSE(log_scale_of(view, loss));
  EXPECT_FALSE(outliers_of(view, loss));
  EXPECT_TRUE(outliers_of(view, size));
}

// Among many that are not finite as well: the envelope of a pixel keeps the one that is.
TEST(Plots, APointBetweenTwoGapsIsADot) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(lone_points({nan, 1, nan, 2, 3, nan, 4}), (std::vector<size_t>{1, 6}));
  EXPECT_EQ(lone_points({1, 2, 3}), std::vector<size_t>{});
  Curve curve;
  for (int i = 0; i < 10'000; ++i) curve.append(i, i == 5'000 ? 0.5 : nan);
  std::vector<double> x, y;
  curve.envelope(0, 10'000, 300, x, y);
  const std::vector<size_t> lone = lone_points(y);
  ASSERT_EQ(lone.size(), 1u);
  EXPECT_EQ(x[lone[0]], 5'000);
}

class PlotMenu : public Clicked {};

TEST_F(PlotMenu, AValueIsCopied) {
  stage_.begin_run(Phase::running, 900);
  click("more");  // of the first plot, the loss
  click("copy-value");
  const std::string copied = ImGui::GetClipboardText();
  EXPECT_EQ(copied, csv_number(2 / (1 + 900.0 / 50)));
  PlotTile two{.id = "two"};
  Curve a, b;
  a.append(1, 0.25);
  b.append(2, 4);
  two.lines = {{&a, "a"}, {&b, "b", 0, false, false, 0.5}};
  EXPECT_EQ(values_text(two, 1), "a\t0.25") << "b has none yet";
  EXPECT_EQ(values_text(two, 2), "a\t0.25\nb\t2");
  two.lines[0].end = 1;
  EXPECT_EQ(values_text(two, 2), "b\t2") << "the run of a has ended";
}

TEST(MetricsGrid, PlotsAreAddedRemovedPinnedAndAlone) {
  Stage stage({3840, 2160});
  stage.begin_run(Phase::running, 300);
  stage.frames();
  EXPECT_NE(card_of("loss"), nullptr);
  EXPECT_EQ(card_of("train_accuracy"), nullptr);
  MetricsGrid& grid = stage.ui.metrics;
  grid.toggled = {"loss", "train_accuracy"};
  stage.frames();
  EXPECT_EQ(card_of("loss"), nullptr);
  ASSERT_NE(card_of("train_accuracy"), nullptr);
  grid.pinned = {"train_accuracy"};
  stage.frames();
  EXPECT_LT(card_of("train_accuracy")->Pos.y, card_of("step_ms")->Pos.y + 1);
  EXPECT_LT(card_of("train_accuracy")->Pos.x, card_of("accuracy")->Pos.x) << "first of its row";
  for (int columns = 1; columns <= 4; ++columns) {
    grid.columns = columns;
    stage.frames(3);
    std::set<float> lefts;
    for (const char* id : {"train_accuracy", "accuracy", "val_loss", "size", "step_ms", "lr"})
      if (card_of(id)) lefts.insert(card_of(id)->Pos.x);
    EXPECT_EQ(lefts.size(), static_cast<size_t>(columns));
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{}) << columns;
  }
  grid.alone = "size";
  stage.frames(3);
  EXPECT_EQ(card_of("accuracy"), nullptr);
  ASSERT_NE(card_of("size"), nullptr);
  EXPECT_EQ(metrics_charts(stage.ui).size(), 1u) << "what is exported is what is shown";
  grid.alone = "no such plot";
  stage.frames(2);
  EXPECT_NE(card_of("accuracy"), nullptr) << "a plot that is not there hides none";
}

TEST(PlotGrid, EachStandsWhereThereIsRoomFirst) {
  int rows = 0;
  const auto at = [&](const std::vector<PlotCells>& plots, int columns) {
    std::vector<std::pair<int, int>> out;
    for (const PlotPlace& place : place_plots(plots, columns, rows)) out.emplace_back(place.row, place.column);
    return out;
  };
  using Places = std::vector<std::pair<int, int>>;
  EXPECT_EQ(at({{}, {}, {}, {}}, 3), (Places{{0, 0}, {0, 1}, {0, 2}, {1, 0}}));
  EXPECT_EQ(rows, 2);
  EXPECT_EQ(at({{}, {2, 1}, {}, {}}, 2), (Places{{0, 0}, {1, 0}, {0, 1}, {2, 0}})) << "the hole beside the first one is filled";
  EXPECT_EQ(rows, 3);
  EXPECT_EQ(at({{2, 2}, {}, {}, {}}, 3), (Places{{0, 0}, {0, 2}, {1, 2}, {2, 0}}));
  EXPECT_EQ(at({{4, 1}, {}}, 2), (Places{{0, 0}, {1, 0}})) << "no wider than the grid";
  EXPECT_EQ(place_plots({{4, 1}}, 2, rows)[0].cells, (PlotCells{2, 1}));
  EXPECT_EQ(at({}, 2), Places{});
  EXPECT_EQ(rows, 0);
}

class PlotSizes : public Clicked {};

TEST_F(PlotSizes, ACornerIsDraggedAndTheMenuDoesIt) {
  stage_.begin_run(Phase::running, 300);
  ui().metrics.columns = 3;
  ASSERT_TRUE(sees("resize:loss"));
  const ImVec2 before = card_of("loss")->Size;
  const NamedItem grip = *find("resize:loss");
  ImGuiIO& io = ImGui::GetIO();
  io.AddMousePosEvent((grip.low.x + grip.high.x) / 2, (grip.low.y + grip.high.y) / 2);
  frame();
  io.AddMouseButtonEvent(0, true);
  frame();
  io.AddMousePosEvent(grip.high.x + before.x * 0.9f, grip.high.y + before.y * 0.8f);
  stage_.frames(4);
  io.AddMouseButtonEvent(0, false);
  stage_.frames(2);
  EXPECT_EQ(ui().metrics.cells, (std::map<std::string, PlotCells>{{"loss", {2, 2}}}));
  EXPECT_GT(card_of("loss")->Size.x, before.x * 1.9f);
  EXPECT_GT(card_of("loss")->Size.y, card_of("accuracy")->Size.y * 1.9f);
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
  for (const char* item : {"lower", "narrower"}) {
    click("more");  // of the first plot, the loss
    click(item);
  }
  EXPECT_TRUE(ui().metrics.cells.empty()) << "as it was";
}

TEST_F(PlotSizes, EveryOneDrawsInSmallWindowsToo) {
  for (const ImVec2 size : {ImVec2(960, 600), ImVec2(3840, 2160)})
    for (const float scale : {1.0f, 2.0f}) {
      stage_.resize(size, scale);
      stage_.begin_run(Phase::running, 300);
      ui().metrics.cells = {{"loss", {4, 3}}, {"size", {2, 1}}};
      stage_.frames();
      EXPECT_NE(card_of("loss"), nullptr);
      EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{}) << size.x << " at " << scale;
    }
}

TEST(Speed, IsThatOfEachStep) {
  Curve ms;
  for (int step = 1; step <= 1000; ++step) ms.append(step, step == 7 ? 0.0 : 1.0 * step);
  PerSecond rate;
  EXPECT_EQ(rate.update(ms, 300), 300u);
  EXPECT_EQ(rate.update(ms, 5000), 700u);
  ASSERT_EQ(rate.curve().size(), ms.size());
  EXPECT_EQ(rate.curve().at(4), 250);
  EXPECT_EQ(rate.curve().at(1000), 1);
  EXPECT_FALSE(std::isfinite(rate.curve().at(7)));
  ms.cut_after(500);
  ms.append(501, 2);
  rate.update(ms);
  EXPECT_EQ(rate.curve().size(), 501u);
  EXPECT_EQ(rate.curve().last(), 500);
  // Only computed where it is looked at.
  Stage stage({3840, 2160});
  stage.begin_run(Phase::running, 300);
  stage.frames();
  EXPECT_TRUE(stage.ui.plots.rates.empty());
  stage.ui.metrics.toggled = {"speed"};
  stage.frames();
  ASSERT_NE(card_of("speed"), nullptr);
  const Curve& step_ms = stage.ui.shown().metric("step_ms");
  ASSERT_EQ(stage.ui.plots.rates.count(&step_ms), 1u);
  EXPECT_EQ(stage.ui.plots.rates.at(&step_ms).curve().last(), 1000 / step_ms.last());
}

TEST(MetricsGrid, IsKeptBetweenTwoStarts) {
  const test::Folder folder;
  const std::string file = folder.file("studio.json");
  {
    Stage stage;
    stage.frames(1);
    stage.ui.metrics = {XAxis::epoch, "entries", 4, {"loss"}, {"size"}, "", {{"loss", {2, 3}}}};
    stage.ui.plots.smoothing_kind = Smoothing::gauss;
    stage.ui.plots.looks["size"].log_scale = true;
    stage.ui.plots.looks["loss"].outliers = false;
    stage.ui.run_table.saved_filters = {"tag:good"};
    stage.ui.run_table.sort = "accuracy";
    save_preferences(stage.ui, file);
  }
  Stage stage;
  load_preferences(stage.ui, file);
  EXPECT_EQ(stage.ui.metrics.axis, XAxis::epoch);
  EXPECT_EQ(stage.ui.metrics.over, "entries");
  EXPECT_EQ(stage.ui.metrics.columns, 4);
  EXPECT_EQ(stage.ui.metrics.toggled, (std::set<std::string>{"loss"}));
  EXPECT_EQ(stage.ui.metrics.pinned, (std::set<std::string>{"size"}));
  EXPECT_EQ(stage.ui.metrics.cells, (std::map<std::string, PlotCells>{{"loss", {2, 3}}}));
  EXPECT_EQ(stage.ui.plots.smoothing_kind, Smoothing::gauss);
  EXPECT_EQ(stage.ui.plots.looks["size"].log_scale, std::optional<bool>(true));
  EXPECT_EQ(stage.ui.plots.looks["size"].outliers, std::nullopt) << "as all plots";
  EXPECT_EQ(stage.ui.plots.looks["loss"].outliers, std::optional<bool>(false));
  EXPECT_EQ(stage.ui.run_table.saved_filters, (std::vector<std::string>{"tag:good"}));
  EXPECT_EQ(stage.ui.run_table.sort, "accuracy");
}

// What is exported is over the axis that is shown.
TEST(Figures, AreOverTheChosenAxis) {
  Stage stage;
  stage.begin_run(Phase::running, 300);
  stage.frames();
  stage.ui.metrics.axis = XAxis::samples;
  const std::vector<Chart> charts = drawn(metrics_charts(stage.ui));
  const auto loss = std::find_if(charts.begin(), charts.end(), [](const Chart& chart) { return chart.name == "loss"; });
  ASSERT_NE(loss, charts.end());
  const std::string csv = loss->csv();
  EXPECT_EQ(csv.rfind("sample,loss,", 0), 0u) << csv.substr(0, 60);
  EXPECT_NE(csv.find("\n3200,"), std::string::npos) << "step 100 of batches of 32";
}

TEST(Diverged, TheWaysOnAreOffered) {
  const test::Folder folder;
  Stage stage;
  stage.begin_run(Phase::diverged, 700);
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  roll_back_shown(stage.ui);
  EXPECT_EQ(stage.ui.load_request, 0u) << "a run that is not stored has no way back";
  stage.ui.store = std::make_unique<StoreClient>(folder.store(), [] {});
  fork_shown_slower(stage.ui);
  EXPECT_EQ(stage.ui.load_for, LoadFor::fork);
  EXPECT_EQ(stage.ui.resume_with.at_step, 600);
  const TrainConfig& train = stage.ui.shown().config.train;
  RunConfig slower = stage.ui.shown().config;
  set_config(slower, stage.ui.resume_with.sets);
  EXPECT_DOUBLE_EQ(slower.train.lr_core, train.lr_core / 2);
  EXPECT_DOUBLE_EQ(slower.train.lr_rank, train.lr_rank / 2);
  EXPECT_DOUBLE_EQ(slower.train.lr, train.lr / 2);
  roll_back_shown(stage.ui);
  EXPECT_EQ(stage.ui.load_for, LoadFor::resume);
  EXPECT_EQ(stage.ui.resume_with.at_step, 600);
  EXPECT_TRUE(stage.ui.resume_with.sets.empty());
}

// A plot of its own, and what stands beside its y axis.
std::vector<std::string> labels_of(Stage& stage, double low, double high, float height, bool log_scale = true) {
  Curve curve;
  for (int i = 0; i <= 100; ++i) curve.append(i, low * std::pow(high / low, i / 100.0));
  PlotView view;
  view.smoothing = 0;
  view.log_scale = log_scale;
  PlotTile tile{.id = "one", .title = "one", .lines = {{&curve, "one", IM_COL32_WHITE}}, .can_log = true};
  std::vector<std::string> labels;
  stage.extra = [&] {
    ImGui::SetNextWindowSize({500, height + 60});
    ImGui::Begin("a window");
    follow_head(view, 100);
    plot_lines(view, tile, {}, {400, height});
    labels.clear();
    const ImPlotPlot* plot = ImPlot::GetPlot("one");
    for (int i = 0; i < plot->Axes[ImAxis_Y1].Ticker.TickCount(); ++i) {
      const ImPlotTick& tick = plot->Axes[ImAxis_Y1].Ticker.Ticks[i];
      if (tick.ShowLabel && tick.PlotPos >= low && tick.PlotPos <= high) labels.emplace_back(plot->Axes[ImAxis_Y1].Ticker.GetText(i));
    }
    ImGui::End();
  };
  stage.frames(3);
  stage.extra = nullptr;
  return labels;
}

TEST(LogAxes, AreLabelledAsAllAxesAre) {
  Stage stage;
  using Labels = std::vector<std::string>;
  EXPECT_EQ(labels_of(stage, 0.2, 20, 300), (Labels{"0.2", "0.5", "1", "2", "5", "10", "20"}));
  EXPECT_EQ(labels_of(stage, 1000, 1e6, 300), (Labels{"1,000", "10,000", "100,000", "1M"})) << "with commas";
  const Labels within = labels_of(stage, 0.31, 0.88, 300);
  EXPECT_GE(within.size(), 3u) << "a range without a power of ten has labels too";
  EXPECT_LE(labels_of(stage, 1e-8, 1e8, 80).size(), 4u) << "as many as there is room for";
}

// The step between two labels may be longer than the axis.
TEST(Axes, ALowPlotHasFewLabels) {
  Stage stage;
  for (const auto& [low, high] : {std::pair(0.12, 0.93), {0.31, 0.38}, {1.1, 1.9}, {3.0, 8.0}}) {
    const size_t labels = labels_of(stage, low, high, 5 * Stage::line(), false).size();
    EXPECT_GE(labels, 1u) << low;
    EXPECT_LE(labels, 2u) << low;
  }
}

TEST(MetricsAxes, AMetricCanBeDrawnOverAnother) {
  for (const ImVec2 size : {ImVec2(960, 600), ImVec2(1920, 1080)}) {
    Stage stage(size);
    stage.begin_run(Phase::running, 400);
    stage.ui.metrics.over = "entries";
    stage.frames();
    EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
    stage.ui.plots.smoothing = 0;
    const std::vector<Chart> charts = drawn(metrics_charts(stage.ui));
    const auto loss = std::find_if(charts.begin(), charts.end(), [](const Chart& chart) { return chart.name == "loss"; });
    ASSERT_NE(loss, charts.end());
    const std::string csv = loss->csv();
    EXPECT_EQ(csv.find("step,entries,loss\n1,999900,"), 0u) << csv.substr(0, 80);
    EXPECT_NE(csv.find("\n400,960000,"), std::string::npos);
    // A run that has no such metric is drawn over its steps.
    stage.ui.metrics.over = "what no run has";
    stage.frames();
    EXPECT_EQ(drawn(metrics_charts(stage.ui)).at(0).csv().find("step,loss"), 0u);
  }
}

TEST(MetricsAxes, WhatIsDrawnOverAMetricCanBeZoomed) {
  Stage stage;
  stage.begin_run(Phase::running, 400);
  stage.ui.metrics.over = "entries";
  stage.frames();
  const PlotLook::Zoom& zoom = stage.ui.plots.looks["loss"].zoom;
  const double steps = stage.ui.plots.x_high;
  EXPECT_EQ(zoom.over, "") << "it fits by itself";
  ImGuiIO& io = ImGui::GetIO();
  const ImVec2 at = middle_of("loss");
  io.AddMousePosEvent(at.x, at.y);
  stage.frames(2);
  io.AddMouseWheelEvent(0, 1);
  stage.frames(3);
  EXPECT_EQ(zoom.over, "entries");
  const double once = zoom.x_high - zoom.x_low;
  EXPECT_LT(once, 1.12 * 39'900) << "all of it, and some room at both ends";
  io.AddMouseWheelEvent(0, 1);
  stage.frames(3);
  const double width = zoom.x_high - zoom.x_low, left = zoom.x_low;
  EXPECT_LT(width, 0.98 * once);
  EXPECT_EQ(stage.ui.plots.x_high, steps) << "the other plots stay as they are";
  EXPECT_EQ(stage.ui.plots.looks["step_ms"].zoom.over, "");
  // It moves with the mouse.
  io.AddMouseButtonEvent(0, true);
  stage.frames(1);
  for (int i = 1; i <= 4; ++i) {
    io.AddMousePosEvent(at.x - 10 * static_cast<float>(i), at.y);
    stage.frames(1);
  }
  io.AddMouseButtonEvent(0, false);
  stage.frames(2);
  EXPECT_GT(zoom.x_low, left);
  EXPECT_NEAR(zoom.x_high - zoom.x_low, width, 1e-6 * width);
  // A double click shows all of it.
  for (int i = 0; i < 4; ++i) {
    io.AddMouseButtonEvent(0, i % 2 == 0);
    stage.frames(1);
  }
  stage.frames(2);
  EXPECT_EQ(zoom.over, "");
}

}  // namespace
}  // namespace comera::studio
