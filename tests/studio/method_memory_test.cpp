// The memory of all methods in the form of a new run: every recipe has a row, its bar is its forecast, and a click chooses it.
#include "app/studio/form/method_memory.h"

#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "app/format.h"
#include "app/studio/form/forecast_chart.h"
#include "app/studio/form/new_run.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

class MethodMemoryView : public Clicked {
 protected:
  MethodMemory& methods() { return ui().form.methods; }
  void open(const std::string& preset) {
    open_form(ui(), preset);
    ASSERT_TRUE(stage_.until([&] { return ui().form.source == preset && ui().form.ready && !ui().form.looking; }));
    click("choice:Memory of all methods");
    ASSERT_TRUE(methods().shown);
    settle();
  }
  void settle() {
    ASSERT_TRUE(stage_.until([&] { return !ui().form.looking && methods().done(); }));
    for (int i = 0; i < 4; ++i) frame();
  }
  template <class Change>
  void change(const std::string& path, Change change) {
    change(ui().form.config);
    form_changed(ui(), path);
    settle();
  }
  // The item of exactly this name, since an id may be the beginning of another one.
  const NamedItem* exact(const std::string& name) const {
    const auto found = std::find_if(items_.begin(), items_.end(), [&](const NamedItem& item) { return item.name == name; });
    return found == items_.end() ? nullptr : &*found;
  }
  void choose(const std::string& id) {
    const NamedItem* row = exact("method:" + id);
    ASSERT_TRUE(row) << id;
    ImGui::GetIO().AddMousePosEvent((row->low.x + row->high.x) / 2, (row->low.y + row->high.y) / 2);
    frame();
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, down);
      frame();
    }
    settle();
  }
};

TEST_F(MethodMemoryView, EveryMethodHasARowWhoseBarIsItsForecast) {
  stage_.resize({1600, 2400});
  open("demo");
  change("train.batch", [](RunConfig& c) { c.train.batch = 40; });
  double full = 0, longest = 0;
  std::map<std::string, double> peaks;
  for (const NamedMethod& name : named_methods()) {
    const Forecast forecast = make_forecast(with_method(ui().form.config, name.id));
    const auto row = std::find_if(methods().rows.begin(), methods().rows.end(), [&](const auto& one) { return one.plan.id == name.id; });
    ASSERT_NE(row, methods().rows.end()) << name.id;
    ASSERT_TRUE(row->plan.forecast) << name.id;
    EXPECT_EQ(row->plan.forecast->memory.bytes, forecast.memory.bytes) << name.id;
    peaks[name.id] = static_cast<double>(forecast.memory.total());
    full = std::max(full, peaks[name.id]);
  }
  for (const auto& [id, peak] : peaks) {
    const NamedItem* bar = exact("bar:" + id);
    ASSERT_TRUE(bar) << id;
    if (peak == full) longest = bar->high.x - bar->low.x;
  }
  ASSERT_GT(longest, 10 * Stage::line());
  for (const auto& [id, peak] : peaks) {
    const NamedItem* bar = exact("bar:" + id);
    EXPECT_NEAR(bar->high.x - bar->low.x, longest * peak / full, 1.5) << id;
  }
  EXPECT_TRUE(find("says:All fit: "));
}

TEST_F(MethodMemoryView, RowsAreSortedByPeakAndRefusedOnesAreLastWithTheReason) {
  stage_.resize({1600, 2400});
  open("demo");
  change("train.clip_norm", [](RunConfig& c) { c.train.clip_norm = 1; });
  float last = 0;
  int64_t least = 0;
  for (const MethodMemory::Row* row : methods().by_peak()) {
    const int64_t peak = row->plan.forecast ? row->plan.forecast->memory.total() : std::numeric_limits<int64_t>::max();
    EXPECT_GE(peak, least) << row->plan.id;
    least = peak;
    const NamedItem* item = exact("method:" + row->plan.id);
    ASSERT_TRUE(item) << row->plan.id;
    EXPECT_GT(item->low.y, last) << row->plan.id;
    last = item->low.y;
  }
  std::vector<MethodPlan> plans = method_plans(ui().form.config);
  std::stable_sort(plans.begin(), plans.end(), takes_less);
  ASSERT_EQ(plans.size(), methods().rows.size());
  for (size_t i = 0; i < plans.size(); ++i) EXPECT_EQ(methods().by_peak()[i]->plan.id, plans[i].id);
  EXPECT_FALSE(plans.back().refused.empty());
  EXPECT_EQ(methods().by_peak().back()->plan.refused, plans.back().refused);
  EXPECT_FALSE(exact("bar:adalomo"));
}

TEST_F(MethodMemoryView, AClickChoosesTheMethod) {
  stage_.resize({1600, 2400});
  open("demo");
  EXPECT_EQ(methods().own, "comera");
  const RunConfig before = ui().form.config;
  const uint64_t asked = methods().planner->latest()->number;
  choose("galore+adam8bit");
  EXPECT_EQ(config_to_json(ui().form.config), config_to_json(with_method(before, "galore+adam8bit")));
  EXPECT_TRUE(ui().form.is_changed("method.optimizer"));
  EXPECT_TRUE(ui().form.is_changed("method.galore.rule"));
  settle();
  EXPECT_EQ(methods().own, "galore+adam8bit");
  EXPECT_EQ(methods().planner->latest()->number, asked) << "the rows are about every method anyway";
  ASSERT_TRUE(ui().form.forecast);
  EXPECT_EQ(ui().form.forecast->memory.bytes, make_forecast(ui().form.config).memory.bytes);
  // A refused one can be chosen, too: the form then says what is wrong.
  change("train.clip_norm", [](RunConfig& c) { c.train.clip_norm = 1; });
  choose("adalomo");
  EXPECT_EQ(ui().form.config.method.optimizer, "adalomo");
  ASSERT_FALSE(ui().form.problems.empty());
  EXPECT_EQ(ui().form.problems.front().path, "method.update");
  settle();
  EXPECT_TRUE(exact("method:adamw")) << "others are still planned";
  choose("comera");
  change("train.clip_norm", [&](RunConfig& c) { c.train.clip_norm = before.train.clip_norm; });
  EXPECT_EQ(config_to_json(ui().form.config), config_to_json(before)) << "and back";
}

// Names change no plan; what a setting of one method changes is planned again.
TEST_F(MethodMemoryView, OnlyTheNewestSettingsCount) {
  open("demo");
  const uint64_t asked = methods().planner->latest()->number;
  change("name", [](RunConfig& c) { c.name = "of my own"; });
  EXPECT_EQ(methods().planner->latest()->number, asked);
  for (const int64_t batch : {1, 300, 2, 64}) {
    ui().form.config.train.batch = batch;
    form_changed(ui(), "train.batch");
    frame();
    EXPECT_FALSE(methods().done());
  }
  settle();
  for (const MethodMemory::Row& row : methods().rows)
    EXPECT_EQ(row.plan.forecast->memory.bytes, make_forecast(with_method(ui().form.config, row.plan.id)).memory.bytes) << row.plan.id;
}

// What takes more than is free is seen without colours: a line, and a sign behind the peak.
TEST_F(MethodMemoryView, FreeMemoryIsALine) {
  stage_.resize({1600, 2400});
  open("demo");
  EXPECT_FALSE(exact("free-memory")) << "all fit";
  const int64_t own = ui().form.forecast->memory.total();
  for (MethodMemory::Row& row : methods().rows) row.plan.forecast->available = own;
  ASSERT_TRUE(sees("says:" + mebibytes(static_cast<double>(own)) + " are free"));
  EXPECT_FALSE(find("says:All fit"));
  ASSERT_TRUE(exact("bar:adamw") && exact("bar:comera") && exact("free-memory"));
  const NamedItem* line = exact("free-memory");
  EXPECT_NEAR((line->low.x + line->high.x) / 2, exact("bar:comera")->high.x, 1.5) << "the end of a bar that just fits";
  EXPECT_LT(line->high.x, exact("bar:adamw")->high.x);
}

// In the smallest window with the largest text the view can be opened, and every row can be scrolled to.
TEST_F(MethodMemoryView, IsUsableInTheSmallestWindow) {
  stage_.resize({960, 600}, 3);
  open_form(ui(), "demo");
  ASSERT_TRUE(stage_.until([&] { return ui().form.ready && !ui().form.looking; }));
  for (int i = 0; i < 4; ++i) frame();
  ImGuiWindow* page = nullptr;
  for (ImGuiWindow* window : ImGui::GetCurrentContext()->Windows)
    if (const std::string name = window->Name; window->WasActive && name.find("/settings_") != std::string::npos &&
                                               name.find('/', name.find("/settings_") + 1) == std::string::npos)
      page = window;
  ASSERT_NE(page, nullptr);
  const auto reach = [&](const std::string& name) {
    const auto whole = [&] { return exact(name) && exact(name)->high.y - exact(name)->low.y > 0.9f * Stage::line(); };
    for (float y = 0; y <= page->ScrollMax.y && !whole(); y += Stage::line()) {
      ImGui::SetScrollY(page, y);
      frame();
      frame();
    }
    ASSERT_TRUE(whole()) << name << " cannot be reached";
    EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{}) << name;
  };
  reach("choice:Memory of all methods");
  click("choice:Memory of all methods");
  settle();
  for (const NamedMethod& method : named_methods()) reach("method:" + method.id);
  reach("method:galore");
  choose("galore");
  EXPECT_EQ(ui().form.config.method.optimizer, "galore");
}

TEST_F(MethodMemoryView, IsExported) {
  open("demo");
  const std::vector<ListedChart> listed = forecast_charts(ui());
  ASSERT_FALSE(listed.empty());
  EXPECT_EQ(listed[0].name, "forecast-methods");
  const Chart chart = listed[0].draw();
  const std::string table = chart.csv(), svg = to_svg(chart.drawing);
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), static_cast<std::ptrdiff_t>(1 + named_methods().size())) << table;
  for (const MethodMemory::Row& row : methods().rows) {
    const int64_t peak = row.plan.forecast->memory.total();
    EXPECT_NE(table.find("," + std::to_string(peak) + ","), std::string::npos) << row.plan.id;
    EXPECT_NE(svg.find(mebibytes(static_cast<double>(peak))), std::string::npos) << row.plan.id;
  }
}

}  // namespace
}  // namespace comera::studio
