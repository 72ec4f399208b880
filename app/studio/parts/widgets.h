// Widgets of the panels. They draw with ImGui and keep no state except the texts of an open copy menu.
#pragma once
#include <imgui.h>

#include <string>
#include <vector>

#include "app/studio/shown_run/run_view.h"
#include "app/studio/theme.h"
#include "core/session/snapshot.h"

namespace comera::studio {

enum class Icon {
  none,
  play,
  pause,
  step,
  step_back,
  forward,
  to_mark,
  rewind,
  loop,
  fork,
  stop,
  save,
  check,
  cross,
  warning,
  dot,
  ring,
  clock,
  home,
  chart,
  search,
  sun,
  moon,
  plus,
  more,
  star,
  star_empty
};
// Drawn from lines, so it is sharp at every scale.
void draw_icon(ImDrawList* list, Icon icon, ImVec2 center, float size, ImU32 color);

// A rounded surface. Always call end_card().
bool begin_card(const char* id, ImVec2 size = {0, 0}, ImGuiChildFlags flags = 0, ImGuiWindowFlags window_flags = 0);
void end_card();
// Title line of a card, cut to `width`; 0 = not cut.
void card_title(const char* title, const char* help = nullptr, float width = 0);

struct ButtonLook {
  Icon icon = Icon::none;
  bool primary = false;  // in the accent colour
  bool enabled = true;
  const char* tooltip = nullptr;
  ImGuiKeyChord keys = 0;         // shortcut, appended to the tooltip
  const char* why_not = nullptr;  // tooltip while disabled
  ImVec2 size = {0, 0};
};
// Without a `label` only the icon is shown. Text after ### is the id.
bool button(const char* label, const ButtonLook& look = {});
float button_width(const char* label, const ButtonLook& look);

// A small rounded label with an icon, so that colour is never the only sign.
void chip(const char* text, ImU32 color, Icon icon = Icon::none);
float chip_width(const char* text, Icon icon);

struct PhaseLook {
  const char* text;
  ImU32 color;
  Icon icon;
};
PhaseLook look_of(Phase phase);
ImU32 color_of(Mark::Kind kind);
// Sign of a mark, within `r` of a point; each kind has its own shape. Tall signs extend to 1.6 r.
void draw_mark_sign(ImDrawList* list, Mark::Kind kind, ImVec2 at, float r);

// Title and colour of a memory purpose.
struct PurposeLook {
  const char* title;
  const char* help;
  ImU32 color;
};
PurposeLook look_of(Purpose purpose);
// A small coloured square, e.g. of a legend.
void color_mark(ImU32 color);
// Memory by purpose as a stacked bar; `full` bytes fill its width.
void purpose_bar(const MemoryByPurpose& memory, double full, float height);

// A caption, a large value below it, and a dim line below that.
void stat(const char* caption, const std::string& value, const char* under = nullptr, ImU32 color = 0);

// Centred placeholder of an empty panel, with a hint. `action`: label of a button; returns true when it was pressed. `other`: label of a
// second button.
bool empty_state(Icon icon, const char* title, const char* text, const char* action = nullptr, Icon action_icon = Icon::play,
                 const char* other = nullptr, bool* other_pressed = nullptr);
// A coloured strip with wrapped text.
void banner(Level level, const std::string& text);
float banner_height(const std::string& text, float width);  // height at this width

void small_beside(const std::string& text, ImU32 color);  // after SameLine(): small text, aligned to the baseline of normal text
void text_dim(const std::string& text);
void text_wrapped(const std::string& text, ImU32 color);  // up to the right end of the window
void text_right(const std::string& text, float right, ImU32 color);
// Text, cut with an ellipsis if it is too wide; the tooltip then has the whole text.
void text_fit(const std::string& text, float width, ImU32 color);
// Places the next item of this width on the current line, `gap` after the previous item (-1: default spacing), or on a new line if it does
// not fit.
void beside_or_below(float width, float gap = -1);
float checkbox_width(const char* label);
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

inline constexpr float kNotKnown = -1;  // share of a progress bar that only shows activity
void progress_bar(float share, ImVec2 size, ImU32 color, const std::string& overlay);
// The value that a dragged slider sets: rounded to three significant digits, since more would only fill the log.
double slider_value(double value);
// A thin slider without text. The range of a logarithmic slider may begin at 0.
bool slim_slider(const char* id, double& value, double low, double high, bool logarithmic, float width);
// An on/off switch.
bool toggle(const char* id, bool& on);
bool segmented(const char* id, const char* const* labels, int count, int& chosen);

}  // namespace comera::studio
