// Positions of items on the screen by name, so that tests can click them with a real mouse and read their text. Collected only on request.
// Thread: the drawing thread only.
#pragma once
#include <imgui.h>

#include <string>
#include <vector>

namespace comera::studio {

struct NamedItem {
  std::string name;  // button: its id (after ###) or its label; setting: its path; text: "says:TEXT"
  ImVec2 low, high;  // corners of the visible part, in window pixels
};

// Adds items to `into` until called with null. The caller empties it before each frame.
void collect_items(std::vector<NamedItem>* into);
bool collects_items();
// Names the last item of Dear ImGui, if it is visible and enabled.
void name_item(const std::string& name);
// Names a part of the current window, if it is visible.
void name_area(const std::string& name, ImVec2 low, ImVec2 high);
// Adds an item "typing:ID", without a position, while a text box has the keyboard focus. Call it once, at the end of a frame.
void name_typing();

}  // namespace comera::studio
