// Widgets of the panels. They draw with ImGui and keep no state.
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
// Drawn from lines, so that it is sharp at every scale.
void draw_icon(ImDrawList* list, Icon icon, ImVec2 center, float size, ImU32 color);

// A rounded surface; always end it.
bool begin_card(const char* id, ImVec2 size = {0, 0}, ImGuiChildFlags flags = 0, ImGuiWindowFlags window_flags = 0);
void end_card();
// The title line of a card, cut where it is wider than `width`; 0 = it is not.
void card_title(const char* title, const char* help = nullptr, float width = 0);

struct ButtonLook {
  Icon icon = Icon::none;
  bool primary = false;  // in the accent colour
  bool enabled = true;
  const char* tooltip = nullptr;
  ImGuiKeyChord keys = 0;         // that do the same, said behind the tooltip
  const char* why_not = nullptr;  // tooltip while it cannot act
  ImVec2 size = {0, 0};
};
// `label` may be empty: then only the icon shows. Stable id after ###.
bool button(const char* label, const ButtonLook& look = {});
float button_width(const char* label, const ButtonLook& look);

// A small rounded label with an icon; colour is never the only sign.
void chip(const char* text, ImU32 color, Icon icon = Icon::none);
float chip_width(const char* text, Icon icon);

struct PhaseLook {
  const char* text;
  ImU32 color;
  Icon icon;
};
PhaseLook look_of(Phase phase);
ImU32 color_of(Mark::Kind kind);
// Its sign, about `r` around a point: each kind has a shape of its own. Tall ones leave that by half.
void draw_mark_sign(ImDrawList* list, Mark::Kind kind, ImVec2 at, float r);

// Title and colour of a memory purpose.
struct PurposeLook {
  const char* title;
  const char* help;
  ImU32 color;
};
PurposeLook look_of(Purpose purpose);
// A small square in front of what stands beside it.
void color_mark(ImU32 color);
// Memory as one bar of its purposes; `full` bytes fill its width.
void purpose_bar(const MemoryByPurpose& memory, double full, float height);

// A caption over a large value, and a dim line under it.
void stat(const char* caption, const std::string& value, const char* under = nullptr, ImU32 color = 0);

// Placeholder of an empty panel, centred, with a hint about its content.
// With `action` there is a button under it; true when that was pressed. With `other` a second one is beside it.
bool empty_state(Icon icon, const char* title, const char* text, const char* action = nullptr, Icon action_icon = Icon::play,
                 const char* other = nullptr, bool* other_pressed = nullptr);
// A coloured strip with a text, wrapped.
void banner(Level level, const std::string& text);
float banner_height(const std::string& text, float width);  // of one that wide

void small_beside(const std::string& text, ImU32 color);  // after SameLine(): small text on the base line of normal text
void text_dim(const std::string& text);
void text_right(const std::string& text, float right, ImU32 color);
// Cut with an ellipsis where it does not fit; the whole text is then the tooltip.
void text_fit(const std::string& text, float width, ImU32 color);
// Puts the next item of this width on the current line, `gap` behind the last one (-1: default spacing), or on a new line
// if there is no room.
void beside_or_below(float width, float gap = -1);
float checkbox_width(const char* label);
void help_marker(const char* text);
void tooltip(const char* text);  // of the last item
// A text that a right click offers to put on the clipboard, and what the menu says of it: "Copy value".
struct Copied {
  std::string title, text;
};
// The menu of the last item, or of the part of it that is under the mouse (`over`); it keeps the texts of the moment at
// which it was opened. Whatever a tooltip tells is told here too, since a tooltip cannot be kept. Once for each item.
void copy_menu(const std::vector<Copied>& what, bool over = ImGui::IsItemHovered());
// Tooltip of the last item, for mouse and keyboard; a right click and the Menu key copy it. `id`: of its menu. `value`: the
// visible text, copied too; "" = none.
void told(const char* id, const std::string& text, const std::string& value = "");
// Over what was just drawn from `at` on, a position of the cursor: a place that the keyboard can go to, and that shows it, so that
// what is told there is not for the mouse alone. It is the last item then. True when it was pressed.
bool focus_area(const char* id, ImVec2 at, ImVec2 size);
// What is shown as hovered is so for the keyboard, wherever the mouse is.
bool led_by_keyboard();
// The mouse has moved since this button went down, also in the frame in which it is let go: a drag, not a click.
bool mouse_dragged(int button = 0);

inline constexpr float kNotKnown = -1;  // of a share: the bar then says only that something goes on
void progress_bar(float share, ImVec2 size, ImU32 color, const std::string& overlay);
// A thin slider without text. Logarithmic ones may begin at 0.
bool slim_slider(const char* id, double& value, double low, double high, bool logarithmic, float width);
// A switch that is on or off.
bool toggle(const char* id, bool& on);
bool segmented(const char* id, const char* const* labels, int count, int& chosen);

}  // namespace comera::studio
