// A stage whose named items can be clicked with the mouse and read.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "app/studio/parts/named_items.h"
#include "tests/studio/stage.h"

namespace comera::studio {

class Clicked : public testing::Test {
 protected:
  Clicked() { collect_items(&items_); }
  ~Clicked() override { collect_items(nullptr); }

  void frame() {
    items_.clear();
    stage_.frames(1);
  }
  const NamedItem* find(const std::string& name) {
    for (const NamedItem& item : items_)
      if (item.name.starts_with(name)) return &item;
    return nullptr;
  }
  bool sees(const std::string& name) {
    for (int i = 0; i < 3; ++i) frame();  // Dear ImGui needs a frame to size a new window
    return find(name) != nullptr;
  }
  void click(const std::string& name, int button = ImGuiMouseButton_Left) {
    ASSERT_TRUE(sees(name)) << name;
    const NamedItem item = *find(name);
    ImGuiIO& io = ImGui::GetIO();
    io.AddMousePosEvent((item.low.x + item.high.x) / 2, (item.low.y + item.high.y) / 2);
    frame();
    for (const bool down : {true, false}) {
      io.AddMouseButtonEvent(button, down);
      frame();
    }
    frame();
  }
  void say(const std::function<void(Snapshot&)>& change) { stage_.say(change); }
  UiState& ui() { return stage_.ui; }

  Stage stage_;
  std::vector<NamedItem> items_;
};

}  // namespace comera::studio
