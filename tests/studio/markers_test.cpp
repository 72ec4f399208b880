// Shapes on lines: each differs from the others, a line has a few at places of its own, and compared runs are told apart by
// them in the window and in what is exported.
#include "app/figure/marker.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "app/studio/compare/tabs.h"
#include "app/studio/parts/plot_layers.h"
#include "tests/studio/compared_runs.h"

namespace comera::studio {
namespace {

std::vector<Marker> all_markers() {
  std::vector<Marker> out;
  for (int i = 1; i <= kMarkers; ++i) out.push_back(static_cast<Marker>(i));
  return out;
}

// Around its middle and of one size, in parts of 20, so that shapes can be compared wherever and however large they are.
using Form = std::set<std::pair<int, int>>;
Form form_of(const std::vector<Point>& points) {
  Box box{1e9f, 1e9f, -1e9f, -1e9f};
  for (const Point& point : points)
    box = {std::min(box.x0, point.x), std::min(box.y0, point.y), std::max(box.x1, point.x), std::max(box.y1, point.y)};
  const float size = std::max(box.x1 - box.x0, box.y1 - box.y0) / 20;
  Form form;
  for (const Point& point : points)
    form.insert({static_cast<int>(std::lround((point.x - box.x0) / size)), static_cast<int>(std::lround((point.y - box.y0) / size))});
  return form;
}

// The shapes of a drawing that are those of markers, and where they are.
struct Drawn {
  Marker marker;
  Color color;
  Point at;
};
std::vector<Drawn> markers_in(const Drawing& drawing, bool on_lines) {
  std::vector<Drawn> out;
  for (const DrawnShape& shape : drawing.shapes) {
    if ((shape.clip >= 0) != on_lines) continue;
    if (shape.kind == DrawnShape::circle && shape.radius > 3) out.push_back({Marker::circle, shape.color, shape.points[0]});
    if (shape.kind != DrawnShape::polygon) continue;
    for (const Marker marker : all_markers())
      if (shape.points.size() == outline_of(marker).size() && form_of(shape.points) == form_of(outline_of(marker)))
        out.push_back({marker, shape.color, shape.points[0]});
  }
  return out;
}

TEST(Markers, HaveShapesOfTheirOwnAndAreAboutAsLarge) {
  std::set<Form> forms;
  for (const Marker marker : all_markers()) {
    const std::vector<Point>& points = outline_of(marker);
    ASSERT_GE(points.size(), 3u);
    float twice = 0;  // the area; above 0 where the outline goes clockwise
    for (size_t i = 0; i < points.size(); ++i) {
      const Point &a = points[i], &b = points[(i + 1) % points.size()];
      twice += a.x * b.y - b.x * a.y;
      EXPECT_LE(std::hypot(a.x, a.y), 1.51f);
    }
    EXPECT_GT(twice / 2, 2.2f) << static_cast<int>(marker);
    EXPECT_LT(twice / 2, 3.7f) << static_cast<int>(marker);
    EXPECT_TRUE(forms.insert(form_of(points)).second) << static_cast<int>(marker) << " looks as another one";
  }
  EXPECT_TRUE(outline_of(Marker::none).empty());
}

struct Line {
  std::vector<double> x, y;
};
Line a_line(int points) {
  Line line;
  for (int i = 0; i < points; ++i) {
    line.x.push_back(i);
    line.y.push_back(std::sin(i));
  }
  return line;
}

TEST(Markers, AreFewAndEvenlyApartAtPlacesOfTheirOwn) {
  const Line line = a_line(10'001);
  for (const double high : {10'000.0, 7'000.0, 5'100.0, 333.0}) {
    std::set<size_t> taken;
    for (const Marker marker : all_markers()) {
      const std::vector<size_t> marked = marked_points(line.x, line.y, 0, high, marker);
      EXPECT_GE(marked.size(), 4u) << high;
      EXPECT_LE(marked.size(), 10u) << high;
      for (size_t i = 2; i < marked.size(); ++i)
        EXPECT_NEAR(static_cast<double>(marked[i] - marked[i - 1]), static_cast<double>(marked[1] - marked[0]), 1.01);
      for (const size_t i : marked) {
        EXPECT_LE(static_cast<double>(i), high);
        EXPECT_TRUE(taken.insert(i).second) << "two lines have one at " << i;
      }
    }
  }
  EXPECT_TRUE(marked_points(line.x, line.y, 0, 10'000, Marker::none).empty());
}

TEST(Markers, StayWhereTheyAreWhileARunGoesOnAndThePlotIsMoved) {
  const Line line = a_line(10'001);
  const auto marked = [&](double low, double high) { return marked_points(line.x, line.y, low, high, Marker::diamond); };
  const std::vector<size_t> before = marked(0, 5'000), after = marked(0, 5'400), moved = marked(1'000, 6'000);
  ASSERT_LE(before.size(), after.size());
  EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin()));
  for (const size_t i : moved)
    if (i < 5'000) {
      EXPECT_TRUE(std::find(before.begin(), before.end(), i) != before.end()) << i;
    }
}

TEST(Markers, AreOnPointsThatAreThere) {
  Line line = a_line(1'000);
  for (size_t i = 200; i < 1'000; ++i) line.y[i] = NAN;
  for (const Marker marker : all_markers()) {
    const std::vector<size_t> marked = marked_points(line.x, line.y, 0, 1'000, marker);
    ASSERT_FALSE(marked.empty());
    for (const size_t i : marked) EXPECT_TRUE(std::isfinite(line.y[i])) << i;
    // A run that ended early has one all the same, and one that has no value has none.
    EXPECT_EQ(marked_points({3, 4}, {1, 2}, 0, 1'000, marker), (std::vector<size_t>{1}));
    EXPECT_TRUE(marked_points({3, 4}, {NAN, NAN}, 0, 1'000, marker).empty());
    EXPECT_TRUE(marked_points({3, 4}, {1, 2}, 10, 1'000, marker).empty()) << "out of sight";
    EXPECT_TRUE(marked_points(std::vector<double>{}, {}, 0, 1'000, marker).empty());
    EXPECT_EQ(marked_points(700, marker).size(), 7u);
    EXPECT_FALSE(marked_points(1, marker).empty());
    EXPECT_TRUE(marked_points(0, marker).empty());
  }
}

class ComparedMarkers : public testing::Test {
 protected:
  ComparedMarkers() {
    for (int i = 0; i < 8; ++i) add_run(compare(), "r-" + std::to_string(i), 0.2 + 0.1 * i, settings(std::to_string(i).c_str()));
    stage_.ui.layout = "compare";
    stage_.frames();
  }
  Compare& compare() { return stage_.ui.compare; }
  Color color(const ComparedRun& run) { return theme().series[static_cast<size_t>(run.slot)]; }
  Chart chart(const std::string& name) {
    for (const Chart& one : drawn(curves_charts(compare())))
      if (one.name == "curves-" + name) return one;
    ADD_FAILURE() << name;
    return {};
  }

  Stage stage_{{1920, 1080}};
};

TEST_F(ComparedMarkers, ArePartOfEveryCurveThatIsExportedAndOfItsLegend) {
  for (const float smoothing : {0.0f, 0.9f}) {
    compare().plots.smoothing = smoothing;
    for (const char* name : {"train_loss", "val_accuracy", "entries"}) {
      const Drawing drawing = chart(name).drawing;
      std::map<Color, std::set<Marker>> shapes;
      std::map<Color, size_t> counts;
      for (const Drawn& drawn : markers_in(drawing, true)) {
        shapes[drawn.color].insert(drawn.marker);
        ++counts[drawn.color];
      }
      std::set<Marker> all, legend;
      for (const auto& run : compare().runs) {
        EXPECT_EQ(shapes[color(*run)], (std::set<Marker>{marker_of(run->slot)})) << name << " " << run->wanted;
        EXPECT_GE(counts[color(*run)], 4u) << name;
        EXPECT_LE(counts[color(*run)], 10u) << name;
        all.insert(marker_of(run->slot));
      }
      EXPECT_EQ(all.size(), 8u);
      for (const Drawn& drawn : markers_in(drawing, false)) legend.insert(drawn.marker);
      EXPECT_EQ(legend, all) << name;
      // And so in the file: of the shapes with corners there are as many polygons as were counted.
      const std::string svg = to_svg(drawing);
      size_t polygons = 0, with_corners = 0;
      for (size_t at = svg.find("<polygon"); at != std::string::npos; at = svg.find("<polygon", at + 1)) ++polygons;
      for (const bool on_lines : {true, false})
        for (const Drawn& drawn : markers_in(drawing, on_lines)) with_corners += drawn.marker != Marker::circle;
      EXPECT_EQ(polygons, with_corners) << name;
      EXPECT_GE(polygons, 8u * 4) << name;
    }
  }
}

TEST_F(ComparedMarkers, ArePartOfTheOtherTabs) {
  for (const auto& charts : {drawn(pareto_charts(compare())), drawn(parallel_charts(compare()))}) {
    ASSERT_EQ(charts.size(), 1u);
    std::map<Color, std::set<Marker>> shapes;
    for (const bool clipped : {true, false})
      for (const Drawn& drawn : markers_in(charts[0].drawing, clipped)) shapes[drawn.color].insert(drawn.marker);
    for (const auto& run : compare().runs)
      EXPECT_EQ(shapes[color(*run)], (std::set<Marker>{marker_of(run->slot)})) << charts[0].name << " " << run->wanted;
  }
}

TEST_F(ComparedMarkers, OverAnotherMetricTheyAreThereToo) {
  compare().over = "entries";
  stage_.frames();
  std::map<Color, std::set<Marker>> shapes;
  for (const Drawn& drawn : markers_in(chart("train_loss").drawing, true)) shapes[drawn.color].insert(drawn.marker);
  for (const auto& run : compare().runs) EXPECT_EQ(shapes[color(*run)], (std::set<Marker>{marker_of(run->slot)})) << run->wanted;
}

// Corners of the whole colour of each run in the plots of the window.
std::map<Color, int> corners() {
  std::map<Color, int> out;
  for (const ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (window->WasActive && std::string(window->Name).find("/grid_") != std::string::npos)
      for (const ImDrawVert& vertex : window->DrawList->VtxBuffer) ++out[vertex.col];
  return out;
}

TEST_F(ComparedMarkers, AreDrawnInTheWindowUnlessTheyAreSwitchedOff) {
  for (const bool dots : {false, true}) {
    compare().toggled_metrics = {"val_accuracy", "entries", "step_ms"};
    if (dots) compare().toggled_metrics = {"train_loss", "entries", "step_ms"};
    stage_.ui.settings.line_markers = true;
    stage_.frames();
    EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
    std::map<Color, int> with = corners();
    stage_.ui.settings.line_markers = false;
    stage_.frames();
    std::map<Color, int> without = corners();
    for (const auto& run : compare().runs) {
      const Color of = color(*run);
      // The six points of the accuracy have dots without them, of more corners than a square has.
      if (dots) {
        EXPECT_NE(with[of], without[of]) << run->wanted;
      } else {
        EXPECT_GE(with[of], without[of] + 4 * 3) << run->wanted;
      }
      for (const Drawn& drawn : markers_in(chart(dots ? "val_accuracy" : "train_loss").drawing, true)) EXPECT_NE(drawn.color, of);
    }
  }
}

TEST(MarkersOfTheWindow, AreDrawnAsThoseOfCharts) {
  Stage stage;
  std::map<Marker, Form> drawn;
  std::map<Marker, float> widths;
  stage.extra = [&] {
    ImDrawList* list = ImGui::GetForegroundDrawList();
    list->Flags &= ~ImDrawListFlags_AntiAliasedFill;  // its edge has corners of its own
    for (const Marker marker : all_markers()) {
      const int before = list->VtxBuffer.Size;
      draw_marker(list, marker, {200, 100}, 20, IM_COL32_WHITE);
      std::vector<Point> points;
      for (int i = before; i < list->VtxBuffer.Size; ++i) points.emplace_back(list->VtxBuffer[i].pos);
      ASSERT_GE(points.size(), 3u);
      drawn[marker] = form_of(points);
      float least = 1e9f, most = -1e9f;
      for (const Point& point : points) {
        least = std::min(least, point.x);
        most = std::max(most, point.x);
      }
      widths[marker] = most - least;
    }
  };
  stage.frames(1);
  ASSERT_EQ(drawn.size(), static_cast<size_t>(kMarkers));
  for (const Marker marker : all_markers()) {
    if (marker != Marker::circle) {
      EXPECT_EQ(drawn[marker], form_of(outline_of(marker))) << static_cast<int>(marker);
    }
    EXPECT_GT(widths[marker], 30);
    EXPECT_LT(widths[marker], 61);
  }
}

}  // namespace
}  // namespace comera::studio
