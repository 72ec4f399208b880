// A window with a store and the form of a small network, whose named items are clicked and whose runs are trained for real on request.
#pragma once
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "app/studio/actions.h"
#include "app/studio/parts/named_items.h"
#include "core/store/run_reader.h"
#include "tests/studio/stage.h"

namespace comera::studio {

class FormWindow : public StoreStage {
 protected:
  FormWindow() {
    ui().store = std::make_unique<StoreClient>(store_, [] {});
    ui().store_path = store_;
    collect_items(&items_);
    stage_->resize({1600, 2600});
  }
  ~FormWindow() override { collect_items(nullptr); }

  // The form with a small network of some steps.
  void open(int64_t steps) {
    open_form(ui(), "demo");
    EXPECT_TRUE(until([&] { return ui().form.ready && !ui().form.looking; }));
    RunConfig& config = ui().form.config;
    config.train.steps = steps;
    config.train.threads = 1;
    config.train.batch = 16;
    config.train.eval_every = 0;
    config.train.max_steps_per_s = 0;
    config.model.mlp.hidden = {96, 64};
    form_changed(ui(), "");
    settle();
  }
  void settle() {
    ASSERT_TRUE(until([&] { return ui().form.all_looked(); }));
    frame();
  }
  void frame() {
    for (int i = 0; i < 3; ++i) {
      items_.clear();
      stage_->frames(1);
    }
  }
  const NamedItem* find(const std::string& name) const {
    const auto found = std::find_if(items_.begin(), items_.end(), [&](const NamedItem& item) { return item.name.starts_with(name); });
    return found == items_.end() ? nullptr : &*found;
  }
  void click(const std::string& name) {
    frame();
    const auto found = std::find_if(items_.begin(), items_.end(), [&](const NamedItem& item) { return item.name == name; });
    ASSERT_NE(found, items_.end()) << name;
    const NamedItem item = *found;
    ImGui::GetIO().AddMousePosEvent((item.low.x + item.high.x) / 2, (item.low.y + item.high.y) / 2);
    stage_->frames(1);
    for (const bool down : {true, false}) {
      ImGui::GetIO().AddMouseButtonEvent(ImGuiMouseButton_Left, down);
      stage_->frames(1);
    }
    frame();
  }
  // Trains for real; small frames leave it the processor.
  void train() {
    ui().open_session = start_session;
    stage_->resize({1000, 700});
  }
  static std::string text(const RunConfig& config) { return config_to_json(config).dump(); }
  std::vector<RunRow> stored() const {
    std::vector<RunRow> rows = RunReader(store_).runs();
    std::reverse(rows.begin(), rows.end());
    return rows;
  }
  bool ends() {
    return until([&] { return !ui().queue; });
  }

  std::vector<NamedItem> items_;
};

}  // namespace comera::studio
