// Texts, their tooltips, and menus to copy them.
#pragma once
#include <imgui.h>

#include <string>
#include <vector>

namespace comera::studio {

void small_beside(const std::string& text, ImU32 color);  // after SameLine(): small text, aligned to the baseline of normal text
void text_dim(const std::string& text);
void text_wrapped(const std::string& text, ImU32 color);  // up to the right end of the window
void text_right(const std::string& text, float right, ImU32 color);
// Text, cut with an ellipsis if it is too wide; the tooltip then has the whole text.
void text_fit(const std::string& text, float width, ImU32 color);
// A label that shows a user's text as it is: Dear ImGui hides what follows "##" in labels, and draws nothing for the '\r' added between.
std::string whole_label(std::string text);
// Places the next item of this width on the current line, `gap` after the previous item (-1: default spacing), or on a new line if it does
// not fit.
void beside_or_below(float width, float gap = -1);
void help_marker(const char* text);
void tooltip(const char* text);  // for the last item
// A text that the context menu copies to the clipboard, and the title of its menu item: "Copy value".
struct Copied {
  std::string title, text;
};
// Context menu of the last item, or of a part of it under the mouse (`over`); it copies the texts of the moment when it was opened. It
// should offer all texts of a tooltip, since a tooltip cannot be copied. Call once per item.
void copy_menu(const std::vector<Copied>& what, bool over = ImGui::IsItemHovered());
// Tooltip of the last item, for mouse and keyboard; right click or the Menu key opens a menu to copy it. `id`: of the menu. `value`: the
// visible text, also offered for copying; "" = none.
void told(const char* id, const std::string& text, const std::string& value = "");
// Makes an area that was drawn without an item focusable by the keyboard, so that its tooltip does not require a mouse. `at`: upper left
// corner, as a cursor position in the window. The area becomes the last item. True when it was pressed.
bool focus_area(const char* id, ImVec2 at, ImVec2 size);
// Hovered state comes from the keyboard focus, not from the mouse.
bool led_by_keyboard();
// The mouse moved since this button was pressed: a drag, not a click. Also true in the frame of the release.
bool mouse_dragged(int button = 0);

}  // namespace comera::studio
