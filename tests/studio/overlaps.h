// Texts of the frame that was drawn last that lie over each other, or under something that was filled after them; read from
// the triangles, so that nothing has to tell of itself.
#pragma once
#include <string>
#include <vector>

namespace comera::studio {

// "'Loss' over 'Accuracy' in Metrics at 120, 340", a line for each pair. Compared is what belongs to one window: its
// children and the panels docked in it too, but not popups, dialogs, tooltips and toasts, which lie over others by nature.
// Only what is to be seen counts: what is clipped does not, nor what is nearly transparent.
std::vector<std::string> overlapping_texts();

}  // namespace comera::studio
