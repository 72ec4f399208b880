// Charts into files: what is written is what is shown, SVG is XML, and a folder that cannot be written is told of.
#include "app/studio/parts/export.h"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <sstream>

#include "app/format.h"
#include "app/studio/actions.h"
#include "app/studio/form/forecast_chart.h"
#include "app/studio/panels.h"
#include "app/studio/parts/named_items.h"
#include "app/studio/runs/run_list_chart.h"
#include "core/base/csv.h"
#include "tests/store/support.h"
#include "tests/studio/stage.h"

namespace comera::studio {
namespace {

namespace fs = std::filesystem;
using test::Folder;
using test::wait_for;

// "" when the text is one well-formed element with what may stand before it; else what is wrong.
std::string xml_problem(const std::string& text) {
  std::vector<std::string> open;
  bool root = false;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '&') {
      const size_t end = text.find(';', i);
      if (end == std::string::npos || end - i > 6) return "a bare & at " + std::to_string(i);
      i = end + 1;
      continue;
    }
    if (text[i] == '>') return "a bare > at " + std::to_string(i);
    if (text[i] != '<') {
      if (open.empty() && !std::isspace(static_cast<unsigned char>(text[i]))) return "text outside of the root";
      ++i;
      continue;
    }
    const size_t end = text.find('>', i);
    if (end == std::string::npos) return "a tag that does not end";
    std::string tag = text.substr(i + 1, end - i - 1);
    i = end + 1;
    if (tag.starts_with("?xml")) continue;
    if (tag.starts_with("/")) {
      if (open.empty() || open.back() != tag.substr(1)) return "</" + tag.substr(1) + "> closes what is not open";
      open.pop_back();
      continue;
    }
    if (open.empty() && root) return "two roots";
    root = true;
    const bool single = tag.ends_with("/");
    if (single) tag.pop_back();
    std::istringstream words(tag);
    std::string name;
    words >> name;
    std::string rest = tag.substr(name.size());
    for (size_t at = 0; (at = rest.find_first_not_of(" \n", at)) != std::string::npos;) {
      const size_t equals = rest.find("=\"", at), close = equals == std::string::npos ? equals : rest.find('"', equals + 2);
      if (close == std::string::npos || rest.substr(at, equals - at).find_first_of(" \"<") != std::string::npos)
        return "attributes of " + name;
      at = close + 1;
    }
    if (!single) open.push_back(name);
  }
  return open.empty() && root ? "" : "not closed";
}

std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::istringstream in(text);
  CsvReader reader(in);
  std::vector<std::vector<std::string>> rows;
  for (std::vector<std::string> row; reader.next(row);) rows.push_back(row);
  return rows;
}

TEST(Svg, TheCheckOfItFindsFaults) {
  EXPECT_EQ(xml_problem("<?xml version=\"1.0\"?>\n<a b=\"1\"><c/>x &amp; y</a>\n"), "");
  for (const char* bad : {"<a>", "<a></b>", "<a b=1/>", "<a>x & y</a>", "<a/><b/>", "text", "<a b=\"1/>", ""})
    EXPECT_NE(xml_problem(bad), "") << bad;
}

TEST(Svg, IsWellFormedWhateverIsInIt) {
  Drawing drawing;
  drawing.size = {100, 50};
  drawing.title = "a < b & \"c\" \x01";
  drawing.clips.push_back({0, 0, 10, 10});
  drawing.line({{0, 0}, {1, std::numeric_limits<float>::quiet_NaN()}}, IM_COL32(255, 0, 0, 128), 1, 0, 4);
  drawing.line({{0, 0}}, IM_COL32_WHITE, 1);  // one point is no line
  drawing.polygon({{0, 0}, {1, 1}, {0, 1}}, IM_COL32_WHITE, 0);
  drawing.rect({5, 5}, {1, 1}, IM_COL32_WHITE, 2, 1);
  drawing.circle({5, 5}, 2, IM_COL32_WHITE);
  drawing.text({1, 1}, 12, IM_COL32_WHITE, "<script> & \xc3\x97", Anchor::right, true);
  const std::string svg = to_svg(drawing);
  EXPECT_EQ(xml_problem(svg), "") << svg;
  EXPECT_NE(svg.find("stroke-opacity=\"0.5\""), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt; &amp; \xc3\x97"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find('\x01'), std::string::npos);
  EXPECT_EQ(drawing.shapes.size(), 5u);
}

TEST(Figures, NumbersAreWrittenInOneWay) {
  EXPECT_EQ(mebibytes(23440.0 * (1 << 20)), "23,440 MiB");
  EXPECT_EQ(mebibytes(0.40916 * (1 << 20)), "0.4092 MiB");
  EXPECT_EQ(mebibytes(5.684 * (1 << 20)), "5.684 MiB");
  EXPECT_EQ(mebibytes(999.97 * (1 << 20)), "1,000 MiB");
  EXPECT_EQ(mebibytes(0), "0 MiB");
  EXPECT_EQ(megabytes(5.684 * (1 << 20)), "5.960 MB");
  for (const auto& [value, text] : {std::pair(0.0, "0"),
                                    {0.05, "0.05"},
                                    {2000.0, "2,000"},
                                    {10'000.0, "10,000"},
                                    {12'500.0, "12,500"},
                                    {-36'000.0, "-36,000"},
                                    {1.5e6, "1.5M"},
                                    {2e-5, "2e-05"}})
    EXPECT_EQ(axis_number(value), text);
  EXPECT_EQ(significant(0.83124), "0.8312");
  EXPECT_EQ(significant(12'345.6), "12,346") << "no power of ten where people count";
  EXPECT_EQ(significant(9999.7), "10,000");
  EXPECT_EQ(significant(1234.56, 6), "1,234.56");
}

TEST(Numbers, ASizeWithoutEntriesIsAllPruned) {
  ModelSize size;
  size.entries = 43'264;
  size.compression = 34.6;
  EXPECT_EQ(smaller_than_dense(size), "34.6x smaller than dense");
  size.entries = 0;
  EXPECT_EQ(smaller_than_dense(size), "all pruned");
}

TEST(Figures, TicksAreRoundAndInside) {
  EXPECT_EQ(ticks(0, 10, 5, false), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(ticks(1, 1000, 6, true), (std::vector<double>{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}));
  EXPECT_TRUE(ticks(1, 1, 5, false).empty());
  EXPECT_TRUE(ticks(0, 10, 5, true).empty());
  for (const auto& [low, high] : {std::pair{-3.7, 12.2}, {1e-9, 3e-9}, {36'000.0, 36'001.0}})
    for (const double tick : ticks(low, high, 6, false)) {
      EXPECT_GE(tick, low - 1e-12 * std::abs(low));
      EXPECT_LE(tick, high * (1 + 1e-12));
    }
}

TEST(Figures, TheTableHasEveryPointOfTheVisibleSteps) {
  Figure figure{.title = "loss, \"raw\"", .unit = "nats", .x_low = 2, .x_high = 4};
  figure.lines.push_back({.label = "a", .x = {1, 2, 3, 4, 5}, .y = {0.1, 1.0 / 3, NAN, INFINITY, 9}});
  figure.lines.push_back({.label = "b, c", .x = {2, 3.5}, .y = {-1e-300, 7}});
  figure.lines.push_back({.label = "target", .x = {1, 5}, .y = {2, 2}, .no_data = true});
  const auto rows = read_csv(figure_csv(figure));
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"step", "a (nats)", "b, c (nats)"}));
  EXPECT_EQ(rows[1][0], "2");
  EXPECT_EQ(std::stod(rows[1][1]), 1.0 / 3) << "a digit was lost";
  EXPECT_EQ(std::strtod(rows[1][2].c_str(), nullptr), -1e-300);
  EXPECT_EQ(rows[2], (std::vector<std::string>{"3", "nan", ""}));
  EXPECT_EQ(rows[3], (std::vector<std::string>{"3.5", "", "7"}));
  EXPECT_EQ(rows[4], (std::vector<std::string>{"4", "inf", ""}));
}

TEST(Figures, ABandIsItsTwoEdgesAndAnAreaItsHeight) {
  Figure figure{.title = "loss", .unit = "nats"};
  figure.lines.push_back({.label = "seeds", .x = {1, 2}, .y = {5, 6}, .base = {2, 4}, .band = true});
  figure.lines.push_back({.label = "area", .x = {1, 2}, .y = {5, 6}, .base = {2, 4}});
  const auto rows = read_csv(figure_csv(figure));
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"step", "seeds: from (nats)", "seeds: to (nats)", "area (nats)"}));
  EXPECT_EQ(rows[1], (std::vector<std::string>{"1", "2", "5", "3"}));
  EXPECT_EQ(rows[2], (std::vector<std::string>{"2", "4", "6", "2"}));
}

TEST(Figures, NamesOfManyLinesTakeSeveralRows) {
  Figure figure{.title = "loss"};
  for (int i = 0; i < 9; ++i)
    figure.lines.push_back({.label = "a line with a name of some length " + std::to_string(i), .x = {1, 2}, .y = {1.0 * i, 2.0 * i}});
  figure.lines.push_back({.label = std::string(300, 'x'), .x = {1, 2}, .y = {3, 4}});
  const Drawing drawing = draw_figure(figure);
  const Box plane = drawing.clips.at(0);
  std::set<float> rows;
  size_t names = 0;
  for (const DrawnShape& shape : drawing.shapes) {
    if (shape.kind != DrawnShape::text || (!shape.words.starts_with("a line") && !shape.words.starts_with("xxx"))) continue;
    ++names;
    rows.insert(shape.points[0].y);
    EXPECT_LT(shape.points[0].y + shape.width / 2, plane.y0) << "above the plot";
    EXPECT_LE(shape.points[0].x + shape.width * 0.56f * static_cast<float>(shape.words.size()), drawing.size.x);
  }
  EXPECT_EQ(names, 10u);
  EXPECT_GE(rows.size(), 4u);
  EXPECT_GT(plane.y1 - plane.y0, 200);
}

TEST(Figures, NoSpikeIsLostInADrawingOfManyPoints) {
  Stage stage;
  Figure figure{.title = "noise"};
  FigureLine line{.label = "a", .color = IM_COL32(1, 2, 3, 255)};
  for (int i = 0; i < 200'000; ++i) {
    line.x.push_back(i);
    line.y.push_back(i == 123'456 ? 50 : i == 77'777 ? -50 : std::sin(i));
  }
  figure.lines.push_back(line);
  const Drawing drawing = draw_figure(figure, {900, 440});
  size_t points = 0;
  float top = 1e9f, bottom = -1e9f;
  for (const DrawnShape& shape : drawing.shapes)
    if (shape.color == line.color && shape.kind == DrawnShape::line) {
      points += shape.points.size();
      for (const Point point : shape.points) {
        top = std::min(top, point.y);
        bottom = std::max(bottom, point.y);
      }
    }
  EXPECT_LT(points, 6000u);
  EXPECT_GT(points, 1000u);
  const Box plane = drawing.clips.at(0);
  EXPECT_LT(top, plane.y0 + (plane.y1 - plane.y0) * 0.1f);
  EXPECT_GT(bottom, plane.y1 - (plane.y1 - plane.y0) * 0.1f);
}

TEST(Figures, LinesAreAsWideAsTheWindowHasThem) {
  Stage stage;
  stage.begin_run(Phase::running);
  const auto widest = [&] {
    stage.frames(1);
    float width = 0;
    for (const Chart& chart : drawn(metrics_charts(stage.ui)))
      for (const DrawnShape& shape : chart.drawing.shapes)
        if (shape.kind == DrawnShape::line && shape.points.size() > 2 && shape.dash == 0) width = std::max(width, shape.width);
    return width;
  };
  const float usual = widest();
  ASSERT_GT(usual, 0);
  stage.ui.settings.line_width = 2;
  EXPECT_FLOAT_EQ(widest(), 2 * usual);
}

TEST(Figures, EmptyAndOddOnesAreDrawn) {
  Stage stage;
  Figure nothing{.title = "nothing"};
  Figure one{.title = "one"};
  one.lines.push_back({.label = "a", .x = {5}, .y = {3}});
  Figure bad = one;
  bad.lines[0].y = {NAN};
  Figure logarithmic = one;
  logarithmic.log_scale = true;
  logarithmic.lines[0] = {.label = "a", .x = {1, 2, 3}, .y = {-1, 0, 10}};
  Figure bars{.title = "bars"};
  bars.bars = {{"a", 0, 0, 0, 0}, {"b", 0, 0, 0, 0}};
  for (const Figure& figure : {nothing, one, bad, logarithmic, bars}) {
    const std::string svg = to_svg(draw_figure(figure, {900, 440}));
    EXPECT_EQ(xml_problem(svg), "") << figure.title;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << figure.title;
  }
}

TEST(Export, WhatIsWrittenEqualsTheRecords) {
  Folder folder;
  Stage stage;
  stage.begin_run(Phase::running, 900);
  stage.frames();
  stage.ui.plots.smoothing = 0.9f;
  stage.ui.exports.folder = folder.file("exports");
  open_export(stage.ui, "metrics");
  ASSERT_TRUE(stage.ui.exports.open);
  ASSERT_FALSE(stage.ui.exports.titles.empty());
  stage.frames();
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  stage.ui.exports.chart = 0;
  export_charts(stage.ui);
  stage.ui.exports.open = false;
  ASSERT_TRUE(wait_for([&] {
    stage.frames(1);
    return !stage.ui.exports.busy();
  }));
  ASSERT_EQ(stage.ui.toasts.size(), 1u);
  EXPECT_EQ(stage.ui.toasts[0].level, Level::good) << stage.ui.toasts[0].text;
  const std::string csv = folder.file("exports/r-test01-loss.csv"), svg = folder.file("exports/r-test01-loss.svg");
  EXPECT_EQ(xml_problem(test::read_text(svg)), "");
  const auto rows = read_csv(test::read_text(csv));
  const Curve& loss = stage.ui.live->view().metric("train_loss");
  ASSERT_EQ(rows.size(), loss.size() + 1);
  EXPECT_EQ(rows[0], (std::vector<std::string>{"step", "loss", "loss smoothed 0.9"}));
  for (size_t i = 0; i < loss.size(); ++i) {
    EXPECT_EQ(std::stod(rows[i + 1][0]), loss.x()[i]);
    EXPECT_EQ(std::stod(rows[i + 1][1]), loss.y()[i]);
  }
  // Again: nothing is written over.
  export_charts(stage.ui);
  ASSERT_TRUE(wait_for([&] {
    stage.frames(1);
    return !stage.ui.exports.busy();
  }));
  EXPECT_TRUE(fs::exists(folder.file("exports/r-test01-loss-2.csv")));
}

TEST(Export, TheChosenChartIsKeptForItsPanelAlone) {
  Stage stage;
  stage.begin_run(Phase::running, 900);
  stage.frames();
  Exports& e = stage.ui.exports;
  open_export(stage.ui, "metrics");
  e.chart = 1;
  open_export(stage.ui, "metrics");
  EXPECT_EQ(e.chart, 1);
  open_export(stage.ui, "ranks");
  EXPECT_EQ(e.chart, 0);
  open_export(stage.ui, "metrics");
  const std::string last = e.titles.back();
  open_export(stage.ui, "metrics", last);
  EXPECT_EQ(e.titles[static_cast<size_t>(e.chart)], last) << "the plot whose menu it was";
  open_export(stage.ui, "ranks");
  e.chart = static_cast<int>(e.titles.size());  // all
  open_export(stage.ui, "ranks");
  EXPECT_EQ(e.chart, static_cast<int>(e.titles.size()));
}

TEST(Export, EveryChartOfEveryPanelIsATableAndAPicture) {
  Stage stage;
  stage.begin_run(Phase::running, 900);
  stage.script->records.events.push_back(
      {0, 800, "profile", 0,
       R"({"steps": 20, "step_ms": {"median": 9, "p95": 11, "mean": 10}, "phases": [{"name": "data", "median": 1, "p95": 2, "mean": 1}, {"name": "forward", "median": 4, "p95": 5, "mean": 4}], "ops": [{"op": "gemm", "calls": 12, "ms": 3, "gflop": 0.5}]})"});
  stage.ui.selected_layer = "enc0.attn.q";
  stage.ui.tt.bond = 2;
  stage.say([](Snapshot& s) { s.inspected = {"enc0.attn.q", 2, s.step, {0.4, 0.3, 0.001}}; });
  stage.frames();
  std::set<std::string> names;
  for (const Panel& panel : panels()) {
    if (!panel.charts || !panel.of_a_run) continue;
    const std::vector<ListedChart> listed = panel.charts(stage.ui);
    const std::vector<Chart> charts = drawn(listed);
    EXPECT_FALSE(charts.empty()) << panel.id;
    for (size_t i = 0; i < charts.size(); ++i) {
      EXPECT_EQ(listed[i].name, charts[i].name);
      EXPECT_EQ(listed[i].title, charts[i].title);
    }
    for (const Chart& chart : charts) {
      EXPECT_TRUE(names.insert(chart.name).second) << chart.name << " is there twice";
      EXPECT_EQ(xml_problem(to_svg(chart.drawing)), "") << chart.name;
      EXPECT_GT(chart.drawing.shapes.size(), 3u) << chart.name;
      const auto rows = read_csv(chart.csv());
      ASSERT_GE(rows.size(), 2u) << chart.name;
      for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size()) << chart.name;
    }
  }
  for (const char* name :
       {"loss", "rank-map", "rank-history", "memory", "tensor-trains", "bond-history", "bond-entries", "step-times", "phases", "ops"})
    EXPECT_TRUE(names.contains(name)) << name;
}

// What the panel draws in its views, by the names that its charts are drawn under.
std::set<std::string> drawn_in(Stage& stage, const char* panel, const std::vector<std::function<void()>>& views) {
  std::set<std::string> names;
  std::vector<NamedItem> items;
  stage.ui.built_layout.clear();
  for (const auto& view : views) {
    view();
    stage.ui.front_panel = panel;
    stage.frames(4);
    collect_items(&items);
    stage.frames(1);
    collect_items(nullptr);
    for (const NamedItem& item : std::exchange(items, {}))
      if (item.name.starts_with("chart:")) names.insert(item.name.substr(6));
  }
  return names;
}

TEST(Export, WhatAPanelDrawsIsWhatItExports) {
  Stage stage({2560, 1440});
  stage.begin_run(Phase::running, 900);
  auto memory = std::make_shared<StepMemory>();
  memory->phases = {{"forward", {10, 40, 20}}, {"backward", {60, 30}}, {"update", {5}}};
  stage.say([&](Snapshot& s) { s.step_memory = memory; });
  UiState& ui = stage.ui;
  for (const char* closed : {"metrics", "controls", "log", "profile", "tt", "memory", "compare"}) ui.closed_panels[closed] = true;
  const std::set<std::string> ranks =
      drawn_in(stage, "ranks", {[&] { ui.ranks_view = RanksView::now; }, [&] { ui.ranks_view = RanksView::over_steps; }});
  ui.closed_panels["ranks"] = true;
  ui.closed_panels["memory"] = false;
  std::vector<std::function<void()>> views;
  for (int view = 0; view < 4; ++view) views.emplace_back([&ui, view] { ui.memory_view = view; });
  const std::set<std::string> of_memory = drawn_in(stage, "memory", views);
  for (const auto& [on_screen, charts] : {std::pair(ranks, ranks_charts(ui)), std::pair(of_memory, memory_charts(ui))}) {
    std::set<std::string> exported;
    for (const ListedChart& chart : charts) exported.insert(chart.name);
    EXPECT_EQ(on_screen, exported);
  }
  EXPECT_EQ(ranks, (std::set<std::string>{"rank-map", "rank-history", "size-by-module"}));
  EXPECT_EQ(of_memory, (std::set<std::string>{"memory", "memory-by-layer", "memory-in-step", "memory-now"}));
}

// Seconds of this thread's processor time.
double thread_seconds(const std::function<void()>& work) {
  const auto now = [] {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double begin = now();
  work();
  return now() - begin;
}

// Ctrl+E lists titles; only the charts that are written are drawn.
TEST(Export, ListsTitlesWithoutDrawing) {
  Folder folder;
  Stage stage;
  UiState& ui = stage.ui;
  ui.stored = std::make_shared<RunView>();
  ui.show_stored = true;
  ui.stored->snapshot = std::make_shared<const Snapshot>(a_snapshot(Phase::finished, 500'000));
  for (const char* name : {"train_loss", "train_accuracy", "entries", "lr_core"}) {
    Curve& curve = ui.stored->metrics[name];
    for (int i = 1; i <= 500'000; ++i) curve.append(i, std::sin(i));
  }
  ui.plots.smoothing = 0;
  ui.exports.folder = folder.path();
  ui.exports.svg = false;
  open_export(ui, "metrics");
  const size_t titles = ui.exports.titles.size();
  ASSERT_GE(titles, 4u);
  const double list = thread_seconds([&] { open_export(ui, "metrics"); });
  ui.exports.chart = static_cast<int>(titles);
  const double all = thread_seconds([&] { export_charts(ui); });
  ui.exports.chart = 0;
  const double one = thread_seconds([&] { export_charts(ui); });
  EXPECT_LT(list, 0.1 * all) << list << " s to list, " << all << " s to draw";
  EXPECT_LT(one, 0.6 * all) << one << " s for one of " << titles << ", " << all << " s for all";
  ui.exports.writer->give_up();
}

TEST(Export, TheTableOfTheDiagramAddsUpToTheModel) {
  Stage stage;
  stage.begin_run(Phase::running, 100);
  stage.frames();
  const auto rows = read_csv(drawn(tt_charts(stage.ui)).at(0).csv());
  ASSERT_EQ(rows.size(), 1 + 3 * 6u);
  EXPECT_EQ(rows[2], (std::vector<std::string>{"enc0.attn.q", "2", "30", "8", "", "12", "2880", "3840", "7200", "30", "14"}));
}

TEST(Export, TheListOfRunsAsItIsShown) {
  Stage stage;
  UiState& ui = stage.ui;
  EXPECT_TRUE(run_list_charts(ui).empty());
  auto list = std::make_shared<RunList>();
  for (int i = 0; i < 100; ++i) {
    RunRow row;
    row.id = "r-" + std::to_string(i);
    row.name = i == 7 ? "a \"name\", quoted" : "run " + std::to_string(i);
    row.created = i;
    row.summary.step = 10 * i;
    if (i % 2) row.summary.val_accuracy = 0.5 + 0.001 * i;
    list->rows.push_back(row);
  }
  ui.run_table.sort = "step";
  ui.run_table.descending = false;
  ui.run_table.filter = "step>=50";
  ui.run_table.toggled_columns = {"seed"};  // one more
  update(ui.run_table, list);
  const std::vector<Chart> charts = drawn(run_list_charts(ui));
  ASSERT_EQ(charts.size(), 1u);
  const auto rows = read_csv(charts[0].csv());
  ASSERT_EQ(rows.size(), 1 + 95u) << "all that the filter lets through";
  const auto column = [&](const char* id) { return static_cast<size_t>(std::find(rows[0].begin(), rows[0].end(), id) - rows[0].begin()); };
  ASSERT_LT(column("accuracy"), rows[0].size());
  ASSERT_LT(column("seed"), rows[0].size());
  EXPECT_EQ(column("notes"), rows[0].size()) << "no column of the list now";
  EXPECT_EQ(rows[1][column("step")], "50");
  EXPECT_EQ(rows[1][column("accuracy")], "0.505");
  EXPECT_EQ(rows[2][column("accuracy")], "") << "not known";
  EXPECT_EQ(rows[3][column("name")], "a \"name\", quoted");
  EXPECT_EQ(xml_problem(to_svg(charts[0].drawing)), "");
  EXPECT_NE(to_svg(charts[0].drawing).find("the first 60 of 95 runs, filtered by step&gt;=50"), std::string::npos);
}

TEST(Export, TheForecastOfTheForm) {
  Stage stage;
  UiState& ui = stage.ui;
  EXPECT_TRUE(forecast_charts(ui).empty()) << "nothing was read yet";
  open_form(ui, "demo");
  ASSERT_TRUE(stage.until([&] { return ui.form.ready && ui.form.all_looked(); }));
  const std::vector<Chart> charts = drawn(forecast_charts(ui));
  ASSERT_EQ(charts.size(), 2u);
  const Forecast forecast = make_forecast(load_config("demo", {}));
  const auto layers = read_csv(charts[1].csv());
  ASSERT_EQ(layers.size(), 1 + forecast.layers.size());
  EXPECT_EQ(layers[1][0], forecast.layers[0].name);
  EXPECT_EQ(layers[1][4], std::to_string(forecast.layers[0].entries));
  const std::string numbers = charts[0].csv();
  EXPECT_NE(numbers.find(thousands(static_cast<double>(forecast.trainable))), std::string::npos) << numbers;
  for (const Chart& chart : charts) EXPECT_EQ(xml_problem(to_svg(chart.drawing)), "") << chart.name;
  // Ctrl+E on that page offers them.
  export_front(ui);
  EXPECT_TRUE(ui.exports.open);
  EXPECT_EQ(ui.exports.panel, "form");
}

TEST(Export, AFolderThatCannotBeWrittenIsTold) {
  Folder folder;
  Stage stage;
  stage.begin_run(Phase::running);
  stage.frames();
  std::ofstream(folder.file("file")) << "x";
  stage.ui.exports.folder = folder.file("file/inside");  // a file is no folder
  open_export(stage.ui, "ranks");
  export_charts(stage.ui);
  stage.ui.exports.open = false;
  ASSERT_TRUE(wait_for([&] {
    stage.frames(1);
    return !stage.ui.exports.busy();
  }));
  ASSERT_FALSE(stage.ui.toasts.empty());
  EXPECT_EQ(stage.ui.toasts.back().level, Level::error);
  EXPECT_NE(stage.ui.toasts.back().text.find("Try: "), std::string::npos) << stage.ui.toasts.back().text;
}

TEST(Export, TheShortcutTakesThePanelInFrontAndAnEmptyWindowSaysWhy) {
  Stage stage;
  stage.ui.layout = "train";
  stage.frames();
  const auto press = [&] {
    ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, true);
    ImGui::GetIO().AddKeyEvent(ImGuiKey_E, true);
    stage.frames(2);
    ImGui::GetIO().AddKeyEvent(ImGuiKey_E, false);
    ImGui::GetIO().AddKeyEvent(ImGuiMod_Ctrl, false);
    stage.frames(2);
  };
  press();
  EXPECT_FALSE(stage.ui.exports.open);
  EXPECT_EQ(stage.ui.toasts.size(), 1u);
  stage.begin_run(Phase::running);
  stage.frames();
  stage.ui.front_panel = "memory";
  stage.frames();
  press();
  EXPECT_TRUE(stage.ui.exports.open);
  EXPECT_EQ(stage.ui.exports.panel, "memory");
  EXPECT_FALSE(stage.ui.exports.can_read_pixels) << "there is no window here";
  EXPECT_EQ(stage.overflowing(), std::vector<std::string>{});
  stage.ui.exports.folder = testing::TempDir();
  stage.press(ImGuiKey_Enter);  // takes the button
  EXPECT_FALSE(stage.ui.exports.open);
}

}  // namespace
}  // namespace comera::studio
