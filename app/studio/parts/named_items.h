// Positions of items on the screen by name, so that tests can click them with a real mouse and read texts. Collected only
// on request. Thread: the one that draws.
#pragma once
#include <imgui.h>

#include <string>
#include <vector>

namespace comera::studio {

struct NamedItem {
  std::string name;  // of a button its id (what follows ###) or its label; of a setting its path; of a text "says:TEXT"
  ImVec2 low, high;  // corners in pixels of the window: its visible part
};

// From now on items are added to `into`, until this is called with null. Whoever asked empties it before each frame.
void collect_items(std::vector<NamedItem>* into);
bool collects_items();
// The last item of Dear ImGui. Not one that is out of sight or cannot be used now.
void name_item(const std::string& name);
// A part of what the current window draws; not one that is out of sight.
void name_area(const std::string& name, ImVec2 low, ImVec2 high);

}  // namespace comera::studio
