// What is told by a tooltip is told without the mouse as well: under the keyboard, and as a text to be copied.
#include <imgui_internal.h>

#include "app/studio/actions.h"
#include "app/studio/parts/texts.h"
#include "tests/studio/clicked.h"

namespace comera::studio {
namespace {

class Told : public Clicked {
 protected:
  Told() {
    ui().next_process_look = 1e9;  // its text stays
    ui().process_bytes = 300 << 20;
    ImGui::SetClipboardText("");
  }
  static std::string clipboard() { return ImGui::GetClipboardText(); }
  // Right clicks there and takes this entry of the menu.
  std::string copied(const std::string& name, const std::string& entry = "Copy tooltip") {
    click(name, ImGuiMouseButton_Right);
    click("copy:" + entry);
    for (int i = 0; i < 3; ++i) frame();
    return clipboard();
  }
  bool offers(const std::string& entry) { return sees("copy:" + entry); }

  // Keys go to the window, without the mouse.
  void focus(const char* window) {
    ImGui::GetIO().AddMousePosEvent(-FLT_MAX, -FLT_MAX);
    for (int i = 0; i < 4; ++i) frame();  // panels that appear take the keyboard
    ImGuiWindow* there = ImGui::FindWindowByName(window);
    ASSERT_NE(there, nullptr) << window;
    ImGui::FocusWindow(there);
    frame();
  }
  void press(ImGuiKeyChord keys) {
    stage_.press(keys);
    for (int i = 0; i < 20; ++i) frame();  // tooltips wait a little
  }
  // What the tooltip says; "" = there is none.
  std::string tip() {
    const NamedItem* item = find("tip:");
    return item ? item->name.substr(4) : "";
  }
  // Presses Tab until a tooltip begins with this.
  bool tabs_to(const std::string& text, int most = 40) {
    for (int i = 0; i < most; ++i) {
      press(ImGuiKey_Tab);
      if (tip().starts_with(text)) return true;
    }
    return false;
  }
};

TEST_F(Told, TheStatusBarIsCopied) {
  stage_.begin_run(Phase::running);
  ASSERT_TRUE(sees("says:process "));
  EXPECT_EQ(copied("status:process", "Copy value"), "process 300.0 MiB");
  EXPECT_EQ(copied("status:process"), "process 300.0 MiB\nResident memory of this program");
  EXPECT_TRUE(copied("status:device").starts_with("CPU, 2 threads\nDevice of the run"));
  EXPECT_EQ(ui().dialogs.open, Dialog::none) << "a right click does not press it";
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
}

TEST_F(Told, TheStatusBarTellsUnderTheKeyboard) {
  stage_.begin_run(Phase::running);
  focus("##status");
  ASSERT_TRUE(tabs_to("Resident memory of this program"));
  press(ImGuiKey_Menu);
  EXPECT_TRUE(offers("Copy value"));
  press(ImGuiKey_Escape);
  EXPECT_FALSE(offers("Copy value"));
  EXPECT_FALSE(ImGui::IsMousePosValid());
}

TEST_F(Told, TheProgressAndItsMarksAreCopied) {
  stage_.begin_run(Phase::running);
  ASSERT_TRUE(sees("says:900 / 36,000"));
  const std::string says = find("says:900 / 36,000")->name.substr(5);
  EXPECT_EQ(copied("progress", "Copy value"), says);
  const std::string all = copied("progress", "Copy events");
  EXPECT_TRUE(all.starts_with("step 600: checkpoint written\n")) << all << "the newest first";
  EXPECT_NE(all.find("step 501: late stage"), std::string::npos) << all;
  EXPECT_EQ(all.find("the run starts"), std::string::npos) << "it begins there anyway";
  // Of the marks under the mouse alone: those two lie side by side, a later one does not.
  stage_.script->records.events.push_back({0, 880, "checkpoint", 0, "{}"});
  say([](Snapshot& s) { s.total_steps = 1000; });
  frame();
  EXPECT_EQ(copied("mark:880", "Copy events"), "step 880: checkpoint written");
  EXPECT_TRUE(copied("says:Late").ends_with("to their targets."));
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
}

TEST_F(Told, TheProgressTellsUnderTheKeyboardWhatItsMarksAre) {
  stage_.begin_run(Phase::running);
  focus("##transport");
  ASSERT_TRUE(tabs_to("ETA: at the speed of"));
  EXPECT_NE(tip().find("step 600: checkpoint written"), std::string::npos) << tip();
  press(ImGuiKey_Menu);
  EXPECT_TRUE(offers("Copy events"));
  press(ImGuiKey_Escape);
  focus("##transport");
  EXPECT_TRUE(tabs_to("Late stage: drives size and loss")) << "the stage";
}

TEST_F(Told, TheRankMapIsCopied) {
  stage_.begin_run(Phase::running);
  ui().front_panel = "ranks";
  frame();
  EXPECT_EQ(copied("cell:enc0.attn.q.2", "Copy value"), "12");
  const std::string cell = copied("cell:enc0.attn.q.2");
  EXPECT_TRUE(cell.starts_with("enc0.attn.q, bond 2\nranks 30  12  0  7  30\n")) << cell;
  EXPECT_NE(cell.find("capped at 14"), std::string::npos) << cell;
  EXPECT_EQ(copied("layer:enc1.attn.q", "Copy name"), "enc1.attn.q");
  EXPECT_EQ(ui().selected_layer, "") << "nothing was chosen by that";
  EXPECT_EQ(stage_.overflowing(), std::vector<std::string>{});
}

// Tab comes to the map once, arrows lead through it.
TEST_F(Told, TheRankMapTellsUnderTheKeyboard) {
  stage_.begin_run(Phase::running);
  ui().front_panel = "ranks";
  for (int i = 0; i < 3; ++i) frame();
  focus("Ranks###ranks");
  ASSERT_TRUE(tabs_to("enc0.attn.q"));
  EXPECT_EQ(tip(), "enc0.attn.q") << "its name";
  press(ImGuiKey_RightArrow);
  EXPECT_EQ(tip(), "enc0.attn.q, bond 1");
  press(ImGuiKey_DownArrow);
  EXPECT_EQ(tip(), "enc1.attn.q, bond 1");
  press(ImGuiKey_Menu);
  EXPECT_TRUE(offers("Copy line"));
  press(ImGuiKey_Escape);
  press(ImGuiKey_Enter);
  EXPECT_EQ(ui().selected_layer, "enc1.attn.q");
  EXPECT_EQ(ui().tt.bond, 1);
  press(ImGuiKey_Tab);
  EXPECT_FALSE(tip().starts_with("enc1.attn.q, bond")) << "Tab leaves the map";
}

TEST_F(Told, WhyAnEditWasRefusedIsCopied) {
  stage_.begin_run(Phase::running);
  frame();
  ui().live->edit("method.comera.late_halving", "50");
  say([&](Snapshot& s) {
    s.last_ticket = stage_.script->tickets;
    s.last_refusal = "cannot change it: there is no room";
  });
  frame();
  EXPECT_EQ(copied("sign:method.comera.late_halving"), "refused\ncannot change it: there is no room");
}

// A menu keeps the text of the moment at which it was opened.
TEST_F(Told, WhatIsCopiedIsWhatWasPointedAt) {
  stage_.begin_run(Phase::running);
  click("status:process", ImGuiMouseButton_Right);
  ui().process_bytes = 999 << 20;
  ASSERT_TRUE(sees("says:process 999"));
  click("copy:Copy value");
  EXPECT_EQ(clipboard(), "process 300.0 MiB");
}

// Dear ImGui takes "##" in a label as the begin of an id, which it does not draw; in a user's text it is a part of the text.
TEST_F(Told, ATextOfTheUserIsDrawnToItsEnd) {
  const auto drawn = [&](const std::string& text, float width) {
    int corners = 0;
    stage_.extra = [&] {
      ImGui::Begin("texts");
      const int before = ImGui::GetWindowDrawList()->VtxBuffer.Size;
      text_fit(text, width, theme().text);
      corners = ImGui::GetWindowDrawList()->VtxBuffer.Size - before;
      ImGui::End();
    };
    sees("");
    stage_.extra = {};
    return corners;
  };
  EXPECT_EQ(drawn("su ##ss", 500), drawn("su xxss", 500));
  EXPECT_GT(drawn("su ##ss and much more than fits here", 90), drawn("su ", 90) + 4) << "cut, with an ellipsis";
  for (const char* text : {"a ##b", "###", "a", "", "a###b##"}) {
    const std::string label = whole_label(text);
    EXPECT_EQ(ImGui::FindRenderedTextEnd(label.c_str()), label.c_str() + label.size()) << text;
  }
  ui().run_table.saved_filters = {"a ##b"};
  float plain = 0, hashed = 0;
  stage_.extra = [&] {
    plain = ImGui::CalcTextSize("a ##b").x;
    hashed = ImGui::CalcTextSize(whole_label("a ##b").c_str(), nullptr, true).x;
  };
  sees("");
  EXPECT_EQ(plain, hashed);
  stage_.extra = {};
}

}  // namespace
}  // namespace comera::studio
