// Finds texts of the last frame that overlap other texts, or that are covered by something drawn later. Reads the triangles of the frame,
// so that widgets need no support for it.
#pragma once
#include <string>
#include <vector>

namespace comera::studio {

// "'Loss' over 'Accuracy' in Metrics at 120, 340", one line per pair. Compares texts within a window, its children and the panels docked in
// it; not popups, dialogs, tooltips and toasts, which may cover others. Clipped and nearly transparent texts do not count.
std::vector<std::string> overlapping_texts();

}  // namespace comera::studio
